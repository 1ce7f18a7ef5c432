"""Bounds: they travel without a key, and what is erased is nowhere in a running stream."""

import gc
import pickle
import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType

import numpy as np
import pytest

import retroact as ra
from retroact.oneshot import Median
from retroact.statistics.bound import At
from retroact.testing.gathering import check_gathering

SCHEMA = {
    "name": ra.Text(),
    "age": ra.Integer(0, 63),
    "place": ra.Vector(5, radius=1, step=0.125),
}
STATISTICS = {
    "count": ra.Count(where={"age": {"min": 18}}),
    "names": ra.Histogram("name"),
    "ages by name": ra.Histogram("name", sum="age"),
    "listed": ra.Histogram("name", bins=["a", "b"]),
    "quantiles": ra.Quantiles("age", [0.5]),
    "distinct": ra.Distinct("name"),
    "clusters": ra.KMeans("place", 2),
    "restated": ra.Restated(ra.Histogram("name"), [0, 1]),
    "sample": ra.WindowSample(Median("age"), window=4, size=3),
    "lasting": ra.WindowSample(Median("age"), window=4, size=3, persistent=True),
}


def specification():
    return ra.Specification(SCHEMA, STATISTICS, epsilon=20.0, delta=1e-6, horizon=16, late=False)


def records(count):
    return [{"name": f"n{i % 7}", "age": i % 60, "place": [(i % 3) / 4, 0, 0, 0, 0.25]} for i in range(count)]


def test_bounds_travel_without_a_key():
    """Pickled where the key is, with what was drawn there; gathered elsewhere; the same bytes are published."""
    spec = specification()
    key = ra.Key.for_testing(1)
    rows = spec.schema.encode(records(60))[0]
    rows = type(rows)(rows.columns, rows.count, stamps=np.ones(rows.count, dtype=np.int64))
    ones = np.ones(rows.count, dtype=np.int64)
    for name, bound in spec.bounds.items():
        coins = key.coins("stream").branch(spec.digest(name))
        drawn, noise = bound.drawn(coins), bound.noise.under(coins)
        sent = pickle.dumps(drawn)
        held = (
            {value for value in vars(coins).values() if isinstance(value, bytes)} if hasattr(coins, "__dict__") else ()
        )
        assert not any(secret in sent for secret in held)
        gathered = pickle.loads(pickle.dumps(pickle.loads(sent).gather(rows, ones)))
        here = [drawn.named(drawn.gather(rows, ones), coins)] * len(bound.views)
        there = [drawn.named(gathered, coins)] * len(bound.views)
        one, other = (drawn.release(totals, noise, At(3, 3)) for totals in (here, there))
        assert (one.numerators, str(one.answer.value)) == (other.numerators, str(other.answer.value))


def test_rounds_are_gathered_together_as_one_by_one():
    from random import Random

    check_gathering(specification(), Random(1))


def is_own(module):
    return (module or "").partition(".")[0] == "retroact"


def reachable(thing, seen, text):
    """Whether a text is in anything that can be reached: in names, values, keys of dictionaries, arrays, and in classes
    and modules of this package. Those of others are not looked into: a look alone can make them warn."""
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or (isinstance(one, type) and not is_own(one.__module__)):
            continue
        seen[id(one)] = one
        if isinstance(one, str) and text in one:
            return True
        if isinstance(one, bytes) and text.encode() in one:
            return True
        if isinstance(one, np.ndarray):
            if one.dtype == object:
                waiting += one.ravel().tolist()
            continue
        if isinstance(one, Mapping):  # text keys are not among the referents of a dictionary
            waiting += [*one.keys(), *one.values()]
        if isinstance(one, FunctionType) and not is_own(one.__module__):  # what it closes over, not its whole package
            waiting += [one.__closure__, one.__defaults__, one.__kwdefaults__, one.__dict__]
        elif not isinstance(one, ModuleType) or is_own(one.__name__):
            waiting += gc.get_referents(one)
    return False


@pytest.mark.parametrize("name", [name for name in STATISTICS if name not in ("listed",)])
def test_an_erased_label_is_nowhere_in_a_running_stream(name):
    stream = ra.Stream(
        SCHEMA, {name: STATISTICS[name]}, epsilon=20.0, delta=1e-6, horizon=16, late=False, columns={"subject": "who"}
    )
    secret = "zebra" + "fish-17"
    stream.add(records(30), subject=["u1"] * 30)
    stream.add({"name": secret, "age": 61, "place": [0, 0, 0, 0, 0]}, subject="u2")
    stream.close_round()
    running = stream._core.engine.running[name]
    held = reachable([running.totals, running.bound, running.noise], {}, secret)
    assert held or name not in ("names", "ages by name", "distinct", "restated")
    stream.erase(subject="u2")
    stream.close_round()
    own = [vars(module) for module in [*sys.modules.values()] if is_own(module.__name__)]
    assert not reachable([stream._core.engine.running[name].__dict__, own], {}, secret)
