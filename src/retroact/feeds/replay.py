"""Events into a stream: updates are handed over in batches, and a refused batch names the line that it was refused for.

Within a round only the order of events on one id matters, so updates of different kinds are gathered side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from retroact.errors import InputError, RetroactError
from retroact.feeds.events import Block, Event, Records, located
from retroact.stream import Round, Stream

# A leap over more rounds is a mistake, such as a date or a second taken for the number of a round.
LONGEST_LEAP = 1_000_000


@dataclass
class Totals:
    """What was done, over all rounds."""

    rounds: int = 0
    added: int = 0
    removed: int = 0
    ignored_deletions: int = 0
    ignored_additions: int = 0


class Replay:
    """One file of events, one stream."""

    def __init__(
        self,
        stream: Stream,
        records: Records,
        name: str,
        publish: Callable[[Round], None],
        rounds: int | None = None,
    ) -> None:
        self.stream = stream
        self._rounds = rounds
        self.totals = Totals()
        self.clocked = False
        """Whether a close line or a round number was seen."""
        self._records = records
        self._name = name
        self._publish = publish
        self.open = False
        """Whether something waits for a round to close."""
        self._block, self._handed_over = Block(), 0
        self._forget()

    def apply(self, block: Block) -> None:
        """All events of a block; what they update is handed over before this returns."""
        self._block, self._handed_over = block, 0
        round = self.stream.round
        for position, event in enumerate(block.events):
            if event.round is not None and (event.round != round or not self.clocked):
                self._advance(position, event.round)
                round = self.stream.round
            if event.op == "add" and event.record is not None:
                if event.id is None:
                    self._additions.append(event)
                else:
                    if self._emptied and str(event.id) in self._emptied_ids:
                        self._flush(position)
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
            while self._rounds is not None and self.stream.round <= self._rounds:
                self._close()
            if self._rounds is None and not self.clocked:
                self._close()
        except RetroactError as error:
            raise located(error, f"{self._name}, at its end") from None

    def _forget(self) -> None:
        self._additions: list[Event] = []
        self._placements: list[Event] = []
        self._emptied: list[Event] = []
        self._emptied_ids: set[str] = set()
        self._deletions: list[Event] = []
        self._erasures: list[Event] = []

    def _update(self, position: int, event: Event) -> None:
        """Everything but a good addition: deletions and erasures are gathered, the rest is refused."""
        try:
            if event.op == "add":
                raise InputError("expected a record to add, got none", place="record")
            if event.op == "erase":
                if event.record is not None or event.id is not None or event.stamp is not None:
                    raise InputError("expected a subject alone", place="erase")
                self._erasures.append(event)
            elif event.id is not None and event.record is None and event.stamp is None and event.subject is None:
                self._emptied.append(event)
                self._emptied_ids.add(str(event.id))
            elif event.id is None and event.record is not None and event.stamp is not None:
                self._deletions.append(event)
            else:
                # the stream says why it takes no such deletion
                self._one(event)
        except InputError as error:
            self._flush(position)
            raise self._located(error, position) from None

    def _flush(self, until: int) -> None:
        """Hand over what was gathered, from the events of the block before position ``until``."""
        if not (self._additions or self._placements or self._emptied or self._deletions or self._erasures):
            return
        self.open = True
        stream, columns = self.stream, self._records.columns
        try:
            for events, ids in ((self._additions, None), (self._placements, _ids(self._placements))):
                if events:
                    data = columns([event.record for event in events])
                    stream.add(data, id=ids, subject=_subjects(events), stamp=_stamps(events, stream.round))
            if self._emptied:
                stream.delete(id=_ids(self._emptied))
            if self._deletions:
                data = columns([event.record for event in self._deletions])
                stamps = _stamps(self._deletions, stream.round)
                stream.delete(data, stamp=stamps, subject=_subjects(self._deletions))
            if self._erasures:
                subjects: list[Any] = [event.subject for event in self._erasures]
                stream.erase(subject=subjects)
        except InputError as error:
            self._name_the_line(error, until)
        self._handed_over = until
        self._forget()

    def _name_the_line(self, refused: InputError, until: int) -> NoReturn:
        """Again, one by one: the stream is not used any more after an error."""
        for position in range(self._handed_over, until):
            event = self._block.events[position]
            try:
                if event.op != "close":
                    self._one(event)
            except InputError as error:
                raise self._located(error, position) from None
        first, last = self._block.lines[self._handed_over], self._block.lines[until - 1]
        raise located(refused, f"{self._name}:{first}-{last}")

    def _one(self, event: Event) -> None:
        record = None if event.record is None else self._records.as_dict(event.record)
        if record is not None:
            self.stream.schema.encode_record(record)
        # as lists, since a record with a list in it would look like columns
        if event.op == "add":
            ids = None if event.id is None else [event.id]
            self.stream.add([record], id=ids, subject=[event.subject], stamp=event.stamp)
        elif event.op == "erase":
            if event.subject is None:
                raise InputError("expected a subject to erase, got none", place="subject")
            self.stream.erase(subject=[event.subject])
        else:
            data = None if record is None else [record]
            self.stream.delete(data, stamp=event.stamp, id=event.id, subject=event.subject)

    def _advance(self, position: int, target: int) -> None:
        self._flush(position)
        here = self.stream.round
        self.clocked = True
        try:
            if self._rounds is None:
                raise InputError(
                    "rounds by number need --rounds N, how many are published: that is a public choice, "
                    "and must not be read off the last record",
                    place="--rounds",
                )
            if isinstance(target, bool) or not isinstance(target, int) or target < here:
                open_round = f" (round {here - 1} is closed)" if here > 1 else ""
                raise InputError(f"expected a round from {here} on{open_round}, got {target!r}", place="round")
            if target > self._rounds:
                raise InputError(f"expected a round up to {self._rounds:,} (--rounds), got {target:,}", place="round")
            if target - here > LONGEST_LEAP:
                raise InputError(
                    f"expected the number of a round, counted from 1, got {target:,}: {target - here:,} rounds after "
                    "the open one",
                    place="round",
                )
            while self.stream.round < target:
                self._close()
        except RetroactError as error:
            raise self._located(error, position) from None

    def _close_by(self, position: int, event: Event) -> None:
        self._flush(position)
        self.clocked = True
        try:
            if any(part is not None for part in (event.record, event.id, event.subject, event.stamp)):
                raise InputError("expected nothing beside it, except a round", place="close")
            if self._rounds is not None and self.stream.round > self._rounds:
                raise InputError(f"expected at most {self._rounds:,} rounds (--rounds), got one more", place="close")
            self._close()
        except RetroactError as error:
            raise self._located(error, position) from None

    def _close(self) -> None:
        released = self.stream.close_round()
        self.open = False
        totals, applied = self.totals, released.applied
        totals.rounds += 1
        totals.added += applied.added
        totals.removed += applied.removed
        totals.ignored_deletions += applied.ignored_deletions
        totals.ignored_additions += applied.ignored_additions
        self._publish(released)

    def _located(self, error: RetroactError, position: int) -> RetroactError:
        if isinstance(error, InputError) and error.place is not None:
            # a batch of one has one row
            place = error.place.removesuffix("row 1").removesuffix(", ") or None
            error = InputError(error.message, place=place)
        return located(error, f"{self._name}:{self._block.lines[position]}")


def _ids(events: Iterable[Event]) -> list[Any]:
    return [event.id for event in events]


def _subjects(events: Iterable[Event]) -> list[Any] | None:
    subjects = [event.subject for event in events]
    return None if all(subject is None for subject in subjects) else subjects


def _stamps(events: Iterable[Event], now: int) -> list[int] | None:
    stamps = [event.stamp for event in events]
    return None if all(stamp is None for stamp in stamps) else [now if stamp is None else stamp for stamp in stamps]
