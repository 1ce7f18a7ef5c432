"""What the open round holds, as bytes: every operation as it was checked at the door, until the round is sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from ..arrays import I64
from ..errors import VerificationError
from ..ledger import Removal, Updates
from ..ledger.folding import Subjects
from ..schema import Rows, Schema
from ..schema.field import Record


class Entry(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What was acknowledged at once: operations, how far they read a source, and the erasures they belong to."""

    operations: list[list[Any]]
    source: str | None = None
    position: list[int] | None = None
    delivered: list[int] = []
    requests: list[list[Any]] = []


class Recorded(Updates):
    """Updates that are kept a second time, in the form that is stored."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.unsaved: list[list[Any]] = []

    def add(self, rows: Rows, stamps: I64 | int, subjects: Subjects = None, ids: Sequence[str] | None = None) -> None:
        super().add(rows, stamps, subjects, ids)
        self._keep("add", rows, stamps, subjects, None if ids is None else list(ids))

    def add_one(self, record: Record, stamp: int, id: str | None = None, subject: str | None = None) -> None:
        super().add_one(record, stamp, id, subject)
        self.unsaved.append(["record", record, stamp, id, subject])

    def upsert(self, rows: Rows, stamps: I64 | int, subjects: Subjects, ids: Sequence[str], emptied: I64) -> None:
        super().upsert(rows, stamps, subjects, ids, emptied)
        self._keep("upsert", rows, stamps, subjects, list(ids), emptied.astype("<i8").tobytes())

    def delete(self, rows: Rows, stamps: I64 | int, subjects: Subjects = None) -> None:
        super().delete(rows, stamps, subjects)
        self._keep("delete", rows, stamps, subjects)

    def delete_one(self, record: Record, stamp: int, subject: str | None = None) -> None:
        super().delete_one(record, stamp, subject)
        self._keep("delete", Rows.from_tuples(self.schema, [record]), stamp, subject)

    def delete_ids(self, ids: Sequence[str]) -> None:
        super().delete_ids(ids)
        self.unsaved.append(["empty", list(ids)])

    def erase(self, subjects: Sequence[str]) -> None:
        super().erase(subjects)
        self.unsaved.append(["erase", list(subjects)])

    def erase_digests(self, digests: Sequence[bytes]) -> None:
        super().erase_digests(digests)
        self.unsaved.append(["digests", list(digests)])

    def _keep(self, kind: str, rows: Rows, stamps: I64 | int, subjects: Subjects, *more: Any) -> None:
        columns = [
            column.tolist() if column.dtype == object else column.astype("<i8").tobytes()
            for column in rows.columns.values()
        ]
        missing = {name: mask.tobytes() for name, mask in rows.missing.items()}
        each = stamps if isinstance(stamps, int) else np.asarray(stamps).astype("<i8").tobytes()
        owners = subjects if subjects is None or isinstance(subjects, str) else list(subjects)
        self.unsaved.append([kind, rows.count, columns, missing, each, owners, *more])


def write(entry: Entry) -> bytes:
    return msgspec.msgpack.encode(entry)


def read(stored: bytes) -> Entry:
    try:
        return msgspec.msgpack.decode(stored, type=Entry)
    except msgspec.MsgspecError as error:
        raise VerificationError(f"expected an entry of the inbox, got something else ({error})") from None


def replay(updates: Updates, operations: Sequence[Sequence[Any]]) -> None:
    """The operations once more, in order."""
    for kind, *parts in operations:
        if kind == "empty":
            updates.delete_ids(parts[0])
        elif kind == "erase":
            updates.erase(parts[0])
        elif kind == "digests":
            updates.erase_digests(parts[0])
        elif kind == "record":
            record, stamp, id, subject = parts
            vectors = (tuple(value) if isinstance(value, list) else value for value in record)
            updates.add_one(tuple(vectors), stamp, id, subject)
        else:
            count, columns, missing, stamps, subjects, *more = parts
            rows = _rows(updates.schema, count, columns, missing)
            each = stamps if isinstance(stamps, int) else np.frombuffer(stamps, dtype="<i8").astype(np.int64)
            if kind == "add":
                updates.add(rows, each, subjects, more[0])
            elif kind == "upsert":
                emptied = np.frombuffer(more[1], dtype="<i8").astype(np.int64)
                updates.upsert(rows, each, subjects, more[0], emptied)
            else:
                updates.delete(rows, each, subjects)


def without(schema: Schema, stored: Sequence[bytes], removal: Removal) -> list[bytes]:
    """The open round without what is removed from it; how far its sources were read stays."""
    left: list[Entry] = []
    read_on: dict[str, Entry] = {}
    event = 0
    for entry in map(read, stored):
        before, after = Updates(schema), Recorded(schema)
        replay(before, entry.operations)
        event = removal.left(before, after, event)
        if len(after) == len(before):
            after.unsaved = entry.operations
        if after.unsaved:
            left.append(Entry(after.unsaved, entry.source, entry.position, entry.delivered))
        elif entry.source is not None and entry.position is not None:
            known = read_on.setdefault(entry.source, Entry([], entry.source, entry.position))
            known.position = max(known.position or [], entry.position)
            known.delivered = [*known.delivered, *entry.delivered]
    return [write(entry) for entry in (*left, *read_on.values())]


def empties(operation: Sequence[Any]) -> bool:
    """Whether an operation deletes by id."""
    return operation[0] == "empty" or (operation[0] == "upsert" and len(operation[-1]) > 0)


def erasures(stored: Sequence[bytes]) -> list[bytes]:
    """The requests that the open round holds, and nothing else of it."""
    asked = [entry for entry in map(read, stored) if entry.requests]
    for entry in asked:
        entry.operations = [operation for operation in entry.operations if operation[0] in ("erase", "digests")]
        entry.source, entry.position, entry.delivered = None, None, []
    return [write(entry) for entry in asked]


def _rows(schema: Schema, count: int, columns: Sequence[Any], missing: Mapping[str, bytes]) -> Rows:
    decoded = {}
    for (name, empty), column in zip(Rows.empty(schema).columns.items(), columns, strict=True):
        if isinstance(column, bytes):
            decoded[name] = np.frombuffer(column, dtype="<i8").astype(np.int64).reshape(count, *empty.shape[1:])
        else:
            texts = np.empty(count, dtype=object)
            texts[:] = column
            decoded[name] = texts
    masks = {name: np.frombuffer(mask, dtype=np.bool_) for name, mask in missing.items()}
    return Rows(decoded, count, missing=masks)
