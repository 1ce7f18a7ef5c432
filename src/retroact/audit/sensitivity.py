"""Without a single draw: the most that one operation costs (`testing.sensitivity`), and how often a threshold fails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..arrays import F64, I64
from ..coins import DiscreteLaplace
from ..noise import Mechanism, Threshold
from ..noise.process import some_rounds
from ..noise.threshold import ENUMERATED, threshold_for
from ..paper_forms import paper_form
from ..privacy.normal import upper_tail_float
from ..statistics.histogram import Histogram
from ..statistics.wrapper import layers
from ..stream import Specification
from ..testing.check import Check, Finding
from ..testing.seeds import Seeds
from ..testing.sensitivity import sensitivity_of
from .result import Result, decimal, idle_inside, report
from .target import Target

# Of more releases than can be enumerated, this many are looked at in each doubling.
LOOKED_AT = 64
DOUBLINGS = 20


def sensitivity(target: Target, seeds: Seeds, *, pairs: int = 500) -> list[Result]:
    """One result for each statistic, and one for each threshold.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> (result,) = sensitivity(Target.stream(spec), Seeds(1), pairs=5)
    >>> result.verdict, result.measured["cost, of the share"], result.control.caught
    ('passed', '1', True)
    """
    spec = target.specification
    if spec is None:
        return [idle_inside("sensitivity")]
    checks = {name: sensitivity_of(spec, name, pairs) for name in spec.bounds}
    results = [
        report(*check, seeds.branch(name), part="privacy", test=f"sensitivity: {name}")
        for name, check in checks.items()
    ]
    return [*results, *threshold_tail(target)]


def threshold_tail(target: Target) -> list[Result]:
    """For each histogram whose bins are not declared: how often a bin of one record is shown, over all releases.

    >>> import retroact as ra
    >>> stats = {"h": ra.Histogram("country")}
    >>> spec = ra.Specification({"country": ra.Text()}, stats, epsilon=1.0, delta=1e-6, horizon=100)
    >>> (result,) = threshold_tail(Target.stream(spec))
    >>> result.verdict, result.control.caught
    ('passed', True)
    """
    spec = target.specification
    results = []
    for name, bound in {} if spec is None else spec.bounds.items():
        threshold = (bound.parts or [bound])[0].threshold
        if spec is not None and threshold is not None:
            check = ThresholdTail(spec, name)
            results.append(report(check, threshold, Seeds(0), part="privacy", test=f"threshold: {name}"))
    return results


@dataclass(frozen=True)
class ThresholdTail(Check[Threshold]):
    """How often one histogram shows a bin of one record. The lags of a restated histogram have equal thresholds."""

    spec: Specification
    name: str
    question = "Is a value that only one record in {self.name!r} has shown as rarely as the claim allows?"

    def planted(self, target: Threshold) -> list[list[tuple[str, Threshold]]]:
        bug = "a threshold for one release only, as if it were not looked at again and again"
        parts = self.spec.bounds[self.name].parts
        return [[(bug, _for_one_release(self._noise, target, self.spec.failures[self.name] / max(1, len(parts))))]]

    def run(self, target: Threshold, seeds: Seeds) -> Finding:
        histogram, grant = layers(self.spec.statistics[self.name])[-1], self.spec.grants[self.name]
        assert isinstance(histogram, Histogram)
        bins = histogram.most_bins or 1 if histogram.adaptive else 1
        parts, allowed = max(1, len(self.spec.bounds[self.name].parts)), float(self.spec.failures[self.name])
        total, looked = self._failure(target, None if histogram.adaptive else grant.live)
        total *= bins * parts
        releases = "every release" if looked == grant.releases else f"{looked:,} releases, the worst for all like it"
        return Finding(
            tried=f"The probability that the noise lifts a count of one over the threshold, computed for {releases} in "
            f"which a record can be counted, and added up{f' over {bins:,} bins' if bins > 1 else ''}"
            f"{f' and {parts} lags' if parts > 1 else ''}. The guarantee rests on that sum.",
            runs=looked,
            verdict="violation" if total > allowed else "passed",
            found=f"The probabilities add up to {decimal(total)}; the claim allows {decimal(allowed)}.",
            detectable=f"A threshold so low that the sum is {decimal(allowed / max(total, 1e-300))} times what it is "
            "would be shown with certainty.",
            measured={"probability at most": decimal(total), "allowed": decimal(allowed)},
        )

    @property
    def _noise(self) -> Mechanism:
        bound = self.spec.bounds[self.name]
        return (bound.parts or [bound])[0].noise

    def _failure(self, threshold: Threshold, live: int | None) -> tuple[float, int]:
        """The sum over the releases that one record can be in, and how many were looked at."""
        last = self.spec.releases(self.name)
        if live is not None:
            last = min(last or 8 * live, max(8 * live, LOOKED_AT))
        if last is not None and last <= ENUMERATED:
            chances = _tails(self._noise, threshold, np.arange(1, last + 1))
            if live is None or live >= last:
                return math.fsum(chances.tolist()), last
            sums = np.cumsum(np.concatenate([[0.0], chances]))
            return float((sums[live:] - sums[:-live]).max()), last
        total, looked = 0.0, 0
        for doubling in range(last.bit_length() if last is not None else DOUBLINGS):
            first = 1 << doubling
            length = min(first, (last or first << 1) - first + 1)
            rounds = first - 1 + some_rounds(length, LOOKED_AT)
            total += length * float(_tails(self._noise, threshold, rounds).max())
            looked += len(rounds)
        return total, looked


def _for_one_release(noise: Mechanism, threshold: Threshold, failure: Fraction) -> Threshold:
    law, paper = noise.law(0, 1), paper_form("PaperThreshold")
    if isinstance(threshold, paper) and isinstance(law, DiscreteLaplace):
        theirs: Threshold = paper(1, law.scale, failure, 1)
        return theirs
    return threshold_for(noise, failure, None, live=1)


def _tails(noise: Mechanism, threshold: Threshold, rounds: I64) -> F64:
    """P(1 + noise >= threshold); releases of equal noise and threshold are computed once."""
    variances = noise.variances_of(0, rounds)
    known: dict[tuple[float, Fraction], float] = {}
    out = np.empty(len(rounds))
    for place, (round, variance) in enumerate(zip(rounds.tolist(), variances.tolist(), strict=True)):
        key = variance, threshold.at(round) - 1
        if key not in known:
            known[key] = _tail(noise, round, variance, float(key[1]))
        out[place] = known[key]
    return out


def _tail(noise: Mechanism, round: int, variance: float, reach: float) -> float:
    if noise.share.kind == "pure":
        return noise.tail(round, 0).upper(reach)
    # A sum over a lattice is at most the integral from half a step lower.
    return upper_tail_float((reach - 0.5 / noise.refinement) / math.sqrt(variance))
