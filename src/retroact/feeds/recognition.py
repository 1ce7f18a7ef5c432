"""What the lines of a source are taken for, from the first that tells; and what is wrong with one that does not fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.envelopes import (
    IMAGES,
    KEYS,
    MARKS,
    NATIVE,
    PLAIN,
    PROGRESS,
    Envelope,
    envelope_for,
    is_progress,
    of_row,
    operation_in,
    recognise,
    row_in,
)
from retroact.feeds.events import OPS, ROLES, Event, RecordType, Roles, key_of
from retroact.feeds.operation_words import OPERATION_COLUMNS, WEIGHT_COLUMNS
from retroact.feeds.options import Options
from retroact.feeds.plain import Plain
from retroact.feeds.roles import METADATA, known, refuse, required
from retroact.feeds.shapes import Shape, check_role
from retroact.feeds.source import not_utf8
from retroact.messages import mismatch, show
from retroact.schema import Schema

Parse = Callable[[bytes], Event | list[Event]]
REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BYTE = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?(?: - at `.*`)?$")
_decode_any = msgspec.json.Decoder().decode


class Recognition:
    """Lines take the quick way, straight into structs (`parse`); one that does not fit is looked at `by_hand`."""

    def __init__(self, schema: Schema, options: Options) -> None:
        self.schema = schema
        self.options = options
        self.roles = Roles()
        """What the first record has."""
        self.ignored: tuple[str, ...] = ()
        self.skipped: Counter[str] = Counter()
        """Lines that are no events, by what they are."""
        self.label: str | None = None
        """The envelope, once an event was seen."""
        self._roles = options.columns.without(schema.fields)
        self._named, self._known = required(self._roles), known(self._roles)
        self._listed = () if isinstance(self._roles.ignore, bool) else self._roles.ignore
        self._beside = {path for path in (*map(self._roles.column, ("time", "position")), *self._listed) if path}
        """Columns, where they are no paths, that are data whatever they are called."""
        beside = self._tops()
        self.records = self._records([*beside, *self._listed])
        others = [key_of(name) for name in dict.fromkeys(beside) if name not in KEYS]
        columns: list[Any] = [("record", self.records.row | None, None)]
        columns += [(f"beside{n}", Any, msgspec.field(name=name, default=None)) for n, name in enumerate(others)]
        event: Any = msgspec.defstruct("NativeEvent", columns, bases=(Event,), forbid_unknown_fields=True, gc=False)
        self._native: Parse = msgspec.json.Decoder(event).decode
        self._envelope: Envelope | None = None

    def begin_anew(self) -> None:
        self.label = self._envelope = None
        self.skipped.clear()

    @property
    def parse(self) -> Parse:
        return self._native if self._envelope is None else self._envelope.parse

    def recognise(self, lines: list[bytes]) -> str | None:
        """The envelope of the first line that tells."""
        for text in lines:
            try:
                value = _decode_any(text)
            except REFUSED:
                if text.strip():
                    # refused when it is read
                    break
                continue
            label = self._label(value)
            if label is not None:
                self._begin(label, value)
                return label
        return None

    def _begin(self, label: str, value: Any) -> None:
        """Lines are of this envelope from now on."""
        self.label = label
        row = row_in(label, value)
        mark = operation_in(label, self._roles.column("op"))
        if mark is not None and mark != self._roles.column("op") and not self._roles.marked:
            refuse(row, self.records.columns_read, self._roles, [mark])
        others = METADATA.get(mark or "", ())
        if label != NATIVE:
            self.records = self._records(self._unread(label, mark))
            self.roles = Roles(**{role: column for role, column in self._known.items() if column in row})
        if label == PLAIN:
            data = {*self._columns(), *self._beside}
            shape = Shape(self.records, self._named, self._known, unknown=self._only_known(mark))
            self._envelope = Plain(shape, self.schema, data)
        elif label != NATIVE:
            # the round of a row is its own only where it is asked for
            round = self._named.round
            ids = self._named.id if self._named.id is not None else self.roles.id
            self.roles = Roles(ids, self.roles.subject, self.roles.stamp, round)
            known = Roles(self._known.id, self._known.subject, self._known.stamp, round)
            time = of_row(label, self.options.time)
            rows = Shape(self.records, self._named, known, time, self._only_known(mark))
            self._envelope = envelope_for(label, rows, self.schema, self.skipped, self.options.contribution, mark)
        needed = {*self.records.names, *(column for _, column in self.roles.items()), *others, *self._tops(), mark}
        self.ignored = tuple(key for key in row if key not in needed)

    def _records(self, beside: Sequence[str]) -> RecordType:
        strict, optional = self._roles.ignore is not True, self.schema.optional
        return RecordType(list(self.schema.fields), strict=strict, beside=[*dict.fromkeys(beside)], optional=optional)

    def _unread(self, label: str, mark: str | None) -> list[str]:
        """The keys that a row may have beside those that are read from it."""
        read = {*self.records.columns_read, *(column for role, column in self._known.items() if role != "round"), mark}
        read |= {of_row(label, self.options.time)} if label != PLAIN else set()
        read |= {column for column in (self._known.round,) if label == PLAIN or column == self._named.round}
        read |= {PROGRESS} if mark in WEIGHT_COLUMNS else set()
        if label == PLAIN:
            read |= {*OPERATION_COLUMNS, *WEIGHT_COLUMNS, PROGRESS, *MARKS, *IMAGES}.difference(self._beside)
        roles = [own.column for _, own in self._roles.items()]
        every = [*roles, *self._tops(), *self._listed, *METADATA.get(mark or "", ())]
        return [name for name in dict.fromkeys(every) if name not in read]

    def _only_known(self, mark: str | None) -> Callable[[Mapping[str, Any]], None] | None:
        """What refuses a row with a key that is nothing."""
        if not self.records.strict:
            return None
        fields = self.records.columns_read
        others = (*self._tops(), *self._listed, *METADATA.get(mark or "", ()), *([mark] if mark else []))
        taken = {*fields, *(own.column for _, own in self._roles.items()), *others}

        def check(row: Mapping[str, Any]) -> None:
            unknown = [key for key in row if key not in taken]
            if unknown:
                refuse([*row, *self.schema.optional], fields, self._roles, unknown)

        return check

    def _tops(self) -> list[str]:
        """The first parts of the paths of times and positions."""
        return [path.split(".")[0] for path in map(self._roles.column, ("time", "position")) if path]

    def _label(self, value: Any) -> str | None:
        operation = self._roles.column("op")
        own = None if operation in ("op", *self._columns()) else operation
        return recognise(value, {*self.records.columns_read}, self._columns(), self._beside, own)

    def _columns(self) -> set[str]:
        """All that a row is asked for."""
        return {*self.records.columns_read, *(column for _, column in self._known.items())}

    def by_hand(self, text: bytes) -> Event | list[Event]:
        """The events of a line that does not fit, or what is wrong with it."""
        try:
            value = _value(text)
            if is_progress(value):
                if self.options.close_by == "progress":
                    return Event("close")
                self.skipped["progress messages"] += 1
                return []
            if value is None and self.label is not None and self.label.startswith("Debezium"):
                self.skipped["tombstones"] += 1
                return []
            native = isinstance(value, dict) and value.get("op") in ("close", "erase") and {*value} <= {*KEYS}
            other = self._label(value)
            if other is None or other == self.label or native or (other == NATIVE and self.label == PLAIN):
                return self._checked(text, value, native=native or other == NATIVE)
            raise InputError(f"expected {self.label}, as in the first events, got {other}")
        except REFUSED as refused:
            raise InputError(_reason(refused)[0]) from None

    def _checked(self, text: bytes, value: Any, *, native: bool) -> Event | list[Event]:
        if self._envelope is None or native or self._is_native(value):
            self._check_native(value)
            return self._native(text)
        if not isinstance(value, dict | list):
            raise mismatch(f"an object, as in {self.label}", value, None)
        self._envelope.check(value)
        return self._envelope.parse(text)

    def _is_native(self, value: Any) -> bool:
        """Whether a line among plain records is to be taken as a native event."""
        return self.label == PLAIN and isinstance(value, dict) and "op" in value and "op" not in self._columns()

    def _check_native(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise mismatch('an object such as {"op": "add", "record": {...}}', value, None)
        if "op" not in value:
            raise InputError(f'expected "op" with one of {", ".join(OPS)}, got none')
        if value["op"] not in OPS:
            raise mismatch(f"one of {', '.join(OPS)}", value["op"], "op")
        beside = self._tops()
        for key in value:
            if key not in KEYS and key not in beside:
                raise InputError(f"expected only {', '.join(KEYS)}, got {show(key)}", place=key)
        record = value.get("record")
        if record is not None:
            self._check_record(record, [*beside, *self._listed])
        for role in ROLES:
            check_role(role, value.get(role), role)

    def _check_record(self, record: Any, beside: list[str]) -> None:
        if not isinstance(record, dict):
            raise mismatch("an object", record, "record")
        names = self.records.columns_read
        constant = {name: 0 for name in self.records.names if name not in names}
        given = {name: record[name] for name in record if name in names or (self.records.strict and name not in beside)}
        self.schema.encode_record({**given, **constant})


def _value(text: bytes) -> Any:
    try:
        return _decode_any(text)
    except UnicodeDecodeError:
        # the error speaks of one text inside the line
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(error, f"column {error.start + 1}") from None
        raise
    except RecursionError:
        raise InputError("expected JSON, got more nesting than can be read") from None
    except msgspec.DecodeError as error:
        reason, byte = _reason(error)
        at = len(text) if byte is None else byte
        word = re.match(rb"-?(NaN|Infinity)", text[at:] if text[at - 1 : at] != b"-" else text[at - 1 :])
        if word:
            raise InputError(f"expected a finite number, got {word[0].decode()}", place=f"column {at + 1}") from None
        raise InputError(f"expected JSON, got broken JSON ({reason})", place=f"column {at + 1}") from None


def _reason(error: Exception) -> tuple[str, int | None]:
    """What msgspec says, in few words, and the byte it speaks of."""
    found = _BYTE.match(str(error))
    if found is None:
        return str(error), None
    reason = found[1][:1].lower() + found[1][1:]
    # of trailing characters it names the second
    return reason, None if found[2] is None else int(found[2]) - (reason == "trailing characters")
