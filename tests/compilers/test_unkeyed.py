"""Algorithms with randomness of their own: retroactive in law, committed before they are read, never run again."""

import json
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest

import retroact as ra
from retroact.audit.run import audit_stream
from retroact.coins import Key
from retroact.compilers import WindowSample
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete
from retroact.oneshot import BOTTOM, SUBSTITUTION, Contract, OpenDP, Own, Unkeyed, columns_of
from retroact.stream import Specification
from retroact.testing import CheckFailedError, StreamAlgorithm, check_law, check_statistic
from retroact.testing.histories import Pair
from retroact.testing.law import ERROR, parts_of

AGES = {"age": ra.Integer(0, 120)}


def noisy_count(scale=2.0):
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def spec_of(of, **options):
    return Specification(AGES, {"n": WindowSample(of, window=3, **options)}, epsilon=10.0, delta=1e-6, horizon=8)


class Wrapped(Unkeyed):
    """A mean with Laplace noise, private for one record in the place of another, as estimators of libraries are."""

    kind = "wrapped"

    def __init__(self):
        self.random = np.random.default_rng()
        super().__init__(Contract(Fraction(2), relation=SUBSTITUTION), "PrivateMean")

    def arguments(self):
        return {"name": self.name}

    def check(self, schema, place):
        assert "age" in schema.fields

    def answer(self, rows, schema):
        ages = columns_of(rows, schema, ["age"])["age"]
        return float(ages.mean() + self.random.laplace(scale=120 / (2 * len(ages))))


def test_a_wrapped_estimator_sees_samples_of_one_size_and_answers_bottom_for_fewer():
    of = Wrapped()
    assert not of.keyed
    with pytest.raises(InputError, match="always have the same size"):
        WindowSample(of, window=3)
    with pytest.raises(InputError, match="expected the epsilon that PrivateMean spends, 2, got 1"):
        of.at(Fraction(1))
    sample = WindowSample(of, window=2, size=500, gate=1000)
    stream = ra.Stream(AGES, {"mean": sample}, epsilon=10.0, delta=1e-5, horizon=4)
    assert stream.close_round()["mean"].value is BOTTOM
    stream.add({"age": [i % 121 for i in range(3000)]})
    assert 50 < stream.close_round()["mean"].value < 70
    text = stream.guarantee.text
    assert "PrivateMean is private (ε = 2) for one record in the place of another" in text
    assert "retroactive in law, not in bytes" in text


def test_an_opendp_measurement_in_a_stream():
    stream = ra.Stream(AGES, {"n": WindowSample(OpenDP(noisy_count(), "age"), window=3)}, epsilon=10.0, horizon=8)
    assert float(stream.specification.shares["n"].amount) == pytest.approx(1.5)
    stream.add([{"age": i} for i in range(50)])
    first = stream.close_round()["n"]
    assert abs(first.value - 50) < 60
    assert first.value == first.value
    text = stream.guarantee.text
    assert "retroactive in law, not in bytes" in text
    assert "for one record more or less" in text


def test_uniting_histories_have_the_same_law_and_other_bytes():
    ran = check_statistic(
        WindowSample(OpenDP(noisy_count(), "age"), window=3),
        AGES,
        epsilon=10.0,
        pairs=10,
        deltas=(1e-6,),
        horizons=(8,),
    )
    assert ran == ["law", "sensitivity", "missing values", "gathering"]
    spec = spec_of(OpenDP(noisy_count(), "age"))
    runs = {StreamAlgorithm(spec, Key.for_testing(1)).close((Add((3,)),)) for _ in range(30)}
    assert len(runs) > 3


def test_a_measurement_that_another_process_cannot_be_given_is_audited_here():
    spec = spec_of(OpenDP(noisy_count(), "age"))
    assert audit_stream(spec, effort="quick", only="sensitivity", workers=2).verdict == "passed"


def test_a_law_that_remembers_is_caught():
    """A planted algorithm that never forgets how many records it has seen."""
    seen = []

    def remembers(columns, coins):
        seen.append(len(columns["age"]))
        return max(seen[-3:])

    def make(key):
        seen.clear()
        return StreamAlgorithm(spec_of(Own(remembers, epsilon=0.1)), key)

    one = ((Add((1,)), Add((2,))), (Delete((1,), 1), Delete((2,), 1)), ())
    with pytest.raises(CheckFailedError, match=r"law: .* test on n\.value in round 2"):
        check_law(make, [Pair(one, ((), (), ()), 2)], runs=40)


def chance(one, other):
    answers = [["⊥"] if answer is BOTTOM else [answer] for answer in (*one, *other)]
    return min([part.chance() for part in parts_of([[json.dumps(row).encode()] for row in answers], 1)], default=1.0)


def test_differences_that_are_none_and_some():
    assert chance([1.0 * i for i in range(300)], [0.5 + i for i in range(300)]) > 1e-3
    assert chance([1.0 * i for i in range(300)], [100.0 + i for i in range(300)]) < ERROR
    assert chance(["⊥"] * 300, ["⊥"] * 300) == 1.0
    near, far = ([{"mean": [i / 7 + off], "n": 5} for i in range(200)] for off in (0, 100))
    assert chance(near, near[::-1]) > 0.1
    assert chance(near, far) < ERROR
    mixed = [BOTTOM if i % 2 else i / 7 for i in range(200)]
    assert chance(mixed, [BOTTOM if i % 2 else i / 7 + 100 for i in range(200)]) < ERROR
    assert chance(mixed, mixed[1:] + mixed[:1]) > 0.1
    assert chance([f"a{i}" for i in range(200)], [f"b{i}" for i in range(200)]) is None


def test_noise_that_is_not_renewed_is_another_law():
    """Each answer alone has the right law; two in a row have not."""
    random, frozen = np.random.default_rng(1), []

    def lazy(columns, coins):
        if not len(columns["age"]):
            return frozen[0] if frozen else int(random.integers(0, 1000))
        frozen.append(int(random.integers(0, 1000)))
        return 0

    def make(key):
        algorithm = StreamAlgorithm(spec_of(Own(lazy, epsilon=0.1)), key)
        frozen.clear()
        return algorithm

    one = ((Add((1,)),), (Delete((1,), 1),), (), ())
    with pytest.raises(CheckFailedError, match=r"law: .* test on the change of n\.value in round"):
        check_law(make, [Pair(one, ((), (), (), ()), 2)], runs=80)


def test_an_answer_is_drawn_once_for_a_round_that_closes():
    calls = []

    def counted(columns, coins):
        calls.append(len(columns["age"]))
        return len(calls)

    stream = ra.Stream(AGES, {"n": WindowSample(Own(counted, epsilon=0.1), window=3)}, epsilon=10.0, horizon=8)
    calls.clear()
    for round in range(1, 5):
        released = stream.close_round()["n"]
        assert released.value == round
        assert (released.value, released.encode(), released.to_dict()) == (round, released.encode(), released.to_dict())
    assert len(calls) == 4


def test_own_algorithms_must_answer_for_no_records():
    def fragile(columns, coins):
        return columns["age"][0]

    with pytest.raises(InputError, match=r"answers for no records.*statistics\.n\.of"):
        spec_of(Own(fragile, epsilon=0.1))


def test_own_algorithms_that_crash_say_so_without_saying_on_what():
    def crashes(columns, coins):
        return 1 / (3 - len(columns["age"]))

    stream = ra.Stream(AGES, {"n": WindowSample(Own(crashes, epsilon=0.1), window=3)}, epsilon=10.0, horizon=8)
    stream.add([{"age": 77}] * 3)
    with pytest.raises(InputError, match=r"an answer from crashes.*ZeroDivisionError") as caught:
        stream.close_round()
    assert "77" not in str(caught.value)
    assert stream.round == 1
    stream.discard()
    assert stream.close_round()["n"].value == pytest.approx(1 / 3)
