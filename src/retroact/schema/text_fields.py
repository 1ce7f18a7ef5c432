"""Fields that are not numbers: true or false, one of a declared list, any text, any bytes.

The ledger stores and orders text, so bytes are kept as text whose code points are the bytes.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64
from ..checks import is_integral
from ..errors import InputError
from ..messages import At, mismatch, show
from .field import Field, Missing, is_bytes

MAX_BYTES = 2**20


class Boolean(Field):
    """True or false, also as 1 and 0, or as words or digits in a CSV file.

    >>> [Boolean().encode(value, "member") for value in (True, 0, "TRUE", "0")]
    [1, 0, 1, 0]
    """

    kind: ClassVar[str] = "boolean"
    _expected: ClassVar[str] = "true or false"
    upper = 1

    def encode(self, value: object, place: str) -> int:
        if isinstance(value, int | np.integer | np.bool_) and (value == 0 or value == 1):
            return int(value)
        if isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
            return int(value.lower() in ("true", "1"))
        raise mismatch(self._expected, value, place)

    def _encode_cells(self, cells: NDArray[Any], at: At) -> I64:
        return cells.astype(np.int64) if cells.dtype.kind == "b" else super()._encode_cells(cells, at)

    def decode(self, encoded: int) -> bool:
        return bool(encoded)


class Category(Field):
    """One of a declared list of texts or whole numbers, encoded as its position in the list.

    A whole number may also be given as text, as in a CSV file, unless the list holds that text itself. With ``other``,
    every text or whole number that is not in the list counts as this one more category; without it, it is refused.

    >>> size = Category(["small", "large", 3], other="other")
    >>> [size.encode(value, "size") for value in ("large", 3, "3", "huge")]
    [1, 2, 2, 3]
    """

    kind: ClassVar[str] = "category"

    def __init__(self, values: Iterable[str | int], *, other: str | None = None, missing: Missing = "error") -> None:
        super().__init__(missing=missing)
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise mismatch("a list of texts or whole numbers", values, "values")
        self.listed = tuple(_category(value) for value in values)
        if not self.listed:
            raise mismatch("at least one value", [], "values")
        if other is not None and (not isinstance(other, str) or other in self.listed):
            raise mismatch("a name that is not among the values", other, "other")
        self.other = other
        self.values = self.listed if other is None else (*self.listed, other)
        """All categories, in the order of their codes."""
        codes = {value: code for code, value in enumerate(self.values)}
        if len(codes) != len(self.values):
            twice = next(value for value in self.values if self.values.count(value) > 1)
            raise InputError(f"expected distinct values, got {show(twice)} twice", place="values")
        self.upper = len(self.values) - 1
        self._lookup: dict[object, int] = {str(value): code for value, code in codes.items()}
        self._lookup.update(codes.items())

    def encode(self, value: object, place: str) -> int:
        # a dictionary alone would accept True and 1.0 for 1
        if isinstance(value, str) or is_integral(value):
            code = self._lookup.get(value)
            if code is None and self.other is not None:
                return self.upper
            if code is not None:
                return code
        few = ", ".join(map(show, self.values[:5]))
        rest = f" or {len(self.values) - 5} more" if len(self.values) > 5 else ""
        raise mismatch(f"one of {few}{rest}", value, place)

    def argument(self, name: str) -> Any:
        return self.listed if name == "values" else super().argument(name)

    def _encode_cells(self, cells: NDArray[Any], at: At) -> I64:
        items = cells.tolist()
        if set(map(type, items)) <= {str, int}:
            if self.other is not None:
                return np.array([self._lookup.get(item, self.upper) for item in items], np.int64)
            with suppress(KeyError):
                return np.fromiter(map(self._lookup.__getitem__, items), np.int64, len(items))
        return super()._encode_cells(cells, at)

    def decode(self, encoded: int) -> str | int:
        return self.values[encoded]


class Text(Field):
    """Any text, unchanged: case, spaces and Unicode form are kept.

    >>> Text().encode("Müller", "name")
    'Müller'
    >>> Text().encode(7, "name")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected text, got 7 - at name
    """

    kind: ClassVar[str] = "text"
    interned: ClassVar[bool] = True

    def encode(self, value: object, place: str) -> str:
        if not isinstance(value, str):
            raise mismatch("text", value, place)
        if not value.isascii() or len(value) > MAX_BYTES:
            check_utf8(value, place)
        return value if type(value) is str else str.__str__(value)  # subclasses may print as something else

    def _encode_cells(self, cells: NDArray[Any], at: At) -> NDArray[Any]:
        return cells.astype(object) if _all_plain(cells.tolist()) else super()._encode_cells(cells, at)

    def decode(self, encoded: str) -> str:
        return encoded


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


def _all_plain(items: list[Any]) -> bool:
    """Whether every item is acceptable text, as far as a few operations on the whole column can tell."""
    if set(map(type, items)) != {str}:
        return False
    for start in range(0, len(items), 4096):
        part = items[start : start + 4096]
        try:
            size = len("".join(part).encode())
        except UnicodeEncodeError:
            return False
        # only a part that is long in total can have a long item
        if size > MAX_BYTES and max(map(len, part)) > MAX_BYTES // 4:
            return False
    return True


def check_utf8(text: str, place: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise mismatch(f"text that UTF-8 can write (no lone surrogate, as at {error.start + 1})", text, place) from None
    if size > MAX_BYTES:
        raise InputError(f"expected at most {MAX_BYTES} bytes of text, got {size}", place=place or None)


def _category(value: object) -> str | int:
    if isinstance(value, str):
        check_utf8(value, "values")
        return str.__str__(value)
    if is_integral(value) and abs(int(value)) < 2**63:
        return int(value)
    raise mismatch("texts or whole numbers of 64 bits", value, "values")


def _from_base64(text: str, place: str) -> bytes:
    try:
        content = binascii.a2b_base64(text, strict_mode=True)
        # the decoder ignores unused bits
        if binascii.b2a_base64(content, newline=False).decode() == text:
            return content
    except ValueError:
        pass
    raise mismatch("bytes, or base64 (RFC 4648, with padding)", text, place)
