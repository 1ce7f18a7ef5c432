"""Records as bytes: many at a time are packed in columns and cut into blocks, and many blocks are read as one.

A block is a list: stamps, copies, the fields as declared, for each field that may be missing 1 where it is, ids,
subjects. Numbers are 64 bits, little-endian, and one number stands for many equal ones; texts are their lengths and
their UTF-8 bytes, one after another, or None for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from retroact.errors import VerificationError
from retroact.ledger.ledger import Ledger
from retroact.ledger.sorted_keys import Integers
from retroact.ledger.surviving import Surviving
from retroact.ledger.text_column import ABSENT, Texts
from retroact.schema import Field, Schema, Vector

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode
Column = Integers | Texts


@dataclass(frozen=True, eq=False)
class Records:
    """Records in columns; copies may be below zero in a change."""

    columns: dict[str, Column]
    missing: dict[str, Integers]
    """For each field that may be missing: 1 where it is, 0 elsewhere."""
    stamps: Integers
    ids: Texts
    subjects: Texts
    counts: Integers

    @classmethod
    def of(cls, surviving: Surviving, schema: Schema) -> Records:
        columns: dict[str, Column] = {
            name: Texts.of(column.tolist()) if column.dtype == object else column
            for name, column in surviving.rows.columns.items()
        }
        rows = surviving.rows
        missing = {
            name: rows.missing[name].astype(np.int64) if name in rows.missing else np.zeros(rows.count, dtype=np.int64)
            for name in schema.optional
        }
        ids, subjects = Texts.of(surviving.ids), Texts.of(surviving.subjects)
        return cls(columns, missing, surviving.stamps, ids, subjects, surviving.counts)

    @property
    def content(self) -> tuple[Column, ...]:
        """All that tells two records of one stamp apart."""
        return (*self.columns.values(), *self.missing.values(), self.ids, self.subjects)

    def ledger(self, schema: Schema) -> Ledger:
        """The ledger that holds them."""
        columns = {
            name: column.distinct() if isinstance(column, Texts) else column for name, column in self.columns.items()
        }
        missing = {name: flags.astype(np.bool_) for name, flags in self.missing.items()}
        return Ledger.of_distinct(
            schema, self.stamps, self.counts, columns, missing, self.ids.strings(), self.subjects.distinct()
        )

    def __len__(self) -> int:
        return len(self.stamps)

    def take(self, where: Any) -> Records:
        columns = {
            name: column.take(where) if isinstance(column, Texts) else column[where]
            for name, column in self.columns.items()
        }
        missing = {name: flags[where] for name, flags in self.missing.items()}
        return Records(
            columns, missing, self.stamps[where], self.ids.take(where), self.subjects.take(where), self.counts[where]
        )

    def followed_by(self, other: Records) -> Records:
        return Records(
            {name: _joined(column, other.columns[name]) for name, column in self.columns.items()},
            {name: np.concatenate([flags, other.missing[name]]) for name, flags in self.missing.items()},
            np.concatenate([self.stamps, other.stamps]),
            self.ids.followed_by(other.ids),
            self.subjects.followed_by(other.subjects),
            np.concatenate([self.counts, other.counts]),
        )


def _joined(one: Column, other: Column) -> Column:
    if isinstance(one, Texts) and isinstance(other, Texts):
        return one.followed_by(other)
    assert isinstance(one, np.ndarray)
    assert isinstance(other, np.ndarray)
    return np.concatenate([one, other])


def pack(records: Records, cuts: Sequence[int]) -> list[bytes]:
    """A block for the records between any two neighbouring cuts."""
    parts = [
        records.stamps,
        records.counts,
        *(_TextParts(each) if isinstance(each, Texts) else each for each in records.content),
    ]
    return [_encode([end - begin, *(_part(each, begin, end) for each in parts)]) for begin, end in pairwise(cuts)]


def unpack(schema: Schema, blocks: Sequence[bytes]) -> Records:
    """The records of all blocks."""
    try:
        parts = [_decode(block) for block in blocks]
        width = len(schema.fields) + len(schema.optional) + 5
        if any(len(part) != width for part in parts):
            raise ValueError(f"expected {width} parts")
        sizes = [part[0] for part in parts]
        columns: dict[str, Column] = {}
        for position, (name, field) in enumerate(schema.fields.items(), start=3):
            own = [part[position] for part in parts]
            columns[name] = _texts(own, sizes) if field.interned else _numbers(own, sizes, _shape(field))
        missing = {
            name: _numbers([part[position] for part in parts], sizes, ())
            for position, name in enumerate(schema.optional, start=3 + len(schema.fields))
        }
        stamps, counts = (_numbers([part[place] for part in parts], sizes, ()) for place in (1, 2))
        ids, subjects = (_texts([part[place] for part in parts], sizes) for place in (-2, -1))
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise VerificationError(f"expected blocks of records in the store, got something else ({error})") from None
    return Records(columns, missing, stamps, ids, subjects, counts)


def _part(column: Integers | _TextParts, begin: int, end: int) -> Any:
    return column.part(begin, end) if isinstance(column, _TextParts) else _number_part(column[begin:end])


def _shape(field: Field) -> tuple[int, ...]:
    return (field.width,) if isinstance(field, Vector) else ()


def _number_part(column: Integers) -> int | bytes:
    first = column[0]
    if column.ndim == 1 and (column == first).all():
        return int(first)
    return column.astype("<i8").tobytes()


def _numbers(parts: Sequence[int | bytes], sizes: Sequence[int], shape: tuple[int, ...]) -> Integers:
    wide = 8 * int(np.prod(shape, dtype=np.int64))
    pieces = []
    for part, size in zip(parts, sizes, strict=True):
        if isinstance(part, int):
            pieces.append(np.full(size, part, dtype="<i8"))
        else:
            if len(part) != wide * size:
                raise ValueError(f"expected {wide * size} bytes of numbers, got {len(part)}")
            pieces.append(np.frombuffer(part, dtype="<i8"))
    flat = np.concatenate(pieces) if pieces else np.zeros(0, dtype="<i8")
    return flat.astype(np.int64, copy=False).reshape(-1, *shape)


class _TextParts:
    """A column of texts, to be cut."""

    def __init__(self, texts: Texts) -> None:
        self._lengths, self._content = texts.lengths, texts.content()
        self._bounds = np.concatenate([[0], np.cumsum(np.maximum(texts.lengths, 0))])

    def part(self, begin: int, end: int) -> list[bytes] | None:
        own = self._lengths[begin:end]
        if own.max() == ABSENT:
            return None
        return [own.astype("<i4").tobytes(), self._content[self._bounds[begin] : self._bounds[end]]]


def _texts(parts: Sequence[list[bytes] | None], sizes: Sequence[int]) -> Texts:
    if all(part is None for part in parts):
        return Texts.none(sum(sizes))
    pieces = []
    for part, size in zip(parts, sizes, strict=True):
        lengths = np.full(size, ABSENT, dtype="<i4") if part is None else np.frombuffer(part[0], dtype="<i4")
        if len(lengths) != size:
            raise ValueError(f"expected {size} lengths of texts, got {len(lengths)}")
        pieces.append(lengths)
    content = b"".join(part[1] for part in parts if part is not None)
    return Texts.from_content(np.concatenate(pieces).astype(np.int32), content)
