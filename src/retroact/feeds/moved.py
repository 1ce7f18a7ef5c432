"""Values that a field moves, to a bound or to the next step: accepted, but often a sign of wrong bounds or steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..messages import exact_text
from ..schema import Number, Schema
from ..schema.numbers import LARGEST
from .batch import Changes
from .refusals import Refusal

FINER = 10**6
"""What is closer to a step than a millionth of it counts as being there."""


class MovedValues:
    """
    >>> from retroact.feeds.batch import ADD, ColumnValues
    >>> moved = MovedValues(Schema({"amount": Number(0, 500, step=1, clip=True)}))
    >>> amounts = {"amount": ColumnValues.of([12, 900, -1, 1.5])}
    >>> moved.note(Changes(np.arange(2, 6), np.full(4, ADD), amounts, {}))
    >>> [(each.what, each.count, each.first) for each in moved.found]
    [('values out of bounds are moved to the bound', 2, [3, 4]), ('values are rounded to steps of 1', 1, [5])]
    """

    def __init__(self, schema: Schema) -> None:
        fields = schema.fields
        clipped = {name: field for name, field in fields.items() if getattr(field, "clip", False)}
        self._strict = {name: field.replace(clip=False) for name, field in clipped.items()}
        self._finer = {name: finer for name, field in fields.items() if (finer := _finer(field)) is not None}
        what = "values out of bounds are moved to the bound"
        self._clipped = {name: Refusal(name, what, "line") for name in self._strict}
        self._rounded = {
            name: Refusal(name, f"values are rounded to steps of {exact_text(fields[name].step)}", "line")
            for name in self._finer
        }

    @property
    def found(self) -> list[Refusal]:
        return [each for each in (*self._clipped.values(), *self._rounded.values()) if each.count]

    def note(self, changes: Changes) -> None:
        """These changes have records, and were accepted."""
        if not (self._strict or self._finer) or not len(changes):
            return
        for name, values in changes.records().items():
            # what the same field would refuse without clipping is clipped
            for fault in self._strict[name].faults(values, name) if name in self._strict else ():
                self._clipped[name].add(changes.numbers[np.asarray(fault.rows) - 1].tolist())
            if name in self._finer:
                finer, parts = self._finer[name]
                encoded: NDArray[np.int64] = finer.encode_column(values, name)[0]
                self._rounded[name].add(changes.numbers[encoded % parts != 0].tolist())


def _finer(field: object) -> tuple[Number, int] | None:
    """Return the field with smaller steps, and how many of them make one original step."""
    if not isinstance(field, Number):
        return None
    room = LARGEST // max(abs(field.lower), abs(field.upper), 1)
    parts = min(FINER, 10 ** (len(str(room)) - 1))
    return (field.replace(step=field.step / parts, clip=True), parts) if parts > 1 else None
