"""JSON lines, decoded block by block."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from ...errors import InputError, Unit
from ...schema import Schema
from ..batch import ADD, UPDATE, Changes
from ..envelopes import value_at
from ..json_events import JsonEvents
from ..native_events import DECODING, NATIVE
from ..options import Options
from ..refusals import runs_of
from ..source import Source, not_utf8
from .repeated_keys import first_repeated

# Whatever follows, a line that begins like this is an addition, since no key may come twice.
_ADDS = re.compile(rb'\s*\{\s*"op"\s*:\s*"add"\s*[,}]')
_BYTE = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?(?: - at `.*`)?$")
_decode = msgspec.json.Decoder().decode


class JsonLines(JsonEvents):
    """Keys of records that are neither fields nor roles are refused, unless they are to be ignored."""

    unit: Unit = "line"

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        super().__init__(schema, options)
        self.source = source
        self.begin_after = 0
        """The lines up to this one were read before."""
        self._line = 1

    @property
    def has_column_names(self) -> bool:
        """Whether columns have names that are worth showing."""
        return self.label not in (None, NATIVE)

    def __iter__(self) -> Iterator[Changes]:
        self.begin_anew()
        for start, lines in self._blocks():
            if self.label is None or self._line > self.begin_after + 1:
                yield from self._read(start, lines)

    def _read(self, start: int, lines: list[bytes]) -> Iterator[Changes]:
        """The changes of lines from this one on."""
        changes = self.quick(range(start, start + len(lines)), lines) if start > self.begin_after else None
        if changes is not None:
            yield changes
            return
        numbers, values, wrong = _decoded(lines, start, self.source)
        if self.label is None:
            self.recognise(values)
        left = bisect_left(numbers, self.begin_after + 1)
        numbers, values = numbers[left:], values[left:]
        twice = first_repeated([lines[number - start] for number in numbers], values)
        if twice is not None:
            values, wrong = values[: twice[0]], self.source.refused(twice[1], numbers[twice[0]])
        changes, skipped, refusal = self.changes(numbers, values)
        if refusal is not None:
            wrong = self.source.refused(refusal[1], numbers[refusal[0]])
        if wrong is not None and self._options.refusals is not None:
            for rows in self._options.refusals.left(wrong, np.arange(start, start + len(lines))):
                for first, end in runs_of(rows):
                    yield from self._read(start + first, lines[first:end])
            return
        self.skipped.update(skipped)
        self.note_unknown(numbers, values, self.source.name)
        if len(changes) or wrong is not None or self.source.follow:
            # lines before an error are good, and may end rounds
            yield changes
        if wrong is not None:
            raise wrong

    def _blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """The number of the first line of a block, and the lines."""
        self._line = 1
        for content in self.source.blocks():
            lines = content.removesuffix(b"\n").split(b"\n") if content else []
            start, self._line = self._line, self._line + len(lines)
            yield start, lines

    def look(self) -> list[Any]:
        """The first lines, decoded; without those that are no JSON."""
        lines = next((lines for _, lines in self._blocks()), [])
        return [value for value in map(_whatever, lines) if value is not None]

    def unfinished(self) -> tuple[int, bool] | None:
        """The number of a last line without an end, and whether it can only become an addition."""
        rest = self.source.rest
        if not rest.strip():
            return None
        if self.label in (None, NATIVE) and _ADDS.match(rest):
            return self._line, True
        _, values, _ = _decoded([rest], self._line, self.source)
        if not values or not rest.rstrip().endswith(b"}"):
            # only a whole object cannot become another one
            return self._line, False
        try:
            if self.label is None:
                self.recognise(values)
        except InputError:
            return self._line, False
        changes, _, wrong = self.changes([self._line], values)
        return self._line, wrong is None and bool(np.isin(changes.codes, (ADD, UPDATE)).all())

    def times(self) -> Iterator[tuple[Any, Any]]:
        """The lines that have a time, and their times, block by block."""
        waiting: list[tuple[int, Any]] = []
        for start, lines in self._blocks():
            waiting += [(number, _whatever(text)) for number, text in enumerate(lines, start)]
            if self.label is None and not self.recognise([value for _, value in waiting]):
                # a later line tells where their times are
                continue
            yield from self._timed(waiting)
            waiting = []
        yield from self._timed(waiting)

    def _timed(self, numbered: list[tuple[int, Any]]) -> Iterator[tuple[Any, Any]]:
        places = self.places("time")
        found = [(number, time) for number, value in numbered if (time := value_at(value, places)) is not None]
        if found:
            yield np.array([number for number, _ in found], np.int64), [time for _, time in found]


def _decoded(lines: list[bytes], start: int, source: Source) -> tuple[Sequence[int], list[Any], InputError | None]:
    """The numbers and values of lines that are not blank, up to one that is no JSON; and what is wrong with that."""
    try:
        return range(start, start + len(lines)), list(map(_decode, lines)), None
    except DECODING:
        pass
    numbers: list[int] = []
    values: list[Any] = []
    for number, text in enumerate(lines, start):
        if text.strip():
            try:
                values.append(_decode(text))
            except DECODING as error:
                return numbers, values, source.refused(_reason(text, error), number)
            numbers.append(number)
    return numbers, values, None


def _whatever(text: bytes) -> Any:
    try:
        return _decode(text)
    except DECODING:
        return None  # refused when it is read


def _reason(text: bytes, error: Exception) -> InputError:
    """What is wrong with a line that is no JSON."""
    if isinstance(error, RecursionError):
        return InputError("expected JSON, got more nesting than can be read")
    try:
        # the decoder's own error is about a text inside the line
        text.decode()
    except UnicodeDecodeError as odd:
        return not_utf8(odd, f"column {odd.start + 1}")
    found = _BYTE.match(str(error))
    reason = str(error) if found is None else found[1][:1].lower() + found[1][1:]
    at = len(text) if found is None or found[2] is None else int(found[2])
    # the decoder names the second of trailing characters
    at -= found is not None and found[2] is not None and reason == "trailing characters"
    word = re.match(rb"-?(NaN|Infinity)", text[at:] if text[at - 1 : at] != b"-" else text[at - 1 :])
    if word:
        return InputError(f"expected a finite number, got {word[0].decode()}", place=f"column {at + 1}")
    return InputError(f"expected JSON, got broken JSON ({reason})", place=f"column {at + 1}")
