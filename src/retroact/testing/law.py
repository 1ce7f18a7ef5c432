"""For algorithms that draw their own randomness: histories that unite give answers of the same law.

Both histories are run many times. In every round from the uniting one on, the two samples of answers are compared part
by part (`features`): numbers by the deciles of both samples together, everything else by value. Changes from the round
before are compared too, which shows noise that is not renewed.

**Error rate.** If both histories have the same law, then given all answers together, each way to divide them between
the two histories is equally likely. The cells depend only on all answers together, so the number in a cell from the
first history is hypergeometric: the test is exact (Fisher), with ties and for any number of runs. Cells, cumulated
cells and parts are combined by the union bound: a correct algorithm fails on one pair with probability at most `ERROR`.
`seen_from` says what difference this many runs can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ..arrays import F64
from ..coins import Key
from .algorithm import Algorithm, CheckFailedError, run
from .features import columns
from .histories import Pair

ERROR = 1e-7
# The difference that is needed for that, in standard deviations.
DEVIATIONS = 5.3
BINS = 10
# Answers that occur less often, in both samples together, share a cell.
RARE = 10


def check_law(
    make: Callable[[Key], Algorithm], pairs: Iterable[Pair], *, runs: int = 200, keys: Iterable[int] = (1,)
) -> int:
    """Every answer from the uniting round on has the same law for both histories. Returns how many were compared."""
    compared = 0
    for pair, seed in product(pairs, keys):
        sides = [pair.one] * runs + [pair.other] * runs
        seen = parts_of([run(make, Key.for_testing(seed), side)[pair.unite - 1 :] for side in sides], pair.unite)
        chances = [part.chance() for part in seen]
        if None in chances:
            raise CheckFailedError("law: answers that hardly ever repeat cannot be compared: try more runs")
        for part, chance in zip(seen, chances, strict=True):
            compared += 1
            if chance is not None and chance * len(seen) <= ERROR:
                raise CheckFailedError(
                    f"law: histories unite at round {pair.unite}, {part.name} has different laws:\n"
                    f"  {pair.one}\n  {pair.other}"
                )
    return compared


class Part(NamedTuple):
    """One number or text of the answers: its name, and its values in runs of one history, then in as many of the
    other. The values of a text are codes."""

    name: str
    values: F64
    numeric: bool

    def chance(self) -> float | None:
        """If both samples have the same law, a difference like this has at most this probability; None for texts that
        hardly ever repeat.

        >>> Part("n", np.array([1.0, 2.0] * 50 + [2.0, 1.0] * 50), numeric=True).chance()
        1.0
        >>> Part("n", np.array([1.0] * 50 + [2.0] * 50), numeric=True).chance() < ERROR
        True
        """
        runs, known = len(self.values) // 2, np.unique(self.values)
        binned = self.numeric and len(known) > BINS
        if binned:
            known = np.unique(np.quantile(self.values, np.arange(1, BINS) / BINS))
        codes = np.searchsorted(known, self.values, side="right")
        cells = np.stack([np.bincount(half, minlength=len(known) + 1) for half in (codes[:runs], codes[runs:])], axis=1)
        often = cells.sum(axis=1) >= RARE
        if not often.any() and (cells.sum(axis=1) > 0).sum() > 1:
            return None
        below = np.cumsum(cells, axis=0)[:-1] if binned else cells[:0]
        tests = np.concatenate([cells[often], cells[~often].sum(axis=0)[None], below]).tolist()
        return min(1.0, len(tests) * min(_tail(a, a + b, runs, runs) for a, b in tests))


def parts_of(answers: Sequence[Sequence[bytes]], first: int) -> list[Part]:
    """Everything that is compared in the answers of many runs, whose first round is ``first``; parts that order the
    runs alike are kept once."""
    kept: dict[bytes, Part] = {}
    for part in _every_part(answers, first):
        kept.setdefault(np.unique(part.values, return_inverse=True)[1].tobytes(), part)
    return list(kept.values())


def _every_part(answers: Sequence[Sequence[bytes]], first: int) -> Iterator[Part]:
    """Every number, its change from the round before, every text."""
    found = columns(answers)
    places = {where: i for i, where in enumerate(zip(found.series, found.rounds, strict=True))}
    for (series, round), index in places.items():
        name = f"{series} in round {round + first - 1}"
        yield Part(name, found.numbers[:, index], numeric=True)
        if (series, round - 1) in places:
            change = found.numbers[:, index] - found.numbers[:, places[series, round - 1]]
            yield Part(f"the change of {name}", change, numeric=True)
    for index, label in enumerate(found.labels):
        name = f"{label} (rounds counted from {first})"
        yield Part(name, found.categories[:, index].astype(np.float64), numeric=False)


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
