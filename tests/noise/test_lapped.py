"""The lapped tree: its identity and its sensitivity in integers, over all pairs of boundaries."""

import math
from fractions import Fraction

import numpy as np
import pytest

import retroact as ra
from retroact.coins import DiscreteLaplace, Key
from retroact.errors import InputError
from retroact.noise import Bridge, Lapped, Mechanism, OneSided, Rectangle
from retroact.noise.default_process import PROCESSES
from retroact.noise.lapped import default_radices, spans_and_counts, widths_for
from retroact.privacy import split

PURE = split(1.0, 0, {"a": "pure"}, {})["a"]
SHAPES = [
    (40, (4,)), (63, (4, 4)), (63, (8,)), (100, (4, 8)), (100, (16,)), (200, (8, 4)), (200, (4, 4)),
    (255, (16,)), (255, (8, 8)), (255, (4, 4, 4)), (300, (32,)),
]  # fmt: skip
DEFAULTS = [*range(1, 41), 63, 100, 127, 200, 365]


def matrices(process):
    """The weights of all rounds and the shifts of all boundaries, in steps of the lattice; the levels of the nodes."""
    rounds = np.arange(1, process.horizon + 1)
    terms = process.weights_of(rounds)
    starts = np.concatenate([[0], np.cumsum([process.nodes(level) for level in range(process.levels)])])
    weights = np.zeros((process.horizon, starts[-1]), dtype=np.int64)
    np.add.at(weights, (rounds[:, None] - 1, starts[terms.levels] + terms.indices), terms.weights)
    shifts = np.zeros((starts[-1], process.horizon + 1), dtype=np.int64)
    for boundary in range(process.horizon + 1):
        for (level, index), value in process.shift(boundary).items():
            assert 0 <= index < process.nodes(level)
            shifts[starts[level] + index, boundary] += value
    return weights, shifts, np.repeat(np.arange(process.levels), np.diff(starts)), terms.denominator


def check_identity(process):
    """L(shift(s)) is 1[s < round] and a part that is the same for all s: the identity for all pairs."""
    weights, shifts, _, denominator = matrices(process)
    steps = np.arange(process.horizon + 1) < np.arange(1, process.horizon + 1)[:, None]
    rest = weights @ shifts - denominator * steps
    assert (rest == rest[:, :1]).all(), process


def largest(process):
    """The largest l1 over all pairs of boundaries, and over single ones."""
    _, shifts, levels, _ = matrices(process)
    inverse = [1 / process.spread(level, 1) for level in range(process.levels)]
    common = math.lcm(*(one.denominator for one in inverse))
    scaled = shifts * np.array([int(one * common) for one in inverse])[levels][:, None]
    pairs = max(int(np.abs(scaled - scaled[:, [s]]).sum(axis=0).max()) for s in range(scaled.shape[1]))
    return Fraction(pairs, common), Fraction(int(np.abs(scaled).sum(axis=0).max()), common)


@pytest.mark.parametrize("horizon", DEFAULTS)
def test_identity_and_l1_over_all_pairs_as_chosen(horizon):
    process = Lapped(horizon)
    check_identity(process)
    assert largest(process) == (process.l1, process.l1 / 2)


@pytest.mark.parametrize(("horizon", "radices"), SHAPES)
def test_identity_and_l1_over_all_pairs_of_other_shapes(horizon, radices):
    process = Lapped(horizon, radices=radices)
    check_identity(process)
    two, one = largest(process)
    assert one == process.l1 / 2
    assert two <= process.l1
    if process.nodes(process.levels - 1) >= 6:  # room for two ends that share no node
        assert two == process.l1


def test_a_wrong_weight_is_caught():
    class Wrong(Lapped):
        def terms_at(self, rounds):
            terms = super().terms_at(rounds)
            terms.weights[rounds == 17, 3] += 1
            return terms

    with pytest.raises(AssertionError):
        check_identity(Wrong(63))


def test_shares_that_are_not_those_of_the_weights_are_caught():
    class Even(Lapped):
        def shift(self, boundary):
            left = boundary // 8
            return {(0, boundary): 1, (1, left): 2, (1, left + 1): 2}

    with pytest.raises(AssertionError):
        check_identity(Even(63))


def test_a_claim_of_one_end_for_two_is_caught():
    class Cheap(Lapped):
        def charge(self, p):
            return super().charge(p) / 2

    assert largest(Cheap(63))[0] > Cheap(63).l1


def test_the_revised_past_over_all_rectangles():
    """The product with the past hides rectangles, at the product of both costs: pure noise is moved by integers."""
    process, rounds = Lapped(20, radices=(4,)), 20
    found = Fraction(0)
    for lag in (0, 3):
        crossed = Rectangle(process, rounds, lag=lag)
        terms = crossed.weights_of(np.arange(1, rounds + 1))
        for start, end in [(0, 20), (2, 19), (5, 6), (7, 12)]:
            for stamp in (1, 4, 20):
                moved = crossed.rectangle(start, end, stamp)
                for round in range(1, rounds + 1):
                    one = terms.of(round - 1)
                    nodes = zip(one.levels.tolist(), one.indices.tolist(), one.weights.tolist(), strict=True)
                    total = sum(weight * moved.get((level, index), 0) for level, index, weight in nodes)
                    inside = start < round <= end and round - lag >= stamp
                    assert total == (terms.denominator if inside else 0)
                found = max(found, sum(abs(v) / crossed.spread(level, 1) for (level, _), v in moved.items()))
    assert found == crossed.l1 == process.l1 * OneSided(rounds).l1


@pytest.mark.parametrize("horizon", [1, 2, 3, 8, 20, 63, 100, 365, 1000, 1023, 1024, 10_000, 65_535, 65_536])
def test_no_worse_than_a_bridge_in_the_worst_round(horizon):
    lapped, bridge = Lapped(horizon), Bridge(horizon)
    assert lapped.outlook(1, horizon).deviation <= bridge.outlook(1, horizon).deviation * (1 + 1e-9)


def test_errors_over_long_horizons():
    """Worst and root-mean-square deviations at epsilon = 1."""
    for horizon, worst, mean in [
        (255, 14.67, 12.82), (1023, 20.74, 18.02), (4095, 26.08, 23.30), (10_000, 30.27, 27.0), (65_535, 39.15, 35.22),
    ]:  # fmt: skip
        process = Lapped(horizon)
        variances = process.variances(np.arange(1, horizon + 1), 1)
        found = [float(process.l1) * math.sqrt(2 * v) for v in (variances.max(), variances.mean())]
        assert found == pytest.approx([worst, mean], rel=2e-3)
    assert found[0] <= 39.2


def test_measured_deviations_are_those_that_are_claimed():
    copies, one = 20_000, Fraction(1)
    coins = Key.for_testing(1).coins("lapped")
    made = Mechanism(Lapped(200), PURE, units=(3,) * copies, norm1=one, norm2_squared=one).under(coins)
    for round in (1, 77, 200):
        numerators, denominator = made.draw(round)
        claimed = made.deviation_of(0, round)
        # the relative deviation of a sample variance of Laplace sums is below sqrt(5 / copies)
        assert np.std(numerators / denominator) == pytest.approx(claimed, rel=0.04)
    law = made.law(1, 3)
    assert isinstance(law, DiscreteLaplace)
    assert law.scale == 3 * made.process.l1 * 4 * Fraction(*made.process.widths[:2])


def test_the_shape_follows_the_horizon():
    assert default_radices(20) == ()
    assert [default_radices((1 << m) - 1) for m in (8, 12, 16)] == [(16,), (16, 16), (16, 16, 16)]
    assert widths_for((16, 16, 16), spans_and_counts(65_535, (16, 16, 16))[1][-1]) == (8, 8, 8, 9)
    for m in range(1, 41):
        process = Lapped(1 << m)
        terms = process.weights_of(np.linspace(1, 1 << m, 50).astype(np.int64))
        assert np.abs(terms.weights.astype(float)).sum(axis=1).max() < 1 << 62
        assert Lapped.from_spec(process.spec(), "noise") == process
    table = {"type": "lapped", "horizon": 63, "radices": [16], "widths": [1, 2]}
    assert Lapped.from_spec(table, "noise").l1 == 6, "what a store wrote is read, whatever would be chosen now"


@pytest.mark.parametrize("radices", [(2, 8), (3,), (16, 16), (12,), (4,) * 10])
def test_bad_radices(radices):
    with pytest.raises(InputError, match="radices"):
        Lapped((1 << 40) if len(radices) > 2 else 63, radices=(4,) * 20 if len(radices) > 2 else radices)


@pytest.mark.parametrize("widths", [(8,), (8, 0), (8, -1), (8, 8, 8), (8, 1 << 20)])
def test_bad_widths(widths):
    with pytest.raises(InputError, match="widths"):
        Lapped(63, radices=(8,), widths=widths)


def test_lapped_noise_is_for_pure_streams():
    count = {"n": ra.Count(noise="lapped")}
    schema = {"v": ra.Boolean()}
    pure = ra.Specification(schema, count, epsilon=1.0, horizon=100)
    assert pure.processes["n"] == Lapped(100)
    assert ra.Specification(schema, {"n": ra.Count()}, epsilon=1.0, horizon=100).choice.noise == {"n": "lapped"}
    assert ra.Specification(schema, {"n": ra.Count()}, epsilon=1.0, horizon=15).choice.noise == {"n": "bridge"}
    with pytest.raises(InputError, match="pure epsilon"):
        ra.Specification(schema, count, epsilon=1.0, delta=1e-6, law="gaussian", horizon=100)
    assert ra.Specification(schema, count, epsilon=1.0, delta=1e-6, horizon=100).choice.law == "laplace"
    with pytest.raises(InputError, match="window"):
        ra.Specification(schema, count, epsilon=1.0, horizon=100, window=5)
    with pytest.raises(InputError, match="horizon"):
        ra.Specification(schema, count, epsilon=1.0)


def test_a_store_that_was_made_with_a_bridge_keeps_it(tmp_path, monkeypatch):
    """A version without lapped noise makes the store; this one opens it."""
    schema, key = {"v": ra.Boolean()}, ra.Key.for_testing(1)
    budget = {"epsilon": 1.0, "horizon": 100, "key": key}

    def close(stream, rounds):
        return [stream.close_round()["n"].to_dict() for _ in range(rounds)]

    with monkeypatch.context() as before:
        before.delitem(PROCESSES, "lapped")
        whole = close(ra.Stream(schema, {"n": ra.Count()}, **budget), 4)
        with ra.Stream.open(tmp_path / "s", schema, {"n": ra.Count()}, **budget) as stream:
            assert close(stream, 2) == whole[:2]
    with ra.Stream.open(tmp_path / "s", key=key) as stream:
        assert stream.specification.choice.noise == {"n": "bridge"}
        assert close(stream, 2) == whole[2:]
    assert close(ra.Stream(schema, {"n": ra.Count()}, **budget), 2) != whole[:2]


@pytest.mark.parametrize("unit", [1, 1 << 16, 1 << 32])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_large_units(unit, epsilon):
    share, one = split(epsilon, 0, {"a": "pure"}, {})["a"], Fraction(1)
    coins = Key.for_testing(1).coins("wide")
    made = Mechanism(Lapped(65_535), share, units=(unit,), norm1=one, norm2_squared=one).under(coins)
    numerators, denominator = made.draw(40_000)
    assert abs(int(numerators[0]) / denominator) < 40 * made.deviation_of(0, 40_000)
    if unit / epsilon <= 1 << 24:
        assert numerators.dtype == np.int64, "fast arithmetic for all but the largest"
