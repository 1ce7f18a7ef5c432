"""Keyed hashes of rows, and the digest of all tables of one side of a store.

A row's hash (`mac`) covers stream, table, key and content, so a row that was changed, moved or brought from elsewhere
does not fit. What is missing, added or older is seen by the digest: for each table the sum modulo 2^256 of a term for
each of its rows, a keyed function of the row's hash. A change costs as much as the rows that it touches.

**Why a digest cannot be made or adjusted without the key.** Its tag is a keyed hash of round and sums, so only digests
that the stream wrote are taken. One of those fits other rows only if their terms have the same sum; rows must be the
stream's own, as they are under their hashes, so one would have to choose among rows of all times a set that meets a
sum: and neither terms nor sums are to be seen. The sums are sealed under a key stream that the tag chooses: a change of
one bit of them makes another tag and another key stream, so nothing is learnt from two digests but whether they are of
the same rows. (Were terms known, such a set could be found in about 2^32 steps, however long the sums are.) The seal
draws no randomness: equal rows and rounds give equal bytes, and nothing tells of rows that were there before.

What is left is to put back all tables of one side as they were at one time. That is for the other side and for the
fence to see.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .tables import SIDES, TABLES, Side, StoredTable, tables

SIZE = 32
LONG = 1024
"""From this size on a value is hashed as it lies, without a key and a copy: processors do that quickest."""
_ENTIRE = 1 << 8 * SIZE


@dataclass
class Digest:
    """The last round of a side, and for each of its tables the sum over its rows."""

    round: int = 0
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys((table.name for table in TABLES), 0))

    def add(self, table: StoredTable, change: int) -> None:
        self.sums[table.name] = (self.sums[table.name] + change) % _ENTIRE


class Seals:
    """
    >>> from .tables import NOTE
    >>> seals = Seals(bytes(32), "5eed")
    >>> mac = seals.mac(NOTE, ("name", "value"))
    >>> digest = Digest(3)
    >>> digest.add(NOTE, seals.sum([mac]))
    >>> seals.opened("journal", seals.sealed("journal", digest)) == digest
    True
    >>> seals.opened("data", seals.sealed("journal", digest)) is None
    True
    """

    def __init__(self, secret: bytes, stream: str) -> None:
        def key(purpose: bytes) -> bytes:
            return hashlib.blake2b(stream.encode(), key=secret, person=purpose, digest_size=SIZE).digest()

        self._terms, self._tags, self._mask = key(b"terms of digests"), key(b"tags of digests"), key(b"mask of digests")
        self._rows = {table.name: key(f"rows of {table.name}".encode()) for table in TABLES}
        self._encode = msgspec.msgpack.Encoder().encode
        self._own = {side: tuple(table.name for table in tables(side)) for side in SIDES}

    def mac(self, table: StoredTable, row: Sequence[Any]) -> bytes:
        parts = [_short(value) for value in row]
        return hashlib.blake2b(self._encode(parts), key=self._rows[table.name], digest_size=SIZE).digest()

    def sum(self, macs: Iterable[bytes]) -> int:
        """The sum of the terms of rows, by their hashes."""
        key, total = self._terms, 0
        for mac in macs:
            total += int.from_bytes(hashlib.blake2b(mac, key=key, digest_size=SIZE).digest(), "big")
        return total % _ENTIRE

    def sealed(self, side: Side, digest: Digest) -> bytes:
        sums = [digest.sums[name].to_bytes(SIZE, "big") for name in self._own[side]]
        plain = digest.round.to_bytes(8, "big") + b"".join(sums)
        tag = self._tag(side, plain)
        return tag + self._masked(tag, plain)

    def opened(self, side: Side, sealed: bytes) -> Digest | None:
        """None if this stream never sealed it."""
        tag, plain = sealed[:SIZE], self._masked(sealed[:SIZE], sealed[SIZE:])
        own = self._own[side]
        if len(plain) != 8 + SIZE * len(own) or not hmac.compare_digest(tag, self._tag(side, plain)):
            return None
        digest = Digest(int.from_bytes(plain[:8], "big"))
        for at, name in zip(range(8, len(plain), SIZE), own, strict=True):
            digest.sums[name] = int.from_bytes(plain[at : at + SIZE], "big")
        return digest

    def _tag(self, side: Side, plain: bytes) -> bytes:
        return hashlib.blake2b(side.encode() + b"\0" + plain, key=self._tags, digest_size=SIZE).digest()

    def _masked(self, tag: bytes, text: bytes) -> bytes:
        stream = hashlib.shake_256(self._mask + tag).digest(len(text))
        return (int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(text), "big")


def _short(value: Any) -> Any:
    """A long value by its SHA-256, of a type that no value in a row has."""
    if isinstance(value, bytes) and len(value) >= LONG:
        return msgspec.msgpack.Ext(1, hashlib.sha256(value).digest())
    return value
