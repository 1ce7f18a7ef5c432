"""Opening a durable stream: store, key, specification and fence must belong together."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..checks import integer
from ..coins import Key
from ..coins.keyring import from_environment, from_file
from ..errors import InputError, VerificationError
from ..ledger import Ledger
from ..ledger.codec import Records, unpack
from ..log import INFO, log
from ..store import canonical_blocks
from ..store.fence import Fence, Mark
from ..store.sqlite import SQLiteStore
from ..store.store import Store
from ..store.tables import Prepared
from ..store.targets import POSTGRES, check_targets, default_base, fence_of
from .core import Core
from .durable import Durable
from .end import end
from .erasure import Hashes
from .fence_guard import FenceGuard, Standing, open_round, promises, standing
from .open_round import NO_POSITIONS, PositionSet, read_on
from .releases import table_form
from .specification import Specification
from .stored import stored_specification, written_notes
from .vault import Vault


@dataclass(frozen=True)
class Follows:
    """What a successor starts with; ``round`` is the last round before it."""

    round: int
    notes: Mapping[str, str]
    """The specifications and names of its predecessors, and what the operator vouches for."""
    records: Records
    inbox: list[bytes]
    sources: Mapping[str, tuple[Sequence[int], bytes]]
    erased: set[bytes]
    """Keyed hashes of subjects."""
    boundaries: Sequence[int]
    """Where rounds of a calendar began and ended."""
    secret: Callable[[Key], bytes]
    """The secret of these hashes, encrypted for another key."""

    def blocks(self, key: Key) -> list[tuple[canonical_blocks.Place, bytes]]:
        return canonical_blocks.canonical(_marks(key), self.records)


def open_stream(
    where: str | Path,
    specification: Specification | None,
    *,
    key: Key | None = None,
    key_file: str | Path | None = None,
    fence: str | Path | None = None,
    restored: bool = False,
    after: int | None = None,
    erasures_asked: bool = False,
    follows: Follows | None = None,
) -> Durable:
    base = default_base(where)
    if after is not None:
        integer(after, "after", least=0, expected="the number of a round")
    check_targets(store=where, key_file=key_file, fence=fence)
    if key is None and key_file is not None and Path(key_file).exists():
        from_file(Path(key_file))  # before a store is created
    store = _store(where, create=specification is not None)
    with ExitStack() as undo:
        undo.callback(store.close)
        fresh = store.state("stream") is None
        if fresh and specification is None:
            if store.committed:
                raise VerificationError(
                    f"{store.where}: table state: the data are gone, and the journal is of round {store.committed}: "
                    "restore them, or give schema and statistics to start without data"
                )
            raise InputError(f"{store.where}: expected a stream, got an empty store; give schema and statistics")
        if fresh and specification is not None:
            specification.check_rounds(before=0 if follows is None else follows.round)
            if follows is None:
                table_form(specification, testing=False).check()
        own, secret_file = _key(key, key_file, base, create=fresh)
        name = Hashes(own).stream
        barrier = Fence(Path(fence) if fence is not None else fence_of(secret_file or base), name, own.derive("fence"))
        undo.callback(barrier.close)
        barrier.lock()
        try:
            mark, refused = barrier.read(), None
        except VerificationError as error:
            mark, refused = None, error
        salt = mark.salt if mark else store.note("salt") or ("" if own.testing else secrets.token_hex(16))
        locked_by = own.derive("rows of the store"), f"{name} {salt}"
        store.unlock(*locked_by)
        if refused is not None:
            raise refused  # a wrong key was reported before
        if follows is not None and not fresh:
            _require_same(store, follows, own)
        new = specification if fresh and store.committed == 0 else None
        spec, notes = (new, {}) if new is not None else stored_specification(store, specification)
        followed = bool(store.note("followed"))
        over = new is None and end(spec, store.number("origin"), open_round(store), followed=followed) is not None
        # A crash while a successor is made leaves its fence at the round before its first, and no stream yet.
        if follows is not None and new is not None and mark == Mark(name, follows.round, salt):
            now = Standing(0, None)
        else:
            now = standing(
                store, barrier, mark, over=over, restored=restored, after=after, erasures_asked=erasures_asked
            )
        if mark is None and new is None:
            # a new fence, under the same coins: the operator promises that nothing after this round was published
            after = now.silent
            if spec.horizon is not None and after > spec.horizon + store.number("origin"):
                raise InputError(f"expected a round up to the horizon, {spec.horizon:,}, got {after:,}", place="after")
            mark = Mark(name, after, store.note("salt") or "", lost="" if now.owed is None else now.owed.lost)
        if new is not None:
            own.claim(store.identity, only_try=True)
        # From here on the store is written, and a crash is recovered from.
        store.upgrade(*locked_by)
        if mark is None:
            mark = Mark(name, 0 if follows is None else follows.round, salt=salt)
            barrier.advance(mark)
        if new is not None:
            _begin(store, mark, new, follows, own)
        if notes or now.notes:
            store.write_notes({**notes, **now.notes})
        if "described" in notes:
            _begin_boundaries(store, spec)  # of another specification, and of a stream without data
        if store.state("stream") is None:
            store.initialise(name)  # the data are lost, but the journal is not
        sealed = store.note("hashes")
        hashes = Hashes(own, None if not sealed else bytes.fromhex(sealed))
        guard = FenceGuard(barrier, store, mark, now)
        stream = _attached(spec, own, store, guard, hashes, bytes.fromhex(mark.salt))
        undo.pop_all()
        log(INFO, "%s: %s, round %d is open", store.where, "opened" if new is None else "created", stream.round)
        return stream


def _attached(spec: Specification, key: Key, store: Store, guard: FenceGuard, hashes: Hashes, salt: bytes) -> Durable:
    """Build the stream from what is stored, and finish what a crash interrupted."""
    spec = spec.keeping(store.boundaries())
    origin, stored, promised = store.number("origin"), store.blocks(), promises(store)
    try:
        ledger = Ledger.of(unpack(spec.schema, [records for _, records in stored]))
    except InputError as error:
        raise VerificationError(f"{store.where}: the stored data are not those of a stream: {error}") from None
    vault = Vault(store, guard, hashes, _marks(key), [place for place, _ in stored])
    del stored  # it may be large
    before = [Specification.from_dict(data).guarantee for data in msgspec.json.decode(store.note("before") or "[]")]
    core = Core(
        spec, key, ledger, vault, origin=origin, round=open_round(store), before=before, promises=promised, salt=salt
    )
    core.followed = bool(store.note("followed"))
    core.sources = {source: (position, NO_POSITIONS) for source, position in store.sources().items()}
    for source, ranges in store.delivered():
        read_on(core.sources, source, (), PositionSet.from_bytes(ranges))
    vault.recover(core)
    return Durable(core, vault, promised)


def exists(where: str | Path) -> bool:
    """Whether there is a stream to continue."""
    try:
        store = _store(where, create=False)
    except InputError:
        return False
    with closing(store):
        return store.state("stream") is not None


def _store(where: str | Path, *, create: bool) -> Store:
    if str(where).startswith(POSTGRES):
        from ..store.postgres import PostgresStore

        return PostgresStore(str(where), create=create)
    return SQLiteStore(Path(where), create=create)


def _key(key: Key | None, key_file: str | Path | None, base: Path, *, create: bool) -> tuple[Key, Path | None]:
    """The key, and its file if it has one."""
    if key is not None:
        if key_file is not None:
            raise InputError("expected one key, got key and key_file", place="key")
        if not isinstance(key, Key):
            raise InputError("expected a Key, such as Key.generate()", place="key")
        return key, None
    if key_file is None and (given := from_environment()) is not None:
        return given[0], None
    path = Path(key_file) if key_file is not None else base.with_name(base.name + ".key")
    return from_file(path, create=create)[0], path


def _begin(store: Store, mark: Mark, spec: Specification, follows: Follows | None, key: Key) -> None:
    """Write what a new store starts with; after a crash in between the store still counts as new."""
    store.write_notes({**written_notes(spec), "salt": mark.salt})
    _begin_boundaries(store, spec, () if follows is None else follows.boundaries)
    if follows is not None:
        store.write_notes({"origin": str(follows.round), "hashes": follows.secret(key).hex(), **follows.notes})
        store.seal(follows.round, canonical_blocks.Edit(store.places(), follows.blocks(key)))
        store.prepare([Prepared(follows.round, follows.sources, erased=[*follows.erased])])
        store.receive([*enumerate(follows.inbox, start=1)])
    store.initialise(mark.stream)


def _begin_boundaries(store: Store, spec: Specification, before: Sequence[int] = ()) -> None:
    """Those that the predecessor used, and those of the first round."""
    grid = spec.rounds.grid
    if grid is None or not grid.follows_rules:
        store.keep_boundaries([], replace=True)
        return
    kept = grid.keeping(before)
    store.keep_boundaries([*enumerate(before), *kept.unkept(1)], replace=True)


def _marks(key: Key) -> canonical_blocks.Marks:
    return canonical_blocks.Marks(key.derive("order of blocks"))


def _require_same(store: Store, follows: Follows, key: Key) -> None:
    """A successor that a crash interrupted must be as it would be made now."""
    same = all(store.note(name) == follows.notes[name] for name in ("earlier", "promises"))
    there = store.number("origin"), store.sealed, store.inbox(), store.erased(), store.blocks()
    same = same and there == (follows.round, follows.round, follows.inbox, follows.erased, follows.blocks(key))
    read = {name: (tuple(position), ranges) for name, (position, ranges) in follows.sources.items()}
    ranges = dict(store.delivered())
    if not same or read != {name: (position, ranges.get(name, b"")) for name, position in store.sources().items()}:
        raise InputError(f"{store.where}: expected a place for a new stream, got another stream", place="where")
