"""The strongest attack on known noise: the likelihood ratio of the claimed law, on noise from the laws of the stream.

The attacker is given every noise that hides the worst change a search found (`nodes`), which is at least what follows
from the published numbers, and must tell whether the change is there. No test of a noise has more power against the
claimed law, so on a correct mechanism the proven loss comes close to the claim, and a scale that is a little too small
shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..arrays import F64
from ..coins import Coins, integer_cells
from ..errors import VerificationError
from ..privacy import Share, epsilon_of
from ..stream import Specification
from ..testing.altered import understated
from ..testing.check import Check, Finding
from ..testing.seeds import Seeds
from ..testing.sensitivity import NO_RECORD, UNHIDDEN, obstacle
from ..testing.worst_pair import Candidate, worst
from .bounds import (
    claimed_tradeoff,
    coupled_bound,
    coupled_pooled_bound,
    measured_tradeoff,
    mu_bound,
    pooled_bound,
)
from .nodes import Node, idle_inside, nodes, readable
from .result import Result, curve, decimal, report
from .target import Target

FACTORS = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0)
PLANTED = 2
# Noises drawn for one simulation at most: many moved noises mean fewer runs. And how many are drawn at once.
DRAWS, CHUNK = 20_000_000, 1_000_000
CURVE = 60
# Of recovered noises and of scores, beside their steps.
ROUNDING = 1e-6

Bits = npt.NDArray[np.int8]
Rows = Iterator[tuple[slice, Callable[[Bits], F64]]]
"""Some noises at a time: which, and what they read, runs along the second axis, in the world of each bit."""


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
class Outcome:
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
        return [idle_inside("likelihood", "an algorithm that is not a stream does not say what its noise is")]
    return [
        report(Likelihood(name, runs, confidence, pairs), spec, seeds.branch(name), part="privacy",
               test=f"likelihood: {name}")
        for name in spec.statistics
    ]  # fmt: skip


@dataclass(frozen=True)
class Likelihood(Check[Specification]):
    """Of one statistic, against its share of the budget."""

    name: str
    runs: int
    confidence: float
    pairs: int

    @property
    def question(self) -> str:  # type: ignore[override]
        return (
            f"Can somebody who is given all of the noise that hides one record in {self.name!r}, and knows everything "
            "else, tell whether the record is there more often than the claim allows?"
        )

    def not_applicable(self, target: Specification) -> str | None:
        return obstacle(target, self.name)

    def planted(self, target: Specification) -> list[tuple[str, Specification]]:
        bug = f"noise that was calibrated as if a record moved 1/{PLANTED} of what it does"
        return [(bug, understated(target, self.name, Fraction(1, PLANTED)))]

    def run(self, target: Specification, seeds: Seeds) -> Finding:
        name, confidence = self.name, self.confidence
        try:
            found = worst(target, name, seeds.branch("pairs").random(), pairs=self.pairs)
        except VerificationError as error:
            lines = str(error).splitlines()
            return Finding(verdict="violation", found=UNHIDDEN, counterexample=lambda: lines)
        if not found.cost:
            return Finding(verdict="not applicable", found=NO_RECORD)
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
            tried=_tried(target, name, found, count, runs),
            runs=runs,
            verdict="violation" if lower > claim else "passed",
            found=f"The right guesses prove a loss of at least {letter} = {decimal(lower)} (with {confidence:.2%} "
            f"confidence); claimed is {decimal(claim)}{_beside(target, share, lower)}.",
            detectable=_detectable(moves, runs, confidence, claim, letter),
            measured={
                f"{letter} claimed": decimal(claim),
                f"{letter} at least": decimal(lower),
                "share of the claim that was proven": decimal(lower / claim),
                **{f"by {method}": decimal(bound) for method, bound in real.bounds.items()},
                "noises that move": str(count),
                "cost of the pair, of the share": decimal(float(found.cost / share.amount)),
            },
            counterexample=found.told,
            curves={
                "claimed": curve(claimed_tradeoff(share.measure, CURVE)),
                "measured": curve(measured_tradeoff(*real.scores, CURVE)),
            },
        )


def most(kind: str, runs: int, count: int, confidence: float) -> float:
    """What so many runs prove if every guess is right."""
    if kind != "pure":
        return coupled_bound(runs, runs, confidence)
    return pooled_bound(runs * count, runs * count, count, (1 + confidence) / 2)


def simulate(moves: Moves, moved: list[Node], seeds: Seeds, runs: int, confidence: float) -> Outcome:
    """Runs with noise from the laws of the nodes."""
    return outcome(moves, _drawn(moved, seeds.coins(), runs), runs, seeds.branch("bits"), confidence, coupled=True)


def outcome(moves: Moves, rows: Rows, runs: int, seeds: Seeds, confidence: float, *, coupled: bool = False) -> Outcome:
    """A fair coin for each run. Pure noises also vote one by one, with a fair coin for each vote. ``coupled``: both
    worlds have the same noise, and what it would have been in the other is known. The confidence is divided."""
    random = seeds.numpy()
    world: Bits = random.integers(0, 2, runs, dtype=np.int8)
    scores, votes, between = np.zeros(runs), [], 0
    pure = moves.kind == "pure"
    for part, read in rows:
        shifts, sizes = moves.shifts[part, None], moves.sizes[part, None]
        seen = read(np.broadcast_to(world, (len(shifts), runs)))
        if not pure:
            scores += ((seen - shifts / 2) * (shifts / sizes)).sum(axis=0)
            continue
        scores += ((np.abs(seen) - np.abs(seen - shifts)) / sizes).sum(axis=0)
        if coupled:
            absent, middle = seen - shifts * world, np.floor(shifts / 2)
            between += int(((absent <= middle) & (absent + shifts > middle)).sum())
        bits: Bits = random.integers(0, 2, (len(shifts), runs), dtype=np.int8)
        seen = read(bits)
        up, down = seen >= shifts * (1 - ROUNDING), seen <= shifts * ROUNDING
        votes += [right[sure] for right, sure in zip(up == (bits == 1), up | down, strict=True)]
    both = scores[world == 0], scores[world == 1]
    if not pure:
        whole = float(moves.losses.sum())
        absent = scores - world * whole
        right = int(((scores > 0) == (world == 1)).sum())
        # A little above 0: scores lie on a lattice, and rounding must not count both of its points at the ends.
        limit = ROUNDING * whole
        crossed = int(((absent <= limit) & (absent + whole > limit)).sum())
        bound = coupled_bound(crossed, runs, confidence) if coupled else mu_bound(right, runs, confidence)
        return Outcome({"all noises together": bound}, both)
    count = len(moves.shifts)
    each = (1 + confidence) / 2 if coupled else confidence
    # Equally many votes of each noise: the first ones.
    fewest = min(len(vote) for vote in votes)
    correct = sum(int(vote[:fewest].sum()) for vote in votes)
    bounds = {"each noise for itself": pooled_bound(correct, fewest * count, count, each) if fewest else 0.0}
    if coupled:
        bounds["each noise for itself, in both worlds"] = coupled_pooled_bound(between, runs * count, count, each)
    return Outcome(bounds, both)


def _drawn(moved: list[Node], coins: Coins, runs: int) -> Rows:
    """Noise by the laws of the stream, by name: some nodes at a time."""
    cells, start = integer_cells(runs), 0
    step = max(1, CHUNK // runs)
    for number, node in enumerate(moved):
        own = coins.branch("node", number)
        for first in range(0, node.count, step):
            names = np.arange(first, min(first + step, node.count))
            noise = node.law.sample(own.words(np.zeros_like(names), names, cells)) / node.refinement
            part = slice(start + first, start + first + len(names))
            yield part, lambda bits, noise=noise, shift=float(node.shift): noise + shift * bits  # type: ignore[misc]
        start += node.count


def _detectable(moves: Moves, runs: int, confidence: float, claim: float, letter: str) -> str:
    """By the number of right guesses to expect when the noise is so many times smaller than it should be."""
    whole, caught = float(moves.losses.sum()), None
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
            caught = factor
            break
    if caught is None:
        return f"No loss up to {FACTORS[-1]:g} times the claim would be proven by {runs:,} runs in half of all audits."
    return (
        f"A loss of {letter} = {decimal(caught * claim)}, {caught:g} times the claim, would be proven in at least half "
        f"of all audits with {runs:,} runs (computed for factors {', '.join(f'{f:g}' for f in FACTORS)})."
    )


def _claim(share: Share) -> tuple[float, str]:
    return (float(share.amount), "epsilon") if share.kind == "pure" else (math.sqrt(share.amount), "mu")


def _beside(spec: Specification, share: Share, lower: float) -> str:
    if share.kind == "pure":
        return ""
    delta = float(spec.delta)
    claimed = epsilon_of(math.sqrt(share.amount), delta)
    return f"; at delta = {decimal(delta)} that is epsilon = {decimal(epsilon_of(lower, delta))} of {decimal(claimed)}"


def _tried(spec: Specification, name: str, found: Candidate, count: int, runs: int) -> str:
    known = {
        True: "all of which can be computed from the published numbers",
        False: "which is more than is published",
        None: "which may be more than can be computed from the published numbers",
    }[readable(spec, name, found)]
    worlds = (
        "in each of which a fair coin decides whether one operation, the worst that a search found, took place"
        if spec.shares[name].kind == "pure"
        else "each looked at with and without one operation, the worst that a search found"
    )
    return (
        f"{runs:,} runs, {worlds}. No stream ran: noise was drawn node by node, under throw-away coins, from the laws "
        f"that the stream's mechanism gives its nodes. The attacker is given the {count:,} "
        f"independent noises that hide it, {known}, and guesses by the likelihood ratio of the claimed law."
    )
