"""What published numbers alone give away: bounds and p-values from transcripts, for algorithms with a leak."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from retroact.arrays import F64
from retroact.audit.bounds import _check, _log_ratio, binomial_lower, mu_bound, pooled_bound
from retroact.audit.likelihood import ROUNDING, Moves
from retroact.coins import DiscreteGaussian, DiscreteLaplace, Law
from retroact.errors import InputError
from retroact.noise import Mechanism, Process, Summand, Tail
from retroact.privacy import Share
from retroact.statistics import Layout
from retroact.testing.claimed_law import Claim, claimed_size
from retroact.testing.seeds import Seeds

CELLS = 10
# A cell of a distribution counts where so many samples of the claimed law are expected in it.
FEWEST = 10
# Runs that approximations of p-values need.
RUNS = 30
# Rounds whose shape is looked at where nodes cannot be recovered.
SHAPES = 2
# Tails are computed down to here; noise beyond is as unlikely as that.
LEAST = 1e-300
OFF_LATTICE = 1e-5


def union_bound(seen1: int, runs1: int, seen0: int, runs0: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """An event was seen so many times in the runs of either world.

    Privacy says P1[event] <= e^epsilon P0[event] + delta, so e^epsilon >= (P1 - delta) / P0: an exact lower bound for
    P1 and an exact upper bound for P0, each with half of the probability of error. For events that one world never
    shows; otherwise `game_bound` is larger.

    >>> round(union_bound(30, 1000, 0, 1000, 1e-6), 2)
    1.71
    """
    _check(seen1, runs1, confidence)
    _check(seen0, runs0, confidence)
    each = (1 + confidence) / 2
    return _log_ratio(binomial_lower(seen1, runs1, each) - delta, 1 - binomial_lower(runs0 - seen0, runs0, each))


def transcript_likelihood(
    answers0: npt.ArrayLike,
    answers1: npt.ArrayLike,
    truth0: npt.ArrayLike,
    truth1: npt.ArrayLike,
    process: Process,
    share: Share,
    *,
    seeds: Seeds,
    unit: int = 1,
    confidence: float = 0.999,
) -> float:
    """A lower bound on epsilon (pure) or mu from published numbers, runs by rounds, of two neighbouring histories.

    For a process whose nodes follow from the answers of all rounds (a tree). The bound is for what is claimed: that
    the nodes of this process are independent; above the share, it refutes the claim. In every run a coin decides which
    of the two worlds is looked at.

    >>> from fractions import Fraction
    >>> from retroact.noise import Tree
    >>> random, tree = Seeds(1).numpy(), Tree(4)
    >>> truth = np.array([0, 0, 0, 0]), np.array([1, 1, 0, 0])
    >>> noisy = [t + random.normal(0, 0.01, (500, 4)) for t in truth]
    >>> transcript_likelihood(*noisy, *truth, tree, Share("pure", Fraction(1)), seeds=Seeds(2)) > 1
    True
    """
    zero, one = (np.atleast_2d(np.asarray(a, dtype=float)) for a in (answers0, answers1))
    before, after = np.asarray(truth0, dtype=float), np.asarray(truth1, dtype=float)
    if zero.shape != one.shape or before.shape != after.shape or before.shape[-1] != zero.shape[1]:
        raise InputError(f"expected the same runs and rounds everywhere, got {zero.shape} and {one.shape}")
    recovered0, recovered1 = (recover(process, answers - before) for answers in (zero, one))
    shifts = recover(process, np.atleast_2d(after - before))[0]
    moving = np.flatnonzero(np.abs(shifts) > ROUNDING)
    p = 1 if share.kind == "pure" else 2
    norm = process.l1 if p == 1 else process.l2_squared
    names = list(weights(process, zero.shape[1])[1])
    sizes = [float(unit**p * norm * process.spread(names[j][0], p) / share.amount) for j in moving.tolist()]
    signs = np.sign(shifts[moving])
    moves = Moves(share.kind, np.abs(shifts[moving]), np.array(sizes))
    noise0, noise1 = (recovered[:, moving] * signs for recovered in (recovered0, recovered1))
    return proven(moves, noise0.T, noise1.T, seeds.branch("bits"), confidence)


def proven(moves: Moves, noise0: F64, noise1: F64, seeds: Seeds, confidence: float) -> float:
    """What guesses by the likelihood ratio prove, where a coin decides for each run (pure: for each noise of it) which
    world is seen. Noises by runs."""
    random, (count, runs) = seeds.numpy(), noise0.shape
    shifts, sizes = moves.shifts[:, None], moves.sizes[:, None]
    world = random.integers(0, 2, runs, dtype=np.int8)
    if moves.kind != "pure":
        seen = np.where(world == 1, noise1, noise0)
        scores = ((seen - shifts / 2) * (shifts / sizes)).sum(axis=0)
        return mu_bound(int(((scores > 0) == (world == 1)).sum()), runs, confidence)
    bits = random.integers(0, 2, (count, runs), dtype=np.int8)
    seen = np.where(bits == 1, noise1, noise0)
    up, down = seen >= shifts * (1 - ROUNDING), seen <= shifts * ROUNDING
    votes = [right[sure] for right, sure in zip(up == (bits == 1), up | down, strict=True)]
    fewest = min(map(len, votes))
    correct = sum(int(vote[:fewest].sum()) for vote in votes)
    return pooled_bound(correct, fewest * count, count, confidence) if fewest else 0.0


def weights(process: Process, rounds: int) -> tuple[F64, dict[tuple[int, int], int]]:
    """The matrix that makes the noise of rounds 1 .. n from nodes, and the column of each node.

    >>> from retroact.noise import Tree
    >>> weights(Tree(3), 3)[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    names: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, float]] = []
    for row in range(rounds):
        terms = process.at(row + 1)
        for level, index, weight in zip(
            *(a.tolist() for a in (terms.levels, terms.indices, terms.weights)), strict=True
        ):
            rows.append((row, names.setdefault((level, index), len(names)), weight / terms.denominator))
    matrix = np.zeros((rounds, len(names)))
    for row, column, weight in rows:
        matrix[row, column] += weight
    return matrix, names


def recover(process: Process, noise: F64) -> F64:
    """The nodes, from the noise of rounds 1 .. n (runs by rounds): in the order of `weights`.

    >>> from retroact.noise import Tree
    >>> recover(Tree(4), np.array([[1.0, 3.0, 4.0, 9.0]])).tolist()
    [[1.0, 3.0, 1.0, 9.0]]
    """
    matrix, names = weights(process, noise.shape[1])
    if np.linalg.matrix_rank(matrix) < len(names):
        raise InputError(f"expected a process whose noises follow from its rounds, got {process!r}", place="process")
    return (noise @ np.linalg.pinv(matrix).T).round(9)


def conformance_of(
    noise: npt.ArrayLike, process: Process, share: Share, *, unit: int = 1, other: npt.ArrayLike | None = None
) -> float:
    """How likely noise as far from the claim as this is, if the claim is true: a p-value, corrected for the number of
    comparisons. ``noise``: runs by rounds 1 .. n, answers minus truth, of any algorithm that claims this process and
    share for one number that a record moves by at most ``unit``. ``other``: the same under another history, which must
    have the same law.

    >>> from retroact.noise import Tree
    >>> mechanism = Mechanism(Tree(4), Share("pure", Fraction(1)), units=(1,) * 300, norm1=Fraction(1),
    ...                       norm2_squared=Fraction(1)).under(Seeds(1).coins())
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
    calibrated = Mechanism(claim.process, claim.share, units=(unit,), norm1=one, norm2_squared=one)
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


def _chi_square(value: float, freedom: float, *, two_sided: bool = False) -> float:
    """The probability of at least this value (Wilson and Hilferty), or of one as far off in either direction."""
    deviate = ((value / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return _two_sided(deviate) if two_sided else _upper(deviate)


def _upper(deviate: float) -> float:
    return math.erfc(deviate / math.sqrt(2)) / 2


def _two_sided(deviate: float) -> float:
    return math.erfc(abs(deviate) / math.sqrt(2))


def _claimed_law(claim: Claim, level: int, unit: int) -> tuple[Law, int]:
    """The law that the guarantee asks for, and how many times finer than the data its lattice is."""
    size = claimed_size(claim, level, unit)
    if claim.share.kind == "pure":
        return DiscreteLaplace(size), 1
    # Gaussian noise is claimed up to its lattice, which is fine beside it.
    return DiscreteGaussian(Fraction(math.ceil(size * 2**30), 2**10)), 1 << 10


def claimed_tail(claim: Claim, index: int, unit: int) -> Tail:
    terms = claim.process.at(index)
    parts = []
    fine = 1
    for level in np.unique(terms.levels).tolist():
        law, fine = _claimed_law(claim, level, unit)
        parts.append(Summand.of(law, terms.weights[terms.levels == level], terms.denominator * fine))
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * fine)
    return Tail(parts, spacing)


def cumulants(law: Law) -> tuple[float, float]:
    """The second and the fourth, of a law that is claimed.

    >>> variance, fourth = cumulants(DiscreteLaplace(1000))
    >>> round(fourth / variance**2, 3)
    3.0
    """
    if not isinstance(law, DiscreteLaplace):
        return law.variance, 0.0  # many lattice steps wide
    q = math.exp(-1 / law.scale)
    return 2 * q / (1 - q) ** 2, 2 * q * (1 + 4 * q + q * q) / (1 - q) ** 4


def shape_deviate(samples: F64, tail: Tail, spacing: float) -> float:
    """Chi-square over cells of the claimed distribution of |noise|, as a normal deviate (Wilson and Hilferty)."""
    edges = [tail.half_width(i / CELLS) * (1 + 1e-6) for i in range(1, CELLS)]
    if tail.gaussian and spacing:
        # The claim is a fine lattice: between two points of the coarser one it says what both together have.
        edges = [(math.floor(edge / spacing) + 0.5) * spacing for edge in edges]
    kept: list[float] = []
    beyond = [1.0]
    for edge in edges:
        after = 2 * tail.upper(edge) if edge not in kept else 0.0
        if min(beyond[-1] - after, after) * len(samples) >= FEWEST:
            kept.append(edge)
            beyond.append(after)
    freedom = len(kept)
    if not freedom:
        return 0.0
    expected = -np.diff([*beyond, 0.0]) * len(samples)
    observed = np.bincount(np.searchsorted(kept, np.abs(samples)), minlength=freedom + 1)
    chi = float(((observed - expected) ** 2 / expected).sum())
    return float((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
