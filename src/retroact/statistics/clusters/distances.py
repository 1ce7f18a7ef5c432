"""How far records are from a centre: a private, retroactive way to a radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...arrays import U64
from ...messages import exact_text
from ...schema import Field, Number, Rows, Schema
from ..grant import Grant
from ..quantiles import Quantiles, QuantilesBound
from ..statistic import Example
from .ball import RADIUS, Ball


class Distances(Quantiles):
    """Quantiles of the distance of records from a centre, for ``KMeans`` and ``KMedian`` to take a radius from.

    ``fields``, ``radius``, ``centre`` and ``scale`` are as in `KMeans`, but a loose radius costs little: the error is
    in ranks. Distances are in steps of radius / 2^16; larger ones count as the radius. Run it for some rounds with a
    part of the budget, then take the 0.95 quantile as the radius of a new stream with ``clip=True``. Take a higher one
    only if the records beyond it are several times the error in ranks.

    **Privacy.** That of `Quantiles`: a record has one distance, so it moves the counters of one value's path in the
    tree. A radius taken from its releases is post-processing, and the budgets of the two streams add up.
    **Retroactivity.** Its own releases are retroactive. Records erased after a radius was chosen still had a part in
    that choice, as far as the private quantile let them.

    >>> Distances(["x", "y"], [0.5, 0.99], radius=1000)
    Distances(['x', 'y'], probabilities=[0.5, 0.99], radius=1000)
    """

    kind: ClassVar[str] = "distances"
    own_noise: ClassVar[tuple[str, ...]] = ()
    theorem: ClassVar[str] = 'Theorem "linear"; docs/proofs.md, 9'

    def __init__(
        self,
        fields: str | Sequence[str],
        probabilities: Sequence[float] = (0.5, 0.9, 0.95),
        *,
        radius: object = None,
        centre: Sequence[object] | None = None,
        scale: Sequence[object] | None = None,
        **options: Any,
    ) -> None:
        self.ball = Ball(fields, radius, centre, scale)
        super().__init__(", ".join(self.ball.fields), probabilities, **options)

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("distances", cls("place", [0.5]), {"epsilon": 4.0}, checks={"epsilon": 100.0})]

    def argument(self, name: str) -> Any:
        return self.ball.argument(name) if name in Ball.parameters() else super().argument(name)

    def domain(self, schema: Schema) -> Field:
        radius = self.ball.space(schema).radius
        return Number(0, exact_text(radius), step=exact_text(radius / RADIUS))

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.by, *self.ball.fields)

    def offsets(self, rows: Rows, schema: Schema) -> U64:
        points = self.ball.space(schema).points(rows)
        squares = np.einsum("ij,ij->i", points, points)
        # Correctly rounded, the root of a number below 2^52 never reaches a whole number above it.
        return np.asarray(np.sqrt(squares.astype(np.float64)), dtype=np.uint64)

    def bind(self, grant: Grant) -> QuantilesBound:
        bound = super().bind(grant)
        bound.digest_extras = {"steps": RADIUS}
        return bound
