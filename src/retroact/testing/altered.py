"""Noise that is changed on its way to a release: for planted bugs, and for other records with the same noisy totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from fractions import Fraction
from typing import Any

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

Change = Callable[[Any, int], Any]
"""Drawn integers (a list, or cells by places) and the release that they are for, to others."""


def altered(noise: Mechanism, change: Change) -> Mechanism:
    """
    >>> from retroact.noise import Fresh
    >>> from retroact.privacy import Share
    >>> from retroact.coins import Coins
    >>> from fractions import Fraction
    >>> one, coins = Fraction(1), Coins(bytes(32))
    >>> noise = Mechanism(Fresh(1), Share("pure", one), units=(1,), norm1=one, norm2_squared=one).under(coins)
    >>> altered(noise, lambda drawn, release: drawn * 0).draw(5)[0].tolist()
    [0]
    """
    out = copy(noise)
    if isinstance(noise, Lagged):
        assert isinstance(out, Lagged)
        out.parts = [altered(part, change) for part in noise.parts]
        return out

    def draw(round: int) -> tuple[Any, int]:
        drawn, denominator = noise.draw(round)
        return change(drawn, round), denominator

    def sample(round: int, cells: Any, chosen: Sequence[int] | None = None) -> tuple[Any, int]:
        drawn, denominator = noise.sample(round, cells, chosen)
        return change(drawn, round), denominator

    out.draw, out.sample = draw, sample  # type: ignore[method-assign]
    return out


def publishing(bound: Bound, change: Change) -> Bound:
    """The same statistic, whose release changes its noise."""
    return _Altered(bound.statistic, bound, bound.grant, change)


class _Altered(WrapperBound):
    def __init__(self, statistic: Statistic, of: Bound, grant: Grant, change: Change) -> None:
        super().__init__(statistic, of, grant)
        self._change = change

    def release(self, totals: Sequence[Any], noise: Mechanism, at: At) -> Published:
        return self.of.release(totals, altered(noise, self._change), at)


def understated(spec: Specification, name: str, part: Fraction) -> Specification:
    """The same stream, with noise of one statistic that is calibrated as if a record moved only this part of what it
    does."""
    planted, bound = copy(spec), copy(spec.bounds[name])
    bound.noise = spec.bounds[name].noise.understated(part)
    if isinstance(bound.noise, Lagged):
        bound.noise.parts = [own.understated(part) for own in bound.noise.parts]
    planted.bounds = {**spec.bounds, name: bound}
    return planted


def shifted(definition: Definition, noise: Mechanism, moved: Totals) -> Mechanism:
    """The same noise, with so much more of it on every coordinate."""
    parts = []
    for view, part in enumerate(noise.parts if isinstance(noise, Lagged) else [noise]):
        mine = {(where.name, where.place): amount for where, amount in moved.items() if where.view == view and amount}
        parts.append(_shifted(definition, part, mine))
    if not isinstance(noise, Lagged):
        return parts[0]
    whole = copy(noise)
    whole.parts = parts
    return whole


def _shifted(definition: Definition, noise: Mechanism, moved: dict[tuple[Any, int], Fraction]) -> Mechanism:
    out = copy(noise)
    listed = {place: amount for (name, place), amount in moved.items() if name is None}
    named = [name for name, _ in moved if name is not None]
    cells = definition.cells(named, noise.coins) if named else ()
    words = {name: tuple(map(int, cell)) for name, cell in zip(named, cells, strict=True)}
    by_cell = {(*words[name], place): amount for (name, place), amount in moved.items() if name is not None}

    def draw(round: int) -> tuple[Any, int]:
        drawn, denominator = noise.draw(round)
        more = [int(listed.get(place, Fraction(0)) * denominator) for place in range(len(drawn))]
        return _sum(drawn, np.array(more, dtype=object)), denominator

    def sample(round: int, cells: Any, chosen: Sequence[int] | None = None) -> tuple[Any, int]:
        drawn, denominator = noise.sample(round, cells, chosen)
        places = range(noise.size) if chosen is None else chosen
        more = [[int(by_cell.get((a, b, p), 0) * denominator) for p in places] for a, b in cells.tolist()]
        return _sum(drawn, np.array(more, dtype=object).reshape(drawn.shape)), denominator

    out.draw, out.sample = draw, sample  # type: ignore[method-assign]
    return out


def _sum(drawn: Any, more: Any) -> Any:
    """In 64 bits where the noise is and the sum has room."""
    total = drawn.astype(object) + more
    small = drawn.dtype != object and all(abs(number) < 1 << 61 for number in total.ravel().tolist())
    return total.astype(np.int64) if small else total
