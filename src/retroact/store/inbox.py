"""The entries of the open round as bytes, kept until the round is sealed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..errors import VerificationError
from ..ledger import Entry, Operations, Removal, Single
from ..ledger.codec import pack_whole, packed, unpack_whole
from ..schema import Schema

_Stored = tuple[list[Any], str | None, tuple[int, ...] | None, list[int], list[list[Any]]]
"""An entry. Its operations are the fields of a batch, or the four fields of a single addition."""


def write(schema: Schema, entry: Entry) -> bytes:
    batch = entry.operations
    if isinstance(batch, Single):
        operations: list[Any] = list(batch)
    else:
        stamped = (pack_whole(schema, part, narrow=True) for part in (batch.added, batch.placed, batch.deleted))
        operations = [
            *stamped,
            packed(batch.ids),
            list(map(int, batch.emptied)),
            list(batch.erased),
            list(batch.digests),
        ]
    return msgspec.msgpack.encode(
        [operations, entry.source, entry.position, list(entry.delivered), list(map(list, entry.requests))]
    )


def read(schema: Schema, stored: bytes) -> Entry:
    operations, source, position, delivered, requests = _read(stored)
    return Entry(_operations(schema, operations), source, position, delivered, requests)


def requests(stored: Sequence[bytes]) -> list[list[Any]]:
    """The requests for erasure in the open round."""
    return [request for *_, requests in map(_read, stored) for request in requests]


def erasures(schema: Schema, stored: Sequence[bytes]) -> list[bytes]:
    """Entries with the erasures of the open round and nothing else."""
    kept = []
    for entry in (read(schema, each) for each in stored):
        batch = entry.operations
        if entry.requests and isinstance(batch, Operations):
            kept.append(Entry(Operations(erased=batch.erased, digests=batch.digests), requests=entry.requests))
    return [write(schema, entry) for entry in kept]


def without(schema: Schema, stored: Sequence[bytes], removal: Removal) -> list[bytes]:
    """The open round after a removal; how far its sources were read is kept."""
    left: list[Entry] = []
    read_on: dict[str, Entry] = {}
    event = 0
    for entry in (read(schema, each) for each in stored):
        batch = entry.operations
        before = Operations.of_singles(schema, batch) if isinstance(batch, Single) else batch
        after = removal.left(before, event)
        event += len(before.ids)
        if len(after) == len(before):
            left.append(msgspec.structs.replace(entry, requests=()))
        elif len(after):
            left.append(msgspec.structs.replace(entry, operations=after, requests=()))
        elif entry.source is not None:
            known = read_on.get(entry.source, entry)
            position = max(known.position or (), entry.position or ())
            delivered = [*known.delivered, *entry.delivered] if known is not entry else entry.delivered
            read_on[entry.source] = Entry(Operations(), entry.source, position, delivered)
    return [write(schema, entry) for entry in (*left, *read_on.values())]


def _read(stored: bytes) -> _Stored:
    try:
        entry: _Stored = msgspec.msgpack.decode(stored, type=_Stored)
    except msgspec.MsgspecError as error:
        raise _not_an_entry(error) from None
    return entry


def _operations(schema: Schema, stored: Sequence[Any]) -> Operations | Single:
    if len(stored) == 4:
        record, *rest = stored
        return Single(tuple(tuple(value) if isinstance(value, list) else value for value in record), *rest)
    *stamped, ids, emptied, erased, digests = stored
    try:
        added, placed, deleted = (unpack_whole(schema, part) for part in stamped)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _not_an_entry(error) from None
    return Operations(added, placed, deleted, ids, emptied, erased, digests)


def _not_an_entry(error: Exception) -> VerificationError:
    return VerificationError(f"expected an entry of the inbox, got something else ({error})")
