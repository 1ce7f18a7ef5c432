"""A store: tables for data (surviving records, the inbox of the open round) and for the journal (releases, requests).

Each method that writes is one durable transaction. `authenticated` handles rows; `sqlite` and `postgres` are the
databases.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from ..errors import VerificationError
from .authenticated import Authenticated, refusal
from .canonical_blocks import Edit, Place
from .formats import check_format
from .seals import SIZE, Digest
from .tables import (
    BLOCK,
    BOUNDARY,
    ERASED,
    INBOX,
    NOTE,
    RELEASE,
    REQUEST,
    SOURCE,
    STATE,
    Prepared,
    Request,
    Stored,
    StoredTable,
)

SELECTED = 400
"""Blocks in one query."""
PREPARED = "where state = ? and prepared = ?"


class Store(Authenticated):
    """The database of a stream. One process has it open at a time."""

    identity: str
    """A unique name of the place."""
    overwrites = True
    """Whether a scrub overwrites old bytes; otherwise they stay until a purge."""
    reached: tuple[str, ...]
    """What a purge covers."""
    wiped: tuple[str, ...] = ()
    """What is wiped at once where rewriting the layout may wait."""
    beyond: tuple[str, ...]
    """What no purge can reach."""

    # What each database implements, besides rows ----------------------------------------------------------------------

    @abstractmethod
    def scrub(self) -> bool:
        """Remove old versions of the data after deletions. Returns whether that succeeded."""

    @abstractmethod
    def purge(self, *, every: bool = False) -> bool:
        """The same, and leave no trace of deletions in the layout; `every`: also where no deletion is known of."""

    @abstractmethod
    def residue(self) -> list[str]:
        """What the files hold besides live content, in words."""

    @property
    def size(self) -> int:
        """The bytes of the data, whose layout may be rewritten later than erased bytes are wiped; 0: not here."""
        return 0

    def wind_up(self) -> None:
        """Do, before a close in good order, what the next opening would have to make up for."""

    @abstractmethod
    def close(self) -> None: ...

    def unlock(self, secret: bytes, stream: str) -> None:
        if self.format < self.newest and self.state("format") == str(self.newest):
            self.format = self.newest
            raise refusal(self.where, self.schema_problems())
        super().unlock(secret, stream)
        found = self.state("format")
        check_format(self.where, found, self.newest)
        if found not in (None, str(self.format)):
            raise VerificationError(
                f"{self.where}: the data have store format {found}, and the journal has {self.format}: restore both "
                "from one backup"
            )

    def upgrade(self, secret: bytes, stream: str) -> None:
        if self.format != self.newest:
            super().upgrade(secret, stream)
            self.scrub()

    # Data ------------------------------------------------------------------------------------------------------------

    def state(self, name: str) -> str | None:
        return self._value(STATE, name)

    @property
    def sealed(self) -> int:
        """The round of the surviving data."""
        return int(self.state("round") or 0)

    def places(self) -> list[Place]:
        return [place for place, _ in self.blocks()]

    def blocks(self) -> list[tuple[Place, bytes]]:
        return [((stamp, mark), records) for stamp, mark, records in self.whole(BLOCK)]

    def read_blocks(self, places: Sequence[Place]) -> list[bytes]:
        found = {}
        for first in range(0, len(places), SELECTED):
            some = places[first : first + SELECTED]
            wanted = f"with wanted(stamp, mark) as (values {', '.join(['(?, ?)'] * len(some))})"
            sql = f"{wanted} select {BLOCK.names} from wanted join block using (stamp, mark)"
            for row in self.run("data", sql, [number for place in some for number in place]):
                stamp, mark, records = self.checked(BLOCK, row)
                found[stamp, mark] = records
        for place in places:
            if place not in found:
                raise VerificationError(f"{self.where}: table block: expected a block at {place}, got none")
        return [found[place] for place in places]

    def inbox(self) -> list[bytes]:
        return [entry for _, entry in self.whole(INBOX)]

    def content(self, entries: Sequence[tuple[int, bytes]] = ()) -> list[bytes]:
        """Digests of all blocks and of the open round with these entries added. To be hashed, and stored nowhere."""
        assert self._seals is not None
        digest = Digest(sums=dict(self._digests["data"].sums))
        digest.add(INBOX, self._seals.sum(self._seals.mac(INBOX, entry) for entry in entries))
        return [digest.sums[table.name].to_bytes(SIZE, "big") for table in (BLOCK, INBOX)]

    def receive(self, entries: Sequence[tuple[int, bytes]]) -> None:
        """All of these entries of the inbox, each with its number, or none."""
        with self.transaction("data"):
            self.insert(INBOX, entries)

    def replace_inbox(self, entries: Sequence[bytes]) -> None:
        with self.transaction("data"):
            self._fill_inbox(entries)

    def changing(self, edit: Edit) -> AbstractContextManager[None]:
        """The transaction that changes blocks in this way."""
        return self.transaction("data")

    def amend(self, edit: Edit, entries: Sequence[bytes]) -> None:
        """Change the surviving data and the open round, but not the round number."""
        with self.changing(edit):
            self.edit_blocks(edit)
            self._fill_inbox(entries)

    def initialise(self, stream: str) -> None:
        with self.transaction("data"):
            self.insert(STATE, [("format", str(self.newest)), ("stream", stream)])

    def seal(self, round: int, edit: Edit, staged: Sequence[tuple[str, str]] = ()) -> None:
        """Replace the surviving data by those of this round, and empty the inbox. The encrypted releases of several
        rounds are `staged` with the data (`staging`)."""
        with self.changing(edit):
            self._fill_inbox([])  # first, as blocks then take its pages
            self.edit_blocks(edit)
            self.replace(STATE, [("round", str(round)), *staged])
            self._digests["data"].round = round

    def states(self, prefix: str) -> dict[str, str]:
        """Those whose names begin so."""
        return {name: value for name, value in self.whole(STATE) if name.startswith(prefix)}

    def forget_states(self, names: Iterable[str]) -> None:
        with self.transaction("data"):
            self.delete(STATE, "where name = ?", [(name,) for name in names])

    def edit_blocks(self, edit: Edit) -> None:
        """Within a transaction."""
        self.delete(BLOCK, "where stamp = ? and mark = ?", edit.gone)
        self.insert(BLOCK, [(*place, records) for place, records in edit.new])

    def _fill_inbox(self, entries: Sequence[bytes]) -> None:
        self.delete(INBOX)
        self.insert(INBOX, list(enumerate(entries, start=1)))

    # Journal ---------------------------------------------------------------------------------------------------------

    def note(self, name: str) -> str | None:
        return self._value(NOTE, name)

    def _value(self, table: StoredTable, name: str) -> str | None:
        rows = self.select(table, "where name = ?", [name])
        return rows[0][1] if rows else None

    def write_notes(self, notes: Mapping[str, str]) -> None:
        with self.transaction("journal"):
            self.replace(NOTE, list(notes.items()))

    def number(self, name: str) -> int:
        """A note that is a number; 0 if there is none."""
        return int(self.note(name) or 0)

    @property
    def committed(self) -> int:
        return self.number("committed")

    def sources(self) -> dict[str, tuple[int, ...]]:
        """How far each source was read in sealed rounds; a round that was prepared but never sealed does not count."""
        rows = self.select(SOURCE, "where round <= ? order by round", [self.sealed])
        return {name: tuple(msgspec.json.decode(position)) for name, _, position, _ in rows}

    def delivered(self) -> list[tuple[str, bytes]]:
        """The positions that sealed rounds received, round by round."""
        rows = self.select(SOURCE, "where round <= ? order by name, round", [self.sealed])
        return [(name, ranges) for name, _, _, ranges in rows if ranges]

    def prepare(
        self,
        rounds: Sequence[Prepared],
        notes: Mapping[str, str] | None = None,
        boundaries: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Before a seal empties the inbox: keep what it holds of sources (how far, which positions) and requests, and
        the boundaries of the round."""
        with self.transaction("journal"):
            self.insert(BOUNDARY, boundaries)
            self.replace(NOTE, list((notes or {}).items()))
            for round, sources, requests, erased in rounds:
                rows = [
                    (name, round, msgspec.json.encode(list(position)).decode(), delivered)
                    for name, (position, delivered) in sources.items()
                ]
                self.replace(SOURCE, rows)
                self.delete(REQUEST, "where name = ? and state = ?", [(each.name, "received") for each in requests])
                self.insert(REQUEST, [each._replace(prepared=round) for each in requests], unless_known=True)
                self.insert(ERASED, [(subject, round) for subject in erased], unless_known=True)

    def boundaries(self) -> list[int]:
        """Where rounds begin and end, from the start of the first one on."""
        return [moment for _, moment in self.whole(BOUNDARY)]

    def keep_boundaries(self, boundaries: Sequence[tuple[int, int]], *, replace: bool = False) -> None:
        with self.transaction("journal"):
            if replace:
                self.delete(BOUNDARY)
            self.insert(BOUNDARY, boundaries)

    def forget_unsealed(self, waiting: Iterable[bytes] = (), *, over: bool = False) -> None:
        """Delete what the journal holds of rounds that the data, as an older copy, do not have. Requests that wait in
        the inbox stay, and so do those that were applied after the last round, if it is `over`."""
        with self.transaction("journal"):
            for table in (SOURCE, ERASED):
                self.delete(table, "where round > ?", [(self.sealed,)])
            kept = {*waiting}
            rows = [Request(*row) for row in self.select(REQUEST, "where prepared > ?", [self.sealed + over])]
            self.delete(REQUEST, "where name = ?", [(each.name,) for each in rows if each.name not in kept])
            if self.number("revising") > self.sealed:
                self.replace(NOTE, [("revising", "")])

    def commit(
        self,
        round: int,
        releases: Sequence[Stored],
        now: str,
        notes: Mapping[str, str] | None = None,
        *,
        first: int | None = None,
    ) -> None:
        """Store the releases of a round, or of all rounds from the first on. If some are there already, they must be
        the same byte for byte."""
        with self.transaction("journal"):
            first = round if first is None else first
            there = {row[:2]: row for row in self.select(RELEASE, "where round between ? and ?", [first, round])}
            for release in releases:
                if there.get(release[:2], release) != release:
                    raise VerificationError(
                        f"{self.where}: round {release.round} of {release.statistic} was released on other data; it is "
                        "not released again"
                    )
            self.insert(RELEASE, [release for release in releases if release[:2] not in there])
            committed = max(round, self.committed)
            self.replace(NOTE, list({**(notes or {}), "committed": str(committed)}.items()))
            self._digests["journal"].round = committed
            for each in range(first, round + 1):
                self._step(PREPARED, ["received", each], state="applied", round=each, applied=now)

    def applied_without_round(self, round: int, now: str, notes: Mapping[str, str] | None = None) -> None:
        """What was prepared for the open round was applied to the data without closing a round."""
        with self.transaction("journal"):
            self.replace(NOTE, list((notes or {}).items()))
            self._step(PREPARED, ["amending", round], state="applied", applied=now)
            erased = self.select(ERASED, "where round = ?", [round])
            self.replace(ERASED, [(subject, self.sealed) for subject, _ in erased])

    def purged(self, now: str, notes: Mapping[str, str] | None = None, *, since: int | None = None) -> None:
        """What was applied is purged; and what was applied since this round and only wiped so far is purged now."""
        with self.transaction("journal"):
            self._step("where state = ?", ["applied"], state="purged", purged=now)
            if since is not None:
                self._step("where state = ? and round >= ?", ["purged", since], purged=now)
            self.replace(NOTE, list((notes or {}).items()))

    def _step(self, where: str, parameters: Sequence[Any], **changes: Any) -> None:
        """Change these requests."""
        rows = [Request(*row) for row in self.select(REQUEST, where, parameters)]
        self.replace(REQUEST, [each._replace(**changes).in_order() for each in rows])

    @property
    def unpurged(self) -> bool:
        """Whether an erasure was applied but not purged."""
        return bool(self.applied())

    def applied(self) -> list[Request]:
        """Erasures that were applied but not purged."""
        return [Request(*row) for row in self.select(REQUEST, "where state = ?", ["applied"])]

    def releases(self, first: int = 1, last: int | None = None, problems: list[str] | None = None) -> list[Stored]:
        """Read the releases in order. Changed ones are added to `problems`, if given, or raised."""
        if first > 1 or last is not None:
            until = (1 << 62) if last is None else last
            where = "where round between ? and ? order by round, statistic"
            return [Stored(*row) for row in self.select(RELEASE, where, [first, until])]
        return [Stored(*row) for row in self.whole(RELEASE, problems)]

    def request(self, name: bytes) -> Request | None:
        rows = self.select(REQUEST, "where name = ?", [name])
        return Request(*rows[0]) if rows else None

    def requests(self) -> list[Request]:
        return sorted((Request(*row) for row in self.whole(REQUEST)), key=lambda each: (each.received, each.name))

    def applied_after(self, round: int, *, over: bool) -> set[bytes]:
        """The names of requests that were applied after this round, or, if the last one is `over`, without a round."""
        rows = self.select(REQUEST, "where prepared > ? and prepared <= ?", [round, self.sealed + over])
        return {row[0] for row in rows}

    def erased(self) -> set[bytes]:
        """The keyed hashes of subjects whose later records are rejected."""
        return {subject for subject, _ in self.whole(ERASED)}
