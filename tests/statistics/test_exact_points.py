"""Points of a ball, against exact arithmetic: what clusters and distances make of the largest legal record, of the
smallest illegal one, and of values whose squares and products 64 bits do not hold."""

from fractions import Fraction
from math import ceil, isqrt

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import retroact as ra
from retroact.schema import Rows, Schema
from retroact.statistics.clusters.ball import RADIUS, Space
from support.exact_records import ONE, bound_of, moved, taken
from support.tiers import examples

MODES = {
    "grid": lambda d, **more: ra.KMeans([f"x{i}" for i in range(d)], 2, mode="grid", **more),
    "hash": lambda d, **more: ra.KMeans([f"x{i}" for i in range(d)], 2, mode="hash", **more),
    "theorem": lambda d, **more: ra.KMeans([f"x{i}" for i in range(d)], 2, mode="theorem", levels=2, **more),
    "medians": lambda d, **more: ra.KMedian([f"x{i}" for i in range(d)], 2, **more),
    "distances": lambda d, **more: ra.Distances([f"x{i}" for i in range(d)], **more),
}
MOST = {"grid": 3, "theorem": 3, "medians": 8}


def up(number):
    """At least the square root of a fraction."""
    return Fraction(isqrt(ceil(number * 4**30)) + 1, 2**30)


@st.composite
def points(draw):
    """Columns of whole numbers, a radius, and a point that is near the rim, far beyond it, or anywhere."""
    mode = draw(st.sampled_from(sorted(MODES)))
    d = draw(st.integers(1, MOST.get(mode, 40)))
    bound = draw(st.integers(1, 1000) | st.integers(2**52, 2**53) | st.integers(2**61, 2**63 - 1))
    radius = draw(st.integers(1, 3 * bound))
    even = isqrt(radius * radius // d)
    near = st.sampled_from([0, 1, even, even + 1, even + 2, radius, radius + 1, radius + 2, bound])
    part = near | st.integers(0, bound)
    sizes = draw(st.lists(part, min_size=d, max_size=d) | part.map(lambda size: [size] * d))
    signs = draw(st.lists(st.sampled_from([1, -1]), min_size=d, max_size=d))
    return mode, bound, radius, [sign * min(size, bound) for sign, size in zip(signs, sizes, strict=True)]


def space_of(bound, radius, d):
    schema = {f"x{i}": ra.Integer(-bound, bound) for i in range(d)}
    try:
        return schema, Space(Schema(schema), list(schema), radius=Fraction(radius))
    except ra.InputError:
        # Only where half a step of all columns together is many radii long.
        assert up(Fraction(RADIUS, radius) ** 2 * d / 4) > 2**21
        assume(False)


@examples(150)
@given(points())
@example(("grid", 2**53, 2**53, [2**53]))
@example(("hash", 2**63 - 1, 2**63 - 1, [2**63 - 1] * 40))
@example(("theorem", 2**63 - 1, 3, [2, 2, 2]))
def test_a_point_is_taken_exactly_if_it_is_in_the_ball(case):
    mode, bound, radius, point = case
    schema, space = space_of(bound, radius, len(point))
    record = dict(zip(schema, point, strict=True))
    rows = Schema(schema).encode([record])[0]
    # In steps of the ball, before they are cut to whole ones; half a step of each column is lost in rounding to it.
    one = Fraction(RADIUS, radius)
    exact = [k * one for k in point]
    square = sum(part * part for part in exact)
    if mode != "distances":
        accepted = taken(schema, MODES[mode](len(point), radius=radius), record)
        if square <= RADIUS**2:
            assert accepted, "a point of the ball is legal"
        rim = RADIUS + up(len(point) * one * one / 4) + 2 + up(Fraction(len(point)))
        if square > rim**2:
            assert not accepted, "beyond what rounding explains nothing is"
    inside = space.points(rows)[0].tolist()
    assert sum(k * k for k in inside) <= RADIUS**2, "clipped or not, a point is in the ball, exactly"
    if square <= RADIUS**2:
        assert inside == [int(part) for part in exact], "cut towards zero"
    if len(set(point)) == 1 and square:
        assert len(set(inside)) == 1, "clipping keeps the direction"


@examples(100)
@given(points(), st.booleans())
@example(("hash", 2**63 - 1, 7, [2**63 - 1] * 40), True)
def test_what_a_point_moves_is_within_the_declared_norms_exactly(case, clip):
    mode, bound, radius, point = case
    assume(mode != "distances")
    schema, space = space_of(bound, radius, len(point))
    record = dict(zip(schema, point, strict=True))
    statistic = MODES[mode](len(point), radius=radius, clip=clip)
    rows = Schema(schema).encode([record])[0]
    inside = space.points(rows)[0].tolist()
    layout = statistic.layout(Schema(schema))
    found = moved(statistic, schema, record)
    parts = [abs(Fraction(amount, layout.units[kind])) for (_, kind), amount in found.items()]
    assert sum(parts) <= layout.norm1
    assert sum(part * part for part in parts) <= layout.norm2_squared
    assert max(abs(amount) for amount in found.values()) <= layout.largest
    kinds = [kind.name for kind in statistic.regions(space.dimension).kinds]
    if "squares" in kinds:
        squares = {amount for (_, kind), amount in found.items() if kinds[kind] == "squares"}
        assert squares <= {sum(k * k for k in inside)}


@examples(100)
@given(points())
@example(("distances", 2**53, 2**53, [2**53]))
def test_a_distance_is_the_whole_root_of_the_exact_square(case):
    _, bound, radius, point = case
    schema, space = space_of(bound, radius, len(point))
    rows = Schema(schema).encode([dict(zip(schema, point, strict=True))])[0]
    statistic = MODES["distances"](len(point), radius=radius)
    inside = space.points(rows)[0].tolist()
    try:
        tally = bound_of(statistic, Schema(schema)).gather(rows, ONE)
    except ra.InputError:
        assume(False)
    assert tally.words[0].tolist() == [isqrt(sum(k * k for k in inside))]


@pytest.mark.parametrize("dimension", [1, 3, 1 << 14])
def test_the_longest_points_of_the_most_dimensions_stay_in_the_ball(dimension):
    """All coordinates as far out as 64 bits go: squares, sums and scales are at their largest."""
    largest = isqrt((2**63 - 1) // dimension // dimension) - 1
    field = ra.Vector(dimension, radius=largest, step=1)
    schema = Schema({"at": field})
    space = Space(schema, ["at"], radius=Fraction(4))
    parts = np.full((2, dimension), isqrt(field.norm2_bound // dimension), dtype=np.int64)
    parts[1] *= -1
    found = space.points(Rows({"at": parts}, 2)).tolist()
    assert found[1] == [-k for k in found[0]]
    length = sum(k * k for k in found[0])
    assert (RADIUS - 2 * isqrt(dimension) - 2) ** 2 <= length <= RADIUS**2
