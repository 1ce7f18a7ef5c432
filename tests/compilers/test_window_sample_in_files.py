"""Sampling with expiry in files and plans, and what is refused."""

import math
import re
from fractions import Fraction

import pytest

import retroact as ra
from retroact.coins import Key
from retroact.compilers import Gate, WindowSample
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete
from retroact.oneshot import (
    BlockCDF,
    InteriorPoint,
    Median,
)
from retroact.stream import Specification
from retroact.testing.algorithm import StreamAlgorithm, run
from support.window_samples import AGES, Values, stream_of


def test_samples_in_a_file():
    data = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": 100,
        "schema": {"age": {"type": "integer", "lower": 0, "upper": 120}},
        "statistics": {
            "age": {
                "type": "window_sample",
                "of": {"type": "quantile", "field": "age", "probability": 0.9},
                "window": 24,
                "size": 50,
                "gate": {"records": 3000, "epsilon": 0.1},
            }
        },
    }
    spec = Specification.from_dict(data)
    sample = spec.statistics["age"]
    assert (sample.size, sample.gate, sample.of.kind) == (50, Gate(3000, epsilon=0.1), "quantile")
    data["statistics"]["age"]["of"]["field"] = "agee"
    with pytest.raises(InputError, match=r"agee.*statistics\.age\.of"):
        Specification.from_dict(data)
    data["statistics"]["age"] = {"type": "window_sample", "of": {"type": "medain", "field": "age"}}
    with pytest.raises(InputError, match=r"interior_point, linear_model, median.*got 'medain'.*statistics\.age\.of"):
        Specification.from_dict(data)
    data["statistics"]["age"] = {"type": "window_sample", "of": {"type": "median", "field": "age"}, "sise": 3}
    with pytest.raises(InputError, match=r"got 'sise'.*statistics\.age\.sise"):
        Specification.from_dict(data)


@pytest.mark.parametrize("rate", [0.1, "0.25", Fraction(1, 3)])
def test_a_rate_is_read_as_it_is_written(rate):
    sample = WindowSample(Median("age"), window=4, rate=rate)
    assert ra.statistics.Statistic.from_spec(sample.spec(), "it") == sample
    assert sample.rate == Fraction(str(rate))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "whole number from 1 on.*window"),
        ({"window": 5, "size": 0}, "whole number from 1 on.*size"),
        ({"window": 5, "rate": 0}, "above 0 and up to 1.*rate"),
        ({"window": 5, "rate": 1.5}, "above 0 and up to 1.*rate"),
        ({"window": 5, "rate": 1e-10}, "at least 2\\^-32"),
        ({"window": 5, "gate": Gate}, "number of records or a Gate"),
        ({"window": 5, "rate": 0.5, "size": 3}, "not both"),
        ({"window": 5, "size": 30, "occupancy": 20}, "at least the size of the sample, 30, got 20.*occupancy"),
        ({"window": 5, "size": 30, "gate": 20}, "at least the size of the sample, 30, got 20.*gate"),
        ({"window": 5, "size": 30, "gate": 40, "occupancy": 40}, "not both"),
        ({"window": 5, "persistent": True}, "nothing persists"),
        ({"window": 5, "occupancy": 40}, "expected a size"),
        ({"window": 5, "noise": "tree"}, "a sample has no noise"),
        ({"window": 5, "gate": True}, "number of records or a Gate"),
        ({"window": 5, "accounting": "rdp"}, "exact.*paper"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        WindowSample(Median("age"), **options)


@pytest.mark.parametrize("epsilon", ["0.1", True, 0, -1, Fraction(1, 10)])
def test_bad_gates(epsilon):
    with pytest.raises(InputError, match=r"number above 0.*gate\.epsilon"):
        Gate(100, epsilon=epsilon)


def test_no_run_spends_without_measure():
    spec = Specification(
        AGES, {"it": WindowSample(Median("age"), window=2, rate=1e-8)}, epsilon=1.0, delta=1e-6, horizon=9
    )
    assert spec.bounds["it"].statistic.of.epsilon == 10


def test_a_declared_price_is_never_rounded_down():
    sample = WindowSample(Median("age", epsilon=0.333333334), window=3)
    with pytest.raises(InputError, match="above the declared costs"):
        Specification(AGES, {"it": sample}, epsilon=1.0, horizon=9)


def test_bad_streams():
    with pytest.raises(InputError, match="expected a window, or a horizon"):
        ra.Stream(AGES, {"it": WindowSample(Median("age"))}, epsilon=1.0)
    with pytest.raises(InputError, match="late=False"):
        ra.Stream(AGES, {"it": WindowSample(Median("age"), window=3, size=2, persistent=True)}, epsilon=1.0)
    with pytest.raises(InputError, match=r"the length of a gap.*statistics\.it\.of\.block"):
        stream_of(WindowSample(BlockCDF("age", 9), window=3))
    with pytest.raises(InputError, match="one-shot algorithm"):
        WindowSample(ra.Count(), window=3)
    with pytest.raises(InputError, match="less than all"):
        stream_of(WindowSample(Median("age"), window=3, size=2, gate=Gate(5, epsilon=2)))
    with pytest.raises(InputError, match="no restated series"):
        ra.Restated(WindowSample(Median("age"), window=3), [1])


def test_an_algorithm_that_crashes_changes_nothing():
    class Crashing(Values):
        def at(self, epsilon):
            return Crashing(epsilon)

        def run(self, rows, schema, coins):
            if rows.count:
                raise ZeroDivisionError
            return 0

    stream = stream_of(WindowSample(Crashing(), window=3))
    stream.close_round()
    before = stream.state()
    stream.add({"age": 3})
    with pytest.raises(ZeroDivisionError):
        stream.close_round()
    assert stream.round == 2
    stream.discard()
    assert stream.state() == before
    assert stream.close_round()["it"].value == 0


def test_a_mapped_sample_is_a_sample():
    stream = stream_of(WindowSample(Values(), window=3).map(len, name="how many"))
    stream.add([{"age": 1}, {"age": 2}])
    assert stream.close_round()["it"].value == 2


def test_plans_compare_and_say_which_needs_fewer_records():
    schema = {"x": ra.Integer(0, 2**32 - 1)}
    sample = WindowSample(InteriorPoint("x"), window=24, size=2000, gate=20_000)
    plan = ra.Stream(schema, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=2**16).plan()
    text = str(plan)
    assert re.search(
        r"at best, with the same budget: the whole window 528, a Poisson sample 6\d\d, a fixed size behind", text
    )
    assert "almost sure to answer from" in text
    whole = ra.Stream(
        schema, {"it": WindowSample(InteriorPoint("x"), window=24)}, epsilon=1.0, delta=1e-6, horizon=2**16
    ).plan()
    assert "live records are enough" in str(whole)
    assert math.isfinite(whole["it"].half_width)
    small = ra.Stream(
        schema, {"it": WindowSample(InteriorPoint("x"), window=24, size=5)}, epsilon=1.0, delta=1e-6, horizon=99
    )
    assert "too small" in str(small.plan())


def test_wanted_errors_are_solved_for_where_they_are_known():
    schema = {"x": ra.Integer(0, 2**32 - 1)}
    wanted = ra.solve(schema, {"it": WindowSample(Median("x"), window=24)}, errors={"it": 100}, delta=1e-6, horizon=99)
    assert 99 < wanted["it"].half_width <= 100
    small = {"it": WindowSample(Median("x"), window=24, size=100)}
    with pytest.raises(InputError, match=r"no budget makes smaller.*errors\.it"):
        ra.solve(schema, small, errors={"it": 10}, delta=1e-6, horizon=99)
    for of in (Values(Fraction(1, 10)), Median("age", epsilon=0.1)):
        with pytest.raises(InputError, match=r"whose error is known.*errors\.it"):
            ra.solve(AGES, {"it": WindowSample(of, window=3)}, errors={"it": 5}, delta=1e-6, horizon=9)


def test_the_same_bytes_for_any_order_of_arrival_and_after_a_restart():
    spec = Specification(
        AGES,
        {"it": WindowSample(Median("age"), window=3, size=4), "all": WindowSample(Values(), window=3, rate=0.5)},
        epsilon=3.0,
        delta=1e-5,
        horizon=20,
    )
    history = tuple(
        (Add((i % 9,)), Add((i % 5,)), *([Delete(((i - 1) % 9,), i - 1)] if i > 1 else [])) for i in range(1, 12)
    )

    def make(key):
        return StreamAlgorithm(spec, key)

    whole = run(make, Key.for_testing(1), history)
    algorithm = make(Key.for_testing(1))
    out = []
    for updates in history:
        out.append(algorithm.close(tuple(reversed(updates))))
        algorithm = algorithm.resume(algorithm.state())
    assert out == whole
