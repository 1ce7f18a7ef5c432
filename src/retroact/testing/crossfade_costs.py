"""What one record costs that is counted over an interval of releases, for crossfade noise over any horizon.

Any change moves all of its nodes. `worst_pair` lists them for the first releases alone; here are the costs over the
whole horizon, without such a list, and over short horizons those of all intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import numpy as np

from ..arrays import F64
from ..noise import Mechanism
from ..noise.faded import Faded
from ..statistics.restated import Lagged
from ..stream import Specification
from .histories import values_of
from .innovations import interval_costs
from .worst_pair import VALUES, WINDOWS, Candidate, Search, bare_process, counted_pair

# The most releases, how many without a horizon, and up to how many all intervals are examined.
MOST, ENDLESS, ALL = 1 << 17, 1 << 14, 1 << 7
# Beyond that ends are multiples of this part of the horizon: those of the worst intervals are 1/10 and 9/10.
PARTS = 10
SOME = 3


def crossfade_costs(spec: Specification, name: str, random: Random) -> Iterator[Candidate]:
    """
    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=4095)
    >>> best = max(crossfade_costs(spec, "n", Random(1)), key=lambda candidate: candidate.cost)
    >>> round(float(best.cost / spec.shares["n"].amount), 3), best.describe()
    (1.0, ['one record (True,) that is counted in releases 410 to 3,686, or none'])
    """
    search, live = Search(spec, name), spec.grants[name].live
    noise, last = search.mechanism, min(spec.releases(name) or ENDLESS, MOST)
    last = last if live is None else min(last, WINDOWS * live + 1)
    if isinstance(noise, Lagged) or not isinstance(bare_process(noise.process), Faded):
        return
    found = search.largest(values_of(spec.schema, random, VALUES))
    if found is None:
        return
    record, amounts = found
    intervals = _intervals(last, live, random)
    costs = sum(size * _costs(noise, coordinate, last, intervals) for coordinate, size in search.by_unit(amounts))
    for interval, cost in zip(intervals, np.asarray(costs).tolist(), strict=True):
        yield Candidate(Fraction(cost), list, lambda ends=interval: [counted_pair(record, *ends)])  # type: ignore[misc]


def _costs(noise: Mechanism, coordinate: int, last: int, intervals: list[tuple[int, int]]) -> F64:
    """In the laws of one coordinate."""
    unit = noise.units[coordinate]

    def variance(level: int) -> float:
        return noise.law(level, unit).variance / noise.refinement**2

    return interval_costs(noise.process, variance, last, intervals)


def _intervals(last: int, live: int | None, random: Random) -> list[tuple[int, int]]:
    """Of at most ``live`` releases."""
    powers = [(1 << bits) - 1 for bits in range(last.bit_length())]
    parts = [min(last, part * (last + 1) // PARTS) for part in range(PARTS + 1)]
    some = {*powers, *parts, *(random.randint(0, last) for _ in range(SOME))}
    ends = sorted(some) if last > ALL else range(last + 1)
    if live is None:
        return [(start, end) for start in ends for end in ends if start < end]
    return [
        (start, min(start + length, last)) for start in ends for length in (live, live // 2) if length and start < last
    ]
