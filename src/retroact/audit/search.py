"""Without a single draw: the most that one operation costs, and how often a threshold fails, exactly.

What hiding the difference of two histories costs is a sum over the noises that move, in the exact scales of their laws.
A search over pairs finds mistakes of calibration (a norm, a unit, a height that is wrong) that no number of draws shows
as surely. What it cannot find is a pair worse than those it looks at.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..arrays import F64, I64
from ..coins import Coins, DiscreteLaplace
from ..compilers import sample_in
from ..errors import VerificationError
from ..ledger.definition import Add, Sequence
from ..noise import Mechanism, Threshold
from ..noise.process import ENUMERATED, some_rounds
from ..noise.threshold import threshold_for
from ..paper_forms import paper_form
from ..privacy.normal import upper_tail_float
from ..statistics.histogram import Histogram
from ..statistics.wrapper import layers
from ..stream import Specification
from ..testing import neighbouring_pairs
from ..testing.sensitivity import moved_samples, single_pairs
from .adversaries import written
from .nodes import Candidate, candidates, idle_inside, obstacle
from .result import Control, Result, decimal
from .seeds import Seeds
from .target import Target

HALF = Fraction(1, 2)
# Of more releases than can be enumerated, so many are looked at in each doubling.
LOOKED_AT = 64
DOUBLINGS = 20
# Rounds of the longest history of a sample.
LONGEST = 64


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
        return [idle_inside("sensitivity", "an algorithm that is not a stream does not say what its noise is")]
    return [*(_searched(spec, name, seeds.branch(name), pairs) for name in spec.statistics), *threshold_tail(target)]


def _searched(spec: Specification, name: str, seeds: Seeds, pairs: int) -> Result:
    if sample_in(spec.bounds[name]) is not None:
        return _sampled(spec, name, seeds, pairs)
    reason = obstacle(spec, name)
    if reason is not None:
        return idle_inside(f"sensitivity: {name}", reason)
    share, tried = spec.shares[name], 0
    worst: Candidate | None = None
    unhidden: list[str] = []
    try:
        for candidate in candidates(spec, name, seeds.random(), pairs=pairs):
            tried += 1
            if worst is None or candidate.cost > worst.cost:
                worst = candidate
    except VerificationError as error:
        unhidden = str(error).splitlines()
    if worst is None or not worst.cost:
        if not unhidden:
            return idle_inside(f"sensitivity: {name}", "no record was found that moves its totals")
        worst = Candidate(Fraction(0), [], list)
    letter, root = ("epsilon", 1.0) if share.kind == "pure" else ("mu^2", 0.5)
    planted = sum((m.noise.understated(HALF).cost_of(m.coordinate, m.shift) for m in worst.moved), Fraction(0))
    broken = worst.cost > share.amount or bool(unhidden)
    ratio = float(worst.cost / share.amount)
    shown = f"to hide one operation costs {letter} = {decimal(float(worst.cost))}, granted is "
    granted = decimal(float(share.amount))
    spare = decimal(ratio**-root) if ratio else "1"
    slack = "at all" if spare == "1" or ratio > 1 else f"more than {spare} times"
    return Result(
        part="privacy",
        test=f"sensitivity: {name}",
        question=f"Is the noise of {name!r} large enough for the most that one operation can change?",
        tried=f"{tried:,} pairs of histories that differ in one operation: single records and random histories of up "
        "to eight rounds, and one record over long intervals up to the full horizon. For each, the exact cost of "
        "hiding the difference, with no sampling.",
        runs=tried,
        verdict="violation" if broken else "passed",
        found="A change was found that the noise is not made to hide."
        if unhidden
        else f"In the worst pair {shown}{granted} ({decimal(ratio)} of it).",
        detectable=f"Noise that is {slack} too small would be shown with certainty, if these pairs are the worst there "
        "are.",
        control=Control(
            bug="noise that was calibrated as if a record moved half of what it does",
            caught=planted > share.amount,
            how=f"the same pair then costs {decimal(float(planted))}, granted is {granted}",
        ),
        measured={
            f"{letter} granted": granted,
            f"{letter} of the worst pair": decimal(float(worst.cost)),
            "cost, of the share": decimal(ratio),
            "exact cost, of the share": str(worst.cost / share.amount),
            "noises that move": str(sum(len(moved.shift) for moved in worst.moved)),
        },
        counterexample=unhidden or (worst.told() if broken else []),
    )


def _sampled(spec: Specification, name: str, seeds: Seeds, pairs: int) -> Result:
    """Of samples: in how many answers one operation can be seen, against what is paid for."""
    noise, paid = spec.mechanism(name, Coins(bytes(32))), spec.grants[name].reach or 0
    shape = Target.stream(spec).shape
    worst, told, broken, tried = 0, list[str](), list[str](), 0
    # One record that is never deleted, for as long as it can live and a little longer.
    rounds = min(spec.horizon or LONGEST, (spec.window_of(name) or LONGEST) + 2, LONGEST)
    nothing: Sequence = ((),) * rounds
    lives = [(nothing, ((Add(value),), *nothing[1:])) for value in shape.values]
    try:
        for one, other in [*lives, *single_pairs(shape), *neighbouring_pairs(shape, seeds.random(), pairs)]:
            tried += 1
            differing = sum(map(abs, moved_samples(spec, name, noise, one, other)))
            if differing > worst:
                worst, told = differing, [f"one = {written(one)}", f"other = {written(other)}"]
    except VerificationError as error:
        broken = str(error).splitlines()
    violated = bool(broken) or worst > paid
    return Result(
        part="privacy",
        test=f"sensitivity: {name}",
        question=f"Is every answer of {name!r} in which one operation can be seen paid for?",
        tried=f"{tried:,} pairs of histories that differ in one operation; for each, the "
        "exact number of answers whose live records differ, and by how much.",
        runs=tried,
        verdict="violation" if violated else "passed",
        found="One operation moves more than one record, or passes the gate unpaid."
        if broken
        else f"One operation changes the live records of at most {worst} answers, and by one record; {paid} are paid "
        "for.",
        detectable=f"One answer more than {paid}, or one record more in an answer, would be shown with certainty, if "
        "it happens in these pairs.",
        control=Control(
            bug="an addition that counts its record twice",
            caught=any(_unpaid(spec, name, noise, nothing, twice) for twice in _doubled(lives)),
            how="two live records differ in one answer",
        ),
        measured={"answers that differ": str(worst), "answers paid for": str(paid)},
        counterexample=broken or (told if violated else []),
    )


def _doubled(lives: list[tuple[Sequence, Sequence]]) -> list[Sequence]:
    return [(first * 2, *rest) for _, (first, *rest) in lives]


def _unpaid(spec: Specification, name: str, noise: Mechanism, one: Sequence, other: Sequence) -> bool:
    try:
        return sum(map(abs, moved_samples(spec, name, noise, one, other))) > (spec.grants[name].reach or 0)
    except VerificationError:
        return True


def threshold_tail(target: Target) -> list[Result]:
    """For each histogram of bins that are not declared: how often a bin of one record is shown, over all releases.

    >>> import retroact as ra
    >>> stats = {"h": ra.Histogram("country")}
    >>> spec = ra.Specification({"country": ra.Text()}, stats, epsilon=1.0, delta=1e-6, horizon=100)
    >>> (result,) = threshold_tail(Target.stream(spec))
    >>> result.verdict, result.control.caught
    ('passed', True)
    """
    spec = target.specification
    if spec is None:
        return []
    out = []
    for name in spec.statistics:
        parts = spec.bounds[name].parts or [spec.bounds[name]]
        if all(part.threshold is not None for part in parts):
            out.append(_threshold(spec, name, len(parts)))
    return out


def _threshold(spec: Specification, name: str, parts: int) -> Result:
    histogram = layers(spec.statistics[name])[-1]
    assert isinstance(histogram, Histogram)
    grant, allowed = spec.grants[name], float(spec.failures[name])
    bins = histogram.most_bins or 1 if histogram.adaptive else 1
    live = None if histogram.adaptive else grant.live
    # The lags of a restated histogram have thresholds of their own, alike in noise and failure.
    total, looked = _failure(spec, name, live)
    forgotten, _ = _failure(spec, name, live, planted=True)
    total, forgotten = (value * bins * parts for value in (total, forgotten))
    releases = "every release" if looked == grant.releases else f"{looked:,} releases, the worst for all like it"
    return Result(
        part="privacy",
        test=f"threshold: {name}",
        question=f"Is a value that only one record in {name!r} has shown as rarely as the claim allows?",
        tried=f"The probability that the noise lifts a count of one over the threshold, computed for {releases} in "
        f"which a record can be counted, and added up{f' over {bins:,} bins' if bins > 1 else ''}"
        f"{f' and {parts} lags' if parts > 1 else ''}. The guarantee rests on that sum.",
        runs=looked,
        verdict="violation" if total > allowed else "passed",
        found=f"The probabilities add up to {decimal(total)}; the claim allows {decimal(allowed)}.",
        detectable=f"A threshold so low that the sum is {decimal(allowed / max(total, 1e-300))} times what it is would "
        "be shown with certainty.",
        control=Control(
            bug="a threshold for one release only, as if it were not looked at again and again",
            caught=forgotten > allowed,
            how=f"the probabilities then add up to {decimal(forgotten)}",
        ),
        measured={"probability at most": decimal(total), "allowed": decimal(allowed)},
    )


def _failure(spec: Specification, name: str, live: int | None, *, planted: bool = False) -> tuple[float, int]:
    """The sum over the releases that one record can be in, and how many were looked at."""
    last = spec.releases(name)
    if live is not None:
        last = min(last or 8 * live, max(8 * live, LOOKED_AT))
    if last is not None and last <= ENUMERATED:
        chances = _chances(spec, name, np.arange(1, last + 1), planted)
        if live is None or live >= last:
            return math.fsum(chances.tolist()), last
        sums = np.cumsum(np.concatenate([[0.0], chances]))
        return float((sums[live:] - sums[:-live]).max()), last
    total, looked = 0.0, 0
    for doubling in range(last.bit_length() if last is not None else DOUBLINGS):
        first = 1 << doubling
        length = min(first, (last or first << 1) - first + 1)
        rounds = first - 1 + some_rounds(length, LOOKED_AT)
        total += length * float(_chances(spec, name, rounds, planted).max())
        looked += len(rounds)
    return total, looked


def _chances(spec: Specification, name: str, rounds: I64, planted: bool) -> F64:
    """In each release, the probability that one record is shown."""
    parts = spec.bounds[name].parts or [spec.bounds[name]]
    threshold = parts[0].threshold
    assert threshold is not None
    if planted:
        threshold = _for_one_release(parts[0].noise, threshold, spec.failures[name] / len(parts))
    return _tails(parts[0].noise, threshold, rounds)


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
