"""Many answers as columns of numbers and categories, by which runs can be distinguished.

Every number in the answers becomes a column, named by its place; where a place is not always there, whether it is
becomes a column too, and texts become categories. The low bits of floating-point numbers are separate columns: they
can give away what noise was added to (Mironov 2012, "On significance of the least significant bits for differential
privacy").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import F64, I64, Mask
from ..errors import InputError
from .answers import as_float, parts

# Floating-point numbers hold whole numbers exactly up to here; larger ones are cut into digits of this many bits.
EXACT = 1 << 53
DIGIT = 32
THERE = " is there"
# The most numbers, and categories, by which two worlds are distinguished.
WIDEST = 512
ZERO = 9999
"""The lowest bit of 0, which has none."""


@dataclass(frozen=True)
class Features:
    """Runs by features. ``series`` and ``rounds`` say where a number stands and in which round; ``floating``, which
    columns held binary floating-point numbers. ``categories`` are codes: presence (0 and 1) first, then texts."""

    numbers: F64
    series: tuple[str, ...]
    rounds: tuple[int, ...]
    floating: Mask
    labels: tuple[str, ...]
    categories: I64

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{series}@{round}" for series, round in zip(self.series, self.rounds, strict=True))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.NDArray[Any] | slice) -> Features:
        """Some of the runs."""
        return replace(self, numbers=self.numbers[rows], categories=self.categories[rows])

    def only(self, numbers: npt.NDArray[np.intp], categories: npt.NDArray[np.intp]) -> Features:
        """Some of the columns."""
        return Features(
            self.numbers[:, numbers],
            tuple(self.series[i] for i in numbers.tolist()),
            tuple(self.rounds[i] for i in numbers.tolist()),
            self.floating[numbers],
            tuple(self.labels[i] for i in categories.tolist()),
            self.categories[:, categories],
        )

    def patterns(self) -> I64:
        """All categories, and which places are there together, as one code."""
        there = np.array([name.endswith(THERE) for name in self.labels], dtype=bool)
        if not there.any():
            return self.categories
        mixed = np.zeros(len(self), dtype=np.uint64)
        for column in self.categories[:, there].T:
            mixed = mixed * np.uint64(6364136223846793005) + column.astype(np.uint64) + np.uint64(1)
        return np.concatenate([self.categories, mixed.view(np.int64)[:, None]], axis=1)

    def low_bits(self) -> I64:
        """Of every floating-point number: where its lowest set bit stands, how many zeros its fraction ends with, and
        (from the round before to this one) the lowest bit of the difference, which is at least 0 for a whole number.

        >>> columns([[b"0.5", b"3.5"], [b"0.1", b"0.25"]]).low_bits().tolist()
        [[-1, 52, -1, 50, 0], [-55, 1, -2, 52, -55]]
        """
        found: list[I64] = []
        before: dict[tuple[str, int], F64] = {}
        for index in np.flatnonzero(self.floating):
            column, series, round = self.numbers[:, index], self.series[index], self.rounds[index]
            found += _bits(column)
            before[series, round] = column
            if (series, round - 1) in before:
                found.append(np.minimum(_bits(column - before[series, round - 1])[0], 0))
        return np.stack(found, axis=1) if found else np.zeros((len(self), 0), dtype=np.int64)


def _bits(values: F64) -> tuple[I64, I64]:
    """The exponent of the lowest set bit, and the zeros at the end of the 52 bits of the fraction."""
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    digits = np.abs(fraction * 2.0**53).astype(np.int64)
    lowest_digit = digits & -digits
    zeros = np.where(digits > 0, np.frexp(lowest_digit.astype(np.float64))[1] - 1, 0).astype(np.int64)
    return np.where(digits > 0, exponent - 53 + zeros, ZERO).astype(np.int64), zeros


def _finite(values: F64) -> F64:
    """Infinities beyond all others; what is no number, as 0."""
    beyond = 2 * float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) + 1
    return np.nan_to_num(values, nan=0.0, posinf=beyond, neginf=-beyond)


def columns(answers: Sequence[Sequence[bytes]]) -> Features:
    """The answers of many runs (each a sequence of rounds) as columns; places that never vary are left out.

    >>> found = columns([[b'{"a": 1}', b"x"], [b'{"a": 2, "b": 7}', b"y"]])
    >>> found.names, found.numbers.tolist(), found.labels, found.categories.tolist()
    (('a@1',), [[1.0], [2.0]], ('b@1 is there', 'answer@2'), [[0, 0], [1, 1]])
    """
    if len({len(run) for run in answers}) > 1:
        raise InputError("expected as many rounds in every run", place="answers")
    runs, rounds = len(answers), len(answers[0]) if answers else 0
    table = _Table(runs)
    for round in range(1, rounds + 1):
        cells: dict[str, list[Any]] = {}
        for index, run in enumerate(answers):
            for place, part in parts(run[round - 1]).items():
                cells.setdefault(place, [None] * runs)[index] = part
        for place in sorted(cells):
            table.column(place, round, cells.pop(place))
    return table.columns()


def telling_most(both: Features, rows: npt.NDArray[Any], worlds: Mask) -> Features:
    """The numbers and categories in which two worlds differ most, in some of the runs."""
    if max(both.numbers.shape[1], both.categories.shape[1]) <= WIDEST:
        return both
    numbers, codes = both.numbers[rows], both.categories[rows].astype(np.float64)
    folded = np.abs(numbers - np.median(numbers, axis=0))
    apart = np.maximum(separations(numbers, worlds), separations(folded, worlds)), separations(codes, worlds)
    kept = (np.sort(np.argsort(-worth, kind="stable")[:WIDEST]) for worth in apart)
    return both.only(next(kept), next(kept))


def separations(table: F64, worlds: Mask) -> F64:
    """The Kolmogorov-Smirnov distance of two worlds, column by column.

    >>> separations(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([False, True])).tolist()
    [1.0, 0.0]
    """
    zero, one = np.sort(table[~worlds], axis=0), np.sort(table[worlds], axis=0)
    out = np.zeros(table.shape[1])
    for index in range(table.shape[1]):
        left, right = zero[:, index], one[:, index]
        both = np.concatenate([left, right])
        shares = (np.searchsorted(s, both, side="right") / len(s) for s in (left, right))
        out[index] = np.abs(next(shares) - next(shares)).max()
    return out


class _Table:
    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._numbers: list[tuple[F64, str, int, bool]] = []
        self._presence: list[tuple[str, I64]] = []
        self._texts: list[tuple[str, I64]] = []

    def column(self, place: str, round: int, cells: list[Any]) -> None:
        there = np.array([cell is not None for cell in cells])
        name = f"{place}@{round}"
        if not there.all():
            self._presence.append((name + THERE, there.astype(np.int64)))
        texts = [cell if isinstance(cell, str) else "" for cell in cells]
        vocabulary = {text: code for code, text in enumerate(sorted({*texts}))}
        if len(vocabulary) > 1:
            self._texts.append((name, np.array([vocabulary[text] for text in texts], dtype=np.int64)))
        mask = np.array([cell is not None and not isinstance(cell, str) for cell in cells])
        known = [cell for cell, given in zip(cells, mask.tolist(), strict=True) if given]
        if not known:
            return
        floating = any(isinstance(cell, float) for cell in known)
        for suffix, values in _exact_columns(known, floating):
            if (values == values[0]).all():
                continue
            whole = np.full(self._runs, values.mean())
            whole[mask] = values
            fractional = floating and bool((values % 1 != 0).any())
            self._numbers.append((whole, place + suffix, round, fractional))

    def columns(self) -> Features:
        values, series, rounds, floating = zip(*self._numbers, strict=True) if self._numbers else ((),) * 4
        categories = [*self._presence, *self._texts]
        codes = [code for _, code in categories]
        return Features(
            np.stack(values, axis=1) if values else np.zeros((self._runs, 0)),
            series,
            rounds,
            np.array(floating, dtype=bool),
            tuple(name for name, _ in categories),
            np.stack(codes, axis=1) if codes else np.zeros((self._runs, 0), dtype=np.int64),
        )


def _exact_columns(known: list[Any], floating: bool) -> list[tuple[str, F64]]:
    """The numbers as they are where binary floating point holds them; else their distances from the least, in units of
    the common denominator, cut in digits."""
    if floating:
        return [("", _finite(np.array([as_float(number) for number in known])))]
    unit = math.lcm(*{number.denominator for number in known})
    scaled = [int(number * unit) for number in known]
    if max(map(abs, scaled)) <= EXACT >> 2 and unit <= EXACT:  # so that no two of them round to one quotient
        return [("", np.array(scaled, dtype=np.float64) / unit)]
    least = min(scaled)
    distances = [number - least for number in scaled]
    if max(distances) <= EXACT:
        return [("", np.array(distances, dtype=np.float64))]
    high = np.array([as_float(Fraction(distance, unit)) for distance in distances])
    low = np.array([distance % (1 << DIGIT) for distance in distances], dtype=np.float64)
    return [("", high), (" low digits", low)]
