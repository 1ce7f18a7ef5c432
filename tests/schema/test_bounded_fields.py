"""Number, Integer, Date and Timestamp: bounds, clipping, missing values and declarations."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.schema import Date, Field, Integer, Number, Timestamp

AMOUNT = Number(0, 500, step=0.01)
AGE = Integer(0, 120)
DAY = Date("2020-01-01", date(2029, 12, 31))
MOMENT = Timestamp("2020-01-01T00:00:00Z", "2029-12-31T00:00:00Z")
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ((0, 500), "0.01"),
        ((0, 1), "0.0001"),
        ((0, 10000), "1"),
        ((0, 9999), "0.1"),
        ((-1, 1), "0.0001"),
        ((0, 1e9), "100000"),
    ],
)
def test_default_step(bounds: tuple[float, float], step: str) -> None:
    assert Number(*bounds).spec()["step"] == step


def test_attributes() -> None:
    assert (AMOUNT.width, AMOUNT.interned, AMOUNT.lower, AMOUNT.upper, AMOUNT.step) == (
        1,
        False,
        0,
        50000,
        Fraction(1, 100),
    )
    assert (AGE.lower, AGE.upper, AGE.step) == (0, 120, 1)
    assert Number("-0.5", Decimal("0.5"), step=0.125).lower == -4
    assert AMOUNT.decode(1250) == 12.5
    assert AGE.decode(3) == 3
    assert type(AGE.decode(np.int64(3))) is int
    assert DAY.decode(0) == date(1970, 1, 1)
    assert MOMENT.decode(0) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Number(0, 0.015, step=0.01), "expected a multiple of the step 0.01, got 0.015 - at upper"),
        (lambda: Number(5, 0, step=1), "expected lower to be at most upper, got 5 and 0"),
        (lambda: Number(5, 0), "lower to be below upper"),
        (lambda: Number(5, 5), "lower to be below upper when no step is given"),
        (lambda: Number(0, math.inf), "finite number, got inf - at upper"),
        (lambda: Number(math.nan, 1), "finite number, got nan - at lower"),
        (lambda: Number(0, 1, step=0), "a step above 0, got 0 - at step"),
        (lambda: Number(0, 1, step=-0.1), "a step above 0, got -0.1 - at step"),
        (lambda: Number(0, True), "expected a number, got True - at upper"),
        (lambda: Number(0, 1, step=Fraction(1, 3)), "a number with a short decimal text, got .* - at step"),
        (lambda: Number(0, 2**53, step=1), "fewer than 2\\^53 steps of 1, got 9007199254740992 - at upper"),
        (lambda: Number(0, 1e30, step=0.01), "fewer than 2\\^53 steps"),
        (lambda: Integer(0, 10**5000), "short decimal text, got an integer of 16610 bits - at upper"),
        (lambda: Integer(0.5, 3), "expected a multiple of the step 1, got 0.5 - at lower"),
        (lambda: Integer(3, 1), "lower to be at most upper"),
        (lambda: Number(0, 1, clip=1), "true or false, got 1 - at clip"),  # type: ignore[arg-type]
        (lambda: Number(0, 1, missing="drop"), "'error' or 'skip', got 'drop' - at missing"),  # type: ignore[arg-type]
        (lambda: Date("2020-01-01", "2019-01-01"), "at most upper, got 2020-01-01 and 2019-01-01"),
        (lambda: Date("2020-13-01", "2021-01-01"), "a date such as 2020-12-31, got '2020-13-01' - at lower"),
        (lambda: Date(np.datetime64("-20000-01-01"), "2020-01-01"), "years 1 to 9999, got .* - at lower"),
        (lambda: Timestamp("2020-01-01T00:00:00", "2021-01-01T00:00:00Z"), "an offset from UTC.* - at lower"),
        (
            lambda: Timestamp("2020-01-01T00:00:01Z", "2021-01-01T00:00:00Z", step=60),
            "a multiple of the step 60, got 2020",
        ),
        (lambda: Timestamp("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", step=1e-7), "whole number of microseconds"),
        (lambda: Timestamp("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", step=0), "whole number of microseconds"),
        (lambda: Timestamp("0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", step=1e-6), "fewer than 2\\^53 steps"),
        (lambda: Timestamp("2020-01-01T00:00:00Z", np.datetime64("300000-01-01")), "years 1 to 9999"),
    ],
)
def test_bad_declarations(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


CASES: list[tuple[Field, list[object]]] = [
    (
        AMOUNT,
        [-1, 500.01, 1e30, -1e30, 10**30, 2**64, "1e100", math.nan, math.inf, -math.inf, None, True, "x", [1], b"1"],
    ),
    (AGE, [-1, 121, 2.5, "2.5", 1e30, 10**30, -(2**63), math.nan, math.inf, None, False, "", np.float32(0.5)]),
    (DAY, ["2019-12-31", "2030-01-01", "x", datetime(2020, 1, 1), None, 18262, True, math.nan, np.datetime64("NaT")]),
    (DAY, [np.datetime64("2020-01-01T12:00"), date(1, 1, 1), np.datetime64("20000-01-01")]),
    (
        MOMENT,
        ["2019-12-31T23:59:59Z", "2020-01-02", "2020-01-02T00:00:00", datetime(2020, 1, 2), date(2020, 1, 2), None],
    ),
    (MOMENT, [1577836800, True, "2020-02-30T00:00:00Z", "2020-01-01T25:00:00Z", np.datetime64("NaT"), math.nan, "x"]),
]
PLAIN = {AMOUNT: 1.5, AGE: 3, DAY: "2020-01-02", MOMENT: "2020-01-02T00:00:00Z"}


@pytest.mark.parametrize(("field", "bad"), [(field, bad) for field, bads in CASES for bad in bads], ids=repr)
def test_refused_alone_and_in_columns(field: Field, bad: object) -> None:
    with pytest.raises(InputError, match=r"expected .*, got .* - at it$") as alone:
        field.encode(bad, "it")
    columns: list[object] = [[PLAIN[field], PLAIN[field], bad]]
    if isinstance(bad, float | np.floating) and isinstance(field, Number | Integer):
        columns.append(np.array([1, 1, bad], np.result_type(bad)))
    if (
        isinstance(bad, int)
        and not isinstance(bad, bool)
        and -(2**63) <= bad < 2**63
        and not isinstance(field, Date | Timestamp)
    ):
        columns.append(np.array([1, 1, bad]))
    if isinstance(bad, np.datetime64):
        columns.append(np.array([np.datetime64("2020-01-02", "s"), np.datetime64("2020-01-02", "s"), bad]))
    if isinstance(bad, str):
        columns.append(np.array([PLAIN[field], PLAIN[field], bad]).astype(str))
    for column in columns:
        with pytest.raises(InputError) as among:
            field.encode_column(column, "it")
        assert among.value.place == "it, row 3"
        assert among.value.message.split(", got")[0] == alone.value.message.split(", got")[0]


def test_bool_columns_are_not_numbers() -> None:
    for field in (AMOUNT, AGE):
        with pytest.raises(InputError, match="got True - at it, row 1"):
            field.encode_column(np.array([True, False]), "it")


def test_bounds_are_named() -> None:
    with pytest.raises(InputError, match=r"expected a number between 0 and 500, got 600\.0 - at amount, row 2"):
        AMOUNT.encode_column(np.array([1.0, 600.0]), "amount")
    with pytest.raises(InputError, match="a timestamp between 2020-01-01T00:00:00Z and 2029-12-31T00:00:00Z"):
        MOMENT.encode("2031-01-01T00:00:00Z", "t")


def test_membership_is_decided_on_the_lattice() -> None:
    assert AMOUNT.encode(500.004, "x") == 50000
    assert AMOUNT.encode(500.005, "x") == 50000
    with pytest.raises(InputError):
        AMOUNT.encode(500.006, "x")


def test_clip() -> None:
    amount = Number(0, 500, step=0.01, clip=True)
    values = [1e30, -1e30, 10**30, "-1e50", 2**64, 12.5]
    expected = [50000, 0, 50000, 0, 50000, 1250]
    assert [amount.encode(value, "x") for value in values] == expected
    assert amount.encode_column(values, "x")[0].tolist() == expected
    assert amount.encode_column(np.array([1e30, -1e300, 1.0]), "x")[0].tolist() == [50000, 0, 100]
    age = Integer(0, 120, clip=True)
    assert age.encode_column([10**30, -(10**30), "7"], "x")[0].tolist() == [120, 0, 7]
    assert age.encode_column(np.array([2**64 - 1], np.uint64), "x")[0].tolist() == [120]
    assert age.encode_column(np.array([-(2**63)]), "x")[0].tolist() == [0]
    for field in (amount, age):
        for bad in (math.inf, -math.inf, math.nan):
            with pytest.raises(InputError, match=r"finite|whole"):
                field.encode(bad, "x")
            with pytest.raises(InputError, match="row 1"):
                field.encode_column(np.array([bad]), "x")
    assert Date("2020-01-01", "2020-12-31", clip=True).encode("1999-01-01", "x") == DAY.lower


def test_values_may_be_missing_on_request_only() -> None:
    amount = Number(0, 500, step=0.01, missing="skip")
    for column in (
        [1.5, None, math.nan, 2],
        np.array([1.5, math.nan, math.nan, 2]),
        np.array([1.5, None, np.nan, 2], object),
    ):
        encoded, missing = amount.encode_column(column, "x")
        assert encoded.tolist() == [150, 0, 0, 200]
        assert missing is not None
        assert missing.tolist() == [False, True, True, False]
        with pytest.raises(InputError, match="row 2"):
            AMOUNT.encode_column(column, "x")
    assert amount.encode_column([1.5], "x")[1] is None
    with pytest.raises(InputError, match="x, row 3"):
        amount.encode_column([None, 1.5, 600], "x")
    with pytest.raises(InputError, match="got inf - at x, row 3"):
        amount.encode_column([None, 1.5, math.inf], "x")
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    assert amount.encode_column(masked, "x")[0].tolist() == [100, 0, 300]
    moment = Timestamp("2020-01-01T00:00:00Z", "2029-12-31T00:00:00Z", missing="skip")
    encoded, missing = moment.encode_column(np.array(["NaT", "2020-01-02"], "M8[ns]"), "x")
    assert missing is not None
    assert (encoded.tolist(), missing.tolist()) == ([MOMENT.lower, MOMENT.lower + 86400], [True, False])
    # no number at all is still refused where none is missing
    with pytest.raises(InputError):
        amount.encode(None, "x")


@pytest.mark.parametrize("column", [3, "12", b"12", {1: 2}, {1}, np.array(1.0), iter([1])])
def test_what_is_not_a_column(column: object) -> None:
    with pytest.raises(InputError, match="expected a column, got"):
        AMOUNT.encode_column(column, "x")


def test_tables_are_not_columns_of_numbers() -> None:
    for field in (AMOUNT, AGE, DAY, Number(0, 500, missing="skip")):
        for table in (np.ones((2, 3)), np.array([[1.0, np.nan], [2.0, 3.0]]), np.ones((2, 3), object)):
            with pytest.raises(InputError, match=r"expected one value, got .* - at x, row 1"):
                field.encode_column(table, "x")


@pytest.mark.parametrize("field", [AMOUNT, AGE, DAY, MOMENT], ids=repr)
def test_empty_columns(field: Field) -> None:
    for column in ([], (), np.empty(0), np.empty(0, object)):
        encoded, keep = field.encode_column(column, "x")
        assert encoded.shape == (0,)
        assert encoded.dtype == np.int64
        assert keep is None


def test_the_input_is_never_changed_nor_shared() -> None:
    column = np.array([3, 130, 5])
    encoded, _ = Integer(0, 120, clip=True).encode_column(column, "x")
    encoded[:] = 0
    plain, _ = AGE.encode_column(column[:1], "x")
    plain[:] = 0
    assert column.tolist() == [3, 130, 5]


@given(st.lists(st.one_of(st.floats(0, 120), st.integers(0, 120), st.integers(0, 120).map(float)), min_size=1))
def test_whole_numbers_in_columns_and_alone(values: list[float]) -> None:
    def alone(value: float) -> int | None:
        try:
            return AGE.encode(value, "x")
        except InputError:
            return None

    expected = [alone(value) for value in values]
    for column in (values, np.array(values, np.float64), np.array(values, object)):
        if None in expected:
            with pytest.raises(InputError) as caught:
                AGE.encode_column(column, "x")
            assert caught.value.place == f"x, row {expected.index(None) + 1}"
        else:
            assert AGE.encode_column(column, "x")[0].tolist() == expected


def test_float32_whole_numbers_mean_their_text() -> None:
    wide = Integer(0, 10**9)
    value = np.float32(123456789)
    assert str(value) == "1.2345679e+08"
    assert wide.encode(value, "x") == 123456790
    assert wide.encode_column(np.array([value]), "x")[0].tolist() == [123456790]


def test_dates() -> None:
    assert DAY.encode("2020-01-02", "x") == DAY.encode(date(2020, 1, 2), "x") == 18263
    assert DAY.encode(np.datetime64("2020-01-02"), "x") == 18263
    column = np.array(["2020-01-01", "2029-12-31"], "M8[ns]")
    assert DAY.encode_column(column, "x")[0].tolist() == [DAY.lower, DAY.upper]
    assert DAY.encode_column(["2020-01-01", date(2029, 12, 31)], "x")[0].tolist() == [DAY.lower, DAY.upper]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2020-01-01T00:00:00.5Z", 1577836800),
        ("2020-01-01T00:00:01.5Z", 1577836802),
        ("2020-01-01T00:00:00.5000001Z", 1577836801),
        ("2020-01-01T00:00:00.500000000000000001z", 1577836801),
        ("2020-01-01 01:00+01:00", 1577836800),
        ("2020-01-01T01:00:00+0100", 1577836800),
        (datetime(2020, 1, 1, 1, tzinfo=BERLIN), 1577836800),
        (datetime(2020, 1, 1, 0, 0, 0, 500001, tzinfo=UTC), 1577836801),
        (datetime(2020, 7, 1, 2, tzinfo=timezone(timedelta(hours=2))), 1593561600),
        (datetime(2025, 10, 26, 2, 30, tzinfo=BERLIN, fold=0), 1761438600),
        (datetime(2025, 10, 26, 2, 30, tzinfo=BERLIN, fold=1), 1761442200),
        (np.datetime64("2020-01-01T00:00:00.500000001", "ns"), 1577836801),
        (np.datetime64("2020-01-01T00:00:01.500", "ms"), 1577836802),
        (np.datetime64("2021", "Y"), 1609459200),
        (np.datetime64(1577836800 // 25 + 1, "25s"), 1577836825),
    ],
)
def test_moments(value: object, expected: int) -> None:
    assert MOMENT.encode(value, "x") == expected
    assert MOMENT.encode_column([value], "x")[0].tolist() == [expected]
    if isinstance(value, np.datetime64):
        assert MOMENT.encode_column(np.array([value]), "x")[0].tolist() == [expected]


def test_nanoseconds_of_datetime_subclasses_count() -> None:
    class Precise(datetime):
        nanosecond = 1

    assert MOMENT.encode(Precise(2020, 1, 1, 0, 0, 0, 500000, tzinfo=UTC), "x") == 1577836801


def test_fine_steps_of_time() -> None:
    moment = Timestamp("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", step="0.000001")
    k = moment.encode("2020-01-01T00:00:00.1234565Z", "x")
    assert k == 1577836800123456
    assert moment.decode(k) == datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    column = np.array(["2020-01-01T00:00:00.123457500"], "M8[ns]")
    assert moment.encode_column(column, "x")[0].tolist() == [1577836800123458]


@given(st.floats(0, 500))
def test_decoding_is_within_half_a_step(value: float) -> None:
    assert abs(Fraction(AMOUNT.decode(AMOUNT.encode(value, "x"))) - Fraction(value)) <= Fraction(1, 200) + Fraction(
        1, 10**12
    )
