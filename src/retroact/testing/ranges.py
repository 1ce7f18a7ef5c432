"""Answers that are drawn from the counts instead of being made of noise (`ExponentialBound`): what one record can do to
their laws, exactly, and whether a release is what its definition says."""

from __future__ import annotations

from bisect import bisect_right
from copy import copy
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from ..arrays import U64
from ..coins import Coins, Key
from ..coins.coins import RandomWords, name_bytes
from ..errors import VerificationError
from ..oneshot.exponential import Ranked, Steps, choose, quantile_law, quantile_point, step_law
from ..privacy.range_share import largest_range
from ..statistics.bound import At, Bound
from ..statistics.exponential_quantiles import ExponentialBound
from ..statistics.tally import Tally
from ..statistics.wrapper import core
from ..stream import Specification
from .check import Check, Finding
from .seeds import Seeds

# How many records there are where releases are compared with their definition.
SIZES = (0, 1, 10, 300, 100_000)
# Digits of the logarithms of exact ratios.
DIGITS = Context(prec=40)


def ranges_in(bound: Bound) -> ExponentialBound | None:
    """The exponential mechanism inside a bound, if any."""
    inner = core(bound)
    return inner if isinstance(inner, ExponentialBound) else None


@dataclass(frozen=True)
class Ranges(Check[Specification]):
    name: str
    pairs: int
    question = "Does one record change the laws behind {self.name!r} by no more than is paid for?"

    def planted(self, target: Specification) -> list[list[tuple[str, Specification]]]:
        bound = ranges_in(target.bounds[self.name])
        assert bound is not None
        probabilities, paid = len(bound.asked), bound.mechanisms
        fewer = paid * (probabilities - 1) // probabilities if probabilities > 1 else paid // 2
        what = "a probability that is not charged" if probabilities > 1 else "an interval that is not charged"
        grant = bound.grant
        return [
            [("mechanisms made for half of what a record does", self._spending(target, 2 * bound.range))],
            [(what, self._spending(target, largest_range(grant.share, grant.spare, max(1, fewer))[0]))],
        ]

    def _spending(self, target: Specification, length: Fraction) -> Specification:
        spec, inner = copy(target), copy(ranges_in(target.bounds[self.name]))
        assert inner is not None
        inner.range = length
        spec.bounds = {**target.bounds, self.name: inner}
        return spec

    def run(self, target: Specification, seeds: Seeds) -> Finding:
        bound, random = ranges_in(target.bounds[self.name]), seeds.random()
        assert bound is not None
        reach = target.terms(self.name).reach
        assert reach is not None
        seen = mechanisms_of(bound) * reach
        allowed, spent = largest_range(bound.grant.share, bound.grant.spare, seen)
        largest, shown = Fraction(0), list[str]()
        for _ in range(self.pairs):
            counts, value = _counts(bound, random)
            for what, one, other in laws(bound, counts, value):
                found = range_of(one, other)
                if found > largest:
                    largest, shown = found, [f"{what}, counts {counts}, one more record of value {value}"]
        bad = largest > allowed or spent > bound.spends
        return Finding(
            tried=f"{self.pairs:,} tables of counts with one record more; for each, the exact laws of all mechanisms "
            "of a release, with no sampling.",
            runs=self.pairs,
            verdict="violation" if bad else "passed",
            found=f"One record is seen by {seen:,} mechanisms, which may each have a range of {float(allowed):.6g}; "
            f"the largest is {float(largest):.6g}.",
            detectable="Any range above what may be spent is shown with certainty, if it happens in these tables.",
            measured={"mechanisms": str(seen), "largest range": f"{float(largest):.6g}"},
            counterexample=lambda: shown,
        )


class _Counted(Coins):
    """Coins that note which of their branches are used."""

    __slots__ = ("_used",)

    def __init__(self, secret: bytes, used: set[bytes]) -> None:
        super().__init__(secret)
        self._used = used

    def branch(self, *name: str | int | bytes) -> Coins:
        return _Counted(self._derive(b"branch", name_bytes(*name)), self._used)

    def words(self, levels: Any, indices: Any, cells: U64 | None = None) -> RandomWords:
        self._used.add(self._secret)
        return super().words(levels, indices, cells)


def mechanisms_of(bound: ExponentialBound) -> int:
    """How many mechanisms of a release look at one record: those that draw coins, in one group."""
    used: set[bytes] = set()
    bound.release([_tally(bound, {0: 1})], bound.noise.under(_Counted(bytes(32), used)), At(1, 1))
    return len(used) // len(bound.groups)


def laws(bound: ExponentialBound, counts: dict[int, int], value: int) -> list[tuple[str, Steps, Steps]]:
    """The laws of all mechanisms without and with one more record, and what they draw."""
    tallies = [_plain_tally(table) for table in (counts, {**counts, value: counts.get(value, 0) + 1})]
    found = []
    for p in bound.asked:
        ranked = [Ranked(tally.words[0], tally.below) for tally in tallies]
        one, other = (quantile_law(values, 0, bound.last, p, bound.range) for values in ranked)
        found.append((f"the value at {p}", one, other))
        for point in sorted({0, value, bound.last // 2}):
            unit, size = bound.range / bound.moved(p), len(bound.reaches)
            one, other = (step_law(bound.reach_pieces(tally, p, point), unit, size) for tally in tallies)
            found.append((f"the reach at {p} from {point}", one, other))
    return found


def range_of(one: Steps, other: Steps) -> Fraction:
    """The length of the interval of the logarithm of the ratio of two laws, to 40 digits."""
    pieces = [piece for law in (one, other) for piece in zip(law.starts, law.lengths, strict=True)]
    places = sorted({start for start, length in pieces if length})
    # The totals of the weights are the same for all outcomes.
    ratios = [Fraction(_weight(one, place), _weight(other, place)) for place in places]
    widest = max(ratios) / min(ratios)
    return Fraction(DIGITS.ln(DIGITS.divide(Decimal(widest.numerator), Decimal(widest.denominator))))


def _weight(law: Steps, place: int) -> int:
    return law.weights[bisect_right(law.starts, place) - 1]


def _counts(bound: ExponentialBound, random: Random) -> tuple[dict[int, int], int]:
    """Few values, some of them shared by many records, and one more value."""
    span = random.choice([bound.last, min(bound.last, 12), min(bound.last, 300)])
    values = [random.randint(0, span) for _ in range(random.randint(0, 6))]
    counts = {value: random.choice([1, 1, 2, 30]) for value in values}
    return counts, random.choice([*values, 0, bound.last, random.randint(0, span)])


def _plain_tally(counts: dict[int, int]) -> Tally:
    words = np.array(list(counts), dtype=np.uint64)
    return Tally.of((words,), np.array(list(counts.values()), dtype=np.int64).reshape(-1, 1))


def _tally(bound: ExponentialBound, counts: dict[int, int]) -> Tally:
    """The same counts in the first group, if there are any groups."""
    plain = _plain_tally(counts)
    group = (np.zeros(len(plain), dtype=np.uint64),) if bound.groups.by else ()
    return Tally((*group, *plain.words), plain.amounts)


# What is published ---------------------------------------------------------------------------------------------------


def check_ranges(spec: Specification, name: str, random: Random) -> int:
    """Releases are what the definition says, from nothing to many records; returns how many were compared."""
    bound, compared = ranges_in(spec.bounds[name]), 0
    if bound is None:
        return 0  # `check_sample` tests what samples draw
    for size in SIZES:
        draws = np.random.default_rng(random.getrandbits(60)).random(size)
        values = sorted((draws * min(bound.last, 10**6)).astype(np.int64).tolist())
        counts = dict(zip(*np.unique(np.array(values, dtype=np.int64), return_counts=True), strict=True))
        plain = {int(value): int(count) for value, count in counts.items()}
        noise = spec.mechanism(name, Key.for_testing(random.getrandbits(30)).coins("stream"))
        got = spec.bounds[name].release([_tally(bound, plain)], noise, At(1, spec.statistics[name].every))
        own = noise.coins.branch("exponential", 1)
        wanted = [_again(bound, values if not group else [], own.branch(group)) for group in range(len(bound.groups))]
        if (got.numerators, got.denominator) != (tuple(number for one in wanted for number in one), 1):
            raise VerificationError(f"{name}: a release of {size:,} records is not what its definition says")
        compared += len(got.numerators)
    return compared


def _again(bound: ExponentialBound, values: list[int], coins: Coins) -> list[int]:
    """The value and both ends of every probability, by the definition."""
    array, n, found = np.array(values, dtype=np.int64), len(values), []
    for p in bound.asked:
        own, (a, c) = coins.branch(str(p)), p.as_integer_ratio()
        point = quantile_point(values, 0, bound.last, p, bound.range, own.branch("value"))
        pieces, before = [], None
        for reach in bound.reaches:
            low, high = point - reach, point + reach
            terms = [a * n - c * int(np.searchsorted(array, low))] if low > 0 else []
            terms += [c * int(np.searchsorted(array, high, side="right")) - a * n] if high < bound.last else []
            parts = [bound.sought(p) - min(terms)] if terms else []
            parts += [] if before is None else [before - bound.sought(p)]
            pieces.append((reach, 1, max(parts, default=0)))
            if not terms:
                break
            before = min(terms)
        reach = choose(pieces, bound.range / bound.moved(p), own.branch("reach"), size=len(bound.reaches))
        found.append((point, max(0, point - reach), min(bound.last, point + reach)))
    rising = iter(sorted(point for point, _, _ in found))
    shown = {}
    for place in sorted(range(len(found)), key=bound.asked.__getitem__):
        value, (_, low, high) = next(rising), found[place]
        shown[place] = [value, min(low, value), max(high, value)]
    return [number for place in range(len(found)) for number in shown[place]]
