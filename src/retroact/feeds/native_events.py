"""Native events, {"op": "add", "record": {...}}: decoded in bulk, and one by one if they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal

import msgspec

from ..errors import InputError
from ..messages import mismatch, show
from .batch import ADD, CLOSE, DELETE, ERASE
from .json_rows import Cells, RowForm, Step, check_role
from .roles import OPS, ROLES

NATIVE = "native events"
KEYS = ("op", "record", *ROLES)
_TYPES = {"op": Literal[*OPS], "id": str | int | None, "subject": str | int | None}
DECODING = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the JSON decoder raises, also for another type."""


class NativeEvents:
    """Structs made for the fields of a schema, which check events while decoding them.

    >>> from retroact.schema import Number, Schema
    >>> from retroact.stream.columns import Columns
    >>> events = NativeEvents(RowForm(Schema({"amount": Number(0, 500)}), Columns()), closes=True)
    >>> codes, fields, roles, keys = events.decoded([b'{"op": "add", "record": {"amount": 3}, "id": "o1"}'])
    >>> fields, roles["id"], keys
    ({'amount': [3]}, ['o1'], 4)
    """

    def __init__(self, form: RowForm, *, closes: bool) -> None:
        """``closes`` says whether close lines end rounds; otherwise they are skipped."""
        self._form, self._closes = form, closes
        required = [name for name in form.fields if name in form.required]
        others = [name for name in form.taken if name not in required]
        columns = [(f"f{place}", Any, msgspec.field(name=key_of(name))) for place, name in enumerate(required)]
        columns += [_optional(f"o{place}", name) for place, name in enumerate(others)]
        # JSON has no cycles, so the garbage collector need not look for them
        record: Any = msgspec.defstruct("NativeRecord", columns, forbid_unknown_fields=form.strict, gc=False)
        self._no_record = record(*[None] * len(required))
        self._attributes = {field.encode_name: field.name for field in msgspec.structs.fields(record)}
        parts: list[Any] = [("op", _TYPES["op"]), ("record", record | None, None)]
        parts += [(role, _TYPES.get(role, int | None), None) for role in ROLES]
        parts += [_optional(f"t{place}", name) for place, name in enumerate(form.tops) if name not in KEYS]
        self._event: Any = msgspec.defstruct("NativeEvent", parts, forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(self._event).decode

    def decoded(self, lines: Sequence[bytes]) -> tuple[list[int], Cells, Cells, int]:
        """The operations, fields and roles of lines, and the least number of their keys."""
        events: list[Any] = list(map(self._decode, lines))
        codes = list(map(OPS.__getitem__, map(attrgetter("op"), events)))
        records = list(map(attrgetter("record"), events))
        for code, event in zip(codes, events, strict=True):
            if code != ADD or event.record is None:
                self._check_parts(code, event.record, event.id, event.subject, event.stamp)
        rows = [self._no_record if record is None else record for record in records]
        fields = {name: list(map(attrgetter(self._attributes[name]), rows)) for name in self._form.fields}
        roles = {role: list(map(attrgetter(role), events)) for role in ROLES}
        columns = (records, *roles.values(), *fields.values())
        return codes, fields, roles, len(events) + sum(len(events) - column.count(None) for column in columns)

    def step(self, value: Any) -> Step:
        """What a decoded line does."""
        try:
            event = msgspec.convert(value, self._event)
        except msgspec.ValidationError:
            self._check(value)
            raise InputError(f"expected {NATIVE}, got something else") from None
        code = OPS[event.op]
        self._check_parts(code, event.record, event.id, event.subject, event.stamp)
        return code, value.get("record") or {}, "record", value

    def _check_parts(self, code: int, record: Any, id: Any, subject: Any, stamp: Any) -> None:
        """Check that an event has what its operation needs, and no more."""
        if code == ADD and record is None:
            raise InputError("expected a record to add, got none", place="record")
        if code == ERASE:
            if record is not None or id is not None or stamp is not None:
                raise InputError("expected a subject alone", place="erase")
            if subject is None:
                raise InputError("expected a subject to erase, got none", place="subject")
        if code == CLOSE and self._closes and (record, id, subject, stamp) != (None, None, None, None):
            raise InputError("expected nothing else with it, except a round", place="close")
        if code == DELETE:
            if (record is None) == (id is None):
                raise InputError("expected either id=... or a record with its stamp")
            if id is not None and (stamp is not None or subject is not None):
                raise InputError("expected an id alone: it holds at most one record", place="id")
            if id is None and stamp is None:
                raise InputError(
                    "a deletion by value names its stamp, the round the record was added in: 'the oldest copy' would "
                    "let one operation change every later round",
                    place="stamp",
                )

    def _check(self, value: Any) -> None:
        """Raise what is wrong with an event that does not fit."""
        if not isinstance(value, dict):
            raise mismatch('an object such as {"op": "add", "record": {...}}', value, None)
        if "op" not in value:
            raise InputError(f'expected "op" with one of {", ".join(OPS)}, got none')
        if not isinstance(value["op"], str) or value["op"] not in OPS:
            raise mismatch(f"one of {', '.join(OPS)}", value["op"], "op")
        form, record = self._form, value.get("record")
        for key in value:
            if key not in KEYS and key not in form.tops:
                raise InputError(f"expected only {', '.join(KEYS)}, got {show(key)}", place=key)
        if record is not None:
            if not isinstance(record, dict):
                raise mismatch("an object", record, "record")
            others = {*form.tops, *form.listed}
            known = [name for name in record if name in form.fields or (form.strict and name not in others)]
            form.check_fields({name: record[name] for name in known})
        for role in ROLES:
            check_role(role, value.get(role), role)


def _optional(attribute: str, name: str) -> tuple[str, Any, Any]:
    return attribute, Any, msgspec.field(name=key_of(name), default=None)


def key_of(name: str) -> str:
    """The name of a field or column, if it can be a key.

    >>> key_of('so called "x"')
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected names without quotes, backslashes and control characters in JSON lines and
    CSV, got 'so called "x"'
    """
    if any(c in '"\\' or c < " " for c in name):
        raise InputError(
            f"expected names without quotes, backslashes and control characters in JSON lines and CSV, got {show(name)}"
        )
    return name
