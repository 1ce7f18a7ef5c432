"""The revised past: what would have been reported, knowing what is known now."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins
from retroact.ledger.definition import Add, Delete, unite_at
from retroact.noise import Bridge, OneSided, Rectangle, Schauder, Tree
from retroact.testing import Pair, Shape, StreamAlgorithm, check_noise_law, check_statistic, check_twin, history

SCHEMA = {"c": ra.Text(), "n": ra.Integer(0, 10)}


def stream(statistic, *, key=1, epsilon=1.0, delta=1e-6, horizon=64, **more):
    return ra.Stream(
        SCHEMA, {"r": statistic}, epsilon=epsilon, delta=delta, horizon=horizon, key=ra.Key.for_testing(key), **more
    )


STATISTICS = {
    "count, noise for every lag": (ra.Restated(ra.Count(), [0, 1, 3], across="lags"), {}),
    "count, one noise": (ra.Restated(ra.Count(), [0, 1, 3], across="rectangle"), {"horizons": (8,)}),
    "window": (ra.Restated(ra.Sum("n", window=3), [0, 2]), {}),
    "every": (ra.Restated(ra.Mean("n", every=2), [1, 2]), {"pairs": 8}),
    "every, one noise": (
        ra.Restated(ra.Mean("n", every=2), [1, 2], across="rectangle"),
        {"horizons": (8,), "pairs": 8},
    ),
    "histogram": (ra.Restated(ra.Histogram("c"), [0, 2]), {"deltas": (0.3,), "epsilon": 400.0}),
    "histogram, one noise": (
        ra.Restated(ra.Histogram("c"), [0, 2], across="rectangle"),
        {"deltas": (0.3,), "epsilon": 900.0, "horizons": (8,)},
    ),
    "declared bins": (ra.Restated(ra.Histogram("c", bins=["a", "DE"]), [0, 2]), {"horizons": (8,)}),
    "quantiles": (ra.Restated(ra.Quantiles("n", [0.5]), [0, 2]), {"horizons": (8,), "pairs": 6}),
    "quantiles, one noise": (
        ra.Restated(ra.Quantiles("n", [0.5]), [0, 2], across="rectangle"),
        {"horizons": (8,), "pairs": 6},
    ),
    "mapped": (ra.Restated(ra.Count().map(round), [1]), {"horizons": (8,), "pairs": 8}),
}


@pytest.mark.parametrize(("turn", "name"), [*enumerate(STATISTICS)], ids=STATISTICS)
def test_every_check(turn, name):
    """With pure or Gaussian noise in turns; in full below."""
    statistic, options = STATISTICS[name]
    effort = {"deltas": ((0.0,), (1e-6,))[turn % 2], **options, "horizons": (8,), "pairs": 5, "draws": 300}
    check_statistic(statistic, SCHEMA, **effort)


def test_every_check_without_a_horizon():
    """Where nothing but the count is on top of the noise."""
    count, _ = STATISTICS["count, noise for every lag"]
    check_statistic(count, SCHEMA, deltas=(1e-6,), horizons=(None,), pairs=5, draws=300)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
def test_every_check_in_full(name):
    statistic, options = STATISTICS[name]
    check_statistic(statistic, SCHEMA, **{"pairs": 12, **options})


def test_the_true_states_are_the_revised_ones():
    """At high epsilon the answers are the exact counts of RevData_{i,l}."""
    random = Random(3)
    shape = Shape(values=(("a", 1), ("b", 2)), rounds=12, updates=6)
    for across in ("lags", "rectangle"):
        for _ in range(10):
            sequence = history(shape, random)
            spec = ra.Specification(
                SCHEMA, {"r": ra.Restated(ra.Count(), [0, 2, 5], across=across)}, epsilon=1000.0, horizon=12
            )
            algorithm = StreamAlgorithm(spec, ra.Key.for_testing(1))
            for number, updates in enumerate(sequence, 1):
                release = algorithm.release(updates)["r"]
                ledger = algorithm.stream._core.ledger
                expected = {past: len(ledger.data(last=past)) for past in (number, number - 2, number - 5) if past >= 1}
                assert {past: round(v) for past, v in release.value.items()} == expected


def test_stamps_6_and_8_do_not_unite_and_the_past_shows_why():
    """The example of Appendix A: equal current data, other stamps."""

    def sequence(stamp):
        rounds = [()] * 10
        rounds[8] = (Add(("a", 1), stamp),)
        return tuple(rounds)

    assert unite_at(sequence(6), sequence(8)) is None
    answers = {}
    for stamp in (6, 8):
        spec = ra.Specification(SCHEMA, {"r": ra.Restated(ra.Count(), [0, 2, 3, 4])}, epsilon=1000.0, horizon=10)
        algorithm = StreamAlgorithm(spec, ra.Key.for_testing(1))
        answers[stamp] = [algorithm.release(updates)["r"].value for updates in sequence(stamp)][-1]
    # round 10 looks back on rounds 10, 8, 7 and 6
    assert {past: round(v) for past, v in answers[6].items()} == {10: 1, 8: 1, 7: 1, 6: 1}
    assert {past: round(v) for past, v in answers[8].items()} == {10: 1, 8: 1, 7: 0, 6: 0}


def test_a_check_that_forgets_stamps_would_be_caught():
    """Deleted and added again with the old stamp, the past is as it was: these do unite."""
    one = ((Add(("a", 1)),), (Delete(("a", 1), 1),), (Add(("a", 1), 1),), (), ())
    other = ((Add(("a", 1)),), (), (), (), ())
    assert unite_at(one, other) == 3
    spec = ra.Specification(SCHEMA, {"r": ra.Restated(ra.Count(), [0, 1, 2])}, epsilon=1.0, horizon=5)
    assert check_twin(lambda key: StreamAlgorithm(spec, key), [Pair(one, other, 3)]) == 6


@pytest.mark.parametrize("inner", [Schauder, Bridge, Tree])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 8])
def test_rectangles_by_brute_force(inner, horizon):
    """Every rectangle is hidden exactly, in every lag, at no more than the product of the two norms."""
    lags, rounds = range(horizon), np.arange(1, horizon + 1)
    processes = {lag: Rectangle(inner(horizon), horizon, lag=lag) for lag in lags}
    tables = {}
    for lag, process in processes.items():
        terms = process.weights_of(rounds)
        columns = zip(terms.levels.tolist(), terms.indices.tolist(), strict=True)
        nodes = [list(zip(*row, strict=True)) for row in columns]
        tables[lag] = nodes, terms.weights, terms.denominator
    largest = {1: Fraction(0), 2: Fraction(0)}
    for start in range(horizon):
        for end in range(start + 1, horizon + 1):
            for stamp in range(1, end + 1):
                moved = processes[0].rectangle(start, end, stamp)
                for lag, (nodes, weights, denominator) in tables.items():
                    shifts = np.array([[moved.get(node, 0) for node in row] for row in nodes])
                    inside = (start < rounds) & (rounds <= end) & (rounds - lag >= stamp)
                    assert ((shifts * weights).sum(axis=1) == denominator * inside).all()
                for p in largest:
                    size = sum(abs(v) ** p / processes[0].spread(level, p) for (level, _), v in moved.items())
                    largest[p] = max(largest[p], size)
    assert largest[1] <= processes[0].l1
    assert largest[2] <= processes[0].l2_squared
    if inner is Schauder and horizon > 1:
        past = OneSided(horizon)
        assert largest[2] == inner(horizon).l2_squared * past.l2_squared


def test_lags_share_their_nodes_only_where_the_noise_is_one():
    apart = stream(ra.Restated(ra.Count(), [0, 1], across="lags"))._core.engine.running["r"].noise.parts
    together = stream(ra.Restated(ra.Count(), [0, 1], across="rectangle"))._core.engine.running["r"].noise.parts

    def nodes(part, round):
        terms = part.process.at(round)
        return set(zip(terms.levels.tolist(), terms.indices.tolist(), strict=True))

    assert not nodes(apart[0], 5) & nodes(apart[1], 5)
    assert nodes(together[0], 5) & nodes(together[1], 6)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_few_lags_get_noise_of_their_own_and_many_share_one(delta):
    few = stream(ra.Restated(ra.Count(), [0, 7]), delta=delta, horizon=1023)
    many = stream(ra.Restated(ra.Count(), list(range(200))), delta=delta, horizon=1023)
    assert not few._core.engine.running["r"].noise.shared
    assert many._core.engine.running["r"].noise.shared
    assert "lags by" in "\n".join(few.plan()["r"].notes)


@pytest.mark.parametrize("across", ["lags", "rectangle"])
def test_the_noise_has_the_law_that_the_share_asks_for(across):
    """Over 4,000 keys' worth of coordinates, in two lags: variance as claimed, computed anew from the norms."""
    horizon, lags, draws = 15, [0, 4], 4000
    query = ra.LinearQuery(lambda c: np.zeros((len(c["n"]), draws), dtype=int), size=draws, norm1=1, norm2=1, name="0")
    one = stream(ra.Restated(query, lags, across=across), horizon=horizon, delta=0.0)
    for _ in range(11):
        release = one.close_round()["r"]
    tree = Bridge(horizon)
    for past, lag in ((11, 0), (7, 4)):
        noise = release.value[past]
        if across == "lags":
            scale = float(tree.l1) * len(lags)
            nodes = tree.variance(11, 1)
        else:
            scale = float(tree.l1 * OneSided(horizon).l1)
            nodes = tree.variance(11, 1) * OneSided(horizon).variance(11 - lag, 1)
        claimed = 2 * scale**2 * nodes
        assert abs(noise.var() / claimed - 1) < 5 * math.sqrt(5 / draws), lag


@pytest.mark.parametrize("across", ["lags", "rectangle"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_law_is_checked_in_every_lag(across, delta):
    """Twelve lags: nodes of far copies once fell out of a packed word, and went without noise."""
    restated = ra.Restated(ra.Count(), list(range(12)), across=across)
    spec = ra.Specification(SCHEMA, {"r": restated}, epsilon=1.0, delta=delta, horizon=40)
    assert list(check_noise_law(spec)) == [f"r, lag {lag}" for lag in range(12)]


def test_a_larger_share_than_claimed_would_be_caught(monkeypatch):
    from retroact.privacy import Share
    from retroact.statistics import restated
    from retroact.testing import check_sensitivity

    def spec():
        return ra.Specification(SCHEMA, {"r": ra.Restated(ra.Count(), [0, 1], across="lags")}, epsilon=1.0, horizon=8)

    check_sensitivity(spec(), Random(1), pairs=10)
    monkeypatch.setattr(restated, "Share", lambda kind, amount: Share(kind, amount * 2))
    broken = spec()
    with pytest.raises(ra.VerificationError, match="costs"):
        check_sensitivity(broken, Random(1), pairs=10)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_many_lags_all_have_noise(delta):
    """Of the claimed size in every lag: nodes of far copies once fell out of a packed word and went without."""
    one = stream(ra.Restated(ra.Count(), list(range(24)), across="lags"), horizon=40, delta=delta)
    one.add({"c": ["a"] * 777, "n": [1] * 777})
    for _ in range(30):
        release = one.close_round()["r"]
    assert len(release.value) == 24
    assert all(value != 777 for value in release.value.values())
    assert min(release.standard_error.values()) > 10
    for part in one._core.engine.running["r"].noise.parts:
        drawn, denominator = part.draw(30)
        named, same = part.sample(30, np.zeros((400, 2), dtype=np.uint64) + np.arange(400, dtype=np.uint64)[:, None])
        assert drawn[0] != 0
        assert denominator == same
        assert float(np.std(named[:, 0] / same)) == pytest.approx(math.sqrt(part.variances(30)[0]), rel=0.25)


def test_a_lag_beyond_the_horizon_is_an_error_in_the_plan():
    with pytest.raises(ra.InputError, match="nothing would ever be released"):
        stream(ra.Restated(ra.Count(), [1000], across="rectangle")).plan()
    partly = stream(ra.Restated(ra.Count(), [50, 200], across="rectangle"), horizon=100).plan()["r"]
    assert partly.typical_deviation > 0.7 * partly.standard_deviation


def test_a_lag_before_the_first_round_is_not_released():
    one = stream(ra.Restated(ra.Count(), [0, 2]))
    assert [sorted(one.close_round()["r"].value) for _ in range(4)] == [[1], [2], [1, 3], [2, 4]]


def test_a_successor_looks_back_no_further_than_its_own_first_round():
    one = stream(ra.Restated(ra.Count(), [0, 2], across="rectangle"))
    for _ in range(3):
        one.close_round()
    following = one.successor(epsilon=1.0, delta=1e-6, horizon=8, key=ra.Key.for_testing(2))
    assert [sorted(following.close_round()["r"].value) for _ in range(3)] == [[4], [5], [4, 6]]


def test_state_round_trip_in_the_middle():
    spec = ra.Specification(SCHEMA, {"r": ra.Restated(ra.Count(), [1, 3])}, epsilon=1.0, horizon=20)
    key = ra.Key.for_testing(4)
    one = ra.Stream.from_specification(spec, key=key)
    for number in range(1, 8):
        one.add({"c": ["a"] * number, "n": [1] * number})
        one.close_round()
    again = ra.Stream.from_state(spec, one.state(), key=key)
    assert [one.close_round().encode() for _ in range(6)] == [again.close_round().encode() for _ in range(6)]


def test_what_is_refused():
    for lags in ([], [-1], [1, 1], [1.5], [True], "1", 3):
        with pytest.raises(ra.InputError, match="lag"):
            ra.Restated(ra.Count(), lags)
    with pytest.raises(ra.InputError, match="distinct count has no restated series"):
        ra.Restated(ra.Distinct("c"), [1])
    with pytest.raises(ra.InputError, match="distinct count has no restated series"):
        ra.Restated(ra.Distinct("c").map(round), [1])
    with pytest.raises(ra.InputError, match="not restated itself"):
        ra.Restated(ra.Restated(ra.Count(), [1]), [1])
    with pytest.raises(ra.InputError, match="not restated itself"):
        ra.Restated(ra.Restated(ra.Count(), [1]).map(len), [1])
    with pytest.raises(ra.InputError, match="'lags' or 'rectangle'"):
        ra.Restated(ra.Count(), [1], across="both")
    with pytest.raises(ra.InputError, match="across"):
        stream(ra.Restated(ra.Count(), [1], across="rectangle"), horizon=None)
    with pytest.raises(ra.InputError, match="across"):
        stream(ra.Restated(ra.Count(window=3), [1], across="rectangle"))


def test_the_budget_has_its_own_line():
    spec = ra.Specification(
        SCHEMA, {"n": ra.Count(), "r": ra.Restated(ra.Count(), [1, 7])}, epsilon=1.0, delta=1e-6, horizon=100
    )
    assert spec.measure_of("n") == spec.measure_of("r")
    assert spec.mechanism("r", Coins(bytes(32))).share.amount == spec.shares["r"].amount / 2
    assert spec.measure.epsilon(1e-6) == pytest.approx(1.0)
