"""Values outside their bounds that a field moves to the bound: accepted, but often a sign of wrong bounds."""

from __future__ import annotations

import numpy as np

from ..schema import Schema
from .batch import Changes
from .refusals import Refusal


class ClippedValues:
    """
    >>> from retroact.feeds.batch import ADD, ColumnValues
    >>> from retroact.schema import Number
    >>> clipped = ClippedValues(Schema({"amount": Number(0, 500, clip=True)}))
    >>> amounts = {"amount": ColumnValues.of([12, 900, -1])}
    >>> clipped.note(Changes(np.arange(2, 5), np.full(3, ADD), amounts, {}))
    >>> [(each.place, each.count, each.first) for each in clipped.found]
    [('amount', 2, [3, 4])]
    """

    def __init__(self, schema: Schema) -> None:
        fields = {name: field for name, field in schema.fields.items() if getattr(field, "clip", False)}
        self._strict = {name: field.replace(clip=False) for name, field in fields.items()}
        what = "values out of bounds are moved to the bound"
        self._of = {name: Refusal(name, what, "line") for name in fields}

    @property
    def found(self) -> list[Refusal]:
        return [each for each in self._of.values() if each.count]

    def note(self, changes: Changes) -> None:
        """These changes have records, and were accepted: what the same field would refuse without clipping is
        clipped."""
        if not self._strict or not len(changes):
            return
        for name, values in changes.records().items():
            for fault in self._strict[name].faults(values, name) if name in self._strict else ():
                self._of[name].add(changes.numbers[np.asarray(fault.rows) - 1].tolist())
