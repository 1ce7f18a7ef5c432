"""Rounds as a feed closes them: published, counted, and never more of them than was said in advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from retroact.errors import InputError
from retroact.feeds.missed import Missed
from retroact.stream import Round, Stream

Publish = Callable[[Round], None]
# A leap over more rounds is a mistake, such as a date or a second taken for the number of a round.
LONGEST_LEAP = 1_000_000


@dataclass(frozen=True)
class Waiting:
    """A last line without an end, of which more may be on its way."""

    source: str
    line: int
    adds: bool
    """Whether it can only become an addition."""

    @property
    def message(self) -> str:
        what = "" if self.adds else ", and so does whatever it deletes or ends"
        return f"the last line has no end and may be half of one: it waits for the rest, or for --complete{what}"


@dataclass
class Totals:
    """What was done, over all rounds: exact, and so for the operator alone."""

    rounds: int = 0
    added: int = 0
    removed: int = 0
    ignored_deletions: int = 0
    """By value or id."""
    ignored_additions: int = 0
    absorbed: int = 0
    """Events that came before, by their positions."""
    first_absorbed: str | None = None
    """Where the first of them stands."""
    late: int = 0
    """Additions that were left out because their round was closed."""
    first_late: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    """Lines that are no updates, by what they are."""
    taken_up: str | None = None
    """Which source was read before, and how far."""
    left_open: bool = False
    """Whether some of the input waits for a round to close."""
    at_once: bool = False
    """Whether deletions were applied at once, after the last round."""
    missed: Missed = field(default_factory=Missed)
    """Erasures that found no record."""
    waiting: Waiting | None = None
    """The last line, where it was left unread because nothing ends it."""

    def absorb(self, place: str) -> None:
        self.absorbed += 1
        self.first_absorbed = self.first_absorbed or place

    def leave_out(self, place: str) -> None:
        self.late += 1
        self.first_late = self.first_late or place


class Rounds:
    """
    >>> import retroact as ra
    >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
    >>> rounds = Rounds(stream, None)
    >>> rounds.close_before(4)
    >>> rounds.totals.rounds, stream.round
    (3, 4)
    """

    def __init__(
        self, stream: Stream, publish: Publish | None, limit: int | None = None, totals: Totals | None = None
    ) -> None:
        self.stream = stream
        self.limit = limit
        """The last round that is published."""
        self.totals = Totals() if totals is None else totals
        self.open = False
        """Whether something waits for a round to close."""
        self._publish = publish

    def take(self, *, waits: bool) -> None:
        """Something is handed over: it ``waits`` for a round to close, or deletes, which a stream that is over does at
        once."""
        at_once = self.stream.over and not waits
        self.totals.at_once |= at_once
        self.open |= not at_once

    def close_last(self) -> None:
        """The input ends, and with it a round, unless all of it was done after the last one."""
        done = self.totals.at_once or (self.stream.over and not self.stream.waiting)
        if self.open or not done:
            self.close()

    def close(self) -> None:
        released = self.stream.close_round()
        self.open = False
        totals, applied = self.totals, released.applied
        totals.rounds += 1
        totals.added += applied.added
        totals.removed += applied.removed
        totals.ignored_deletions += applied.ignored_deletions
        totals.ignored_additions += applied.ignored_additions
        if self._publish is not None:
            self._publish(released)

    def close_before(self, round: int) -> None:
        """All rounds up to this one, which is then open."""
        while self.stream.round < round:
            self.close()

    def close_one(self) -> None:
        """As a line asks for it."""
        if self.limit is not None and self.stream.round > self.limit:
            raise InputError(f"expected at most {self.limit:,} rounds (--rounds), got one more", place="close")
        self.close()

    def advance(self, target: int) -> None:
        """To the round that an event has the number of."""
        here = self.stream.round
        if self.limit is None:
            raise InputError(
                "rounds by number need --rounds N, how many are published: that is a public choice, "
                "and must not be read off the last record",
                place="--rounds",
            )
        if isinstance(target, bool) or not isinstance(target, int) or target < here:
            open_round = f" (round {here - 1} is closed)" if here > 1 else ""
            raise InputError(f"expected a round from {here} on{open_round}, got {target!r}", place="round")
        if target > self.limit:
            raise InputError(f"expected a round up to {self.limit:,} (--rounds), got {target:,}", place="round")
        if target - here > LONGEST_LEAP:
            raise InputError(
                f"expected the number of a round, counted from 1, got {target:,}: {target - here:,} rounds after "
                "the open one",
                place="round",
            )
        self.close_before(target)


def shorter(name: str, read: int, there: int | None, what: str) -> InputError:
    """A source of which more was read before than there is."""
    got = "fewer" if there is None else f"{there:,}"
    return InputError(
        f"expected at least {read:,} {what}, which were read before, got {got}: is it another file? give it another "
        "name with --source",
        source=name,
    )


def changed(name: str, then: int, now: int, what: str) -> InputError:
    """A source on a grid whose lines were numbered when it was begun."""
    return InputError(
        f"this file has changed since it was begun ({then:,} {what} then, {now:,} now): put new events into a file of "
        "their own",
        source=name,
    )
