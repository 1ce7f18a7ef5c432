"""The changes that decoded JSON lines stand for, and what is wrong with a line that does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, Place
from ..messages import mismatch
from ..schema import Schema
from . import envelopes
from .batch import ADD, CLOSE, DELETE, UPDATE, Changes, ColumnValues
from .envelopes import PLAIN
from .json_rows import Cells, RowForm, Step
from .native_events import DECODING, KEYS, NATIVE, NativeEvents
from .options import Options
from .plain_records import PlainRecords
from .readers.repeated_keys import first_repeated, most_keys
from .record_struct import ObjectCells
from .roles import METADATA, ROLES, position_of, refuse
from .row_reader import require_needs

_WHOLE = ("stamp", "round", "position")
_decode = msgspec.json.Decoder().decode


class JsonEvents:
    """The envelope is recognised from the first events and then enforced."""

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema, self._options = schema, options
        self._columns = options.columns.without(schema.fields)
        self._base = RowForm(schema, self._columns)
        kept = {role: own for role, own in self._columns.roles.items() if role not in (*ROLES, "op")}
        records = RowForm(schema, replace(self._columns, roles=kept))
        self._native = NativeEvents(records, closes=options.cut.close_by in ("lines", "progress"))
        self._asked = {*self._base.fields, *self._base.known.values()}
        """Every column that a row is read for."""
        paths = {path for path in map(self._columns.column, ("time", "position")) if path}
        self._others = {*paths, *self._base.listed}
        """Other columns that are data, whatever they are called."""
        self.begin_anew()

    def begin_anew(self) -> None:
        self.label: str | None = None
        """The envelope, once it is known."""
        self.roles: dict[str, str] = {}
        """Those of the first record."""
        self.ignored: tuple[str, ...] = ()
        self.skipped: Counter[str] = Counter()
        """Lines that are no events, by what they are."""
        self._envelope: envelopes.Envelope | None = None
        self._form = self._base
        self._plain: PlainRecords | None = None
        """Decodes plain records in bulk, if the lines are such."""
        self._strict: RowForm | None = None
        """The form that refuses unknown columns, where they are noted instead."""

    def recognise(self, values: Sequence[Any]) -> bool:
        """Whether one of these lines shows the envelope of all."""
        for value in values:
            label = self._label(value)
            if label is not None:
                self._begin(label, value)
                return True
        return False

    def _label(self, value: Any) -> str | None:
        operation = self._columns.column("op")
        own = None if operation in ("op", *self._asked) else operation
        return envelopes.recognise(value, self._form.fields, self._asked, self._others, own)

    def _begin(self, label: str, value: Any) -> None:
        """Require this envelope of all lines from now on."""
        self.label = label
        row, own = envelopes.row_in(label, value), self._columns.column("op")
        mark = envelopes.operation_in(label, row)
        if mark is not None and mark != own and not self._columns.marked:
            refuse(row, self._form.fields, self._columns, [mark])
        if label != NATIVE:
            # rows in other envelopes may have a column that is called round and means something else
            numbered = label == PLAIN
            time = envelopes.of_row(label, self._options.time)
            form = RowForm(self._schema, self._columns, mark, time, numbered=numbered)
            if self._options.refusals is not None and form.strict:
                # unknown columns are noted, and the others still read
                lenient, self._strict = replace(self._columns, ignore=True), form
                form = RowForm(self._schema, lenient, mark, time, numbered=numbered)
            explicit = () if label == PLAIN else {"id", "round"}.intersection(form.named)
            self.roles = {role: column for role, column in form.known.items() if column in row or role in explicit}
            data = {*self._asked, *self._others}
            self._envelope = envelopes.envelope_for(label, form, data, self._options.cut.contribution, mark)
            self._form = form
            if label == PLAIN:
                strict = form.strict or self._strict is not None
                self._plain = PlainRecords(form, envelopes.marks_beside(form, data), strict=strict)
        others = METADATA.get(mark or "", ())
        needed = {*self._schema.fields, *self.roles.values(), *others, *self._form.tops, mark}
        self.ignored = tuple(key for key in row if key not in needed)

    def quick(self, numbers: range, lines: Sequence[bytes]) -> Changes | None:
        """The changes of plain records or native lines, if all of them fit and repeat no key."""
        reader = self._native if self.label == NATIVE else self._plain
        if reader is None or self._options.position or self._options.follow or not lines:
            return None
        try:
            codes, fields, roles, keys = reader.decoded(lines)
            # most often the keys that were decoded are all there are
            if keys != most_keys(b"\n".join(lines)) and first_repeated(lines, list(map(_decode, lines))) is not None:
                return None
        except (*DECODING, InputError):
            return None
        return _changes(numbers, codes, fields, roles)

    def changes(
        self, numbers: Sequence[int], values: Sequence[Any]
    ) -> tuple[Changes, Counter[str], tuple[int, InputError] | None]:
        """The changes of these lines up to the first that is refused; how many lines are no events; and the place of
        the one that is refused, with the reason."""
        wrong = None
        while True:
            lines: list[int] = []
            steps: list[Step] = []
            skipped: Counter[str] = Counter()
            place = 0
            try:
                for place, value in enumerate(values):
                    found = self._steps_of(value)
                    if isinstance(found, str):
                        skipped[found] += 1
                    else:
                        lines += [place] * len(found)
                        steps += found
                return self._assembled(numbers, values, lines, steps), skipped, wrong
            except InputError as error:
                place = place if error.row is None else lines[error.row - 1]
                refusal = self._refusal(values[place], error)
                wrong = place, refusal.moved(Place(refusal.path or "", place + 1))
                values = values[:place]

    def note_unknown(self, numbers: Sequence[int], values: Sequence[Any], source: str) -> None:
        """Note the lines that would be refused for an unknown column alone."""
        form, refusals = self._strict, self._options.refusals
        if form is None or refusals is None:
            return
        alike: dict[tuple[str, ...], list[int]] = {}
        for number, value in zip(numbers, values, strict=True):
            steps = self._steps_of(value)
            for code, row, _, event in () if isinstance(steps, str) else steps:
                named = code == DELETE and (form.has_id(row) or "id" in form.known)
                if event is None and isinstance(row, dict) and code in (ADD, UPDATE, DELETE) and not named:
                    alike.setdefault(tuple(row), []).append(number)
        for keys, rows in alike.items():
            unknown = [key for key in keys if key not in form.taken]
            try:
                refuse([*keys, *self._schema.optional], form.fields, form.columns, unknown)
            except InputError as error:
                refusals.add(error.for_rows(np.unique(rows)).found_in(source, row=rows[0], unit="line"))

    def _assembled(
        self, numbers: Sequence[int], values: Sequence[Any], lines: Sequence[int], steps: Sequence[Step]
    ) -> Changes:
        """An error names the step that is refused as a row."""
        options, events = self._options, [values[line] for line in lines]
        codes = [code for code, _, _, _ in steps]
        fields, roles = self._form.cells(steps)
        if options.follow and options.time is not None:
            # otherwise all times were read before
            places = self.places("time")
            roles["time"] = [envelopes.value_at(event, places) for event in events]
        if options.position is not None:
            roles["position"] = self._positions(codes, events)
        changes = _changes([numbers[line] for line in lines], codes, fields, roles)
        try:
            require_needs(changes, timed=self._form.time is not None)
        except InputError as error:
            self._form.refuse(steps, error)
        return changes

    def places(self, role: str) -> list[tuple[str, ...]]:
        """Where a line may hold its time or position."""
        return envelopes.places_in(self.label or NATIVE, getattr(self._options, role) or "")

    def _positions(self, codes: Sequence[int], values: Sequence[Any]) -> list[int | None]:
        places, name = self.places("position"), self._options.position or ""
        found = [envelopes.value_at(value, places) for value in values]
        # a round may end without a position
        return [
            None if position is None and code == CLOSE else position_of(position, name, row)
            for row, (position, code) in enumerate(zip(found, codes, strict=True))
        ]

    def _steps_of(self, value: Any) -> list[Step] | str:
        try:
            if self._envelope is not None:
                return self._envelope(value)
        except InputError:
            if not envelopes.is_progress(value) and not self._may_be_native(value):
                raise
        if envelopes.is_progress(value):
            return [(CLOSE, {}, "", None)] if self._options.cut.close_by == "progress" else "progress messages"
        return [self._native.step(value)]

    def _refusal(self, value: Any, error: InputError) -> InputError:
        """What is wrong with a line that does not fit: that its envelope is another, or else the error."""
        if not self._may_be_native(value):
            other = self._label(value)
            if other not in (None, self.label):
                return InputError(f"expected {self.label}, as in the first events, got {other}")
            if self._envelope is not None and not isinstance(value, dict | list):
                return mismatch(f"an object, as in {self.label}", value, None)
        return error

    def _may_be_native(self, value: Any) -> bool:
        """Whether a line among those of another envelope is a native event."""
        if not isinstance(value, dict) or "op" not in value:
            return False
        if value["op"] in ("close", "erase") and {*value} <= {*KEYS}:
            return True
        other = self._label(value) if self.label == PLAIN else None
        return other == NATIVE or (self.label == PLAIN and other in (None, PLAIN) and "op" not in self._asked)


def _changes(numbers: Sequence[int], codes: list[int], fields: Cells | ObjectCells, roles: Cells) -> Changes:
    given = {role: column for role, column in roles.items() if column.count(None) < len(column)}
    whole = {role: _integers(given[role]) if role in _WHOLE else ColumnValues.of(given[role]) for role in given}
    cells = {name: column if isinstance(column, np.ndarray) else _objects(column) for name, column in fields.items()}
    values = {name: ColumnValues(column) for name, column in cells.items()}
    lines = np.arange(numbers.start, numbers.stop) if isinstance(numbers, range) else np.array(numbers, np.int64)
    return Changes(lines, np.array(codes, np.int8), values, whole)


def _objects(column: list[Any]) -> NDArray[Any]:
    return np.fromiter(column, object, len(column))


def _integers(column: list[Any]) -> ColumnValues:
    """Numbers of rounds, or positions; those beyond 64 bits become the largest or smallest."""
    present = None
    if None in column:
        present = np.fromiter((value is not None for value in column), np.bool_, len(column))
        column = [value or 0 for value in column]
    try:
        return ColumnValues(np.array(column, np.int64), present)
    except OverflowError:
        return ColumnValues(np.array([max(-(2**63), min(value, 2**63 - 1)) for value in column], np.int64), present)
