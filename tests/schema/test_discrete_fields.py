"""Boolean, Category and Text."""

import enum
import math

import numpy as np
import pytest

from retroact.errors import InputError
from retroact.schema import Boolean, Category, Field, Text
from retroact.schema.text_fields import MAX_BYTES

SIZE = Category(["small", "large", 3])
STRANGE = ["", "a\0b", "\0", "👩‍👩‍👧", "é", "e\u0301", "Straße", " x ", "\ufeff", "\U0010ffff"]


def test_boolean() -> None:
    values = [True, False, 1, 0, "true", "FALSE", np.True_, np.int64(0)]
    assert [Boolean().encode(value, "x") for value in values] == [1, 0] * 4
    assert Boolean().encode_column(values, "x")[0].tolist() == [1, 0] * 4
    assert Boolean().encode_column(np.array([True, False]), "x")[0].dtype == np.int64
    assert Boolean().encode_column(np.array([1, 0], np.int8), "x")[0].tolist() == [1, 0]
    assert Boolean().decode(1) is True
    assert (Boolean().lower, Boolean().upper) == (0, 1)


def test_category() -> None:
    assert SIZE.values == ("small", "large", 3)
    assert (SIZE.lower, SIZE.upper) == (0, 2)
    assert SIZE.encode_column(["large", 3, np.int8(3), "3", np.str_("small")], "x")[0].tolist() == [1, 2, 2, 2, 0]
    assert SIZE.encode_column(np.array(["large", "small"]), "x")[0].tolist() == [1, 0]
    assert [SIZE.decode(code) for code in range(3)] == ["small", "large", 3]
    both = Category([1, "1"])
    assert [both.encode(1, "x"), both.encode("1", "x")] == [0, 1]
    assert both.encode_column([1, "1"], "x")[0].tolist() == [0, 1]
    with pytest.raises(InputError, match=r"one of 0, 1, 2, 3, 4 or 5 more, got 17 - at x"):
        Category(range(10)).encode(17, "x")


@pytest.mark.parametrize("values", [[], "abc", [1, 1], ["a", "a"], [True], [1.0], [None], ["\ud800"], 5, [2**70]])
def test_bad_categories(values: object) -> None:
    with pytest.raises(InputError, match=r"expected .* - at values"):
        Category(values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        *((Boolean(), True, bad) for bad in (2, -1, "yes", "2", None, 1.0, math.nan, [], np.float64(1))),
        *((SIZE, "small", bad) for bad in ("Small", "", 4, True, 3.0, None, math.nan, ["small"], b"small", np.True_)),
        *((Text(), "a", bad) for bad in (7, None, True, 1.5, math.nan, b"a", ["a"], "\ud800", "a\udfff", {})),
        (Category([1, 0]), 1, True),
    ],
    ids=repr,
)
def test_refused_alone_and_in_columns(field: Field, good: object, bad: object) -> None:
    with pytest.raises(InputError, match=r"expected .*, got .* - at it$"):
        field.encode(bad, "it")
    with pytest.raises(InputError, match=r"expected .*, got .* - at it, row 3$"):
        field.encode_column([good, good, bad], "it")


def test_text_is_kept_as_it_is() -> None:
    for text in STRANGE:
        assert Text().encode(text, "x") == text
    encoded, keep = Text().encode_column(STRANGE, "x")
    assert keep is None
    assert encoded.dtype == object
    assert encoded.tolist() == STRANGE
    assert (Text().lower, Text().upper, Text().interned) == (0, 0, True)


def test_text_of_subclasses_becomes_plain() -> None:
    class Colour(str, enum.Enum):  # noqa: UP042 - unlike StrEnum, str() of a member is not its value
        RED = "red"

    for value in (Colour.RED, np.str_("red")):
        assert type(Text().encode(value, "x")) is str
        encoded, _ = Text().encode_column(["blue", value], "x")
        assert [type(text) for text in encoded] == [str, str]
        assert encoded.tolist() == ["blue", "red"]
    encoded, _ = Text().encode_column(np.array(["a", "b"]), "x")
    assert [type(text) for text in encoded] == [str, str]


def test_text_length_is_counted_in_bytes() -> None:
    for longest, longer in (("a" * MAX_BYTES, "a"), ("é" * (MAX_BYTES // 2), "é")):
        assert Text().encode(longest, "x") == longest
        assert Text().encode_column(["a", longest], "x")[0].tolist() == ["a", longest]
        with pytest.raises(InputError, match=f"at most {MAX_BYTES} bytes of text, got"):
            Text().encode(longest + longer, "x")
        with pytest.raises(InputError, match="at x, row 5001"):
            Text().encode_column(["a"] * 5000 + [longest + longer], "x")


def test_text_column_is_not_shared_with_the_caller() -> None:
    column = np.array(["a", "b"], object)
    encoded, _ = Text().encode_column(column, "x")
    encoded[0] = "changed"
    assert column[0] == "a"


@pytest.mark.parametrize(
    "field", [Boolean(missing="skip"), Category([1, 0], missing="skip"), Text(missing="skip")], ids=repr
)
def test_missing(field: Field) -> None:
    good: object = "a" if isinstance(field, Text) else 1
    encoded, missing = field.encode_column([good, None, math.nan], "x")
    assert encoded.tolist() == [field.encode(good, "x"), field.blank, field.blank]
    assert missing is not None
    assert missing.tolist() == [False, True, True]
    encoded, missing = field.encode_column([None], "x")
    assert encoded.tolist() == [field.blank]
    assert encoded.dtype == (object if isinstance(field, Text) else np.int64)
    with pytest.raises(InputError, match="x, row 2"):
        field.encode_column([None, b"no"], "x")


@pytest.mark.parametrize("field", [Boolean(), SIZE, Text()], ids=repr)
def test_empty_and_tables(field: Field) -> None:
    assert field.encode_column([], "x")[0].shape == (0,)
    assert field.encode_column(np.empty(0), "x")[0].dtype == (object if isinstance(field, Text) else np.int64)
    with pytest.raises(InputError, match="one value"):
        field.encode_column(np.ones((2, 2), bool), "x")
