"""Rows of a source in columns, and the changes that they stand for, in one form for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..errors import Place
from ..messages import mismatch
from ..schema.arrow import Column
from ..schema.packed import Coded, Packed
from ..schema.packed_texts import PackedTexts
from ..texts import ABSENT, Texts
from .encoded_cells import ColumnReader, EncodedCells

ADD, UPDATE, DELETE, ERASE, CLOSE, NOTHING = range(6)
"""An update is an addition that needs an id. The row before an update is a deletion, which needs none."""
EVERY_RECORD = "*"
"""The field of a schema that needs none, since it must have one: it has the same value in every record."""


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """One column: a value for each row, and which of them are present. A missing one may hold anything.

    >>> cells = ColumnValues.of([3, None, 5])
    >>> cells.take([1, 2]).column(), cells.take([0, 2]).whole("round").tolist()
    ([None, 5], [3, 5])
    """

    values: Any
    """An array, texts in columns, or a packed column; that knows which of its values are missing, too."""
    present: Mask | None = None
    """None if all are."""
    words: Sequence[Any] | None = None
    """If given, the values are indices into these."""

    @classmethod
    def of(cls, column: Column) -> ColumnValues:
        if isinstance(column, np.ndarray):
            return cls(column)
        values = np.fromiter(column, object, len(column))
        present = np.array([value is not None for value in column], np.bool_)
        return cls(values, None if present.all() else present)

    @classmethod
    def none(cls, count: int) -> ColumnValues:
        return cls(np.zeros(count, np.int64), np.zeros(count, np.bool_))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> ColumnValues:
        present = None if self.present is None else self.present[rows]
        values = self.values.take(rows) if isinstance(self.values, Packed) else self.values[rows]
        return ColumnValues(values, None if present is None or present.all() else present, self.words)

    def there(self) -> Mask:
        return np.ones(len(self), np.bool_) if self.present is None else self.present

    def column(self) -> Column:
        """The values as the schema takes them, with None for a missing one."""
        if isinstance(self.values, Packed):
            return self.values
        if isinstance(self.values, Texts):
            return self.values.strings()
        if self.words is not None:
            if self.present is None:
                return Coded(self.words, self.values)
            return Coded([*self.words, None], np.where(self.present, self.values, len(self.words)))
        if self.present is None:
            plain: Column = self.values
            return plain
        # iterating keeps numpy scalars, and with them the shortest text of a float32
        return [value if known else None for value, known in zip(self.values, self.present.tolist(), strict=True)]

    def listed(self) -> list[Any]:
        """Python values, with None for a missing one."""
        column = self.column()
        if isinstance(column, Packed):
            return column.values()
        return list(column.tolist()) if isinstance(column, np.ndarray) else list(column)

    def names(self) -> Sequence[Any]:
        """Ids or subjects; whole numbers as their decimal text, where that is fast here."""
        if isinstance(self.values, Texts):
            return self.values
        if isinstance(self.values, PackedTexts):
            return self.values.texts()
        plain = self.words is None and self.present is None and isinstance(self.values, np.ndarray)
        if plain and self.values.dtype.kind in "iu":
            return list(map(str, self.values.tolist()))
        return self.listed()

    def whole(self, place: str) -> I64:
        """Whole numbers, with any value for a missing one."""
        values, there = self.values, self.there()
        plain = self.words is None and isinstance(values, np.ndarray)
        if plain and (values.dtype.kind == "i" or values.dtype in (np.uint8, np.uint16, np.uint32)):
            return np.asarray(values, np.int64)
        numbers: I64 = np.zeros(len(self), np.int64)
        for row, value in enumerate(self.listed()):
            if there[row]:
                if isinstance(value, bool) or not isinstance(value, int | np.integer) or not -(2**63) <= value < 2**63:
                    raise mismatch("a whole number", value, Place(place, row + 1))
                numbers[row] = value
        return numbers

    @classmethod
    def concatenate(cls, parts: Sequence[ColumnValues]) -> ColumnValues:
        if len(parts) == 1:
            return parts[0]
        texts = [part.values for part in parts if isinstance(part.values, Texts)]
        if len(texts) == len(parts):
            joined = Texts.concatenate(texts)
            return cls(joined, None if joined.complete else joined.lengths != ABSENT)
        packed = [part.values for part in parts if isinstance(part.values, Packed)]
        if len(packed) == len(parts) and len({*map(type, packed)}) == 1:
            return cls(type(packed[0]).concatenate(packed), _joined(parts))
        if texts or packed:
            return cls.of([value for part in parts for value in part.listed()])
        same = all(part.words is parts[0].words for part in parts)
        plain = [part if same or part.words is None else part.decoded() for part in parts]
        kinds = {part.values.dtype for part in plain}
        if len(kinds) > 1 or len({part.values.shape[1:] for part in plain}) > 1:
            return cls.of([value for part in plain for value in part.listed()])
        return cls(np.concatenate([part.values for part in plain]), _joined(plain), plain[0].words)

    def decoded(self) -> ColumnValues:
        words = np.fromiter(self.words or (), object, len(self.words or ()))
        codes = self.values if self.present is None else np.where(self.present, self.values, 0)
        return ColumnValues(words[codes] if len(words) else np.full(len(codes), None, object), self.present)


def _joined(parts: Sequence[ColumnValues]) -> Mask | None:
    """Which values of all parts are present."""
    complete = all(part.present is None for part in parts)
    return None if complete else np.concatenate([part.there() for part in parts])


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a source."""

    numbers: I64
    """The numbers of rows or lines, from 1."""
    columns: dict[str, ColumnValues]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Any) -> Batch:
        return Batch(self.numbers[rows], {name: cells.take(rows) for name, cells in self.columns.items()})


@dataclass(frozen=True, eq=False)
class Changes:
    """What rows do: an operation, the fields of a record, and other columns by their roles (id, subject, stamp, round,
    position, time; and ``born``, in a tuple, the time of a deleted record where it is not that of the row). Several
    changes may come from one line."""

    numbers: I64
    codes: NDArray[np.int8]
    fields: dict[str, ColumnValues]
    roles: dict[str, ColumnValues]
    copies: I64 | None = None
    """How many records each row stands for; None if one."""
    readers: Mapping[str, ColumnReader] | None = None
    """How fields are read from cells that are not values yet."""

    @classmethod
    def nothing(cls) -> Changes:
        """No changes: nothing came for a while."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int8), {}, {})

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Any) -> Changes:
        fields, roles = ({name: cells.take(rows) for name, cells in of.items()} for of in (self.fields, self.roles))
        copies = None if self.copies is None else self.copies[rows]
        return Changes(self.numbers[rows], self.codes[rows], fields, roles, copies, self.readers)

    def there(self, role: str) -> Mask:
        """Which rows have this role."""
        return self.roles[role].there() if role in self.roles else np.zeros(len(self), np.bool_)

    def names(self, role: str) -> Sequence[Any] | None:
        return self.roles[role].names() if self.there(role).any() else None

    def whole(self, role: str) -> I64:
        return self.roles[role].values if role in self.roles else np.zeros(len(self), np.int64)

    def records(self) -> dict[str, Any]:
        """The fields, as the schema takes them."""
        if self.readers is None:
            return {name: cells.column() for name, cells in self.fields.items()}
        return {name: _read(cells.values, self.readers[name]) for name, cells in self.fields.items()}

    def within(self, rounds: I64) -> Changes:
        """Give changes without a stamp the round of the grid as theirs."""
        stamps = np.where(self.there("stamp"), self.whole("stamp"), rounds)
        return replace(self, roles={**self.roles, "stamp": ColumnValues(stamps)})

    def example(self) -> tuple[int, dict[str, Any]] | None:
        """The number of the first row with a record, and how it is understood."""
        records = np.isin(self.codes, (ADD, UPDATE, DELETE))
        if not records.any():
            return None
        one = self.take([int(np.argmax(records))])
        found: dict[str, Any] = {"op": "delete" if one.codes[0] == DELETE else "add"}
        values = one.records()
        found["record"] = {name: next(iter(values[name])) for name in one.fields}
        shown = [role for role in ("id", "subject", "stamp", "round", "time") if role in one.roles]
        found |= {role: one.roles[role].listed()[0] for role in shown if one.there(role)[0]}
        return int(one.numbers[0]), found

    @classmethod
    def concatenate(cls, parts: Sequence[Changes]) -> Changes:
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        fields = {name: ColumnValues.concatenate([part.fields[name] for part in parts]) for name in first.fields}
        every = dict.fromkeys(role for part in parts for role in part.roles)
        roles = {
            role: ColumnValues.concatenate([part.roles.get(role) or ColumnValues.none(len(part)) for part in parts])
            for role in every
        }
        counts = [part.copies for part in parts]
        copies = None
        if any(count is not None for count in counts):
            ones = (np.ones(len(part), np.int64) for part in parts)
            copies = np.concatenate([one if some is None else some for some, one in zip(counts, ones, strict=True)])
        numbers, codes = (np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "codes"))
        return cls(numbers, codes, fields, roles, copies, first.readers)


def _read(cells: Any, reader: ColumnReader) -> Column:
    return cells.read_by(reader) if isinstance(cells, EncodedCells) else reader(cells.tolist())


def has_record(changes: Changes) -> Mask:
    """Which changes hold a record: additions, updates, and deletions by value. These wait for a round to close; others,
    erasures and deletions by id, a stream still takes after its last round."""
    codes = changes.codes
    found: Mask = (codes == ADD) | (codes == UPDATE) | ((codes == DELETE) & ~changes.there("id"))
    return found
