"""Erasure requests: what was asked, how far it is, and the signed receipt. Only keyed hashes of it are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..coins import Key, name_bytes
from ..errors import InputError
from ..store.receipt import Receipt, sign
from ..store.store import Request
from .names import name_of

if TYPE_CHECKING:
    from .durable import Durable


class Asked(NamedTuple):
    """A request by its name and by its content, both hashed under the key; the token is the name as it was given."""

    token: str
    name: bytes
    content: bytes


class Hashes:
    """Keyed hashes: without the key they say nothing of what was hashed.

    >>> hashes = Hashes(Key.for_testing(1))
    >>> hashes.subject("u17") == hashes.subject(hashlib.sha256(b"u17").digest())
    True
    """

    def __init__(self, key: Key, sealed: bytes | None = None) -> None:
        """`sealed`: the secret of the stream that this one follows, as `handed_on` has it, to know its hashes."""
        own = key.derive("hashes of requests and subjects")
        self._wrap = AESGCM(key.derive("hashes of the stream before"))
        self._secret = own if sealed is None else self._wrap.decrypt(sealed[:12], sealed[12:], None)
        self.signing = key.derive("receipts")
        self.stream = key.derive("name of the stream")[:16].hex()

    def handed_on(self, key: Key) -> bytes:
        """The secret of these hashes, which only the other key opens."""
        nonce = secrets.token_bytes(12)
        return nonce + Hashes(key)._wrap.encrypt(nonce, self._secret, None)

    def release(self, round: int, statistic: str, line: bytes, exact: bytes) -> bytes:
        """So that a release that was changed is seen."""
        return self._hash("release", str(round), statistic, line, exact)

    def subject(self, who: str | bytes) -> bytes:
        """The same for a subject and for its SHA-256."""
        return self._hash("subject", who if isinstance(who, bytes) else hashlib.sha256(who.encode()).digest())

    def request(self, token: str | None, names: Sequence[str], digests: Sequence[bytes]) -> Asked:
        if token is not None:
            named = name_of(token, "request") if isinstance(token, str) else None
            if named is None:
                raise InputError(f"expected a name for the request, got {token!r}", place="request")
        token = f"request-{secrets.token_hex(8)}" if token is None else token
        everybody: list[str | bytes] = [*names, *digests]
        subjects = sorted({self.subject(who) for who in everybody})
        return Asked(token, self._hash("request", token), self._hash("content", token, *subjects))

    def _hash(self, *parts: str | bytes) -> bytes:
        return hmac.digest(self._secret, name_bytes(*parts), "sha256")


@dataclass(frozen=True)
class Outcome:
    """What was found of one identifier. Exact, so for whoever runs the stream only."""

    identifier: str
    surviving: int
    """Records at the last close."""
    waiting: int
    """Records that the open round holds, whatever else it does to them."""

    @property
    def found(self) -> bool:
        return bool(self.surviving or self.waiting)


@dataclass(frozen=True)
class Erasure:
    """A request and how far it is: received, applied in a round, purged."""

    stream: Durable
    asked: Request
    outcomes: list[Outcome]
    name: str
    """To ask for it again."""

    @property
    def now(self) -> Request:
        known = self.stream.request(self.asked.name)
        if known is None and self.asked.state != "dry run":
            raise InputError("this request was dropped with its round, before it closed", place="request")
        return known or self.asked

    @property
    def state(self) -> str:
        return self.now.state

    @property
    def round(self) -> int | None:
        """The round from which answers are as if the records had never been there."""
        return self.now.round

    def receipt(self) -> bytes:
        """Signed, for whoever asked; without a count."""
        request, store = self.now, self.stream.store
        state: Any = request.state
        later: Any = self.stream.specification.after_erasure
        if request.state == "dry run":
            raise InputError("a dry run has no receipt")
        purged = request.state == "purged"
        receipt = Receipt(
            stream=self.stream.name,
            request=request.content.hex(),
            state=state,
            received=request.received,
            round=request.round,
            applied=request.applied,
            purged=request.purged,
            what=list(store.reached) if purged else [],
            remains=list(store.beyond),
            later=later,
        )
        return sign(receipt, self.stream.hashes.signing)
