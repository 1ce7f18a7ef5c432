"""Noise that is changed on its way to a release: for planted bugs, and to keep noisy totals equal for other records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..noise import Mechanism
from ..statistics.answer import Published
from ..statistics.bound import At, Bound
from ..statistics.grant import Grant
from ..statistics.restated import Lagged
from ..statistics.statistic import Statistic
from ..statistics.wrapper import WrapperBound
from ..stream import Specification
from .definitions import Definition, Totals


class DrawnNoise(NamedTuple):
    """Integers that ``noise`` drew for one view of a release, over a denominator: coordinate by coordinate, or for each
    of these cells and places."""

    numbers: Any
    noise: Mechanism
    view: int
    release: int
    denominator: int
    cells: Any = None
    places: Sequence[int] = ()


Change = Callable[[DrawnNoise], Any]


def altered(noise: Mechanism, change: Change, *, view: int = 0) -> Mechanism:
    """
    >>> from retroact.noise import Fresh
    >>> from retroact.privacy import Share
    >>> from retroact.coins import Coins
    >>> from fractions import Fraction
    >>> one, coins = Fraction(1), Coins(bytes(32))
    >>> noise = Mechanism(Fresh(1), Share("pure", one), units=(1,), norm1=one, norm2_squared=one).under(coins)
    >>> altered(noise, lambda drawn: drawn.numbers * 0).draw(5)[0].tolist()
    [0]
    """
    out = copy(noise)
    if isinstance(noise, Lagged):
        assert isinstance(out, Lagged)
        out.parts = [altered(part, change, view=number) for number, part in enumerate(noise.parts)]
        return out

    def draw(round: int) -> tuple[Any, int]:
        drawn, denominator = noise.draw(round)
        return change(DrawnNoise(drawn, noise, view, round, denominator)), denominator

    def sample(round: int, cells: Any, chosen: Sequence[int] | None = None) -> tuple[Any, int]:
        drawn, denominator = noise.sample(round, cells, chosen)
        places = range(noise.size) if chosen is None else chosen
        return change(DrawnNoise(drawn, noise, view, round, denominator, cells, places)), denominator

    out.draw, out.sample = draw, sample  # type: ignore[method-assign]
    return out


def publishing(bound: Bound, change: Change) -> Bound:
    """The same statistic, publishing with changed noise."""
    return _Altered(bound.statistic, bound, bound.grant, change)


class _Altered(WrapperBound):
    def __init__(self, statistic: Statistic, of: Bound, grant: Grant, change: Change) -> None:
        super().__init__(statistic, of, grant)
        self._change = change

    def release(self, totals: Sequence[Any], noise: Mechanism, at: At) -> Published:
        return self.of.release(totals, altered(noise, self._change), at)


def understated(spec: Specification, name: str, part: Fraction) -> Specification:
    """The same stream, with the noise of one statistic calibrated as if a record moved only this part of what it
    does."""
    planted, bound = copy(spec), copy(spec.bounds[name])
    bound.noise = spec.bounds[name].noise.understated(part)
    if isinstance(bound.noise, Lagged):
        bound.noise.parts = [own.understated(part) for own in bound.noise.parts]
    planted.bounds = {**spec.bounds, name: bound}
    return planted


def shifted(definition: Definition, noise: Mechanism, moved: Totals) -> Mechanism:
    """The same noise, with these amounts added to its coordinates."""

    def change(drawn: DrawnNoise) -> Any:
        mine = [(where, amount) for where, amount in moved.items() if where.view == drawn.view]
        if drawn.cells is None:
            listed = {where.place: amount for where, amount in mine if where.name is None}
            more = [listed.get(place, 0) for place in range(len(drawn.numbers))]
        else:
            named = [(where, amount) for where, amount in mine if where.name is not None]
            words = definition.cells([where.name for where, _ in named], drawn.noise.coins).tolist()
            by_cell = {(*cell, where.place): amount for cell, (where, amount) in zip(words, named, strict=True)}
            more = [by_cell.get((*cell, place), 0) for cell in drawn.cells.tolist() for place in drawn.places]
        amounts = np.array([int(amount * drawn.denominator) for amount in more], dtype=object)
        return _sum(drawn.numbers, amounts.reshape(drawn.numbers.shape))

    return altered(noise, change)


def _sum(drawn: Any, more: Any) -> Any:
    """In 64 bits if the noise is and the sum fits."""
    total = drawn.astype(object) + more
    small = drawn.dtype != object and all(abs(number) < 1 << 61 for number in total.ravel().tolist())
    return total.astype(np.int64) if small else total
