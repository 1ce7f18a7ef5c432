"""Columns of every kind that Arrow has, with the values in them."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

TEXTS = ["a", "", "é👩‍👧", None, "twelve bytes", "thirteen byte", "a\0b"]
BLOBS = [b"", b"\0", None, b"\xff\0", b"a\0", b"twelve bytes", b"thirteen byte", b"\xc3\xa9\xff" * 30]
PAIRS = [b"\0\0", b"a\0", None, b"\xff\xfe", b"\0b"]
LISTS = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
D = Decimal

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{str(kind): (kind, [1, 2, 3]) for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64())},
    "double": (pa.float64(), [1.5, -0.1, 5e-324]),
    "uint64": (pa.uint64(), [1, 2**64 - 1]),
    "nulls in numbers": (pa.float64(), [1.5, None, 2.5]),
    "nulls in integers": (pa.int64(), [2**62 + 1, None]),
    "bool": (pa.bool_(), [True, False, True, True, False, True, True, True, False, True]),
    "bool with nulls": (pa.bool_(), [True, None, False]),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "string_view": (pa.string_view(), TEXTS),
    "ascii": (pa.string(), ["DE", "FR", "DE"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "dictionary of large": (pa.dictionary(pa.int32(), pa.large_string()), ["x", None, "x", "y"]),
    "binary": (pa.binary(), BLOBS),
    "large_binary": (pa.large_binary(), BLOBS),
    "binary_view": (pa.binary_view(), BLOBS),
    "fixed_size_binary": (pa.binary(2), PAIRS),
    "fixed_size_binary without nulls": (pa.binary(3), [b"abc", b"\0\0\0", b"xy\0"]),
    "dictionary of binary": (pa.dictionary(pa.int8(), pa.binary()), BLOBS),
    "list of binary": (pa.list_(pa.binary()), [[b"a\0", b""], None, [b"c"]]),
    "null": (pa.null(), [None, None]),
    "date32": (pa.date32(), [date(2020, 1, 1), None, date(1960, 2, 29)]),
    "date64": (pa.date64(), [date(2020, 1, 1), None, date(1960, 2, 29)]),
    "decimal128": (pa.decimal128(20, 3), [D("1.500"), None, D("-2.250"), D("12345678901234567.125")]),
    "decimal256": (pa.decimal256(60, 3), [D("1.500"), None, D("-2.250"), D(10) ** 50]),
    "decimal of tens": (pa.decimal128(5, -2), [D("1.2E+4"), D("-1E+2")]),
    "list": (pa.list_(pa.float64()), [[1.0, 2.0], None, [], [3.0, None]]),
    "large_list": (pa.large_list(pa.int32()), [[1, 2], [3, 4], None]),
    "list of text": (pa.list_(pa.string()), [["a", "b"], ["c"]]),
}


def plain(column: Any) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in column]
