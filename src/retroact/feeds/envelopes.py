"""The envelopes that a JSON line may come in, and how each is told from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import msgspec

from retroact.errors import InputError
from retroact.feeds.debezium import Debezium
from retroact.feeds.events import OPS, Event
from retroact.feeds.operation_words import OPERATION_COLUMNS, WEIGHT_COLUMNS, WORDS, copied, kind_of, update, weigh
from retroact.feeds.shapes import Shape
from retroact.messages import mismatch, show
from retroact.schema import Schema

NATIVE, PLAIN, CHANGES, WRAPPED = "native events", "plain records", "insert/delete", "Debezium with its schema"
DEBEZIUM = "Debezium"
PROGRESS = "mz_progressed"
KEYS = tuple(Event.__struct_fields__)
_CHANGES = ("insert", "delete", "update")
MARKS = (*_CHANGES, "payload", "op")
"""Keys of envelopes, which no plain record has."""
IMAGES = ("before", "after")
"""Both together are such a mark, too."""


class Envelope(Protocol):
    """How the lines of one envelope become events."""

    label: str

    def parse(self, text: bytes) -> Event | list[Event]: ...

    def check(self, value: Any) -> None: ...


def recognise(
    value: Any, fields: set[str], columns: set[str], beside: Collection[str] = (), operation: str | None = None
) -> str | None:
    """The envelope of a decoded line; None where it may be that of several, or of none.

    ``operation`` is the column that says what is done, where that has a name of its own.

    ``columns`` are the fields and the columns of roles, those ``beside`` of times and positions: keys that are data.

    >>> recognise({"op": "c", "after": {"amount": 1}}, {"amount"}, {"amount"})
    'Debezium'
    >>> recognise({"amount": 1, "mz_diff": 1}, {"amount"}, {"amount"}), recognise({"amount": 1}, {"amount"}, {"amount"})
    ("plain records with weights in 'mz_diff'", 'plain records')
    >>> recognise({"op": "close"}, {"amount"}, {"amount"})
    """
    if isinstance(value, list) and value and isinstance(value[0], dict) and {*value[0]} <= {*_CHANGES}:
        return CHANGES
    if not isinstance(value, dict) or is_progress(value):
        return None
    data = {*columns, *beside}
    if "payload" in value and "payload" not in data:
        payload = value["payload"]
        return WRAPPED if isinstance(payload, dict) and "op" in payload else None
    if value and {*value} <= {*_CHANGES} - data:
        return CHANGES
    if operation is not None and operation in value:
        return weighted(operation) if operation in WEIGHT_COLUMNS else worded(operation)
    if "op" in value and "op" not in data:
        return _by_op(value, columns)
    for column in OPERATION_COLUMNS:
        if column in value and column not in data:
            return worded(column)
    for column in WEIGHT_COLUMNS:
        if column in value and column not in data:
            return weighted(column)
    return PLAIN if mark_in(value, data) is None and (not fields or columns & {*value}) else None


def mark_in(value: Any, data: Collection[str]) -> str | None:
    """A key that a plain record has only where it is data.

    >>> mark_in({"delete": {"id": 1}}, {"amount"}), mark_in({"before": {}, "after": {}}, {}), mark_in({"after": 1}, {})
    ('delete', 'before', None)
    """
    keys = {*value}.difference(data) if isinstance(value, dict) else set()
    return next((key for key in MARKS if key in keys), "before" if keys.issuperset(IMAGES) else None)


def _by_op(value: Mapping[str, Any], columns: set[str]) -> str | None:
    op = value["op"]
    if isinstance(op, str) and ("before" in value or "after" in value or (op in ("t", "m") and "source" in value)):
        return DEBEZIUM
    row = bool(columns & {*value} - {*KEYS}) and "record" not in value
    if op in OPS:
        if op in ("close", "erase") and not row:
            return None
        return worded("op") if row else NATIVE
    return worded("op") if row and isinstance(op, str) and op in WORDS else None


def worded(column: str) -> str:
    return f"plain records with operations in {show(column)}"


def weighted(column: str) -> str:
    return f"plain records with weights in {show(column)}"


def is_progress(value: Any) -> bool:
    return isinstance(value, dict) and value.get(PROGRESS) is True


def row_in(label: str, value: Any) -> Mapping[str, Any]:
    """The columns of the first event, for whoever wants to see them."""
    if label == CHANGES:
        change = value[0] if isinstance(value, list) else value
        row = next(iter(change.values()))
    elif label in (DEBEZIUM, WRAPPED):
        change = value["payload"] if label == WRAPPED else value
        row = change.get("after") or change.get("before")
    else:
        row = value.get("record") if label == NATIVE else value
    return row if isinstance(row, dict) else {}


def places_in(label: str, path: str) -> list[tuple[str, ...]]:
    """Where a line may hold what a column, or a dotted path from the top of the event, names.

    >>> places_in("Debezium", "created"), places_in("Debezium with its schema", "source.lsn")
    ([('after', 'created'), ('before', 'created')], [('payload', 'source', 'lsn')])
    """
    parts = tuple(path.split("."))
    if label in (DEBEZIUM, WRAPPED):
        top: tuple[str, ...] = ("payload",) if label == WRAPPED else ()
        if len(parts) > 1 or path in ("ts_ms", "ts_us", "ts_ns"):
            return [top + parts]
        return [(*top, "after", path), (*top, "before", path)]
    if label == CHANGES:
        return [(change, *parts) for change in _CHANGES]
    return [parts, ("record", *parts)] if label == NATIVE else [parts]


def of_row(label: str, path: str | None) -> str | None:
    """The path, if it is a column of the row itself."""
    if path is None or label == NATIVE:
        return None
    whole = label not in (DEBEZIUM, WRAPPED)
    return path if whole or any("after" in place[:-1] for place in places_in(label, path)) else None


def operation_in(label: str, own: str | None = None) -> str | None:
    """The column that an envelope of rows says what is done by."""
    every = (*OPERATION_COLUMNS, *WEIGHT_COLUMNS, *([own] if own else []))
    return next((column for column in every if label in (worded(column), weighted(column))), None)


def envelope_for(
    label: str, shape: Shape, schema: Schema, skipped: Counter[str], contribution: int | None, column: str | None
) -> Envelope:
    """The envelope of this name, for all but native events and plain records."""
    if label in (DEBEZIUM, WRAPPED):
        return Debezium(shape, schema, skipped, wrapped=label == WRAPPED)
    if label == CHANGES:
        return InsertsAndDeletes(shape, schema)
    assert column is not None
    if label == worded(column):
        return Worded(shape, schema, column)
    return Weighted(shape, schema, skipped, column, contribution)


class InsertsAndDeletes:
    """{"insert": {...}}, {"delete": {...}} and {"update": {...}}, or several of them as an array."""

    label = CHANGES

    def __init__(self, shape: Shape, schema: Schema) -> None:
        self._shape = shape
        self._schema = schema
        unset = msgspec.UnsetType
        whole, brief = shape.whole(), shape.brief()
        columns = [("insert", whole), ("delete", brief), ("update", whole)]
        parts: list[Any] = [(name, kind | unset, msgspec.UNSET) for name, kind in columns]
        change = msgspec.defstruct("Change", parts, forbid_unknown_fields=True, gc=False)
        self._one = msgspec.json.Decoder(change).decode
        self._many = msgspec.json.Decoder(list[change]).decode  # type: ignore[valid-type]

    def parse(self, text: bytes) -> Event | list[Event]:
        if text[:1] == b"[" or text.lstrip()[:1] == b"[":
            return [self._event(change) for change in self._many(text)]
        return self._event(self._one(text))

    def _event(self, change: Any) -> Event:
        insert, delete, changed = change.insert, change.delete, change.update
        unset = msgspec.UNSET
        if insert is not unset and delete is unset and changed is unset:
            return self._shape.added(insert)
        if delete is not unset and insert is unset and changed is unset:
            return self._shape.removed(delete)
        if changed is not unset and insert is unset and delete is unset:
            return update(self._shape.added(changed))
        raise InputError(f"expected one of {', '.join(_CHANGES)} in an event")

    def check(self, value: Any) -> None:
        for position, change in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(change, dict) or not {*change} <= {*_CHANGES}:
                raise mismatch('an object such as {"insert": {...}}', change, None)
            for name, row in change.items():
                place = f"[{position}].{name}" if isinstance(value, list) else name
                if not isinstance(row, dict):
                    raise mismatch("an object", row, place)
                self._shape.check(row, self._schema, brief=name == "delete")


class Worded:
    """Rows with a word for what is done with them: Flink's +I, -U, +U, -D, Delta's change types and the like."""

    def __init__(self, shape: Shape, schema: Schema, column: str) -> None:
        self.label = worded(column)
        self._shape = shape
        self._schema = schema
        self._column = column
        beside: list[Any] = [("word_", Any, msgspec.field(name=column))]
        self._whole = msgspec.json.Decoder(shape.whole(beside)).decode
        self._brief = msgspec.json.Decoder(shape.brief(beside)).decode

    def parse(self, text: bytes) -> Event | list[Event]:
        try:
            row = self._whole(text)
            kind = kind_of(row.word_, self._column)
        except msgspec.ValidationError:
            row = self._brief(text)
            kind = kind_of(row.word_, self._column)
            if kind != "delete":
                raise
        if kind == "delete":
            return self._shape.removed(row)
        if kind == "close" or kind == "erase":
            raise InputError(f'expected {{"op": "{kind}"}} without a record', place=self._column)
        added = self._shape.added(row)
        return update(added) if kind == "update" else added

    def check(self, value: Any) -> None:
        if not isinstance(value, dict) or self._column not in value:
            raise InputError(f"expected {show(self._column)}, as in the first event, got none")
        kind = kind_of(value[self._column], self._column)
        self._shape.check(value, self._schema, brief=kind == "delete")


class Weighted:
    """Rows with a weight, as Materialize and differential dataflow have them: 1 adds, -1 deletes, in the order of
    arrival; on an id, 1 makes it hold the record, and -1 empties it."""

    def __init__(
        self, shape: Shape, schema: Schema, skipped: Counter[str], column: str, contribution: int | None
    ) -> None:
        self.label = weighted(column)
        self._shape = shape
        self._schema = schema
        self._skipped = skipped
        self._column = column
        self._contribution = contribution
        beside: list[Any] = [
            ("weight_", Any, msgspec.field(name=column)),
            ("progressed_", Any, msgspec.field(name=PROGRESS, default=None)),
        ]
        self._whole = msgspec.json.Decoder(shape.whole(beside)).decode
        self._brief = msgspec.json.Decoder(shape.brief(beside)).decode

    def parse(self, text: bytes) -> Event | list[Event]:
        try:
            row = self._whole(text)
        except msgspec.ValidationError:
            row = self._brief(text)
            if row.weight_ != -1:
                raise
        if row.progressed_ is True:
            raise msgspec.DecodeError("a progress message")
        weight = row.weight_
        if weight != 1 or weight is True:
            weight = weigh(weight, self._column, self._contribution)
        if weight == 0:
            self._skipped["weights of 0"] += 1
            return []
        event = self._shape.added(row) if weight > 0 else self._shape.removed(row)
        return event if weight == 1 else copied(event, weight, self._column)

    def check(self, value: Any) -> None:
        if not isinstance(value, dict) or self._column not in value:
            raise InputError(f"expected {show(self._column)}, as in the first event, got none")
        weight = weigh(value[self._column], self._column, self._contribution)
        self._shape.check(value, self._schema, brief=weight < 0)
