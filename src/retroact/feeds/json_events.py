"""What decoded JSON lines say is done, in columns; and what is wrong with one that does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from types import NoneType
from typing import Any

import numpy as np

from retroact.errors import InputError
from retroact.feeds.batch import ADD, CLOSE, DELETE, Changes, ColumnValues
from retroact.feeds.envelopes import (
    NATIVE,
    PLAIN,
    Envelope,
    envelope_for,
    is_progress,
    of_row,
    operation_in,
    places_in,
    recognise,
    row_in,
)
from retroact.feeds.json_paths import position_of, value_at
from retroact.feeds.json_rows import Row, RowForm, Step, StepColumns
from retroact.feeds.native_events import DECODING, KEYS, NativeEvents
from retroact.feeds.operation_words import OPS
from retroact.feeds.options import Options
from retroact.feeds.readers.repeated_keys import most_keys
from retroact.feeds.roles import METADATA, ROLES, refuse
from retroact.messages import mismatch
from retroact.schema import Schema

_NATIVE = -1
"""Stands for the operation of a native event, until that is looked at."""
_NOTHING: Row = {}
_NAMES: set[type] = {str, int, NoneType}
_NUMBERS: set[type] = {int, NoneType}
_WHOLE = ("stamp", "round", "position")


class JsonEvents:
    """The envelope is recognised from the first events and then enforced."""

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema, self._options = schema, options
        self._columns = options.columns.without(schema.fields)
        self._base = RowForm(schema, self._columns)
        without: dict[str, None] = dict.fromkeys((*ROLES, "op"))
        records = RowForm(schema, replace(self._columns, **without))  # type: ignore[arg-type]
        self._native = NativeEvents(records, closes=options.cut.close_by in ("lines", "progress"))
        self._asked = {*self._base.fields, *self._base.known.values()}
        """All that a row is asked for."""
        paths = {path for path in map(self._columns.column, ("time", "position")) if path}
        self._beside = {*paths, *self._base.listed}
        """Columns, where they are no paths, that are data whatever they are called."""
        self.begin_anew()

    def begin_anew(self) -> None:
        self.label: str | None = None
        """The envelope, once an event was seen."""
        self.roles: dict[str, str] = {}
        """What the first record has."""
        self.ignored: tuple[str, ...] = ()
        self.skipped: Counter[str] = Counter()
        """Lines that are no events, by what they are."""
        self._envelope: Envelope | None = None
        self._form = self._base

    def recognise(self, values: Sequence[Any]) -> bool:
        """Whether one of these tells the envelope of all lines."""
        for value in values:
            label = self._label(value)
            if label is not None:
                self._begin(label, value)
                return True
        return False

    def _label(self, value: Any) -> str | None:
        operation = self._columns.column("op")
        own = None if operation in ("op", *self._asked) else operation
        return recognise(value, self._form.fields, self._asked, self._beside, own)

    def _begin(self, label: str, value: Any) -> None:
        """Lines are of this envelope from now on."""
        self.label = label
        row, own = row_in(label, value), self._columns.column("op")
        mark = operation_in(label, row)
        if mark is not None and mark != own and not self._columns.marked:
            refuse(row, self._form.fields, self._columns, [mark])
        if label != NATIVE:
            # the round of a row is its own only where it is asked for
            numbered = label == PLAIN
            form = RowForm(self._schema, self._columns, mark, of_row(label, self._options.time), numbered=numbered)
            told = () if label == PLAIN else {"id", "round"}.intersection(form.named)
            self.roles = {role: column for role, column in form.known.items() if column in row or role in told}
            data = {*self._asked, *self._beside}
            self._envelope = envelope_for(label, form, data, self._options.cut.contribution, mark)
            self._form = form
        others = METADATA.get(mark or "", ())
        needed = {*self._schema.fields, *self.roles.values(), *others, *self._form.tops, mark}
        self.ignored = tuple(key for key in row if key not in needed)

    # Lines that fit ---------------------------------------------------------------------------------------------------

    def quick(self, numbers: Sequence[int], lines: Sequence[bytes]) -> Changes | None:
        """Lines that all fit, and have each key once, where that can be seen at a glance."""
        if self.label != NATIVE or self._options.position or self._options.follow:
            return None
        try:
            steps, keys = self._native.decoded(lines)
        except (*DECODING, InputError):
            return None
        text = b"\n".join(lines)
        return self._assembled(numbers, steps) if text.count(b":") == keys or most_keys(text) == keys else None

    def changes(self, numbers: Sequence[int], values: Sequence[Any]) -> tuple[Changes, Counter[str]]:
        """All of these lines, and how many of them are no events. An error says that one of them does not fit, and not
        more."""
        steps, options = self._steps(values), self._options
        if options.follow and options.time is not None:
            # otherwise all times were read before
            places = self.places("time")
            steps.roles["time"] = [value_at(values[place], places) for place in steps.places]
        if options.position is not None:
            steps.roles["position"] = self._positions(steps.codes, [values[place] for place in steps.places])
        return self._assembled(numbers, steps), steps.skipped

    def _assembled(self, numbers: Sequence[int], steps: StepColumns) -> Changes:
        given = {role: column for role, column in steps.roles.items() if column.count(None) < len(column)}
        roles = {role: _integers(given[role]) if role in _WHOLE else ColumnValues.of(given[role]) for role in given}
        fields = {name: ColumnValues(np.fromiter(column, object, len(column))) for name, column in steps.fields.items()}
        lines = np.asarray(numbers, np.int64)[np.asarray(steps.places, np.int64)]
        return Changes(lines, np.array(steps.codes, np.int8), fields, roles)

    def fit(self, values: Sequence[Any]) -> bool:
        """Whether all of these lines do."""
        try:
            self.changes(range(len(values)), values)
        except InputError:
            return False
        return True

    def places(self, role: str) -> list[tuple[str, ...]]:
        """Where a line may hold its time or position."""
        return places_in(self.label or NATIVE, getattr(self._options, role) or "")

    def _positions(self, codes: Sequence[int], values: Sequence[Any]) -> list[int | None]:
        places, name = self.places("position"), self._options.position
        found = [value_at(value, places) for value in values]
        if name is None:
            return []
        # a round may end without a position
        return [
            None if position is None and code == CLOSE else position_of(position, name)
            for position, code in zip(found, codes, strict=True)
        ]

    def _steps(self, values: Sequence[Any]) -> StepColumns:
        if self._envelope is None:
            try:
                return self._native.steps(values)
            except InputError:
                if not any(map(is_progress, values)):
                    raise
        places: list[int] = []
        codes: list[int] = []
        rows: list[Any] = []
        skipped: Counter[str] = Counter()
        for place, value in enumerate(values):
            found = self._steps_of(value)
            if isinstance(found, str):
                skipped[found] += 1
                continue
            for code, row in found:
                places.append(place)
                codes.append(code)
                rows.append(row)
        natives = [place for place, code in enumerate(codes) if code == _NATIVE]
        events = self._native.steps([rows[place] for place in natives])
        for place in natives:
            rows[place] = _NOTHING
        fields, roles = self._columns_of(codes, rows)
        for whole, part in ((fields, events.fields), (roles, events.roles)):
            for name, cells in part.items():
                for place, cell in zip(natives, cells, strict=True):
                    whole[name][place] = cell
        for place, code in zip(natives, events.codes, strict=True):
            codes[place] = code
        return StepColumns(places, codes, fields, roles, skipped)

    def _columns_of(self, codes: list[int], rows: list[Any]) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Fields and roles of rows, which must have what their operations need."""
        form = self._form
        if not {*map(type, rows)} <= {dict}:
            raise InputError("expected objects")
        roles = {role: [row.get(form.known.get(role)) for row in rows] for role in ROLES}
        for role, column in roles.items():
            if not {*map(type, column)} <= (_NUMBERS if role in _WHOLE else _NAMES):
                raise InputError("expected another type", place=role)
        form.require_whole(row for code, row in zip(codes, rows, strict=True) if code == ADD)
        by_value = [code == DELETE and id is None for code, id in zip(codes, roles["id"], strict=True)]
        form.require_whole(compress(rows, by_value), strict="id" not in form.known)
        if form.time is not None:
            # of records that are deleted by value, a grid makes stamps of their times
            found = zip(rows, by_value, roles["stamp"], strict=True)
            roles["born"] = [(row.get(form.time),) if value and stamp is None else None for row, value, stamp in found]
        return {name: [row.get(name) for row in rows] for name in form.fields}, roles

    def _steps_of(self, value: Any) -> list[Step] | str:
        try:
            if self._envelope is not None:
                return self._envelope.steps(value)
        except InputError:
            if not is_progress(value) and not self._may_be_native(value):
                raise
        if is_progress(value):
            return [(CLOSE, _NOTHING)] if self._options.cut.close_by == "progress" else "progress messages"
        return [(_NATIVE, value)]

    # Lines that do not ------------------------------------------------------------------------------------------------

    def refusal(self, value: Any) -> InputError:
        """What is wrong with a line that does not fit."""
        try:
            try:
                codes = self._steps([value]).codes
            except InputError:
                self._check(value)
            else:
                self._positions(codes, [value] * len(codes))
        except InputError as error:
            return error
        return InputError(f"expected {self.label or NATIVE}, got something else")

    def _check(self, value: Any) -> None:
        other, native = self._label(value), self._may_be_native(value)
        if other not in (None, self.label) and not native:
            raise InputError(f"expected {self.label}, as in the first events, got {other}")
        if self._envelope is None or native:
            self._native.check(value)
            self._positions([OPS[value["op"]]], [value])
            self._native.check_needs(value)
            return
        if not isinstance(value, dict | list):
            raise mismatch(f"an object, as in {self.label}", value, None)
        self._envelope.check(value)
        self._envelope.steps(value)

    def _may_be_native(self, value: Any) -> bool:
        """Whether a line among those of another envelope is to be taken as a native event."""
        if not isinstance(value, dict) or "op" not in value:
            return False
        if value["op"] in ("close", "erase") and {*value} <= {*KEYS}:
            return True
        other = self._label(value) if self.label == PLAIN else None
        return other == NATIVE or (self.label == PLAIN and other in (None, PLAIN) and "op" not in self._asked)


def _integers(column: list[Any]) -> ColumnValues:
    """Numbers of rounds, or positions; those that 64 bits do not hold are as far away as can be."""
    present = None
    if None in column:
        present = np.fromiter((value is not None for value in column), np.bool_, len(column))
        column = [value or 0 for value in column]
    try:
        return ColumnValues(np.array(column, np.int64), present)
    except OverflowError:
        return ColumnValues(np.array([max(-(2**63), min(value, 2**63 - 1)) for value in column], np.int64), present)
