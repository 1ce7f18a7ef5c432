"""Sums of products: exact, and no record adds more than the lemma says."""

import os
import subprocess
import sys
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.statistics.models import products
from retroact.statistics.models.exact import eigen
from retroact.statistics.models.exact import product as times
from retroact.statistics.models.feature_map import LENGTH
from retroact.statistics.models.products import INTERCEPT, SQUARE, Products
from retroact.testing import CheckFailedError, check_sensitivity, check_statistic
from support.in_bound import Planted

SCHEMA = ra.Schema(
    {
        "age": ra.Integer(0, 12),
        "member": ra.Boolean(),
        "country": ra.Category(["DE", "FR", "IT"]),
        "amount": ra.Integer(-3, 3),
    }
)
EVERY = list(product(range(13), (0, 1), range(3), range(-3, 4)))
COLUMNS = {name: np.array(column) for name, column in zip(SCHEMA.fields, zip(*EVERY, strict=True), strict=True)}
MODELS = {
    "ridge": ra.Ridge(["age", "member", "country"], "amount"),
    "knots": ra.Ridge(["age", "country"], "amount", knots=3),
    "one column": ra.Ridge("age", "amount"),
    "classifier": ra.Classifier(["age", "member", "amount"], "country"),
    "nearest mean": ra.NearestMean(["age", "member", "amount"], "country"),
    "covariance": ra.Covariance(["age", "member", "country"]),
    "components": ra.PCA(["age", "member", "country"], 2),
}


def norms(model, columns=COLUMNS):
    """The first norm and the square of the second, in units, of what each record adds, as exact fractions."""
    made = model.products(SCHEMA)
    added, units = made.each(columns, len(columns["age"])), made.layout.units
    for row in np.unique(added, axis=0).tolist():
        sizes = [Fraction(abs(amount), unit) for amount, unit in zip(row, units, strict=True)]
        yield sum(sizes), sum(size * size for size in sizes), max(map(abs, row))


@pytest.mark.parametrize("which", MODELS)
def test_no_record_adds_more_than_the_lemma_says(which):
    """Every record of a small schema: clipped rows, rows at the bounds, one-hot columns."""
    layout = MODELS[which].layout(SCHEMA)
    found = list(norms(MODELS[which]))
    assert max(one for one, _, _ in found) <= layout.norm1
    assert max(two for _, two, _ in found) <= layout.norm2_squared == 1
    assert max(largest for _, _, largest in found) <= layout.largest
    # and it is nearly reached, by the longest rows with the largest targets
    assert max(two for _, two, _ in found) > 0.99
    if which == "nearest mean":
        assert max(one for one, _, _ in found) > 0.85 * layout.norm1


def test_no_record_adds_more_than_counts_say():
    """Naive Bayes: a one for the class and for each column, for every record."""
    model = ra.CategoricalNB(["age", "country", "amount"], "member", bins=3)
    rows, _ = SCHEMA.encode(every_value())
    parts, layout = model.contribute(rows, SCHEMA), model.layout(SCHEMA)
    assert (np.bincount(parts.row) == 4).all()
    assert (parts.amount == 1).all()
    assert len({*zip(parts.row.tolist(), parts.coordinate.tolist(), strict=True)}) == len(parts.row)
    assert parts.coordinate.max() < layout.size == 2 * (1 + 3 + 3 + 3)
    assert layout.norm1 == layout.norm2_squared == 4


def every_value():
    names = np.array(["DE", "FR", "IT"])
    return {**COLUMNS, "country": names[COLUMNS["country"]], "member": COLUMNS["member"] == 1}


@pytest.mark.parametrize("seed", range(3))
def test_no_vector_of_whole_numbers_adds_more_than_the_lemma_says(seed):
    """Whatever the map: any point of the ball and any target."""
    rng = np.random.default_rng(seed)
    made = MODELS["ridge"].products(SCHEMA)
    diagonal, beside, sums, square = made.units
    for _ in range(300):
        x = rng.normal(size=made.width - 1) * (rng.random(made.width - 1) < rng.random())
        x = np.trunc(x / max(np.linalg.norm(x), 1e-9) * LENGTH * rng.choice([1, 1, rng.random()]))
        while (x * x).sum() > LENGTH**2:
            x = np.trunc(x * (1 - 2**-20))
        z, y = [INTERCEPT, *map(int, x.tolist())], int(rng.choice([-LENGTH, LENGTH, rng.integers(LENGTH)]))
        total = Fraction(y**2, square) ** 2 + sum(Fraction(a * y, sums) ** 2 for a in z)
        for i, a in enumerate(z):
            total += Fraction(a * a, diagonal) ** 2 + sum(Fraction(a * b, beside) ** 2 for b in z[i + 1 :])
        assert total <= 1


class WithoutRoot(Products):
    @property
    def units(self):
        diagonal, _, *rest = super().units
        return (diagonal, -(-diagonal // 2), *rest)


@pytest.mark.parametrize("bug", ["units off the diagonal without the root of 2", "an intercept that is not counted"])
def test_a_unit_that_is_too_small_is_caught(monkeypatch, bug):
    if bug.startswith("units"):
        monkeypatch.setattr("retroact.statistics.models.moments.Products", WithoutRoot)
    else:
        assert SQUARE == LENGTH**2 + INTERCEPT**2
        monkeypatch.setattr(products, "SQUARE", LENGTH**2)
    model = ra.Ridge(["age", "member", "country"], "amount")
    assert max(two for _, two, _ in norms(model)) > 1.05
    spec = ra.Specification(SCHEMA, {"model": model}, epsilon=1.0, delta=1e-6, horizon=8)
    with pytest.raises(ra.VerificationError, match="costs"):
        check_sensitivity(spec, Random(1))


def gathered(model, columns, weights=None):
    rows, _ = SCHEMA.encode(columns)
    weights = np.ones(rows.count, dtype=np.int64) if weights is None else weights
    spec = ra.Specification(SCHEMA, {"model": model}, epsilon=1.0, delta=1e-6, horizon=8)
    return spec.bounds["model"].gather(rows, weights)


def some(count, seed=1):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(EVERY), count)
    return {name: column[chosen] for name, column in every_value().items()}


@pytest.mark.parametrize("which", MODELS)
def test_sums_are_those_of_integers_in_any_layout_batch_and_order(monkeypatch, which):
    model, columns = MODELS[which], some(500)
    encoded, _ = SCHEMA.encode(columns)
    expected = model.products(SCHEMA).each(encoded.columns, 500).sum(axis=0)
    assert (gathered(model, columns) == expected).all()
    order = np.random.default_rng(2).permutation(500)
    assert (gathered(model, {n: c[order] for n, c in columns.items()}) == expected).all()
    for size in (1, 7):
        monkeypatch.setattr(products, "MOST_RECORDS", size)
        assert (gathered(model, columns) == expected).all()
    weights = np.random.default_rng(3).choice([-1, 1, 1, 2**40], 500)
    each = model.products(SCHEMA).each(encoded.columns, 500)
    assert (gathered(model, columns, weights) == (each * weights[:, None]).sum(axis=0)).all()


def test_an_addition_and_its_deletion_leave_nothing():
    columns = some(300)
    both = {name: np.concatenate([column, column]) for name, column in columns.items()}
    signs = np.repeat([1, -1], 300)
    assert not gathered(MODELS["ridge"], both, signs).any()


def test_sums_of_the_largest_records_are_exact():
    """At the largest number of records that are multiplied at once, every sum is a whole number below 2^53."""
    assert LENGTH**2 * products.MOST_RECORDS < 2**53
    count = 3 * products.MOST_RECORDS // 2
    made = MODELS["one column"].products(SCHEMA)
    one = made.each({"age": np.array([12]), "amount": np.array([3])}, 1)[0]
    columns = {"age": np.full(count, 12), "amount": np.full(count, 3)}
    assert (made.sums(columns, np.arange(count)) == one * count).all()


class FloatSums(Planted, ra.Ridge):
    """Features are not whole numbers, and their sums are kept as floats."""

    class InBound:
        def _gather(self, rows, weights):
            made = self.statistic.products(self.schema)
            out = np.zeros(self.layout.size)
            for row, weight in zip(made.each(rows.columns, rows.count) / 3, weights, strict=True):
                out += row * weight
            return out

        def _gather_by(self, rows, weights, group, count):
            return [self._gather(rows.take(group == one), weights[group == one]) for one in range(count)].__getitem__

        def release(self, totals, noise, at):
            return super().release([np.asarray(totals[0] * 3 * 2**20, dtype=np.int64)], noise, at)


def test_floats_that_are_summed_are_caught():
    with pytest.raises(CheckFailedError, match=r"twin check|order within a round|batch boundaries"):
        check_statistic(FloatSums(["age", "country"], "amount"), SCHEMA, deltas=(1e-6,), horizons=(8,), draws=0)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 40])
def test_eigenvectors_are_right(size):
    rng = np.random.default_rng(size)
    for matrix in (
        rng.normal(size=(size, size)),
        np.diag(rng.integers(-2, 3, size).astype(float)),
        np.ones((size, size)),
    ):
        matrix = matrix + matrix.T
        values, vectors = eigen(matrix)
        assert np.allclose(values, np.linalg.eigvalsh(matrix), atol=1e-12 * size)
        assert np.allclose(times(vectors * values, np.ascontiguousarray(vectors.T)), matrix, atol=1e-11)
        assert np.allclose(vectors.T @ vectors, np.eye(size), atol=1e-11)
        assert (vectors.max(axis=0) >= -vectors.min(axis=0)).all()
    assert eigen(np.zeros((size, size)))[0].tolist() == [0.0] * size


PUBLISHED = """
import hashlib
import numpy as np
import retroact as ra
rng = np.random.default_rng(1)
fields = {"wide": ra.Vector(70, radius=1, step=0.001, clip=True), "x": ra.Number(0, 1), "y": ra.Number(-3, 5)}
models = {"linear": ra.Ridge(["wide", "x"], "y"), "bent": ra.Ridge("x", "y", knots=12)}
stream = ra.Stream(fields, models, epsilon=100.0, delta=1e-6, horizon=4, key=ra.Key.for_testing(1))
wide, x = rng.normal(0, 0.08, (4000, 70)), rng.random(4000)
stream.add({"wide": wide, "x": x, "y": np.clip(wide.sum(axis=1) + x, -3, 5)})
for release in stream.close_round().values():
    print(hashlib.sha256(release.encode() + repr(release.to_dict()).encode()).hexdigest())
"""


def test_published_bytes_do_not_depend_on_threads_or_vector_instructions():
    """Where LAPACK is used, they do: threads split its sums."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    environments = [dict.fromkeys(names, threads) for threads in ("1", "2", "5")]
    environments.append({"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"})
    found = set()
    for environment in environments:
        done = subprocess.run(
            [sys.executable, "-c", PUBLISHED],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop().split()) == 2
