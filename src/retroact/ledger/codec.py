"""Records as bytes: the one form in which states, stores and the open round keep them.

Many records are packed in columns and cut into blocks, and many blocks are read as one. A block is a list: how many
there are, stamps, copies, the fields as declared, for each field that may be missing 1 where it is, ids, subjects.
Numbers are 64 bits, little-endian, and one number stands for many equal ones. Texts are their lengths and their UTF-8
bytes, one after another, or a list where a block is written whole; one text, as bytes, or None for none, stands for
many equal ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from retroact.arrays import I64
from retroact.checks import is_int
from retroact.errors import InputError, VerificationError
from retroact.ledger.operations import Stamped, Subjects
from retroact.ledger.surviving import Surviving
from retroact.ledger.text_column import ABSENT, Texts
from retroact.schema import Field, Rows, Schema, Vector
from retroact.schema.dictionary_column import Coded

FORMAT = "retroact ledger"
VERSION = 2
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode
Column = I64 | Texts


@dataclass(frozen=True, eq=False)
class Records:
    """Records in columns; copies may be below zero in a change."""

    columns: dict[str, Column]
    missing: dict[str, I64]
    """For each field that may be missing: 1 where it is, 0 elsewhere."""
    stamps: I64
    ids: Texts
    subjects: Texts
    counts: I64

    @classmethod
    def of(cls, surviving: Surviving, schema: Schema) -> Records:
        rows = surviving.rows
        columns: dict[str, Column] = {
            name: Texts.of(column.tolist()) if column.dtype == object else column
            for name, column in rows.columns.items()
        }
        missing = dict(zip(schema.optional, _flags(schema, rows), strict=True))
        ids, subjects = Texts.of(surviving.ids), Texts.of(surviving.subjects)
        return cls(columns, missing, surviving.stamps, ids, subjects, surviving.counts)

    @property
    def content(self) -> tuple[Column, ...]:
        """All that tells two records of one stamp apart."""
        return (*self.columns.values(), *self.missing.values(), self.ids, self.subjects)

    def rows(self) -> Rows:
        """Without stamps, ids, subjects and copies."""
        columns = {
            name: np.array(column.strings(), dtype=object) if isinstance(column, Texts) else column
            for name, column in self.columns.items()
        }
        missing = {name: flags.astype(np.bool_) for name, flags in self.missing.items() if flags.any()}
        return Rows(columns, len(self), missing=missing)

    def coded(self) -> dict[str, I64 | Coded]:
        """The fields, of texts the different ones and which of them each record has."""
        return {
            name: column.distinct() if isinstance(column, Texts) else column for name, column in self.columns.items()
        }

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


def _whole(
    schema: Schema, rows: Rows, stamps: I64, ids: list[str | None] | None, subjects: Subjects, counts: I64
) -> bytes:
    """One block that is not cut."""
    fields = (
        _text_part(column.tolist(), rows.count) if column.dtype == object else _number_part(column)
        for column in rows.columns.values()
    )
    numbers = (_number_part(stamps), _number_part(counts))
    names = (_text_part(texts, rows.count) for texts in (ids, subjects))
    return _encode([rows.count, *numbers, *fields, *map(_number_part, _flags(schema, rows)), *names])


def _flags(schema: Schema, rows: Rows) -> list[I64]:
    """For each field that may be missing: 1 where it is."""
    none = np.zeros(rows.count, dtype=np.bool_)
    return [rows.missing.get(name, none).astype(np.int64) for name in schema.optional]


def unpack(schema: Schema, blocks: Sequence[bytes]) -> Records:
    """The records of all blocks."""
    try:
        return _unpacked(schema, blocks)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
        raise VerificationError(f"expected blocks of records in the store, got something else ({error})") from None


def _unpacked(schema: Schema, blocks: Sequence[bytes]) -> Records:
    parts = [_decode(block) for block in blocks]
    for part, block in zip(parts, blocks, strict=True):
        # no two of its records are equal, so that it has bytes for each
        if not part or not is_int(part[0]) or not 1 <= part[0] <= len(block):
            raise ValueError("expected the number of records")
    return _records(schema, parts)


def _records(schema: Schema, parts: Sequence[list[Any]]) -> Records:
    width = len(schema.fields) + len(schema.optional) + 5
    if any(len(part) != width for part in parts):
        raise ValueError(f"expected {width} parts")
    sizes = [part[0] for part in parts]
    columns: dict[str, Column] = {}
    for position, (name, field) in enumerate(schema.fields.items(), start=3):
        own = [part[position] for part in parts]
        columns[name] = column = _texts(own, sizes) if field.interned else _numbers(own, sizes, _shape(field))
        if isinstance(column, Texts) and (column.lengths == ABSENT).any():
            raise ValueError("expected a text in every record")
    missing = {
        name: _numbers([part[position] for part in parts], sizes, ())
        for position, name in enumerate(schema.optional, start=3 + len(schema.fields))
    }
    stamps, counts = (_numbers([part[place] for part in parts], sizes, ()) for place in (1, 2))
    ids, subjects = (_texts([part[place] for part in parts], sizes) for place in (-2, -1))
    return Records(columns, missing, stamps, ids, subjects, counts)


def pack_stamped(schema: Schema, part: Stamped | None) -> bytes | None:
    """Records of the open round, which need not be different; None for none."""
    if part is None or not part.rows.count:
        return None
    counts = np.ones(part.rows.count, dtype=np.int64) if part.copies is None else part.copies
    return _whole(schema, part.rows, part.stamps, None, part.subjects, counts)


def unpack_stamped(schema: Schema, block: bytes | None) -> Stamped | None:
    if block is None:
        return None
    parts = _decode(block)
    records, who = _records(schema, [parts]), parts[-1]
    subjects = who.decode() if isinstance(who, bytes) else None if who is None else records.subjects.strings()
    return Stamped(records.rows(), records.stamps, subjects, copies=None if parts[2] == 1 else records.counts)


class _State(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What survives, in canonical order, as one block; without a byte where nothing does."""

    format: str
    version: int
    fields: list[str]
    records: bytes
    missing: list[str] = []
    """The fields that may be missing."""


class _Header(msgspec.Struct):
    format: str
    version: int


def to_bytes(schema: Schema, surviving: Surviving) -> bytes:
    """The canonical serialisation: equal bytes for equal surviving data."""
    rows, own = surviving.rows, surviving
    block = _whole(schema, rows, own.stamps, own.ids, own.subjects, own.counts) if rows.count else b""
    return _encode(_State(FORMAT, VERSION, list(schema.fields), block, list(schema.optional)))


def from_bytes(schema: Schema, state: bytes) -> Records:
    """What `to_bytes` was given; whatever it cannot have written is refused."""
    try:
        header = msgspec.msgpack.decode(state, type=_Header)
        if (header.format, header.version) != (FORMAT, VERSION):
            raise InputError(f"expected {FORMAT!r} version {VERSION}, got {header.format!r} version {header.version}")
        stored = msgspec.msgpack.decode(state, type=_State)
        if stored.fields != list(schema.fields):
            raise InputError(f"expected the fields {list(schema.fields)}, got {stored.fields}")
        if stored.missing != list(schema.optional):
            raise InputError("expected a column for each field that may be missing", place="missing")
        records = _unpacked(schema, [stored.records] if stored.records else [])
    except InputError:
        raise
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"expected the state of a ledger: {error}") from None
    for name, flags in records.missing.items():
        column, gone = records.columns[name], flags != 0
        there = column.lengths != 0 if isinstance(column, Texts) else column != np.array(schema.fields[name].blank)
        if (flags[gone] != 1).any() or there[gone].any():
            raise InputError("expected nothing where a value is missing", place=name)
    if (records.counts[records.ids.lengths != ABSENT] != 1).any():
        raise InputError("expected one record for each id", place="counts")
    return records


def _part(column: I64 | _TextParts, begin: int, end: int) -> Any:
    return column.part(begin, end) if isinstance(column, _TextParts) else _number_part(column[begin:end])


def _shape(field: Field) -> tuple[int, ...]:
    return (field.width,) if isinstance(field, Vector) else ()


def _number_part(column: I64) -> int | bytes:
    first = column[0]
    if column.ndim == 1 and (column == first).all():
        return int(first)
    return column.astype("<i8").tobytes()


def _numbers(parts: Sequence[int | bytes], sizes: Sequence[int], shape: tuple[int, ...]) -> I64:
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
        differs = (texts.lengths[1:] != texts.lengths[:-1]) | (texts.words[1:] != texts.words[:-1])
        self._different = np.concatenate([[0], np.cumsum(differs)])

    def part(self, begin: int, end: int) -> list[bytes] | bytes | None:
        own, last = self._lengths[begin:end], end
        if self._different[begin] == self._different[end - 1]:
            if own[0] == ABSENT:
                return None
            last = begin + 1
        content = self._content[self._bounds[begin] : self._bounds[last]]
        return content if last < end else [own.astype("<i4").tobytes(), content]


def _text_part(texts: Sequence[str | None] | str | None, count: int) -> list[str | None] | bytes | None:
    if texts is None:
        return None
    if isinstance(texts, str):
        texts = [texts] * count
    first = texts[0]
    if first == texts[-1] and texts.count(first) == count:
        return None if first is None else first.encode()
    return list(texts)


def _texts(parts: Sequence[list[Any] | bytes | None], sizes: Sequence[int]) -> Texts:
    if all(part is None for part in parts):
        return Texts.same(None, sum(sizes))
    lengths, contents = [], []
    for part, size in zip(parts, sizes, strict=True):
        if part is None:
            lengths.append(np.full(size, ABSENT, dtype="<i4"))
        elif isinstance(part, bytes):
            lengths.append(np.full(size, len(part), dtype="<i4"))
            contents.append(part * size)
        elif part and not isinstance(part[0], bytes):
            texts = Texts.of(part)
            lengths.append(texts.lengths)
            contents.append(texts.content())
        else:
            own, content = part
            lengths.append(np.frombuffer(own, dtype="<i4"))
            contents.append(content)
        if len(lengths[-1]) != size:
            raise ValueError(f"expected {size} lengths of texts, got {len(lengths[-1])}")
    return Texts.from_content(np.concatenate(lengths).astype(np.int32), b"".join(contents))
