"""Verification of a durable stream: everything is recomputed from the surviving data and compared.

Releases from before the last deletion cannot be recomputed, and must not be: the data they were made of are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import VerificationError
from ..ledger.codec import Records
from ..store import canonical_blocks
from ..store.tables import Stored
from .core import Core
from .journal_rows import stored
from .vault import Vault


@dataclass
class Verification:
    """What was compared, and what differs."""

    first: int
    """The first round whose releases were recomputed; before it something was deleted or came late."""
    last: int
    compared: int = 0
    """How many releases were reproduced, byte for byte."""
    unkeyed: tuple[str, ...] = ()
    """Statistics whose randomness does not come from the key, so that they cannot be recomputed."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is as it should be, and worth knowing."""

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(core: Core, vault: Vault, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Rebuild a stream from its store and compare releases, data, fence, and residue in the files.

    ``progress`` is called with the number of rounds done, and of all rounds.
    """
    store = vault.store
    round, revised = core.round - 1, store.number("revised")
    first = max(revised, vault.silent + 1, core.origin + 1)
    unkeyed = tuple(name for name, bound in core.specification.bounds.items() if not bound.keyed)
    if not store.overwrites:
        store.purge(every=True)
    problems = [*store.residue(), *store.problems(), *_data(core, vault)]
    kept = store.releases(problems=[])
    problems += [*_fence(core, vault, kept), *_missing(core, vault, kept)]
    result = Verification(first, round, unkeyed=unkeyed, problems=problems)
    # once a stream is over, data change without a round
    if revised > round + core.over:
        problems.append(f"journal: expected a last deletion up to round {round + core.over}, got {revised}")
    stored = {(each.round, each.statistic): each for each in kept if first <= each.round <= round}
    for number, recomputed in _recomputed(core, first, round):
        for release in recomputed:
            known = stored.pop((release.round, release.statistic), None)
            if known is None or release.statistic in unkeyed:
                continue  # already reported as missing, or not reproducible
            if known == release:
                result.compared += 1
            else:
                problems.append(
                    f"round {number} of {release.statistic}: the stored release is not what the surviving data give"
                )
        if progress is not None:
            progress(number - first + 1, round - first + 1)
    problems += [f"round {number} of {name}: a release that was never due" for number, name in stored]
    return result


def _data(core: Core, vault: Vault) -> Iterator[str]:
    """The stored blocks must be those of the surviving data."""
    expected = canonical_blocks.canonical(vault.marks, Records.of(core.ledger.data(), core.schema))
    try:
        same = expected == vault.store.blocks()
    except VerificationError:
        return  # already reported
    if not same:
        yield "table block: the stored blocks are not those of the surviving data"
    if vault.store.sealed != core.round - 1 and core.round - 1 > core.origin:
        yield f"data: expected round {core.round - 1}, got {vault.store.sealed}"


def _missing(core: Core, vault: Vault, kept: Sequence[Stored]) -> Iterator[str]:
    """No release may be missing, even of those that cannot be recomputed."""
    there = {(each.round, each.statistic) for each in kept}
    for round in range(max(core.origin, vault.silent) + 1, core.round):
        for name, statistic in core.specification.statistics.items():
            if (round - core.origin) % statistic.every == 0 and (round, name) not in there:
                yield f"round {round} of {name}: expected a release, got none"


def _fence(core: Core, vault: Vault, kept: Sequence[Stored]) -> Iterator[str]:
    mark, committed = vault.guard.fence.read(), vault.store.committed
    expected = (max(committed, vault.silent, core.origin), vault.guard.acknowledged(core))
    if mark is None:
        yield f"{vault.guard.fence.path}: the fence is missing"
    elif (mark.round, mark.erasures) != expected:
        yield (
            f"{vault.guard.fence.path}: expected round {expected[0]} and {expected[1]} erasures since, got round "
            f"{mark.round} and {mark.erasures}"
        )
    for each in kept:
        if each.round > committed:
            yield f"round {each.round} of {each.statistic}: released beyond the last committed round {committed}"


def _recomputed(core: Core, first: int, last: int) -> Iterator[tuple[int, list[Stored]]]:
    """The releases of these rounds from the surviving data alone, counting records from their stamp on."""
    if first > last:
        return
    engine = core.engine.at(first)
    for round in range(first, last + 1):
        if round > first:
            engine.adopt(engine.advance(*core.ledger.rows_between(round, round), round))
        yield round, stored(round, engine.releases(round, engine.totals))
