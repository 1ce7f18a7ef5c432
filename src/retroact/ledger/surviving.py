"""Surviving records in canonical order: what is asked of a ledger, and what is stored of it.

The order is by stamp, then by the fields as declared (text by its UTF-8 bytes, a missing value as the field's `blank`),
then by which of them are missing, then id, then subject, None first. It depends on the surviving data alone: not on
arrival order, batches, codes or hash seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError
from retroact.ledger.sorted_keys import Integers
from retroact.schema import Rows, Schema, Vector

FORMAT = "retroact ledger"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Surviving:
    """Distinct surviving records, and how many copies there are of each."""

    rows: Rows
    stamps: Integers
    ids: list[str | None]
    subjects: list[str | None]
    counts: Integers

    def __len__(self) -> int:
        """The number of copies."""
        return int(self.counts.sum())


class _State(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Integers are 64 bits, little-endian; text and subjects are indices into sorted lists of the distinct ones."""

    format: str
    version: int
    fields: list[str]
    stamps: bytes
    counts: bytes
    columns: list[bytes]
    texts: list[list[str]]
    """For each text field, in declared order."""
    subjects: list[str]
    owners: bytes
    """One more than the index of each record's subject; 0 for nobody."""
    ids: list[str]
    identified: bytes
    """The positions of the records with an id."""
    missing: list[bytes] = []
    """For each field that may be missing, in declared order: 1 where it is."""


class _Header(msgspec.Struct):
    format: str
    version: int


def to_bytes(schema: Schema, surviving: Surviving) -> bytes:
    """The canonical serialisation: equal bytes for equal surviving data."""
    columns, texts = [], []
    for name, field in schema.fields.items():
        column = surviving.rows.columns[name]
        if field.interned:
            distinct = sorted(set(column.tolist()))
            index = {text: number for number, text in enumerate(distinct)}
            column = np.array([index[text] for text in column.tolist()], dtype=np.int64)
            texts.append(distinct)
        columns.append(_bytes(column))
    subjects = sorted({subject for subject in surviving.subjects if subject is not None})
    owner: dict[str | None, int] = {None: 0} | {subject: number for number, subject in enumerate(subjects, start=1)}
    identified = [position for position, id in enumerate(surviving.ids) if id is not None]
    return msgspec.msgpack.encode(
        _State(
            format=FORMAT,
            version=VERSION,
            fields=list(schema.fields),
            stamps=_bytes(surviving.stamps),
            counts=_bytes(surviving.counts),
            columns=columns,
            texts=texts,
            subjects=subjects,
            owners=_bytes(np.array([owner[subject] for subject in surviving.subjects], dtype=np.int64)),
            ids=[id for id in surviving.ids if id is not None],
            identified=_bytes(np.array(identified, dtype=np.int64)),
            missing=[_bytes(_flags(surviving.rows, name)) for name in schema.optional],
        )
    )


def from_bytes(schema: Schema, state: bytes) -> Surviving:
    """What `to_bytes` was given; whatever it cannot have written is refused."""
    try:
        header = msgspec.msgpack.decode(state, type=_Header)
        if (header.format, header.version) != (FORMAT, VERSION):
            raise InputError(f"expected {FORMAT!r} version {VERSION}, got {header.format!r} version {header.version}")
        stored = msgspec.msgpack.decode(state, type=_State)
    except msgspec.MsgspecError as error:
        raise InputError(f"expected the state of a ledger: {error}") from None
    if stored.fields != list(schema.fields):
        raise InputError(f"expected the fields {list(schema.fields)}, got {stored.fields}")
    interned = sum(field.interned for field in schema.fields.values())
    if (len(stored.columns), len(stored.texts)) != (len(stored.fields), interned):
        raise InputError("expected a column for each field, and a list for each text field", place="columns")
    if len(stored.missing) != len(schema.optional):
        raise InputError("expected a column for each field that may be missing", place="missing")
    count = len(stored.stamps) // 8
    texts = iter(stored.texts)
    columns: dict[str, NDArray[np.int64] | NDArray[np.object_]] = {}
    for (name, field), column in zip(schema.fields.items(), stored.columns, strict=True):
        if field.interned:
            distinct = np.array(next(texts), dtype=object)
            columns[name] = distinct[_numbers(column, (count,), name, below=len(distinct))]
        else:
            shape = (count, field.width) if isinstance(field, Vector) else (count,)
            columns[name] = _numbers(column, shape, name)
    missing = {}
    for name, flags in zip(schema.optional, stored.missing, strict=True):
        mask = _numbers(flags, (count,), f"missing {name}", below=2).astype(np.bool_)
        if (columns[name][mask] != np.array(schema.fields[name].blank, dtype=columns[name].dtype)).any():
            raise InputError("expected nothing where a value is missing", place=name)
        if mask.any():
            missing[name] = mask
    stamps = _numbers(stored.stamps, (count,), "stamps")
    counts = _numbers(stored.counts, (count,), "counts")
    owners = _numbers(stored.owners, (count,), "owners", below=len(stored.subjects) + 1)
    identified = _numbers(stored.identified, (len(stored.ids),), "identified", below=count)
    if count and (int(stamps.min()) < 1 or int(counts.min()) < 1):
        raise InputError("expected stamps and counts from 1")
    if len(set(stored.ids)) != len(stored.ids) or len(np.unique(identified)) != len(identified):
        raise InputError("expected every id once", place="ids")
    if (counts[identified] != 1).any():
        raise InputError("expected one record for each id", place="counts")
    ids: list[str | None] = [None] * count
    for position, id in zip(identified.tolist(), stored.ids, strict=True):
        ids[position] = id
    subjects: list[str | None] = [None, *stored.subjects]
    rows = Rows(columns, count, missing=missing)
    return Surviving(rows, stamps, ids, [subjects[owner] for owner in owners.tolist()], counts)


def _flags(rows: Rows, name: str) -> NDArray[np.int64]:
    return rows.missing.get(name, np.zeros(rows.count, np.bool_)).astype(np.int64)


def _bytes(numbers: NDArray[np.int64]) -> bytes:
    return numbers.astype("<i8").tobytes()


def _numbers(stored: bytes, shape: tuple[int, ...], place: str, *, below: int | None = None) -> NDArray[np.int64]:
    if len(stored) != 8 * int(np.prod(shape, dtype=np.int64)):
        raise InputError(f"expected {shape} integers of 8 bytes, got {len(stored)} bytes", place=place)
    numbers = np.frombuffer(stored, dtype="<i8").astype(np.int64).reshape(shape)
    if below is not None and len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < below:
        raise InputError(f"expected indices below {below}", place=place)
    return numbers


def label(id: str | None, subject: str | None) -> tuple[bool, str, bool, str]:
    """Sorts by id, then by subject, None first."""
    return id is not None, id or "", subject is not None, subject or ""
