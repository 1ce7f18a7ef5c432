"""The law that the guarantee requires of every noise, by budget, norms and the sensitivity of its process.

It is computed from its characteristic function, a product over the nodes of the process. For a node with discrete
Laplace noise of scale b, with q = exp(-1/b), E cos(x X) = (1 - q)^2 / (1 - 2 q cos x + q^2); for discrete Gaussian
noise of variance V it is exp(-x^2 V / 2) up to the lattice, which is so fine (at least four steps to a deviation) that
the difference is below e^-300. A sum over nodes with weights w has the product at x w.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arrays import F64
from ..coins import Coins
from ..compilers import sample_in
from ..noise import Mechanism, Process, Rectangle
from ..privacy import Share
from ..statistics import Layout, Restated
from ..statistics.restated import Lagged
from ..stream import Specification

Node = tuple[int, int]

# The last release to check of a stream without a horizon.
ENDLESS = 1 << 20

# The lattice makes the variance of Gaussian noise at most this many times the claimed one.
WIDER = 1.021
# The integral for tails: its range for Gaussian noise in inverse deviations, its points for each of these, the most
# points, and its largest error.
REACH, RESOLUTION, MOST_POINTS, ROUNDED = 12.0, 64, 1 << 17, 1e-4


class Claim(NamedTuple):
    """What a guarantee requires of one noise."""

    layout: Layout
    share: Share
    process: Process


def claims(spec: Specification, name: str, coins: Coins | None = None) -> Iterator[tuple[str, int, Claim, Mechanism]]:
    """Every noise of a statistic: its name, how many releases after the statistic it starts, what is claimed of it, and
    the mechanism that draws it."""
    statistic, share = spec.statistics[name], spec.shares[name]
    layout = spec.bounds[name].layout
    noise = spec.mechanism(name, coins or Coins(bytes(32)))
    sample = sample_in(spec.bounds[name])
    if sample is None and not spec.bounds[name].additive:
        return
    if sample is not None:
        if sample.noisy:
            yield f"{name}, {sample.noisy}", 0, Claim(layout, noise.share, spec.processes[name]), noise
        return
    if not isinstance(noise, Lagged) or not isinstance(statistic, Restated):
        yield name, 0, Claim(layout, share, spec.processes[name]), noise
        return
    part = share if noise.shared else Share(share.kind, share.amount / len(statistic.lags))
    for lag, mechanism in zip(statistic.lags, noise.parts, strict=True):
        yield f"{name}, lag {lag}", -(-lag // statistic.every), Claim(layout, part, mechanism.process), mechanism


def claimed_size(claim: Claim, level: int, unit: int) -> Fraction:
    """The scale (pure) or the variance (Gaussian) that the guarantee requires of a node, in units of the data, by the
    declared sensitivity of its process (which `check_sensitivity` tries to refute)."""
    layout, share, process = claim
    if share.kind == "pure":
        return unit * layout.norm1 * process.l1 * process.spread(level, 1) / share.amount
    return unit**2 * layout.norm2_squared * process.l2_squared * process.spread(level, 2) / share.amount


class Nodes:
    """The nodes of one claim for coordinates of one unit; ``fineness``: the denominator of each release."""

    def __init__(self, claim: Claim, unit: int, fineness: Mapping[int, int]) -> None:
        self.claim, self.unit, self._fineness = claim, unit, dict(fineness)
        self._forms: dict[int, Form] = {}

    def form(self, look: int) -> Form:
        """The noise of one release."""
        if look not in self._forms:
            terms = self.claim.process.at(look)
            nodes = zip(terms.levels.tolist(), terms.indices.tolist(), strict=True)
            weights = dict(zip(nodes, (terms.weights / terms.denominator).tolist(), strict=True))
            finer = max(1, self._fineness[look] // terms.denominator)
            spacing = math.gcd(*terms.weights.tolist(), 0) / (terms.denominator * finer)
            self._forms[look] = Form(self, weights, spacing, finer)
        return self._forms[look]

    def shares(self, other: Nodes) -> bool:
        """Whether two views may have nodes in common, as lags with a shared noise do."""
        return self.unit == other.unit and _family(self.claim.process) == _family(other.claim.process) != ""

    def size(self, level: int) -> float:
        """The scale, or the variance, of a node."""
        return float(claimed_size(self.claim, level, self.unit))

    @property
    def pure(self) -> bool:
        return self.claim.share.kind == "pure"


class Form:
    """A sum of weight * noise over nodes.

    ``spacing``: that of its lattice (0: unknown). ``finer``: how many times finer than the data the lattice of a node
    is.
    """

    def __init__(
        self, nodes: Nodes, weights: Mapping[Node, float], spacing: float, finer: int, copies: int = 1
    ) -> None:
        self._nodes, self._weights, self._finer, self._copies = nodes, dict(weights), finer, copies
        self.spacing = spacing
        sizes = {level: nodes.size(level) for level, _ in weights}
        alike = Counter((sizes[level], abs(w)) for (level, _), w in weights.items() if w)
        self._sizes = np.array([size for size, _ in alike])
        self._used = np.array([w for _, w in alike])
        self._times = np.array(list(alike.values()))

    @cached_property
    def deviation(self) -> float:
        if not len(self._used):
            return 0.0
        variances = _laplace_variance(self._sizes) if self._nodes.pure else self._sizes
        return math.sqrt(self._copies * float((self._times * self._used**2 * variances).sum()))

    def at(self, t: float) -> float:
        """E cos(t Z)."""
        return float(self.values(np.array([t]))[0])

    def values(self, t: F64) -> F64:
        x = np.multiply.outer(np.asarray(t, dtype=np.float64), self._used)
        if not self._nodes.pure:
            return np.asarray(np.exp(-self._copies / 2 * (x**2 @ (self._times * self._sizes))))
        q = np.exp(-1 / self._sizes)
        # 1 - cos x is 2 sin^2(x / 2), which stays exact for small x.
        spread = 4 * q * np.sin(x / 2) ** 2 / np.expm1(-1 / self._sizes) ** 2
        return np.asarray(np.exp(-self._copies * (np.log1p(spread) @ self._times)))

    def variance(self, t: float) -> float:
        """Of cos(t Z)."""
        return (1 + self.at(2 * t)) / 2 - self.at(t) ** 2

    def slack(self, t: float) -> float:
        """By how much the lattice may lower E cos(t Z)."""
        return 0.0 if self._nodes.pure else self.at(t) - self.at(t * math.sqrt(WIDER))

    @cached_property
    def atom(self) -> float:
        """The largest probability of any value is at most this: given all other nodes, that of the widest one."""
        if not len(self._used):
            return 1.0
        if self._nodes.pure:
            return float(np.tanh(0.5 / self._sizes).min())
        return float(min(1.0, (1 / (self._finer * np.sqrt(2 * math.pi * self._sizes))).min()))

    def plus(self, other: Form, sign: int) -> Form:
        """The sum or the difference of two."""
        weights = dict(self._weights)
        for node, weight in other._weights.items():
            weights[node] = weights.get(node, 0.0) + sign * weight
        near = 1e-12 * max([abs(w) for w in weights.values()], default=0.0)
        kept = {node: weight for node, weight in weights.items() if abs(weight) > near}
        return Form(self._nodes, kept, 0.0, min(self._finer, other._finer))

    def twice(self) -> Form:
        """The sum of two independent copies."""
        return Form(self._nodes, self._weights, 0.0, self._finer, 2)

    def within(self, bounds: Sequence[float]) -> Iterator[tuple[float, float, float]]:
        """For each of these bounds one near it that lies between two points of the lattice, and a lower and an upper
        bound on P(|Z| is below it); nothing where the lattice is too fine for the noise. With N whole steps it is
        (1 / pi) * the integral over 0 .. pi of phi(u / step) sin((N + 1/2) u) / sin(u / 2) du."""
        if not self.spacing or not self.deviation:
            return
        # The Gaussian integrand ends there; the Laplace one has peaks up to pi, where the lattices of nodes meet.
        narrow = self.spacing / self.deviation
        end = math.pi if self._nodes.pure else min(math.pi, REACH * narrow)
        points = math.ceil(end / narrow * RESOLUTION) + 2
        if points > MOST_POINTS:
            return
        u = np.linspace(0.0, end, points)[1:]
        widths = (1.0,) if self._nodes.pure else (math.sqrt(WIDER), 1.0)
        curves = [self.values(u / self.spacing * width) for width in widths]  # the costly part, the same for all bounds
        halves = np.sin(u / 2)
        for steps in (math.floor(bound / self.spacing) for bound in bounds):
            kernel = np.sin((steps + 0.5) * u) / halves
            found = []
            for curve in curves:
                whole = np.concatenate([[2 * steps + 1.0], curve * kernel])
                found.append(float(np.trapezoid(whole, dx=end / (points - 1))) / math.pi)
            yield (steps + 0.5) * self.spacing, max(0.0, min(found) - ROUNDED), min(1.0, max(found) + ROUNDED)


def _laplace_variance(scales: F64) -> F64:
    q = np.exp(-1 / scales)
    return np.asarray(2 * q / np.expm1(-1 / scales) ** 2)


def _family(process: Process) -> str:
    """What views with a shared noise have in common."""
    return repr(process.process) if isinstance(process, Rectangle) else ""
