"""Erasure receipts: signed statements of what was erased, from when on, and what may remain elsewhere.

A receipt never holds a count of records, nor anything that is derived from them: the request appears as a keyed hash.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import InputError, VerificationError

LIMIT = 65536
DOMAIN = b"retroact receipt 1\n"
SECRET = 32
_hex = re.compile(r"(?:[0-9a-f]{2})+")
_time = re.compile(r"(?a)\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z")


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of one request for erasure. Times are RFC 3339 texts in UTC, such as 2026-01-31T12:00:00Z.

    ``round`` is the first from which answers are as if the records had never been there; ``what`` was purged;
    ``remains`` cannot be reached and may remain elsewhere; ``later`` is what happens to later records of the subjects.

    >>> receipt = Receipt(stream="a1", request="0f", state="received", received="2026-01-31T12:00:00Z", later="reject")
    >>> verify(sign(receipt, bytes(32)), place="receipt.json") == receipt
    True
    """

    format: Literal["retroact erasure receipt"] = "retroact erasure receipt"
    version: Literal[1] = 1
    stream: str
    request: str
    state: Literal["received", "applied", "purged"]
    received: str
    round: int | None = None
    applied: str | None = None
    purged: str | None = None
    what: list[str] = []
    remains: list[str] = []
    later: Literal["accept", "reject"]


class _Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    receipt: Receipt
    public_key: str
    signature: str


def signing_key(secret: bytes) -> Ed25519PrivateKey:
    """The signing key that belongs to the 32-byte secret of a stream."""
    if not isinstance(secret, bytes) or len(secret) != SECRET:
        raise InputError(f"expected a secret of {SECRET} bytes", place="secret")
    derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"retroact receipt signing")
    return Ed25519PrivateKey.from_private_bytes(derive.derive(secret))


def public_key(secret: bytes) -> str:
    """The public key, in hexadecimal, that the receipts of a stream are verified with.

    >>> len(public_key(bytes(32)))
    64
    """
    return _raw(signing_key(secret)).hex()


def sign(receipt: Receipt, secret: bytes) -> bytes:
    """The receipt as one line of canonical JSON with its public key and signature."""
    _check(receipt, "receipt")
    key = signing_key(secret)
    signature = key.sign(DOMAIN + _canonical(receipt))
    content = _canonical(_Signed(receipt, _raw(key).hex(), signature.hex())) + b"\n"
    if len(content) > LIMIT:
        raise InputError(f"expected a receipt of at most {LIMIT} bytes, got {len(content)}", place="receipt")
    return content


def verify(content: bytes, *, place: str, public_key: str | None = None) -> Receipt:
    """The receipt in ``content``, if it is well formed and its signature holds.

    Without the ``public_key`` of the stream, known from elsewhere, this shows only that the receipt is whole: anybody
    can sign with a key of their own. With it, it shows that the holder of the stream's secret made it.
    """
    if len(content) > LIMIT:
        raise InputError(f"expected a receipt of at most {LIMIT} bytes, found {len(content)}", place=place)
    try:
        content.decode()
        signed = msgspec.json.decode(content, type=_Signed)
    except UnicodeDecodeError as error:
        raise InputError(
            f"expected UTF-8, found byte {content[error.start]:#04x} at {error.start}", place=place
        ) from None
    except msgspec.ValidationError as error:
        raise InputError(f"expected a receipt: {error}", place=place) from None
    except msgspec.DecodeError as error:
        raise InputError(f"expected JSON, found something else: {error}", place=place) from None
    _check(signed.receipt, place)
    key = _bytes(signed.public_key, 32, f"{place}, public_key")
    signature = _bytes(signed.signature, 64, f"{place}, signature")
    if content != _canonical(signed) + b"\n":
        raise InputError("expected canonical JSON (sorted keys, no spaces, one line), found another form", place=place)
    if public_key is not None and _bytes(public_key, 32, "public_key") != key:
        raise VerificationError(f"expected a receipt signed by {public_key}, found one by {key.hex()} - at {place}")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, DOMAIN + _canonical(signed.receipt))
    except (InvalidSignature, ValueError):
        raise VerificationError(
            f"expected the signature of this receipt, found one that does not fit - at {place}"
        ) from None
    return signed.receipt


def _canonical(value: Receipt | _Signed) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _bytes(text: str, size: int, place: str) -> bytes:
    if not _hex.fullmatch(text) or len(text) != 2 * size:
        raise InputError(f"expected {2 * size} hexadecimal digits in lower case, found {text[:80]!r}", place=place)
    return bytes.fromhex(text)


def _check(receipt: Receipt, place: str) -> None:
    """What the types do not say: hexadecimal identities, times, and steps that are there when their state says so."""
    for name in ("stream", "request"):
        if not _hex.fullmatch(text := getattr(receipt, name)):
            raise InputError(
                f"expected hexadecimal digits in lower case, found {text[:80]!r}", place=f"{place}, {name}"
            )
    for name in ("received", "applied", "purged"):
        if (time := getattr(receipt, name)) is not None and not _is_time(time):
            raise InputError(
                f"expected a UTC time like 2026-01-31T12:00:00Z, found {time[:80]!r}", place=f"{place}, {name}"
            )
    if receipt.round is not None and receipt.round < 1:
        raise InputError(f"expected a round from 1 on, found {receipt.round}", place=f"{place}, round")
    steps = ["received", "applied", "purged"].index(receipt.state)
    for step, name in ((1, "round"), (1, "applied"), (2, "purged")):
        if steps >= step and getattr(receipt, name) is None:
            raise InputError(f"expected a value in the state {receipt.state!r}, found none", place=f"{place}, {name}")
    for step, name in ((1, "applied"), (2, "purged")):
        if steps < step and getattr(receipt, name) is not None:
            raise InputError(f"expected none in the state {receipt.state!r}, found one", place=f"{place}, {name}")


def _is_time(text: str) -> bool:
    try:
        return bool(_time.fullmatch(text)) and datetime.fromisoformat(text) is not None
    except ValueError:
        return False
