"""Requests for erasure in a store: how far one is, and the signed receipt. Only keyed hashes are stored.

An erasure is entered and applied in the same way whether or not it found anything. The predecessors of a stream hold
records too, until their receipts say otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..coins import Key, name_bytes
from ..errors import InputError, VerificationError
from ..messages import mismatch
from ..store.receipt import Receipt, moment, sign, verify
from ..store.store import Store
from ..store.tables import Request
from .door import name_of
from .layout import OldLayout
from .outcome import Erasure, Outcome

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from .durable import Durable


PLACE = "earlier receipt"
# Up to this many subjects, the size of a sealed outcome does not reveal their number.
PADDED = 64


class Asked(NamedTuple):
    """A request: keyed hashes of its name and its content; ``token`` is the name as given."""

    token: str
    name: bytes
    content: bytes
    who: list[str | bytes]
    """The subjects, by name or by SHA-256."""
    subjects: list[bytes]
    """The keyed hash of each."""


class Hashes:
    """Keyed hashes, which reveal nothing without the key.

    >>> hashes = Hashes(Key.for_testing(1))
    >>> hashes.subject("u17") == hashes.subject(hashlib.sha256(b"u17").digest())
    True
    """

    def __init__(self, key: Key, sealed: bytes | None = None) -> None:
        """`sealed`: the secret of the predecessor (`handed_on`), so that its hashes are known here."""
        own = key.derive("hashes of requests and subjects")
        self._secret = own if sealed is None else _decrypted(_wrap(key), sealed)
        self._outcomes = _cipher(self._hash("outcomes of requests"))
        self._staged = _cipher(key.derive("releases that wait"))
        self.signing = key.derive("receipts")
        self.stream = key.derive("name of the stream")[:16].hex()

    def handed_on(self, key: Key) -> bytes:
        """The secret of these hashes, encrypted for another key."""
        return _encrypted(_wrap(key), self._secret)

    def subject(self, who: str | bytes) -> bytes:
        """Equal for a subject and for its SHA-256."""
        return self._hash("subject", who if isinstance(who, bytes) else hashlib.sha256(who.encode()).digest())

    def request(self, token: str | None, names: Sequence[str], digests: Sequence[bytes]) -> Asked:
        token = f"request-{secrets.token_hex(8)}" if token is None else token
        if not isinstance(token, str):
            raise mismatch("a name for the request", token, "request")
        name_of(token, "request")
        everybody: list[str | bytes] = [*names, *digests]
        subjects = [self.subject(who) for who in everybody]
        content = self._hash("content", token, *sorted({*subjects}))
        return Asked(token, self._hash("request", token), content, everybody, subjects)

    def state(self, parts: Sequence[bytes]) -> bytes:
        return self._hash("state", *parts)

    def seal(self, content: bytes, found: Mapping[bytes, bool], subjects: Iterable[bytes]) -> bytes:
        """Encrypt for which subjects of a request records were found.

        >>> hashes = Hashes(Key.for_testing(1))
        >>> sealed = hashes.seal(b"request", {b"1": True, b"2": False}, [b"2", b"1"])
        >>> hashes.unseal(b"request", sealed), len(sealed)
        ([True, False], 92)
        """
        flags = bytes(found[subject] for subject in sorted({*subjects}))
        return _encrypted(self._outcomes, flags + bytes([2]) * (-len(flags) % PADDED), content)

    def unseal(self, content: bytes, sealed: bytes | None) -> list[bool]:
        """Whether records were found, for each distinct subject in the order of the hashes."""
        try:
            flags = _decrypted(self._outcomes, sealed or b"", content)
        except ValueError:
            raise VerificationError("expected an outcome sealed by this stream, got another") from None
        return [flag == 1 for flag in flags if flag != 2]

    def encrypted(self, content: bytes, name: bytes) -> bytes:
        """Readable only with the key, and only under this name."""
        return _encrypted(self._staged, content, name)

    def decrypted(self, sealed: bytes, name: bytes) -> bytes:
        """A `ValueError` if it is not of this stream and this name."""
        return _decrypted(self._staged, sealed, name)

    def _hash(self, *parts: str | bytes) -> bytes:
        return hmac.digest(self._secret, name_bytes(*parts), "sha256")


def _wrap(key: Key) -> AESGCM:
    return _cipher(key.derive("hashes of the stream before"))


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _encrypted(cipher: AESGCM, content: bytes, context: bytes | None = None) -> bytes:
    """A fresh nonce, and what it encrypts."""
    nonce = secrets.token_bytes(12)
    return nonce + cipher.encrypt(nonce, content, context)


def _decrypted(cipher: AESGCM, sealed: bytes, context: bytes | None = None) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(sealed[:12], sealed[12:], context)
    except InvalidTag:
        raise ValueError("not encrypted under this key and context") from None


class Earlier(msgspec.Struct, frozen=True):
    """A predecessor: its keyed name, the public key of its receipts, and where it was."""

    stream: str
    key: str
    where: str

    @property
    def text(self) -> str:
        return f"{self.where}, the predecessor of this stream, which has its own copy of the records"


def earlier_streams(store: Store) -> list[Earlier]:
    """The predecessors, oldest first."""
    return msgspec.json.decode(store.note("earlier") or "[]", type=list[Earlier])


class Requested(Erasure):
    """A request in a store, and its state: received, applied, purged."""

    def __init__(
        self, stream: Durable, request: Request, asked: Asked, outcomes: Sequence[Outcome] | None = None
    ) -> None:
        """`outcomes`: what was counted; None for a repeated request."""
        super().__init__(outcomes or ())
        self.repeated = outcomes is None
        """Whether the same request was made before."""
        self._stream, self._request, self._asked = stream, request, asked

    @property
    def name(self) -> str:
        """The name to repeat it under."""
        return self._asked.token

    @property
    def outcomes(self) -> list[Outcome]:
        """What was there when it was requested. A repeated request has the later of two answers: what was there at the
        first request or, once its round is closed, in the whole of that round."""
        if not self.repeated:
            return super().outcomes
        now, asked = self.now, self._asked
        found = dict(zip(sorted({*asked.subjects}), self._stream.hashes.unseal(now.content, now.outcome), strict=True))
        names = [who if isinstance(who, str) else who.hex() for who in asked.who]
        return [Outcome(name, found[subject]) for name, subject in zip(names, asked.subjects, strict=True)]

    @property
    def now(self) -> Request:
        known = self._stream.request(self._request.name)
        if known is None and self._request.state != "dry run":
            raise InputError("this request was dropped before its round closed", place="request")
        return known or self._request

    @property
    def state(self) -> str:
        return self.now.state

    @property
    def round(self) -> int | None:
        """The round from which answers are as if the records had never been there."""
        return self.now.round

    def unerased(self, earlier: bytes | Sequence[bytes] = ()) -> list[Earlier]:
        """The predecessors that may still hold records of the subjects: all except those that signed, in receipts given
        as ``earlier``, that the request is purged for good."""
        streams = earlier_streams(self._stream.store)
        request, done = self.now.content.hex(), set()
        for content in [earlier] if isinstance(earlier, bytes) else earlier:
            named = verify(content, place=PLACE).stream
            own = next((each for each in streams if each.stream == named), None)
            if own is None:
                raise VerificationError(f"{PLACE}: expected one of a predecessor of this stream, got another")
            receipt = verify(content, place=PLACE, public_key=own.key)
            if receipt.request != request:
                raise VerificationError(f"{PLACE}: expected one of this request, got one of another")
            if receipt.state != "purged":
                raise InputError(f"expected a purged receipt, got {receipt.state}: ask {own.where} again", place=PLACE)
            if receipt.later != "reject" and receipt.afterwards is msgspec.UNSET:
                raise InputError(
                    f"expected a receipt that holds for good, got one of round {receipt.round}: records of the same "
                    f"subjects may have come after it. Ask {own.where} again under a new request name, and this stream "
                    "under the same",
                    place=PLACE,
                )
            done.add(own.stream)
        return [each for each in streams if each.stream not in done]

    def receipt(self, earlier: bytes | Sequence[bytes] = ()) -> bytes:
        """A signed receipt for whoever asked, without counts. Once applied, it says whether records were found.

        What may remain includes the predecessors of this stream, except those whose receipts for the same request are
        given (``earlier``).
        """
        request, stream = self.now, self._stream
        state: Any = request.state
        later: Any = stream.specification.after_erasure
        if request.state == "dry run":
            raise InputError("a dry run has no receipt")
        applied, purged = request.state in ("applied", "purged"), request.state == "purged"
        waiting = OldLayout.noted(stream.store)
        wiped = waiting is not None and waiting.covers(request)
        receipt = Receipt(
            stream=stream.name,
            request=request.content.hex(),
            state=state,
            received=request.received,
            round=request.round,
            applied=request.applied,
            purged=request.purged,
            found=stream.hashes.unseal(request.content, request.outcome) if applied else msgspec.UNSET,
            afterwards="nothing is published" if applied and request.round is None else msgspec.UNSET,
            what=list(stream.store.wiped if wiped else stream.store.reached) if purged else [],
            remains=[
                *(
                    [f"the layout of data.sqlite, {waiting.standing(stream.round, moment())}"]
                    if waiting and wiped
                    else []
                ),
                *stream.store.beyond,
                *(each.text for each in self.unerased(earlier)),
            ],
            later=later,
        )
        return sign(receipt, stream.hashes.signing)
