"""Cells that a field has encoded as they were read, without a Python object for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Mask
from ..schema import Field
from ..schema.packed import EncodedColumn, Packed
from ..schema.packed_texts import PackedTexts

ColumnReader = Callable[[list[Any]], list[Any]]


class EncodedCells(Packed):
    """The texts of a column, and what its field makes of them. All who ask for more than that get what they would get
    from texts that no field has seen.

    >>> from retroact.schema import Integer
    >>> texts, field = PackedTexts.of(b"1204", np.array([0, 2, 4]), np.ones(2, bool)), Integer(0, 99)
    >>> cells = EncodedCells(texts, field, np.array([12, 4]), None)
    >>> cells.values(), field.encode_column(cells.read_by(lambda texts: [int(text) for text in texts]), "n")
    (['12', '04'], (array([12,  4]), None))
    """

    def __init__(
        self,
        texts: PackedTexts,
        field: Field,
        encoded: NDArray[Any],
        missing: Mask | None,
        reader: ColumnReader | None = None,
    ) -> None:
        self.texts, self.field, self.reader = texts, field, reader
        self.encoded, self.missing = encoded, missing

    def read_by(self, reader: ColumnReader) -> EncodedCells:
        """Read the cells as values of the field."""
        return EncodedCells(self.texts, self.field, self.encoded, self.missing, reader)

    def values(self) -> list[Any]:
        texts = self.texts.values()
        return texts if self.reader is None else self.reader(texts)

    def __len__(self) -> int:
        return len(self.encoded)

    def take(self, rows: Any) -> EncodedCells:
        missing = None if self.missing is None else self.missing[rows]
        return EncodedCells(self.texts.take(rows), self.field, self.encoded[rows], missing, self.reader)

    @classmethod
    def concatenate(cls, parts: Sequence[EncodedCells]) -> EncodedCells:
        first = parts[0]
        masks = [np.zeros(len(part), np.bool_) if part.missing is None else part.missing for part in parts]
        texts = PackedTexts.concatenate([part.texts for part in parts])
        encoded = np.concatenate([part.encoded for part in parts])
        return cls(texts, first.field, encoded, np.concatenate(masks), first.reader)

    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        if field is not self.field:
            return None
        gone = self.missing is not None and self.missing.any()
        return self.encoded, self.missing if gone else None
