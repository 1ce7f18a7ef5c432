"""Any linear query: the user's own data-independent map F from a record to integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..schema import Rows, Schema
from .linear import Contributions, Layout, Linear
from .noisy import Answer, Noisy

Columns = Mapping[str, npt.NDArray[Any]]


class LinearQuery(Linear):
    """**Privacy.** The declared norms bound the column F_x of every record; each record is checked against them when it
    comes in, and refused beyond them. **Retroactivity.** Theorem "linear" for the query matrix F.

    ``function`` takes the encoded columns of a batch (lattice integers, texts as they are) and returns an integer array
    of shape (records, ``size``), or `Contributions`. It must depend on each record alone. ``norm2`` bounds the second
    norm of a record's column, ``norm1`` the first (one is derived from the other where it is left out). ``name`` stands
    for the function in the specification: change it when the function changes.

    >>> import numpy as np
    >>> query = LinearQuery(lambda c: np.stack([c["age"] < 18, c["age"] >= 65], 1).astype(int),
    ...                     size=2, norm2=1, norm1=1, name="young and old")
    >>> query
    LinearQuery(name='young and old', size=2, norm1=1, norm2_squared=1)
    """

    kind: ClassVar[str] = "linear"

    def __init__(
        self,
        function: Callable[[Columns], npt.NDArray[Any] | Contributions],
        *,
        size: int,
        name: str,
        norm1: int | None = None,
        norm2: int | None = None,
        labels: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"expected a whole number of queries from 1 on, got {size!r}", place="size")
        for place, norm in (("norm1", norm1), ("norm2", norm2)):
            if norm is not None and (isinstance(norm, bool) or not isinstance(norm, int) or norm < 1):
                raise InputError(f"expected a whole number from 1 on, got {norm!r}", place=place)
        if norm1 is None and norm2 is None:
            raise InputError("expected norm1 or norm2, the declared bound on the column of a record", place="norm2")
        if labels is not None and len(labels) != size:
            raise InputError(f"expected {size} labels, got {len(labels)}", place="labels")
        self.function, self.size, self.name, self.labels = function, size, name, labels
        # ||v||_2 <= ||v||_1 <= sqrt(size) ||v||_2
        self.norm2_squared = norm2**2 if norm2 is not None else norm1**2  # type: ignore[operator]
        self.norm1 = norm1 if norm1 is not None else isqrt(size * self.norm2_squared)

    def arguments(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "norm1": self.norm1, "norm2_squared": self.norm2_squared}

    def layout(self, schema: Schema) -> Layout:
        largest = min(self.norm1, isqrt(self.norm2_squared))
        return Layout((1,) * self.size, Fraction(self.norm1), Fraction(self.norm2_squared), largest)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        out = self.function(rows.columns)
        if isinstance(out, Contributions):
            return out
        amounts = np.asarray(out)
        if amounts.shape != (rows.count, self.size):
            raise InputError(
                f"expected an array of shape {(rows.count, self.size)}, got {amounts.shape}", place=self.name
            )
        if amounts.dtype.kind not in "iu":
            raise InputError(
                f"expected integers, got {amounts.dtype}: a sum of floats remembers what was deleted", place=self.name
            )
        row, coordinate = np.nonzero(amounts)
        return Contributions(row, coordinate, amounts[row, coordinate].astype(np.int64))

    def validate(self, rows: Rows, schema: Schema) -> None:
        parts = self.contribute(rows, schema)
        if parts.amount.dtype.kind not in "iu":
            raise InputError(f"expected integers, got {parts.amount.dtype}", place=self.name)
        if parts.coordinate.size and not 0 <= parts.coordinate.min() <= parts.coordinate.max() < self.size:
            raise InputError(f"expected coordinates below {self.size}, got {parts.coordinate.max()}", place=self.name)
        largest = isqrt(self.norm2_squared)
        # One by one first, so that the squares below cannot wrap around.
        bad = np.unique(parts.row[np.abs(parts.amount) > largest])
        if not bad.size:
            sizes, squares = np.zeros(rows.count, dtype=np.int64), np.zeros(rows.count, dtype=np.int64)
            np.add.at(sizes, parts.row, np.abs(parts.amount))
            np.add.at(squares, parts.row, parts.amount * parts.amount)
            bad = np.flatnonzero((sizes > self.norm1) | (squares > self.norm2_squared))
        if bad.size:
            raise InputError(
                f"expected a column within norm1 = {self.norm1} and norm2^2 = {self.norm2_squared}, got more",
                place=f"{self.name}, row {int(bad[0]) + 1}",
            )

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        value = noisy.values

        def interval(level: float) -> Any:
            reach = noisy.half_width(0, level)
            return self._named(np.stack([value - reach, value + reach], axis=1))

        return Answer(self._named(value), self._named(noisy.deviations), interval)

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        return float(deviations[0])

    def _named(self, values: npt.NDArray[np.float64]) -> Any:
        if self.labels is None:
            return values
        return {label: tuple(v) if np.ndim(v) else float(v) for label, v in zip(self.labels, values, strict=True)}
