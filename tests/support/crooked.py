"""Statistics with a bug in their release: too little noise, noise left off, noise that is shared."""

from copy import copy
from fractions import Fraction

import numpy as np

import retroact as ra
from retroact.statistics import Answer, Contributions, Layout, Linear, Published
from support.in_bound import Planted, became

SCHEMA = {
    "age": ra.Integer(0, 63),
    "city": ra.Text(),
    "country": ra.Category(["DE", "FR", "IT"]),
    "place": ra.Vector(2, radius=1, step=0.125),
}


class Ages(Linear):
    """A statistic of somebody's own: young and old, and the sum of their ages."""

    kind = "ages"

    def layout(self, schema):
        return Layout((1, 1, 63), Fraction(2), Fraction(2), 63)

    def contribute(self, rows, schema):
        age = rows.columns["age"]
        place, row = (age >= 30).astype(np.int64), np.arange(rows.count)
        both = np.concatenate([place, np.full(rows.count, 2)]), np.concatenate([np.ones_like(age), age])
        return Contributions(np.concatenate([row, row]), *both)

    def answer(self, noisy, schema):
        young, old, total = (float(value) for value in noisy.values)
        return Answer({"young": young, "old": old, "ages": total}, None, lambda level: None)

    def error(self, deviations, schema, records):
        return float(deviations[0])


KINDS = {
    "count": lambda **o: ra.Count(**o),
    "sum": lambda **o: ra.Sum("age", **o),
    "histogram": lambda **o: ra.Histogram("city", **o),
    "declared histogram": lambda **o: ra.Histogram("country", **o),
    "quantiles": lambda **o: ra.Quantiles("age", [0.25, 0.5], **o),
    "distinct": lambda **o: ra.Distinct("age", **o),
    "clusters": lambda **o: ra.KMeans("place", 2, **o),
    "own": lambda **o: Ages(**o),
}


def without_one(drawn, release):
    """No noise in the first number, or the first bin."""
    out = drawn.copy()
    out[:1] = 0
    return out


BUGS = {
    "nine tenths of the noise": lambda drawn, release: drawn * 9 // 10,
    "two thirds of the noise": lambda drawn, release: drawn * 2 // 3,
    "a third too much noise": lambda drawn, release: drawn * 4 // 3,
    "a tenth of the noise": lambda drawn, release: drawn // 10,
    "the other sign": lambda drawn, release: -drawn,
    "the other sign in every second release": lambda drawn, release: drawn * (-1) ** release,
    "noise shared by all coordinates": lambda drawn, release: drawn * 0 + drawn[:1],
    "no noise in late rounds": lambda drawn, release: drawn * (release < 12),
    "no noise in one bin": without_one,
    "no noise under a window": lambda drawn, release: drawn * 0,
    "noise shared by all rounds": None,
}
SINGLE = {"count", "sum", "distinct"}
"""Kinds with one number: none shares its noise."""


def through(noise, change):
    """The noise, changed on its way to the release."""
    out = copy(noise)

    def draw(index):
        drawn, denominator = noise.draw(index)
        return change(drawn, index), denominator

    def sample(index, *rest):
        drawn, denominator = noise.sample(index, *rest)
        return change(drawn, index), denominator

    out.draw, out.sample = draw, sample
    return out


def crooked(kind, bug):
    """The statistic with a bug in its release."""
    options = {"window": 6} if "window" in bug else {}
    made = KINDS[kind](**options)

    class InBound:
        def release(self, totals, noise, at):
            if BUGS[bug] is not None:
                return super().release(totals, through(noise, BUGS[bug]), at)
            first = copy(noise)
            first.draw, first.sample = lambda _: noise.draw(1), lambda _, *rest: noise.sample(1, *rest)
            return super().release(totals, first, at)

    return became(made, Planted, InBound=InBound)


def specification(statistic, *, delta=1e-6):
    return ra.Specification(SCHEMA, {"n": statistic}, epsilon=2.0, delta=delta, horizon=16)


CASES = [
    (kind, bug) for kind in KINDS for bug in BUGS if not (kind in SINGLE and bug == "noise shared by all coordinates")
]


class Tenth(Planted, ra.Distinct):
    """Publishes a tenth of its noise."""

    class InBound:
        def release(self, totals, noise, at):
            drawn, d = noise.draw(self.design.place(at.index, at.round, self.grant.every))
            n = len(totals[0]) * d + int(drawn[0]) // 10
            return Published(Answer(n / d, 1.0, lambda level: (n / d, n / d)), (n,), d)


class Bare(Planted, ra.Count):
    """Takes the noise off again."""

    class InBound:
        def release(self, totals, noise, at):
            published = super().release(totals, noise, at)
            drawn, d = noise.draw(at.index)
            n = published.numerators[0] - int(drawn[0])
            return Published(Answer(n / d, 1.0, lambda level: (n / d, n / d)), (n,), d)
