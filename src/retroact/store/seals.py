"""Keyed hashes of rows, and the digest of all tables of one side of a store.

A row's hash (`mac`) covers stream, table, key and content, so a row that was changed, moved or brought from elsewhere
does not fit. Missing, added and older rows are detected by the digest: for each table the sum modulo 2^256 of one term
per row, a keyed function of the row's hash. A change costs as much as the rows that it touches.

**Why a digest cannot be made or adjusted without the key.** Its tag is a keyed hash of round and sums, so only digests
that the stream wrote are accepted. Such a digest fits other rows only if their terms have the same sum. Those rows must
be the stream's own, because of their hashes, so an attacker would have to choose, among the rows of all times, a set
with a given sum; but can see neither terms nor sums. The sums are encrypted with a key stream that the tag selects: a
change of one bit in them gives another tag and another key stream, so two digests reveal only whether they are of the
same rows. (If terms were known, such a set could be found in about 2^32 steps, however long the sums are.) The seal
uses no randomness: equal rows and rounds give equal bytes, and nothing reveals which rows were there before.

What remains possible is to put back all tables of one side as they once were. The other side and the fence detect that.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .tables import FORMAT, SIDES, TABLES, Side, StoredTable, tables

SIZE = 32
LONG = 1024
"""A value of at least this size is first hashed without key and copy, for which processors have instructions."""
_ENTIRE = 1 << 8 * SIZE


@dataclass
class Digest:
    """The last round of a side, and the sum of each of its tables."""

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

    def __init__(self, secret: bytes, stream: str, *, format: int = FORMAT) -> None:
        def key(purpose: bytes) -> bytes:
            return hashlib.blake2b(stream.encode(), key=secret, person=purpose, digest_size=SIZE).digest()

        self._terms, self._tags, self._mask = key(b"terms of digests"), key(b"tags of digests"), key(b"mask of digests")
        self._rows = {table.name: key(f"rows of {table.name}".encode()) for table in TABLES}
        self._encode = msgspec.msgpack.Encoder().encode
        self._own = {side: tuple(table.name for table in tables(side, format)) for side in SIDES}

    def mac(self, table: StoredTable, row: Sequence[Any]) -> bytes:
        # a long value as its SHA-256, in a type that no value in a row has
        parts = [
            msgspec.msgpack.Ext(1, hashlib.sha256(value).digest())
            if isinstance(value, bytes) and len(value) >= LONG
            else value
            for value in row
        ]
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
