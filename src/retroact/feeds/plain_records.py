"""Plain records, {"amount": 12.5, "country": "DE"}: decoded in bulk, key by key."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from ..errors import InputError
from .batch import ADD
from .json_rows import TYPES, Cells, RowForm
from .record_struct import ObjectCells, RecordStruct, may_be_key
from .roles import ROLES

_IMAGES = {"before", "after"}
"""Together these are an envelope, whatever else is in a row."""
_decode = msgspec.json.Decoder().decode


class PlainRecords:
    """Takes lines whose keys are those of the form and of the first line. Any others raise errors, and are left to a
    way that says what is wrong with them.

    >>> from retroact.schema import Number, Schema
    >>> from retroact.stream.columns import Columns
    >>> form = RowForm(Schema({"amount": Number(0, 500), "tip": Number(0, 50, missing="skip")}), Columns.usual())
    >>> records = PlainRecords(form, marks={"op"}, strict=True)
    >>> codes, fields, roles, keys = records.decoded([b'{"amount": 3, "id": "o1"}', b'{"tip": 1, "amount": 4}'])
    >>> codes, fields["tip"], roles["id"], keys
    ([0, 0], array([None, 1], dtype=object), ['o1', None], 4)
    """

    def __init__(self, form: RowForm, marks: Collection[str], *, strict: bool) -> None:
        """``marks`` are keys of other envelopes, which no row may have; ``strict`` says whether it may have only those
        that the form knows."""
        self._form, self._strict = form, strict
        self._required = tuple(dict.fromkeys([*filter(form.required.__contains__, form.fields), *form.named.values()]))
        self._never = {*marks, *_IMAGES}.difference(form.fields, form.known.values())
        self._optional: tuple[str, ...] | None = None
        self._struct = RecordStruct([], [], strict=True)
        self._read: Any = None

    def decoded(self, lines: Sequence[bytes]) -> tuple[list[int], ObjectCells, Cells, int]:
        """The operations, fields and roles of lines, and the number of their keys."""
        form, first = self._form, _decode(lines[0])
        if not isinstance(first, dict):
            raise InputError("expected an object")
        more = (key for key in (*form.fields, *filter(self._may_have, first)) if key not in self._required)
        self._begin(tuple(dict.fromkeys(more)))
        cells, count = self._struct.columns(list(map(self._read, lines)), (*self._required, *(self._optional or ())))
        roles = {role: cells[form.known[role]].tolist() for role in ROLES if form.known.get(role) in cells}
        if not all({*map(type, column)} <= TYPES[role][0] for role, column in roles.items()):
            raise InputError("expected other roles")
        return [ADD] * len(lines), {name: cells[name] for name in form.fields}, roles, count

    def _begin(self, optional: tuple[str, ...]) -> None:
        """Allow rows to have these keys from now on."""
        if optional != self._optional:
            self._optional, self._struct = optional, RecordStruct(self._required, optional, strict=True)
            self._read = msgspec.json.Decoder(self._struct.type).decode

    def _may_have(self, key: str) -> bool:
        return key not in self._never and may_be_key(key) and (key in self._form.taken or not self._strict)
