"""Vector: every point of the ball is accepted, and nothing beyond the bound that sensitivity uses."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.schema import Vector

PLACE = Vector(2, radius=1, step=0.1)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 10, 100])
@pytest.mark.parametrize(
    ("radius", "step"), [("1", "0.1"), ("1", "0.001"), ("7.3", "0.03"), ("0.5", "2"), ("1000", "0.01")]
)
def test_bounds_are_the_exact_floor(dimension: int, radius: str, step: str) -> None:
    field = Vector(dimension, radius=radius, step=step)
    with localcontext(prec=80):
        exact = (Decimal(radius) / Decimal(step) + Decimal(dimension).sqrt() / 2) ** 2
        # perfect squares are exact, and everything else is far from a whole number at 80 digits
        assert field.norm2_bound == math.floor(exact + Decimal("1e-60"))
    assert field.norm1_bound == math.isqrt(dimension * field.norm2_bound)
    assert field.upper == -field.lower == math.isqrt(field.norm2_bound)
    assert field.width == dimension


def test_attributes() -> None:
    assert (PLACE.step, PLACE.radius, PLACE.interned) == (Fraction(1, 10), 1, False)
    assert PLACE.decode((6, -8)) == (0.6, -0.8)
    assert PLACE.encode(("0.6", Decimal("-0.8")), "x") == (6, -8)
    assert PLACE.encode(np.array([0.6, -0.8], np.float32), "x") == (6, -8)


@given(
    st.integers(1, 6).flatmap(lambda d: st.lists(st.floats(-1, 1), min_size=d, max_size=d)),
    st.sampled_from(["0.1", "0.25", "0.003"]),
)
def test_every_point_of_the_ball_is_accepted(point: list[float], step: str) -> None:
    field = Vector(len(point), radius=1, step=step)
    exact = [Fraction(repr(x)) for x in point]
    inside = sum(x * x for x in exact) <= 1
    try:
        encoded = field.encode(point, "x")
    except InputError:
        assert not inside
        return
    assert encoded == tuple(round(x / field.step) for x in exact)
    assert sum(k * k for k in encoded) <= field.norm2_bound
    assert sum(map(abs, encoded)) <= field.norm1_bound


@given(st.integers(1, 5), st.data())
def test_columns_agree_with_single_vectors(dimension: int, data: st.DataObject) -> None:
    field = Vector(dimension, radius=3, step=0.01, clip=True)
    number = st.one_of(st.floats(-5, 5), st.sampled_from([1e30, -1e300, 0.155, 5e-324]))
    row = st.lists(number, min_size=dimension, max_size=dimension)
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    expected = [field.encode(row, "x") for row in rows]
    for point in expected:
        assert sum(k * k for k in point) <= field.norm2_bound
    for column in (
        rows,
        tuple(map(tuple, rows)),
        np.array(rows),
        [np.array(row) for row in rows],
        np.array(rows, object),
    ):
        encoded, keep = field.encode_column(column, "x")
        assert encoded.dtype == np.int64
        assert encoded.shape == (len(rows), dimension)
        assert list(map(tuple, encoded.tolist())) == expected
        assert keep is None


def test_clipping_keeps_the_direction_and_changes_nothing_inside() -> None:
    field = Vector(3, radius=1, step=0.0001, clip=True)
    long = field.encode([3e9, -4e9, 12e9], "x")
    assert np.allclose(np.array(long) / math.sqrt(field.norm2_bound), np.array([3, -4, 12]) / 13, atol=1e-3)
    assert field.encode([0.1, 0.2, 0.3], "x") == (1000, 2000, 3000)
    assert field.encode([10**400, 0, 0], "x") == (field.upper, 0, 0)


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ([1.0, 1.0], "x"),
        ([0.1], "x"),
        ([0.1, 0.2, 0.3], "x"),
        ("ab", "x"),
        (None, "x"),
        (0.5, "x"),
        ([0.1, None], "x, coordinate 2"),
        ([math.nan, 0.1], "x, coordinate 1"),
        ([0.1, math.inf], "x, coordinate 2"),
        ([True, 0.1], "x, coordinate 1"),
        ([0.1, "y"], "x, coordinate 2"),
        ([[0.1], [0.2]], "x, coordinate 1"),
        ([10**30, 0], "x"),
        (np.array([[0.1, 0.2]]), "x"),
        ({0.1, 0.2}, "x"),
    ],
    ids=repr,
)
def test_refused_alone_and_in_columns(bad: object, place: str) -> None:
    with pytest.raises(InputError, match=r"expected .*, got") as alone:
        PLACE.encode(bad, "x")
    assert alone.value.place == place
    with pytest.raises(InputError) as among:
        PLACE.encode_column([[0.1, 0.2], bad], "x")
    assert (among.value.path, among.value.row) == (place, 2)
    assert among.value.message.split(", got")[0] == alone.value.message.split(", got")[0]


@pytest.mark.parametrize(
    ("column", "place"),
    [
        (np.array([[0.1, 0.2], [5.0, 0.1]]), "x, row 2"),
        (np.array([[0.1, 0.2], [0.1, np.nan]]), "x, coordinate 2, row 2"),
        (np.array([[0, 0], [2**63 - 1, 2**63 - 1]]), "x, row 2"),
        (np.array([[0, 0], [-(2**63), -(2**63)]]), "x, row 2"),
        (np.zeros((2, 3)), "x, row 1"),
        (np.zeros(2), "x, row 1"),
        (np.zeros((2, 2, 2)), "x, row 1"),
        (np.zeros((2, 2), bool), "x, coordinate 1, row 1"),
    ],
)
def test_bad_tables(column: np.ndarray, place: str) -> None:
    with pytest.raises(InputError) as caught:
        PLACE.encode_column(column, "x")
    assert caught.value.place == place


def test_overflowing_squares_are_caught() -> None:
    field = Vector(2, radius=2**30, step=1)
    for large in (2**32, -(2**32)):
        with pytest.raises(InputError, match="row 1"):
            field.encode_column(np.array([[large, large]]), "x")


@pytest.mark.parametrize(
    "arguments",
    [
        {"dimension": 0},
        {"dimension": 2.0},
        {"dimension": True},
        {"radius": 0},
        {"radius": math.inf},
        {"step": 0},
        {"step": -1},
        {"step": "1e-12"},
    ],
)
def test_bad_declarations(arguments: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"at {next(iter(arguments))}"):
        Vector(**({"dimension": 2, "radius": 1, "step": 0.1} | arguments))  # type: ignore[arg-type]


def test_missing() -> None:
    field = Vector(2, radius=1, step=0.1, missing="skip")
    rows = [[0.1, 0.2], None, [0.1, None], [math.nan, 0.1], [0.3, 0.4]]
    encoded, missing = field.encode_column(rows, "x")
    assert encoded.tolist() == [[1, 2], [0, 0], [0, 0], [0, 0], [3, 4]]
    assert missing is not None
    assert missing.tolist() == [False, True, True, True, False]
    encoded, missing = field.encode_column(np.array([[0.1, np.nan], [0.3, 0.4]]), "x")
    assert encoded.tolist() == [[0, 0], [3, 4]]
    assert field.encode_column([None, None], "x")[0].tolist() == [[0, 0], [0, 0]]
    with pytest.raises(InputError) as caught:
        field.encode_column([None, [0.1, 0.2], [0.1, "y"]], "x")
    assert caught.value.place == "x, coordinate 2, row 3"


@pytest.mark.parametrize("column", [[], np.empty((0, 2)), np.empty(0), np.empty((0, 7))])
def test_empty(column: object) -> None:
    assert PLACE.encode_column(column, "x")[0].shape == (0, 2)
