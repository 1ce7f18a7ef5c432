"""Signed statements: one line of canonical JSON, with the public key and an Ed25519 signature of the content.

A signature is valid for one kind of statement only: the kind is signed too, and each kind has its own signing keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from ..errors import InputError, VerificationError

# signatures are loaded when one is made or checked: few programs do, and it takes long
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SECRET = 32
HEX = re.compile(r"(?:[0-9a-f]{2})+")
_PRIME = 2**255 - 19
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
# Points of order 1, 2, 4 and 8 by their y, reduced or not: under such a key one signature fits many statements.
_SMALL_ORDER = {0, 1, _PRIME - 1, _PRIME, _PRIME + 1, _EIGHTH, _PRIME - _EIGHTH}

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True)
class Signed(Generic[T]):
    """A kind of statement: ``name`` is its key in the file and what messages call it.

    >>> class Note(msgspec.Struct, frozen=True):
    ...     text: str
    >>> notes = Signed("note", Note, limit=1000)
    >>> notes.verify(notes.sign(Note("hello"), bytes(32)), place="note.json")
    Note(text='hello')
    """

    name: str
    content: type[T]
    limit: int

    @cached_property
    def envelope(self) -> type[Any]:
        fields = [(self.name, self.content), ("public_key", str), ("signature", str)]
        return msgspec.defstruct("Signed", fields, frozen=True, forbid_unknown_fields=True)

    def signing_key(self, secret: bytes) -> Ed25519PrivateKey:
        """The signing key that belongs to a 32-byte secret."""
        if not isinstance(secret, bytes) or len(secret) != SECRET:
            raise InputError(f"expected a secret of {SECRET} bytes", place="secret")
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        info = f"retroact {self.name} signing".encode()
        derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info)
        return Ed25519PrivateKey.from_private_bytes(derive.derive(secret))

    def public_key(self, secret: bytes) -> str:
        """The public key in hexadecimal."""
        return _raw(self.signing_key(secret)).hex()

    def sign(self, value: T, secret: bytes) -> bytes:
        """The statement as one line of canonical JSON with its public key and signature."""
        key = self.signing_key(secret)
        signature = key.sign(self._domain + canonical(value))
        content = canonical(self.envelope(value, _raw(key).hex(), signature.hex())) + b"\n"
        if len(content) > self.limit:
            raise InputError(
                f"expected a {self.name} of at most {self.limit} bytes, got {len(content)}", place=self.name
            )
        return content

    def verify(self, content: bytes, *, place: str, public_key: str | None = None) -> T:
        """The statement in ``content``, if it is well formed and its signature is valid.

        Without a ``public_key`` obtained elsewhere this shows only that it is intact: anyone can sign with their own.
        """
        signed = self.read(content, place=place)
        value: T = getattr(signed, self.name)
        key = from_hex(signed.public_key, 32, f"{place}, public_key")
        signature = from_hex(signed.signature, 64, f"{place}, signature")
        if content != canonical(signed) + b"\n":
            raise InputError(
                "expected canonical JSON (sorted keys, no spaces, one line), found another form", place=place
            )
        if public_key is not None and from_hex(public_key, 32, "public_key") != key:
            raise VerificationError(
                f"expected a {self.name} signed by {public_key}, found one by {key.hex()} - at {place}"
            )
        if _small_order(key):
            raise VerificationError(
                f"expected the public key of a signer, found one that anybody can sign for: {key.hex()} - at {place}"
            )
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, self._domain + canonical(value))
        except (InvalidSignature, ValueError):
            raise VerificationError(
                f"expected the signature of this {self.name}, found one that does not fit - at {place}"
            ) from None
        return value

    def read(self, content: bytes, *, place: str) -> Any:
        """The statement with ``public_key`` and ``signature``, of the right types but not verified."""
        if len(content) > self.limit:
            raise InputError(f"expected a {self.name} of at most {self.limit} bytes, found {len(content)}", place=place)
        try:
            content.decode()
            return msgspec.json.decode(content, type=self.envelope)
        except UnicodeDecodeError as error:
            raise InputError(
                f"expected UTF-8, found byte {content[error.start]:#04x} at {error.start}", place=place
            ) from None
        except msgspec.ValidationError as error:
            raise InputError(f"expected a {self.name}: {error}", place=place) from None
        except msgspec.DecodeError as error:
            raise InputError(f"expected JSON, found something else: {error}", place=place) from None
        except RecursionError:
            raise InputError(f"expected a {self.name}, found JSON that is nested too deeply", place=place) from None

    @property
    def _domain(self) -> bytes:
        return f"retroact {self.name} 1\n".encode()


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces.

    >>> canonical({"b": 1, "a": [2]})
    b'{"a":[2],"b":1}'
    """
    return msgspec.json.encode(value, order="sorted")


def from_hex(text: str, size: int, place: str) -> bytes:
    """
    >>> from_hex("00ff", 2, "key")
    b'\\x00\\xff'
    """
    if not HEX.fullmatch(text) or len(text) != 2 * size:
        raise InputError(f"expected {2 * size} hexadecimal digits in lower case, found {text[:80]!r}", place=place)
    return bytes.fromhex(text)


def _small_order(key: bytes) -> bool:
    """Ignores the sign of x, which is the highest bit.

    >>> _small_order(bytes([1]) + bytes(31)), _small_order(bytes([2]) + bytes(31))
    (True, False)
    """
    return int.from_bytes(key, "little") & (2**255 - 1) in _SMALL_ORDER


def _raw(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
