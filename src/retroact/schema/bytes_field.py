"""Byte strings, kept as text whose code points are the bytes, since the ledger stores and orders text."""

from __future__ import annotations

import binascii
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError
from retroact.messages import At, mismatch
from retroact.schema.field import Field, is_bytes

MAX_BYTES = 2**20


class Bytes(Field):
    r"""Any bytes, as given: `bytes`, `bytearray` or a `memoryview` of bytes, at most 2^20 of them.

    JSON and CSV have no bytes, so text is read as base64: the alphabet of RFC 4648 with + and /, padded, without line
    breaks, and with zeros in unused bits. Text that is meant as text belongs in a `Text` field.

    numpy's own bytes (`np.bytes_`, arrays of dtype `S`) drop trailing NULs, which could make two records equal. They
    are refused: give a list of bytes, or an array of objects.

    >>> Bytes().encode(b"\x00\xff", "digest") == Bytes().encode("AP8=", "digest") == "\x00\xff"
    True
    >>> Bytes().decode("\x00\xff")
    b'\x00\xff'
    >>> Bytes().encode("AP8", "digest")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected bytes, or base64 (RFC 4648, with padding), got 'AP8' - at digest
    """

    kind: ClassVar[str] = "bytes"
    interned: ClassVar[bool] = True

    def encode(self, value: object, place: str) -> str:
        if isinstance(value, np.bytes_):
            raise mismatch("bytes (numpy's own lose NULs at the end: give a list of bytes)", value, place)
        if isinstance(value, str):
            content = _from_base64(value, place)
        elif is_bytes(value):
            content = memoryview(value).tobytes()  # also for subclasses that print as something else
        else:
            raise mismatch("bytes", value, place)
        if len(content) > MAX_BYTES:
            raise InputError(f"expected at most {MAX_BYTES} bytes, got {len(content)}", place=place or None)
        return content.decode("latin-1")  # sorts as the bytes do, and always has a UTF-8 form

    def _encode_cells(self, cells: NDArray[Any], at: At) -> NDArray[Any]:
        if set(map(type, cells)) == {bytes} and max(map(len, cells)) <= MAX_BYTES:
            return np.array([content.decode("latin-1") for content in cells], dtype=object)
        return super()._encode_cells(cells, at)

    def decode(self, encoded: str) -> bytes:
        return encoded.encode("latin-1")


def _from_base64(text: str, place: str) -> bytes:
    try:
        content = binascii.a2b_base64(text, strict_mode=True)
        # the decoder ignores unused bits
        if binascii.b2a_base64(content, newline=False).decode() == text:
            return content
    except ValueError:
        pass
    raise mismatch("bytes, or base64 (RFC 4648, with padding)", text, place)
