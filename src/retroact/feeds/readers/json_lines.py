"""JSON lines: the envelope is recognised from the first events and then enforced."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retroact.arrays import I64
from retroact.errors import InputError, Unit
from retroact.feeds.batch import Changes
from retroact.feeds.envelopes import NATIVE, PLAIN, places_in
from retroact.feeds.events import Event, Events, Roles
from retroact.feeds.json_paths import picker, position_of
from retroact.feeds.options import Options
from retroact.feeds.readers.repeated_keys import first_repeated
from retroact.feeds.recognition import REFUSED, Recognition
from retroact.feeds.source import Source
from retroact.schema import Schema

Pick = Callable[[bytes], Any]
# Of these, more cannot make anything but an addition, since no key comes twice.
_ADDS = re.compile(rb'\s*\{\s*"op"\s*:\s*"add"\s*[,}]')


class JsonLines:
    """Keys of records that are neither fields nor roles are refused, unless they are to be ignored."""

    unit: Unit = "line"

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        self.source = source
        self.options = options
        self.begin_after = 0
        """The lines up to this one were read before."""
        self._seen = Recognition(schema, options)
        self._line = 1

    @property
    def label(self) -> str | None:
        """The envelope, once an event was seen."""
        return self._seen.label

    @property
    def roles(self) -> Roles:
        """What the first record has."""
        return self._seen.roles

    @property
    def ignored(self) -> tuple[str, ...]:
        return self._seen.ignored

    @property
    def skipped(self) -> Counter[str]:
        """Lines that are no events, by what they are."""
        return self._seen.skipped

    @property
    def has_column_names(self) -> bool:
        """Whether columns have names that are worth telling."""
        return self.label not in (None, NATIVE)

    def __iter__(self) -> Iterator[Changes]:
        for events in self._blocks():
            if not events.events:
                yield Changes.nothing()
                continue
            refused = events.first_refused(closes=self.options.close_by in ("lines", "progress"))
            if refused is None:
                yield events.changes(self._seen.records)
                continue
            place, wrong = refused
            line = events.lines[place]
            events.cut(place)
            if events.events:
                yield events.changes(self._seen.records)
            raise self.source.refused(wrong, line)

    def _blocks(self) -> Iterator[Events]:
        self._seen.begin_anew()
        line = self._line = 1
        parse = self._seen.parse
        time, position = self._picker("time"), self._picker("position")
        several = time is not None or position is not None
        for content in self.source.blocks():
            block = Events()
            lines = content.removesuffix(b"\n").split(b"\n") if content else []
            if self.label is None and self._seen.recognise(lines) is not None:
                parse = self._seen.parse
                time, position = self._picker("time"), self._picker("position")
                several = self.label not in (NATIVE, PLAIN) or several
            start, line = line, line + len(lines)
            self._line = line
            if start <= self.begin_after:
                if line <= self.begin_after + 1:
                    continue
                lines = lines[self.begin_after + 1 - start :]
                start = self.begin_after + 1
            took, at = block.events.append, block.lines.append
            try:
                for number, text in enumerate(lines, start):
                    try:
                        event: Any = parse(text)
                    except (*REFUSED, InputError):
                        if text.strip():
                            self._several(block, number, text, self._by_hand(text, number), time, position)
                        continue
                    if several:
                        self._several(block, number, text, event, time, position)
                    else:
                        took(event)
                        at(number)
            except InputError as wrong:
                # what comes before the error is good, and may have ended rounds
                twice = self._twice(lines, start, block)
                yield block
                raise (twice or wrong) from None
            twice = self._twice(lines, start, block)
            if block.events or self.source.follow:
                yield block
            if twice is not None:
                raise twice

    def _twice(self, lines: list[bytes], start: int, block: Events) -> InputError | None:
        """The first line with a key that comes twice, which is taken out of the block with all that follow it."""
        found = first_repeated(
            lines, block.events, len(self._seen.records.columns_read) if self.label == NATIVE else None
        )
        if found is None:
            return None
        block.cut(bisect_left(block.lines, start + found[0]))
        return self.source.refused(found[1], start + found[0])

    def unfinished(self) -> tuple[int, bool] | None:
        """The number of a last line that nothing ends, and whether it can only become an addition."""
        rest = self.source.rest
        if not rest.strip():
            return None
        if self.label in (None, NATIVE) and _ADDS.match(rest):
            return self._line, True
        skipped = self.skipped.copy()
        try:
            if self.label is None:
                self._seen.recognise([rest])
            # an object that is whole cannot become another one
            found = self._by_hand(rest, self._line) if rest.rstrip().endswith(b"}") else Event("close")
        except InputError:
            return self._line, False
        finally:
            self._seen.skipped = skipped
        events = found if isinstance(found, list) else [found]
        return self._line, all(event.op == "add" for event in events)

    def count(self) -> int:
        """How many lines there are, when all were read."""
        return self.source.lines

    def times(self) -> Iterator[tuple[Any, Any]]:
        """The lines that have a time, block by block, with their times as they stand."""
        line = 1
        pick: Pick | None = None
        waiting: list[tuple[int, bytes]] = []
        for content in self.source.blocks():
            lines = content.removesuffix(b"\n").split(b"\n")
            numbered = [(number, text) for number, text in enumerate(lines, line) if text]
            line += len(lines)
            if pick is None and self.label is None and self._seen.recognise(lines) is None:
                # where their times are, a later line tells
                waiting += numbered
                continue
            pick = pick or self._time_picker()
            yield from _timed(pick, waiting + numbered)
            waiting = []
        if waiting:
            yield from _timed(self._time_picker(), waiting)

    def _by_hand(self, text: bytes, line: int) -> Event | list[Event]:
        try:
            return self._seen.by_hand(text)
        except InputError as wrong:
            raise self.source.refused(wrong, line) from None

    def _time_picker(self) -> Pick:
        return picker(places_in(self.label or NATIVE, self.options.time or ""))

    def _picker(self, role: str) -> Pick | None:
        """What finds a position and, where there is no pass over all times first, a time."""
        path: str | None = getattr(self.options, role)
        if path is None or (role == "time" and not self.options.follow):
            return None
        return picker(places_in(self.label or NATIVE, path))

    def _several(
        self,
        block: Events,
        line: int,
        text: bytes,
        found: Event | list[Event],
        time: Pick | None,
        position: Pick | None,
    ) -> None:
        """The events of one line, with its time and position."""
        events = found if isinstance(found, list) else [found]
        if position is not None and events:
            place = position(text)
            # a round may end without a position
            if place is not None or events[0].op != "close":
                try:
                    place = position_of(place, self.options.position or "")
                except InputError as wrong:
                    raise self.source.refused(wrong, line) from None
            block.positions += [place] * len(events)
        if time is not None and events:
            block.times += [time(text)] * len(events)
        block.events += events
        block.lines += [line] * len(events)


def _timed(pick: Pick, numbered: Sequence[tuple[int, bytes]]) -> Iterator[tuple[I64, list[Any]]]:
    found = [(number, pick(text)) for number, text in numbered]
    timed = [(number, time) for number, time in found if time is not None]
    if timed:
        yield np.array([number for number, _ in timed], np.int64), [time for _, time in timed]
