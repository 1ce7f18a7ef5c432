"""What a fitted estimator continues from: its stream, the centre of the ball, and how records are named.

**Privacy.** The centre is subtracted from each record before the stream sees it; it is declared, never computed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import F64
from ..checks import is_integral
from ..coins import Key
from ..errors import ExhaustedError, InputError
from ..schema import Vector
from ..schema.numbers import exact_number
from ..statistics.clusters import KMeans
from ..statistics.clusters.ball import BITS
from ..stream import Release, Specification, Stream
from ..stream.door import required

CLUSTERS = "clusters"
# What the statistic and the stream call the parameters of an estimator.
CALLED = {"k": "n_clusters", "horizon": "max_releases"}


@dataclass
class FittedStream:
    """It stays in its process: copies and pickles of an estimator do not have it."""

    stream: Stream
    centre: F64 | None
    next: int | None
    """The next id; None where the caller gives them all."""

    @classmethod
    def begin(
        cls,
        statistic: type[KMeans],
        points: F64,
        *,
        named: bool,
        n_clusters: int,
        radius: Any,
        center: Any,
        clip: bool,
        max_releases: int | None,
        expected: int,
        mode: Any,
        key: Any,
        **budget: Any,
    ) -> FittedStream:
        """A stream for points like these. Checked before the key is used: a key drives one stream only."""
        dimension = points.shape[1]
        middle = None if center is None else _centre(center, dimension)
        size = exact_number(radius, "radius")
        name = _place(middle)
        try:
            specification = Specification(
                {name: Vector(dimension, radius=size, step=_step(size), clip=clip)},
                {CLUSTERS: statistic(name, n_clusters, size, clip=clip, expected=expected, mode=mode)},
                late=False,
                horizon=max_releases,
                **budget,
            )
        except InputError as error:
            raise error.moved(CALLED.get(error.path or "", error.path)) from None
        specification.schema.encode(_columns(points, middle))
        return cls(Stream.from_specification(specification, key=_key(key)), middle, None if named else 0)

    def check_room(self) -> None:
        horizon = self.stream.specification.horizon
        if horizon is not None and self.stream.round > horizon:
            raise ExhaustedError(
                f"all {horizon:,} releases (max_releases) are published; the noise is calibrated to that many and no "
                "more. To go on: fit anew, with a budget that adds to this one's"
            )

    def publish(self, points: F64 | None, names: list[str], forgotten: list[str]) -> tuple[Release, list[Warning]]:
        """Add, forget and close the round. Warnings are returned, so that none of them interrupts it."""
        try:
            if points is not None:
                self.stream.add(_columns(points, self.centre), id=names)
            if forgotten:
                self.stream.delete(id=forgotten)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                release = self.stream.close_round()[CLUSTERS]
        except BaseException:
            self.stream.discard()
            raise
        if self.next is not None:
            self.next += len(names)
        return release, [warning.message for warning in caught if isinstance(warning.message, Warning)]


def batch_names(ids: Any, count: int, source: FittedStream | None) -> list[str]:
    """The ids of a batch, one per record; numbers in the order of arrival if none are given.

    >>> batch_names(None, 3, None), batch_names(["a", 7], 2, None)
    (['0', '1', '2'], ['a', '7'])
    """
    if source is not None and (ids is None) != (source.next is not None):
        raise InputError("expected ids in every call since the stream began, or in none", place="ids")
    if ids is None:
        first = 0 if source is None else source.next or 0
        return [str(number) for number in range(first, first + count)]
    names = required(ids, "ids")
    if len(names) != count:
        raise InputError(f"expected {count:,} ids, one for each record, got {len(names):,}", place="ids")
    return names


def _step(radius: Fraction) -> Fraction:
    """The largest power of two up to radius / 2^16: as fine as the steps of the ball itself, and an exact decimal.

    >>> _step(Fraction(100)), _step(Fraction(1, 10)) == Fraction(1, 2**20)
    (Fraction(1, 1024), True)
    """
    power = radius.numerator.bit_length() - radius.denominator.bit_length()
    power -= Fraction(2) ** power > radius
    return Fraction(2) ** (power - BITS)


def _centre(given: Any, dimension: int) -> F64:
    try:
        centre = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        centre = np.zeros(0)
    if centre.shape != (dimension,) or not np.isfinite(centre).all():
        raise InputError(f"expected {dimension} finite numbers, one for each column, got {given!r}", place="center")
    return centre


def _key(given: Any) -> Any:
    """A whole number is a seed. The stream refuses anything else that is not a key."""
    return Key.for_testing(int(given)) if is_integral(given) else given


def _place(centre: F64 | None) -> str:
    """The name of the field, as errors show it."""
    return "x" if centre is None else "x - center"


def _columns(points: F64, centre: F64 | None) -> dict[str, F64]:
    """Points relative to the centre. The difference is rounded the same way on every machine, by less than a step if
    the centre is within 2^36 radii."""
    return {_place(centre): points if centre is None else points - centre}
