"""The law of what is published: residuals over many keys, against the law that the budget asks for.

Under every key a release is taken in several rounds. What it publishes, less the exact totals of `definitions`, is a
residual for each coordinate and round. By the claim it is a sum of weight * noise(node), independent from coordinate to
coordinate, with nodes as wide as budget, norms and the declared sensitivity ask (`claimed_size`). That law is worked
out here from its characteristic function, which is a product over nodes: no sampler, tail or variance of the program.

**Tests.** Each is a mean over independent draws with a known mean m and variance v by the claim:

- *size and shape*: cos(t Z) at several t, and how often |Z| stays within three bounds (its tails), round by round over
  all coordinates together, and coordinate by coordinate over all rounds together;
- *memory*: cos(t (Z_r - Z_s)) and cos(t (Z_r + Z_s)) for pairs of rounds;
- *independence*: the same for pairs of coordinates, within one kind and across kinds;
- *middle*: sin(t Z);
- *missing and shared noise*: how often Z is exactly 0, and how often the noises of two coordinates or two rounds are
  equal or opposite. No value of Z is likelier than the likeliest value of its widest node.

**Error rate.** Means of n independent variables within b of m are off by e with probability at most
2 exp(-n e^2 / (2 v + 2 b e / 3)) (Bernstein), frequencies with at most 2 exp(-n KL) (Chernoff), both without any limit
theorem. All tests of a statistic together refute a right one with probability at most `ERROR` (union bound). Where
coordinates are looked at or not by what others show (intervals of a quantile, cells of a cluster), that choice does not
depend on their own noise, so what is there has the claimed law.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..arrays import F64
from ..coins import Key
from ..compilers import sample_in
from ..errors import VerificationError
from ..noise import Oblivious
from ..statistics import Quantiles
from .characteristic import Form, Nodes
from .conformance import claims
from .definitions import Coordinate
from .published import Scene, parts_of

# A right statistic is refuted with at most this probability.
ERROR = 1e-6
# Frequencies, in deviations of what they are applied to.
SIZES = (0.8, 1.7, 2.8)
BETWEEN = (1.0, 2.0)
# Bounds of tails, in deviations.
TAILS = (0.7, 2.0, 2.7)
# Coordinates of one kind that are looked at, and those of them that are compared pair by pair.
MOST, PAIRED = 64, 32
# Keys in which a coordinate must have been there to be looked at.
PILOT = 8
# How much smaller noise can be before it is seen.
FACTORS = (0.95, 0.9, 0.8, 2 / 3, 0.5, 0.1)


class Tested(NamedTuple):
    """One test: a bound on the probability of what was seen, if the claim holds, and what it asked."""

    chance: float
    asked: str


class Judgement(NamedTuple):
    """All tests of one statistic. ``smallest``: the noise that is at most this part of the claimed one is refuted with
    99 % (None: not even a tenth)."""

    worst: Tested
    tests: int
    keys: int
    coordinates: int
    smallest: float | None

    @property
    def chance(self) -> float:
        """At most this probable, if the claim holds, over all tests together."""
        return min(1.0, self.worst.chance * self.tests)

    @property
    def holds(self) -> bool:
        return self.chance > ERROR


class Kind(NamedTuple):
    """The residuals of coordinates with one law: coordinates by keys by rounds, not a number where there is none."""

    name: str
    nodes: Nodes
    looks: list[int]
    values: F64


def check_residuals(scene: Scene, *, keys: int, first: int = 1, looks: Sequence[int] | None = None) -> Judgement | None:
    """Raises where the claim is refuted; None where there is no noise of a known law."""
    kinds = residuals(scene, keys=keys, first=first, looks=looks)
    if not kinds:
        return None
    judged = judge(kinds)
    if not judged.holds:
        raise VerificationError(
            f"noise law of {scene.name}: what is published under {keys} keys refutes it: {judged.worst.asked} (by the "
            f"claim this has a probability of at most {judged.chance:.2g})"
        )
    return judged


def enough_keys(scene: Scene, draws: int) -> int:
    """So many that there are as many draws of a noise of one kind, but no fewer than 64."""
    look = scene.look(Key.for_testing(0), 1)
    kinds = Counter(_kind(scene, parts_of(look.noise)[where.view].units[where.place], where) for where in look.told)
    return max(64, -(-draws // max(kinds.values(), default=1)))


def _kind(scene: Scene, unit: int, where: Coordinate) -> tuple[int, int, int]:
    """Coordinates that are compared with one another: of one view and unit. Whether a node of a tree is looked at
    depends on those above it, so only those of one depth are."""
    depth = where.name[1] if isinstance(scene.definition.inner, Quantiles) else 0  # type: ignore[index]
    return where.view, unit, depth


def rounds_looked_at(scene: Scene, some: int) -> list[int]:
    """The first three releases, the last one, one in the middle."""
    middle = 1 + some % scene.last
    return sorted({index for index in (1, 2, 3, middle, scene.last) if index <= scene.last})


def residuals(scene: Scene, *, keys: int, first: int = 1, looks: Sequence[int] | None = None) -> list[Kind]:
    """What is published less what is true, under as many keys, by kinds of coordinates with one law."""
    if isinstance(scene.statistic.noise, Oblivious) or sample_in(scene.bound) is not None:
        return []
    indices = list(looks or rounds_looked_at(scene, 7919 * first))
    found: dict[Coordinate, dict[tuple[int, int], float]] = {}
    fineness = [1] * len(indices)
    for number in range(keys):
        noise = scene.noise(Key.for_testing(first + number))
        for at, index in enumerate(indices):
            look = scene.under(noise, index)
            exact, below = scene.exact(look.noise, index), look.published.denominator
            fineness[at] = below
            for where, total in look.told.items():
                if number < PILOT or where in found:
                    found.setdefault(where, {})[number, at] = float(total - exact.get(where, 0) * below) / below
    return list(_kinds(scene, found, indices, fineness, keys))


def _kinds(
    scene: Scene,
    found: dict[Coordinate, dict[tuple[int, int], float]],
    looks: list[int],
    fineness: list[int],
    keys: int,
) -> Iterator[Kind]:
    groups: dict[tuple[int, int, int], list[Coordinate]] = {}
    laws = [(claim, mechanism) for _, _, claim, mechanism in claims(scene.spec, scene.name)]
    for where in found:
        unit = laws[where.view][1].units[where.place]
        groups.setdefault(_kind(scene, unit, where), []).append(where)
    for (view, unit, _), members in groups.items():
        always = [w for w in members if sum(number < PILOT for number, _ in found[w]) >= PILOT][:MOST]
        if not always:
            continue
        values = np.full((len(always), keys, len(looks)), np.nan)
        for row, where in enumerate(always):
            for (number, at), residual in found[where].items():
                values[row, number, at] = residual
        there = [at for at in range(len(looks)) if not np.isnan(values[:, :, at]).all()]
        claim = laws[view][0]
        nodes = Nodes(claim, unit, {looks[at]: fineness[at] for at in there})
        yield Kind(f"{always[0].place}" + (f", view {view}" * bool(view)), nodes, [looks[at] for at in there],
                   values[:, :, there])  # fmt: skip


def judge(kinds: Sequence[Kind]) -> Judgement:
    """All tests on all kinds, and between them."""
    tests = [tested for kind in kinds for tested in _one(kind)]
    tests += [tested for one, other in list(combinations(kinds, 2))[:PAIRED] for tested in _across(one, other)]
    worst = min(tests, key=lambda tested: tested.chance, default=Tested(1.0, "nothing"))
    seen = [factor for factor in (_smallest(kind, max(1, len(tests))) for kind in kinds) if factor]
    coordinates = sum(len(kind.values) for kind in kinds)
    return Judgement(worst, len(tests), kinds[0].values.shape[1], coordinates, max(seen, default=None))


def _one(kind: Kind) -> Iterator[Tested]:
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
    for bound in TAILS:
        found = form.within(bound * form.deviation)
        if found is not None and len(there):
            edge, least, most = found
            frequency = float((np.abs(there) <= edge).mean())
            yield Tested(_two_sided(frequency, least, most, len(there)), f"the tails of the noise ({where})")


def _missing(values: F64, form: Form, where: str) -> Iterator[Tested]:
    counted = (~np.isnan(values)).sum(axis=1)
    zero = (values == 0).sum(axis=1)
    for row, (hits, n) in enumerate(zip(zero.tolist(), counted.tolist(), strict=True)):
        yield Tested(often(hits, n, form.atom), f"noise that is missing ({where}, coordinate {row + 1} of {len(zero)})")


def _pairs(values: F64, form: Form, where: str) -> Iterator[Tested]:
    """Coordinates of one kind: none shares its noise with another."""
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


def _rows(kind: Kind, forms: list[Form]) -> Iterator[Tested]:
    """Coordinate by coordinate, the mean over all rounds: its deviation is at most the mean of theirs."""
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


def _memory(kind: Kind, one: Form, other: Form, r: int, s: int) -> Iterator[Tested]:
    """Between two rounds."""
    where = f"kind {kind.name}, releases {kind.looks[r]} and {kind.looks[s]}"
    for sign in (1, -1):
        form = one.plus(other, sign)
        both = kind.values[:, :, r] + sign * kind.values[:, :, s]
        there = both[~np.isnan(both)]
        if form.deviation < 1e-9 * max(one.deviation, other.deviation, 1e-300):
            yield Tested(0.0 if np.abs(there).max(initial=0.0) > 1e-6 else 1.0, f"noise that should be one ({where})")
            continue
        for size in BETWEEN:
            t = size / form.deviation
            yield _cosine(np.cos(t * there), form, t, f"the memory between rounds ({where})")
        counted = (~np.isnan(both)).sum(axis=1).tolist()
        for hits, n in zip((both == 0).sum(axis=1).tolist(), counted, strict=True):
            yield Tested(often(hits, n, form.atom), f"noise that two rounds share ({where})")


def _across(one: Kind, other: Kind) -> Iterator[Tested]:
    """Kinds of one view or of several: in the same round their noises are independent, unless views share nodes."""
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
            off = abs(float(np.cos(there).mean()) - mean) - a.slack(t) - b.slack(u)
            yield Tested(
                bernstein(off, variance, len(there)),
                f"the independence of kinds {one.name} and {other.name} (release {look})",
            )


def _smallest(kind: Kind, tests: int) -> float | None:
    """The largest part of the claimed noise that would be refuted with 99 % by its size alone."""
    form = next((form for form in map(kind.nodes.form, kind.looks) if form.deviation), None)
    if form is None:
        return None
    n = int((~np.isnan(kind.values[:, :, 0])).sum())
    for factor in FACTORS:
        for size in SIZES:
            t = size / form.deviation
            off = abs(form.at(t * factor) - form.at(t)) - form.slack(t) - 2.33 * math.sqrt(0.5 / n)
            if off > 0 and bernstein(off, form.variance(t), n) * tests <= ERROR:
                return factor
    return None


def _cosine(cosines: F64, form: Form, t: float, asked: str) -> Tested:
    if not len(cosines):
        return Tested(1.0, asked)
    off = abs(float(cosines.mean()) - form.at(t)) - form.slack(t)
    return Tested(bernstein(off, form.variance(t), len(cosines)), asked)


def _sine(sines: F64, form: Form, t: float, asked: str) -> Tested:
    if not len(sines):
        return Tested(1.0, asked)
    return Tested(bernstein(abs(float(sines.mean())), (1 - form.at(2 * t)) / 2, len(sines)), asked)


def bernstein(off: float, variance: float, n: int, within: float = 2.0) -> float:
    """P(a mean of n independent variables is off by at least so much)."""
    if off <= 0 or not n:
        return 1.0
    return min(1.0, 2 * math.exp(-n * off * off / (2 * max(variance, 0.0) + 2 * within * off / 3)))


def often(hits: int, n: int, p: float) -> float:
    """P(so many hits or more), where each has probability p at most."""
    return 1.0 if not n or hits / n <= p or (p <= 0 and not hits) else math.exp(-n * _divergence(hits / n, p))


def _two_sided(frequency: float, least: float, most: float, n: int) -> float:
    """P(a frequency as far off), where the probability lies between these."""
    near = min(max(frequency, least), most)
    return min(1.0, 2 * math.exp(-n * _divergence(frequency, near)))


def _divergence(q: float, p: float) -> float:
    """KL(q || p) of two coins."""
    if p <= 0 or p >= 1:
        return 0.0 if q == p else math.inf
    return sum(a * math.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0)
