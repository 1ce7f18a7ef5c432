"""Columns in arrays give what lists of their values give: the same integers, the same missing rows, the same errors."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.schema import Boolean, Category, Date, Field, Integer, Number, Text, Timestamp
from retroact.schema.packed import Coded, Days, Decimals, Masked, Packed
from retroact.schema.packed_texts import PackedTexts
from support.tiers import examples

FIELDS: list[Field] = [
    Number(-500, 500, step="0.01", missing="skip"),
    Number(-500, 500, step="0.01"),
    Number(0, 10**15, step=1, clip=True),
    Number(-300_000, 300_000, step="0.3", missing="skip"),
    Number(0, 7 * 10**14, step=7, clip=True, missing="skip"),
    Integer(0, 2400, missing="skip"),
    Integer(-(2**53) + 1, 2**53 - 1, clip=True),
    Category(["DE", "FR", 7, ""], missing="skip"),
    Category(["DE"], other="rest", missing="skip"),
    Text(missing="skip"),
    Text(),
    Boolean(missing="skip"),
    Date("2000-01-01", "2029-12-31", missing="skip"),
    Timestamp("1960-01-01T00:00:00Z", "2029-12-31T00:00:00Z", missing="skip"),
]
DIGITS = st.text("0123456789", max_size=22)
SIGNS = st.sampled_from(["", "", "-", "+", "--"])
NUMERALS = st.builds(
    lambda sign, whole, point, rest, power: sign + whole + point + rest + power,
    SIGNS,
    st.one_of(st.text("0123456789", max_size=3), DIGITS, st.sampled_from(["0" * 30, "9" * 18, "9" * 19])),
    st.sampled_from(["", ".", ".", "..", ",", "\u066b"]),
    st.one_of(st.just(""), st.text("0123456789", max_size=3), DIGITS),
    st.sampled_from(["", "", "", "e2", "E-3", "e", " ", "\u0661"]),
)
ODD = ["DE", "FR", "7", "é", "nan", "inf", "1_0", "true", "0", "1", ".", "-", "-.", "1.", ".5"]
DATES = ["2013-01-01", "2013-01-01T05:00:00Z", "2013-02-30", "2013-01-01T05:00:00.5+01:00", "2013-01-01T05:00:00"]
WORDS = st.sampled_from(["", " 1", "1 ", "\n", "\0", "x" * 70, *ODD, *DATES])
TEXTS = st.lists(
    st.one_of(st.none(), WORDS, NUMERALS, st.text(max_size=5).filter(lambda text: _is_text(text))), max_size=6
)


def _is_text(text: str) -> bool:
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in text)


def outcome(field: Field, values: Any) -> tuple[Any, ...]:
    try:
        encoded, missing = field.encode_column(values, "x")
    except InputError as error:
        return str(error), error.row, error.hint
    mask = np.zeros(len(values), bool) if missing is None else missing
    return encoded.dtype, encoded.tolist(), mask.tolist()


def same(column: Packed, field: Field) -> bool:
    listed = column.values()
    assert outcome(field, column) == outcome(field, listed), field
    mistakes = [[(str(error), error.rows) for error in field.faults(each, "x")] for each in (column, listed)]
    return repr(mistakes[0]) == repr(mistakes[1])


def packed(texts: list[str | None], before: bytes = b"") -> PackedTexts:
    """As an Arrow buffer has them; under a missing one lies something."""
    pieces = [b"\xff1" if text is None else text.encode() for text in texts]
    offsets = np.cumsum([len(before), *map(len, pieces)])
    return PackedTexts.of(before + b"".join(pieces), offsets, np.array([text is not None for text in texts], bool))


@examples(400)
@given(TEXTS, st.sampled_from(FIELDS), st.sampled_from([b"", b"9", b"-", b"12345678."]))
@example(["0.155", "0.165", "-0.155"], FIELDS[0], b"")
@example(["99999999", "9999999.9", "1.0000000"], FIELDS[2], b"")
@example(["9" * 18, "-" + "9" * 17 + ".9"], FIELDS[4], b"")
def test_packed_texts(texts: list[str | None], field: Field, before: bytes) -> None:
    column = packed(texts, before)
    assert column.values() == texts
    assert same(column, field)


@examples(200)
@given(st.lists(NUMERALS.filter(lambda text: len(text) < 12), min_size=1, max_size=40), st.sampled_from(FIELDS[:7]))
def test_packed_numerals_that_are_all_numbers(texts: list[str], field: Field) -> None:
    fine = [text for text in texts if len(outcome(field, [text])) == 3 and outcome(field, [text])[0] == np.int64]
    assert same(packed([*fine, *texts[:1]]), field)
    assert same(packed(fine), field)


@given(TEXTS, TEXTS, st.data())
def test_rows_of_packed_texts(first: list[str | None], second: list[str | None], data: st.DataObject) -> None:
    column = PackedTexts.concatenate([packed(first), packed(second)])
    texts = first + second
    assert column.values() == texts
    rows = data.draw(st.lists(st.sampled_from(range(len(texts))), max_size=9)) if texts else []
    assert column.take(np.array(rows, np.int64)).values() == [texts[row] for row in rows]
    assert list(column[1:4]) == texts[1:4]
    assert column.equal(b"DE").tolist() == [text == "DE" for text in texts]


@given(st.lists(st.sampled_from([None, "", "a", "b", "\0", "a\0", "twelve bytes", "x" * 64]), min_size=1, max_size=30))
def test_words_of_packed_texts(texts: list[str | None]) -> None:
    coded = packed(texts).coded()
    assert coded is not None
    assert coded.values() == texts
    assert len({*coded.words}) == len(coded.words)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 3000), st.booleans()), max_size=6))
def test_decimals_dates_and_masked_numbers(rows: list[tuple[int, bool]]) -> None:
    units, present = np.array([unit for unit, _ in rows], np.int64), np.array([there for _, there in rows], bool)
    days = np.clip(units, -(10**6), 10**6).astype("M8[D]")
    for field in FIELDS:
        for scale in (-2, 0, 1, 3):
            assert same(Decimals(units, scale, present), field)
        assert same(Masked(units, present), field)
        assert same(Masked(units.astype(np.float32), present), field)
        assert same(Masked(units % 2 == 0, present), field)
        assert same(Masked(np.clip(units, -(10**9), 10**9).view("M8[s]"), present), field)
        assert same(Days(days, present), field)


@given(st.lists(st.floats(width=64) | st.floats(-500, 500).map(lambda value: round(value, 3)), max_size=6))
def test_masked_floats(values: list[float]) -> None:
    for field in FIELDS:
        assert same(Masked(np.array(values), np.arange(len(values)) % 3 != 1), field)


def test_forced_collisions_do_not_merge_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retroact.schema.packed_texts._MULTIPLIER", np.uint64(0))
    texts: list[str | None] = ["a", "b", "a", "", None, "b"]
    coded = packed(texts).coded()
    assert coded is None or coded.values() == texts
    assert outcome(Text(missing="skip"), packed(texts)) == outcome(Text(missing="skip"), texts)


def test_columns_compare_with_lists() -> None:
    assert Coded(["DE", None], np.array([1, 0])) == [None, "DE"]
    assert packed(["DE", None]) == Coded(["DE", None], np.array([0, 1]))
    assert Decimals(np.array([125]), 2, np.array([True]))[0] == Decimal("1.25")
