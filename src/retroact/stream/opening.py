"""Opening a stream that lasts: its store, its key, its specification and its fence must belong together."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
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
from ..store.store import FORMAT, Store
from .durable import Durable
from .erasure import Hashes
from .specification import Specification
from .written import described, differences, written

POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class Follows:
    """What a successor begins with: the last round, the streams before it as files have them, and what is there."""

    round: int
    before: list[dict[str, Any]]
    ledger: Ledger
    inbox: list[bytes]
    sources: Mapping[str, Sequence[int]]


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
    base = _base(where)
    store = _store(where, create=specification is not None)
    try:
        fresh = store.state("stream") is None
        if fresh and specification is None:
            raise InputError(f"{store.where}: expected a stream, got an empty store; give schema and statistics")
        own, secret_file = _key(key, key_file, base, create=fresh)
        barrier = Fence(Path(fence) if fence is not None else (secret_file or base).with_suffix(".fence"))
        name = Hashes(own).stream
        if not fresh and store.state("stream") != name:
            raise InputError(
                f"{store.where}: expected the key that this stream was made under, got another", place="key"
            )
        silent = _silent(store, barrier, name, restored=restored, after=after, fresh=fresh)
        if fresh:
            if barrier.read() is None:
                barrier.advance(Mark(name, 0))
            _begin(store, name, specification, follows, own)
        if store.state("format") != str(FORMAT):
            raise InputError(f"{store.where}: expected store format {FORMAT}, got {store.state('format')}")
        spec = _specification(store, specification)
        epoch = _epoch(store, barrier, name, spec, after)
        stream = Durable.__new__(Durable)
        before = [Specification.from_dict(data).guarantee for data in msgspec.json.decode(store.note("before") or "[]")]
        origin = int(store.note("origin") or 0)
        stream._attach(spec, own, store, barrier, origin=origin, before=before, epoch=epoch, silent=silent)
        return stream
    except BaseException:
        store.close()
        raise


def _base(where: str | Path) -> Path:
    """Beside the store: where the key and the fence lie unless they are elsewhere."""
    text = str(where)
    if text.startswith(POSTGRES):
        return Path(text.partition("#")[2] or "retroact")
    folder = Path(where)
    return folder.parent / folder.resolve().name


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
    name: str,
    spec: Specification | None,
    follows: Follows | None,
    key: Key,
) -> None:
    """Everything that a new store begins with; a crash in between leaves a store that is still new."""
    assert spec is not None
    store.write_notes(_written_notes(spec))
    if follows is not None:
        store.write_notes({"origin": str(follows.round), "before": msgspec.json.encode(follows.before).decode()})
        marks = blocks.Marks(key.derive("order of blocks"))
        records = blocks.canonical(marks, Records.of(follows.ledger.data()))
        store.seal(follows.round, blocks.Edit(store.places(), records))
        store.prepare(follows.round, follows.sources)
        for number, entry in enumerate(follows.inbox, start=1):
            store.receive(number, entry)
    store.found(name)


def _written_notes(spec: Specification) -> dict[str, str]:
    tables = written(spec)
    return {
        "specification": "" if tables is None else msgspec.json.encode(tables).decode(),
        "described": msgspec.json.encode(described(spec)).decode(),
    }


def _specification(store: Store, given: Specification | None) -> Specification:
    """The stored one, which a given one must equal; before anything came in it may still change."""
    tables = store.note("specification")
    if given is None:
        if not tables:
            raise InputError(
                f"{store.where}: this stream has statistics that files cannot describe: give schema, statistics and "
                "budget as they were"
            )
        return Specification.from_dict(msgspec.json.decode(tables), store.where)
    old: Mapping[str, Any] = msgspec.json.decode(store.note("described") or "{}")
    new = described(given)
    if old == new:
        return given
    if store.sealed <= int(store.note("origin") or 0) and not store.inbox():
        store.write_notes(_written_notes(given))
        return given
    changed = list(differences(old, new)) or ["the noise that follows from it"]
    raise InputError(
        f"{store.where}: expected the specification that this stream runs under, got another one: "
        f"{'; '.join(changed)}. What was released rests on it: make a new stream, or a successor"
    )


def _silent(store: Store, fence: Fence, name: str, *, restored: bool, after: int | None, fresh: bool) -> int:
    """Up to which round nothing is released; refuses a store that is older than what was published."""
    mark = fence.read()
    if mark is not None and mark.stream != name:
        raise VerificationError(f"{fence.path}: expected the fence of this stream, got that of another one")
    if mark is None:
        if fresh:
            return 0
        if after is None:
            raise VerificationError(
                f"{fence.path}: the fence is missing, so nobody can tell whether this store is the latest. Bring the "
                "fence back; or say after which round nothing was published, to go on in a new epoch (after=N, "
                "--after N; docs/operations.md)"
            )
        return after
    if after is not None:
        raise InputError(f"{fence.path}: the fence is there and says round {mark.round}", place="after")
    known = int(store.note("silent") or 0)
    latest = max(mark.round, store.committed)
    if store.sealed >= latest and store.committed >= mark.round:
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


def _epoch(store: Store, fence: Fence, name: str, spec: Specification, after: int | None) -> tuple[int, bytes]:
    """How many restarts there were, with the random name of the last; one more where the fence is lost."""
    number, salt = int(store.note("epoch") or 0), bytes.fromhex(store.note("salt") or "")
    if after is None:
        return number, salt
    if after < max(store.committed, store.sealed - 1):
        raise InputError(
            f"expected a round from {store.committed} on, up to which the store has releases", place="after"
        )
    number, salt = spec.check_epoch(number + 1), secrets.token_bytes(16)
    store.write_notes({"epoch": str(number), "salt": salt.hex(), "silent": str(after)})
    fence.advance(Mark(name, after))
    return number, salt
