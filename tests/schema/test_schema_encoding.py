"""The door: records, columns, lists of records; names, lengths, missing values."""

import math
import random
from collections import OrderedDict, UserDict
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.schema import Boolean, Category, Date, Integer, Number, Rows, Schema, Text, Vector
from retroact.schema.field import Coded

ORDERS = Schema({"country": Text(), "amount": Number(0, 500, step=0.01), "age": Integer(0, 120)})
ORDER = {"country": "DE", "amount": 12.5, "age": 31}


def as_lists(rows: Rows) -> dict[str, list[object]]:
    return {name: column.tolist() for name, column in rows.columns.items()}


def test_one_record() -> None:
    for record in (ORDER, OrderedDict(ORDER), UserDict(ORDER), {"age": "31", "amount": "12.50", "country": "DE"}):
        rows, single = ORDERS.encode(record)
        assert single
        assert rows.count == 1
        assert as_lists(rows) == {"country": ["DE"], "amount": [1250], "age": [31]}
        assert list(rows.columns) == ["country", "amount", "age"]
        assert ORDERS.encode_record(record) == ("DE", 1250, 31)
    assert rows.columns["country"].dtype == object
    assert rows.columns["amount"].dtype == np.int64


@pytest.mark.parametrize(
    "data",
    [
        {"country": ["DE", "FR"], "amount": [12.5, "1"], "age": [31, 4.0]},
        {"country": ("DE", "FR"), "amount": np.array([12.5, 1]), "age": np.array([31, 4], np.int8)},
        {"age": range(31, 3, -27), "amount": [Decimal("12.5"), 1], "country": np.array(["DE", "FR"])},
        [ORDER, {"age": 4, "country": "FR", "amount": 1}],
        (ORDER, UserDict({"age": 4, "country": "FR", "amount": 1})),
    ],
)
def test_columns_and_lists_of_records(data: object) -> None:
    rows, single = ORDERS.encode(data)
    assert not single
    assert (rows.count, rows.missing) == (2, {})
    assert as_lists(rows) == {"country": ["DE", "FR"], "amount": [1250, 100], "age": [31, 4]}


@pytest.mark.parametrize("data", [[], (), {"country": [], "amount": [], "age": []}])
def test_no_rows(data: object) -> None:
    rows, single = ORDERS.encode(data)
    assert not single
    assert rows.count == 0
    assert as_lists(rows) == as_lists(Rows.empty(ORDERS)) == {"country": [], "amount": [], "age": []}
    assert [column.dtype for column in rows.columns.values()] == [object, np.int64, np.int64]


@pytest.mark.parametrize(
    ("data", "message", "place"),
    [
        ({"country": "DE", "amount": 1}, "the fields country, amount, age, got no 'age'", None),
        ({**ORDER, "extra": 1}, "got an unknown field 'extra'", None),
        ({"country": "DE", "amount": 1, "Age": 1}, "got no 'age' and an unknown field 'Age'", None),
        ({}, "got no 'country' and no 'amount' and no 'age'", None),
        ({**ORDER, 5: 1}, "an unknown field 5", None),
        ([ORDER, {"country": "DE", "amount": 1}], "got no 'age'", "row 2"),
        ([ORDER, {**ORDER, "extra": 1}], "unknown field 'extra'", "row 2"),
        ([ORDER, 7], "expected a record, got 7", "row 2"),
        ([ORDER, None], "expected a record, got None", "row 2"),
        (
            {"country": ["DE"], "amount": [1, 2], "age": [1]},
            "equal length, got country with 1, amount with 2, age with 1",
            None,
        ),
        ({"country": ["DE"], "amount": 1, "age": [1]}, "several for country and one for amount", None),
        ({"country": "DE", "amount": [1], "age": 1}, "several for amount and one for country", None),
        ({"country": np.array("DE"), "amount": 1, "age": 1}, "expected text", "country"),
        ({"country": "DE", "amount": {}, "age": 1}, "expected a number, got {}", "amount"),
        ({**ORDER, "amount": None}, "expected a number, got None", "amount"),
        ({**ORDER, "amount": math.nan}, "a finite number, got nan", "amount"),
        ({**ORDER, "amount": True}, "expected a number, got True", "amount"),
        ({**ORDER, "amount": 10**30}, "a number between 0 and 500, got 1000", "amount"),
        ({**ORDER, "country": "\ud800"}, "no lone surrogate", "country"),
        ([ORDER, ORDER, {**ORDER, "amount": 501}], "between 0 and 500, got 501", "amount, row 3"),
        ([ORDER, {**ORDER, "country": 7}], "expected text, got 7", "country, row 2"),
        (7, "a record, a mapping of columns, a list of records or an Arrow table, got 7", None),
        ("x", "expected a record, ", None),
        (None, "expected a record, ", None),
    ],
)
def test_refused(data: object, message: str, place: str | None) -> None:
    with pytest.raises(InputError) as caught:
        ORDERS.encode(data)
    assert message in caught.value.message
    assert caught.value.place == place


def test_records_are_refused_with_their_place() -> None:
    with pytest.raises(InputError, match="got no 'age'"):
        ORDERS.encode_record({"country": "DE", "amount": 1})
    with pytest.raises(InputError, match="got no 'age' and an unknown field 'b'"):
        ORDERS.encode_record({"country": "DE", "amount": 1, "b": 2})
    with pytest.raises(InputError, match=r"- at amount$"):
        ORDERS.encode_record({**ORDER, "amount": "x"})


def as_missing(rows: Rows) -> dict[str, list[bool]]:
    return {name: mask.tolist() for name, mask in rows.missing.items()}


def test_a_missing_value_is_a_mask_over_a_fixed_one() -> None:
    schema = Schema({"a": Integer(0, 9, missing="skip"), "b": Text(missing="skip"), "c": Number(0, 1)})
    data = {"a": [1, None, 3, 4, None], "b": ["p", "q", None, "s", None], "c": [0, 0.1, 0.2, 0.3, 0.4]}
    rows, _ = schema.encode(data)
    assert as_lists(rows) == {"a": [1, 0, 3, 4, 0], "b": ["p", "q", "", "s", ""], "c": [0, 1000, 2000, 3000, 4000]}
    gone = {"a": [False, True, False, False, True], "b": [False, False, True, False, True]}
    assert (rows.count, as_missing(rows)) == (5, gone)
    assert as_missing(rows.take([3, 2])) == {"a": [False, False], "b": [False, True]}
    records = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    again, _ = schema.encode(records)
    assert (as_lists(again), as_missing(again)) == (as_lists(rows), gone)
    tuples = [schema.encode_record(record) for record in records]
    assert tuples == [(1, "p", 0), (None, "q", 1000), (3, None, 2000), (4, "s", 3000), (None, None, 4000)]
    again = Rows.concatenate([Rows.from_tuples(schema, tuples[:1]), Rows.from_tuples(schema, tuples[1:])])
    assert (as_lists(again), as_missing(again)) == (as_lists(rows), gone)
    rows, single = schema.encode(records[1])
    assert single
    assert (as_lists(rows), as_missing(rows)) == ({"a": [0], "b": ["q"], "c": [1000]}, {"a": [True]})


def test_a_record_may_leave_out_a_field_that_may_be_missing() -> None:
    schema = Schema({"a": Integer(0, 9, missing="skip"), "b": Text(missing="skip"), "c": Number(0, 1)})
    for record in ({"c": 0.1, "b": "q"}, {"c": 0.1, "b": "q", "a": None}):
        assert schema.encode_record(record) == (None, "q", 1000)
        for data in (record, [record]):
            assert as_missing(schema.encode(data)[0]) == {"a": [True]}
    with pytest.raises(InputError, match=r"expected the fields a, b, c, got no 'c'"):
        schema.encode_record({"a": 1, "b": "x"})
    with pytest.raises(InputError, match=r"got no 'a' and an unknown field 'A' - at row 2"):
        schema.encode([{"a": 1, "b": "x", "c": 0}, {"A": 1, "b": "x", "c": 0}])
    # a whole column that is not there is rather a mistake
    with pytest.raises(InputError, match=r"got no 'a'$"):
        schema.encode({"b": ["x", "y"], "c": [0, 1]})
    nothing = Schema({"a": Integer(0, 9, missing="skip"), "p": Vector(2, radius=1, step=0.1, missing="skip")})
    rows, single = nothing.encode({})
    assert single
    assert as_missing(rows) == {"a": [True], "p": [True]}


def test_columns_of_few_words_may_have_missing_ones() -> None:
    schema = Schema({"t": Text(missing="skip"), "n": Number(0, 9, step=1, missing="skip")})
    words = Coded(["p", None, "q"], np.array([0, 1, 1, 2])), Coded([math.nan, 3.0], np.array([1, 0, 1, 0]))
    rows, _ = schema.encode(dict(zip("tn", words, strict=True)))
    assert as_lists(rows) == {"t": ["p", "", "", "q"], "n": [3, 0, 3, 0]}
    assert as_missing(rows) == {"t": [False, True, True, False], "n": [False, True, False, True]}


def test_a_record_with_a_missing_value_is_still_checked() -> None:
    schema = Schema({"a": Integer(0, 9, missing="skip"), "b": Text()})
    for data in ({"a": None, "b": 7}, {"a": [None], "b": [7]}, [{"a": None, "b": 7}]):
        with pytest.raises(InputError, match="expected text, got 7 - at b"):
            schema.encode(data)
    with pytest.raises(InputError, match="expected text, got 7 - at b"):
        schema.encode_record({"a": None, "b": 7})


def test_vectors_among_other_fields() -> None:
    schema = Schema({"p": Vector(2, radius=1, step=0.1), "n": Integer(0, 9)})
    rows, single = schema.encode({"p": [0.1, 0.2], "n": 3})
    assert single
    assert as_lists(rows) == {"p": [[1, 2]], "n": [3]}
    rows, single = schema.encode({"p": np.array([[0.1, 0.2]] * 3), "n": [3, 4, 5]})
    assert not single
    assert rows.columns["p"].shape == (3, 2)
    with pytest.raises(InputError, match="equal length, got p with 2, n with 1"):
        schema.encode({"p": [0.1, 0.2], "n": [3]})
    with pytest.raises(InputError, match="coordinate 1"):
        schema.encode({"p": [[0.1, 0.2], [0.1, 0.2]], "n": 3})
    assert Rows.empty(schema).columns["p"].shape == (0, 2)


@pytest.mark.parametrize(
    ("data", "single", "count"),
    [
        ({"p": [0.1, 0.2]}, True, 1),
        ({"p": (0.1, "0.2")}, True, 1),
        ({"p": np.array([0.1, 0.2])}, True, 1),
        ({"p": [[0.1, 0.2]]}, False, 1),
        ({"p": [[0.1, 0.2], (0.1, 0.2)]}, False, 2),
        ({"p": [np.array([0.1, 0.2])] * 2}, False, 2),
        ({"p": np.full((5, 2), 0.1)}, False, 5),
        ({"p": []}, False, 0),
        ({"p": np.empty(0)}, False, 0),
        ({"p": np.array([0.1, "0.2"], object)}, True, 1),
        ({"p": None}, True, 1),
        ({}, True, 1),
        ({"p": [None, [0.1, 0.2]]}, False, 2),
        ([{"p": [0.1, 0.2]}], False, 1),
    ],
)
def test_only_vectors(data: object, single: bool, count: int) -> None:
    schema = Schema({"p": Vector(2, radius=1, step=0.1, missing="skip")})
    rows, was_single = schema.encode(data)
    assert was_single is single
    assert rows.count == count
    assert rows.columns["p"].shape == (count, 2)


def test_vectors_of_one_dimension_stay_tables() -> None:
    schema = Schema({"p": Vector(1, radius=1, step=0.1)})
    for data in ({"p": [0.1]}, {"p": [[0.1]]}):
        assert schema.encode(data)[0].columns["p"].tolist() == [[1]]
    assert Rows.empty(schema).columns["p"].shape == (0, 1)


def test_rows() -> None:
    schema = Schema({"t": Text(), "p": Vector(2, radius=9, step=1)})
    rows = Rows.from_tuples(schema, [("a", (1, 2)), ("b", (3, 4)), ("c", (5, 6))])
    assert as_lists(rows.take([2, 0])) == {"t": ["c", "a"], "p": [[5, 6], [1, 2]]}
    assert rows.take([2, 0]).count == 2
    assert as_lists(rows.take(np.array([True, False, True]))) == {"t": ["a", "c"], "p": [[1, 2], [5, 6]]}
    assert rows.take(np.array([True, False, True])).count == 2
    assert rows.take([]).columns["p"].shape == (0, 2)
    both = Rows.concatenate([rows, Rows.empty(schema), rows.take([1])])
    assert both.count == 4
    assert as_lists(both)["t"] == ["a", "b", "c", "b"]
    assert [column.dtype for column in both.columns.values()] == [object, np.int64]
    assert Rows.from_tuples(schema, []).count == 0
    with pytest.raises(InputError, match="at least one"):
        Rows.concatenate([])
    with pytest.raises(AttributeError):
        rows.count = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields", [{}, None, [], {"": Text()}, {5: Text()}, {"a": "text"}, {"a": Text}, {"\ud800": Text()}]
)
def test_bad_schemas(fields: object) -> None:
    with pytest.raises(InputError, match=r"expected .* - at schema"):
        Schema(fields)  # type: ignore[arg-type]


def test_equality_is_by_declaration_and_order() -> None:
    a, b = {"x": Text(), "y": Number(0, 1)}, {"y": Number(0, 1, step="0.0001"), "x": Text()}
    assert Schema(a) == Schema(dict(a))
    assert hash(Schema(a)) == hash(Schema(dict(a)))
    assert Schema(a) != Schema(b)
    assert Schema(a) != Schema({**a, "x": Text(missing="skip")})
    assert repr(Schema(a)) == "Schema({'x': Text(), 'y': Number(0, 1, step=0.0001)})"


MIXED = Schema(
    {
        "n": Number(-5, 5, step=0.01, missing="skip"),
        "i": Integer(-5, 5),
        "c": Category(["a", "b", 3]),
        "b": Boolean(),
        "d": Date("2020-01-01", "2020-12-31"),
        "t": Text(),
        "v": Vector(2, radius=2, step=0.01),
    }
)
GOOD = st.fixed_dictionaries(
    {
        "n": st.one_of(st.floats(-5, 5), st.decimals(-5, 5, places=3), st.none(), st.just("0.155")),
        "i": st.integers(-5, 5),
        "c": st.sampled_from(["a", "b", 3, "3"]),
        "b": st.booleans(),
        "d": st.dates(date(2020, 1, 1), date(2020, 12, 31)),
        "t": st.text(st.characters(exclude_categories=["Cs"])),
        "v": st.lists(st.floats(-1, 1), min_size=2, max_size=2),
    }
)
BAD = {
    "n": [6, "x", True],
    "i": [2.5, None],
    "c": ["z"],
    "b": [2],
    "d": ["2021-01-01"],
    "t": ["\udc00"],
    "v": [[9, 9], [1]],
}


@given(st.lists(GOOD, max_size=6))
def test_all_ways_in_agree(records: list[dict[str, object]]) -> None:
    tuples = [MIXED.encode_record(record) for record in records]
    expected = Rows.from_tuples(MIXED, tuples)
    by_record, _ = MIXED.encode(records)
    by_column, _ = MIXED.encode({name: [record[name] for record in records] for name in MIXED.fields})
    one_by_one = Rows.concatenate([Rows.empty(MIXED), *(MIXED.encode(record)[0] for record in records)])
    for rows in (by_record, by_column, one_by_one):
        assert rows.count == expected.count
        assert as_lists(rows) == as_lists(expected)
        assert as_missing(rows) == as_missing(expected)
        assert [column.dtype for column in rows.columns.values()] == [
            column.dtype for column in expected.columns.values()
        ]
    assert as_missing(by_record).get("n", []).count(True) == sum(values[0] is None for values in tuples)


@given(
    st.lists(GOOD, min_size=1, max_size=5),
    st.sampled_from([(name, bad) for name, bads in BAD.items() for bad in bads]),
    st.randoms(),
)
def test_all_ways_in_refuse(records: list[dict[str, object]], fault: tuple[str, object], chance: random.Random) -> None:
    name, bad = fault
    row = chance.randrange(len(records))
    records[row] = {**records[row], name: bad}
    for data in (records, {field: [record[field] for record in records] for field in MIXED.fields}):
        with pytest.raises(InputError) as caught:
            MIXED.encode(data)
        assert str(caught.value.place).startswith(f"{name}, row {row + 1}")
    for refuse in (MIXED.encode_record, MIXED.encode):
        with pytest.raises(InputError) as caught:
            refuse(records[row])
        assert str(caught.value.place).startswith(name)
