"""Events into a stream: updates are handed over in batches, and a refused batch names the line that it was refused for.

Within a round only the order of events on one id matters, so updates of different kinds are gathered side by side. What
is handed over goes with the position of its last event, both or neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

from retroact.errors import InputError, RetroactError
from retroact.feeds.events import Block, Event, Records, located
from retroact.feeds.missed import unfound
from retroact.feeds.options import Options
from retroact.feeds.rounds import Publish, Rounds, Totals
from retroact.stream import Stream


class Replay:
    """One file of events, one stream."""

    def __init__(
        self,
        stream: Stream,
        records: Records,
        name: str,
        options: Options,
        publish: Publish | None = None,
        totals: Totals | None = None,
    ) -> None:
        self.stream = stream
        self.records = records
        self.rounds = Rounds(stream, publish, options.rounds, totals)
        self.clocked = options.close_by in ("progress", "grid")
        """Whether something but the end of the input closes rounds."""
        self.source = options.source_name or name
        """What positions are kept under."""
        self.place: tuple[int, ...] | None = ()
        """What comes before the line in a position; None where lines are no positions."""
        self.total: tuple[int, ...] = ()
        """What comes after it."""
        self.begun = False
        """Whether something was handed over."""
        self._name = name
        self._closes = options.close_by in ("lines", "progress")
        self._numbered = options.close_by == "lines"
        self._by_number: bool | None = None
        """Whether events have the numbers of their rounds: all of them or none, as the first one says."""
        self._advanced = False
        self._position = options.position
        self._block, self._handed_over = Block(), 0
        self._fresh: dict[int, int] = {}
        """The positions of what waits to be handed over, with where in the block they come first."""
        self._forget()

    @property
    def totals(self) -> Totals:
        return self.rounds.totals

    def apply(self, block: Block) -> None:
        """All events of a block; what they update is handed over before this returns."""
        self._block, self._handed_over = block, 0
        self._fresh.clear()
        round, numbered, positions = self.stream.round, self._numbered, block.positions
        for position, event in enumerate(block.events):
            if numbered and (event.round is not None) is not self._by_number and event.op != "close":
                self._be_of_one_kind(position, event)
            if positions and self._came_before(position):
                continue
            if event.round is not None and numbered and (event.round != round or not self._advanced):
                self._advance(position, event.round)
                round = self.stream.round
            if event.op == "add" and event.record is not None:
                if event.id is None:
                    self._additions.append(event)
                else:
                    self._placements.append(event)
            elif event.op == "close":
                self._close_by(position, event)
                round = self.stream.round
            else:
                self._update(position, event)
        self._flush(len(block.events))

    def finish(self) -> None:
        """The end of the input. How many rounds are published never depends on the last records: up to ``rounds`` where
        that is given, one where nothing ends rounds, and otherwise as many as were closed by lines that say so."""
        try:
            if self.rounds.limit is not None:
                self.rounds.close_before(self.rounds.limit + 1)
            elif not self.clocked and not self._finished_before():
                self.rounds.close_last()
        except RetroactError as error:
            raise located(error, self._name, during="at its end") from None

    def _finished_before(self) -> bool:
        """Whether all of the input went into rounds that were closed before."""
        reached = self.stream.position(self.source)
        return not self.begun and bool(reached) and self.stream.settled(self.source) == reached

    def expect(self, block: Block) -> None:
        """Events like the first of these, which were handed over before."""
        if self._numbered and self._by_number is None:
            self._by_number = next((event.round is not None for event in block.events if event.op != "close"), None)

    def _be_of_one_kind(self, position: int, event: Event) -> None:
        """An event that has no number of a round, or has one, unlike those before it: it would get that of its
        neighbours."""
        if self._by_number is None:
            self._by_number = event.round is not None
            return
        self._flush(position)
        wrong = (
            "expected the number of its round, as the events before it have one, got none"
            if self._by_number
            else f"expected no number of a round, as the events before it have none, got {event.round!r}"
        )
        raise self._located(InputError(wrong, place="round"), position)

    def _forget(self) -> None:
        self._additions: list[Event] = []
        self._placements: list[Event] = []
        """Events on ids, in their order."""
        self._emptied = False
        """Whether some of them delete."""
        self._deletions: list[Event] = []
        self._erasures: list[Event] = []
        self._erased_after: list[tuple[int, int, int]] = []
        """The line of each of them, and how many additions and events on ids had come before."""

    def _came_before(self, index: int) -> bool:
        """Whether an event was taken already, by its position. Events of one line share theirs."""
        lines = self._block.lines
        position, line = self._block.positions[index], lines[index]
        if position is None:
            return False
        first = self._fresh.get(position)
        if first is not None and lines[first] == line:
            return False
        if first is not None or self.stream.delivered(self.source, position):
            if index == 0 or lines[index - 1] != line:
                if first is not None and self._content(first) != self._content(index):
                    self._flush(index)
                    wrong = f"every event needs a position of its own, got {position} as in line {lines[first]}"
                    raise self._located(InputError(wrong, place=self._position), index)
                self.totals.absorb(f"{self._name}:{line}")
            return True
        self._fresh[position] = index
        return False

    def _content(self, first: int) -> list[tuple[Any, ...]]:
        """What the events of one line say."""
        line, lines = self._block.lines[first], self._block.lines
        rest = range(first, len(lines))
        events = [self._block.events[index] for index in takewhile(lambda index: lines[index] == line, rest)]
        return [(event.op, event.record, event.id, event.subject, event.stamp, event.round) for event in events]

    def _update(self, position: int, event: Event) -> None:
        """Everything but a good addition: deletions and erasures are gathered, the rest is refused."""
        try:
            if event.op == "add":
                raise InputError("expected a record to add, got none", place="record")
            if event.op == "erase":
                if event.record is not None or event.id is not None or event.stamp is not None:
                    raise InputError("expected a subject alone", place="erase")
                if event.subject is None:
                    raise InputError("expected a subject to erase, got none", place="subject")
                self._erasures.append(event)
                line = self._block.lines[position]
                self._erased_after.append((line, len(self._additions), len(self._placements)))
            elif event.id is not None and event.record is None and event.stamp is None and event.subject is None:
                self._placements.append(event)
                self._emptied = True
            elif event.id is None and event.record is not None and event.stamp is not None:
                self._deletions.append(event)
            else:
                # the stream says why it takes no such deletion
                data = None if event.record is None else [self.records.as_dict(event.record)]
                self.stream.delete(data, stamp=event.stamp, id=event.id, subject=event.subject)
        except InputError as error:
            self._flush(position)
            raise self._located(error, position) from None

    def _flush(self, until: int, *, ends: bool = False) -> None:
        """Hand over what was gathered, from the events of the block before position ``until``; the last of them may end
        the round, which then closes with all of it or stays open without."""
        if not (self._additions or self._placements or self._deletions or self._erasures or ends):
            return
        lines, positions = self._block.lines, self._block.positions
        delivered = [p for p in positions[self._handed_over : until] if p is not None]
        if positions:
            reached: tuple[int, ...] = (max(delivered),) if delivered else ()
        else:
            reached = () if self.place is None else (*self.place, lines[until - 1], *self.total)
        self.begun = True
        added = (event.op == "add" for event in self._placements)
        self.rounds.take(waits=ends or bool(self._additions or self._deletions) or any(added))
        with self.stream.receiving(self.source, reached, delivered):
            missed = self._hand_over()
            if ends:
                self.clocked = True
                try:
                    self.rounds.close_one()
                except RetroactError as error:
                    raise self._located(error, until - 1) from None
        if missed:
            self.totals.missed.add(self._name, "line", missed)
        self._handed_over = until
        self._fresh = {position: index for position, index in self._fresh.items() if index >= until}
        self._forget()

    def _hand_over(self) -> list[int]:
        """The lines of erasures that found nothing."""
        stream, columns = self.stream, self.records.columns
        added = [event for event in self._placements if event.op == "add"] if self._emptied else self._placements
        if self._additions:
            with self._lines_of(self._additions):
                data = columns([event.record for event in self._additions])
                stamps = _stamps(self._additions, stream.round)
                stream.add(data, subject=_subjects(self._additions), stamp=stamps)
        if self._placements:
            with self._lines_of(added, {"id": self._placements}):
                ids = [event.id for event in self._placements]
                deleted = [event.op == "delete" for event in self._placements]
                subjects, stamps = _subjects(added), _stamps(added, stream.round)
                placed = columns([event.record for event in added]) if added else None
                stream.upsert(placed, id=ids, deleted=deleted, subject=subjects, stamp=stamps)
        if self._deletions:
            with self._lines_of(self._deletions):
                data = columns([event.record for event in self._deletions])
                stamps = _stamps(self._deletions, stream.round)
                stream.delete(data, stamp=stamps, subject=_subjects(self._deletions))
        if not self._erasures:
            return []
        with self._lines_of(self._erasures):
            outcomes = stream.erase(subject=[event.subject for event in self._erasures]).outcomes
        lines, additions, placements = zip(*self._erased_after, strict=True)
        owners = [None if event.op == "delete" else event.subject for event in self._placements]
        plain = [event.subject for event in self._additions]
        return [lines[place] for place in unfound(outcomes, (plain, additions), (owners, placements))]

    @contextmanager
    def _lines_of(self, events: list[Event], by_path: Mapping[str, list[Event]] | None = None) -> Iterator[None]:
        """What is refused of these events, handed over together, is told with its line."""
        try:
            yield
        except InputError as error:
            lines = {id(event): line for line, event in self._block.pairs()}
            among = (by_path or {}).get(error.path or "", events) or self._placements
            raise error.at([lines[id(event)] for event in among], self._name, "line") from None

    def _advance(self, position: int, target: int) -> None:
        self._flush(position)
        self.clocked = self._advanced = True
        try:
            self.rounds.advance(target)
        except RetroactError as error:
            raise self._located(error, position) from None

    def _close_by(self, position: int, event: Event) -> None:
        if not self._closes:
            self.totals.skipped["close lines"] += 1
            return
        if any(part is not None for part in (event.record, event.id, event.subject, event.stamp)):
            self._flush(position)
            raise self._located(InputError("expected nothing beside it, except a round", place="close"), position)
        self._flush(position + 1, ends=True)

    def _located(self, error: RetroactError, position: int) -> RetroactError:
        return located(error, self._name, row=self._block.lines[position], unit="line")


def _subjects(events: Iterable[Event]) -> list[Any] | None:
    subjects = [event.subject for event in events]
    return None if all(subject is None for subject in subjects) else subjects


def _stamps(events: Iterable[Event], now: int) -> list[int] | None:
    stamps = [event.stamp for event in events]
    return None if all(stamp is None for stamp in stamps) else [now if stamp is None else stamp for stamp in stamps]
