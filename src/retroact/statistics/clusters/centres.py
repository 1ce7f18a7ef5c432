"""What k-means and k-median publish: centres, and what goes with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays import F64, I64
from ...report.cluster_picture import drawn
from ..answer_rows import AnswerRows, Row, part_of
from .ball import as_points
from .lloyd import Objective, squares

BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Centres:
    """An array of centres (at most k, by columns), largest first, in the columns' units, with private weights.

    `predict`, `transform`, `score` and `picture` work on points that you bring, and publish nothing: what they return
    about private points is not private.

    >>> found = Centres(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([10.0, 5.0]), columns=("x", "y"))
    >>> found.predict([[1, 1], [3, 3]]).tolist(), found.score([[1, 1], [3, 3]])
    ([0, 1], -3.0)
    """

    centres: F64
    weights: F64
    """How many records lie in the regions of each centre, up to noise; they add up to `records`."""
    columns: tuple[str, ...]
    weight_errors: F64 = field(default_factory=lambda: np.zeros(0))
    records: float = 0.0
    cost: float | None = None
    """For k-means, an estimate of the sum of squared distances if every region goes to one centre as a whole. That is
    at least the cost of the centres themselves, where each record goes to the nearest."""
    cost_error: float | None = None
    objective: Objective = "means"
    centre: F64 | None = None
    radius: float | None = None
    """The radius of the declared ball, around ``centre``."""
    scale: F64 | None = None
    notes: tuple[str, ...] = ()
    """Warnings, derived from private counters alone: a loose radius, too few records."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.centres, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.centres)

    def __iter__(self) -> Iterator[F64]:
        return iter(self.centres)

    def __getitem__(self, which: Any) -> Any:
        return self.centres[which]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.centres.shape

    def predict(self, points: Any) -> I64:
        """The number of the nearest centre of each point."""
        return np.concatenate([part.argmin(axis=1) for part in self._squares(points)])

    def transform(self, points: Any) -> F64:
        """The distance of each point from each centre."""
        return np.asarray(np.sqrt(np.concatenate(list(self._squares(points)))))

    def score(self, points: Any) -> float:
        """Minus the cost of the points: squared distances for k-means, distances for k-median."""
        best = np.concatenate([part.min(axis=1) for part in self._squares(points)])
        return -float((best if self.objective == "means" else np.sqrt(best)).sum())

    def picture(self, points: Any = None, *, axes: Sequence[int] = (0, 1)) -> str:
        """An SVG of two columns: the centres, sized by weight, and your points, if given, in the colours of their
        centres."""
        return drawn(self, None if points is None else self._points(points), axes)

    def to_plain(self) -> dict[str, Any]:
        return {
            "centres": self.centres.tolist(),
            "weights": self.weights.tolist(),
            "records": self.records,
            "cost": self.cost,
            "notes": list(self.notes),
        }

    def _points(self, points: Any) -> F64:
        return as_points(points, self.columns, self.centres.shape[1])

    def _squares(self, points: Any) -> Iterator[F64]:
        """The squared distances, block by block, in the scale in which the centres were found."""
        scale = 1.0 if self.scale is None else self.scale
        own = self.centres / scale
        given = self._points(points) / scale
        for start in range(0, max(1, len(given)), BLOCK):
            yield np.maximum(squares(given[start : start + BLOCK], own), 0.0)

    def __repr__(self) -> str:
        rows = ", ".join(
            f"{np.round(centre, 3).tolist()} ({weight:,.0f})"
            for centre, weight in zip(self.centres, self.weights, strict=True)
        )
        return f"Centres({rows}{'; ' + '; '.join(self.notes) if self.notes else ''})"


class CentreRows(AnswerRows):
    """A row for each centre: its number from 0, as `Centres.predict` has it, its coordinates, and its weight as value.

    >>> value = {"centres": [[0.0, 0.5], [3.0, 4.0]], "weights": [10.0, 5.0], "records": 15.0}
    >>> list(CentreRows(["x", "y"]).rows(value, {"weights": [2.0, 2.0]}, None))
    [((0, 0.0, 0.5), 10.0, 2.0, None, None), ((1, 3.0, 4.0), 5.0, 2.0, None, None)]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.keys = (("cluster", "integer"), *((name, "number") for name in names))

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        errors = part_of(error, "weights")
        for number, (centre, weight) in enumerate(zip(value["centres"], value["weights"], strict=True)):
            yield (number, *centre), weight, part_of(errors, number), None, None
