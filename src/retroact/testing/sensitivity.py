"""Brute force: what one operation can do to the true totals, against the noise that is meant to hide it.

Nothing is drawn: the cost of hiding the difference of two histories is a sum over the nodes that move, in the exact
scales of their laws. A search over pairs finds calibration errors (a wrong norm, unit or height) more reliably than any
number of draws. It cannot find a pair that is worse than those it tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from random import Random
from typing import Any, NamedTuple

from ..compilers import sample_in
from ..errors import VerificationError
from ..ledger.definition import Add, Sequence
from ..noise import Oblivious
from ..stream import Specification
from .altered import understated
from .check import Check, Finding, require
from .crossfade_costs import crossfade_costs
from .hiding import cost_of
from .histories import Shape, neighbouring_pairs, values_of
from .ranges import Ranges, ranges_in
from .seeds import Seeds
from .shrink import both_written
from .worst_pair import (
    BY_PATTERN,
    MOST_NODES,
    ROUNDS,
    Candidate,
    Search,
    bare_process,
    candidates,
    moves_nothing,
    single_pairs,
)

HALF = Fraction(1, 2)
UNHIDDEN = "A change was found that the noise is not made to hide."
NO_RECORD = "It does not apply: no record was found that moves its totals."
# The most rounds of a history for a sample.
LONGEST = 64


def check_sensitivity(spec: Specification, random: Random, *, pairs: int = 60) -> None:
    """For neighbouring histories, hiding the difference of the totals by shifting the noise costs at most the share of
    the statistic (in the exact scales of its laws). For samples, every answer in which one operation can be seen is
    paid for."""
    for name in spec.bounds:
        require(*sensitivity_of(spec, name, pairs), Seeds(random.getrandbits(63)), what=f"sensitivity of {name}")


def sensitivity_of(spec: Specification, name: str, pairs: int) -> tuple[Check[Any], Any]:
    """The check of one statistic, and its target."""
    if ranges_in(spec.bounds[name]) is not None:
        return Ranges(name, pairs), spec
    if sample_in(spec.bounds[name]) is None:
        return Sensitivity(name, pairs), spec
    return SampledAnswers(name, pairs), Counting(spec)


def obstacle(spec: Specification, name: str) -> str | None:
    """Why the noise of a statistic cannot be examined from inside, or None if it can."""
    statistic = spec.statistics[name]
    reason = None
    if isinstance(statistic.noise, Oblivious):
        reason = "its noise law is the user's, with a declared cost that is taken on trust"
    elif not spec.bounds[name].additive:
        found = sample_in(spec.bounds[name])
        adds = found is not None and found.noisy == "sums"
        how = "noise on sums that depend on its earlier answers" if adds else "drawing its answers"
        reason = f"it hides records by {how}, not by noise on totals"
    elif isinstance(bare_process(spec.bounds[name].process), BY_PATTERN) and (spec.releases(name) or 0) > MOST_NODES:
        reason = f"one change moves a noise for every release, more than {MOST_NODES:,}"
    return reason and f"It does not apply: {reason}."


def unmoved(spec: Specification, name: str, random: Random) -> Finding:
    """What a search that found no cost says: there is no record to hide, or it is broken."""
    if moves_nothing(spec, name, random):
        return Finding(verdict="not applicable", found=NO_RECORD)
    return Finding(verdict="inconclusive", found="Records move its totals, but no pair was found that costs anything.")


@dataclass(frozen=True)
class Sensitivity(Check[Specification]):
    """One statistic, over this many random pairs and all systematic ones."""

    name: str
    pairs: int
    question = "Is the noise of {self.name!r} large enough for the most that one operation can change?"

    def not_applicable(self, target: Specification) -> str | None:
        return obstacle(target, self.name)

    def planted(self, target: Specification) -> list[list[tuple[str, Specification]]]:
        bug = "noise that was calibrated as if a record moved half of what it does"
        return [[(bug, understated(target, self.name, HALF))]]

    def run(self, target: Specification, seeds: Seeds) -> Finding:
        share, tried = target.shares[self.name], 0
        worst: Candidate | None = None
        unhidden: list[str] = []
        try:
            pairs = candidates(target, self.name, seeds.random(), pairs=self.pairs)
            for candidate in chain(pairs, crossfade_costs(target, self.name, seeds.branch("costs").random())):
                tried += 1
                if worst is None or candidate.cost > worst.cost:
                    worst = candidate
        except VerificationError as error:
            unhidden = str(error).splitlines()
        if worst is None or not worst.cost:
            if not unhidden:
                return unmoved(target, self.name, seeds.random())
            worst = Candidate(Fraction(0), list, list)
        moved = sum(len(one.shift) for one in worst.moved)
        letter, root = ("epsilon", 1.0) if share.kind == "pure" else ("mu^2", 0.5)
        ratio = float(worst.cost / share.amount)
        granted = f"{float(share.amount):.6g}"
        spare = f"{ratio**-root:.6g}" if ratio else "1"
        slack = "at all" if spare == "1" or ratio > 1 else f"more than {spare} times"
        return Finding(
            tried=f"{tried:,} pairs of histories that differ in one operation: single records and random histories of "
            "up to eight rounds, and one record over long intervals up to the full horizon. For each, the exact cost "
            "of hiding the difference, with no sampling.",
            runs=tried,
            verdict="violation" if worst.cost > share.amount or unhidden else "passed",
            found=UNHIDDEN
            if unhidden
            else f"In the worst pair to hide one operation costs {letter} = {float(worst.cost):.6g}, granted is "
            f"{granted} ({ratio:.6g} of it).",
            detectable=f"Noise that is {slack} too small would be shown with certainty, if these pairs are the worst "
            "there are.",
            measured={
                f"{letter} granted": granted,
                f"{letter} of the worst pair": f"{float(worst.cost):.6g}",
                "cost, of the share": f"{ratio:.6g}",
                "exact cost, of the share": str(worst.cost / share.amount),
                "noises that move": str(moved) if moved or not worst.cost else "all",
            },
            counterexample=lambda: unhidden or worst.describe(),
        )


class Counting(NamedTuple):
    """A stream with a sample, and how often an addition counts its record: more than once is a bug."""

    specification: Specification
    times: int = 1


@dataclass(frozen=True)
class SampledAnswers(Check[Counting]):
    """A sample: in how many answers one operation can be seen, against how many are paid for."""

    name: str
    pairs: int
    question = "Is every answer of {self.name!r} in which one operation can be seen paid for?"

    def planted(self, target: Counting) -> list[list[tuple[str, Counting]]]:
        return [[("an addition that counts its record twice", target._replace(times=2))]]

    def run(self, target: Counting, seeds: Seeds) -> Finding:
        spec, tried, worst = target.specification, 0, 0
        search, paid = Search(spec, self.name), spec.grants[self.name].reach or 0
        shown, broken = list[str](), list[str]()
        try:
            for one, other in self._pairs(target, seeds.random()):
                tried += 1
                differing = sum(map(abs, moved_samples(search, one, other)))
                if differing > worst:
                    worst, shown = differing, both_written(one, other)
        except VerificationError as error:
            broken = str(error).splitlines()
        return Finding(
            tried=f"{tried:,} pairs of histories that differ in one operation; for each, the exact number of answers "
            "whose live records differ, and by how much.",
            runs=tried,
            verdict="violation" if broken or worst > paid else "passed",
            found="One operation moves more than one record, or passes the gate unpaid."
            if broken
            else f"One operation changes the live records of at most {worst} answers, and by one record; {paid} are "
            "paid for.",
            detectable=f"One answer more than {paid}, or one record more in an answer, would be shown with certainty, "
            "if it happens in these pairs.",
            measured={"answers that differ": str(worst), "answers paid for": str(paid)},
            counterexample=lambda: broken or shown,
        )

    def _pairs(self, target: Counting, random: Random) -> list[tuple[Sequence, Sequence]]:
        """One record that is never deleted, over its whole life and a little longer; then short histories."""
        spec = target.specification
        rounds = min(spec.horizon or LONGEST, (spec.window_of(self.name) or LONGEST) + 2, LONGEST)
        shape = Shape(values_of(spec.schema, random), rounds=min(spec.horizon or ROUNDS, ROUNDS), late=spec.late)
        nothing: Sequence = ((),) * rounds
        lives = [(nothing, ((Add(value),) * target.times, *nothing[1:])) for value in shape.values]
        return [*lives, *single_pairs(shape), *neighbouring_pairs(shape, random, self.pairs)]


def moved_samples(search: Search, one: Sequence, other: Sequence) -> list[int]:
    """By how much the live records of each release differ. One operation may move one record by one, and a gate must
    hide that."""
    name, noise, moved = search.name, search.mechanism, []
    for (old,), (new,) in zip(search.coordinates(one), search.coordinates(other), strict=True):
        differences = [int(new.get(key, Fraction(0)) - old.get(key, Fraction(0))) for key in old.keys() | new.keys()]
        if sum(map(abs, differences)) > 1:
            raise VerificationError(f"sensitivity of {name}: more than one live record moves\n  {one}\n  {other}")
        moved.append(sum(differences))
    sample = sample_in(search.spec.bounds[name])
    gated = sample is not None and sample.limit is not None
    if gated and any(moved) and cost_of(noise, 0, noise.process.shift_hiding(moved)) > noise.share.amount:
        raise VerificationError(f"sensitivity of {name}: the gate does not hide one record\n  {one}\n  {other}")
    return moved
