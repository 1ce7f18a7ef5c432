"""How far records are from a centre: a private, retroactive way to a radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...schema import Field, Number, Rows, Schema
from ...schema.exact import exact_text
from ...schema.numbers import exact_number
from ..quantiles import Quantiles
from .space import RADIUS, Space, exact_numbers, named_columns


class Distances(Quantiles):
    """Quantiles of the distance of records from a centre, for ``KMeans`` and ``KMedian`` to take a radius from.

    ``columns``, ``radius``, ``centre`` and ``scale`` are as in `KMeans`; here a loose radius costs little: the error is
    in ranks, whatever the radius. Distances are in steps of radius / 2^16, and what is farther away counts as at the
    radius. Run it for some rounds with a part of the budget, take the 0.95 quantile as the radius of a new stream, with
    ``clip=True``; a higher one only if the records beyond it are several times the error in ranks.

    **Privacy.** That of `Quantiles`: a record has one distance, so it moves the counters of one value's path in the
    tree. A radius taken from its releases is post-processing, and the budgets of the two streams add up.
    **Retroactivity.** Its own releases are retroactive. Records that are erased after a radius was chosen still had a
    part in that choice, as far as the private quantile let them.

    >>> Distances(["x", "y"], [0.5, 0.99], radius=1000)
    Distances(columns=['x', 'y'], probabilities=[0.5, 0.99], radius='1000')
    """

    kind: ClassVar[str] = "distances"

    def __init__(
        self,
        columns: str | Sequence[str],
        probabilities: Sequence[float] = (0.5, 0.9, 0.95),
        *,
        radius: object = None,
        centre: Sequence[object] | None = None,
        scale: Sequence[object] | None = None,
        **options: Any,
    ) -> None:
        self.columns = named_columns(columns)
        super().__init__(", ".join(self.columns), probabilities, **options)
        self.radius = None if radius is None else exact_number(radius, "radius")
        self.centre, self.scales = exact_numbers(centre, "centre"), exact_numbers(scale, "scale")
        self._latest: tuple[Schema, Space, Field] | None = None

    def arguments(self) -> dict[str, Any]:
        own = {
            "radius": None if self.radius is None else exact_text(self.radius),
            "centre": None if self.centre is None else [exact_text(part) for part in self.centre],
            "scale": None if self.scales is None else [exact_text(part) for part in self.scales],
        }
        inner = {key: value for key, value in super().arguments().items() if key != "field"}
        return {"columns": list(self.columns), **inner, **{key: v for key, v in own.items() if v is not None}}

    def scale(self, schema: Schema) -> Field:
        return self._space(schema)[1]

    def offsets(self, rows: Rows, schema: Schema) -> npt.NDArray[np.uint64]:
        points = self._space(schema)[0].points(rows)
        squares = np.einsum("ij,ij->i", points, points)
        # The float root is off by less than one.
        root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
        root -= root * root > squares
        root += (root + 1) * (root + 1) <= squares
        return np.asarray(root, dtype=np.uint64)

    def _space(self, schema: Schema) -> tuple[Space, Field]:
        known = self._latest
        if known is None or known[0] is not schema:
            space = Space(schema, self.columns, radius=self.radius, centre=self.centre, scale=self.scales)
            field = Number(0, exact_text(space.radius), step=exact_text(space.radius / RADIUS))
            known = self._latest = schema, space, field
        return known[1:]
