"""Points are whole numbers, a function of one record and public choices: in any layout, batch, order and type."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import retroact as ra
from retroact.statistics.models.feature_map import LENGTH, WHOLE_REACH, FeatureMap
from retroact.statistics.models.scaled_columns import ONE, quotient

FIELDS = {
    "amount": ra.Number(-10, 100, step=0.125),
    "age": ra.Integer(0, 63),
    "member": ra.Boolean(),
    "country": ra.Category(["DE", "FR", "IT"]),
    "place": ra.Vector(3, radius=2, step=0.125),
    "far": ra.Integer(-(2**52), 2**53 - 1),
}
MAPS = {
    "linear": FeatureMap(FIELDS),
    "knots": FeatureMap(FIELDS, knots=4),
    "whole": FeatureMap(FIELDS, reach=WHOLE_REACH),
}


def records(count=60, seed=1):
    rng = np.random.default_rng(seed)
    places = rng.integers(-8, 9, (count, 3)) / 8
    ends = rng.integers(0, 3, (2, count))
    return {
        "amount": np.choose(ends[0], [np.full(count, -10.0), np.full(count, 100.0), rng.integers(-80, 801, count) / 8]),
        "age": np.choose(ends[1], [np.zeros(count, int), np.full(count, 63), rng.integers(0, 64, count)]),
        "member": rng.integers(0, 2, count).astype(bool),
        "country": np.array(["DE", "FR", "IT"])[rng.integers(0, 3, count)],
        "place": places,
        "far": rng.integers(-(2**50), 2**53, count) // 1024 * 1024,
    }


def points(features, columns):
    """Through the door, as those of a stream."""
    rows, _ = ra.Schema(features.fields).encode({name: columns[name] for name in features.fields})
    found = features.points(rows.columns)
    assert (found == np.rint(found)).all()
    return found.astype(np.int64)


def taken(columns, where):
    return {name: np.asarray(column)[where] for name, column in columns.items()}


@pytest.mark.parametrize("which", MAPS)
def test_points_do_not_depend_on_layout_batch_order_or_neighbours(which):
    features, columns = MAPS[which], records()
    expected = points(features, columns)
    assert (points(features, {n: np.asfortranarray(c) for n, c in columns.items()}) == expected).all()
    for size in (1, 7):
        parts = [points(features, taken(columns, slice(first, first + size))) for first in range(0, 60, size)]
        assert (np.concatenate(parts) == expected).all()
    order = np.random.default_rng(2).permutation(60)
    assert (points(features, taken(columns, order)) == expected[order]).all()
    kept = np.delete(np.arange(60), 17)
    assert (points(features, taken(columns, kept)) == expected[kept]).all()


@pytest.mark.parametrize("which", MAPS)
def test_points_do_not_depend_on_the_type_of_a_number(which):
    features, columns = MAPS[which], records()
    columns["amount"] = np.rint(columns["amount"])
    expected = points(features, columns)
    for made in (np.float32, np.float64, np.int64, np.int32, lambda values: [Decimal(int(v)) for v in values], list):
        assert (points(features, {**columns, "amount": made(columns["amount"])}) == expected).all()
    for made in (np.float32, np.float64, lambda rows: [[Decimal(float(v)) for v in row] for row in rows]):
        assert (points(features, {**columns, "place": made(columns["place"])}) == expected).all()


def cut(top, below):
    """Towards zero."""
    return abs(top) // below * (1 if top >= 0 else -1)


def by_definition(features, record):
    """One point in Python integers."""
    scaled = []
    for name, field in features.fields.items():
        code = field.encode(record[name], name)
        if isinstance(field, ra.Category):
            size = len(field.values)
            scaled += [ONE * (size - 1) // size if level == code else -(ONE // size) for level in range(size)]
        elif isinstance(field, ra.Boolean):
            scaled.append(math.isqrt(ONE**2 // 2) * (2 * code - 1))
        elif isinstance(field, ra.Vector):
            length = math.isqrt(field.norm2_bound - 1) + 1
            scaled += [cut(k * ONE, length) for k in code]
        else:
            span, steps = field.upper - field.lower, 2 * code - field.upper - field.lower
            shift = max(0, span.bit_length() - 31)
            span, steps = -(-span >> shift), steps >> shift
            scaled.append(cut(steps * ONE, span))
            if features.knots:
                along = (steps + span) * (features.knots - 1) * ONE // (2 * span)
                hats = [max(0, ONE - abs(along - place * ONE)) for place in range(features.knots)]
                scaled += [cut(hat * features.knots - ONE, features.knots) for hat in hats]
    squares = sum(t * t for t in scaled)
    length = max(math.isqrt(squares - 1) + 1 if squares else 0, int(features._least))
    return [cut(t * LENGTH, length) for t in scaled]


@pytest.mark.parametrize("which", MAPS)
def test_points_are_what_their_definition_says(which):
    features, columns = MAPS[which], records(200, seed=3)
    found = points(features, columns)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    assert found.tolist() == [by_definition(features, row) for row in rows]
    longest = (found * found).sum(axis=1).max()
    assert longest <= LENGTH**2
    assert longest > 0.99 * LENGTH**2 or which == "whole"


@pytest.mark.parametrize("knots", [0, 2, 5])
def test_no_row_is_longer_than_the_declared_maximum(knots):
    """The longest corners, and hats at and between knots."""
    fields = {"age": ra.Integer(0, 63), "member": ra.Boolean(), "country": FIELDS["country"]}
    whole = FeatureMap(fields, knots=knots, reach=WHOLE_REACH)
    limit = sum(part.square for part in whole._parts.values()) * ONE**2
    every = list(product(range(64), (0, 1), (0, 1, 2)))
    columns = {name: np.array(column) for name, column in zip(fields, zip(*every, strict=True), strict=True)}
    scaled = np.concatenate([part.columns(columns[name]) for name, part in whole._parts.items()], axis=1)
    squares = (scaled.astype(np.int64) ** 2).sum(axis=1)
    assert 0.999 * limit <= squares.max() <= limit
    assert (whole.points(columns) ** 2).sum(axis=1).max() <= LENGTH**2


def test_quotients_are_exact():
    rng = np.random.default_rng(4)
    below = rng.integers(1, 2**31, 20_000)
    near = below * rng.integers(0, 2**20, 20_000) + rng.integers(-1, 2, 20_000)
    for top in (near, -near, rng.integers(-(2**51), 2**51, 20_000)):
        expected = [cut(t, b) for t, b in zip(top.tolist(), below.tolist(), strict=True)]
        found = [int(quotient(np.array([t]), float(b))[0]) for t, b in zip(top[:2000].tolist(), below.tolist())]  # noqa: B905
        assert found == expected[:2000]
        assert np.trunc(top / below.astype(float)).astype(int).tolist() == expected


def test_features_say_what_they_are():
    features = MAPS["knots"]
    assert features.names[:5] == ("amount", "amount~-10", "amount~26.6667", "amount~63.3333", "amount~100")
    assert features.width == 5 + 5 + 1 + 3 + 3 + 5
    # the value at which a feature is 0, and half its range
    assert features.middles[0] == 45
    assert features.scales[0] == 55
    assert pickle.loads(pickle.dumps(features)).names == features.names


def test_prediction_goes_through_the_same_map_and_clips():
    features, columns = MAPS["linear"], records()
    assert (features.read(columns) == points(features, columns)).all()
    beyond = {**columns, "amount": columns["amount"] * 100, "place": columns["place"] * 50}
    assert (np.abs(features.read(beyond)) <= LENGTH).all()
    assert (features.read({**columns, "amount": np.full(60, 1e6)}) == points(
        features, {**columns, "amount": np.full(60, 100.0)}
    )).all()  # fmt: skip
    lists = [{name: columns[name][row] for name in columns} for row in range(60)]
    assert (features.read(lists) == features.read({**columns, "unknown": np.zeros(60)})).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"age": [1]}, "got none named 'country'"),
        ({"age": [None], "country": ["DE"]}, "expected a (finite )?number, got"),
        ({"age": [math.nan], "country": ["DE"]}, "expected a (finite )?number, got"),
        ({"age": [1], "country": ["US"]}, "expected one of 'DE', 'FR', 'IT', got 'US' - at country, row 1"),
        (np.zeros((2, 3)), "an array of 2 columns"),
        (np.zeros(2), "an array of 2 columns"),
    ],
)
def test_what_cannot_be_predicted_is_refused(data, message):
    fields = {"age": ra.Integer(0, 63, missing="skip"), "country": FIELDS["country"]}
    with pytest.raises(ra.InputError, match=message):
        FeatureMap(fields).read(data)


def test_columns_that_make_no_features_are_refused():
    schema = ra.Schema(
        {**FIELDS, "name": ra.Text(), "same": ra.Integer(3, 3), "wide": ra.Vector(600, radius=1, step=0.1)}
    )
    for names, message in (
        (("name",), "expected a field of type Number or"),
        (("nothing",), "expected one of the fields"),
        (("same",), "bounds that differ"),
        (("wide",), "at most 512 features.*most=1024"),
    ):
        with pytest.raises(ra.InputError, match=message):
            FeatureMap.of(schema, names)
    assert FeatureMap.of(schema, ("wide",), 1024).width == 600
    assert FeatureMap(FIELDS)._least == math.ceil(Fraction(4, 5) * ONE * math.sqrt(1 + 1 + 1 / 2 + 2 / 3 + 1 + 1))
