"""Crossfade noise: its weights, its sensitivity over all intervals, its lattice, and bugs in each that are seen."""

import hashlib
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from retroact.coins import Key, integer_cells
from retroact.errors import InputError
from retroact.noise import Crossfade, CrossfadeEpochs, CrossfadeWindow, Mechanism, Schauder, Unbounded, Windowed
from retroact.noise import crossfade_table as table
from retroact.noise.faded import PHASES, weights, weights_hash
from retroact.privacy import delta_of, split
from retroact.testing.lattice import lattice_fineness
from support.brute_force import brute_force

MARGIN = 2.2e-4


def share(epsilon=1.0):
    return split(epsilon, 1e-6, {"n": "gaussian"}, {})["n"]


def mechanism(process, units=(1,), epsilon=1.0):
    return Mechanism(process, share(epsilon), units=units, norm1=Fraction(1), norm2_squared=Fraction(1))


def spread_weights(process, rounds):
    """What each round adds up of coarse nodes, in units of the fresh noise."""
    terms = process.terms_at(np.asarray(rounds))
    nodes = sorted({(a, b) for a, b in zip(terms.levels.ravel().tolist(), terms.indices.ravel().tolist(), strict=True)})
    place = {node: column for column, node in enumerate(nodes)}
    out = np.zeros((len(terms.levels), len(nodes)))
    for row in range(len(out)):
        for a, b, w in zip(*(part[row].tolist() for part in (terms.levels, terms.indices, terms.weights)), strict=True):
            out[row, place[a, b]] += w * math.sqrt(process.spread(a, 2))
    return out[:, [column for column, (level, _) in enumerate(nodes) if level]]


def costs(process, rounds, longest=None):
    """v' S^-1 v for the indicators v of all intervals, by dense algebra: rows are starts, columns ends."""
    coarse = spread_weights(process, rounds)
    count = len(coarse)
    after = np.tri(count, count + 1)  # round q is after boundary s
    seen = coarse.T @ after
    inner = after.T @ after - seen.T @ np.linalg.solve(np.eye(coarse.shape[1]) + coarse.T @ coarse, seen)
    found = np.diag(inner)[:, None] + np.diag(inner)[None] - 2 * inner
    apart = np.abs(np.subtract.outer(np.arange(count + 1), np.arange(count + 1)))
    return found if longest is None else np.where(apart <= longest, found, 0)


def innovations(process, patterns):
    """v' S^-1 v of patterns (rounds by patterns), from round to round: no matrix larger than the nodes of a round."""
    spacings, levels = process.spacings, len(process.spacings)
    own = np.repeat([float(width) ** 2 for width in process.widths], 2)
    known, mean, total = np.diag(own), np.zeros((2 * levels, patterns.shape[1])), np.zeros(patterns.shape[1])
    steps = weights() / 4096
    for round, wanted in enumerate(patterns, 1):
        row = np.zeros(2 * levels)
        for level, spacing in enumerate(spacings):
            left, right = 2 * level, 2 * level + 1
            if round % spacing == 0:
                known[left], mean[left] = known[right], mean[right]
                known[:, left] = known[:, right]
                known[right], known[:, right], mean[right] = 0, 0, 0
                known[right, right] = own[right]
            phase = round % spacing * PHASES // spacing
            row[left], row[right] = steps[PHASES - phase], steps[phase]
        gain = known @ row
        size, surprise = 1 + row @ gain, wanted - row @ mean
        total += surprise**2 / size
        mean += np.outer(gain, surprise / size)
        known -= np.outer(gain, gain) / size
    return total


def test_weights_are_square_roots_rounded_and_pinned():
    with localcontext() as context:
        context.prec = 60
        for i, weight in enumerate(weights().tolist()):
            f = Decimal(i) / PHASES
            exact = (f**2 * (3 - 2 * f) + 2 * f**2 * (1 - f) ** 2 * (1 - 2 * f)).sqrt() * 4096
            assert abs(exact - weight) <= Decimal("0.5")
    text = ",".join(str(weight) for weight in weights().tolist())
    assert hashlib.sha256(text.encode()).hexdigest() == weights_hash() == table.WEIGHTS_SHA256


@pytest.mark.parametrize("bits", [*range(1, 10), pytest.param(10, marks=pytest.mark.slow)])
def test_no_interval_costs_more_than_its_row(bits):
    process = Crossfade((1 << bits) - 1)
    found = costs(process, np.arange(1, 1 << bits))
    both, one = (float(Fraction(text)) for text in table.ROWS[bits])
    assert found.max() < both < found.max() + MARGIN
    assert found[:, -1].max() < one < found[:, -1].max() + MARGIN
    assert process.l2_squared == Fraction(table.ROWS[bits][0])


@pytest.mark.parametrize("bits", [11, 12, *(pytest.param(b, marks=pytest.mark.slow) for b in range(13, 18))])
def test_the_worst_interval_of_long_rows_by_another_solver(bits):
    rounds = np.arange(1, 1 << bits)
    start, end = len(rounds) // 10, len(rounds) * 9 // 10
    ends = [(start + a, end + b) for a in (0, 1) for b in (-1, 0, 1)]
    patterns = np.stack([(rounds > s) & (rounds <= e) for s, e in ends], axis=1).astype(float)
    found = innovations(Crossfade(len(rounds)), patterns).max()
    assert found < float(Crossfade(len(rounds)).l2_squared) < found + MARGIN


@pytest.mark.parametrize("horizon", [3, 7, 15])
def test_rational_arithmetic_agrees(horizon):
    process = Crossfade(horizon)
    terms = process.weights_of(np.arange(1, horizon + 1))
    rows = []
    for row in range(horizon):
        one = terms.of(row)
        rows.append(
            {
                (a, b): (w, process.spread(a, 2))
                for a, b, w in zip(*(x.tolist() for x in (one.levels, one.indices, one.weights)), strict=True)
            }
        )
    covariance = [[sum(p[n][0] * q[n][0] * p[n][1] for n in p.keys() & q.keys()) for q in rows] for p in rows]
    inverse = inverted(covariance)
    exact = max(
        sum(inverse[i][j] for i in range(s, e) for j in range(s, e))
        for s in range(horizon)
        for e in range(s + 1, horizon + 1)
    )
    assert exact <= process.l2_squared <= exact + Fraction(MARGIN)
    assert costs(process, np.arange(1, horizon + 1)).max() == pytest.approx(float(exact), abs=1e-12)
    _, moved = brute_force(process, horizon)
    assert exact <= moved <= exact + Fraction(1, 10**9)


def inverted(matrix):
    size = len(matrix)
    rows = [[Fraction(x) for x in row] + [Fraction(i == j) for j in range(size)] for i, row in enumerate(matrix)]
    for i in range(size):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(size):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[size:] for row in rows]


@pytest.mark.parametrize("horizon", [2, 5, 11, 20, 27, 40, 77, 130, 300])
def test_a_shorter_horizon_costs_no_more_than_its_row(horizon):
    process = Crossfade(horizon)
    assert costs(process, np.arange(1, horizon + 1)).max() < float(process.l2_squared)


def test_the_ends_of_a_grid_are_no_rounds():
    """With position 0 as a round the cost exceeds the row: a process that numbered rounds from 0 would be too quiet."""
    for bits in (2, 3, 4, 5):
        process = Crossfade((1 << bits) - 1)
        assert costs(process, np.arange(1 << bits)).max() > float(process.l2_squared)
        for round in (0, 1 << bits):
            with pytest.raises(InputError, match="rounds"):
                process.variance(round)
    assert Crossfade(8).bits == 4


def test_uncertified_horizons_are_refused():
    with pytest.raises(InputError, match="at most 131,071"):
        Crossfade(1 << 17)


# Windows and unknown horizons ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [*range(2, 7), *(pytest.param(b, marks=pytest.mark.slow) for b in (7, 8))])
def test_windows_cost_what_their_rows_say_wherever_they_begin(bits):
    """A stretch of a process without end bounds the cost from below; its nodes, with all other nodes at rest, from
    above."""
    window = 1 << bits
    process = CrossfadeWindow(window)
    rounds, part = np.arange(1, 14 * window), slice(3 * window - 1, 11 * window - 1)
    whole = spread_weights(process, rounds)
    used = whole[part].any(axis=0) & ~whole[: 2 * window].any(axis=0) & ~whole[12 * window :].any(axis=0)
    lower = costs(process, rounds[part], window)
    coarse, after = whole[part][:, used], np.tri(8 * window, 8 * window + 1)
    seen = coarse.T @ after
    moved = np.linalg.solve(np.eye(used.sum()) + coarse.T @ coarse, seen)
    everywhere = np.eye(used.sum()) + whole[:, used].T @ whole[:, used]
    inner = after.T @ after - seen.T @ moved - moved.T @ seen + moved.T @ everywhere @ moved
    upper = np.diag(inner)[:, None] + np.diag(inner)[None] - 2 * inner
    starts = 3 * window + np.arange(window)  # every phase, far from both ends of the stretch
    worst = max(upper[s, s + 1 : s + window + 1].max() for s in starts)
    assert lower.max() <= worst < float(process.l2_squared) < lower.max() + MARGIN
    assert worst < lower.max() + 1e-5


def test_a_window_takes_the_next_row_and_refuses_what_is_not_certified():
    assert [CrossfadeWindow(w).bits for w in (1, 4, 5, 8, 9, 1000, 1024)] == [2, 2, 3, 3, 4, 10, 10]
    with pytest.raises(InputError, match="at most 1,024"):
        CrossfadeWindow(1025)
    with pytest.raises(InputError, match="within 4 rounds"):
        CrossfadeWindow(4).shift_hiding([1] * 5)


def interval_costs(process, count):
    """v' S^-1 v by the covariance of the first rounds: rows are starts, columns ends."""
    terms = process.weights_of(np.arange(1, count + 1))
    rows = [{} for _ in range(count)]
    for row in range(count):
        for a, b, w in zip(*(x[row].tolist() for x in (terms.levels, terms.indices, terms.weights)), strict=True):
            rows[row][a, b] = rows[row].get((a, b), 0) + w / terms.denominator
    spreads = {a: float(process.spread(a, 2)) for a in np.unique(terms.levels).tolist()}
    covariance = [[sum(p[n] * q[n] * spreads[n[0]] for n in p.keys() & q.keys()) for q in rows] for p in rows]
    after = np.tri(count, count + 1)
    inner = after.T @ np.linalg.solve(np.array(covariance, dtype=float), after)
    return np.diag(inner)[:, None] + np.diag(inner)[None] - 2 * inner


@pytest.mark.parametrize("guess", [1, 3, 5, 20])
def test_unknown_horizons_cost_at_most_one(guess):
    process = CrossfadeEpochs(guess)
    assert 0.5 < interval_costs(process, 160).max() <= process.l2_squared == 1
    moved = process.shift_hiding([0] * 2 + [1] * 30 + [0] * 8)
    terms = process.weights_of(np.arange(1, 41))
    for row in range(40):
        one = terms.of(row)
        nodes = zip(*(x.tolist() for x in (one.levels, one.indices, one.weights)), strict=True)
        assert sum(w * moved.get((a, b), 0) for a, b, w in nodes) == terms.denominator * (2 <= row < 32)


def test_trees_follow_where_crossfade_is_not_certified(monkeypatch):
    """With few certified rows, and a share that covers low trees."""
    monkeypatch.setattr("retroact.noise.crossfade_epochs.ROWS", {m: table.ROWS[m] for m in (1, 2, 3)})
    monkeypatch.setattr("retroact.noise.crossfade_epochs.LAST", 2)
    monkeypatch.setattr("retroact.noise.crossfade_epochs.SHARE", Fraction(1, 7))
    process = CrossfadeEpochs(1)
    assert [type(process.epoch(i).inner) for i in range(4)] == [Crossfade, Crossfade, Schauder, Schauder]
    assert [process.epoch(i).before for i in range(4)] == [0, 1, 4, 68]
    assert interval_costs(process, 150).max() == pytest.approx(1)


def test_epochs_and_the_share_of_their_lasting_noise():
    heights = [process.epoch(i) for process in map(CrossfadeEpochs, (1, 2, 5, 1023, 70_000)) for i in range(6)]
    share = Fraction(1, 8)
    for one in heights:
        if isinstance(one.inner, Schauder):
            assert share >= Fraction(1, one.inner.levels + 1)
        else:
            assert one.inner.l2_squared <= one.spread
    assert CrossfadeEpochs(70_000).epoch(1).rounds == 1 << 21
    with pytest.raises(InputError, match="at most 131,071"):
        CrossfadeEpochs(1 << 17)


def test_unknown_horizons_err_less_than_trees():
    old, new = Unbounded(), CrossfadeEpochs()
    for last in (1023, 4096, 17_406, 82_941):
        rounds = np.unique(np.linspace(1, last, 2000).astype(int))
        assert new.variances(rounds).max() < old.variances(rounds).max() * 0.97 ** (last > 1023)
    assert 4.2247 * math.sqrt(new.variance(65_535)) < 39


# Bugs ----------------------------------------------------------------------------------------------------------------


def claim_of(process, rounds):
    """What the tests above say about a process: an upper bound on the largest cost, in floats."""
    return costs(process, rounds).max() < float(process.l2_squared)


def test_a_wrong_weight_is_seen(monkeypatch):
    wrong = weights().copy()
    wrong[PHASES // 4 : PHASES * 3 // 4] -= 100
    monkeypatch.setattr("retroact.noise.faded.weights", lambda: wrong)
    assert not claim_of(Crossfade(31), np.arange(1, 32))


def test_a_wrong_squared_sensitivity_is_seen():
    class Cheap(Crossfade):
        def charge(self, p):
            return super().charge(p) - Fraction(2, 1000)

    assert not claim_of(Cheap(31), np.arange(1, 32))
    assert brute_force(Cheap(15), 15)[1] > Cheap(15).l2_squared


@pytest.mark.parametrize("attribute", ["squared", "widths", "weights"])
def test_the_names_of_coins_follow_what_privacy_rests_on(attribute, monkeypatch):
    process = Crossfade(1023)
    before = process.spec()
    if attribute == "weights":
        monkeypatch.setattr("retroact.noise.faded.weights_hash", lambda: "another")
    else:
        value = getattr(process, attribute)
        changed = (*value[:-1], value[-1] / 2) if attribute == "widths" else value + Fraction(1, 10**4)
        monkeypatch.setattr(process, attribute, changed)
    assert process.spec() != before


# The lattice ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [*range(2, 9), pytest.param(11, marks=pytest.mark.slow)])
def test_what_no_round_can_see_is_short(bits):
    """Gram-Schmidt lengths of "a coarse node up by one step, its rounds down by its weights", fine levels first."""
    process = Crossfade((1 << bits) - 1)
    terms = process.weights_of(np.arange(1, 1 << bits))
    nodes = sorted({(a, b) for row in range(len(terms.levels)) for a, b in zip(
        terms.of(row).levels.tolist(), terms.of(row).indices.tolist(), strict=True) if a})  # fmt: skip
    vectors = np.zeros((len(nodes), len(nodes) + len(terms.levels)))
    for row in range(len(terms.levels)):
        one = terms.of(row)
        for a, b, w in zip(one.levels.tolist(), one.indices.tolist(), one.weights.tolist(), strict=True):
            if a:
                vectors[nodes.index((a, b)), len(nodes) + row] -= w
    for i, (level, _) in enumerate(nodes):
        vectors[i, i] = 1 / math.sqrt(process.spread(level, 2))
    lengths = np.diag(np.linalg.cholesky(vectors @ vectors.T)) ** 2
    assert lengths.max() <= process.kernel_squared
    assert lengths.max() > process.kernel_squared / 3


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("horizon", [1, 7, 1023, 65_535, 131_071])
def test_noise_is_coarse_enough_and_fits_64_bits(horizon, epsilon):
    for power in range(0, 33, 4):
        made, other = (mechanism(process(horizon), (1 << power,), epsilon) for process in (Crossfade, Schauder))
        sigma = made.law(0, 1 << power).parameter
        assert sigma >= 16 * made.process.kernel_squared
        terms = made.process.weights_of(np.array([1, horizon]))
        assert terms.denominator == 1
        assert not made._is_wide(terms, 1 << power)
        for level in range(1, len(made.process.spacings) + 1):
            needed = Fraction(4**power) * made.process.l2_squared / share(epsilon).amount * made.refinement**2
            assert made.law(level, 1 << power).parameter >= needed * made.process.spread(level, 2)
        assert sigma >= needed + 16 if horizon > 1 else sigma > 16
        assert made.deviation_of(0, 1) > 0
        assert other.law(0, 1 << power).parameter > 0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 20.0])
@pytest.mark.parametrize(
    ("process", "other"),
    [
        *((CrossfadeWindow(window), Windowed(window)) for window in (4, 8, 100, 1024)),
        *((CrossfadeEpochs(guess), Unbounded(guess)) for guess in (1, 1023, 131_071)),
    ],
    ids=repr,
)
def test_noise_of_windows_and_epochs_is_coarse_enough_and_fits_64_bits(process, other, epsilon):
    """Nothing is refused that Schauder noise accepts; up to the last epoch of crossfade noise numbers have 64 bits."""
    last = 1 << 20
    if isinstance(process, CrossfadeEpochs):
        last = next(one.before for one in map(process.epoch, itertools.count()) if isinstance(one.inner, Schauder))
    for power in range(0, 33, 8):
        made, plain = (mechanism(one, (1 << power,), epsilon) for one in (process, other))
        assert lattice_fineness(made, 1 << power) >= 4
        assert made.law(0, 1 << power).parameter >= 16 * process.kernel_squared
        assert not made._is_wide(process.weights_of(np.array([1, 1023, last])), 1 << power)
        assert made.deviation_of(0, 1 << 30) > 0
        assert plain.deviation_of(0, 1 << 30) > 0


def test_units_that_differ_widely():
    """The smallest unit decides how fine the lattice is, the largest one how wide the noise is on it."""
    for epsilon, power in itertools.product((0.01, 1.0, 20.0), (8, 16, 24, 32)):
        made = mechanism(Crossfade(65_535), (1, 1 << power), epsilon)
        terms = made.process.at(5)
        assert power == 32 or not made._is_wide(terms, 1 << power)


def test_noise_that_is_too_fine_for_the_proof_is_not_made():
    """Without the bound on what no round can see, the noise of a coarse node would be narrower than its steps."""

    class Fine(Crossfade):
        kernel_squared = Fraction(0)

    assert mechanism(Crossfade(1023)).law(1, 1).parameter >= 16 * 6 * Fraction(9, 16)
    assert mechanism(Fine(1023)).law(1, 1).parameter < Fraction(1, 1000)


@pytest.mark.parametrize("rounds", [2, 3])
def test_exact_losses_on_a_coarse_lattice(rounds):
    """Weights in quarters, two or three rounds: all noise is enumerated, and the best tests of an adversary who fixes
    the rounds beforehand, or stops when it sees fit, stay below the claim. Where sigma is far below the lengths of what
    no round can see they exceed it."""
    assert all(gain < 0 for gain in gains(rounds, 1.0, rounding=1.0))
    assert all(gain < 1e-5 for gain in gains(rounds, 1.0))
    assert max(gains(rounds, 0.3)) > 1e-2


def gains(rounds, part, rounding=0.0):
    """By how much exact losses exceed the claim, at several epsilons, with sigma a part of the longest vector's length.
    The claim is that of Gaussian noise with sigma^2 less 16 squared steps of the lattice (``rounding``), or all of it.
    Rounds 1 and 3 see three quarters of the middle node and of one of their own, round 2 sees the middle node alone."""
    scaled = np.array([[0.75, 0.75, 0], [0, 1, 0], [0, 0.75, 0.75]])[:rounds, : rounds if rounds == 3 else 2]
    sigma = part * math.sqrt(1 + (scaled**2).sum(axis=0).max())
    nodes = np.arange(-math.ceil(7 * sigma), math.ceil(7 * sigma) + 1)
    grid = np.arange(-math.ceil(9 * sigma) * 4, math.ceil(9 * sigma) * 4 + 1)  # in quarters
    own = np.exp(-(nodes**2) / (2 * sigma**2))

    def fresh(at):
        return np.exp(-((grid - at) ** 2) / (2 * (4 * sigma) ** 2))

    law = np.zeros((len(grid),) * rounds)
    for middle, chance in zip(nodes.tolist(), own.tolist(), strict=True):
        outer = sum(p * fresh(3 * (node + middle)) for node, p in zip(nodes.tolist(), own.tolist(), strict=True))
        together = np.multiply.outer(outer, fresh(4 * middle))
        law += chance * (together if rounds == 2 else np.multiply.outer(together, outer))
    law /= law.sum()
    precision = np.linalg.inv(np.eye(rounds) + scaled @ scaled.T)
    intervals = [(s, e) for s in range(rounds) for e in range(s + 1, rounds + 1)]
    mu = math.sqrt(max(precision[s:e, s:e].sum() for s, e in intervals) / (sigma**2 - rounding))
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        found = [lost(law, [4 * (s <= i < e) for i in range(rounds)], epsilon).sum() for s, e in intervals]
        found += [stopping(law, start, epsilon) for start in range(rounds)]
        yield max(found) - delta_of(mu, epsilon)


def lost(law, shift, epsilon):
    return np.maximum(law - math.exp(epsilon) * np.roll(law, shift, axis=tuple(range(law.ndim))), 0)


def stopping(law, start, epsilon):
    """The change begins after ``start`` rounds and ends when what was seen so far makes that best."""
    rounds = law.ndim
    best = None
    for end in range(rounds, start, -1):
        own = lost(law, [4 * (start <= i < end) for i in range(rounds)], epsilon)
        own = own.sum(axis=tuple(range(end, rounds))) if end < rounds else own
        best = own if best is None else np.maximum(own, best.sum(axis=-1))
    return best.sum()


def test_named_cells_and_blocks_draw_the_same_noise():
    made = mechanism(Crossfade(100)).under(Key.for_testing(3).coins("x"))
    numerators, denominator = made.draw(57)
    again = made.sample(57, integer_cells(1), [0])
    assert again[1] == denominator == made.refinement
    assert np.issubdtype(numerators.dtype, np.int64)
