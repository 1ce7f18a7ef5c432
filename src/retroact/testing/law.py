"""For algorithms that draw their own randomness: histories that unite give answers of the same law.

Both histories are run many times. In every round from the uniting one on, the two samples of answers are compared part
by part: numbers by the deciles of both samples together, everything else (⊥, texts) by value. Changes from the round
before are compared too, which shows noise that is not renewed.

**Error rate.** If both histories have the same law, then given all answers together, each way to divide them between
the two histories is equally likely. The cells depend only on all answers together, so the number in a cell from the
first history is hypergeometric: the test is exact (Fisher), with ties and for any number of runs. Cells, cumulated
cells and parts are combined by the union bound: a correct algorithm fails one comparison with probability at most
`ERROR`. `seen_from` says what difference this many runs can show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from ..arrays import F64
from ..checks import is_number
from ..coins import Key
from .algorithm import CheckFailedError, StreamAlgorithm
from .histories import Pair

ERROR = 1e-7
# The difference that is needed for that, in standard deviations.
DEVIATIONS = 5.3
BINS = 10
# Answers that occur less often, in both samples together, share a cell.
RARE = 10
MISSING = "missing"


def check_law(
    make: Callable[[Key], StreamAlgorithm], pairs: Iterable[Pair], *, runs: int = 200, keys: Iterable[int] = (1,)
) -> int:
    """Every answer from the uniting round on has the same law for both histories. Returns how many were compared."""
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
                    chances = [chance(*sides)]
                    if round > pair.unite and name in one[0][round - 2]:
                        before = [[run[round - 2][name].value for run in side] for side in (one, other)]
                        chances.append(chance(*map(_changes, before, sides)))
                    if min(chances) * len(chances) <= ERROR:
                        raise CheckFailedError(
                            f"law: histories unite at round {pair.unite}, the answers of {name} in round {round} have "
                            f"different laws:\n  {pair.one}\n  {pair.other}"
                        )
    return compared


def _many(make: Callable[[Key], StreamAlgorithm], seed: int, runs: int) -> Iterable[StreamAlgorithm]:
    return (make(Key.for_testing(seed)) for _ in range(runs))


def chance(one: Sequence[object], other: Sequence[object]) -> float:
    """If both samples have the same law, a difference like this has at most this probability.

    >>> chance([1, 2] * 50, [2, 1] * 50), chance([1] * 50, [2] * 50) < ERROR
    (1.0, True)
    >>> chance([{"mean": i / 7} for i in range(50)], [{"mean": i / 7 + 100} for i in range(50)]) < ERROR
    True
    """
    left, right = [dict(_parts(answer)) for answer in one], [dict(_parts(answer)) for answer in other]
    places = {place: None for answer in (*left, *right) for place in answer}
    found = [_chance([a.get(p, MISSING) for a in left], [a.get(p, MISSING) for a in right]) for p in places]
    return min(1.0, len(found) * min(found, default=1.0))


def _parts(answer: object, place: str = "") -> Iterator[tuple[str, object]]:
    """The numbers, texts and other leaves of an answer, each with its place."""
    if isinstance(answer, Mapping):
        for key, part in answer.items():
            yield from _parts(part, f"{place}.{key}")
    elif isinstance(answer, np.ndarray | list | tuple):
        yield f"{place}.len", len(answer)
        for number, part in enumerate(answer):
            yield from _parts(part, f"{place}.{number}")
    else:
        yield place, answer.item() if isinstance(answer, np.generic) else answer


def _changes(before: Sequence[object], after: Sequence[object]) -> list[object]:
    """How every number of an answer has changed from one round to the next."""
    out: list[object] = []
    for old, new in zip(before, after, strict=True):
        known = {place: part for place, part in _parts(old) if _number(part)}
        out.append({p: part - known[p] for p, part in _parts(new) if _number(part) and p in known})
    return out


def _chance(one: list[object], other: list[object]) -> float:
    left, right = _binned(one, other)
    cells = {key: (left[key], right[key]) for key in {**left, **right}}
    few = [cell for cell in cells.values() if sum(cell) < RARE]
    often = [cell for cell in cells.values() if sum(cell) >= RARE]
    if len(few) > 1 and not often:
        raise CheckFailedError("law: answers that are not numbers and hardly ever repeat cannot be compared")
    bins = np.array([cells[key] for key in sorted(key for key in cells if isinstance(key, int))]).reshape(-1, 2)
    below = np.cumsum(bins, axis=0)[:-1].tolist()
    tests = [*often, (sum(a for a, _ in few), sum(b for _, b in few)), *below]
    return min(1.0, len(tests) * min(_tail(a, a + b, len(one), len(other)) for a, b in tests))


def _tail(hits: int, drawn: int, n: int, m: int) -> float:
    """The probability that of ``drawn`` items among n + m, as few or as many are among the n: twice the smaller
    tail."""
    k = np.arange(max(0, drawn - m), min(n, drawn) + 1)
    masses = np.exp(_choices(n)[k] + _choices(m)[drawn - k] - _choices(n + m)[drawn])
    return min(1.0, 2 * float(min(masses[k <= hits].sum(), masses[k >= hits].sum())))


@lru_cache(maxsize=16)
def _choices(n: int) -> F64:
    """The logarithms of n choose 0 .. n."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    out: F64 = logs[-1] - logs - logs[::-1]
    return out


def seen_from(runs: int) -> float:
    """The difference in the probability of an answer that this many runs on each side show with probability 99 %:
    `DEVIATIONS` + 2.33 deviations of the difference of two frequencies.

    >>> round(seen_from(200), 2)
    0.38
    """
    return (DEVIATIONS + 2.33) * math.sqrt(0.5 / runs)


def _number(part: object) -> TypeGuard[float]:
    return is_number(part)


def _binned(one: list[object], other: list[object]) -> tuple[Counter[Hashable], Counter[Hashable]]:
    """Numbers by their common deciles if they have many values, everything else by its text."""
    values = np.array([float(part) for part in (*one, *other) if _number(part)])
    edges = np.quantile(values, np.arange(1, BINS) / BINS) if len(np.unique(values)) > BINS else None

    def cell(part: object) -> Hashable:
        if edges is None or not _number(part):
            return repr(part)
        return int(np.searchsorted(edges, float(part), side="right"))

    return Counter(map(cell, one)), Counter(map(cell, other))
