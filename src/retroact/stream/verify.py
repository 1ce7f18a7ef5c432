"""Verification of a stream that lasts: everything is worked out again from the surviving data, and compared.

Releases from before the last deletion cannot be worked out again, and must not: the data they were made of are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from ..errors import VerificationError
from ..ledger import Ledger, Surviving
from ..ledger.codec import Records
from ..store import canonical_blocks
from ..store.store import Stored
from .durable import Durable, stored_form


@dataclass
class Verification:
    """What was compared, and what differs."""

    first: int
    """The rounds whose releases were worked out again; before the first of them something was deleted or came late."""
    last: int
    compared: int = 0
    """How many releases were the same, byte for byte."""
    unkeyed: tuple[str, ...] = ()
    """Statistics with randomness of their own, which nobody can work out again."""
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(stream: Durable, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Rebuild a stream from what its store holds and compare: releases, data, fence, and residue in the files.

    ``progress`` is told how many rounds are done, of how many.
    """
    with stream._lock:
        return _verify(stream, progress)


def _verify(stream: Durable, progress: Callable[[int, int], None] | None) -> Verification:
    store = stream.store
    round, revised = stream.round - 1, store.number("revised")
    first = max(revised, stream._silent + 1, stream._origin + 1)
    unkeyed = tuple(name for name, own in stream.specification.statistics.items() if not own.keyed)
    result = Verification(first, round, unkeyed=unkeyed)
    if not store.overwrites:
        store.purge()
    result.problems += store.residue()
    result.problems += store.problems()
    result.problems += _data(stream)
    kept = store.releases(problems=[])
    result.problems += _marks(stream, kept)
    result.problems += _kept(stream, kept)
    # of a stream that is over, data change without a round
    if revised > round + stream.over:
        result.problems.append(f"journal: expected a last deletion up to round {round + stream.over}, got {revised}")
    stored = {(each.round, each.statistic): each for each in kept if first <= each.round <= round}
    for number, again in _again(stream, first, round):
        for release in again:
            if release.statistic in unkeyed:
                continue
            known = stored.pop((release.round, release.statistic), None)
            if known is None:
                continue  # told already
            if known != release:
                result.problems.append(
                    f"round {number} of {release.statistic}: the stored release is not what the surviving data give"
                )
            else:
                result.compared += 1
        if progress is not None:
            progress(number - first + 1, round - first + 1)
    result.problems += [
        f"round {number} of {name}: a release that was never due" for number, name in stored if name not in unkeyed
    ]
    return result


def _data(stream: Durable) -> Iterator[str]:
    """The stored blocks must be those that the surviving data have."""
    expected = canonical_blocks.canonical(stream._marks, Records.of(stream._ledger.data(), stream.schema))
    try:
        same = expected == stream.store.blocks()
    except VerificationError:
        return  # told already
    if not same:
        yield "table block: the stored blocks are not those of the surviving data"
    if stream.store.sealed != stream.round - 1 and stream.round - 1 > stream._origin:
        yield f"data: expected round {stream.round - 1}, got {stream.store.sealed}"


def _kept(stream: Durable, kept: Sequence[Stored]) -> Iterator[str]:
    """No release is missing, also of those that cannot be worked out again."""
    origin, silent = stream._origin, stream._silent
    there = {(each.round, each.statistic) for each in kept}
    for round in range(max(origin, silent) + 1, stream.round):
        for name, statistic in stream.specification.statistics.items():
            if (round - origin) % statistic.every == 0 and (round, name) not in there:
                yield f"round {round} of {name}: expected a release, got none"


def _marks(stream: Durable, kept: Sequence[Stored]) -> Iterator[str]:
    mark, committed = stream._fence.read(), stream.store.committed
    expected = (max(committed, stream._silent, stream._origin), stream._acknowledged())
    if mark is None:
        yield f"{stream._fence.path}: the fence is missing"
    elif (mark.round, mark.erasures) != expected:
        yield (
            f"{stream._fence.path}: expected round {expected[0]} and {expected[1]} erasures since, got round "
            f"{mark.round} and {mark.erasures}"
        )
    for each in kept:
        if each.round > committed:
            yield f"round {each.round} of {each.statistic}: released beyond the last committed round {committed}"


def _again(stream: Durable, first: int, last: int) -> Iterator[tuple[int, list[Stored]]]:
    """The releases of these rounds, from the surviving data alone: what is stamped later was not there then."""
    if first > last:
        return
    data = stream._ledger.data()
    shadow = stream._shadow(Ledger.of(stream.schema, _part(data, 0, first)), first)
    totals = {name: running.totals for name, running in shadow._running.items()}
    yield first, stored_form(first, shadow._releases(first, totals))
    for round in range(first + 1, last + 1):
        arrived = _part(data, round - 1, round)
        named = np.array([id is not None for id in arrived.ids], dtype=np.bool_)
        for chosen in (np.flatnonzero(~named), np.flatnonzero(named)):
            where = np.repeat(chosen, arrived.counts[chosen])
            ids = [arrived.ids[k] for k in where.tolist()]
            shadow._open.updates.add(
                arrived.rows.take(where),
                round,
                [arrived.subjects[k] for k in where.tolist()],
                [id for id in ids if id is not None] if len(chosen) and named[chosen[0]] else None,
            )
        yield round, stored_form(round, shadow.close_round())


def _part(data: Surviving, after: int, until: int) -> Surviving:
    """The records stamped after one round and until another."""
    where = (data.stamps > after) & (data.stamps <= until)
    ids, subjects = (list(compress(names, where.tolist())) for names in (data.ids, data.subjects))
    return Surviving(data.rows.take(where), data.stamps[where], ids, subjects, data.counts[where])
