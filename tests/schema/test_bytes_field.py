"""Bytes: kept byte for byte, ordered as bytes, read from base64 where there is only text."""

import base64
import ctypes
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retroact as ra
from retroact.errors import InputError
from retroact.schema import Bytes, Integer, Number, Rows, Schema, Vector
from retroact.schema.text_fields import MAX_BYTES
from retroact.statistics.where import select

BLOB = Bytes()
STRANGE = [b"", b"\0", b"\0\0", b"\xff\0", b"\xff", b"a", b"a\0", bytes(range(256)), "é".encode(), b"\xed\xa0\x80"]


def test_every_byte_string_survives() -> None:
    for content in STRANGE:
        assert BLOB.decode(BLOB.encode(content, "x")) == content
    encoded, keep = BLOB.encode_column(STRANGE, "x")
    assert keep is None
    assert encoded.dtype == object
    assert {type(text) for text in encoded} == {str}
    assert [BLOB.decode(text) for text in encoded] == STRANGE
    assert (BLOB.lower, BLOB.upper, BLOB.width, BLOB.interned) == (0, 0, 1, True)
    assert ra.Bytes is Bytes


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_order_is_that_of_bytes(contents: list[bytes]) -> None:
    texts = [BLOB.encode(content, "x") for content in contents]
    assert BLOB.encode_column(contents, "x")[0].tolist() == texts
    assert [BLOB.decode(text) for text in sorted(texts)] == sorted(contents)
    # the ledger stores UTF-8, and orders by it
    assert all(one.encode() <= other.encode() for one, other in pairwise(sorted(texts)))


def test_other_objects_that_hold_bytes() -> None:
    class Named(bytes):
        def __bytes__(self) -> bytes:
            return b"something else"

    same = [b"a\0", bytearray(b"a\0"), memoryview(b"a\0"), memoryview(b"a_\0_")[::2], Named(b"a\0")]
    same += [memoryview(np.array([97, 0], np.uint8)), memoryview(b"a\0").cast("c")]
    same += [memoryview((ctypes.c_uint8 * 2)(97, 0))]
    assert [BLOB.encode(value, "x") for value in same] == ["a\0"] * len(same)
    assert BLOB.encode_column(same, "x")[0].tolist() == ["a\0"] * len(same)
    assert BLOB.encode_column(np.array([b"a\0", b"b"], object), "x")[0].tolist() == ["a\0", "b"]
    changing = bytearray(b"before")
    text = BLOB.encode(changing, "x")
    changing[:] = b"after."
    assert text == "before"


@pytest.mark.parametrize(
    "bad",
    [
        *(7, None, True, 1.5, math.nan, [b"a"], {}, [1, 2], np.array([1, 2], np.uint8), np.bytes_(b"a"), np.void(b"a")),
        *(memoryview(np.zeros(2)), memoryview(np.zeros((2, 2), np.uint8)), memoryview(np.array([True]))),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_refused_alone_and_in_columns(bad: object) -> None:
    with pytest.raises(InputError, match=r"expected bytes.*, got .* - at it$"):
        BLOB.encode(bad, "it")
    with pytest.raises(InputError, match=r"expected bytes.*, got .* - at it, row 3$"):
        BLOB.encode_column([b"a", b"b", bad], "it")


def test_numpy_bytes_have_lost_their_end() -> None:
    column = np.array([b"a\0", b"b"])
    assert column.tolist() == [b"a", b"b"]
    with pytest.raises(InputError, match=r"numpy's own lose NULs at the end: give a list of bytes\), got .* row 1"):
        BLOB.encode_column(column, "x")
    with pytest.raises(InputError, match="lose NULs"):
        BLOB.encode(column[0], "x")


@given(st.binary(max_size=70))
def test_text_is_base64(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    assert BLOB.encode(text, "x") == BLOB.encode(np.str_(text), "x") == BLOB.encode(content, "x")
    assert BLOB.encode_column([text, content], "x")[0].tolist() == [BLOB.encode(content, "x")] * 2
    assert BLOB.encode_column(np.array([text]), "x")[0].tolist() == [BLOB.encode(content, "x")]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "A",
            "AA",
            "AAA",
            "AA=",
            "AA===",
            "=",
            "====",
            "AA==AA==",
            "A=A=",
            "AB==",
            "AAB=",
            "AP8= ",
            " AP8=",
            "AP\n8=",
        ),
        *("AP8=\n", "__8=", "-_8=", "é", "AP8=\0", "\ud800", "AAAA=", "=AAA", "AP8=x", "x000=", "\uff21\uff30\uff18="),
    ],
    ids=ascii,
)
def test_text_that_is_not_base64(text: str) -> None:
    with pytest.raises(InputError, match=r"expected bytes, or base64 \(RFC 4648, with padding\), got .* - at x$"):
        BLOB.encode(text, "x")
    with pytest.raises(InputError, match=r"base64 .* - at x, row 2$"):
        BLOB.encode_column([b"a", text], "x")


def test_length() -> None:
    longest = b"\xff" * MAX_BYTES
    for value in (longest, bytearray(longest), memoryview(longest), base64.b64encode(longest).decode()):
        assert BLOB.decode(BLOB.encode(value, "x")) == longest
        assert BLOB.encode_column([b"", value], "x")[0].tolist() == ["", longest.decode("latin-1")]
    longer = longest + b"\0"
    for value in (longer, bytearray(longer), memoryview(longer), base64.b64encode(longer).decode()):
        with pytest.raises(InputError, match=r"expected at most 1048576 bytes, got 1048577 - at x$"):
            BLOB.encode(value, "x")
        with pytest.raises(InputError, match="got 1048577 - at x, row 2"):
            BLOB.encode_column([b"", value], "x")


def test_missing() -> None:
    field = Bytes(missing="skip")
    for column in ([b"a", None, math.nan], np.array([b"a", None, np.nan], object)):
        encoded, missing = field.encode_column(column, "x")
        assert encoded.tolist() == ["a", "", ""]
        assert missing is not None
        assert missing.tolist() == [False, True, True]
    # no bytes at all are a value
    assert field.encode_column([b"", ""], "x")[0].tolist() == ["", ""]
    assert field.encode_column([b"", ""], "x")[1] is None
    with pytest.raises(InputError, match="x, row 2"):
        field.encode_column([None, 7], "x")


def test_empty_and_tables() -> None:
    for column in ([], (), np.empty(0), np.empty(0, object), np.empty(0, "S3")):
        encoded, _ = BLOB.encode_column(column, "x")
        assert encoded.shape == (0,)
        assert encoded.dtype == object
    with pytest.raises(InputError, match="one value"):
        BLOB.encode_column(np.array([[b"a"], [b"b"]], object), "x")


@pytest.mark.parametrize("content", [b"a\0", bytearray(b"a\0"), memoryview(b"a\0")], ids=type)
def test_one_value_and_never_a_column(content: object) -> None:
    schema = Schema({"x": BLOB})
    rows, single = schema.encode({"x": content})
    assert single
    assert rows.columns["x"].tolist() == ["a\0"]
    assert schema.encode_record({"x": content}) == ("a\0",)
    rows, single = schema.encode({"x": [content, content]})
    assert not single
    assert rows.columns["x"].tolist() == ["a\0", "a\0"]
    assert schema.encode([{"x": content}])[0].count == 1
    for field in (BLOB, Integer(0, 255), Number(0, 255)):
        with pytest.raises(InputError, match="expected a column, got"):
            field.encode_column(content, "x")
    with pytest.raises(InputError, match="a vector of 2 coordinates"):
        Vector(2, radius=999, step=1).encode(content, "x")


def test_views_of_numbers_are_still_columns() -> None:
    view = memoryview(np.array([1.0, 2.0]))
    assert Number(0, 2, step=1).encode_column(view, "x")[0].tolist() == [1, 2]
    assert Schema({"x": Number(0, 2, step=1)}).encode({"x": view})[0].count == 2


def test_rows() -> None:
    schema = Schema({"x": BLOB, "n": Integer(0, 9)})
    rows = Rows.from_tuples(schema, [("\xff\0", 1), ("", 2)])
    assert rows.columns["x"].tolist() == ["\xff\0", ""]
    assert Rows.empty(schema).columns["x"].dtype == object


def test_in_a_stream() -> None:
    conditions = {"all": {}, "one": {"x": b"\xff"}, "two": {"x": ["", bytearray(b"\0\xff"), "/w=="]}}
    statistics = {name: ra.Count(where=where) for name, where in conditions.items()}
    stream = ra.Stream({"x": ra.Bytes()}, statistics, epsilon=1000, horizon=4, key=ra.Key.for_testing(1))
    stream.add({"x": b"\xff\0"})
    stream.add({"x": [b"", b"\0", b"\xff", "/wA=", "AP8="]})
    first = stream.close_round()
    assert [round(first[name].value) for name in statistics] == [6, 1, 3]
    again = ra.Stream.from_state(stream.specification, stream.state(), key=ra.Key.for_testing(1))
    stream.delete({"x": bytearray(b"\xff\0")}, stamp=1)
    stream.delete({"x": [b"\xff\0\0", b"\xff"]}, stamp=1)
    second = stream.close_round()
    assert [round(second[name].value) for name in statistics] == [4, 0, 2]
    assert (second.applied.removed, second.applied.ignored_deletions) == (2, 1)
    again.delete({"x": [b"\xff\0", "/w=="]}, stamp=1)
    assert again.close_round().encode() == second.encode()
    with pytest.raises(InputError, match="base64"):
        ra.Stream({"x": ra.Bytes()}, {"n": ra.Count(where={"x": "no base64"})}, epsilon=1, horizon=4)


# numpy drops the NULs of a text that it compares a column of objects with
def test_conditions_with_nuls_at_the_end() -> None:
    schema = Schema({"x": BLOB})
    rows, _ = schema.encode({"x": [b"a", b"a\0", b"", b"\0"]})
    for content, expected in ((b"a\0", [1]), (b"a", [0]), (b"\0", [3]), (b"", [2]), ([b"a\0", b"\0"], [1, 3])):
        assert np.flatnonzero(select({"x": content}, rows, schema)).tolist() == expected
