"""The strongest attack on known noise: the likelihood ratio of the claimed law, on noise from the laws of the stream.

A process hides a change of the truth by moving independent noises ("nodes"). The attacker is given
every noise that hides the worst change a search found (`testing.worst_pair`), which is at least what follows from the
published numbers, and must tell whether the change is there. No test of a noise has more power against the claimed law,
so on a correct mechanism the proven loss comes close to the claim, and a scale that is a little too small shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..arrays import F64
from ..coins import Coins, Law, integer_cells
from ..errors import VerificationError
from ..noise import Process
from ..privacy import Share, epsilon_of
from ..statistics.restated import Lagged
from ..stream import Specification
from ..testing.altered import understated
from ..testing.check import Check, Finding
from ..testing.claimed_law import Claim, claimed_size
from ..testing.seeds import Seeds
from ..testing.sensitivity import UNHIDDEN, obstacle, unmoved
from ..testing.worst_pair import Candidate, worst
from .bounds import claimed_tradeoff, coupled_bound, coupled_pooled_bound, measured_tradeoff, pooled_bound
from .result import Result, curve, decimal, idle_inside, report
from .target import Target

FACTORS = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0)
PLANTED = 2
# The most noises that are drawn for one simulation (many moved noises mean fewer runs), and at once.
DRAWS, CHUNK = 20_000_000, 1_000_000
CURVE = 60
# Of noises and of scores, in parts of their steps.
ROUNDING = 1e-6

Bits = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Node:
    """``count`` independent noises that move by ``shift`` steps of the data: their law, on a lattice ``refinement``
    times finer, and the scale or variance that the claim asks for, in units of the data."""

    law: Law
    claimed: Fraction
    shift: Fraction
    refinement: int
    count: int


def nodes(spec: Specification, name: str, candidate: Candidate) -> list[Node]:
    """The moved noises of a candidate, equal ones together."""
    out: dict[tuple[Law, Fraction, Fraction, int], int] = {}
    for coordinate, noise, shift in candidate.moved:
        unit, claim = noise.units[coordinate], _claim_of(spec, name, noise.process)
        for (level, _), value in shift.items():
            far = abs(Fraction(value))
            key = noise.law(level, unit), claimed_size(claim, level, unit), far, noise.refinement
            out[key] = out.get(key, 0) + 1
    return [Node(*key, count) for key, count in out.items()]


def _claim_of(spec: Specification, name: str, process: Process) -> Claim:
    """What the budget asks of one noise of a statistic: lags that each have their own noise divide it."""
    share, mechanism = spec.shares[name], spec.bounds[name].noise
    if isinstance(mechanism, Lagged) and not mechanism.shared:
        share = Share(share.kind, share.amount / len(mechanism.parts))
    return Claim(spec.bounds[name].layout, share, process)


@dataclass(frozen=True)
class Moves:
    """How far each noise moves, and the scale or variance that is claimed for it."""

    kind: str
    shifts: F64
    sizes: F64

    @classmethod
    def of(cls, kind: str, moved: list[Node]) -> Moves:
        counts = [node.count for node in moved]
        shifts = np.repeat([float(node.shift) for node in moved], counts)
        return cls(kind, shifts, np.repeat([float(node.claimed) for node in moved], counts))

    @property
    def losses(self) -> F64:
        """What each noise alone loses: an epsilon, or a mu^2."""
        return self.shifts / self.sizes if self.kind == "pure" else self.shifts**2 / self.sizes


@dataclass(frozen=True)
class Simulated:
    """Lower bounds by method, and the scores of the runs of both worlds."""

    bounds: dict[str, float]
    scores: tuple[F64, F64]

    @property
    def best(self) -> float:
        return max(self.bounds.values())


def likelihood(
    target: Target, seeds: Seeds, *, runs: int = 100_000, confidence: float = 0.999, pairs: int = 60
) -> list[Result]:
    """One result for each statistic, against its share of the budget.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count(noise="tree")}, epsilon=1.0, horizon=8)
    >>> (result,) = likelihood(Target.stream(spec), Seeds(1), runs=5000, pairs=5)
    >>> result.verdict, result.control.caught
    ('passed', True)
    """
    spec = target.specification
    if spec is None:
        return [idle_inside("likelihood")]
    checks = [Likelihood(name, runs, confidence, pairs) for name in spec.statistics]
    return [report(c, spec, seeds.branch(c.name), part="privacy", test=f"likelihood: {c.name}") for c in checks]


@dataclass(frozen=True)
class Likelihood(Check[Specification]):
    """One statistic, against its share of the budget."""

    name: str
    runs: int
    confidence: float
    pairs: int

    question = (
        "Can somebody who is given all of the noise that hides one record in {self.name!r}, and knows everything else, "
        "tell whether the record is there more often than the claim allows?"
    )

    def not_applicable(self, target: Specification) -> str | None:
        return obstacle(target, self.name)

    def planted(self, target: Specification) -> list[list[tuple[str, Specification]]]:
        bug = f"noise that was calibrated as if a record moved 1/{PLANTED} of what it does"
        return [[(bug, understated(target, self.name, Fraction(1, PLANTED)))]]

    def run(self, target: Specification, seeds: Seeds) -> Finding:
        name, confidence = self.name, self.confidence
        try:
            found = worst(target, name, seeds.branch("pairs").random(), pairs=self.pairs)
        except VerificationError as error:
            lines = str(error).splitlines()
            return Finding(verdict="violation", found=UNHIDDEN, counterexample=lambda: lines)
        if not found.cost:
            return unmoved(target, name, seeds.branch("pairs").random())
        moved, share = nodes(target, name, found), target.shares[name]
        moves = Moves.of(share.kind, moved)
        count = len(moves.shifts)
        runs = max(100, min(self.runs, DRAWS // count))
        claim, letter = _claim(share)
        limit = most(share.kind, runs, count, confidence)
        if PLANTED * claim > limit:
            few = f"{runs:,} runs cannot prove more than {letter} = {decimal(limit)}, and {decimal(claim)} is claimed"
            return Finding(verdict="not applicable", found=f"It does not apply: {few}.")
        real = simulate(moves, moved, seeds.branch("runs"), runs, confidence)
        lower = real.best
        return Finding(
            tried=_tried(share, count, runs),
            runs=runs,
            verdict="violation" if lower > claim else "passed",
            found=f"The right guesses prove a loss of at least {letter} = {decimal(lower)} (with {confidence:.2%} "
            f"confidence); claimed is {decimal(claim)}{_at_delta(target, share, lower)}.",
            detectable=_detectable(moves, runs, confidence, claim, letter),
            measured={
                f"{letter} claimed": decimal(claim),
                f"{letter} at least": decimal(lower),
                "share of the claim that was proven": decimal(lower / claim),
                **{f"by {method}": decimal(bound) for method, bound in real.bounds.items()},
                "noises that move": str(count),
                "cost of the pair, of the share": decimal(float(found.cost / share.amount)),
            },
            counterexample=found.describe,
            curves={
                "claimed": curve(claimed_tradeoff(share.measure, CURVE)),
                "measured": curve(measured_tradeoff(*real.scores, CURVE)),
            },
        )


def most(kind: str, runs: int, count: int, confidence: float) -> float:
    """What this many runs prove if every guess is right."""
    if kind != "pure":
        return coupled_bound(runs, runs, confidence)
    return pooled_bound(runs * count, runs * count, count, (1 + confidence) / 2)


def simulate(moves: Moves, moved: list[Node], seeds: Seeds, runs: int, confidence: float) -> Simulated:
    """Noise from the laws of the nodes, and a fair coin for each run. The noise does not depend on the world, so what
    it shows in the other one is known too. Pure noises also vote one by one, with a fair coin for each vote; the
    confidence is divided."""
    random, pure = seeds.branch("bits").numpy(), moves.kind == "pure"
    world: Bits = random.integers(0, 2, runs, dtype=np.int8)
    scores, votes, between = np.zeros(runs), list[npt.NDArray[np.bool_]](), 0
    for part, noise in _drawn(moved, seeds.coins(), runs):
        shifts, sizes = moves.shifts[part, None], moves.sizes[part, None]
        seen = noise + shifts * world
        if not pure:
            scores += ((seen - shifts / 2) * (shifts / sizes)).sum(axis=0)
            continue
        scores += ((np.abs(seen) - np.abs(seen - shifts)) / sizes).sum(axis=0)
        middle = np.floor(shifts / 2)
        between += int(((noise <= middle) & (noise + shifts > middle)).sum())
        bits: Bits = random.integers(0, 2, noise.shape, dtype=np.int8)
        seen = noise + shifts * bits
        up, down = seen >= shifts * (1 - ROUNDING), seen <= shifts * ROUNDING
        votes += [right[sure] for right, sure in zip(up == (bits == 1), up | down, strict=True)]
    both = scores[world == 0], scores[world == 1]
    if not pure:
        whole = float(moves.losses.sum())
        absent = scores - world * whole
        # A little above 0: scores lie on a lattice, and rounding must not count both of its points at the ends.
        limit = ROUNDING * whole
        crossed = int(((absent <= limit) & (absent + whole > limit)).sum())
        return Simulated({"all noises together": coupled_bound(crossed, runs, confidence)}, both)
    count, each = len(moves.shifts), (1 + confidence) / 2
    # Equally many votes of each noise: the first ones.
    fewest = min(len(vote) for vote in votes)
    correct = sum(int(vote[:fewest].sum()) for vote in votes)
    bounds = {
        "each noise for itself": pooled_bound(correct, fewest * count, count, each) if fewest else 0.0,
        "each noise for itself, in both worlds": coupled_pooled_bound(between, runs * count, count, each),
    }
    return Simulated(bounds, both)


def _drawn(moved: list[Node], coins: Coins, runs: int) -> Iterator[tuple[slice, F64]]:
    """Noise from the laws of the stream, some nodes at a time: which, and their noise by runs."""
    cells, start = integer_cells(runs), 0
    step = max(1, CHUNK // runs)
    for number, node in enumerate(moved):
        own = coins.branch("node", number)
        for first in range(0, node.count, step):
            names = np.arange(first, min(first + step, node.count))
            noise = node.law.sample(own.words(np.zeros_like(names), names, cells)) / node.refinement
            yield slice(start + first, start + first + len(names)), noise
        start += node.count


def _detectable(moves: Moves, runs: int, confidence: float, claim: float, letter: str) -> str:
    """From the number of right guesses to expect when the noise is too small by a factor."""
    whole = float(moves.losses.sum())
    for factor in FACTORS:
        if moves.kind == "pure":
            losses, each = moves.losses * (factor * claim / whole), (1 + confidence) / 2
            sure = float(((1 + np.exp(-losses)) / 2).min())  # how often a noise votes at least
            votes = round(runs * sure) * len(losses)
            right = int(votes * float((1 / (1 + np.exp(-losses))).mean()))
            between = int(runs * float(-np.expm1(-losses / 2).sum()))
            bound = max(
                pooled_bound(right, votes, len(losses), each),
                coupled_pooled_bound(between, runs * len(losses), len(losses), each),
            )
        else:
            bound = coupled_bound(int(runs * math.erf(factor * claim / math.sqrt(8))), runs, confidence)
        if bound > claim:
            return (
                f"A loss of {letter} = {decimal(factor * claim)}, {factor:g} times the claim, would be proven in at "
                f"least half of all audits with {runs:,} runs (computed for factors "
                f"{', '.join(f'{f:g}' for f in FACTORS)})."
            )
    return f"No loss up to {FACTORS[-1]:g} times the claim would be proven by {runs:,} runs in half of all audits."


def _claim(share: Share) -> tuple[float, str]:
    return (float(share.amount), "epsilon") if share.kind == "pure" else (math.sqrt(share.amount), "mu")


def _at_delta(spec: Specification, share: Share, lower: float) -> str:
    if share.kind == "pure":
        return ""
    delta = float(spec.delta)
    claimed = epsilon_of(math.sqrt(share.amount), delta)
    return f"; at delta = {decimal(delta)} that is epsilon = {decimal(epsilon_of(lower, delta))} of {decimal(claimed)}"


def _tried(share: Share, count: int, runs: int) -> str:
    worlds = (
        "in each of which a fair coin decides whether one operation, the worst that a search found, took place"
        if share.kind == "pure"
        else "each looked at with and without one operation, the worst that a search found"
    )
    return (
        f"{runs:,} runs, {worlds}. No stream ran: noise was drawn node by node, under throw-away coins, from the laws "
        f"that the stream's mechanism gives its nodes. The attacker is given the {count:,} independent noises that "
        "hide it, at least what follows from the published numbers, and guesses by the likelihood ratio of the claimed "
        "law."
    )
