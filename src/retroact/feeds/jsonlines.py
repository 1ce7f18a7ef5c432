"""JSON lines: native events such as {"op": "add", "record": {...}}, or plain records where options name the columns.

Lines take the quick way, straight into structs; one that does not fit is looked at by hand, to say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.events import OPS, ROLES, Block, Event, Name, Records, Roles, located
from retroact.feeds.files import Source, not_utf8
from retroact.schema import Schema
from retroact.schema.messages import mismatch, show

_KEYS = tuple(Event.__struct_fields__)
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BYTE = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?(?: - at `.*`)?$")
_decode_any = msgspec.json.Decoder().decode


class JsonLines:
    """With ``roles``, objects without "op" are plain records, and keys that no statistic needs are ignored."""

    def __init__(self, source: Source, schema: Schema, records: Records, *, roles: Roles | None) -> None:
        self.source = source
        self.schema = schema
        self.records = records
        self.roles = Roles()
        """What the first record has."""
        self.ignored: tuple[str, ...] = ()
        self.plain = False
        self._named = roles
        self._known = Roles() if roles is None else roles.known(schema.fields)
        self._native = msgspec.json.Decoder(records.event).decode
        self._parse_plain = None if roles is None else _plain_parser(records, roles, self._known)

    def __iter__(self) -> Iterator[Block]:
        line = 1
        parse: Callable[[bytes], Event] | None = None
        for content in self.source.blocks():
            block = Block()
            lines = content.removesuffix(b"\n").split(b"\n")
            parse = parse or self._recognise(lines)
            try:
                for number, text in enumerate(lines, line):
                    try:
                        event = (parse or self._native)(text)
                    except _REFUSED:
                        if not text.strip():
                            continue
                        event = self._by_hand(text, number)
                    block.events.append(event)
                    block.lines.append(number)
            except InputError:
                # what comes before the error is good, and may have ended rounds
                yield block
                raise
            line += len(lines)
            if block.events:
                yield block

    def _recognise(self, lines: list[bytes]) -> Callable[[bytes], Event] | None:
        """How most lines are read, from the first one; the others are found out by hand."""
        first = next((line for line in lines if line.strip()), None)
        if first is None:
            return None
        try:
            value = _decode_any(first)
        except _REFUSED:
            return self._native
        if not isinstance(value, dict):
            return self._native
        self.plain = self._is_plain(value)
        record = value if self.plain else value.get("record")
        if self.plain:
            self.roles = Roles(**{role: column for role, column in self._known.items() if column in value})
        if not self.records.strict and isinstance(record, dict):
            needed = {*self.records.names, *(column for _, column in self.roles.items())}
            self.ignored = tuple(key for key in record if key not in needed)
        return self._parse_plain if self.plain and self._parse_plain else self._native

    def _is_plain(self, value: Mapping[str, Any]) -> bool:
        return self._parse_plain is not None and ("op" not in value or "op" in self._columns())

    def _columns(self) -> set[str]:
        """All that a plain record is asked for."""
        return {*self.records.names, *(column for _, column in self._known.items())}

    def _by_hand(self, text: bytes, line: int) -> Event:
        try:
            value = self._value(text)
            if not isinstance(value, dict):
                raise mismatch('an object such as {"op": "add", "record": {...}}', value, None)
            if self._parse_plain is not None and self._is_plain(value):
                self._check_plain(value)
                return self._parse_plain(text)
            self._check_native(value)
            event: Event = self._native(text)
            return event
        except InputError as wrong:
            raise located(wrong, self.source.at(line)) from None
        except _REFUSED as other:
            raise InputError(f"{self.source.at(line)}: {_reason(other)[0]}") from None

    def _value(self, text: bytes) -> Any:
        try:
            return _decode_any(text)
        except UnicodeDecodeError:
            # the error speaks of one text inside the line
            try:
                text.decode()
            except UnicodeDecodeError as whole:
                raise not_utf8(whole, f"column {whole.start + 1}") from None
            raise
        except RecursionError:
            raise InputError("expected JSON, got more nesting than can be read") from None
        except msgspec.DecodeError as error:
            reason, byte = _reason(error)
            at = len(text) if byte is None else byte
            word = re.match(rb"-?(NaN|Infinity)", text[at:] if text[at - 1 : at] != b"-" else text[at - 1 :])
            if word:
                raise InputError(
                    f"expected a finite number, got {word[0].decode()}", place=f"column {at + 1}"
                ) from None
            raise InputError(f"expected JSON, got broken JSON ({reason})", place=f"column {at + 1}") from None

    def _check_plain(self, value: Mapping[str, Any]) -> None:
        self._check_record({name: value[name] for name in self.records.columns_read if name in value})
        for role, column in self._known.items():
            if column not in value and self._named is not None and getattr(self._named, role):
                raise InputError(f"expected {show(column)}, the {role} of the record, got none")
            _check_role(role, value.get(column), column)

    def _check_native(self, value: Mapping[str, Any]) -> None:
        if "op" not in value:
            hint = "plain records are read with options such as --count in place of --spec"
            raise InputError(f'expected "op" with one of {", ".join(OPS)}, got none; {hint}')
        if value["op"] not in OPS:
            raise mismatch(f"one of {', '.join(OPS)}", value["op"], "op")
        for key in value:
            if key not in _KEYS:
                raise InputError(f"expected only {', '.join(_KEYS)}, got {show(key)}", place=key)
        record = value.get("record")
        if record is not None:
            if not isinstance(record, dict):
                raise mismatch("an object", record, "record")
            given = record if self.records.strict else {n: record[n] for n in self.records.columns_read if n in record}
            self._check_record(given)
        for role in ROLES:
            _check_role(role, value.get(role), role)

    def _check_record(self, given: Mapping[str, Any]) -> None:
        constant = {name: 0 for name in self.records.names if name not in self.records.columns_read}
        self.schema.encode_record({**given, **constant})


def _plain_parser(records: Records, named: Roles, known: Roles) -> Callable[[bytes], Event]:
    """From a plain record to an event. Columns that options name must be there, others called so may be."""
    extra: list[tuple[str, Any, Any]] = []
    if "op" not in (*records.names, *(column for _, column in known.items())):
        extra.append(("op", Any, msgspec.UNSET))
    where: dict[str, str] = {}
    for role, column in known.items():
        where[role] = records.attributes.get(column, f"{role}_")
        if column not in records.attributes:
            kind = Name | None if role in ("id", "subject") else int | None
            default = msgspec.NODEFAULT if getattr(named, role) else None
            extra.append((f"{role}_", kind, msgspec.field(name=column, default=default)))
    plain = msgspec.defstruct("PlainRecord", extra, bases=(records.row,), kw_only=True, gc=False)
    decode = msgspec.json.Decoder(plain).decode
    id_, subject, stamp, round_ = (where.get(role, "_absent") for role in ROLES)

    def parse(text: bytes) -> Event:
        row: Any = decode(text)
        if getattr(row, "op", msgspec.UNSET) is not msgspec.UNSET:
            raise msgspec.DecodeError("a native event")
        return Event(
            "add",
            row,
            getattr(row, id_, None),
            getattr(row, subject, None),
            getattr(row, stamp, None),
            getattr(row, round_, None),
        )

    return parse


def _check_role(role: str, value: Any, place: str) -> None:
    if value is None:
        return
    if role in ("id", "subject"):
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise mismatch("text or a whole number", value, place)
    elif isinstance(value, bool) or not isinstance(value, int):
        raise mismatch("a whole number", value, place)


def _reason(error: Exception) -> tuple[str, int | None]:
    """What msgspec says, in few words, and the byte it speaks of."""
    found = _BYTE.match(str(error))
    if found is None:
        return str(error), None
    reason = found[1][:1].lower() + found[1][1:]
    # of trailing characters it names the second
    return reason, None if found[2] is None else int(found[2]) - (reason == "trailing characters")
