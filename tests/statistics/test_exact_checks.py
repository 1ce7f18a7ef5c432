"""The checks that privacy rests on, against exact arithmetic: the largest legal record, the smallest illegal one, and
records that only numbers of 64 bits would take for legal ones, for every statistic that there is."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import retroact as ra
from retroact.oneshot import Median
from retroact.schema import Schema
from retroact.statistics.linear import Contributions
from support.exact_records import moved, taken, within
from support.tiers import examples

BIG = 1 << 31
# The most that a total may be, and the fewest records there must be room for.
TOTAL, ROOM = 1 << 62, 1 << 24


# Queries of the user's own -------------------------------------------------------------------------------------------


def query_of(column, size, wrapper="plain", *, sparse=False, **norms):
    amounts = np.array(column, dtype=np.int64)

    def dense(columns):
        return np.where(columns["x"][:, None] > 0, amounts, 0)

    def listed(columns):
        rows, places = np.nonzero(columns["x"][:, None] * (amounts != 0))
        # Unsigned on purpose: no sum of theirs with other integers may become a float.
        return Contributions(rows, places.astype(np.uint64), amounts[places])

    query = ra.LinearQuery(listed if sparse else dense, size=size, name="q", **norms)
    return {
        "plain": lambda: query,
        "group": lambda: ra.GroupBy("g", query),
        "restated": lambda: ra.Restated(query, [0, 2]),
        "mapped": lambda: query.map(list),
    }[wrapper]()


@st.composite
def columns_and_norms(draw):
    """A declared size and norms, and a column near them, near what 64 bits hold, or anywhere."""
    size = draw(st.integers(1, 40) | st.sampled_from([100, 400]))
    near = st.integers(1, 50) | st.integers(BIG - 50, BIG) | st.integers(1, BIG)
    norms = draw(
        st.fixed_dictionaries({"norm1": near}) | st.fixed_dictionaries({"norm2": near})
        | st.fixed_dictionaries({"norm1": near, "norm2": near})
    )  # fmt: skip
    norm1, square = exact_norms(size, **norms)
    equal = draw(st.integers(1, size))
    # The largest that is legal with so many equal coordinates, the next, and sums of squares around 2^63 and 2^64.
    largest = min(norm1 // equal, isqrt(square // equal))
    wraps = [isqrt((1 << power) // equal) + extra for power in (63, 64) for extra in (0, 1)]
    amount = draw(st.sampled_from([largest, largest + 1, *wraps, norm1, isqrt(square)]) | st.integers(0, 2 * BIG))
    column = [amount] * equal + [0] * (size - equal)
    column[-1] += draw(st.sampled_from([0, 0, 1, -1]))
    signs = draw(st.lists(st.sampled_from([1, -1]), min_size=size, max_size=size))
    return [sign * part for sign, part in zip(signs, column, strict=True)], size, norms


def exact_norms(size, *, norm1=None, norm2=None):
    """What is declared, with ||v||_2 <= ||v||_1 <= sqrt(size) ||v||_2 for what is not."""
    square = norm1**2 if norm2 is None else norm2**2
    return (isqrt(size * square) if norm1 is None else norm1), square


SCHEMA_OF_QUERY = {"x": ra.Integer(0, 1), "g": ra.Category(["a", "b"])}
FOUR = [BIG] * 4 + [0] * 12


@examples(300)
@given(columns_and_norms(), st.booleans(), st.sampled_from(["plain", "group", "restated", "mapped"]))
@example((FOUR, 16, {"norm2": BIG}), False, "plain")
@example((FOUR, 16, {"norm2": BIG}), True, "group")
@example(([isqrt((1 << 64) // 9) + 1] * 9, 9, {"norm2": BIG}), False, "mapped")
def test_a_query_takes_a_record_exactly_if_it_is_within_the_declared_norms(case, sparse, wrapper):
    column, size, norms = case
    norm1, square = exact_norms(size, **norms)
    largest = min(norm1, isqrt(square))
    try:
        statistic = query_of(column, size, wrapper, sparse=sparse, **norms)
    except ra.InputError:
        assert max(norm1, size) * largest >= 1 << 63, "only what 64 bits cannot check is refused"
        return
    legal = within(column, [1] * size, norm1, square)
    assert taken(SCHEMA_OF_QUERY, statistic, {"x": 1, "g": "a"}) == legal


@pytest.mark.parametrize(("equal", "size"), [(4, 16), (100, 10_000)])
def test_norms_that_64_bits_cannot_check_are_refused_before_any_record(equal, size):
    """k coordinates of 2^31 have k * 2^62 as the sum of their squares, which is 0 in 64 bits for every fourth k."""
    column = [BIG] * equal + [0] * (size - equal)
    with pytest.raises(ra.InputError, match="checked in 64 bits"):
        taken(SCHEMA_OF_QUERY, query_of(column, size, norm2=BIG), {"x": 1, "g": "a"})


def test_what_64_bits_can_check_is_checked_to_the_last_unit():
    largest = query_of([BIG], 1, norm2=BIG)
    assert taken(SCHEMA_OF_QUERY, largest, {"x": 1, "g": "a"})
    three = isqrt(3 << 62)
    assert exact_norms(3, norm2=BIG) == (three, 1 << 62)
    assert not taken(SCHEMA_OF_QUERY, query_of([BIG, 1, 0], 3, norm2=BIG), {"x": 1, "g": "a"})
    even = isqrt((1 << 62) // 3)
    assert taken(SCHEMA_OF_QUERY, query_of([even] * 3, 3, norm2=BIG), {"x": 1, "g": "a"})
    assert not taken(SCHEMA_OF_QUERY, query_of([even + 1] * 3, 3, norm2=BIG), {"x": 1, "g": "a"})


# Vectors -------------------------------------------------------------------------------------------------------------


def legal_vector(point, radius):
    """Whether the lattice point is within radius + sqrt(d)/2, in integers: 4(S - r^2) - d <= 4 r sqrt(d)."""
    d = len(point)
    excess = 4 * (sum(k * k for k in point) - radius * radius) - d
    return excess <= 0 or excess * excess <= 16 * radius * radius * d


@examples(200)
@given(st.data())
def test_a_vector_is_taken_exactly_if_it_is_within_its_radius(data):
    d = data.draw(st.integers(1, 9))
    radius = data.draw(st.integers(1, 99) | st.integers(2**28, 2**29) | st.sampled_from([2**30, 2**31]))
    try:
        field = ra.Vector(d, radius=radius, step=1)
    except ra.InputError:
        assert d * (radius + isqrt(d)) ** 2 >= 1 << 63
        return
    even = isqrt(radius * radius // d)
    near = st.sampled_from([0, even, even + 1, radius, radius + 1, isqrt(2**63 // d), isqrt(2**64 // d) + 1, 2**32])
    far = st.sampled_from([2**62, 2**63 - 1, -(2**63), 3 * 2**61]) | st.integers(-(2**63), 2**63 - 1)
    point = data.draw(st.lists(near | far, min_size=d, max_size=d) | near.map(lambda part: [part] * d))
    legal = legal_vector(point, radius)
    for batch in (np.array([point]), [point], {"at": [point]}):
        try:
            values = batch["at"] if isinstance(batch, dict) else batch
            encoded = Schema({"at": field}).encode({"at": values})[0].columns["at"].tolist()
        except ra.InputError:
            encoded = None
        assert (encoded == [point]) == legal
    if legal:
        column = moved(ra.Sum("at"), {"at": field}, {"at": point})
        assert column == {i: k for i, k in enumerate(point) if k}
        layout = ra.Sum("at").layout(Schema({"at": field}))
        assert within(point, layout.units, layout.norm1, layout.norm2_squared)


# Numbers -------------------------------------------------------------------------------------------------------------


def columns_of_numbers(lower, upper, k):
    """Of every statistic of a number: its units, and what the lattice value k adds, by definition."""
    centred, span, size = 2 * k - lower - upper, max(1, upper - lower), max(1, abs(lower), abs(upper))
    yield ra.Count(), [1], [1]
    yield ra.Sum("n"), [size], [k]
    yield ra.Mean("n"), [1, span], [1, centred]
    yield ra.Variance("n"), [1, span, span**2], [1, centred, centred**2]
    yield ra.Histogram("g", sum="n"), [1, size], [1, k]
    yield ra.GroupBy("g", ra.Sum("n")), [size, size], [0, k]
    yield ra.GroupBy("g", ra.Variance("n")), [1, span, span**2] * 2, [0, 0, 0, 1, centred, centred**2]
    yield ra.Restated(ra.Mean("n"), [0, 1]), [1, span], [1, centred]
    yield ra.Sum("n").map(abs), [size], [k]


bounds = st.integers(-50, 50) | st.integers(-(2**40), 2**40) | st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=60, deadline=None)
@given(bounds, bounds)
@example(-(2**63), 2**63 - 1)
@example(0, 2**38)
@example(0, 2**38 + 1)
@example(0, 2**19)
@example(5, 5)
def test_a_number_moves_totals_by_its_exact_share_and_is_refused_one_beyond_its_bounds(one, other):
    lower, upper = min(one, other), max(one, other)
    schema = {"n": ra.Integer(lower, upper), "g": ra.Category(["a", "b"])}
    for legal in (lower, upper):
        for statistic, units, column in columns_of_numbers(lower, upper, legal):
            try:
                layout = statistic.layout(Schema(schema))
                ra.Specification(schema, {"s": statistic}, epsilon=1.0, delta=1e-6, horizon=7)
            except ra.InputError as error:
                beyond = max(abs(lower), abs(upper)) > 2**53 and "2^53" in str(error)
                if beyond or TOTAL // max(units) < ROOM or "2^55" in str(error):
                    continue
                raise
            assert TOTAL // max(units) >= ROOM
            assert list(layout.units) == units
            assert layout.largest == max(units)
            found = moved(statistic, schema, {"n": legal, "g": "b"})
            amounts = {i[1] if isinstance(i, tuple) else i: amount for i, amount in found.items()}
            assert amounts == {i: amount for i, amount in enumerate(column) if amount}
            assert within(column, units, layout.norm1, layout.norm2_squared)
    for illegal in (lower - 1, upper + 1, lower - 2**64, upper + 2**64, legal + 2**64, float(2**64)):
        for numbers in ([illegal], [legal, illegal]):
            for batch in ([{"n": n, "g": "a"} for n in numbers], {"n": numbers, "g": ["a"] * len(numbers)}):
                with pytest.raises(ra.InputError):
                    Schema(schema).encode(batch)
    if upper < 2**63 - 1:
        with pytest.raises(ra.InputError):
            Schema(schema).encode({"n": np.array([max(upper + 1, 0), 2**64 - 1], dtype=np.uint64), "g": ["a"] * 2})


@settings(max_examples=60, deadline=None)
@given(bounds, bounds, st.floats(0, 1))
@example(-(2**63), 2**63 - 1, 1.0)
@example(0, 2**63 - 1, 0.5)
def test_a_value_moves_the_nodes_of_one_path_of_the_tree(one, other, place):
    """The number of records, and in each dyadic interval that holds the value +1 on the left and -1 on the right."""
    lower, upper = min(one, other), max(one, other)
    bits = (upper - lower).bit_length()
    value = min(upper, lower + int(place * (upper - lower)))
    expected = {((0, 0), 0): 1}
    for depth in range(bits):
        width = 1 << (bits - depth)
        number, inside = divmod(value - lower, width)
        expected[(number, depth + 1), 0] = 1 if inside < width // 2 else -1
    schema = {"n": ra.Integer(lower, upper)}
    statistic = ra.Quantiles("n", [0.5])
    assert moved(statistic, schema, {"n": value}) == expected
    layout = statistic.layout(Schema(schema))
    assert (layout.norm1, layout.norm2_squared, layout.units) == (bits + 1, bits + 1, (1,))


def test_one_record_is_one_place_of_a_window():
    for value in (-(2**63), 2**63 - 1):
        schema = {"n": ra.Integer(-(2**63), 2**63 - 1)}
        assert list(moved(ra.WindowSample(Median("n"), window=3), schema, {"n": value}).values()) == [1]


# Keys ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 4096), st.sampled_from(["a", "é", "€", "𝔸"]), st.integers(-3, 3))
def test_a_key_is_taken_exactly_up_to_its_longest_length_in_bytes(first, letter, more):
    """Two fields: so many bytes of the one, and as many of the other as make 4,096, or a few more or fewer."""
    width = len(letter.encode())
    one = "x" * first
    other = letter * ((4096 - first + more) // width if 4096 - first + more > 0 else 0)
    size = len(one.encode()) + len(other.encode())
    schema = {"a": ra.Text(), "b": ra.Text()}
    for statistic in (ra.Histogram(["a", "b"]), ra.Distinct(["a", "b"])):
        assert taken(schema, statistic, {"a": one, "b": other}) == (size <= 4096)
        if size <= 4096:
            assert list(moved(statistic, schema, {"a": one, "b": other}).values()) == [1]
