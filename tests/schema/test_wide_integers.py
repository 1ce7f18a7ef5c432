"""Whole numbers of 64 bits: both ends, what lies beyond them, and every way in."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import retroact as ra
from retroact.errors import InputError
from retroact.schema import Date, Field, Integer, Number, Timestamp

LOW, HIGH = -(2**63), 2**63 - 1
WIDE = Integer(LOW, HIGH)
CLIPPED = Integer(LOW, HIGH, clip=True)
# the ends are bounds of one side only, or of neither
FIELDS = [
    *(WIDE, CLIPPED, Integer(LOW, 0), Integer(0, HIGH, clip=True), Integer(LOW + 1, HIGH - 1), Integer(HIGH, HIGH)),
    *(Integer(LOW, LOW, clip=True), Integer(2**53, 2**62), Integer(-5, 2**53 - 1, clip=True), Integer(-5, 5)),
]
NEAR = [
    *(sign * 2**power + offset for sign in (1, -1) for power in (53, 62, 63, 64, 70) for offset in (-1025, -2, -1)),
    *(sign * 2**power + offset for sign in (1, -1) for power in (53, 62, 63, 64, 70) for offset in (0, 1, 2, 1025)),
]
WHOLE = st.one_of(
    st.integers(LOW - 5, HIGH + 5),
    st.integers(-(2**70), 2**70),
    st.sampled_from([*NEAR, 0, 5, -5]),
    st.integers(-9, 9),
)
FLOATS = st.one_of(
    st.floats(),
    st.sampled_from([2.0**53, 2.0**62, 2.0**63, 2.0**64, 1e300, 0.5]).flatmap(
        lambda v: st.sampled_from([v, -v, math.nextafter(v, 0), -math.nextafter(v, 0), math.nextafter(v, math.inf)])
    ),
    st.integers(-(2**65), 2**65).map(float),
)


def alone(field: Integer, values: list) -> list[int | None]:
    """Each by itself, None where it is refused."""

    def one(value: object) -> int | None:
        try:
            return field.encode(value, "x")
        except InputError:
            return None

    return [one(value) for value in values]


def check(field: Integer, column: object, values: list) -> None:
    """The column becomes what its values become, or is refused if one of them is."""
    expected = alone(field, values)
    if None in expected:
        with pytest.raises(InputError) as caught:
            field.encode_column(column, "x")
        refused = [f"x, row {row + 1}" for row, k in enumerate(expected) if k is None]
        assert caught.value.place in refused
    else:
        encoded, keep = field.encode_column(column, "x")
        assert keep is None
        assert encoded.dtype == np.int64
        assert encoded.tolist() == expected
        assert [field.decode(k) for k in encoded] == expected


def exact(field: Integer, value: int) -> int | None:
    """The definition."""
    if field.lower <= value <= field.upper:
        return value
    return min(max(value, field.lower), field.upper) if field.clip else None


@pytest.mark.parametrize("field", FIELDS, ids=repr)
@given(values=st.lists(WHOLE, min_size=1, max_size=6))
@example(values=[LOW, HIGH])
@example(values=[LOW - 1])
@example(values=[HIGH + 1])
def test_integers_of_any_size(field: Integer, values: list[int]) -> None:
    expected = [exact(field, value) for value in values]
    texts, decimals = list(map(str, values)), list(map(Decimal, values))
    for given_ in (values, texts, [f"{text}.00" for text in texts], decimals):
        assert alone(field, given_) == expected
        check(field, given_, given_)
        check(field, np.array(given_, object), given_)
    check(field, np.array(texts), texts)
    for dtype in (np.int64, np.uint64):
        info = np.iinfo(dtype)
        fitting = [value for value in values if info.min <= value <= info.max]
        check(field, np.array(fitting, dtype), fitting)
        check(field, list(np.array(fitting, dtype)), fitting)


@pytest.mark.parametrize("field", FIELDS, ids=repr)
@given(values=st.lists(FLOATS, min_size=1, max_size=6))
@example(values=[2.0**63])
@example(values=[-(2.0**63)])
@example(values=[math.nextafter(2.0**63, 0), -(2.0**63)])
@example(values=[math.inf])
def test_floats_are_what_they_are(field: Integer, values: list[float]) -> None:
    expected = [exact(field, int(v)) if math.isfinite(v) and v == int(v) else None for v in values]
    assert alone(field, values) == expected
    assert alone(field, list(map(np.float64, values))) == expected
    check(field, values, values)
    check(field, np.array(values), values)
    check(field, np.array(values, object), values)
    check(field, np.array(values, np.longdouble), values)


@pytest.mark.parametrize("field", FIELDS, ids=repr)
@given(values=st.lists(st.floats(width=32), min_size=1, max_size=6))
@example(values=[2.0**53, 2.0**63, -(2.0**63), 2.0**100])
def test_narrow_floats_in_columns_and_alone(field: Integer, values: list[float]) -> None:
    for dtype in (np.float32, np.float16):
        with np.errstate(over="ignore"):
            column = np.array(values, np.float64).astype(dtype)
        check(field, column, list(column))
        check(field, list(column), list(column))


@given(st.lists(st.one_of(WHOLE, FLOATS, WHOLE.map(str), WHOLE.map(Decimal), st.none()), max_size=6))
def test_mixed_columns(values: list) -> None:
    check(WIDE, values, values)
    check(CLIPPED, values, values)
    present = [value for value in values if not WIDE.is_missing(value)]
    if None not in alone(CLIPPED, present):
        encoded, missing = Integer(LOW, HIGH, clip=True, missing="skip").encode_column(values, "x")
        assert (missing is None) == (len(present) == len(values))
        gone = np.zeros(len(values), bool) if missing is None else missing
        assert encoded[~gone].tolist() == alone(CLIPPED, present)
        assert set(encoded[gone].tolist()) <= {LOW}


def test_floats_of_more_than_64_bits() -> None:
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("long doubles are doubles here")
    large = np.longdouble(2) ** 53
    values = [large + 1, large * 1024 - 1, -large * 1024, large * 1024, np.longdouble("1e4000")]
    assert alone(WIDE, values) == [2**53 + 1, HIGH, LOW, None, None]
    check(WIDE, np.array(values[:3]), values[:3])
    check(CLIPPED, np.array(values[:4]), values[:4])
    with pytest.raises(InputError, match="expected a whole number"):
        WIDE.encode(large + np.longdouble(0.5), "x")


def test_messages_are_the_same_alone_and_in_columns() -> None:
    for column in ([0, 2**63], np.array([0, 2**63], np.uint64), np.array([0, 2.0**63]), [0, str(2**63)]):
        with pytest.raises(InputError, match=f"expected a whole number between {LOW} and {HIGH}, got .* - at x, row 2"):
            WIDE.encode_column(column, "x")
    with pytest.raises(InputError, match=f"between {LOW} and {HIGH}, got {LOW - 1} - at x$"):
        WIDE.encode(LOW - 1, "x")
    for bad in (math.inf, -math.inf, math.nan):
        for field in (WIDE, CLIPPED):
            with pytest.raises(InputError, match="expected a finite number, got"):
                field.encode_column(np.array([bad]), "x")


def test_declarations() -> None:
    assert (WIDE.lower, WIDE.upper) == (LOW, HIGH)
    assert Integer(-(2.0**63), 2.0**62).lower == LOW
    assert Integer(str(LOW), Decimal(HIGH)) == WIDE == Field.from_spec(json.loads(json.dumps(WIDE.spec())), "x")
    assert WIDE.spec()["upper"] == "9223372036854775807"
    assert eval(repr(WIDE)) == WIDE
    assert type(WIDE.decode(np.int64(HIGH))) is int
    for bounds, place in (((LOW - 1, 0), "lower"), ((0, HIGH + 1), "upper"), ((0, 2.0**63), "upper")):
        with pytest.raises(InputError, match=rf"a bound from -2\^63 to 2\^63 - 1 steps of 1, got .* - at {place}"):
            Integer(*bounds)
    for make in (lambda: Number(0, 2**53, step=1), lambda: Number(-(2**53), 0, step=1)):
        with pytest.raises(InputError, match="fewer than 2\\^53 steps of 1"):
            make()
    assert Number(1 - 2**53, 2**53 - 1, step=1).upper == 2**53 - 1
    with pytest.raises(InputError, match="fewer than 2\\^53 steps"):
        Timestamp("0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", step=1e-6)
    assert Date.farthest == Number.farthest == Timestamp.farthest == (1 - 2**53, 2**53 - 1)


def stream(statistics: dict, field: Integer = WIDE) -> ra.Stream:
    return ra.Stream({"n": field}, statistics, epsilon=1000, horizon=4, key=ra.Key.for_testing(1))


def test_conditions() -> None:
    conditions = {
        "all": {},
        "low": {"n": LOW},
        "high": {"n": [HIGH, str(HIGH - 1)]},
        "upper half": {"n": {"min": 0}},
        "all but one": {"n": {"min": LOW + 1}},
        "middle": {"n": {"min": LOW + 1, "max": HIGH - 1}},
        "near": {"n": {"min": HIGH - 1, "max": HIGH}},
        "numpy": {"n": {"max": np.int64(LOW)}},
    }
    one = stream({name: ra.Count(where=where) for name, where in conditions.items()})
    one.add({"n": [LOW, LOW + 1, -1, 0, HIGH - 1, HIGH, HIGH]})
    one.add({"n": HIGH})
    found = one.close_round()
    assert [round(found[name].value) for name in conditions] == [8, 1, 4, 5, 7, 4, 4, 1]
    again = ra.Stream.from_state(one.specification, one.state(), key=ra.Key.for_testing(1))
    for each in (one, again):
        each.delete({"n": [HIGH, HIGH]}, stamp=1)
    second = one.close_round()
    assert round(second["high"].value) == 2
    assert second.encode() == again.close_round().encode()
    with pytest.raises(InputError, match="between"):
        stream({"n": ra.Count(where={"n": {"max": HIGH + 1}})})


@pytest.mark.parametrize("kind", [ra.Sum, ra.Mean, ra.Variance])
@pytest.mark.parametrize("field", [WIDE, Integer(LOW, LOW + 2**40), Integer(0, HIGH), Integer(0, 2**53)], ids=repr)
def test_totals_that_would_leave_64_bits_are_refused(kind: type, field: Integer) -> None:
    for statistic in (kind("n"), kind("n", where={"n": field.upper})):
        with pytest.raises(InputError, match=r"totals would leave 64-bit integers|bounds below 2"):
            stream({"s": statistic}, field)


@pytest.mark.parametrize("bounds", [(HIGH - 99, HIGH), (LOW, LOW + 100), (2**62 - 5, 2**62 + 5)])
@pytest.mark.parametrize("kind", [ra.Mean, ra.Variance])
def test_narrow_fields_far_from_zero_are_refused_or_right(kind: type, bounds: tuple[int, int]) -> None:
    try:
        one = stream({"s": kind("n")}, Integer(*bounds))
    except InputError:
        return
    one.add({"n": list(bounds) * 1000})
    middle, spread = sum(bounds) / 2, ((bounds[1] - bounds[0]) / 2) ** 2
    assert one.close_round()["s"].value == pytest.approx(middle if kind is ra.Mean else spread, rel=0.01)
