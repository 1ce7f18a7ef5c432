"""Streams of samples with expiry, in every form."""

from fractions import Fraction

import numpy as np

import retroact as ra
from retroact.coins import Key
from retroact.compilers import Gate
from retroact.compilers.live_records import Live, drawn
from retroact.oneshot import (
    ADD_REMOVE,
    Contract,
    OneShot,
)
from retroact.schema import Rows

AGES = {"age": ra.Integer(0, 120)}
FORMS = {
    "whole": {},
    "fresh": {"size": 2},
    "promised": {"size": 2, "occupancy": 4},
    "poisson": {"rate": 0.5},
    "ranks": {"size": 2, "persistent": True},
    "coins": {"rate": 0.5, "persistent": True},
    "gate": {"size": 2, "gate": Gate(2, epsilon=150)},
    "gated poisson": {"rate": 0.5, "gate": Gate(2, epsilon=150)},
}


class Values(OneShot):
    """Not private at all: shows what it was given. For tests of what an algorithm sees."""

    kind = "values"

    def __init__(self, epsilon=None, relation=ADD_REMOVE, delta=Fraction(0)):
        self.epsilon, self.relation, self.delta = epsilon, relation, delta

    def promised(self, epsilon):
        return Contract(epsilon, self.delta, self.relation)

    def at(self, epsilon):
        return Values(epsilon, self.relation, self.delta)

    def check(self, schema, place):
        pass

    def reads(self, schema):
        return ("age",)

    def run(self, rows, schema, coins):
        return sorted(rows.columns["age"].tolist())

    def arguments(self):
        return {}


def stream_of(sample, *, seed=1, schema=AGES, horizon=64, delta=1e-6, epsilon=1.0, late=False):
    return ra.Stream(
        schema, {"it": sample}, epsilon=epsilon, delta=delta, horizon=horizon, late=late, key=Key.for_testing(seed)
    )


def live_of(values, schema=AGES):
    rows = Rows({"age": np.array(values)}, len(values), stamps=np.arange(1, len(values) + 1))
    return Live.of(rows, np.ones(len(values), dtype=np.int64), ("age",), ra.Schema(schema), COINS, span=2)


COINS = Key.for_testing(4).coins("draws")


def seen_by(sample, live, round):
    """What the algorithm of a sample is handed."""
    return drawn(sample.form, live, COINS, round, size=sample.size, rate=sample.rate)
