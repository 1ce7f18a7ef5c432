"""The roles of columns that are not fields: the id of a record, whom it belongs to, when it happened, and so on.

Roles are part of a stream's specification and of no coin name: a file in another format, or with other headings, gives
the same bytes. They alone decide whether a stream has subjects, whatever the data are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import msgspec

from ..checks import flag
from ..errors import InputError
from ..messages import check_keys, mismatch, show
from ..schema import Schema
from ..schema.arrow import columns_of

ROLES = ("id", "subject", "time", "op", "position", "stamp", "round")
USUAL = ("id", "subject", "stamp", "round", "op")
"""Without [columns], a column with one of these names has that role."""
_KEYS = (*ROLES, "ignore", "na_values")


class Role(msgspec.Struct, frozen=True):
    """The column of a role. If it is optional, sources may lack the column and records may lack a value in it."""

    column: str
    optional: bool = False

    def spec(self) -> str | dict[str, Any]:
        return {"column": self.column, "optional": True} if self.optional else self.column


@dataclass(frozen=True)
class Columns:
    """
    >>> columns = Columns.from_spec({"subject": "customer", "id": {"column": "order", "optional": True}})
    >>> columns.subject, columns.roles["id"], columns.ignores("note")
    (Role(column='customer', optional=False), Role(column='order', optional=True), False)
    >>> Columns.from_spec({"subjekt": "customer"})
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected only id, subject, time, op, position, stamp, round, ignore, na_values, got
    'subjekt' (did you mean 'subject'?) - at columns.subjekt
    """

    roles: Mapping[str, Role] = field(default_factory=dict)
    ignore: bool | tuple[str, ...] = False
    """Whether other columns are skipped, or which of them."""
    na_values: tuple[str, ...] = ()
    """Texts in CSV that stand for a missing value, in all columns and exactly so."""
    given: bool = field(default=True, compare=False)
    """False for the usual roles of a specification without [columns]."""

    @classmethod
    def usual(cls) -> Columns:
        """The roles of a stream whose specification has no [columns]."""
        return cls({role: Role(role, optional=True) for role in USUAL}, given=False)

    @classmethod
    def from_spec(cls, table: Any, place: str = "columns") -> Columns:
        """Read the table in a file, or its equivalent in Python."""
        if isinstance(table, Columns):
            return table
        if not isinstance(table, Mapping):
            raise mismatch("a table such as { subject = 'customer' }", table, place)
        check_keys(table, _KEYS, place)
        roles = {role: _role(table[role], f"{place}.{role}") for role in ROLES if role in table}
        ignored, at = table.get("ignore", False), f"{place}.ignore"
        if isinstance(ignored, list | tuple):
            ignored = tuple(_column(name, at) for name in ignored)
        elif not isinstance(ignored, bool):
            raise mismatch("true, or a list of columns", ignored, at)
        texts = table.get("na_values", [])
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise mismatch('a list of texts, such as ["NA", "-"]', texts, f"{place}.na_values")
        return cls({role: own for role, own in roles.items() if own is not None}, ignored, tuple(texts))

    @property
    def subject(self) -> Role | None:
        return self.roles.get("subject")

    @property
    def has_subjects(self) -> bool:
        return self.subject is not None

    @property
    def marked(self) -> bool:
        """Whether a column whose name suggests operations, such as `_change_type`, is taken as one: not if the role is
        given to another column, or to none. If all other columns are ignored this one is not, or deletions would become
        additions."""
        return self.roles["op"].optional if "op" in self.roles else self.ignore is True

    def items(self) -> list[tuple[str, Role]]:
        return [(role, self.roles[role]) for role in ROLES if role in self.roles]

    def column(self, role: str) -> str | None:
        return self.roles[role].column if role in self.roles else None

    def ignores(self, column: str) -> bool:
        return self.ignore if isinstance(self.ignore, bool) else column in self.ignore

    def updated(self, table: Mapping[str, Any], place: str = "columns") -> Columns:
        """Return a copy with the roles in a table replaced; an empty name removes a role.

        >>> Columns.from_spec({"id": "order", "subject": "customer"}).updated({"id": "nr", "subject": ""}).spec()
        {'id': 'nr'}
        """
        other = Columns.from_spec(table, place)
        kept = {role: own for role, own in self.roles.items() if role not in table}
        more = {key: getattr(other, key) for key in ("ignore", "na_values") if key in table}
        return replace(self, roles={**kept, **other.roles}, **more)

    def without(self, names: Collection[str]) -> Columns:
        """Return a copy without the usual roles of columns that are fields."""
        if self.given:
            return self
        return replace(self, roles={role: own for role, own in self.roles.items() if own.column not in names})

    def spec(self) -> dict[str, Any]:
        table: dict[str, Any] = {role: own.spec() for role, own in self.items()}
        if self.ignore:
            table["ignore"] = self.ignore if isinstance(self.ignore, bool) else list(self.ignore)
        if self.na_values:
            table["na_values"] = list(self.na_values)
        return table


TAKEN = ("id", "subject", "stamp")


class Splitter:
    """Separates the fields of records passed to `add` from columns that have a role.

    >>> from retroact.schema import Number
    >>> columns = Columns.from_spec({"subject": "customer", "ignore": ["note"]})
    >>> splitter = Splitter(Schema({"amount": Number(0, 500)}), columns)
    >>> splitter.split({"amount": [12.5, 3], "customer": ["u17", "u18"], "note": ["", ""]}, {})
    ({'amount': [12.5, 3]}, {'subject': ['u17', 'u18']})
    >>> splitter.split([{"amount": 12.5, "customer": "u17"}, {"amount": 3}], {})
    ([{'amount': 12.5}, {'amount': 3}], {'subject': ['u17', None]})
    """

    def __init__(self, schema: Schema, columns: Columns) -> None:
        self._columns = columns.without(schema.fields)
        self._fields = schema.fields.keys()
        self._roles = {role: own.column for role, own in self._columns.items()}
        self._names = {self._roles[role] for role in ("id", "subject") if role in self._roles} - self._fields
        self._disjoint = not any(column in schema.fields for role, column in self._roles.items() if role in TAKEN)

    def all_fields(self, data: Any) -> bool:
        """Whether this is a dict of fields alone: a quick test, as for single records."""
        return self._disjoint and type(data) is dict and data.keys() == self._fields

    def split(self, data: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The data without columns that are not fields; and ids, subjects and stamps, as ``given`` or from columns.
        Unknown columns stay, for the schema to refuse."""
        found = {role: value for role, value in given.items() if value is not None}
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, Mapping):
            data = columns_of(data, self._names)
        if isinstance(data, Mapping):
            if self._disjoint and data.keys() == self._fields:
                return data, found
            return self._fields_of(data), found | self._from_columns(data, found)
        if not isinstance(data, list | tuple) or not all(isinstance(record, Mapping) for record in data):
            return data, found
        if self._disjoint and all(record.keys() == self._fields for record in data):
            return data, found
        named = {*chain.from_iterable(data)}
        columns = {name: [record.get(name) for record in data] for name in self._roles.values() if name in named}
        return [self._fields_of(record) for record in data], found | self._from_columns(columns, found)

    def _fields_of(self, data: Mapping[str, Any]) -> dict[str, Any]:
        skipped = {*self._roles.values()} - self._fields
        return {
            name: column
            for name, column in data.items()
            if name in self._fields or not (name in skipped or self._columns.ignores(name))
        }

    def _from_columns(self, data: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for role, column in self._roles.items():
            if column not in data:
                continue
            if role in TAKEN and role not in found:
                taken[role] = data[column]
            elif column not in self._fields and role in TAKEN:
                raise InputError(f"expected {role}= or the column {show(column)}, got both", place=role)
            elif column not in self._fields:
                raise InputError(
                    f"expected records to add, got the column {show(column)}, which is the {role} of events: use "
                    "retroact.feeds.play(stream, data)",
                    place=column,
                )
        return taken


def sources_from_spec(tables: Any, columns: Columns) -> dict[str, dict[str, Any]]:
    """The columns of single sources, by name: the tables [sources.NAME.columns]."""
    if not isinstance(tables, Mapping):
        raise mismatch("a table of sources", tables, "sources")
    own: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        place = f"sources.{name}"
        if not isinstance(name, str) or not name:
            raise mismatch("the name of a source", name, "sources")
        if not isinstance(table, Mapping) or {*table} != {"columns"}:
            raise mismatch("a table [columns]", table, place)
        merged = columns.updated(table["columns"], f"{place}.columns")
        if merged.subject and columns.subject and merged.subject.optional and not columns.subject.optional:
            raise InputError("expected the role to be optional in [columns] too", place=f"{place}.columns.subject")
        if merged.has_subjects != columns.has_subjects:
            raise InputError(
                "expected a subject in [columns] too, or in neither: all sources of a stream have subjects, or none",
                place=f"{place}.columns.subject",
            )
        absent = {"ignore": False, "na_values": []}
        own[name] = {"columns": {key: merged.spec().get(key, absent.get(key, "")) for key in table["columns"]}}
    return own


def _role(given: Any, place: str) -> Role | None:
    if isinstance(given, Role):
        return given
    if isinstance(given, Mapping):
        check_keys(given, ("column", "optional"), place)
        optional = flag(given.get("optional", False), f"{place}.optional")
        return Role(_column(given.get("column"), f"{place}.column"), optional)
    return None if given == "" else Role(_column(given, place))


def _column(given: Any, place: str) -> str:
    if not isinstance(given, str) or not given:
        raise mismatch("the name of a column", given, place)
    return given
