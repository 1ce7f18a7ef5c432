"""The coins of maps: every map and every lag has its own, and they are the same whenever key and data are."""

import pytest

import retroact as ra
from retroact.coins import Key
from retroact.ledger.definition import Add, Delete
from retroact.testing import Pair, StreamAlgorithm, check_twin

SCHEMA = {"n": ra.Integer(0, 10)}
ROUNDS = 5


def bits(coins):
    return int(coins.words([0], [0]).block(0)[0][0, 0])


def recorder(seen, label):
    def function(value, shared, fresh):
        seen.append((label, bits(shared), bits(fresh)))
        return value

    return function


def run(statistic, *, key=1, **options):
    stream = ra.Stream(
        SCHEMA, {"m": statistic}, epsilon=5.0, delta=1e-6, horizon=16, key=ra.Key.for_testing(key), **options
    )
    for n in range(ROUNDS):
        stream.add({"n": n})
        stream.close_round()


def mapped(statistic, seen, *labels):
    for label in labels:
        statistic = statistic.map(recorder(seen, label), name=label, coins=True)
    return statistic


def test_nested_maps_get_different_coins():
    seen = []
    run(mapped(ra.Count(), seen, "inner", "middle", "outer"))
    assert len(seen) == 3 * ROUNDS
    assert len({shared for _, shared, _ in seen}) == 3, "one for each map, the same in all rounds"
    assert len({fresh for _, _, fresh in seen}) == 3 * ROUNDS


@pytest.mark.parametrize("across", ["lags", "rectangle"])
def test_every_lag_gets_coins_of_its_own(across):
    seen = []
    run(ra.Restated(mapped(ra.Count(), seen, "inner", "outer"), [0, 1, 3], across=across))
    # Rounds 1 .. 5 have 1, 2, 2, 3 and 3 of these lags.
    assert len(seen) == 2 * (1 + 2 + 2 + 3 + 3)
    assert len({(label, shared) for label, shared, _ in seen}) == len({shared for _, shared, _ in seen}) == 2 * 3
    assert len({fresh for _, _, fresh in seen}) == len(seen)


def test_a_map_around_a_restated_statistic_has_other_coins_than_the_maps_in_it():
    seen = []
    run(mapped(ra.Restated(mapped(ra.Count(), seen, "inner"), [0, 1]), seen, "outer"))
    assert len({shared for _, shared, _ in seen}) == 3
    assert len({fresh for _, _, fresh in seen}) == len(seen) == 9 + ROUNDS


def test_same_key_same_coins_other_key_other_coins():
    first, again, other = [], [], []
    for seen, key in ((first, 1), (again, 1), (other, 2)):
        run(ra.Restated(mapped(ra.Sum("n"), seen, "inner", "outer"), [0, 2]), key=key)
    assert first == again
    assert not {fresh for _, _, fresh in first} & {fresh for _, _, fresh in other}


def test_nested_maps_and_lags_pass_the_twin_check():
    def jitter(value, shared, fresh):
        return value + bits(shared) % 7 + bits(fresh) % 5

    inner = ra.Count().map(jitter, name="jitter", coins=True).map(jitter, name="jitter", coins=True)
    spec = ra.Specification(SCHEMA, {"m": inner, "r": ra.Restated(inner, [0, 1])}, epsilon=5.0, delta=1e-6, horizon=8)
    one = ((Add((1,)), Add((2,))), (Add((3,)), Delete((1,), 1)), (), ())
    two = ((Add((2,)),), (Add((3,)),), (), ())
    check_twin(lambda key: StreamAlgorithm(spec, key), [Pair(one, two, 2)])
    answers = {StreamAlgorithm(spec, Key.for_testing(seed)).close(one[0]) for seed in range(3)}
    assert len(answers) == 3
