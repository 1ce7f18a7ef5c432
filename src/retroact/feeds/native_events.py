"""Native events, {"op": "add", "record": {...}}: decoded in bulk, and one by one if they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..arrays import Mask
from ..errors import InputError
from ..messages import mismatch, show
from .batch import ADD, CLOSE, DELETE, ERASE
from .json_rows import Cells, RowForm, Step, check_role
from .record_struct import ObjectCells, RecordStruct, key_of
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
    >>> fields["amount"].tolist(), roles["id"], keys
    ([3], ['o1'], 4)
    """

    def __init__(self, form: RowForm, *, closes: bool) -> None:
        """``closes`` says whether close lines end rounds; otherwise they are skipped."""
        self._form, self._closes = form, closes
        required = [name for name in form.fields if name in form.required]
        others = [name for name in form.taken if name not in required]
        self._record = RecordStruct(required, others, strict=form.strict)
        parts: list[Any] = [("op", _TYPES["op"]), ("record", self._record.type | None, None)]
        parts += [(role, _TYPES.get(role, int | None), None) for role in ROLES]
        tops = enumerate(name for name in form.tops if name not in KEYS)
        parts += [(f"t{place}", Any, msgspec.field(name=key_of(name), default=None)) for place, name in tops]
        self._event: Any = msgspec.defstruct("NativeEvent", parts, forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(self._event).decode

    def decoded(self, lines: Sequence[bytes]) -> tuple[list[int], ObjectCells, Cells, int]:
        """The operations, fields and roles of lines, and the least number of their keys."""
        events: list[Any] = list(map(self._decode, lines))
        codes = list(map(OPS.__getitem__, map(attrgetter("op"), events)))
        records = list(map(attrgetter("record"), events))
        for code, event in zip(codes, events, strict=True):
            if code != ADD or event.record is None:
                self._check_parts(code, event.record, event.id, event.subject, event.stamp)
        found = [record for record in records if record is not None]
        fields, count = self._record.columns(found, self._form.fields)
        if len(found) < len(records):
            there = np.array([record is not None for record in records], np.bool_)
            fields = {name: _spread(cells, there) for name, cells in fields.items()}
        roles = {role: list(map(attrgetter(role), events)) for role in ROLES}
        given = sum(len(events) - column.count(None) for column in roles.values())
        return codes, fields, roles, len(events) + len(found) + count + given

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


def _spread(cells: NDArray[Any], there: Mask) -> NDArray[Any]:
    """The cells of events that have a record, and None for the others."""
    every = np.full(len(there), None, object)
    every[there] = cells
    return every
