"""Several rounds in one pass: they end one after the other, and are computed and published together.

**Privacy.** The releases are those of the rounds one by one, byte for byte, and none is published before all of them
are computed and, in a store, committed. **Retroactivity.** A pass keeps nothing: what is left of it are the data of its
last round.

While a pass goes on, the rounds that ended wait in memory; the ledger, the totals and the store are those of the round
before the first of them. Nothing that came in is acknowledged before they are settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..errors import InputError
from .closing import Closing
from .core import Core
from .open_round import OpenRound, Reading, RoundMark
from .persistence import Persistence
from .release import Round

MOST = 1 << 22
"""How many operations wait before rounds are settled, so that a file of any size fits into memory."""


class Unwritten(Persistence):
    """What comes in during a pass is not written yet."""

    def __init__(self, behind: Persistence) -> None:
        self.behind = behind
        self.durable, self.identity = behind.durable, behind.identity

    def require_ready(self) -> None:
        self.behind.require_ready()

    def receive(self, core: Core, mark: RoundMark, readings: Sequence[Reading]) -> None:
        assert core.passing is not None
        core.passing.read(readings)


class Pass:
    """Made by `Stream.one_pass`."""

    def __init__(self, core: Core) -> None:
        self._core, self._behind = core, core.persistence
        self._ended: list[OpenRound] = []
        self._closed: list[Round] = []
        self.survived: dict[int, Mapping[str, int]] = {}
        """By round: how many records each subject that it erased had before."""
        self._readings: list[Reading] = []
        """Of the open round."""
        self.waiting = 0
        """The number of operations in rounds that ended."""
        self._go_back_here()

    @staticmethod
    def possible(core: Core) -> bool:
        """Whether rounds can pass; not if later records of erased subjects are rejected, round after round."""
        ready = core.passing is None and not core.over and core.persistence.ready_for_pass(core)
        return ready and core.specification.after_erasure == "accept"

    @contextmanager
    def going_on(self) -> Iterator[Pass]:
        """All of it, or nothing: after an error the stream is as it was when rounds were last settled."""
        core = self._core
        with core.lock:
            if not self.possible(core):
                raise InputError("expected a stream that goes on, to publish several rounds in one pass")
            core.persistence, core.passing = Unwritten(self._behind), self
            try:
                yield self
                self._finish()
            except BaseException:
                if self.goes_on:
                    core.open, core.round, core.sources = self._opened, self._round, dict(self._sources)
                    core.open.go_back(self._mark)
                    core.persistence, core.passing = self._behind, None
                raise

    @property
    def goes_on(self) -> bool:
        """It ends early after the last round of the stream."""
        return self._core.passing is self

    def surviving(self, who: Sequence[str]) -> list[int]:
        """How many records these subjects had when rounds were last settled."""
        return self._core.ledger.of_subjects(who)

    def read(self, readings: Sequence[Reading]) -> None:
        self._readings += readings

    def end_round(self) -> None:
        """The next round opens, and this one waits."""
        core = self._core
        core.require_open()
        self._ended.append(core.open)
        self.waiting += len(core.open.updates)
        self._readings = []
        core.open_next()
        if core.over:
            self._finish()
        elif self.waiting >= MOST:
            self.settle()

    def settle(self) -> None:
        """Compute, commit and publish the rounds that ended."""
        core, ended, behind = self._core, self._ended, self._behind
        if not ended:
            return
        first, last = core.round - len(ended), core.round - 1
        with behind.closing(core), self._without_open_round():
            changes = core.ledger.plan_rounds(first, [each.updates for each in ended])
            closed: list[Closing] = []
            totals = core.engine.totals
            try:
                states = core.engine.through(changes, first, last)
                for opened, counts, totals in zip(ended, changes.counts, states, strict=True):
                    round = first + len(closed)
                    closed.append(Closing.among(round, opened, counts, core.engine.releases(round, totals)))
                behind.persist(core, changes, closed)
            except BaseException:
                core.ledger.drop(changes)
                raise
            core.ledger.commit(changes)
            core.engine.adopt(totals)
            behind.publish(core)
        self._ended, self.waiting = [], 0
        self._closed += [Round(each.round, each.releases, each.applied, core.form) for each in closed]
        self.survived |= {each.round: each.survived for each in closed if each.survived}
        self._go_back_here()

    def closed(self) -> list[Round]:
        """The rounds that were settled since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def _go_back_here(self) -> None:
        """The rounds so far are settled; what comes in from now on may be forgotten."""
        core = self._core
        self._round, self._sources, self._opened = core.round, dict(core.sources), core.open
        self._mark = OpenRound(core.schema).mark() if self.goes_on else core.open.mark()

    @contextmanager
    def _without_open_round(self) -> Iterator[None]:
        """What it holds is not acknowledged yet."""
        core = self._core
        opened, core.open = core.open, OpenRound(core.schema)
        try:
            yield
        finally:
            core.open = opened

    def _finish(self) -> None:
        """Settle, and keep what came in since, with how far all of its sources were read: at once, since a position
        without its operations would lose them, and operations without a position would come again."""
        core = self._core
        if not self.goes_on:
            return
        self.settle()
        core.persistence, core.passing = self._behind, None
        core.persistence.reconsider(core)
        joined: dict[str, Reading] = {}
        for source, position, delivered in self._readings:
            _, reached, before = joined.get(source, (source, position, []))
            joined[source] = source, max(reached, position), [*before, *delivered]
        core.persistence.receive(core, self._mark, [*joined.values()])
