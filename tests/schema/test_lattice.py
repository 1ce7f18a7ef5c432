"""Every value goes to the nearest lattice point exactly, and columns go where their elements would go alone."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.messages import decimal_text
from retroact.schema.lattice import column_to_lattice, saturated, shortcut_scale, to_lattice

CENT = Fraction(1, 100)
STEPS = [
    CENT,
    Fraction(1),
    Fraction(1, 8),
    Fraction(1, 10**9),
    Fraction(5),
    Fraction(3, 1000),
    Fraction(7, 3),
    Fraction(10**6),
    Fraction(10**14),
    Fraction(123457, 10**6),
    Fraction(1, 10**20),
    Fraction(1, 10**22),
    Fraction(1, 10**40),
    Fraction(1, 2**1030),
    Fraction(2**1030),
]
ADVERSARIAL = [
    *(0.0, -0.0, 0.155, 0.165, -0.155, 0.005, 0.015, 2.675, 1.005, 0.5, 1.5, 2.5, -2.5, 12.5, 1e22, 1e23, -1e22, 1e30),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1.7976931348623157e308, 2.0**49 + 0.5, 2.0**52 + 0.5, 2.0**53),
    *(
        9007199254740993.0,
        4503599627370497.5,
        0.1 + 0.2,
        1 / 3,
        2 / 3,
        123456789.125,
        99999999999999.995,
        0.49999999999,
    ),
    *(math.nextafter(0.155, 1), math.nextafter(0.155, 0), math.nextafter(2.5, 3), math.nextafter(2.5, 2)),
    *(math.nextafter(0.5, 0), math.nextafter(0.5, 1), 1e15 + 0.5, 1e14 + 0.005, 3.5, 0.0015, 0.0045),
]


def reference(text: str, step: Fraction) -> int:
    """The definition: Python rounds a Fraction half to even."""
    return round(Fraction(text) / step)


def ties(step: Fraction, odd: int) -> float:
    """A float next to the tie between two lattice points."""
    return float(odd * step / 2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.155, 16),
        ("0.155", 16),
        (Decimal("0.155"), 16),
        (Fraction(31, 200), 16),
        (np.float64(0.155), 16),
        (np.float32(0.155), 16),
        (np.float16(0.125), 12),
        (np.longdouble("0.155"), 16),
        (0.165, 16),
        ("12.50", 1250),
        ("1e3", 100000),
        ("-.5", -50),
        ("+5.", 500),
        (7, 700),
        (np.int8(-7), -700),
        (np.uint64(2**64 - 1), (2**64 - 1) * 100),
        (10**30, 10**32),
        (-0.0, 0),
        ("0e999999999", 0),
    ],
)
def test_types_agree(value: object, expected: int) -> None:
    assert to_lattice(value, CENT) == expected


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), Decimal("NaN"), Decimal("sNaN")),
        *(Decimal("-Infinity"), True, False, np.True_, None, "", " 1", "1 ", "1_000", "NaN", "inf", "0x10", "1,5", "١"),
        *(
            b"1",
            1j,
            [1],
            (1,),
            {},
            object(),
            np.datetime64("2020-01-01"),
            np.array([1.0]),
            "1e999999999",
            "1e-999999999",
        ),
        *("1e99999999999999999999999", "9" * 1001, "0." + "1" * 1000, Decimal("1e500")),
    ],
)
def test_what_is_not_a_number_is_refused_and_named(value: object) -> None:
    with pytest.raises(InputError, match=r"expected a .*number.*, got .* - at amount"):
        to_lattice(value, CENT, place="amount")


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_columns_agree_with_scalars_on_adversarial_floats(step: Fraction) -> None:
    near = [ties(step, odd) for odd in (-3, -1, 1, 3, 5, 31, 33, 10**6 + 1, 10**14 + 1) if step < 10**300]
    values = [*ADVERSARIAL, *near, *(math.nextafter(v, math.inf) for v in near), *(math.nextafter(v, 0) for v in near)]
    expected = [reference(repr(value), step) for value in values]
    assert [to_lattice(value, step) for value in values] == expected
    assert [to_lattice(value, step, scale=shortcut_scale(step)) for value in values] == expected
    fits = [index for index, k in enumerate(expected) if -(2**63) <= k < 2**63]
    column = column_to_lattice(np.array(values)[fits], step)
    assert column.dtype == np.int64
    assert column.tolist() == [expected[index] for index in fits]
    assert column_to_lattice(np.array(values), step).tolist() == [saturated(k) for k in expected]


@pytest.mark.parametrize("step", [CENT, Fraction(1), Fraction(1, 10**6), Fraction(3, 1000), Fraction(7, 3)], ids=str)
@given(st.lists(st.one_of(st.floats(-1e9, 1e9), st.integers(-(10**6), 10**6).map(lambda k: k / 2000)), min_size=1))
def test_columns_agree_with_the_definition(step: Fraction, values: list[float]) -> None:
    expected = [reference(repr(value), step) for value in values]
    assert column_to_lattice(np.array(values), step).tolist() == expected
    assert [to_lattice(value, step) for value in values] == expected
    # the way that mixed columns take
    assert column_to_lattice(np.array([*values, "0"], object), step).tolist() == [*expected, 0]


@pytest.mark.parametrize("step", [CENT, Fraction(1, 10**6), Fraction(1, 10**44), Fraction(2)], ids=str)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_float32_means_its_own_shortest_text(step: Fraction, values: list[float]) -> None:
    column = np.array(values, np.float32)
    expected = [saturated(reference(str(value), step)) for value in column]
    assert column_to_lattice(column, step).tolist() == expected


@pytest.mark.parametrize("step", [Fraction(1, 10**45), Fraction(4, 10**46), Fraction(1, 10**40)], ids=str)
def test_denormal_float32_whose_text_is_far_from_its_value(step: Fraction) -> None:
    column = np.arange(3000, dtype=np.uint32).view(np.float32)
    assert column_to_lattice(column, step).tolist() == [reference(str(value), step) for value in column]


def test_every_float16() -> None:
    column = np.arange(2**16, dtype=np.uint16).view(np.float16)
    column = column[np.isfinite(column)]
    assert column_to_lattice(column, CENT).tolist() == [reference(str(value), CENT) for value in column]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize(
    "step", [CENT, Fraction(1), Fraction(2), Fraction(7, 3), Fraction(10**30), Fraction(1, 10**30)]
)
def test_integer_columns(dtype: type, step: Fraction) -> None:
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7, 100, int(info.min), int(info.max), int(info.max) // 3]
    expected = [round(Fraction(value) / step) for value in values]
    fits = [index for index, k in enumerate(expected) if -(2**63) <= k < 2**63]
    column = np.array(values, dtype)[fits]
    assert column_to_lattice(column, step).tolist() == [expected[index] for index in fits]


def test_many_ties_of_every_parity() -> None:
    values = np.arange(-20001, 20001, 2) / 200
    expected = [reference(repr(value), CENT) for value in values.tolist()]
    assert column_to_lattice(values, CENT).tolist() == expected
    assert all(k % 2 == 0 for k in expected)


@pytest.mark.parametrize("column", [np.array([1.0, 1e30]), np.array([1, 10**30], object), np.array([1, 2**63 - 1])])
def test_what_does_not_fit_is_the_end_of_64_bits_and_not_wrapped(column: np.ndarray) -> None:
    assert column_to_lattice(column, CENT).tolist() == [100, 2**63 - 1]


def test_both_ends_of_64_bits() -> None:
    ends = [-(2**63), 2**63 - 1]
    for values in (np.array(ends), np.array(ends, object), np.array(["-9223372036854775808", "9223372036854775807"])):
        assert column_to_lattice(values, Fraction(1)).tolist() == ends
    beyond = np.array([-(2**63) - 1, 2**63, -(10**30), 10**30], object)
    assert column_to_lattice(beyond, Fraction(1)).tolist() == ends * 2


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, object])
def test_columns_refuse_what_is_not_finite(bad: float, dtype: type) -> None:
    with pytest.raises(InputError, match=r"finite number, got -?(nan|inf) - at row 2"):
        column_to_lattice(np.array([1.0, bad], dtype), CENT)


def test_mixed_columns_keep_large_integers_exact() -> None:
    column = np.array([0.5, 2**53 + 1], object)
    assert column_to_lattice(column, Fraction(1)).tolist() == [0, 2**53 + 1]


@given(st.fractions(), st.integers(0, 30))
def test_decimal_text(number: Fraction, places: int) -> None:
    rounded = Fraction(round(number * 10**places), 10**places)
    text = decimal_text(rounded)
    assert text is not None
    assert Fraction(text) == rounded
    assert not ("." in text and text.endswith("0"))
