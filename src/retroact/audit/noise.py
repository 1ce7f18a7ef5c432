"""Does noise have the law that its claim asks for? From the numbers alone, whoever made them.

Under the claim the nodes of a process are independent with known laws. Recovered from the noise of all rounds and sent
through their own distribution function (with a coin where the law has atoms), they are independent standard normals,
exactly, and what is tested is: their mean, their variance node by node and in all, their shape, and the correlation
between nodes. Where nodes do not follow from the rounds, the noise is whitened by the claimed covariance instead.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import F64
from ..coins import Coins, DiscreteGaussian
from ..errors import InputError, VerificationError
from ..noise import Mechanism, Process
from ..privacy import Share
from ..statistics import Layout
from ..stream import Specification
from ..testing.conformance import (
    LIMIT,
    Claim,
    Conformance,
    Noise,
    check_draws,
    check_identity,
    claimed_moments,
    claimed_size,
    claimed_tail,
    conforms,
    cumulants,
    drawn,
    looked_at,
    names_of,
    noises,
    pairs_of,
    shape_deviate,
    twice,
)
from .likelihood import recover
from .nodes import idle_inside, weights
from .result import Control, Result, decimal
from .seeds import Seeds
from .target import Target

FACTORS = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0)
PLANTED = 1.5
CELLS = 10
# Runs that approximations of p-values need.
RUNS = 30
# Rounds whose shape is looked at where nodes cannot be recovered.
SHAPES = 2
# Tails are computed down to here; noise beyond is as unlikely as that.
LEAST = 1e-300
OFF_LATTICE = 1e-5
# A claimed correlation below this cannot be missed by noise that is renewed.
CORRELATED = 0.1


def conformance_of(
    noise: npt.ArrayLike, process: Process, share: Share, *, unit: int = 1, other: npt.ArrayLike | None = None
) -> float:
    """How likely noise as far from the claim as this is, if the claim is true: a p-value, corrected for the number of
    comparisons. ``noise``: runs by rounds 1 .. n, answers minus truth, of any algorithm that claims this process and
    share for one number that a record moves by at most ``unit``. ``other``: the same under another history, which must
    have the same law.

    >>> from retroact.noise import Tree
    >>> mechanism = Mechanism(Tree(4), Share("pure", Fraction(1)), units=(1,) * 300, norm1=Fraction(1),
    ...                       norm2_squared=Fraction(1), coins=Seeds(1).coins())
    >>> noise = np.array([mechanism.draw(round)[0] for round in (1, 2, 3, 4)]).T
    >>> conformance_of(noise, Tree(4), mechanism.share) > 0.01
    True
    >>> conformance_of(2 * noise, Tree(4), mechanism.share) < 1e-6
    True
    """
    one = Fraction(1)
    claim = Claim(Layout((unit,), one, one, unit), share, process)
    found: list[float] = []
    for number, array in enumerate([noise] if other is None else [noise, other]):
        numbers = np.asarray(array, dtype=float)
        if numbers.ndim != 2 or len(numbers) < RUNS:
            raise InputError(f"expected at least {RUNS} runs by rounds, got {numbers.shape}", place="noise")
        found += _p_values(numbers, claim, unit, Seeds(0, "conformance", number).numpy())
    return min(1.0, len(found) * min(found))


def _p_values(noise: F64, claim: Claim, unit: int, random: np.random.Generator) -> list[float]:
    one = Fraction(1)
    calibrated = Mechanism(
        claim.process, claim.share, units=(unit,), norm1=one, norm2_squared=one, coins=Coins(bytes(32))
    )
    try:
        values = recover(claim.process, noise)
    except InputError:
        return _whitened(noise, claim, unit, calibrated)
    names = weights(claim.process, noise.shape[1])[1]
    if np.abs(values * calibrated.refinement - np.rint(values * calibrated.refinement)).max() > OFF_LATTICE:
        return [0.0]  # noise of this claim is on a lattice
    scores = np.empty_like(values)
    for column, (level, _) in enumerate(names):
        law = calibrated.law(level, unit)
        if isinstance(law, DiscreteGaussian):
            steps = values[:, column] * calibrated.refinement + random.uniform(-0.5, 0.5, len(values))
            scores[:, column] = steps / math.sqrt(law.parameter)
        else:
            scores[:, column] = _normal(values[:, column], float(claimed_size(claim, level, unit)), random)
    return _normal_tests(scores)


def _normal(values: F64, scale: float, random: np.random.Generator) -> F64:
    """Discrete Laplace noise of this scale as standard normals."""
    size, q = np.abs(np.rint(values)), math.exp(-1 / scale)
    # P(|X| >= k) = 2 q^k / (1 + q) from k = 1 on.
    from_here = np.where(size == 0, 1.0, 2 * np.exp(-size / scale) / (1 + q))
    beyond = 2 * np.exp(-(size + 1) / scale) / (1 + q)
    tail = np.clip(beyond + random.uniform(size=len(values)) * (from_here - beyond), LEAST, 1.0)
    inverse = NormalDist().inv_cdf
    magnitude = np.array([-inverse(t / 2) for t in tail.tolist()])
    signs = np.where(size == 0, random.choice([-1.0, 1.0], len(values)), np.sign(values))
    return magnitude * signs


def _normal_tests(scores: F64) -> list[float]:
    """Of runs by nodes that should be independent standard normals."""
    runs, count = scores.shape
    squares = (scores**2).sum(axis=0)
    out = [
        _chi_square(float((scores.sum(axis=0) ** 2).sum()) / runs, count),
        _chi_square(float(squares.sum()), runs * count, two_sided=True),
        min(1.0, count * min(_chi_square(square, runs, two_sided=True) for square in squares.tolist())),
    ]
    edges = [NormalDist().inv_cdf(i / CELLS) for i in range(1, CELLS)]
    observed = np.bincount(np.searchsorted(edges, scores.ravel()), minlength=CELLS)
    expected = runs * count / CELLS
    out.append(_chi_square(float(((observed - expected) ** 2).sum()) / expected, CELLS - 1))
    if count < 2:
        return out
    # Between all pairs of nodes, by Fisher's transformation.
    norms = np.sqrt((scores**2).sum(axis=0)) + 1e-300
    r = (scores.T @ scores) / np.outer(norms, norms)
    upper = np.clip(r[np.triu_indices(count, 1)], -1 + 1e-15, 1 - 1e-15)
    return [*out, _chi_square(float((np.arctanh(upper) ** 2).sum()) * (runs - 3), len(upper))]


def _whitened(noise: F64, claim: Claim, unit: int, calibrated: Mechanism) -> list[float]:
    """Second moments by the claimed covariance, shapes round by round."""
    runs, rounds = noise.shape
    matrix, names = weights(claim.process, rounds)
    both = np.array([cumulants(calibrated.law(level, unit)) for level, _ in names])
    variances, fourths = both[:, 0] / calibrated.refinement**2, both[:, 1] / calibrated.refinement**4
    values, vectors = np.linalg.eigh((matrix * variances) @ matrix.T)
    keep = values > values.max() * 1e-10
    basis = vectors[:, keep] / np.sqrt(values[keep])
    white = noise @ basis
    # A sum of squares is taken for a chi-square with its mean and variance.
    freedom = 2 * runs / (2 + ((basis.T @ matrix) ** 4 * fourths).sum(axis=1))
    squares = zip((white**2).mean(axis=0).tolist(), freedom.tolist(), strict=True)
    moments = [_chi_square(m * f, f, two_sided=True) for m, f in squares]
    products = [(white[:, i, None] * white[:, i + 1 :]) for i in range(white.shape[1] - 1)]
    # Not independent of one another, so the largest counts, by its own spread.
    apart = [np.abs(p.mean(axis=0)) / (p.std(axis=0) + 1e-300) * math.sqrt(runs) for p in products]
    pairs = sum(map(len, apart))
    shapes = []
    looked = np.unique(np.linspace(rounds, 1, SHAPES).astype(int)).tolist()
    for round in looked:
        terms = claim.process.at(round)
        spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * calibrated.refinement)
        shapes.append(shape_deviate(noise[:, round - 1], claimed_tail(claim, round, unit), spacing))
    means = white.mean(axis=0) * math.sqrt(runs)
    return [
        min(1.0, len(moments) * min(moments)),
        min(1.0, len(looked) * _upper(max(shapes))),
        _chi_square(float((means**2).sum()), len(means)),
        *([min(1.0, pairs * _two_sided(max(float(t.max()) for t in apart)))] if pairs else []),
    ]


def conformance(target: Target, seeds: Seeds, *, draws: int = 4000) -> list[Result]:
    """One result for each statistic: every noise it has, as the stream draws it, in some releases. And one for all of
    them together: that none shares its noise with another.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in conformance(Target.stream(spec), Seeds(1), draws=500)]
    [('passed', True), ('passed', True)]
    """
    spec = target.specification
    if spec is None:
        return [idle_inside("noise", "an algorithm that is not a stream does not say what its noise is")]
    last = spec.horizon or 7
    rounds = max(1, min(3, last - 1)), min(7, last)
    differs = ""
    try:
        check_identity(spec, rounds[1])
    except VerificationError as error:
        differs = str(error)
    results = [_one(spec, name, seeds.branch(name), draws, rounds, differs) for name in spec.statistics]
    return [*results, shared_names(spec, seeds.branch("shared names"))]


def _one(spec: Specification, name: str, seeds: Seeds, draws: int, rounds: tuple[int, int], differs: str) -> Result:
    kinds = list(noises(spec, name, rounds))
    if not kinds:
        return idle_inside(f"noise: {name}", "it has no noise of a known law in these rounds")
    mine, again = differs if f" of {name}:" in differs else "", 0
    try:
        again = check_draws(spec, name, seeds.branch("again").number())
    except VerificationError as error:
        mine = mine or str(error)
    looks = _looks(spec, name, kinds, seeds.branch("pairs"))
    samples = [drawn(noise, draws, seeds.branch("draws", number).coins()) for number, noise in enumerate(looks)]
    real = [conforms(noise, numbers) for noise, numbers in zip(looks, samples, strict=True)]
    compared = [i for i, one in enumerate(real) if one.compared]
    if not compared and not mine:
        few = f"its noise is claimed to be 0 so often that {draws:,} draws say nothing about its law "
        few += f"(in {again:,} releases it is, number by number, the sum of the noises of its nodes)"
        return idle_inside(f"noise: {name}", few)
    broken = list(dict.fromkeys(looks[i].name for i in compared if not real[i].holds))
    off = max((_off(real[i]) for i in compared), default=0.0)
    left = len(looks) - len(compared)
    pairs = sorted({tuple(noise.indices) for noise in looks})
    return Result(
        part="privacy",
        test=f"noise: {name}",
        question=f"Does the noise of {name!r} have the size, the shape and the memory between rounds that is claimed?",
        tried=f"{draws:,} independent copies of the noise in pairs of releases "
        f"({', '.join(f'{one:,} and {two:,}' for one, two in pairs)}), {len(kinds)} kind{'s' * (len(kinds) != 1)} of "
        "it, against the law that the budget asks for by the declared sensitivity of its process (whether that is "
        "right is what the search for sensitivity asks); whether what is drawn in one release is, number by number, "
        f"the sum of the noises of its nodes ({again:,} releases); and, where all of it is published, whether an empty "
        f"stream publishes just that noise in rounds 1 to {rounds[1]}."
        + (
            f" {left} of {len(looks)} comparisons were left out: the noise is claimed to be 0 too often."
            if left
            else ""
        ),
        runs=draws,
        verdict="violation" if broken or mine else "passed",
        found=mine
        or (f"Refuted: {', '.join(broken)}." if broken else "Nothing that speaks against it.")
        + f" The largest deviation is {decimal(off)} standard errors, where {LIMIT:g} would refute the claim.",
        measured={"largest deviation in standard errors": decimal(off), "kinds of noise": str(len(kinds))},
        **_controlled([(looks[i], samples[i]) for i in compared], len(kinds), draws, seeds),
    )


def _looks(spec: Specification, name: str, kinds: list[Noise], seeds: Seeds) -> list[Noise]:
    """Every kind in the first rounds and at the end, one kind of each noise in further pairs."""
    out, seen = list(kinds), set()
    for noise in kinds:
        indices = looked_at(spec, name, noise.mechanism, seeds.random())
        pairs = pairs_of(indices, seeds.random())
        # With many kinds, fewer pairs of each: the time is the same.
        most = 1 if id(noise.mechanism) in seen else max(1, 2 * len(pairs) // (1 + len(kinds)))
        seen.add(id(noise.mechanism))
        out += [noise.at(pair) for pair in pairs[-most:]]
    return out


def _controlled(looks: list[tuple[Noise, F64]], kinds: int, draws: int, seeds: Seeds) -> dict[str, Any]:
    """What would have been seen, and what was planted."""
    if not looks:
        return {"detectable": "Only noise that is not the sum of the noises of its nodes."}

    def smaller(noise: Noise, factor: float) -> Conformance:
        wrong = noise._replace(mechanism=noise.mechanism.understated(1 / Fraction(factor)))
        return conforms(noise, drawn(wrong, draws, seeds.branch("smaller", noise.name, str(factor)).coins()))

    noise, numbers = looks[0]
    ladder = next((f for f in FACTORS if not smaller(noise, f).holds), None)
    planted = [smaller(one, PLANTED) for one, _ in looks[:kinds]]
    gone = conforms(looks[-1][0], np.array([looks[-1][1][0], np.zeros(draws)]))
    renewed = _renewed(noise, numbers, draws, seeds.branch("renewed"))
    every = [*planted, gone, *([] if renewed is None else [renewed])]
    return {
        "detectable": f"Noise {ladder:g} times too small was refuted by as many draws (factors tried: "
        f"{', '.join(f'{f:g}' for f in FACTORS)})."
        if ladder
        else f"Not even noise {FACTORS[-1]:g} times too small was refuted by so few draws.",
        "control": Control(
            bug=f"noise that is {PLANTED:g} times too small, noise that is missing in release "
            f"{looks[-1][0].indices[1]:,}"
            + ("" if renewed is None else ", and noise that is drawn anew in every round"),
            caught=not any(one.holds for one in every),
            how=f"deviations of {decimal(min(_off(one) for one in planted))} and {decimal(_off(gone))}"
            + ("" if renewed is None else f" and {decimal(_off(renewed))}")
            + " standard errors",
        ),
    }


def shared_names(spec: Specification, seeds: Seeds) -> Result:
    """Noise is a function of key and name: equal names would make equal noise, which cancels out."""
    coins = seeds.coins()
    every = [named for name in spec.statistics for named in names_of(spec, name, coins)]
    equal = twice(every)
    (first, *_) = spec.statistics
    planted = twice(
        [*names_of(spec, first, coins), *((f"a copy of {who}", w) for who, w in names_of(spec, first, coins))]
    )
    return Result(
        part="privacy",
        test="noise: shared names",
        question="Does every noise have coins of its own, or do two share theirs, so that their difference has none?",
        tried=f"The first 128 bits behind {len(every):,} noises under one key, each with each: of all statistics, "
        "lags, some coordinates and nodes.",
        runs=len(every),
        verdict="violation" if equal else "passed",
        found=f"The same bits: {equal[0][0]} and {equal[0][1]}; {len(equal):,} such pairs in all."
        if equal
        else "No two are equal.",
        detectable="Any two of these that have the same name: bits that are equal by chance have probability below "
        f"{decimal(len(every) ** 2 / 2**129)}.",
        control=Control(
            bug="a second statistic under the name of the first",
            caught=bool(planted),
            how=f"{len(planted):,} pairs with the same bits",
        ),
        counterexample=[f"{one} = {other}" for one, other in equal[:20]],
    )


def _renewed(noise: Noise, samples: F64, draws: int, seeds: Seeds) -> Conformance | None:
    """The right law in each round, with none of the memory between them; None where there should be none."""
    correlation = claimed_moments(noise.claim, noise.indices, noise.unit).correlation
    if abs(correlation) < CORRELATED or noise.indices[0] == noise.indices[1]:
        return None
    return conforms(noise, np.array([drawn(noise, draws, seeds.coins())[0], samples[1]]))


def _off(conformed: Conformance) -> float:
    return max(abs(conformed.variance), abs(conformed.shape), abs(conformed.covariance))


def _chi_square(value: float, freedom: float, *, two_sided: bool = False) -> float:
    """The probability of at least this value (Wilson and Hilferty), or of one as far off in either direction."""
    deviate = ((value / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return _two_sided(deviate) if two_sided else _upper(deviate)


def _upper(deviate: float) -> float:
    return math.erfc(deviate / math.sqrt(2)) / 2


def _two_sided(deviate: float) -> float:
    return math.erfc(abs(deviate) / math.sqrt(2))
