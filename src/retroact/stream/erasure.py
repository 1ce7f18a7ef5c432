"""Erasures: what was asked and found, how far it is, and the signed receipt. Only keyed hashes of it are kept.

An erasure is entered and applied in the same way whether it found anything. The streams that a successor goes on from
hold records too, until their receipts say otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..coins import Key, name_bytes
from ..errors import InputError, VerificationError
from ..store.receipt import Receipt, sign, verify
from ..store.store import Store
from ..store.tables import Request
from .door import name_of
from .release import Round

if TYPE_CHECKING:
    from .durable import Durable


@dataclass(frozen=True)
class Outcome:
    """What was found of one identifier. Exact, so for the operator only."""

    identifier: str
    found: bool
    surviving: int | None = None
    """Records at the last close. What a request found is kept without counts, so it is None when one is repeated."""
    waiting: int | None = None
    """Records that the open round holds, whatever else it does to them."""


class Erasure:
    """An erasure that was taken, and what it found of each identifier.

    >>> Erasure([Outcome("u17", True, 7, 0), Outcome("u71", False, 0, 0)]).found
    False
    """

    def __init__(self, outcomes: Sequence[Outcome] = ()) -> None:
        self._outcomes = list(outcomes)

    @property
    def outcomes(self) -> list[Outcome]:
        """One for each identifier, in the order in which they were named."""
        return self._outcomes

    @property
    def found(self) -> bool:
        """Whether all of them had a record."""
        return all(outcome.found for outcome in self.outcomes)

    def __repr__(self) -> str:
        missing = sum(not outcome.found for outcome in self.outcomes)
        return f"{type(self).__name__}({len(self.outcomes)} subjects, no record found of {missing})"


@dataclass(frozen=True)
class Accepted:
    """What became of an entry."""

    erasure: Erasure
    """What its erasures found, itself included."""
    round: Round | None
    """What was published, where it closed the round."""


# Up to this many subjects, the size of a sealed outcome does not tell their number.
PADDED = 64


class Asked(NamedTuple):
    """A request by its name and by its content, both hashed under the key; the token is the name as it was given."""

    token: str
    name: bytes
    content: bytes
    who: list[str | bytes]
    """The subjects, by name or by the SHA-256 of it."""
    subjects: list[bytes]
    """The hash of each."""


class Hashes:
    """Keyed hashes: without the key they say nothing of what was hashed.

    >>> hashes = Hashes(Key.for_testing(1))
    >>> hashes.subject("u17") == hashes.subject(hashlib.sha256(b"u17").digest())
    True
    """

    def __init__(self, key: Key, sealed: bytes | None = None) -> None:
        """`sealed`: the secret of the stream that this one follows, as `handed_on` has it, to know its hashes."""
        own = key.derive("hashes of requests and subjects")
        self._secret = own if sealed is None else _wrap(key).decrypt(sealed[:12], sealed[12:], None)
        self._outcomes = AESGCM(self._hash("outcomes of requests"))
        self.signing = key.derive("receipts")
        self.stream = key.derive("name of the stream")[:16].hex()

    def handed_on(self, key: Key) -> bytes:
        """The secret of these hashes, which only the other key opens."""
        nonce = secrets.token_bytes(12)
        return nonce + _wrap(key).encrypt(nonce, self._secret, None)

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
        subjects = [self.subject(who) for who in everybody]
        content = self._hash("content", token, *sorted({*subjects}))
        return Asked(token, self._hash("request", token), content, everybody, subjects)

    def state(self, parts: Sequence[bytes]) -> bytes:
        """Of stored data, by what stands for their rows."""
        return self._hash("state", *parts)

    def seal(self, content: bytes, found: Mapping[bytes, bool], subjects: Iterable[bytes]) -> bytes:
        """Of which subjects of a request records were found, so that only the key tells.

        >>> hashes = Hashes(Key.for_testing(1))
        >>> sealed = hashes.seal(b"request", {b"1": True, b"2": False}, [b"2", b"1"])
        >>> hashes.unseal(b"request", sealed), len(sealed)
        ([True, False], 92)
        """
        flags = bytes(found[subject] for subject in sorted({*subjects}))
        nonce = secrets.token_bytes(12)
        return nonce + self._outcomes.encrypt(nonce, flags + bytes([2]) * (-len(flags) % PADDED), content)

    def unseal(self, content: bytes, sealed: bytes | None) -> list[bool]:
        """For each different subject of the request, in the order of their hashes."""
        try:
            flags = self._outcomes.decrypt((sealed or b"")[:12], (sealed or b"")[12:], content)
        except (InvalidTag, ValueError):
            raise VerificationError("expected what a request found as this stream sealed it, got another") from None
        return [flag == 1 for flag in flags if flag != 2]

    def _hash(self, *parts: str | bytes) -> bytes:
        return hmac.digest(self._secret, name_bytes(*parts), "sha256")


def _wrap(key: Key) -> AESGCM:
    """What hands a secret on to this key."""
    return AESGCM(key.derive("hashes of the stream before"))


class Requested(Erasure):
    """A request in a store and how far it is: received, applied, purged."""

    def __init__(
        self, stream: Durable, request: Request, asked: Asked, outcomes: Sequence[Outcome] | None = None
    ) -> None:
        """`outcomes`: what was counted when it was asked for; None where that was before."""
        super().__init__(outcomes or ())
        self.repeated = outcomes is None
        """Whether it had been asked for before."""
        self._stream, self._request, self._asked = stream, request, asked

    @property
    def name(self) -> str:
        """To ask for it again."""
        return self._asked.token

    @property
    def outcomes(self) -> list[Outcome]:
        """As it was when it was asked for. A repeated request has the later of two answers: what was there when it was
        asked for the first time or, once its round is closed, in all of that round."""
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
            raise InputError("this request was dropped with its round, before it closed", place="request")
        return known or self._request

    @property
    def state(self) -> str:
        return self.now.state

    @property
    def round(self) -> int | None:
        """The round from which answers are as if the records had never been there."""
        return self.now.round

    def unerased(self, earlier: bytes | Sequence[bytes] = ()) -> list[Earlier]:
        """The streams before this one that may still hold records of the subjects, as `receipt` has it."""
        return unerased(self._stream.store, self.now.content, [earlier] if isinstance(earlier, bytes) else earlier)

    def receipt(self, earlier: bytes | Sequence[bytes] = ()) -> bytes:
        """Signed, for the one who asked; without a count. Once it is applied, it says whether records were found.

        Streams that this one goes on from are named under what remains, but for those whose own receipts for the same
        request are handed in (``earlier``).
        """
        request, stream = self.now, self._stream
        state: Any = request.state
        later: Any = stream.specification.after_erasure
        if request.state == "dry run":
            raise InputError("a dry run has no receipt")
        applied, purged = request.state in ("applied", "purged"), request.state == "purged"
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
            what=list(stream.store.reached) if purged else [],
            remains=[*stream.store.beyond, *(each.text for each in self.unerased(earlier))],
            later=later,
        )
        return sign(receipt, stream.hashes.signing)


PLACE = "earlier receipt"


class Earlier(msgspec.Struct, frozen=True):
    """A stream that another one goes on from: its keyed name, the public key of its receipts, and where it was."""

    stream: str
    key: str
    where: str

    @property
    def text(self) -> str:
        return f"{self.where}, the stream that this one goes on from, which holds records of its own"


def earlier_streams(store: Store) -> list[Earlier]:
    """The first one first."""
    return msgspec.json.decode(store.note("earlier") or "[]", type=list[Earlier])


def unerased(store: Store, request: bytes, receipts: Sequence[bytes] = ()) -> list[Earlier]:
    """The earlier streams that may still hold what a request is about: all but those that signed that it is purged,
    and that nothing of it came later."""
    streams = earlier_streams(store)
    done = set()
    for content in receipts:
        named = verify(content, place=PLACE).stream
        own = next((each for each in streams if each.stream == named), None)
        if own is None:
            raise VerificationError(f"{PLACE}: expected one of a stream that this one goes on from, got another")
        receipt = verify(content, place=PLACE, public_key=own.key)
        if receipt.request != request.hex():
            raise VerificationError(f"{PLACE}: expected one of this request, got one of another")
        if receipt.state != "purged":
            raise InputError(
                f"expected a receipt that says purged, got {receipt.state!r}: ask {own.where} again later", place=PLACE
            )
        if receipt.later != "reject" and receipt.afterwards is msgspec.UNSET:
            raise InputError(
                f"expected a receipt that holds for good, got one of round {receipt.round}: records of the same "
                f"subjects may have come after it. Ask {own.where} again under a new request name, and this stream "
                "under the same",
                place=PLACE,
            )
        done.add(own.stream)
    return [each for each in streams if each.stream not in done]
