"""What the open round holds, as bytes: every entry as it was checked at the door, until the round is sealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from ..arrays import I64
from ..errors import VerificationError
from ..ledger import Entry, Operations, Removal, Single, Stamped
from ..schema import Rows, Schema


class _Stored(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """An entry. Its operations are those of a batch in their order, or the four parts of a single addition."""

    operations: list[Any]
    source: str | None = None
    position: list[int] | None = None
    delivered: list[int] = []
    requests: list[list[Any]] = []


def write(entry: Entry) -> bytes:
    batch = entry.operations
    if isinstance(batch, Single):
        operations: list[Any] = list(batch)
    else:
        stamped = (_packed(part) for part in (batch.added, batch.placed, batch.deleted))
        emptied = np.array(batch.emptied, dtype=np.int64)
        operations = [*stamped, list(batch.ids), _bytes(emptied), list(batch.erased), list(batch.digests)]
    position = None if entry.position is None else list(entry.position)
    requests = [list(request) for request in entry.requests]
    return msgspec.msgpack.encode(_Stored(operations, entry.source, position, list(entry.delivered), requests))


def read(schema: Schema, stored: bytes) -> Entry:
    entry = _read(stored)
    return replace(_without_operations(entry), operations=_operations(schema, entry.operations))


def requests(stored: Sequence[bytes]) -> list[list[Any]]:
    """The erasures that the open round holds."""
    return [request for entry in map(_read, stored) for request in entry.requests]


def erasures(schema: Schema, stored: Sequence[bytes]) -> list[bytes]:
    """The same as entries, with nothing else of the open round."""
    kept = []
    for entry in (read(schema, each) for each in stored):
        batch = entry.operations
        if entry.requests and isinstance(batch, Operations):
            kept.append(Entry(Operations(erased=batch.erased, digests=batch.digests), requests=entry.requests))
    return [write(entry) for entry in kept]


def without(schema: Schema, stored: Sequence[bytes], removal: Removal) -> list[bytes]:
    """The open round without what is removed from it; how far its sources were read stays."""
    left: list[Entry] = []
    read_on: dict[str, Entry] = {}
    event = 0
    for entry in (read(schema, each) for each in stored):
        batch = entry.operations
        before = Operations.of_singles(schema, [batch]) if isinstance(batch, Single) else batch
        after = removal.left(before, event)
        event += len(before.ids)
        if len(after) == len(before):
            left.append(replace(entry, requests=()))
        elif len(after):
            left.append(replace(entry, operations=after, requests=()))
        elif entry.source is not None:
            known = read_on.get(entry.source, entry)
            position = max(known.position or (), entry.position or ())
            delivered = [*known.delivered, *entry.delivered] if known is not entry else entry.delivered
            read_on[entry.source] = Entry(Operations(), entry.source, position, delivered)
    return [write(entry) for entry in (*left, *read_on.values())]


def _read(stored: bytes) -> _Stored:
    try:
        return msgspec.msgpack.decode(stored, type=_Stored)
    except msgspec.MsgspecError as error:
        raise VerificationError(f"expected an entry of the inbox, got something else ({error})") from None


def _without_operations(entry: _Stored) -> Entry:
    position = None if entry.position is None else tuple(entry.position)
    return Entry(Operations(), entry.source, position, entry.delivered, entry.requests)


def _operations(schema: Schema, stored: Sequence[Any]) -> Operations | Single:
    if len(stored) == 4:
        record, *rest = stored
        return Single(tuple(tuple(value) if isinstance(value, list) else value for value in record), *rest)
    *stamped, ids, emptied, erased, digests = stored
    added, placed, deleted = (_unpacked(schema, part) for part in stamped)
    return Operations(added, placed, deleted, ids, _numbers(emptied).tolist(), erased, digests)


def _packed(part: Stamped | None) -> list[Any] | None:
    if part is None:
        return None
    columns = [column.tolist() if column.dtype == object else _bytes(column) for column in part.rows.columns.values()]
    missing = {name: mask.tobytes() for name, mask in part.rows.missing.items()}
    stamps = int(part.stamps[0]) if part.rows.count and (part.stamps == part.stamps[0]).all() else _bytes(part.stamps)
    subjects = part.subjects if part.subjects is None or isinstance(part.subjects, str) else list(part.subjects)
    copies = None if part.copies is None else _bytes(part.copies)
    return [part.rows.count, columns, missing, stamps, subjects, copies]


def _unpacked(schema: Schema, stored: Sequence[Any] | None) -> Stamped | None:
    if stored is None:
        return None
    count, columns, missing, stamps, subjects, copies = stored
    decoded = {}
    for (name, empty), column in zip(Rows.empty(schema).columns.items(), columns, strict=True):
        if isinstance(column, bytes):
            decoded[name] = _numbers(column).reshape(count, *empty.shape[1:])
        else:
            texts = np.empty(count, dtype=object)
            texts[:] = column
            decoded[name] = texts
    masks = {name: np.frombuffer(mask, dtype=np.bool_) for name, mask in missing.items()}
    rows, each = Rows(decoded, count, missing=masks), stamps if isinstance(stamps, int) else _numbers(stamps)
    return replace(Stamped.of(rows, each, subjects), copies=None if copies is None else _numbers(copies))


def _bytes(numbers: I64) -> bytes:
    return numbers.astype("<i8").tobytes()


def _numbers(stored: bytes) -> I64:
    return np.frombuffer(stored, dtype="<i8").astype(np.int64)
