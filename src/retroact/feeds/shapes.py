"""From the columns of a JSON object to an event: structs made for the fields at hand, which decode quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.events import EVERY_RECORD, ROLES, Event, Moment, Name, RecordType, Roles, key_of
from retroact.feeds.operation_words import deletion
from retroact.messages import mismatch, show

Column = tuple[str, Any, Any]


class Shape:
    """Columns that options name must be there, others that are called like a role may be: in each row for itself.

    >>> shape = Shape(RecordType(["amount"], strict=False), Roles(id="order"), Roles("order"))
    >>> row = msgspec.json.decode('{"amount": 3, "order": "o1", "note": 0}', type=shape.whole())
    >>> shape.added(row).id, shape.removed(row).record
    ('o1', None)
    """

    def __init__(
        self,
        records: RecordType,
        named: Roles,
        known: Roles,
        time: str | None = None,
        unknown: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.records = records
        self._unknown = unknown
        self.named = named
        self.known = known
        """The columns of the roles, whether or not a record has them."""
        self.by_id = bool(named.id)
        """Whether all deletions go by id alone; otherwise those that have one do."""
        self.time = time
        self._columns: list[Column] = []
        where = dict(records.attributes)
        for role, column in known.items():
            if column not in where:
                where[column] = f"{role}_"
                kind = Name | None if role in ("id", "subject") else int | None
                default = msgspec.NODEFAULT if getattr(named, role) else None
                self._columns.append((f"{role}_", kind, msgspec.field(name=key_of(column), default=default)))
        if time is not None and time not in where:
            where[time] = "time_"
            self._columns.append(("time_", Any, msgspec.field(name=key_of(time), default=None)))
        self._where = where
        self._at = tuple(where.get(getattr(known, role) or "", "_absent") for role in ROLES)
        self._time_at = where.get(time or "", "_absent")
        self.added = _adder(*self._at)
        """From a whole row to its addition."""

    def whole(self, beside: Sequence[Column] = ()) -> Any:
        """The type of a row with all its fields."""
        columns = [*self._columns, *beside]
        return msgspec.defstruct("WholeRow", columns, bases=(self.records.row,), kw_only=True, gc=False)

    def brief(self, beside: Sequence[Column] = ()) -> Any:
        """The type of a row that is deleted: by id nothing else is needed, by value all is."""
        if not self.known.id:
            return self.whole(beside)
        if not self.by_id:
            return self._either(beside)
        columns: list[Column] = [(self._at[0], Name, msgspec.field(name=key_of(self.named.id or "")))]
        if self.known.round and self._at[3] != self._at[0]:
            # of a change, the round is its own
            columns.append((self._at[3], Any, msgspec.field(name=key_of(self.known.round), default=None)))
        return msgspec.defstruct("BriefRow", [*columns, *beside], kw_only=True, gc=False)

    def _either(self, beside: Sequence[Column]) -> Any:
        """The type of a row that may have an id; what one without it lacks is told when it is removed."""
        columns: list[Column] = []
        for column, attribute in self._where.items():
            role = attribute.removesuffix("_")
            default: Any = msgspec.UNSET
            if column == EVERY_RECORD:
                default = 0
            elif column in self.records.optional or role == "time" or (role in ROLES and not getattr(self.named, role)):
                default = None
            columns.append(
                (attribute, Name | None if role == "id" else Any, msgspec.field(name=key_of(column), default=default))
            )
        return msgspec.defstruct("EitherRow", [*columns, *beside], kw_only=True, gc=False)

    def removed(self, row: Any) -> Event:
        id_, subject, stamp, round_ = self._at
        name, round = getattr(row, id_, None), getattr(row, round_, None)
        if name is not None:
            check_role("round", round, self.known.round or "")
            event = deletion(None, name, None, None)
            event.round = round
            return event
        for attribute in self._where.values():
            if getattr(row, attribute, None) is msgspec.UNSET:
                raise msgspec.ValidationError("a deletion without id needs the whole row")
        for role, place in zip(ROLES, self._at, strict=True):
            check_role(role, getattr(row, place, None), getattr(self.known, role))
        at: int | Moment | None = getattr(row, stamp, None)
        if at is None and self.time is not None:
            at = Moment(getattr(row, self._time_at, None))
        event = deletion(row, None, getattr(row, subject, None), at)
        event.round = round
        return event

    def has_id(self, value: Any) -> bool:
        """Whether a row, as it was decoded, has one."""
        return bool(self.known.id) and isinstance(value, dict) and value.get(self.known.id) is not None

    def check(self, value: Any, schema: Any, *, brief: bool = False) -> None:
        """Say what is wrong with a row that does not fit."""
        if not isinstance(value, dict):
            raise mismatch("an object", value, None)
        names = self.records.columns_read
        alone = brief and (self.by_id or self.has_id(value))
        if self._unknown is not None and not alone:
            self._unknown(value)
        if not alone:
            constant = {name: 0 for name in self.records.names if name not in names}
            schema.encode_record({**{name: value[name] for name in names if name in value}, **constant})
        for role, column in self.known.items():
            if column not in value and getattr(self.named, role) and (role == "id" or not alone):
                raise InputError(f"expected {show(column)}, the {role} of the record, got none")
            if brief and role == "id" and getattr(self.named, role) and value[column] is None:
                raise mismatch("text or a whole number", None, column)
            check_role(role, value.get(column), column)


def _adder(id_: str, subject: str, stamp: str, round_: str) -> Callable[[Any], Event]:
    def added(row: Any) -> Event:
        return Event(
            "add",
            row,
            getattr(row, id_, None),
            getattr(row, subject, None),
            getattr(row, stamp, None),
            getattr(row, round_, None),
        )

    return added


def check_role(role: str, value: Any, place: str) -> None:
    if value is None:
        return
    if role in ("id", "subject"):
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise mismatch("text or a whole number", value, place)
    elif isinstance(value, bool) or not isinstance(value, int):
        raise mismatch("a whole number", value, place)
