"""Noise against the law that is claimed for it: many tests, each with a proven bound on its error.

By the claim, noise is a sum of weight * noise(node), independent from coordinate to coordinate, with nodes as wide as
budget, norms and the declared sensitivity require (`claimed_size`). That law is computed from its characteristic
function, which is a product over nodes: no sampler, tail or variance of the program is used.

**Tests.** Each takes a mean over independent draws, with mean m and variance v by the claim:

- *size and shape*: cos(t Z) at several t, and how often |Z| stays within three bounds (its tails), round by round over
  all coordinates together, and coordinate by coordinate over all rounds together;
- *memory*: cos(t (Z_r - Z_s)) and cos(t (Z_r + Z_s)) for pairs of rounds;
- *independence*: the same for pairs of coordinates, within one kind and across kinds;
- *middle*: sin(t Z);
- *missing and shared noise*: how often Z is exactly 0, and how often the noises of two coordinates or two rounds are
  equal or opposite. No value of Z is more likely than the likeliest value of its widest node.

**Error rate.** A mean of n independent variables that are never more than b above (below) m is e or more above (below)
it with probability at most exp(-n e^2 / (2 v + 2 b e / 3)) (Bernstein); for frequencies, at most exp(-n KL) (Chernoff).
Neither uses a limit theorem; both are doubled for two-sided tests. All tests together refute a correct claim with
probability at most `ERROR` (union bound).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..arrays import F64
from .claimed_law import Form, Nodes

# A correct claim is refuted with at most this probability.
ERROR = 1e-6
# Frequencies t, in inverse deviations of the noise.
SIZES = (0.8, 1.7, 2.8)
BETWEEN = (1.0, 2.0)
# Where tails begin, in deviations.
TAILS = (0.7, 2.0, 2.7)
# The most coordinates of one kind that are compared pair by pair.
PAIRED = 32
# Parts of the claimed noise for which the power is computed.
FACTORS = (0.95, 0.9, 0.8, 2 / 3, 0.5, 0.1)


class Tested(NamedTuple):
    """One test: what it tests, and a bound on the probability of what was seen, if the claim holds."""

    chance: float
    asked: str


class Conformance(NamedTuple):
    """All tests of one claim. ``smallest``: noise of at most this part of the claimed size is refuted with probability
    99 % (None: not even a tenth would be)."""

    worst: Tested
    tests: int
    draws: int
    coordinates: int
    smallest: float | None

    @property
    def chance(self) -> float:
        """If the claim holds, what all tests saw together has at most this probability."""
        return min(1.0, self.worst.chance * self.tests)

    @property
    def holds(self) -> bool:
        return self.chance > ERROR

    @property
    def compared(self) -> bool:
        """False if there are too few draws to judge: the claimed noise is 0 too often."""
        return self.smallest is not None


class NoiseKind(NamedTuple):
    """The noise of coordinates with one law: an array of coordinates by draws by releases, NaN where there is none."""

    name: str
    nodes: Nodes
    looks: list[int]
    values: F64


def judge(kinds: Sequence[NoiseKind]) -> Conformance:
    """All tests on all kinds, and between them."""
    tests = [tested for kind in kinds for tested in _one(kind)]
    tests += [tested for one, other in list(combinations(kinds, 2))[:PAIRED] for tested in _across(one, other)]
    worst = min(tests, key=lambda tested: tested.chance, default=Tested(1.0, "nothing"))
    seen = [factor for factor in (_smallest(kind, max(1, len(tests))) for kind in kinds) if factor]
    coordinates = sum(len(kind.values) for kind in kinds)
    return Conformance(worst, len(tests), kinds[0].values.shape[1], coordinates, max(seen, default=None))


def _one(kind: NoiseKind) -> Iterator[Tested]:
    """The tests of one kind."""
    forms = [kind.nodes.form(look) for look in kind.looks]
    for at, (look, form) in enumerate(zip(kind.looks, forms, strict=True)):
        values = kind.values[:, :, at]
        there = values[~np.isnan(values)]
        where = f"kind {kind.name}, release {look}"
        if form.deviation == 0:
            yield Tested(0.0 if there.any() else 1.0, f"there should be no noise ({where})")
            continue
        yield from _alone(there, form, where)
        yield from _missing(values, form, where)
        yield from _pairs(values, form, where)
    yield from _rows(kind, forms)
    for r, s in combinations(range(len(forms)), 2):
        yield from _memory(kind, forms[r], forms[s], r, s)


def _alone(there: F64, form: Form, where: str) -> Iterator[Tested]:
    for size in SIZES:
        t = size / form.deviation
        yield _cosine(np.cos(t * there), form, t, f"the size of the noise ({where})")
    t = 1 / form.deviation
    yield _sine(np.sin(t * there), form, t, f"the middle of the noise ({where})")
    if len(there):
        for edge, least, most in form.within([bound * form.deviation for bound in TAILS]):
            frequency = float((np.abs(there) <= edge).mean())
            yield Tested(_two_sided(frequency, least, most, len(there)), f"the tails of the noise ({where})")


def _missing(values: F64, form: Form, where: str) -> Iterator[Tested]:
    counted = (~np.isnan(values)).sum(axis=1)
    zero = (values == 0).sum(axis=1)
    for row, (hits, n) in enumerate(zip(zero.tolist(), counted.tolist(), strict=True)):
        yield Tested(often(hits, n, form.atom), f"noise that is missing ({where}, coordinate {row + 1} of {len(zero)})")


def _pairs(values: F64, form: Form, where: str) -> Iterator[Tested]:
    """No two coordinates of one kind share their noise."""
    some = values[:PAIRED]
    for i, j in combinations(range(len(some)), 2):
        for sign, word in ((1, "equal"), (-1, "opposite")):
            both = ~np.isnan(some[i] + some[j])
            hits = int((some[i] == sign * some[j])[both].sum())
            yield Tested(often(hits, int(both.sum()), form.atom), f"noise of two coordinates that is {word} ({where})")
    half = len(values) // 2
    if not half:
        return
    left, right = values[: 2 * half : 2], values[1 : 2 * half : 2]
    for sign in (1, -1):
        apart = (left - sign * right).ravel()
        t = BETWEEN[0] / form.deviation
        both = form.twice()
        yield _cosine(np.cos(t * apart[~np.isnan(apart)]), both, t, f"the independence of coordinates ({where})")


def _rows(kind: NoiseKind, forms: list[Form]) -> Iterator[Tested]:
    """For each coordinate the mean over all rounds, whose deviation is at most the mean of their deviations."""
    used = [(at, form) for at, form in enumerate(forms) if form.deviation]
    if not used or len(kind.values) < 2:
        return
    for asked, function in (("size", np.cos), ("middle", np.sin)):
        total, bound, count = np.zeros(kind.values.shape[:2]), 0.0, np.zeros(kind.values.shape[:2])
        slack = 0.0
        for at, form in used:
            t = SIZES[1] / form.deviation
            mean, variance = (form.at(t), form.variance(t)) if asked == "size" else (0.0, (1 - form.at(2 * t)) / 2)
            part = function(t * kind.values[:, :, at]) - mean
            total += np.nan_to_num(part)
            count += ~np.isnan(part)
            bound += math.sqrt(variance)
            slack += form.slack(t) if asked == "size" else 0.0
        mean_of = total / len(used)
        for row in range(len(mean_of)):
            own = mean_of[row][count[row] > 0]
            off = abs(float(own.mean())) if len(own) else 0.0
            chance = bernstein(off - slack / len(used), (bound / len(used)) ** 2, len(own))
            yield Tested(chance, f"the {asked} of the noise (kind {kind.name}, coordinate {row + 1}, all rounds)")


def _memory(kind: NoiseKind, one: Form, other: Form, r: int, s: int) -> Iterator[Tested]:
    """Between two rounds."""
    where = f"kind {kind.name}, releases {kind.looks[r]} and {kind.looks[s]}"
    for sign in (1, -1):
        form = one.plus(other, sign)
        both = kind.values[:, :, r] + sign * kind.values[:, :, s]
        there = both[~np.isnan(both)]
        if form.deviation < 1e-9 * max(one.deviation, other.deviation, 1e-300):
            yield Tested(0.0 if np.abs(there).max(initial=0.0) > 1e-6 else 1.0, f"noise that should be equal ({where})")
            continue
        for size in BETWEEN:
            t = size / form.deviation
            yield _cosine(np.cos(t * there), form, t, f"the memory between rounds ({where})")
        counted = (~np.isnan(both)).sum(axis=1).tolist()
        for hits, n in zip((both == 0).sum(axis=1).tolist(), counted, strict=True):
            yield Tested(often(hits, n, form.atom), f"noise that two rounds share ({where})")


def _across(one: NoiseKind, other: NoiseKind) -> Iterator[Tested]:
    """Noises of two kinds in the same round are independent, unless their views share nodes."""
    shared = sorted({*one.looks} & {*other.looks})
    for look in shared[:1] + shared[-1:]:
        a, b = one.nodes.form(look), other.nodes.form(look)
        if not a.deviation or not b.deviation or one.nodes.shares(other.nodes):
            continue
        left, right = one.values[:, :, one.looks.index(look)], other.values[:, :, other.looks.index(look)]
        size = min(len(left), len(right))
        t, u = BETWEEN[0] / a.deviation, BETWEEN[0] / b.deviation
        for sign in (1, -1):
            both = (t * left[:size] + sign * u * right[:size]).ravel()
            there, mean = both[~np.isnan(both)], a.at(t) * b.at(u)
            variance = (1 + a.at(2 * t) * b.at(2 * u)) / 2 - mean**2
            found = float(np.cos(there).mean()) if len(there) else mean
            chance = _off(found, mean, variance, len(there), a.slack(t) + b.slack(u))
            yield Tested(chance, f"the independence of kinds {one.name} and {other.name} (release {look})")


def _smallest(kind: NoiseKind, tests: int) -> float | None:
    """The largest part of the claimed noise that would be refuted with probability 99 % by its size alone."""
    form = next((form for form in map(kind.nodes.form, kind.looks) if form.deviation), None)
    if form is None:
        return None
    n = int((~np.isnan(kind.values[:, :, 0])).sum())
    for factor in FACTORS:
        for size in SIZES:
            t = size / form.deviation
            off = abs(form.at(t * factor) - form.at(t)) - form.slack(t) - 2.33 * math.sqrt(0.5 / n)
            if off > 0 and bernstein(off, form.variance(t), n, 1 - form.at(t)) * tests <= ERROR:
                return factor
    return None


def _cosine(cosines: F64, form: Form, t: float, asked: str) -> Tested:
    if not len(cosines):
        return Tested(1.0, asked)
    return Tested(_off(float(cosines.mean()), form.at(t), form.variance(t), len(cosines), form.slack(t)), asked)


def _sine(sines: F64, form: Form, t: float, asked: str) -> Tested:
    if not len(sines):
        return Tested(1.0, asked)
    return Tested(_off(float(sines.mean()), 0.0, (1 - form.at(2 * t)) / 2, len(sines)), asked)


def _off(mean: float, claimed: float, variance: float, n: int, slack: float = 0.0) -> float:
    """A bound on P(a mean of n variables in [-1, 1] is as far from the claimed one), which may be off by the slack."""
    reach = 1 - claimed if mean > claimed else 1 + claimed
    return bernstein(abs(mean - claimed) - slack, variance, n, reach + slack)


def bernstein(off: float, variance: float, n: int, within: float = 2.0) -> float:
    """A bound on P(a mean of n independent variables is off by at least ``off``)."""
    if off <= 0 or not n:
        return 1.0
    return min(1.0, 2 * math.exp(-n * off * off / (2 * max(variance, 0.0) + 2 * within * off / 3)))


def often(hits: int, n: int, p: float) -> float:
    """A bound on P(at least this many hits), if each has probability at most p."""
    return 1.0 if not n or hits / n <= p or (p <= 0 and not hits) else math.exp(-n * _divergence(hits / n, p))


def _two_sided(frequency: float, least: float, most: float, n: int) -> float:
    """A bound on P(a frequency as far off), if the probability is between ``least`` and ``most``."""
    near = min(max(frequency, least), most)
    return min(1.0, 2 * math.exp(-n * _divergence(frequency, near)))


def _divergence(q: float, p: float) -> float:
    """KL(q || p) of two coins."""
    if p <= 0 or p >= 1:
        return 0.0 if q == p else math.inf
    return sum(a * math.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0)
