"""The distribution function from blocks: the matching of its proof, its privacy by exact laws, its error."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.errors import InputError
from retroact.oneshot import BOTTOM, BlockCDF
from retroact.oneshot.block_cdf import (
    GAPS,
    POINTS,
    block_cdf,
    block_error,
    estimate,
    gap_length,
    lengths,
    used_parts,
    walk_bound,
)
from retroact.oneshot.ordered_domain import laplace
from retroact.paper import tree_log
from retroact.schema import Integer, Rows, Schema
from support.exact_laws import probabilities

COINS = Coins(bytes(32)).branch("blocks")
TINY = Fraction(1, 10**9)


def matched(rank, used, gaps):
    """Which gap the proof shortens for a value at this rank (from 1 on) of the larger data, and where the value is."""
    start = 0
    for j, gap in enumerate(gaps):
        if rank <= start + used:
            return j
        if rank <= start + used + gap:
            return j + 1
        start += used + gap
    return len(gaps)


def own_block(rank, used, gaps):
    """The matching that the proof warns of: the gap of the block that holds the value."""
    start = 0
    for j, gap in enumerate(gaps):
        start += used + gap
        if rank <= start:
            return j
    return len(gaps)


def shortened(gaps, j):
    return tuple(gap - (i == j) for i, gap in enumerate(gaps))


def replaced(one, other):
    """How many records of one are not in the other; both have the same number."""
    assert len(one) == len(other)
    return sum((Counter(one) - Counter(other)).values())


@pytest.mark.parametrize("used", [1, 2, 3])
def test_one_record_changes_one_record_of_one_used_part(used):
    small = [10, 20, 30, 40, 50, 60, 70]
    for rank in range(1, 9):
        large = sorted([*small, 10 * rank - 5])
        seen = set()
        for gaps in product(range(4), repeat=4):
            j = matched(rank, used, gaps)
            if j < 4 and gaps[j] == 0:
                continue
            image = shortened(gaps, j)
            assert image not in seen, "two of the larger data match one of the smaller"
            seen.add(image)
            parts = zip(used_parts(large, 99, used, gaps), used_parts(small, 99, used, image), strict=True)
            moved = [replaced(mine, other) for mine, other in parts]
            assert sum(moved) <= 1, (rank, gaps, moved)


def test_matching_by_the_own_block_counts_twice():
    images = Counter(shortened(gaps, own_block(4, 2, gaps)) for gaps in product(range(1, 4), repeat=4))
    assert max(images.values()) > 1


def law(data, top, used, gap, blocks, epsilon):
    """The exact law (in floats) of the points of so many blocks, over gaps up to 60."""
    rate = float(GAPS * epsilon)
    q = math.exp(-rate)
    noise = {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-120, 121)}
    length = Counter()
    for z, mass in noise.items():
        length[max(0, gap + z)] += mass
    known, found = {}, Counter()

    def point(part):
        key = tuple(part)
        if key not in known:
            known[key] = [float(p) for p in probabilities(key, 0, top, Fraction(1, 2), POINTS * epsilon / 2)]
        return known[key]

    grouped = Counter()
    for gaps in product(length, repeat=blocks - 1):
        parts = used_parts(data, top, used, [*gaps, 0])
        grouped[tuple(map(tuple, parts))] += math.prod(length[g] for g in gaps)
    for parts, mass in grouped.items():
        for points in product(range(top + 1), repeat=blocks):
            found[points] += mass * math.prod(point(p)[o] for p, o in zip(parts, points, strict=True))
    return found


def excess(one, other, epsilon):
    """The smallest delta: how much of the one is above e^epsilon times the other."""
    return sum(max(0.0, one[o] - math.exp(epsilon) * other[o]) for o in one)


def test_privacy_by_exact_laws():
    epsilon, used, gap = Fraction(2), 2, 3
    spent = float((POINTS + GAPS) * epsilon)
    q = math.exp(-float(GAPS * epsilon))
    delta, worst, tight = q**gap / (1 + q), 0.0, 0.0
    for n in range(7):
        for data in combinations_with_replacement(range(3), n):
            before = law(list(data), 2, used, gap, 2, epsilon)
            for more in range(3):
                after = law(sorted([*data, more]), 2, used, gap, 2, epsilon)
                worst = max(worst, excess(before, after, spent), excess(after, before, spent))
                tight = max(tight, excess(before, after, spent / 4), excess(after, before, spent / 4))
    assert worst <= delta
    # With a quarter of the budget the same laws are too far apart.
    assert tight > delta / 10


def test_gaps_are_longer_than_their_noise():
    for epsilon, delta in ((Fraction(1), TINY), (Fraction(3), Fraction(1, 100))):
        gap = gap_length(epsilon, delta)
        q = math.exp(-float(GAPS * epsilon))
        assert q**gap / (1 + q) < delta < q ** (gap - 2)
        assert lengths(gap + 5, epsilon, delta) == (5, gap)


def test_the_walk_stays_within_its_bound():
    steps, scale, runs = 40, 5, 4000
    bound = walk_bound(steps, float(scale), 0.05)
    walks = np.abs(np.cumsum(laplace(Fraction(1, scale), COINS, steps * runs).reshape(runs, steps), axis=1)).max(axis=1)
    assert np.mean(walks > bound) <= 0.05
    assert np.mean(walks > bound / 2) > 0.05


def worst_error(values, pairs, block, top):
    """Over all values of the domain: the estimate is constant between pairs, and the truth between values."""
    places = sorted({0, top, *values.tolist(), *(value for value, _ in pairs)})
    places = sorted({p for place in places for p in (place - 1, place) if 0 <= p <= top})
    truth = np.searchsorted(values, places, side="right")
    return max(abs(estimate(pairs, block, p) - int(t)) for p, t in zip(places, truth, strict=True))


@pytest.mark.parametrize("shape", ["uniform", "equal", "two", "skewed", "few"])
def test_the_error_is_as_promised(shape):
    random, top, epsilon, block = np.random.default_rng(11), 2**32 - 1, Fraction(2), 320
    size = 150 if shape == "few" else 8000
    values = np.sort({
        "uniform": random.integers(0, top, size),
        "few": random.integers(0, top, size),
        "equal": np.full(size, top // 3),
        "two": np.repeat([top // 2, top // 2 + 1], size // 2),
        "skewed": (random.random(size) ** 8 * top).astype(np.int64),
    }[shape])  # fmt: skip
    bound = block_error(top + 1, size, block, epsilon, TINY, 0.1)
    assert bound < 700
    runs = 12
    worst = [
        worst_error(values, block_cdf(values, 0, top, block, epsilon, COINS.branch(shape, i)), block, top)
        for i in range(runs)
    ]
    assert sum(w > bound for w in worst) <= 2


def test_no_promise_for_blocks_that_are_too_small():
    assert block_error(2**64, 10**5, 200, Fraction(1), TINY, 0.05) == math.inf
    assert block_error(2**64, 10**5, 800, Fraction(1), TINY, 0.05) < 1200
    assert block_error(2**64, 10**9, 800, Fraction(1), Fraction(1, 100), 0.05) == math.inf


def test_points_may_come_from_another_algorithm():
    def point(values, lower, upper, epsilon, coins):
        return tree_log(values, upper.bit_length(), epsilon, Fraction(1, 10**4), 0.1, coins)

    values = np.sort(np.random.default_rng(2).integers(0, 2**40, 6000))
    pairs = block_cdf(values, 0, 2**40 - 1, 1500, Fraction(4), COINS, point=point)
    assert 3 <= len(pairs) <= 5
    assert worst_error(values, pairs, 1500, 2**40 - 1) < 1600
    none = block_cdf(values, 0, 2**40 - 1, 1500, Fraction(4), COINS, point=lambda *_: BOTTOM)
    assert none == []


def test_it_is_a_function_of_the_multiset_and_exists_for_none():
    schema = Schema({"x": Integer(-(2**63), 2**63 - 1)})
    algorithm = BlockCDF("x", 300, epsilon=2)
    algorithm.check(schema, "algorithm")
    rows = Rows.from_tuples(schema, [(x,) for x in range(-500, 500)])
    shuffled = rows.take(np.random.default_rng(3).permutation(1000))
    answer = algorithm.run(rows, schema, COINS)
    assert answer == algorithm.run(shuffled, schema, COINS)
    assert all(-(2**63) <= value < 2**63 for value, _ in answer)
    assert [rank for _, rank in answer] == [
        i * 300 + (300 - gap_length(Fraction(2), TINY)) // 2 for i in range(len(answer))
    ]
    assert len(algorithm.run(Rows.empty(schema), schema, COINS)) == 1


def test_contract_and_specification():
    algorithm = BlockCDF("x", 500)
    assert algorithm.at(Fraction(1)).contract.delta == TINY
    assert algorithm.at(Fraction(1)).contract.epsilon == 1
    assert not algorithm.at(Fraction(1)).contract.bounded_range
    assert algorithm.spec() == {"type": "block_cdf", "field": "x", "block": 500}
    schema = Schema({"x": Integer(0, 2**32 - 1)})
    assert algorithm.at(Fraction(2)).error(schema, 10**5, 0.05) < 800


def test_errors():
    with pytest.raises(InputError, match="expected blocks of more than 104 records, the length of a gap, got 50"):
        BlockCDF("x", 50, epsilon=1)
    with pytest.raises(InputError, match="expected a whole number of records from 1 on, got 0"):
        BlockCDF("x", 0)
    for wrong in (0, 1, True, "x"):
        with pytest.raises(InputError, match="expected a number above 0 and below 1"):
            BlockCDF("x", 500, delta=wrong)
