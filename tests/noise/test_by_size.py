"""Noise by the number of releases that change: every pattern by brute force, and how far it is from the best."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.errors import InputError
from retroact.noise import AnyRounds, BySize, Mechanism
from retroact.noise.process import difference
from retroact.privacy import Share


def matrix_of(process):
    """L over (common, fresh(1), .., fresh(R)), in units of 1 / denominator."""
    terms = process.weights_of(np.arange(1, process.horizon + 1))
    out = np.zeros((process.horizon, process.horizon + 1), dtype=np.int64)
    for row in range(process.horizon):
        one = terms.of(row)
        for level, index, weight in zip(one.levels.tolist(), one.indices.tolist(), one.weights.tolist(), strict=True):
            out[row, index if level else 0] += weight
    return out, terms.denominator


def vector_of(process, shift):
    out = np.zeros(process.horizon + 1, dtype=np.int64)
    for (level, index), value in shift.items():
        out[index if level else 0] = value
    return out


def charge(process, shift):
    return sum(
        (Fraction(abs(value) ** process.p) / process.spread(level, process.p) for (level, _), value in shift.items()),
        Fraction(0),
    )


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("releases", range(1, 11))
def test_every_pattern_is_hidden_at_a_cost_of_at_most_one(releases, p):
    process = BySize(releases, p=p)
    matrix, denominator = matrix_of(process)
    costs = []
    for pattern in itertools.product((0, 1), repeat=releases):
        for factor in (1, -3):
            shift = process.shift_hiding([factor * bit for bit in pattern])
            assert (matrix @ vector_of(process, shift) == factor * denominator * np.array(pattern)).all()
        costs.append(charge(process, process.shift_hiding(pattern)))
    assert max(costs) == 1 == (process.l1 if p == 1 else process.l2_squared)
    assert process.shift_hiding([]) == process.shift_hiding([0] * releases) == {}
    with pytest.raises(InputError, match="at most"):
        process.shift_hiding([0] * (releases + 1))
    with pytest.raises(InputError, match="0 and one other number"):
        BySize(3, p=p).shift_hiding([1, 2])


@pytest.mark.parametrize("p", [1, 2])
def test_a_smaller_spread_would_cost_more_than_one(p):
    """The brute force can fail."""

    class Narrow(BySize):
        def spread(self, level, p):
            return super().spread(level, p) * Fraction(99, 100)

    process = Narrow(5, p=p)
    assert max(charge(process, process.shift_hiding(d)) for d in itertools.product((0, 1), repeat=5)) > 1


@pytest.mark.parametrize("releases", [1, 2, 3, 5, 7, 8])
def test_what_the_releases_so_far_leave_open_is_spanned_by_short_vectors(releases):
    process = BySize(releases, p=2)
    matrix, _ = matrix_of(process)
    assert np.linalg.matrix_rank(matrix) == releases
    bound = max(process.l2_squared, process.kernel_squared)
    for t in range(releases + 1):
        vectors = [{(1, release): 1} for release in range(t + 1, releases + 1)]
        vectors.append({(0, 0): 1} | {(1, release): -1 for release in range(1, t + 1)})
        table = np.array([vector_of(process, vector) for vector in vectors])
        assert np.linalg.matrix_rank(table) == len(vectors) == releases + 1 - t
        assert not (matrix @ table.T)[:t].any()
        assert max(charge(process, vector) for vector in vectors) <= bound
        # They generate all integer solutions: the largest minors have no common divisor.
        minors = itertools.combinations(range(releases + 1), len(vectors))
        assert math.gcd(*(round(np.linalg.det(table[:, list(columns)])) for columns in minors)) == 1
    assert process.kernel_squared == charge(process, vectors[-1])


def test_two_releases_have_the_best_covariance_there_is():
    """2/3 (I + J), of deviation 1.155 where common and fresh noise on halves have 1.207."""
    process = BySize(2, p=2)
    matrix, denominator = matrix_of(process)
    spreads = np.diag([float(process.spread(level, 2)) for level in (0, 1, 1)])
    covariance = matrix @ spreads @ matrix.T / denominator**2
    assert covariance == pytest.approx(2 / 3 * (np.eye(2) + 1))
    assert process.variance(1) ** 0.5 == pytest.approx(1.1547, abs=1e-4)
    assert AnyRounds(2).variance(1) ** 0.5 == pytest.approx(1.2071, abs=1e-4)


def least_variance(releases):
    """Of all covariances a I + b J under which no pattern costs more than 1. With the eigenvalues a and e = a + b R, a
    pattern of j ones costs j^2/(R e) + (j - j^2/R)/a: for every e the least a, and the least over a fine grid of e."""
    j = np.arange(1, releases + 1)
    along, across = j * j / releases, j - j * j / releases

    def variance(e):
        a = max((w / (1 - u / e) for u, w in zip(along[:-1], across[:-1], strict=True)), default=0.0)
        return a * (1 - 1 / releases) + e / releases

    low, high = float(releases), releases * (math.sqrt(releases) + 3)
    for _ in range(6):
        grid = np.linspace(low, high, 101)
        best = int(np.argmin([variance(e) for e in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 100)]
    return min(variance(low), variance((low + high) / 2), variance(high))


def test_no_gaussian_noise_is_much_better_and_for_squares_none_is():
    for releases in range(1, 65):
        least = least_variance(releases)
        halves, mine = ((math.sqrt(releases) + 1) / 2) ** 2, BySize(releases, p=2).variance(1)
        assert min(halves, mine) >= least * (1 - 1e-6)
        assert min(halves, mine) <= least * 1.0023
        if math.isqrt(releases) ** 2 == releases:
            assert halves == pytest.approx(least, rel=1e-6)
        assert AnyRounds(releases).variance(1) == pytest.approx(halves, rel=1e-5)
        assert releases == 1 or halves <= least * (1 + 1 / (releases**2 - 1))
    assert least_variance(2) == pytest.approx(4 / 3, rel=1e-6)


def test_laplace_noise_is_less_than_on_halves_for_every_number_of_releases():
    for releases in (1, 2, 3, 4, 9, 10, 100, 1000):
        assert BySize(releases, p=1).variance(1, 1) < AnyRounds(releases).variance(1, 1)
    assert AnyRounds(1).variance(1, 1) / BySize(1, p=1).variance(1, 1) == pytest.approx(2, rel=0.01)
    assert AnyRounds(2).variance(1, 1) / BySize(2, p=1).variance(1, 1) == pytest.approx(2.165, rel=0.01)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("releases", [1, 2, 5, 12])
def test_noise_has_the_claimed_covariance(kind, releases):
    p = 1 if kind == "pure" else 2
    process, share, count = BySize(releases, p=p), Share(kind, Fraction(1, 4)), 4000
    made = Mechanism(
        process,
        share,
        units=(1,) * count,
        norm1=Fraction(1),
        norm2_squared=Fraction(1),
    ).under(Coins(bytes(32)))
    drawn = np.array([made.draw(release)[0] / made.draw(release)[1] for release in range(1, releases + 1)])
    scale = 2 * 4**2 if p == 1 else 4
    common, fresh = (float(process.spread(level, p)) ** (3 - p) / process.denominator**2 for level in (0, 1))
    claimed = scale * (fresh * np.eye(releases) + common * process._shared)
    assert made.variances(1)[0] == pytest.approx(claimed[0, 0], rel=0.01)
    found = drawn @ drawn.T / count
    kurtosis = 6 if p == 1 else 3
    assert np.abs(found - claimed).max() < 5 * claimed[0, 0] * math.sqrt((kurtosis - 1) / count)


def test_it_serves_the_norm_it_was_made_for_and_no_other():
    gaussian = Share("gaussian", Fraction(1))
    with pytest.raises(InputError, match="the norm that this noise is made for"):
        Mechanism(
            BySize(4, p=1),
            gaussian,
            units=(1,),
            norm1=Fraction(1),
            norm2_squared=Fraction(1),
        ).under(Coins(bytes(32)))
    for bad in (0, -1, True, 1.5, 65):
        with pytest.raises(InputError):
            BySize(bad, p=2)
    with pytest.raises(InputError, match="expected 1 or 2"):
        BySize(4, p=3)


@pytest.mark.parametrize("p", [1, 2])
def test_shifts_are_steps(p):
    process = BySize(9, p=p)
    matrix, denominator = matrix_of(process)
    for s, e in itertools.combinations(range(10), 2):
        moved = matrix @ vector_of(process, difference(process.shift(s), process.shift(e)))
        assert moved.tolist() == [denominator * (s < release <= e) for release in range(1, 10)]
