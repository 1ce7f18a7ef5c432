"""Intervals hold the truth as often as they say: not less, and not much more.

`benchmarks/coverage.py` measures more cells, and more of each.
"""

import math

import numpy as np
import pytest

import retroact as ra
from retroact.statistics.answer import Noisy
from retroact.statistics.bound import At
from support.tiers import in_turns

BUDGETS = [(0.0, 2.0), (1e-6, 0.5)]
BOTH = pytest.mark.parametrize(("delta", "epsilon"), BUDGETS, ids=["pure", "gaussian"])
RECORDS, ROUNDS, PAIRS = 2000, 15, 800
# What each level may cover at most where there is little noise; one test inverted has less to spare than a quantile.
MOST = {0.95: 0.985, 0.5: 0.65}
MOST_OF_ONE_TEST = {0.95: 0.985, 0.5: 0.6}
# Chance that a coverage within its bounds is found outside them: 32 comparisons, so 1 in 3,000 for the whole file.
ERROR = 1e-5
FIELD = ra.Number(0, 1000, step="0.01")
P, POINT = 0.4, 400.25
STATISTICS = {
    "mean": ra.Mean("v"),
    "variance": ra.Variance("v"),
    "quantiles": ra.Quantiles("v", [P]),
    "distribution function": ra.Quantiles("v", [], cdf=[POINT]),
}
TRUTH = {
    "mean": np.mean,
    "variance": np.var,
    "quantiles": lambda values: np.sort(values)[math.ceil(P * RECORDS) - 1],
    "distribution function": lambda values: (values <= POINT).mean(),
}


def at_most(hits, chance):
    """P(a binomial variable <= hits)."""
    logs = [
        math.lgamma(PAIRS + 1) - math.lgamma(k + 1) - math.lgamma(PAIRS - k + 1)
        + k * math.log(chance) + (PAIRS - k) * math.log1p(-chance)
        for k in range(hits + 1)
    ]  # fmt: skip
    return math.fsum(map(math.exp, logs))


def specified(statistic, delta, epsilon=1.0, rounds=ROUNDS, field=FIELD):
    return ra.Specification({"v": field}, {"x": statistic}, epsilon=epsilon, delta=delta, horizon=rounds)


def interval_of(name, answer, level):
    found = answer.interval(level)
    return found[P] if name == "quantiles" else found.cdf[POINT] if name == "distribution function" else found


@pytest.mark.parametrize(("name", "budget"), in_turns(STATISTICS, BUDGETS))
def test_intervals_cover_what_they_say(name, budget):
    """Independent pairs of key and data, one round of each by random access."""
    spec = specified(STATISTICS[name], *budget)
    bound, ones = spec.bounds["x"], np.ones(RECORDS, dtype=np.int64)
    hits = dict.fromkeys(MOST, 0)
    for seed in range(PAIRS):
        random = np.random.default_rng([7, seed])
        values = np.round(1000 * random.beta(*random.uniform(1, 5, 2), RECORDS), 2)
        rows, _ = spec.schema.encode({"v": values})
        noise = spec.mechanism("x", ra.Key.for_testing(seed).coins("stream"))
        totals = bound.gather(rows, ones)
        answer = bound.release([totals], noise, At(1 + seed % ROUNDS, 1)).answer
        for level in MOST:
            low, high = interval_of(name, answer, level)
            hits[level] += low <= TRUTH[name](values) <= high
    assert noise.deviation_of(0, ROUNDS // 2) < RECORDS / 10
    for level, most in (MOST if name == "quantiles" else MOST_OF_ONE_TEST).items():
        assert at_most(hits[level], level) > ERROR, (level, hits[level] / PAIRS)
        assert 1 - at_most(hits[level] - 1, most) > ERROR, (level, hits[level] / PAIRS)


def test_the_check_of_coverage_can_fail():
    assert at_most(int(0.9 * PAIRS), 0.95) < ERROR
    assert at_most(int(0.41 * PAIRS), 0.5) < ERROR
    assert 1 - at_most(PAIRS - 1, 0.985) < ERROR
    assert 1 - at_most(int(0.73 * PAIRS), 0.65) < ERROR


@pytest.mark.parametrize("statistic", [ra.Mean("v"), ra.Variance("v")], ids=["mean", "variance"])
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
def test_intervals_are_functions_of_the_noisy_totals_alone(statistic, delta):
    """The same noisy totals, of other exact ones: the same answer, interval and error."""
    spec = specified(statistic, delta)
    noise = spec.mechanism("x", ra.Key.for_testing(1).coins("stream"))
    random, answers = np.random.default_rng(1), []
    for low in (0, 600):
        rows, _ = spec.schema.encode({"v": np.round(random.uniform(low, 1000, 500), 2)})
        exact = spec.bounds["x"].gather(rows, np.ones(500, dtype=np.int64))
        drawn, denominator = noise.draw(3)
        if not answers:
            published = exact * denominator + drawn
        moved = Noisy(exact * denominator + (published - exact * denominator), denominator, noise, 3, 3)
        answers.append(spec.statistics["x"].answer(moved, spec.schema))
    one, two = answers
    assert (one.value, one.standard_error) == (two.value, two.standard_error)
    assert [one.interval(level) for level in (0.5, 0.95)] == [two.interval(level) for level in (0.5, 0.95)]


@pytest.mark.parametrize("statistic", [ra.Mean("v"), ra.Variance("v")], ids=["mean", "variance"])
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
def test_intervals_are_nested_within_bounds_and_hold_the_value(statistic, delta):
    """Few records and many, at both bounds and between them: whatever the noise does."""
    spec, levels = specified(statistic, delta, rounds=100), (0.05, 0.5, 0.683, 0.95, 0.99, 0.9999)
    widest = (0.0, 1000.0) if statistic.kind == "mean" else (0.0, 250_000.0)
    known = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        size = int(random.choice([1, 20, 60, 200, 3000]))
        rows, _ = spec.schema.encode({"v": np.round(random.uniform(0, 1000, 2)[random.integers(0, 2, size)], 2)})
        noise = spec.mechanism("x", ra.Key.for_testing(seed).coins("stream"))
        totals = spec.bounds["x"].gather(rows, np.ones(size, dtype=np.int64))
        answer = spec.bounds["x"].release([totals], noise, At(37, 37)).answer
        found = [answer.interval(level) for level in levels]
        if answer.value is None:
            assert set(found) == {widest}
            continue
        known += 1
        ends = [widest[0], *(low for low, _ in found[::-1]), answer.value, *(high for _, high in found), widest[1]]
        assert ends == sorted(ends)
    assert known > 20
