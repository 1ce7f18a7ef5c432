"""Rounds as a feed closes them: published, counted, and never more than were declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..errors import InputError
from ..messages import plural
from ..stream import Round, Stream
from ..stream.passes import Pass
from .totals import Totals

Publish = Callable[[Round], None]
Settled = Callable[[Sequence[int]], None]
# A longer leap is a mistake, such as a date taken for the number of a round.
LONGEST_LEAP = 1_000_000


class RoundCloser:
    """
    >>> import retroact as ra
    >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
    >>> rounds = RoundCloser(stream, None)
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
        self._pass: Pass | None = None
        self._unsettled: list[tuple[int, Sequence[str], Settled]] = []

    @contextmanager
    def in_one_pass(self) -> Iterator[None]:
        """Rounds that close inside wait for one another, and are published together."""
        try:
            with self.stream.one_pass() as self._pass:
                yield
        finally:
            passing, self._pass = self._pass, None
            if passing is not None:
                self._publish_settled(passing)
                for _, subjects, settled in self._unsettled:
                    settled(passing.surviving(subjects))

    @property
    def waits(self) -> bool:
        """Whether rounds wait for one another now."""
        return self._pass is not None and self._pass.goes_on

    def when_settled(self, subjects: Sequence[str], settled: Settled) -> None:
        """In a pass: how many records these had at the last close is known once the open round is settled."""
        self._unsettled.append((self.stream.round, subjects, settled))

    def take(self, *, waits: bool) -> None:
        """Something is delivered. It ``waits`` for a round to close, or is a deletion, which takes effect at once after
        the last round."""
        at_once = self.stream.over and not waits
        self.totals.at_once |= at_once
        self.open |= not at_once

    def close_last(self) -> None:
        """Close the round at the end of the input, unless everything was done after the last round."""
        done = self.totals.at_once or (self.stream.over and not self.stream.waiting)
        if self.open or not done:
            self.close()

    def close(self) -> None:
        if self._pass is None or not self._pass.goes_on:
            self.closed(self.stream.close_round())
            return
        self._pass.end_round()
        self.open = False
        self._publish_settled(self._pass)

    def _publish_settled(self, passing: Pass) -> None:
        for released in passing.closed():
            survived = passing.survived.pop(released.number, {})
            for _, subjects, settled in [each for each in self._unsettled if each[0] == released.number]:
                settled([survived[subject] for subject in subjects])
            self._unsettled = [each for each in self._unsettled if each[0] != released.number]
            self.closed(released)

    def closed(self, released: Round) -> None:
        """Count and publish a round."""
        self.open = False
        totals, applied = self.totals, released.applied
        totals.rounds += 1
        totals.added += applied.added
        totals.removed += applied.removed
        totals.ignored_deletions += applied.ignored_deletions
        totals.ignored_additions += applied.ignored_additions
        totals.rejected += applied.rejected
        if self._publish is not None:
            self._publish(released)

    def close_before(self, round: int) -> None:
        """Close all rounds before this one, which is then open."""
        while self.stream.round < round:
            self.close()

    def require_another(self) -> None:
        """Refuse to close a round after the last."""
        if self.limit is not None and self.stream.round > self.limit:
            raise InputError(f"expected at most {plural(self.limit, 'round')} (--rounds), got one more", place="close")

    def advance(self, target: int) -> None:
        """Open the round whose number an event has."""
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
                f"expected the number of a round, counted from 1, got {target:,}: {plural(target - here, 'round')} "
                "after the open one",
                place="round",
            )
        self.close_before(target)
