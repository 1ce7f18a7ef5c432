"""Debezium's change events, {"op": "u", "before": {...}, "after": {...}}, bare or as a payload beside their schema."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.events import Event
from retroact.feeds.shapes import Shape
from retroact.messages import mismatch
from retroact.schema import Schema

_OPS = "c, r, u, d, t, m"
_TRUNCATED = (
    "a truncation deletes records without naming them, and is refused: erase their subjects, or begin another stream"
)
_NO_BEFORE = (
    "expected the row before, got none: the source must send it (in PostgreSQL a primary key, or REPLICA IDENTITY FULL)"
)


class Debezium:
    """With an id an update is one event on that id and a deletion needs nothing but the id; without one both delete the
    row before by its value, which needs all its fields and its stamp."""

    def __init__(self, shape: Shape, schema: Schema, skipped: Counter[str], *, wrapped: bool) -> None:
        self.label = "Debezium with its schema" if wrapped else "Debezium"
        self._shape = shape
        self._schema = schema
        self._skipped = skipped
        self._wrapped = wrapped
        columns: list[Any] = [
            ("op", Any),
            ("before", shape.brief() | None, None),
            ("after", shape.whole() | None, None),
        ]
        change: Any = msgspec.defstruct("Change", columns, gc=False)
        payload = msgspec.defstruct("Wrapped", [("payload", change | None)], gc=False)
        self._decode = msgspec.json.Decoder(payload if wrapped else change).decode

    def parse(self, text: bytes) -> Event | list[Event]:
        change: Any = self._decode(text)
        if self._wrapped:
            change = change.payload
            if change is None:
                return self.tombstone()
        op, shape = change.op, self._shape
        if op == "c" or op == "r":
            return shape.added(_there(change.after, "after"))
        if op == "u":
            after = shape.added(_there(change.after, "after"))
            if after.id is not None and change.before is None:
                return after
            before = shape.removed(_there(change.before, "before"))
            before.round = after.round
            return after if before.id is not None and before.id == after.id else [before, after]
        if op == "d":
            return shape.removed(_there(change.before, "before"))
        if op == "m":
            self._skipped["messages"] += 1
            return []
        if op == "t":
            raise InputError(_TRUNCATED, place="op")
        raise mismatch(f"one of {_OPS}", op, "op")

    def tombstone(self) -> list[Event]:
        self._skipped["tombstones"] += 1
        return []

    def check(self, value: Any) -> None:
        """Say what is wrong with an event that does not fit."""
        if not isinstance(value, dict):
            raise mismatch("an object", value, None)
        change = value.get("payload") if self._wrapped else value
        if not isinstance(change, dict):
            raise mismatch("an object", change, "payload" if self._wrapped else None)
        if "op" not in change:
            raise InputError(f'expected "op" with one of {_OPS}, got none')
        op = change["op"]
        if op in ("c", "r", "u"):
            self._check_row(change, "after", brief=False)
        if op == "d" or (op == "u" and (change.get("before") is not None or not self._shape.has_id(change["after"]))):
            self._check_row(change, "before", brief=True)

    def _check_row(self, change: dict[str, Any], part: str, *, brief: bool) -> None:
        row = _there(change.get(part), part)
        try:
            self._shape.check(row, self._schema, brief=brief)
        except InputError as error:
            advice = ""
            if brief and not self._shape.by_id and not self._shape.has_id(row) and isinstance(row, dict):
                advice = "; with the column of the id (--id) a deletion needs nothing else"
            raise InputError(f"{error.message}{advice}", place=error.under(part).path) from None


def _there(row: Any, part: str) -> Any:
    if row is None:
        raise InputError(_NO_BEFORE if part == "before" else "expected the row after, got none", place=part)
    return row
