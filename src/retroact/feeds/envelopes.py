"""The envelopes of JSON lines: how each is recognised, and what its lines do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import InputError
from ..messages import mismatch, show
from .batch import ADD, CLOSE, DELETE, ERASE, UPDATE
from .json_rows import RowForm, Step
from .native_events import KEYS, NATIVE
from .roles import CODES, ONE_ON_AN_ID, OPERATION_COLUMNS, PROGRESS, WEIGHT_COLUMNS, code_of, weigh

PLAIN, CHANGES = "plain records", "insert/delete"
DEBEZIUM, WRAPPED = "Debezium", "Debezium with its schema"
_CODES = {"insert": ADD, "delete": DELETE, "update": UPDATE}
_MARKS = (*_CODES, "payload", "op")
_OPS = "c, r, u, d, t, m"
_TRUNCATED = (
    "a truncation deletes records without naming them, and is refused: erase their subjects, or begin another stream"
)
_NO_BEFORE = (
    "expected the row before, got none: the source must send it (in PostgreSQL a primary key, or REPLICA IDENTITY FULL)"
)


def recognise(
    value: Any, fields: Collection[str], columns: set[str], others: Collection[str] = (), operation: str | None = None
) -> str | None:
    """The envelope of a decoded line; None if it is ambiguous or unknown.

    ``columns`` are the fields and the columns of roles; ``others`` are other keys that are data, such as times and
    positions; ``operation`` is the column of operations, if it has an unusual name.

    >>> recognise({"op": "c", "after": {"amount": 1}}, {"amount"}, {"amount"})
    'Debezium'
    >>> recognise({"amount": 1, "mz_diff": 1}, {"amount"}, {"amount"}), recognise({"amount": 1}, {"amount"}, {"amount"})
    ("plain records with weights in 'mz_diff'", 'plain records')
    >>> recognise({"op": "close"}, {"amount"}, {"amount"})
    """
    if isinstance(value, list) and value and isinstance(value[0], dict) and {*value[0]} <= {*_CODES}:
        return CHANGES
    if not isinstance(value, dict) or is_progress(value):
        return None
    data = {*columns, *others}
    if "payload" in value and "payload" not in data:
        payload = value["payload"]
        return WRAPPED if isinstance(payload, dict) and "op" in payload else None
    if value and {*value} <= {*_CODES} - data:
        return CHANGES
    if operation is not None and operation in value:
        return marked_by(operation)
    if "op" in value and "op" not in data:
        return _by_op(value, columns)
    for column in (*OPERATION_COLUMNS, *WEIGHT_COLUMNS):
        if column in value and column not in data:
            return marked_by(column)
    return PLAIN if mark_in(value, data) is None and (not fields or columns & {*value}) else None


def mark_in(value: Any, data: Collection[str]) -> str | None:
    """A key of an envelope that is not data, or "before" if there are both images of a row.

    >>> mark_in({"delete": {"id": 1}}, {"amount"}), mark_in({"before": {}, "after": {}}, {}), mark_in({"after": 1}, {})
    ('delete', 'before', None)
    """
    keys = {*value}.difference(data) if isinstance(value, dict) else set()
    return next((key for key in _MARKS if key in keys), "before" if {"before", "after"} <= keys else None)


def _by_op(value: Mapping[str, Any], columns: set[str]) -> str | None:
    op = value["op"]
    if not isinstance(op, str):
        return None
    if "before" in value or "after" in value or (op in ("t", "m") and "source" in value):
        return DEBEZIUM
    if columns & {*value} - {*KEYS} and "record" not in value:
        return marked_by("op") if op in CODES else None
    return NATIVE if op in ("add", "delete") else None


def marked_by(column: str) -> str:
    """The envelope of rows with a column of operations or weights."""
    return f"plain records with {'weights' if column in WEIGHT_COLUMNS else 'operations'} in {show(column)}"


def is_progress(value: Any) -> bool:
    return isinstance(value, dict) and value.get(PROGRESS) is True


def row_in(label: str, value: Any) -> Mapping[str, Any]:
    """The row of the first event."""
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
    """Where a line may hold the value of a column, or of a dotted path from the top of the event.

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
        return [(change, *parts) for change in _CODES]
    return [parts, ("record", *parts)] if label == NATIVE else [parts]


def value_at(line: Any, places: Sequence[tuple[str, ...]]) -> Any:
    """The value of a decoded line at the first of these places that has one, or None.

    >>> places = [("after", "lsn"), ("before", "lsn")]
    >>> value_at({"after": {"lsn": 7}}, places), value_at({"after": None, "before": {"lsn": 6}}, places)
    (7, 6)
    """
    for place in places:
        value = line
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def of_row(label: str, path: str | None) -> str | None:
    """The path, if it names a column of the row itself."""
    if path is None or label == NATIVE:
        return None
    whole = label not in (DEBEZIUM, WRAPPED)
    return path if whole or any("after" in place[:-1] for place in places_in(label, path)) else None


def operation_in(label: str, row: Mapping[str, Any]) -> str | None:
    """The column of operations in the first row, if there is one."""
    return next((column for column in row if label == marked_by(column)), None)


Envelope = Callable[[Any], list[Step] | str]
"""The steps of a line or, if it is skipped, what it is called. Rows are not checked here."""


def envelope_for(label: str, form: RowForm, data: set[str], contribution: int | None, mark: str | None) -> Envelope:
    """The envelope of this name, for all but native events."""
    if label == PLAIN:
        return partial(_plain, form, data, marks_beside(form, data))
    if label in (DEBEZIUM, WRAPPED):
        return partial(_debezium, form, label == WRAPPED)
    if label == CHANGES or mark is None:
        return partial(_inserts_and_deletes, form)
    return partial(_weighted, form, mark, contribution) if mark in WEIGHT_COLUMNS else partial(_worded, form, mark)


def marks_beside(form: RowForm, data: Collection[str]) -> set[str]:
    """The keys of other envelopes that are not data, which no plain record has."""
    own = form.columns.column("op") or "op"
    return {*OPERATION_COLUMNS, *WEIGHT_COLUMNS, PROGRESS, *_MARKS, own}.difference(data)


def _plain(form: RowForm, data: set[str], marks: set[str], value: Any) -> list[Step]:
    """Rows that are added. One with a key of another envelope is refused."""
    if not isinstance(value, dict):
        raise mismatch("an object", value, None)
    marked = not marks.isdisjoint(value)
    if marked or "after" in value:
        mark = mark_in(value, data)
        if mark is not None:
            wrong = f"expected {PLAIN}, as in the first events, got {show(mark)}, a key of another envelope"
            raise InputError(wrong)
    if marked:
        form.check(value)
        raise InputError(f"expected {PLAIN}")
    return [(ADD, value, "", None)]


def _inserts_and_deletes(form: RowForm, value: Any) -> list[Step]:
    """{"insert": {...}}, {"delete": {...}} and {"update": {...}}, or several of them as an array."""
    found: list[Step] = []
    several = isinstance(value, list)
    for position, change in enumerate(value if several else [value]):
        if not isinstance(change, dict) or not {*change} <= _CODES.keys():
            raise mismatch('an object such as {"insert": {...}}', change, None)
        if len(change) != 1:
            raise InputError(f"expected one of {', '.join(_CODES)} in an event")
        ((kind, row),) = change.items()
        part = f"[{position}].{kind}" if several else kind
        row = form.require_id(row, part) if kind == "delete" else row
        found.append((_CODES[kind], row, part, None))
    return found


def _worded(form: RowForm, column: str, value: Any) -> list[Step]:
    """Rows with a word for the operation: Flink's +I, -U, +U, -D, Delta's change types and the like."""
    code = code_of(_marked(value, column), column)
    if code in (CLOSE, ERASE):
        form.check(value)
        word = "close" if code == CLOSE else "erase"
        raise InputError(f'expected {{"op": "{word}"}} without a record', place=column)
    return [(code, form.by_id(value) if code == DELETE else value, "", None)]


def _weighted(form: RowForm, column: str, contribution: int | None, value: Any) -> list[Step] | str:
    """Rows with a weight, as Materialize and differential dataflow have them: 1 adds, -1 deletes, in the order of
    arrival; on an id, 1 makes it hold the record, and -1 empties it."""
    weight = weigh(_marked(value, column), column, contribution)
    if is_progress(value):
        raise InputError("expected a row, got a progress message")
    if weight == 0:
        if not form.is_whole(tuple(value)):
            form.check(value)
        return "weights of 0"
    if abs(weight) > 1 and form.has_id(value):
        raise InputError(expected=ONE_ON_AN_ID, found=str(weight), place=column)
    code, row = (ADD, value) if weight > 0 else (DELETE, form.by_id(value))
    return [(code, row, "", None)] * abs(weight)


def _debezium(form: RowForm, wrapped: bool, value: Any) -> list[Step] | str:
    """Debezium's change events, {"op": "u", "before": {...}, "after": {...}}, bare or as a payload with their schema.

    With an id an update is one event on that id and a deletion needs nothing but the id; without one both delete the
    row before by value, which needs all its fields and its stamp."""
    if value is None or (wrapped and isinstance(value, dict) and value.get("payload", value) is None):
        return "tombstones"
    if not isinstance(value, dict):
        raise mismatch("an object", value, None)
    change = value.get("payload") if wrapped else value
    if not isinstance(change, dict):
        raise mismatch("an object", change, "payload")
    if "op" not in change:
        raise InputError(f'expected "op" with one of {_OPS}, got none')
    op, before, after = change["op"], change.get("before"), change.get("after")
    if op in ("c", "r", "u"):
        added = (ADD, _there(after, "after"), "after", None)
        if op != "u" or (form.has_id(after) and (before is None or form.id_of(before) == form.id_of(after))):
            return [added]
        return [_replaced(form, _there(before, "before"), after), added]
    if op == "d":
        return [(DELETE, form.require_id(_there(before, "before"), "before"), "before", None)]
    if op == "m":
        return "messages"
    if op == "t":
        raise InputError(_TRUNCATED, place="op")
    raise mismatch(f"one of {_OPS}", op, "op")


def _replaced(form: RowForm, before: Any, after: Any) -> Step:
    """The row before, deleted in the round of the row after."""
    row, round = form.require_id(before, "before"), form.known.get("round")
    both = round is not None and isinstance(row, dict) and isinstance(after, dict)
    return DELETE, {**row, round: after.get(round)} if both else row, "before", None


def _there(row: Any, part: str) -> Any:
    if row is None:
        raise InputError(_NO_BEFORE if part == "before" else "expected the row after, got none", place=part)
    return row


def _marked(value: Any, column: str) -> Any:
    """The operation or weight of a row."""
    if not isinstance(value, dict) or column not in value:
        raise InputError(f"expected {show(column)}, as in the first event, got none")
    return value[column]
