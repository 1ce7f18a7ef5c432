"""Opening a stream that lasts: its store, its key, its specification and its fence must belong together."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..coins import Key
from ..coins.keyring import from_environment, from_file
from ..errors import InputError, VerificationError
from ..ledger import Ledger
from ..store import blocks
from ..store.fence import Fence, Mark
from ..store.packed import Records
from ..store.sqlite import SQLiteStore
from ..store.store import Store
from ..store.targets import POSTGRES, base_of, beside, check_targets
from .amending import Earlier
from .choosing import Choice
from .durable import Durable
from .erasure import Hashes
from .specification import Specification
from .written import columns_tables, columns_written, described, differences, written


@dataclass(frozen=True)
class Follows:
    """What a successor begins with: the last round, the streams before it as files have them, and what is there."""

    round: int
    before: list[dict[str, Any]]
    earlier: list[Earlier]
    ledger: Ledger
    inbox: list[bytes]
    sources: Mapping[str, tuple[Sequence[int], bytes]]
    erased: set[bytes]
    """Keyed hashes, and how to hand their secret on to another key."""
    secret: Callable[[Key], bytes]


def open_stream(
    where: str | Path,
    specification: Specification | None,
    *,
    key: Key | None = None,
    key_file: str | Path | None = None,
    fence: str | Path | None = None,
    restored: bool = False,
    after: int | None = None,
    follows: Follows | None = None,
) -> Durable:
    """See `Stream.open`."""
    base = base_of(where)
    if after is not None and (isinstance(after, bool) or not isinstance(after, int) or after < 0):
        raise InputError(f"expected the number of a round, got {after!r}", place="after")
    check_targets(store=where, key_file=key_file, fence=fence)
    if key is None and key_file is not None and Path(key_file).exists():
        from_file(Path(key_file))  # one that cannot be read leaves no store behind
    store = _store(where, create=specification is not None)
    barrier: Fence | None = None
    try:
        fresh = store.state("stream") is None
        if fresh and specification is None:
            if store.committed:
                raise VerificationError(
                    f"{store.where}: table state: the data are gone, and the journal is of round {store.committed}: "
                    "restore them, or give schema and statistics to begin with no data"
                )
            raise InputError(f"{store.where}: expected a stream, got an empty store; give schema and statistics")
        if fresh and specification is not None:
            specification.check_rounds(before=0 if follows is None else follows.round)
        own, secret_file = _key(key, key_file, base, create=fresh)
        barrier = Fence(Path(fence) if fence is not None else beside(secret_file or base))
        barrier.lock()
        name = Hashes(own).stream
        mark = barrier.read()
        if mark is None or mark.stream != name:
            salt = store.note("salt") or ("" if own.testing else secrets.token_hex(16))
        else:
            salt = mark.salt
        store.unlock(own.derive("rows of the store"), f"{name} {salt}")
        silent = _silent(store, barrier, mark, name, restored=restored, after=after, fresh=fresh)
        if fresh and store.committed == 0:
            mark = mark or Mark(name, 0 if follows is None else follows.round, salt=salt)
            barrier.advance(mark)
            _begin(store, mark, specification, follows, own)
        elif fresh:
            store.found(name)  # the data are lost, and the journal is not
        if follows is not None and not fresh:
            _require_same(store, follows, own)
        spec = _specification(store, specification)
        if mark is None:
            mark = _fence_again(store, barrier, name, spec, silent)
        stream = Durable.__new__(Durable)
        before = [Specification.from_dict(data).guarantee for data in msgspec.json.decode(store.note("before") or "[]")]
        origin, sealed = store.number("origin"), store.note("hashes")
        hashes = Hashes(own, None if not sealed else bytes.fromhex(sealed))
        coins = bytes.fromhex(mark.salt)
        stream._attach(
            spec, own, store, barrier, origin=origin, before=before, salt=coins, silent=silent, hashes=hashes
        )
        return stream
    except BaseException:
        store.close()
        if barrier is not None:
            barrier.close()
        raise


def exists(where: str | Path) -> bool:
    """Whether there is a stream to go on with."""
    try:
        store = _store(where, create=False)
    except InputError:
        return False
    try:
        return store.state("stream") is not None
    finally:
        store.close()


def _store(where: str | Path, *, create: bool) -> Store:
    if str(where).startswith(POSTGRES):
        from ..store.postgres import PostgresStore

        return PostgresStore(str(where), create=create)
    return SQLiteStore(Path(where), create=create)


def _key(key: Key | None, key_file: str | Path | None, base: Path, *, create: bool) -> tuple[Key, Path | None]:
    """The key, and the file that holds it if one does."""
    if key is not None:
        if key_file is not None:
            raise InputError("expected one key, got key and key_file", place="key")
        if not isinstance(key, Key):
            raise InputError("expected a Key, such as Key.generate()", place="key")
        return key, None
    if key_file is None:
        given = from_environment()
        if given is not None:
            return given[0], None
    path = Path(key_file) if key_file is not None else base.with_name(base.name + ".key")
    return from_file(path, create=create)[0], path


def _begin(
    store: Store,
    mark: Mark,
    spec: Specification | None,
    follows: Follows | None,
    key: Key,
) -> None:
    """Everything that a new store begins with; a crash in between leaves a store that is still new."""
    assert spec is not None
    store.write_notes({**_written_notes(spec), "salt": mark.salt})
    if follows is not None:
        notes = {"origin": str(follows.round), "hashes": follows.secret(key).hex()}
        parts = {"before": follows.before, "earlier": follows.earlier}
        store.write_notes(notes | {name: msgspec.json.encode(part).decode() for name, part in parts.items()})
        store.seal(follows.round, blocks.Edit(store.places(), _blocks(follows, key)))
        store.prepare(follows.round, follows.sources, erased=follows.erased)
        for number, entry in enumerate(follows.inbox, start=1):
            store.receive(number, entry)
    store.found(mark.stream)


def _blocks(follows: Follows, key: Key) -> list[tuple[blocks.Place, bytes]]:
    marks = blocks.Marks(key.derive("order of blocks"))
    return blocks.canonical(marks, Records.of(follows.ledger.data(), follows.ledger.schema))


def _require_same(store: Store, follows: Follows, key: Key) -> None:
    """A successor that is there already, because a crash interrupted its making, must be as it would be made now."""
    there = store.note("earlier"), store.number("origin"), store.sealed, store.inbox()
    made = msgspec.json.encode(follows.earlier).decode(), follows.round, follows.round, follows.inbox
    if there != made or store.blocks() != _blocks(follows, key):
        raise InputError(f"{store.where}: expected a place for a new stream, got another stream", place="where")


def _written_notes(spec: Specification) -> dict[str, str]:
    tables = written(spec)
    return {
        "specification": "" if tables is None else msgspec.json.encode(tables).decode(),
        "described": msgspec.json.encode(described(spec)).decode(),
        **columns_note(spec),
    }


def columns_note(spec: Specification) -> dict[str, str]:
    """What a store keeps of the roles of columns."""
    return {"columns": msgspec.json.encode(columns_written(spec)).decode()}


def _specification(store: Store, given: Specification | None) -> Specification:
    """The stored one, which a given one must equal; before anything came in it may still change."""
    tables, columns = store.note("specification"), msgspec.json.decode(store.note("columns") or "{}")
    if given is None:
        if not tables:
            raise InputError(
                f"{store.where}: this stream has statistics that files cannot describe: give schema, statistics and "
                "budget as they were"
            )
        return Specification.from_dict({**msgspec.json.decode(tables), **columns}, store.where)
    old: Mapping[str, Any] = msgspec.json.decode(store.note("described") or "{}")
    if given.horizon is None and "horizon" in old:
        # a number of rounds that was declared when the stream was made stays its horizon
        given = given.replace(horizon=old["horizon"])
    running = given.running_under(Choice.from_dict(old["choice"])) if "choice" in old else given
    new = described(running)
    if old == new:
        return _with_columns(store, running, columns)
    if untouched(store):
        store.write_notes(_written_notes(given))
        return given
    changed = list(differences(old, new)) or ["the noise that follows from it"]
    raise InputError(
        f"{store.where}: expected the specification that this stream runs under, got another one: "
        f"{'; '.join(changed)}. What was released rests on it: make a new stream, or a successor"
    )


def untouched(store: Store) -> bool:
    """Whether nothing came in yet."""
    origin = store.number("origin")
    return store.sealed <= origin and store.committed <= origin and not store.note("silent") and not store.inbox()


def _with_columns(store: Store, given: Specification, columns: Mapping[str, Any]) -> Specification:
    """With the stored roles of columns. Where others are given, they must be the same: they change by a command."""
    stored = given.replace(columns=columns.get("columns"), sources=columns.get("sources"))
    stored.source = given.source
    if not columns_written(given) or columns_written(given) == columns_written(stored):
        return stored
    if untouched(store):
        store.write_notes(columns_note(given))
        return given
    parts = [
        {f"{name}.{role}": column for name, table in columns_tables(spec).items() for role, column in table.items()}
        for spec in (stored, given)
    ]
    raise InputError(
        f"{store.where}: expected the columns that this stream has, got others: "
        f"{'; '.join(differences(parts[0], parts[1]))}. They change by `retroact columns`",
        place="columns",
    )


def _silent(
    store: Store, fence: Fence, mark: Mark | None, name: str, *, restored: bool, after: int | None, fresh: bool
) -> int:
    """Up to which round nothing is released; refuses a store that is older than what was published."""
    if mark is not None and mark.stream != name:
        raise VerificationError(f"{fence.path}: expected the fence of this stream, got that of another one")
    known = store.number("silent")
    if mark is None:
        if fresh and store.committed == 0:
            if after is not None:
                raise InputError(f"{store.where}: expected a stream to go on with, got none", place="after")
            return 0
        if after is None:
            raise VerificationError(
                f"{fence.path}: the fence is missing, so nobody can tell whether this store is the latest. Bring the "
                "fence back; or say after which round nothing was published, and a new fence begins there (after=N, "
                "--after N; docs/operations.md)"
            )
        least = max(store.committed, store.sealed - 1, known)
        if after < least:
            raise InputError(f"expected a round from {least} on, up to which the store knows releases", place="after")
        return after
    if after is not None:
        raise InputError(f"{fence.path}: the fence is there and says round {mark.round}", place="after")
    if store.sealed > max(store.committed, store.number("origin")) + 1:
        raise VerificationError(
            f"{store.where}: the data are of round {store.sealed} and the journal is of round {store.committed}: "
            "restore both from one backup"
        )
    committed = max(store.committed, store.number("origin"))
    latest = max(mark.round, committed)
    if store.sealed >= latest and committed >= mark.round:
        return known
    if not restored and known < latest:
        raise VerificationError(
            f"{store.where}: this store ends with round {min(store.sealed, store.committed)}, but round {latest} was "
            "published: it is an old backup. Replay additions and deletions up to that round, without releases "
            "(restored=True, --restored; docs/operations.md)"
        )
    if known < latest:
        store.write_notes({"silent": str(latest)})
    return latest


def _fence_again(store: Store, fence: Fence, name: str, spec: Specification, after: int) -> Mark:
    """In place of a lost fence, under the same coins: it is promised that nothing after this round was published."""
    if spec.horizon is not None and after > spec.horizon + store.number("origin"):
        raise InputError(f"expected a round up to the horizon of {spec.horizon:,}, got {after:,}", place="after")
    mark = Mark(name, after, store.note("salt") or "")
    # the notes first: without a fence they are written again
    store.write_notes({"silent": str(after), "fenced": str(after)})
    fence.advance(mark)
    return mark
