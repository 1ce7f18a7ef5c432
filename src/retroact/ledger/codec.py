"""Records as bytes: the only form in which states, stores and the open round keep them.

Records are packed in columns and cut into blocks; many blocks are read at once. A block is a list: the number of
records, stamps, copies, the fields as declared, a flag column for each optional field, ids, subjects. Numbers are 64
bits, little-endian, or fewer in the open round; a single number stands for a column of equal ones. Texts are their
lengths and their concatenated UTF-8 bytes, or a list where a block is not cut; a single text, as bytes, or None, stands
for a column of equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import msgspec
import numpy as np

from ..arrays import I64, Mask
from ..checks import is_int
from ..errors import InputError, VerificationError
from ..schema import Rows, Schema
from ..texts import ABSENT, Texts, places_of
from .operations import NO_RECORDS, Stamped

FORMAT = "retroact ledger"
VERSION = 2
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode
Column = I64 | Texts
MANY = 64
"""Columns of fewer texts are encoded one by one."""
_SHORT = 31
_NARROW = ((8, "<i1"), (16, "<i2"), (32, "<i4"))


class Records(msgspec.Struct, frozen=True, eq=False):
    """Records in columns. The counts of a change may be negative."""

    schema: Schema
    stamps: I64
    counts: I64
    content: Sequence[Column]
    """Everything but stamp and count, in the order of a block: fields, flags of optional fields, ids, subjects."""

    @classmethod
    def of(cls, part: Stamped, schema: Schema) -> Records:
        rows = part.rows
        fields = (Texts.of(column.tolist()) if column.dtype == object else column for column in rows.columns.values())
        names = Texts.of([None] * rows.count if part.ids is None else part.ids), Texts.of(part.owners())
        return cls(schema, part.stamps, part.counts, [*fields, *_flags(schema, rows), *names])

    @property
    def columns(self) -> dict[str, Column]:
        return dict(zip(self.schema.fields, self.content, strict=False))

    @property
    def missing(self) -> dict[str, I64]:
        """For each optional field: 1 where it is missing, else 0."""
        flags = cast(Sequence[I64], self.content[len(self.schema.fields) : -2])
        return dict(zip(self.schema.optional, flags, strict=True))

    @property
    def ids(self) -> Texts:
        return cast(Texts, self.content[-2])

    @property
    def subjects(self) -> Texts:
        return cast(Texts, self.content[-1])

    def rows(self) -> Rows:
        """The fields alone."""
        columns = {
            name: np.array(column.strings(), dtype=object) if isinstance(column, Texts) else column
            for name, column in self.columns.items()
        }
        missing = {name: flags.astype(np.bool_) for name, flags in self.missing.items() if flags.any()}
        return Rows(columns, len(self), missing=missing)

    def __len__(self) -> int:
        return len(self.stamps)

    def take(self, where: Any) -> Records:
        content = [column[where] for column in self.content]
        return Records(self.schema, self.stamps[where], self.counts[where], content)

    def followed_by(self, other: Records) -> Records:
        return Records(
            self.schema,
            np.concatenate([self.stamps, other.stamps]),
            np.concatenate([self.counts, other.counts]),
            [_joined(one, more) for one, more in zip(self.content, other.content, strict=True)],
        )


def _joined(one: Column, more: Column) -> Column:
    if isinstance(one, Texts):
        return one.followed_by(cast(Texts, more))
    return np.concatenate([one, cast(I64, more)])


def pack(records: Records, cuts: Sequence[int]) -> list[bytes]:
    """One block for the records between each pair of neighbouring cuts."""
    columns = [
        _text_parts(column, cuts) if isinstance(column, Texts) else _number_parts(column, cuts)
        for column in (records.stamps, records.counts, *records.content)
    ]
    return [_encode([end - begin, *parts]) for (begin, end), *parts in zip(pairwise(cuts), *columns, strict=True)]


def pack_whole(schema: Schema, part: Stamped, *, narrow: bool = False) -> bytes | None:
    """All records, which may be equal, as one block; None if there are none. `narrow`: numbers take as few bytes as the
    largest one in their column."""
    rows = part.rows
    if not rows.count:
        return None
    fields = (
        _text_part(column.tolist()) if column.dtype == object else _number_part(column, narrow)
        for column in rows.columns.values()
    )
    numbers = (_number_part(part.stamps), _number_part(part.counts))
    names = (_text_part(texts) for texts in (part.ids, part.subjects))
    return _encode([rows.count, *numbers, *fields, *map(_number_part, _flags(schema, rows)), *names])


def _flags(schema: Schema, rows: Rows) -> list[I64]:
    """The flags of the optional fields: 1 where one is missing."""
    none = np.zeros(rows.count, dtype=np.bool_)
    return [rows.missing.get(name, none).astype(np.int64) for name in schema.optional]


def unpack(schema: Schema, blocks: Sequence[bytes]) -> Records:
    try:
        return _unpacked(schema, blocks)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
        raise VerificationError(f"expected blocks of records in the store, got something else ({error})") from None


def _unpacked(schema: Schema, blocks: Sequence[bytes]) -> Records:
    parts = [_decode(block) for block in blocks]
    for part, block in zip(parts, blocks, strict=True):
        # its records are distinct, so it has at least a byte for each
        if not part or not is_int(part[0]) or not 1 <= part[0] <= len(block):
            raise ValueError("expected the number of records")
    return _records(schema, parts)


def _records(schema: Schema, parts: Sequence[list[Any]]) -> Records:
    fields, flags = schema.fields.values(), len(schema.optional)
    width = len(fields) + flags + 5
    if any(len(part) != width for part in parts):
        raise ValueError(f"expected {width} parts")
    sizes, stamps, counts, *content = ([part[place] for part in parts] for place in range(width))
    columns: list[Column] = []
    for field, own in zip(fields, content, strict=False):
        column = _texts(own, sizes) if field.interned else _numbers(own, sizes, field.shape)
        if isinstance(column, Texts) and (column.lengths == ABSENT).any():
            raise ValueError("expected a text in every record")
        columns.append(column)
    columns += [_numbers(own, sizes, ()) for own in content[len(fields) : -2]]
    columns += [_texts(own, sizes) for own in content[-2:]]
    return Records(schema, _numbers(stamps, sizes, ()), _numbers(counts, sizes, ()), columns)


def unpack_whole(schema: Schema, block: bytes | None) -> Stamped:
    """Records of the open round, which have no ids here."""
    if block is None:
        return NO_RECORDS
    parts = _decode(block)
    records, who = _records(schema, [parts]), parts[-1]
    subjects = who.decode() if isinstance(who, bytes) else None if who is None else records.subjects.strings()
    return Stamped(records.rows(), records.stamps, subjects, copies=None if parts[2] == 1 else records.counts)


class _Header(msgspec.Struct):
    format: str
    version: int


class _State(_Header, forbid_unknown_fields=True, omit_defaults=True):
    """The surviving records in canonical order as one block, which is empty if nothing survives."""

    fields: list[str]
    records: bytes
    missing: list[str] = []
    """The optional fields."""


def to_bytes(schema: Schema, surviving: Stamped) -> bytes:
    """The canonical serialisation: equal bytes for equal surviving data."""
    block = pack_whole(schema, surviving) or b""
    return _encode(_State(FORMAT, VERSION, list(schema.fields), block, list(schema.optional)))


def from_bytes(schema: Schema, state: bytes) -> Records:
    """What `to_bytes` was given. Anything that it cannot have written is refused."""
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


def _number_parts(column: I64, cuts: Sequence[int]) -> list[int | bytes]:
    wide = 8 * int(np.prod(column.shape[1:], dtype=np.int64))
    data = column.astype("<i8", copy=False).tobytes()
    parts: list[int | bytes] = [data[wide * begin : wide * end] for begin, end in pairwise(cuts)]
    if column.ndim == 1:
        same = _uniform(cuts, lambda one, more: column[one] == column[more])
        for place, first in zip(same.tolist(), column[np.array(cuts)[same]].tolist(), strict=True):
            parts[place] = first
    return parts


def _uniform(cuts: Sequence[int], equal: Callable[[I64, I64], Mask]) -> I64:
    """The blocks whose entries are all equal. `equal` compares entries at two lists of places."""
    at = np.array(cuts)
    begins, sizes = at[:-1], np.diff(at)
    maybe = np.flatnonzero(equal(begins, at[1:] - 1))
    if len(maybe):
        sizes = sizes[maybe]
        same = equal(places_of(begins[maybe], sizes), np.repeat(begins[maybe], sizes))
        maybe = maybe[np.logical_and.reduceat(same, np.cumsum(sizes) - sizes)]
    return maybe


def _number_part(column: I64, narrow: bool = False) -> int | bytes:
    first = column[0]
    if column.ndim == 1 and (column == first).all():
        return int(first)
    reach = max(-1 - int(column.min()), int(column.max())).bit_length() if narrow else 64
    return column.astype(next((kind for bits, kind in _NARROW if reach < bits), "<i8")).tobytes()


def _numbers(parts: Sequence[int | bytes], sizes: Sequence[int], shape: tuple[int, ...]) -> I64:
    wide = int(np.prod(shape, dtype=np.int64))
    pieces = []
    for part, size in zip(parts, sizes, strict=True):
        if isinstance(part, int):
            pieces.append(np.full(size, part, dtype="<i8"))
        else:
            kinds = {wide * size * bits // 8: kind for bits, kind in (*_NARROW, (64, "<i8"))}
            if len(part) not in kinds:
                raise ValueError(f"expected {8 * wide * size} bytes of numbers, got {len(part)}")
            pieces.append(np.frombuffer(part, dtype=kinds[len(part)]).astype(np.int64))
    flat = np.concatenate(pieces) if pieces else np.zeros(0, dtype="<i8")
    return flat.astype(np.int64, copy=False).reshape(-1, *shape)


def _text_parts(texts: Texts, cuts: Sequence[int]) -> list[list[bytes] | bytes | None]:
    lengths, content = texts.lengths, texts.content()
    sizes = lengths.astype("<i4", copy=False).tobytes()
    bounds = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))])[cuts].tolist()
    parts: list[list[bytes] | bytes | None] = [
        [sizes[4 * begin : 4 * end], content[first:last]]
        for (begin, end), (first, last) in zip(pairwise(cuts), pairwise(bounds), strict=True)
    ]
    for place in _uniform(cuts, lambda one, more: texts[one].equal(texts[more])).tolist():
        begin, first = cuts[place], bounds[place]
        if lengths[begin] == ABSENT:
            parts[place] = None
        elif cuts[place + 1] - begin > 1:
            parts[place] = content[first : first + lengths[begin]]
    return parts


def _text_part(texts: Sequence[str | None] | str | None) -> list[str | None] | msgspec.Raw | bytes | None:
    if texts is None or isinstance(texts, str):
        return None if texts is None else texts.encode()
    first = texts[0]
    if first == texts[-1] and texts.count(first) == len(texts):
        return None if first is None else first.encode()
    return packed(texts)


def packed(texts: Sequence[str | None]) -> list[str | None] | msgspec.Raw:
    """Texts to be encoded; those of a column as they lie there, without an object for each."""
    if not isinstance(texts, Texts) or len(texts) < MANY or int(texts.lengths.max()) >= 1 << 8:
        return list(texts)
    content, lengths, sizes = texts.content(), texts.lengths, np.maximum(texts.lengths, 0)
    if not content.isascii():
        return list(texts)
    # as MessagePack has it: a text of up to 31 bytes and none begin with one byte, others with two
    heads = 1 + (sizes > _SHORT)
    ends = np.cumsum(heads + sizes)
    begins = ends - (heads + sizes)
    data, own = np.empty(int(ends[-1]), np.uint8), np.ones(int(ends[-1]), np.bool_)
    data[begins] = np.where(lengths == ABSENT, 0xC0, np.where(heads == 1, 0xA0 | sizes, 0xD9))
    own[begins] = False
    seconds, long = begins[heads > 1] + 1, sizes[heads > 1]
    data[seconds], own[seconds] = long, False
    data[own] = np.frombuffer(content, np.uint8)
    count = len(texts)
    head = b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
    return msgspec.Raw(head + data.tobytes())


def _texts(parts: Sequence[list[Any] | bytes | None], sizes: Sequence[int]) -> Texts:
    lengths, contents = [np.zeros(0, dtype="<i4")], []
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
    return Texts.from_content(np.concatenate(lengths, dtype=np.int32), b"".join(contents))
