"""Reconstruction against a stream: Appendix D of the paper, through the stream's own distinct count.

Streams take many updates a round, so one round is enough for a query, and a much shorter horizon than that of the paper
has room for the attack. Whatever the pace, changing a secret bit changes one addition, and privacy bounds what can be
guessed of it by the epsilon of one operation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np

from ..errors import InputError
from ..ledger.definition import Add, Delete, Update
from ..schema import Category, Field, Integer, Text
from ..statistics import Distinct
from ..statistics.distinct import DistinctBound
from ..stream import HorizonWarning, Specification
from ..testing import StreamAlgorithm, in_memory, values_of
from ..testing.algorithm import Make
from ..testing.altered import publishing
from ..testing.check import Check, Finding
from ..testing.seeds import Seeds
from .counting_attack import BitAttack, random_sets, recovered, rounds_of
from .decoding import F64, I64, LARGEST_EPSILON, Bits, Guesses, significant
from .result import Result, decimal, idle, report
from .target import Target

SMALLEST, LARGEST = 8, 32
# Queries for each secret bit.
QUERIES = 4
# About as many rounds of the stream as an audit closes in all, with fewer bits and repetitions where an attack is long,
# but enough bits to contradict a claim; and the longest attack.
ROUNDS, MOST_ROUNDS = 4_000, 150_000
TEST = "bits from distinct counts"
# The bits that retraining without noise must give away, or the attack is broken.
EXACTLY = 0.99


@dataclass(frozen=True)
class AttackPlan:
    """A stream with a distinct count that can be attacked, the shape of the attack, and how often it is made."""

    make: Make
    specification: Specification
    name: str
    records: tuple[Hashable, ...]
    """They differ in what is counted."""
    n: int
    unit: int
    wait: int
    block: int
    repeats: int = 1

    @property
    def rounds(self) -> int:
        return rounds_of(QUERIES * self.n, self.unit, self.wait)

    def places(self, attack: BitAttack) -> I64:
        """Where the noise of the rounds that are looked at stands in its process."""
        bound = self.specification.bounds[self.name]
        assert isinstance(bound, DistinctBound)
        design, every = bound.design, bound.grant.every
        return np.array([design.place(look // every, look, every) for look in attack.looks.tolist()])

    def deviation(self, attack: BitAttack) -> float:
        """Of the noise where the attacker looks last."""
        return self.specification.bounds[self.name].noise.deviation_of(0, int(self.places(attack)[-1]))

    def answers(self, attack: BitAttack, secret: Bits, seeds: Seeds) -> F64:
        """What the stream, run round by round, publishes where the attacker looks."""
        algorithm = self.make(seeds.key())
        if not isinstance(algorithm, StreamAlgorithm):
            raise InputError(f"expected a stream, got {type(algorithm).__name__}", place="make")
        looks, answers = set(attack.looks.tolist()), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HorizonWarning)
            for round, updates in enumerate(attack.history(secret), 1):
                release = algorithm.release([self._named(update) for update in updates])
                if round in looks:
                    answers.append(float(release[self.name].value))
        return np.array(answers) - self.fresh

    def _named(self, update: Update) -> Update:
        assert isinstance(update, Add | Delete)
        assert isinstance(update.value, int)
        return replace(update, value=self.records[update.value])

    def without_noise(self) -> AttackPlan:
        """The same attack, once, on a stream whose distinct count has no noise: exact retraining."""
        bare = copy(in_memory(self.specification))
        own = bare.bounds[self.name]
        bare.bounds = {**bare.bounds, self.name: publishing(own, lambda drawn: drawn.numbers * 0)}
        return replace(self, make=partial(StreamAlgorithm, bare), repeats=1)

    @property
    def fresh(self) -> float:
        """What blocks add, where the attacker looks, for records that are too new to count: public."""
        statistic = self.specification.statistics[self.name]
        assert isinstance(statistic, Distinct)
        look = (1 + self.wait) * self.unit
        return (statistic.additions or 0) * (look - (look - 1) // self.block * self.block) / 2 if self.block else 0.0

    def shortened(self, least: int) -> AttackPlan:
        """With few enough bits for the rounds of an audit, but no fewer than this."""
        fits = [m for m in range(1, self.n + 1) if replace(self, n=m).rounds <= ROUNDS]
        return replace(self, n=min(self.n, max(least, fits[-1] if fits else 1)))

    def attack(self, seeds: Seeds) -> BitAttack:
        return BitAttack(random_sets(self.n, QUERIES * self.n, seeds), self.unit, self.wait)


def plan_for(make: Make, specification: Specification, name: str, *, n: int = LARGEST) -> AttackPlan | str:
    """The largest attack of at most n bits that a distinct count has room for, or why there is none."""
    bound = specification.bounds[name]
    if not isinstance(bound, DistinctBound):
        return f"{name} is not a distinct count"
    statistic, grant, design = bound.statistic, bound.grant, bound.design
    if statistic.where:
        return f"{name} counts only some of the records"
    if statistic.by:
        return f"{name} counts in groups"
    if design.form == "flips":
        return f"the promise of {name} that values rarely come and go rules such a history out"
    block = design.rounds if design.form == "blocks" else 0
    unit, wait = math.lcm(statistic.every, block or 1), int(block > 0)
    room = min(grant.horizon or math.inf, grant.window or math.inf)
    records = _records(specification, statistic.fields, n)
    fits = [m for m in range(1, len(records) + 1) if rounds_of(QUERIES * m, unit, wait) <= room]
    if not fits or fits[-1] < min(n, SMALLEST):
        return f"{name} has too few rounds or too few values for {min(n, SMALLEST)} secret bits"
    return AttackPlan(make, specification, name, records, fits[-1], unit, wait, block)


def reconstruction(
    target: Target, seeds: Seeds, *, n: int | None = None, repeats: int = 6, confidence: float = 0.999
) -> Result:
    """Recovers ``n`` secret bits a run, in ``repeats`` runs with other bits, queries and keys.

    >>> import retroact as ra
    >>> spec = ra.Specification({"user": ra.Text()}, {"users": ra.Distinct("user")}, epsilon=1.0, horizon=100)
    >>> reconstruction(Target.stream(spec), Seeds(1), n=12, repeats=2).verdict
    'passed'
    """
    epsilon, delta = target.claim.epsilon, target.claim.delta
    if not 0 < epsilon <= LARGEST_EPSILON:
        return _idle(f"No ε above 0 and up to {LARGEST_EPSILON:,} is claimed.")
    plan = _plan(target, LARGEST if n is None else n)
    if isinstance(plan, str):
        return _idle(f"The stream cannot be attacked in this way: {plan}.")
    if n is None:
        plan = plan.shortened(_contradicting(epsilon, delta, confidence))
    if plan.rounds > MOST_ROUNDS:
        return _idle(f"The attack would take {plan.rounds:,} rounds of the stream.")
    plan = replace(plan, repeats=max(1, min(repeats, ROUNDS // plan.rounds)))
    return report(Reconstruction(epsilon, delta, confidence), plan, seeds, part="reconstruction", test=TEST)


def _idle(reason: str) -> Result:
    return idle("reconstruction", TEST, Reconstruction.question, reason)


def _contradicting(epsilon: float, delta: float, confidence: float) -> int:
    """The fewest bits of which all right would contradict the claim; the usual number where more would be needed."""
    return next((n for n in range(SMALLEST, LARGEST) if significant(n, epsilon, delta, confidence) <= n), LARGEST)


@dataclass(frozen=True)
class Reconstruction(Check[AttackPlan]):
    """One attack, against what ε and δ allow."""

    epsilon: float
    delta: float
    confidence: float
    question = (
        "Can somebody who adds and deletes their own records work out, from the published counts of different "
        "values, which secret records are there?"
    )

    def planted(self, target: AttackPlan) -> list[list[tuple[str, AttackPlan]]]:
        return [[("exact retraining: the same stream, whose counts have no noise", target.without_noise())]]

    def run(self, target: AttackPlan, seeds: Seeds) -> Finding:
        plan, repeats = target, target.repeats
        found = []
        for repeat in range(repeats):
            own = seeds.branch("reconstruction", repeat)
            found.append(recovered(plan.answers, plan.attack(own), own))
        lp, bits = sum(found) / repeats, plan.n * repeats
        guesses = Guesses(round(lp * bits), bits, self.epsilon, self.delta, self.confidence)
        deviation = plan.deviation(plan.attack(seeds))
        return Finding(
            tried=f"Each of {plan.n} secret records was there or not by a fair coin. For each of {QUERIES * plan.n} "
            "random sets of values, records with these values were added, the published count was read, and they were "
            "deleted again (Appendix D of the paper); a linear program then looked for the secret. "
            f"{repeats} time{'s' * (repeats != 1)} over {plan.rounds:,} rounds of the stream, run round by round, each "
            "time with other coins and another key.",
            runs=repeats,
            verdict=guesses.verdict,
            found=guesses.found("secret bits"),
            detectable=guesses.detectable,
            measured={
                "fraction recovered": decimal(lp),
                "fraction allowed on average": decimal(guesses.allowed),
                "fraction that would be a violation": decimal(guesses.least / bits)
                if guesses.least <= bits
                else "none",
                "standard error of an answer": decimal(deviation),
                "standard error over the root of the number of bits": decimal(deviation / math.sqrt(plan.n)),
            },
            seen=lp >= EXACTLY,
        )


def _plan(target: Target, n: int) -> AttackPlan | str:
    """An attack on the target, or why there is none."""
    spec, reasons = target.specification, list[str]()
    counts = [] if spec is None else sorted(name for name, s in spec.statistics.items() if isinstance(s, Distinct))
    for name in counts:
        assert spec is not None
        if not isinstance(target.make(Seeds(0).key()), StreamAlgorithm):
            reasons.append(f"the answers of {name} are not those of a stream")
            continue
        plan = plan_for(target.make, spec, name, n=n)
        if isinstance(plan, AttackPlan):
            return plan
        reasons.append(plan)
    return "; ".join(reasons) or "it publishes no distinct count"


def _records(specification: Specification, by: tuple[str, ...], n: int) -> tuple[Hashable, ...]:
    """Records that differ in one field that is counted by: the one with the most values."""
    fields = specification.schema.fields
    usual = dict(zip(fields, values_of(specification.schema, Random(0), 1, whole=True)[0], strict=True))  # type: ignore[call-overload]
    name = max(by, key=lambda name: len(_values(fields[name], n)))
    return tuple(tuple({**usual, name: value}.values()) for value in _values(fields[name], n))


def _values(field: Field, n: int) -> list[Hashable]:
    if type(field) is Text:
        return [f"value {i}" for i in range(n)]
    if type(field) is Category:
        return list(field.values[:n])
    return list(range(field.lower, min(field.lower + n, field.upper + 1))) if type(field) is Integer else []
