"""The likelihood ratio comes close to the truth and no further; wrong noise shows, in laws and in numbers."""

import pickle
from dataclasses import replace
from fractions import Fraction
from random import Random
from statistics import median

import numpy as np
import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.likelihood import Moves, likelihood, nodes, simulate
from retroact.audit.noise import conformance
from retroact.coins import DiscreteGaussian, DiscreteLaplace
from retroact.errors import InputError
from retroact.noise import Bridge, Crossfade, Fresh, Lapped, Mechanism, Oblivious, Schauder, Tree
from retroact.noise.default_process import PROCESSES
from retroact.privacy import Share
from retroact.testing import check_noise_law
from retroact.testing.worst_pair import worst
from support.transcripts import conformance_of, recover, transcript_likelihood, weights

SCHEMA = {"age": ra.Integer(0, 120), "height": ra.Number(-5, 5, step=0.5), "country": ra.Text()}
PURE, GAUSSIAN = Share("pure", Fraction(1)), Share("gaussian", Fraction(1, 16))


def counting(delta=0.0, horizon=16, **options):
    return ra.Specification(SCHEMA, {"n": ra.Count(noise="tree")}, epsilon=1.0, delta=delta, horizon=horizon, **options)


def smaller(node, factor):
    """The same noise, smaller by a factor."""
    exact, law = Fraction(factor).limit_denominator(10**6), node.law
    if isinstance(law, DiscreteLaplace):
        return replace(node, law=DiscreteLaplace(law.scale / exact))
    return replace(node, law=DiscreteGaussian(law.parameter / exact**2))


def attacked(spec, seeds, runs, factor=1.0, confidence=0.95):
    found = worst(spec, "n", Random(1), pairs=5)
    moved = [smaller(node, factor) if factor != 1 else node for node in nodes(spec, "n", found)]
    moves = Moves.of(spec.shares["n"].kind, moved)
    return [simulate(moves, moved, Seeds(seed), runs, confidence).best for seed in seeds]


# The exact loss of the tree with 16 leaves: its worst pair moves 7 nodes and spends all of epsilon.
def test_tightness_and_false_alarms_for_laplace():
    bounds = attacked(counting(), range(20), 100_000)
    assert median(bounds) >= 0.95
    assert sum(bound > 1 for bound in bounds) <= 4  # 5 % of 20: more than 4 has probability 0.003


def test_tightness_and_false_alarms_for_gaussian():
    spec = counting(1e-6)
    mu = float(spec.shares["n"].amount) ** 0.5
    bounds = attacked(spec, range(20), 100_000)
    assert median(bounds) >= 0.93 * mu
    assert sum(bound > mu for bound in bounds) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_false_alarms_are_as_rare_as_nominal(delta):
    spec = counting(delta)
    truth = float(worst(spec, "n", Random(1), pairs=5).cost) ** (1 if not delta else 0.5)
    bounds = attacked(spec, range(400), 4000)
    assert sum(bound > truth for bound in bounds) <= 33  # 5 % of 400: more has probability 0.002


def test_tightness_does_not_fall_with_the_horizon():
    spec = counting(horizon=1 << 20)
    assert 0.85 < median(attacked(spec, range(3), 10_000)) < 1.01


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_result_says_what_it_found_and_catches_its_control(delta):
    (result,) = likelihood(Target.stream(counting(delta)), Seeds(1), runs=20_000, pairs=5)
    assert (result.verdict, result.void) == ("passed", False)
    assert result.runs == 20_000
    assert "times the claim" in result.detectable
    assert "at least what follows from the published numbers" in result.tried
    assert 0.7 < float(result.measured["share of the claim that was proven"]) < 1
    assert 3 < len(result.curves["measured"]) <= 60
    assert len(result.curves["claimed"]) == 60


def test_a_scale_that_is_too_small_in_the_stream_is_a_violation(monkeypatch):
    size = Mechanism._size
    monkeypatch.setattr(Mechanism, "_size", lambda self, unit, spread: size(self, unit, spread) / Fraction(5, 4))
    (result,) = likelihood(Target.stream(counting()), Seeds(1), runs=50_000, pairs=5)
    assert result.verdict == "violation"
    assert float(result.measured["epsilon at least"]) > 1.15
    assert result.counterexample


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_is_detectable_is_caught_about_half_of_the_time(delta):
    spec = counting(delta)
    (result,) = likelihood(Target.stream(spec), Seeds(1), runs=20_000, confidence=0.95, pairs=5)
    factor = float(result.detectable.split(" times the claim")[0].split(", ")[-1])
    claim = float(spec.shares["n"].amount) ** (1 if not delta else 0.5)
    slack = float(spec.shares["n"].amount / worst(spec, "n", Random(1), pairs=5).cost) ** (1 if not delta else 0.5)
    caught = [bound > claim for bound in attacked(spec, range(8), 20_000, factor * slack)]
    assert sum(caught) >= 3


def test_results_are_the_same_again_and_fit_another_process():
    target = Target.stream(counting(horizon=4))
    again = pickle.loads(pickle.dumps((likelihood, target)))
    assert again[0](again[1], Seeds(3), runs=500, pairs=3) == likelihood(target, Seeds(3), runs=500, pairs=3)


# Crossfade noise: all of it moves, whatever changes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"horizon": 3}, {"horizon": 20}, {"horizon": None}, {"horizon": 60, "window": 8}], ids=str
)
def test_crossfade_noise_spends_what_it_is_granted_and_no_more(options):
    spec = ra.Specification(SCHEMA, {"n": ra.Count(noise="crossfade")}, epsilon=1.0, delta=1e-6, **options)
    (result,) = likelihood(Target.stream(spec), Seeds(1), runs=20_000, pairs=3)
    assert (result.verdict, result.void) == ("passed", False), result.found
    least = 0.55 if options["horizon"] is None else 0.9  # pairs within the first epoch cost less than is granted
    assert least < float(result.measured["cost of the pair, of the share"]) <= 1
    assert 0.8 * least**0.5 < float(result.measured["share of the claim that was proven"]) < 1


def test_position_0_as_a_round_is_proven_to_lose_more(monkeypatch):
    class FromZero(Crossfade):
        def terms_at(self, rounds):
            return super().terms_at(rounds - 1)

    monkeypatch.setitem(PROCESSES, "crossfade", lambda releases, live: FromZero(releases))
    spec = ra.Specification(SCHEMA, {"n": ra.Count(noise="crossfade")}, epsilon=1.0, delta=1e-6, horizon=3)
    assert isinstance(spec.processes["n"], FromZero)
    (result,) = likelihood(Target.stream(spec), Seeds(1), runs=50_000, pairs=3)
    assert result.verdict == "violation"
    assert float(result.measured["share of the claim that was proven"]) > 1.02
    assert result.counterexample


MANY = {
    "mean": ra.Mean("age", every=2),
    "variance": ra.Variance("height"),
    "window": ra.Sum("height", window=3),
    "quantiles": ra.Quantiles("age"),
    "distinct": ra.Distinct("country"),
    "restated": ra.Restated(ra.Count(), [0, 2]),
    "rectangle": ra.Restated(ra.Count(), [0, 1], across="rectangle"),
}


@pytest.mark.parametrize(("name", "delta"), [(name, 1e-6 * (i % 2)) for i, name in enumerate(MANY)])
def test_every_kind_of_statistic_spends_what_it_is_granted_and_no_more(name, delta):
    spec = ra.Specification(SCHEMA, {name: MANY[name]}, epsilon=1.0, delta=delta, horizon=20)
    (result,) = likelihood(Target.stream(spec), Seeds(1), runs=5000, pairs=3)
    assert (result.verdict, result.void) == ("passed", False), result.found
    assert float(result.measured["cost of the pair, of the share"]) > 0.85


def test_no_horizon():
    endless = ra.Specification(SCHEMA, {"n": ra.Count()}, epsilon=1.0)
    (result,) = likelihood(Target.stream(endless), Seeds(1), runs=5000, pairs=3)
    assert (result.verdict, result.measured["cost of the pair, of the share"]) == ("passed", "1")


def test_not_applicable_is_said_with_its_reason():
    law = Oblivious(DiscreteLaplace(50), "mine", epsilon=0.02)
    spec = ra.Specification(SCHEMA, {"n": ra.Count(noise=law)}, epsilon=1.0, horizon=8)
    (result,) = likelihood(Target.stream(spec), Seeds(1))
    assert result.verdict == "not applicable"
    assert "the user's" in result.found
    never = ra.Specification(SCHEMA, {"n": ra.Count(where={"country": "nowhere"})}, epsilon=1.0, horizon=8)
    assert "no record" in likelihood(Target.stream(never), Seeds(1))[0].found


# Transcripts -------------------------------------------------------------------------------------------------------

ROUNDS, TREE = 32, Tree(32)
MATRIX = weights(TREE, ROUNDS)[0]
NOTHING, RECORD = np.zeros(ROUNDS), (np.arange(ROUNDS) < ROUNDS // 2).astype(float)


def laplace(random, scale, shape):
    q = np.exp(-1 / scale)
    return random.geometric(1 - q, shape) - random.geometric(1 - q, shape)


def through_tree(random, scale, runs=200):
    return laplace(random, scale, (runs, ROUNDS)) @ MATRIX.T


def proven(scale, runs, seed=1, noise=through_tree):
    random = np.random.default_rng(seed)
    answers = [truth + noise(random, scale, runs) for truth in (NOTHING, RECORD)]
    return transcript_likelihood(*answers, NOTHING, RECORD, TREE, PURE, seeds=Seeds(seed), confidence=0.95)


def test_transcripts_of_a_correct_tree_and_of_one_divided_by_its_height():
    sensitivity = float(TREE.l1)
    assert sensitivity == 9
    assert 0.8 < median(proven(sensitivity, 20_000, seed) for seed in range(3)) < 1.02
    assert proven(6, 2000) > 1  # by m = 6 and not by 2m - 3
    assert proven(1, 300) > 5


def test_gaussian_transcripts():
    random, tree = np.random.default_rng(1), Tree(16)
    matrix, truth = weights(tree, 16)[0], (np.arange(16) < 8).astype(float)
    deviation = float(tree.l2_squared / GAUSSIAN.amount) ** 0.5
    for factor, low, high in ((1.0, 0.1, 0.26), (2.0, 0.3, 0.51)):
        answers = [t + random.normal(0, deviation / factor, (20_000, 16)) @ matrix.T for t in (0 * truth, truth)]
        assert low < transcript_likelihood(*answers, 0 * truth, truth, tree, GAUSSIAN, seeds=Seeds(1)) < high


def test_transcripts_that_do_not_show_their_nodes_are_refused():
    process = Bridge(31)
    matrix, names = weights(process, 31)
    assert np.linalg.matrix_rank(matrix) < len(names)
    with pytest.raises(InputError, match="follow from its rounds"):
        recover(process, np.zeros((2, 31)))
    with pytest.raises(InputError, match="same runs and rounds"):
        transcript_likelihood(
            np.zeros((2, 4)), np.zeros((3, 4)), NOTHING[:4], RECORD[:4], Tree(4), PURE, seeds=Seeds(1)
        )


# Conformance -------------------------------------------------------------------------------------------------------


def missing(random):
    noise = through_tree(random, 9.0)
    noise[:, [0, 1, 3, 7, 15, 31]] = 0
    return noise


def resampled(random):
    return np.stack([laplace(random, 9.0, (200, bin(r).count("1"))).sum(axis=1) for r in range(1, ROUNDS + 1)], axis=1)


def by_count(random):
    return np.rint(through_tree(random, 9.0) * (1 + 0.02 * np.arange(ROUNDS)))


def by_key_of_count(random):
    counts = np.minimum(np.arange(ROUNDS), 5)  # the same noise wherever the count is the same
    return through_tree(random, 9.0)[:, counts]


@pytest.mark.parametrize(
    ("bug", "most"),
    [
        (lambda random: through_tree(random, 1.0), 1e-100),
        (lambda random: through_tree(random, 6.0), 1e-4),
        (resampled, 1e-20),
        (missing, 1e-20),
        (by_count, 1e-4),
        (by_key_of_count, 1e-20),
        (lambda random: random.laplace(0, 9.0, (200, ROUNDS)) @ MATRIX.T, 0.0),
        (lambda random: through_tree(random, 9.0) + 3, 1e-4),
    ],
    ids=["not divided", "by m", "resampled", "missing", "by count", "keyed by count", "floats", "biased"],
)
def test_wrong_noise_of_200_runs_is_refuted(bug, most):
    for seed in range(3):
        assert conformance_of(bug(np.random.default_rng(seed)), TREE, PURE) <= most


def test_noise_that_depends_on_the_history_is_refuted():
    random = np.random.default_rng(1)
    assert conformance_of(through_tree(random, 9.0), TREE, PURE, other=through_tree(random, 9.0)) > 1e-3
    assert conformance_of(through_tree(random, 9.0), TREE, PURE, other=by_count(random)) < 1e-4


@pytest.mark.parametrize(
    ("process", "share"),
    [
        (Tree(20), PURE), (Bridge(20), PURE), (Lapped(20, radices=(4,)), PURE), (Fresh(4), PURE),
        (Tree(20), GAUSSIAN), (Schauder(20), GAUSSIAN),
    ],
    ids=["tree", "bridge", "lapped", "fresh", "gaussian tree", "schauder"],
)  # fmt: skip
def test_right_noise_conforms_and_the_p_value_is_one(process, share):
    runs, batches, one = 100, 20, Fraction(1)
    many = Mechanism(process, share, units=(3,) * runs * batches, norm1=one, norm2_squared=one).under(Seeds(1).coins())
    noise = np.array([(lambda n, d: n / d)(*many.draw(round)) for round in range(1, 21)]).T
    found = [conformance_of(noise[i::batches], process, share, unit=3) for i in range(batches)]
    assert min(found) > 1e-4
    assert sum(p < 0.1 for p in found) <= 7  # 10 % of 20: more has probability 0.0004
    assert conformance_of(noise[:500] / 1.5, process, share, unit=3) < 1e-6
    assert conformance_of(noise[:500], process, share, unit=2) < 1e-6


def test_the_noise_of_streams_conforms_in_every_unit():
    stats = {"m": ra.Mean("age"), "h": ra.Histogram("country", sum="age"), "r": ra.Restated(ra.Sum("height"), [0, 2])}
    spec = ra.Specification(SCHEMA, stats, epsilon=1.0, delta=1e-6, horizon=20)
    *results, names = conformance(Target.stream(spec), Seeds(1), draws=1500)
    assert (names.test, names.verdict) == ("noise: shared names", "passed")
    assert [(result.verdict, result.void) for result in results] == [("passed", False)] * 3
    assert all("2 kinds of it" in result.tried for result in results)
    assert all("of the claimed size" in result.detectable for result in results)
    assert set(check_noise_law(spec)) == {
        "m, unit 1", "m, unit 120", "h, unit 1", "h, unit 120", "r, lag 0", "r, lag 2"
    }  # fmt: skip


def test_a_wrong_scale_of_the_second_unit_is_refuted(monkeypatch):
    spec = ra.Specification(SCHEMA, {"m": ra.Mean("age")}, epsilon=1.0, horizon=20)
    size = Mechanism._size
    monkeypatch.setattr(Mechanism, "_size", lambda self, unit, spread: size(self, unit, spread) / min(unit, 2))
    result, _ = conformance(Target.stream(spec), Seeds(1), draws=1500)
    assert result.verdict == "violation"
    assert "unit 120" in result.found
    assert "unit 1," not in result.found
