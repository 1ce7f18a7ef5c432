"""Interior points and quantiles of fields: answers, contracts, and the numbers that they promise."""

import datetime
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.coins.exact_cdf import exp_minus
from retroact.errors import InputError
from retroact.oneshot import InteriorPoint, Median, Quantile, QuantilePoints
from retroact.oneshot.exponential import quantile_law
from retroact.oneshot.quantiles import interior_records, quantile_points, quantile_records, rank_bound, told_apart
from retroact.schema import Date, Integer, Number, Rows, Schema, Text, Timestamp
from support.exact_laws import probabilities

COINS = Coins(bytes(32)).branch("points")
SCHEMA = Schema({
    "name": Text(), "amount": Number(-5, 500), "id": Integer(-(2**63), 2**63 - 1),
    "day": Date("2024-01-01", "2025-12-31"), "at": Timestamp("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
})  # fmt: skip


def rows_of(size):
    return SCHEMA.encode([
        {
            "name": f"n{i}", "amount": i % 100, "id": (-1) ** i * i * 2**40, "day": f"2024-{1 + i % 12:02}-15",
            "at": f"2024-{1 + i % 12:02}-15T00:00:00Z",
        }
        for i in range(size)
    ])[0]  # fmt: skip


def test_answers_are_values_of_the_field():
    rows = rows_of(600)
    assert abs(Median("amount", epsilon=1).run(rows, SCHEMA, COINS) - 49.5) < 10
    assert abs(Median("id", epsilon=1).run(rows, SCHEMA, COINS)) < 2**45
    assert isinstance(Median("day", epsilon=1).run(rows, SCHEMA, COINS), datetime.date)
    assert isinstance(InteriorPoint("at", epsilon=1).run(rows, SCHEMA, COINS), datetime.datetime)
    assert 80 < Quantile("amount", 0.9, epsilon=1).run(rows, SCHEMA, COINS) < 100


@pytest.mark.parametrize(
    "algorithm",
    [
        Median("amount", epsilon=1), InteriorPoint("id", epsilon=0.1), Quantile("day", 0.1, epsilon=3),
        QuantilePoints("amount", [0.1, 0.5, 0.9], epsilon=1), QuantilePoints("id", [0.2, 0.7], epsilon=1),
    ],
    ids=repr,
)  # fmt: skip
def test_answers_are_functions_of_the_multiset_and_exist_for_none(algorithm):
    algorithm.check(SCHEMA, "algorithm")
    rows = rows_of(50)
    shuffled = rows.take(np.random.default_rng(3).permutation(50))
    assert algorithm.run(rows, SCHEMA, COINS) == algorithm.run(shuffled, SCHEMA, COINS)
    empty = [algorithm.run(Rows.empty(SCHEMA), SCHEMA, COINS.branch(i)) for i in range(8)]
    assert len({str(answer) for answer in empty}) > 1


def test_contracts():
    for algorithm in (Median("id"), InteriorPoint("id"), Quantile("id", 0.3)):
        promised = algorithm.at(Fraction(1, 3)).contract
        assert (promised.epsilon, promised.delta, promised.bounded_range) == (Fraction(1, 3), 0, True)
        with pytest.raises(InputError, match="expected an epsilon for one run, got none"):
            algorithm.contract  # noqa: B018
    several = QuantilePoints("id", [0.1, 0.5, 0.9], epsilon=2)
    assert (several.contract.epsilon, several.contract.bounded_range, several.depth) == (2, False, 2)
    assert QuantilePoints("id", [0.1], epsilon=2).contract.bounded_range
    assert [QuantilePoints("id", [i / 100 for i in range(1, m + 1)]).depth for m in (1, 2, 3, 4, 7, 8)] == [
        1, 2, 2, 3, 3, 4,
    ]  # fmt: skip


def test_probabilities_are_exact_and_specifications_canonical():
    assert Quantile("id", 0.1).probability == Fraction(1, 10)
    assert Quantile("id", Fraction(1, 10)).spec() == Quantile("id", "0.1").spec() == Quantile("id", 0.1).spec()
    third = Quantile("id", Fraction(1, 3), epsilon=0.5)
    assert third.spec() == {"type": "quantile", "field": "id", "probability": "1/3", "epsilon": "0.5"}
    assert Quantile("id", third.spec()["probability"]).probability == Fraction(1, 3)
    assert Median("id").spec() == {"type": "median", "field": "id"}
    assert repr(InteriorPoint("id", epsilon=1)) == "InteriorPoint('id', epsilon=1)"


# What is promised ----------------------------------------------------------------------------------------------------


def miss(values, top, epsilon):
    """The exact probability that the interior point lies outside of the data."""
    law = quantile_law(values, 0, top, Fraction(1, 2), epsilon)
    pieces = zip(law.starts, law.lengths, law.weights, strict=True)
    masses = [(s < min(values) or s > max(values), n * w) for s, n, w in pieces]
    return Fraction(sum(m for out, m in masses if out), sum(m for _, m in masses))


def test_needed_numbers_are_enough_and_not_one_too_many():
    assert [interior_records(2**bits, Fraction(1), 0.05) for bits in (16, 32, 64)] == [27, 49, 94]
    for bits in (16, 64):
        top, n = 2**bits - 1, interior_records(2**bits, Fraction(1), 0.05)
        middle = top // 2
        # Worst case: two values next to each other, half of the records each.
        shapes = [[middle] * k + [middle + 1] * (n - k) for k in range(n + 1)]
        assert all(miss(shape, top, Fraction(1)) <= Fraction(1, 20) for shape in shapes)
        fewer = n - 2
        assert miss([middle] * (fewer // 2) + [middle + 1] * (fewer - fewer // 2), top, Fraction(1)) > Fraction(1, 20)


def test_needed_numbers_hold_for_every_small_data_set():
    for epsilon, beta in ((Fraction(1), 0.2), (Fraction(3), 0.05), (Fraction(1, 2), 0.6)):
        n = interior_records(6, epsilon, beta)
        assert n <= 12
        for data in combinations_with_replacement(range(6), n):
            assert miss(data, 5, epsilon) <= beta


def test_rank_errors_hold_for_every_small_data_set():
    for p in (Fraction(1, 4), Fraction(1, 2)):
        bound = rank_bound(6, p, Fraction(4), 0.1)
        assert bound < 3
        for data in combinations_with_replacement(range(6), 7):
            law = probabilities(data, 0, 5, p, Fraction(4))
            off = [max(sum(x < o for x in data) - p * 7, sum(x > o for x in data) - (1 - p) * 7) for o in range(6)]
            assert sum(q for q, u in zip(law, off, strict=True) if u > bound) <= 0.1


def test_needed_numbers_of_quantiles():
    assert quantile_records(2**64, Fraction(1, 2), Fraction(1), 0.05) == interior_records(2**64, Fraction(1), 0.05)
    assert quantile_records(2**64, Fraction(9, 10), Fraction(1), 0.05) == 852
    assert Quantile("id", 1.0, epsilon=1).needed(SCHEMA, 0.05) is None
    assert InteriorPoint("id", epsilon=1).needed(SCHEMA, 0.05) == 94
    assert Median("id", epsilon=1).rank_error(SCHEMA, 0.05) == pytest.approx(47.36, abs=0.01)
    n = quantile_records(2**16, Fraction(9, 10), Fraction(1), 0.05)
    law = quantile_law([7] * n, 0, 2**16 - 1, Fraction(9, 10), Fraction(1))
    assert law.probability(7) > Fraction(19, 20)
    with pytest.raises(InputError, match="expected a failure probability from 2\\^-40 to below 1, got 0"):
        Median("id", epsilon=1).needed(SCHEMA, 0)


# Several -------------------------------------------------------------------------------------------------------------


def joint(data, top, asked, epsilon):
    """The exact law of two quantiles, from that of one."""
    each = epsilon / 2
    found = Counter()
    low, high = asked
    for second, q in enumerate(probabilities(data, 0, top, high, each)):
        if second == 0:
            found[0, 0] += q
            continue
        below = [x for x in data if x < second]
        for first, r in enumerate(probabilities(below, 0, second - 1, low / high, each)):
            found[first, second] += q * r
    return found


def test_several_are_private_by_brute_force():
    asked, epsilon = (Fraction(1, 4), Fraction(3, 4)), Fraction(2)
    for n in range(4):
        for data in combinations_with_replacement(range(4), n):
            before = joint(list(data), 3, asked, epsilon)
            for more in range(4):
                after = joint([*data, more], 3, asked, epsilon)
                ratios = [after[o] / before[o] for o in before]
                for ratio in (max(ratios), 1 / min(ratios)):
                    assert ratio * (exp_minus(epsilon, 300) + 1) <= 1 << 300


def test_several_follow_that_law():
    data, asked = [0, 1, 2, 3, 3], (Fraction(1, 4), Fraction(3, 4))
    law = joint(data, 3, asked, Fraction(2))
    draws = 800
    found = Counter(
        tuple(quantile_points(data, 0, 3, asked, Fraction(2), COINS.branch("law", i))) for i in range(draws)
    )
    assert found.keys() <= law.keys()
    chi2 = sum((found[o] - draws * float(q)) ** 2 / (draws * float(q)) for o, q in law.items())
    # 9 degrees of freedom: above 27.9 with probability 0.001.
    assert chi2 < 27.9


def test_several_are_monotone_whatever_the_records():
    random = np.random.default_rng(5)
    asked = [Fraction(i, 8) for i in range(9)]
    for top in (0, 1, 3, 50):
        for size in (0, 1, 30):
            values = random.integers(0, top, size, endpoint=True)
            found = quantile_points(values, 0, top, asked, Fraction(1), COINS.branch("up", top, size))
            assert len(found) == 9
            assert found == sorted(found)
            assert 0 <= found[0] <= found[-1] <= top


def test_ties_do_not_move_quantiles():
    """Four in five records have one value: it is every quantile from 0.1 to 0.9, which no bits would lose."""
    schema = Schema({"x": Integer(0, 100)})
    rows = Rows.from_tuples(schema, [(x,) for x in [*range(40, 50), *[50] * 80, *range(51, 61)] * 100])
    asked = [0.2, 0.3, 0.5, 0.7, 0.8]
    for i in range(5):
        assert QuantilePoints("x", asked, epsilon=2).run(rows, schema, COINS.branch("ties", i)) == dict.fromkeys(
            asked, 50
        )
    plain = quantile_points(
        np.sort(rows.columns["x"]), 0, 100, [Fraction(str(p)) for p in asked], Fraction(2), COINS.branch("plain")
    )
    assert plain[0] < 50 < plain[-1]


def test_random_bits_keep_values_and_fit_any_width():
    values = np.array([0, 5, 5, 2**60], dtype=np.uint64)
    for last in (2**60, 2**64 - 1):
        apart = [int(v) for v in told_apart(values, last, 16, COINS)]
        assert [v >> 16 for v in apart] == values.tolist()
        assert apart == sorted(apart)
        assert len(set(apart)) == 4


def test_rank_errors_of_several_hold():
    schema = Schema({"x": Integer(0, 10**6)})
    algorithm = QuantilePoints("x", [0.1, 0.25, 0.5, 0.75, 0.9], epsilon=2)
    bound = algorithm.rank_error(schema, 0.1)
    assert 100 < bound < 400
    values = np.random.default_rng(7).integers(0, 10**6, 5000)
    rows = Rows.from_tuples(schema, [(int(v),) for v in values])
    worst = [
        max(
            abs(np.count_nonzero(values <= v) - p * 5000)
            for p, v in algorithm.run(rows, schema, COINS.branch("error", i)).items()
        )
        for i in range(20)
    ]
    assert np.mean(np.array(worst) <= bound) >= 0.9


def test_errors():
    with pytest.raises(InputError, match=r"expected a field of type Number or Integer or Date or Timestamp, got Text"):
        Median("name", epsilon=1).check(SCHEMA, "algorithm")
    with pytest.raises(InputError, match=r"expected one of the fields .* got 'nothing' - at algorithm.field"):
        Median("nothing", epsilon=1).check(SCHEMA, "algorithm")
    for wrong in (1.5, -0.1, "x", True, "1/0", None):
        with pytest.raises(InputError, match="expected a probability between 0 and 1"):
            Quantile("id", wrong)
    for wrong in ([], "0.5", 0.5):
        with pytest.raises(InputError, match="expected a list of probabilities"):
            QuantilePoints("id", wrong)
    with pytest.raises(InputError, match="expected every probability once"):
        QuantilePoints("id", [0.5, "1/2"])
    with pytest.raises(InputError, match="expected the name of a field, got 3"):
        Median(3)
    with pytest.raises(InputError, match="expected a number above 0"):
        Median("id", epsilon=0)
