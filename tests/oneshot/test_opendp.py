"""OpenDP measurements as one-shot algorithms: contracts as their maps give them, and domains that hold."""

import sys
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest

from retroact.coins import Coins
from retroact.errors import InputError
from retroact.oneshot import ADD_REMOVE, SUBSTITUTION, OpenDP
from retroact.schema import Boolean, Date, Integer, Number, Rows, Schema, Text

COINS = Coins(bytes(32)).branch("opendp")
SCHEMA = Schema({
    "age": Integer(0, 120), "wide": Integer(0, 2**40), "amount": Number(0, 50), "name": Text(), "yes": Boolean(),
    "day": Date("2024-01-01", "2024-12-31"),
})  # fmt: skip


@pytest.fixture(autouse=True)
def contributed():
    dp.enable_features("contrib")
    yield
    dp.disable_features("contrib")


def ages(size=None, metric=None, top=120):
    domain = dp.vector_domain(dp.atom_domain(bounds=(0, top)), size=size)
    return domain, metric if metric is not None else dp.symmetric_distance()


def laplace(space, scale=240.0):
    return space >> dp.t.then_sum() >> dp.m.then_laplace(scale=scale)


def rows_of(size):
    return SCHEMA.encode([
        {"age": i % 100, "wide": i, "amount": i % 50, "name": "a", "yes": True, "day": "2024-02-03"}
        for i in range(size)
    ])[0]  # fmt: skip


def test_one_record_more_or_less():
    for metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        algorithm = OpenDP(laplace(ages(metric=metric)), "age")
        promised = algorithm.contract
        assert (promised.epsilon, promised.delta, promised.relation) == (Fraction(1, 2), 0, ADD_REMOVE)
        assert not promised.bounded_range
        algorithm.check(SCHEMA, "algorithm")


def test_one_record_in_the_place_of_another():
    changed = ages(10, dp.change_one_distance()) >> dp.t.then_metric_unbounded()
    assert OpenDP(laplace(changed), "age").contract == OpenDP(laplace(ages(10)), "age").contract
    promised = OpenDP(laplace(ages(10)), "age").contract
    assert (promised.epsilon, promised.relation) == (Fraction(laplace(ages(10)).map(2)), SUBSTITUTION)


def test_epsilons_are_never_rounded_down():
    measurement = (dp.vector_domain(dp.atom_domain(bounds=(0.0, 50.0))), dp.symmetric_distance()) >> dp.t.then_sum()
    algorithm = OpenDP(measurement >> dp.m.then_laplace(scale=30.0), "amount")
    assert algorithm.contract.epsilon > Fraction(50, 30)
    algorithm.check(SCHEMA, "algorithm")


def test_epsilon_and_delta():
    gaussian = ages() >> dp.t.then_sum() >> dp.m.then_gaussian(scale=480.0)
    smoothed = dp.c.make_zCDP_to_approxDP(gaussian)
    fixed = dp.c.make_fix_delta(smoothed, 1e-6)
    contracts = {OpenDP(m, "age", delta=d).contract for m, d in ((gaussian, 1e-6), (smoothed, 1e-6), (fixed, None))}
    assert len(contracts) == 1
    promised = contracts.pop()
    assert promised.delta == Fraction(1e-6)
    assert 1 < promised.epsilon < 2
    with pytest.raises(InputError, match="got one in ZeroConcentratedDivergence; give delta=, or apply make_zCDP_to"):
        OpenDP(gaussian, "age")
    with pytest.raises(InputError, match="got one in SmoothedMaxDivergence; give delta=, or apply make_fix_delta"):
        OpenDP(smoothed, "age")
    approximate = dp.c.make_approximate(gaussian)
    with pytest.raises(InputError, match=r"got one in Approximate<ZeroConcentratedDivergence>; see opendp.combinators"):
        OpenDP(approximate, "age", delta=1e-6)


def test_answers_are_near_and_drawn_anew():
    algorithm = OpenDP(laplace(ages(), scale=2.0), "age")
    rows = rows_of(100)
    answers = [algorithm.run(rows, SCHEMA, COINS) for _ in range(12)]
    assert all(abs(answer - 4950) < 60 for answer in answers)
    assert len(set(answers)) > 1
    assert algorithm.keyed is False
    assert abs(algorithm.run(Rows.empty(SCHEMA), SCHEMA, COINS)) < 60


def test_values_reach_the_measurement_whole():
    flags = dp.vector_domain(dp.atom_domain(T=bool)), dp.symmetric_distance()
    count = OpenDP(flags >> dp.t.then_count() >> dp.m.then_laplace(scale=0.01), "yes")
    count.check(SCHEMA, "algorithm")
    assert count.run(rows_of(30), SCHEMA, COINS) == 30
    names = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    count = OpenDP(names >> dp.t.then_count() >> dp.m.then_laplace(scale=0.01), "name")
    count.check(SCHEMA, "algorithm")
    assert count.run(rows_of(30), SCHEMA, COINS) == 30


def test_values_outside_of_the_domain_are_refused():
    """OpenDP itself takes them, and its promise would not hold."""
    assert isinstance(laplace(ages(top=50))([1000]), int)
    with pytest.raises(InputError, match="within the domain of the measurement, 0 to 50, got a field from 0 to 120"):
        OpenDP(laplace(ages(top=50)), "age").check(SCHEMA, "algorithm")
    plain = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    with pytest.raises(InputError, match="-2147483648 to 2147483647, got a field from 0 to 1099511627776"):
        OpenDP(plain >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0), "wide").check(SCHEMA, "algorithm")


def test_a_fixed_size_is_held():
    algorithm = OpenDP(laplace(ages(10)), "age")
    assert isinstance(algorithm.run(rows_of(10), SCHEMA, COINS), int)
    with pytest.raises(InputError, match="expected 10 records, the size of the domain, got 9"):
        algorithm.run(rows_of(9), SCHEMA, COINS)


def test_specification():
    algorithm = OpenDP(laplace(ages()), "age", name="sum of ages")
    assert algorithm.spec() == {
        "type": "opendp", "name": "sum of ages", "field": "age", "metric": "SymmetricDistance",
        "domain": "VectorDomain(AtomDomain(bounds=[0, 120], T=i32))", "measure": "MaxDivergence", "epsilon": "0.5",
    }  # fmt: skip
    with pytest.raises(InputError, match=r"expected the epsilon that sum of ages spends, 0.5, got 1"):
        algorithm.at(Fraction(1))


def test_errors(monkeypatch):
    with pytest.raises(InputError, match="expected an OpenDP measurement, got Transformation"):
        OpenDP(ages() >> dp.t.then_sum(), "age")
    with pytest.raises(InputError, match="expected the name of one field"):
        OpenDP(laplace(ages()), ["age"])
    with pytest.raises(InputError, match="expected a measurement on a vector of values, got one on AtomDomain<bool>"):
        OpenDP(dp.m.make_randomized_response_bool(0.6), "yes")
    for field in ("amount", "name", "day"):
        with pytest.raises(InputError, match="expected a field for values of type i32"):
            OpenDP(laplace(ages()), field).check(SCHEMA, "algorithm")
    with pytest.raises(InputError, match=r"got 'nothing' - at algorithm.field"):
        OpenDP(laplace(ages()), "nothing").check(SCHEMA, "algorithm")
    with pytest.raises(InputError, match="expected a measurement of epsilon above 0 and up to 1,000"):
        OpenDP(laplace(ages(), scale=0.0), "age")
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match=r"install retroact\[opendp\]"):
        OpenDP(None, "age")


def test_the_order_of_the_rows_does_not_matter():
    noiseless = []

    def keep(values):
        noiseless.append(list(values))
        return 0

    algorithm = OpenDP(laplace(ages()), "age")
    algorithm.measurement = keep
    rows = rows_of(60)
    for order in (np.arange(60), np.arange(60)[::-1]):
        algorithm.answer(rows.take(order), SCHEMA)
    assert noiseless[0] == noiseless[1]


def test_a_distance_that_goes_by_position_is_refused():
    """Values come sorted: one of them in the place of another can move all by one place."""
    by_position = ages(size=4, metric=dp.hamming_distance())
    measurement = by_position >> dp.t.then_metric_unbounded() >> dp.t.then_sum() >> dp.m.then_laplace(scale=240.0)
    with pytest.raises(InputError, match="HammingDistance"):
        OpenDP(measurement, "age")
