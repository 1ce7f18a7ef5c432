"""Many answers as columns of numbers and categories, by which runs can be told apart.

Every number in the answers becomes a column by its place; where a place is not always there, whether it is becomes a
column too, and texts become categories. The low bits of floating-point numbers are looked at apart: they can give away
what noise was added to (Mironov 2012, "On significance of the least significant bits for differential privacy").
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
from .answers import WHOLE, as_float, parts

# Whole numbers up to here are exact as binary floating-point numbers; larger ones are cut in digits of so many bits.
EXACT = 1 << 53
DIGIT = 32
THERE = " is there"
# Numbers and categories that two worlds are told apart by, at most.
WIDEST = 512
ZERO = 9999
"""The lowest bit of 0, which has none."""


@dataclass(frozen=True)
class Columns:
    """Runs by features. ``series`` and ``rounds`` say where a number stands and in which round; ``floating``, which
    columns held binary floating-point numbers. ``categories`` are codes: presence (0 and 1) first, then texts."""

    names: tuple[str, ...]
    numbers: F64
    series: tuple[str, ...]
    rounds: tuple[int, ...]
    floating: Mask
    labels: tuple[str, ...]
    categories: I64

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.NDArray[Any] | slice) -> Columns:
        """Some of the runs."""
        return replace(self, numbers=self.numbers[rows], categories=self.categories[rows])

    def only(self, numbers: npt.NDArray[np.intp], categories: npt.NDArray[np.intp]) -> Columns:
        """Some of the columns."""
        places = [(self.names[i], self.series[i], self.rounds[i]) for i in numbers.tolist()]
        names, series, rounds = zip(*places, strict=True) if places else ((),) * 3
        labels = tuple(self.labels[i] for i in categories.tolist())
        floating, codes = self.floating[numbers], self.categories[:, categories]
        return Columns(names, self.numbers[:, numbers], series, rounds, floating, labels, codes)

    def patterns(self) -> I64:
        """All categories, and which places are there together, as one code."""
        there = np.array([name.endswith(THERE) for name in self.labels], dtype=bool)
        if not there.any():
            return self.categories
        mixed = np.zeros(len(self), dtype=np.uint64)
        for column in self.categories[:, there].T:
            mixed = mixed * np.uint64(6364136223846793005) + column.astype(np.uint64) + np.uint64(1)
        return np.concatenate([self.categories, mixed.view(np.int64)[:, None]], axis=1)

    @classmethod
    def of(cls, values: npt.ArrayLike) -> Columns:
        """Runs by rounds of one number each.

        >>> Columns.of([[1, 2], [3, 4]]).names
        ('answer@1', 'answer@2')
        """
        given = np.asarray(values)
        table = given[:, None] if given.ndim == 1 else given
        if table.ndim != 2 or table.dtype.kind not in "iufb":
            raise InputError(f"expected runs by features of numbers, got {table.dtype} {given.shape}", place="values")
        large = table.dtype.kind in "iu" and table.size and max(abs(int(table.min())), abs(int(table.max()))) > EXACT
        if large:
            return columns([[str(x).encode() for x in row] for row in table.tolist()])
        if table.dtype.kind == "f" and not np.isfinite(table).all():
            table = np.stack([_finite(column) for column in table.T], axis=1)
        count = table.shape[1]
        whole = table.dtype.kind != "f"
        return cls(
            tuple(f"{WHOLE}@{i}" for i in range(1, count + 1)),
            np.ascontiguousarray(table, dtype=np.float64),
            (WHOLE,) * count,
            tuple(range(1, count + 1)),
            np.array([not whole and bool((column % 1 != 0).any()) for column in table.T], dtype=bool),
            (),
            np.zeros((len(table), 0), dtype=np.int64),
        )

    def join(self, other: Columns) -> Columns:
        """The runs of both, which must have the same columns."""
        if (self.names, self.labels) != (other.names, other.labels):
            raise InputError("expected two worlds with the same columns: make them of all answers together")
        return replace(
            self,
            numbers=np.concatenate([self.numbers, other.numbers]),
            floating=self.floating | other.floating,
            categories=np.concatenate([self.categories, other.categories]),
        )

    def low_bits(self) -> tuple[tuple[str, ...], I64]:
        """Of every floating-point number: where its lowest set bit stands, how many zeros its fraction ends with, and
        (from the round before to this one) the lowest bit of the difference, which is at least 0 for a whole number.

        >>> names, bits = Columns.of([[0.5, 3.5], [0.1, 0.25]]).low_bits()
        >>> names[2:]
        ('lowest bit of answer@2', 'zeros of answer@2', 'step to answer@2')
        >>> bits.tolist()
        [[-1, 52, -1, 50, 0], [-55, 1, -2, 52, -55]]
        """
        names: list[str] = []
        found: list[I64] = []
        before: dict[tuple[str, int], int] = {}
        for index in np.flatnonzero(self.floating):
            column, name = self.numbers[:, index], self.names[index]
            lowest, zeros = _bits(column)
            names += [f"lowest bit of {name}", f"zeros of {name}"]
            found += [lowest, zeros]
            series, round = self.series[index], self.rounds[index]
            before[series, round] = int(index)
            if (series, round - 1) in before:
                names.append(f"step to {name}")
                step = _bits(column - self.numbers[:, before[series, round - 1]])[0]
                found.append(np.minimum(step, 0))
        table = np.stack(found, axis=1) if found else np.zeros((len(self), 0), dtype=np.int64)
        return tuple(names), table


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


def columns(answers: Sequence[Sequence[bytes]]) -> Columns:
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


def telling_most(both: Columns, rows: npt.NDArray[Any], worlds: Mask) -> Columns:
    """At most so many numbers and categories: those in which two worlds differ most, in some of the runs."""
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
        self._numbers: list[tuple[str, str, int, F64, bool]] = []
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
            self._numbers.append((name + suffix, place + suffix, round, whole, fractional))

    def columns(self) -> Columns:
        names, series, rounds, values, floating = zip(*self._numbers, strict=True) if self._numbers else ((),) * 5
        categories = [*self._presence, *self._texts]
        return Columns(
            names,
            np.stack(values, axis=1) if values else np.zeros((self._runs, 0)),
            series,
            rounds,
            np.array(floating, dtype=bool),
            tuple(name for name, _ in categories),
            np.stack([code for _, code in categories], axis=1)
            if categories
            else np.zeros((self._runs, 0), dtype=np.int64),
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
