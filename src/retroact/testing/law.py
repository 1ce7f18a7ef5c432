"""For algorithms with randomness of their own: histories that unite give answers of the same law.

They are run many times on both histories. In every round from the uniting one on, the two samples of answers are
compared by a chi-square test over their values, numbers being binned by their common deciles. A correct algorithm fails
one comparison with probability about 1e-7. What a test of so many runs can see, and what not, is in `seen_from`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from ..coins import Key
from .algorithm import CheckFailedError, StreamAlgorithm
from .histories import Pair

LIMIT = 5.3
BINS = 10


def check_law(
    make: Callable[[Key], StreamAlgorithm], pairs: Iterable[Pair], *, runs: int = 200, keys: Iterable[int] = (1,)
) -> int:
    """The law of every answer from the uniting round on is the same for both histories. Returns how many compared."""
    compared = 0
    for pair in pairs:
        for seed in keys:
            one, other = (
                [[dict(algorithm.release(updates)) for updates in history] for algorithm in _many(make, seed, runs)]
                for history in (pair.one, pair.other)
            )
            for round in range(pair.unite, len(pair.one) + 1):
                for name in one[0][round - 1]:
                    sides = [[run[round - 1][name].value for run in side] for side in (one, other)]
                    compared += 1
                    if difference(*sides) > LIMIT:
                        raise CheckFailedError(
                            f"law: histories unite at round {pair.unite}, the answers of {name} in round {round} have "
                            f"another law:\n  {pair.one}\n  {pair.other}"
                        )
    return compared


def _many(make: Callable[[Key], StreamAlgorithm], seed: int, runs: int) -> Iterable[StreamAlgorithm]:
    return (make(Key.for_testing(seed)) for _ in range(runs))


def difference(one: Sequence[object], other: Sequence[object]) -> float:
    """How many standard deviations two samples of answers are apart: a normal deviate.

    >>> difference([1, 2] * 50, [2, 1] * 50) < 1, difference([1] * 50, [2] * 50) > LIMIT
    (True, True)
    """
    left, right = _binned(list(one), list(other))
    cells = [(left[key], right[key]) for key in {**left, **right}]
    # Rare answers go together, so that no cell expects fewer than five.
    few = [cell for cell in cells if sum(cell) < 10]
    cells = [cell for cell in cells if sum(cell) >= 10]
    if few:
        cells.append((sum(a for a, _ in few), sum(b for _, b in few)))
    freedom = len(cells) - 1
    if freedom < 1:
        return 0.0
    n, m = len(one), len(other)
    chi = sum((a * math.sqrt(m / n) - b * math.sqrt(n / m)) ** 2 / (a + b) for a, b in cells if a + b)
    return float((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def seen_from(runs: int) -> float:
    """The difference in the probability of an answer that so many runs on each side are sure to see (99 %): two
    binomial deviations of at most 1/2 each, `LIMIT` and 2.33 of them.

    >>> round(seen_from(200), 2)
    0.38
    """
    return (LIMIT + 2.33) * math.sqrt(0.5 / runs)


def _binned(one: list[object], other: list[object]) -> tuple[Counter[Hashable], Counter[Hashable]]:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in one + other)
    if numbers and len({*one, *other}) > BINS:
        values = np.array([*one, *other], dtype=np.float64)
        edges = np.quantile(values, np.arange(1, BINS) / BINS)
        bins = np.searchsorted(edges, values, side="right").tolist()
        return Counter(bins[: len(one)]), Counter(bins[len(one) :])
    return Counter(map(repr, one)), Counter(map(repr, other))
