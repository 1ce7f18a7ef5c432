"""The generic checks see crossfade noise: they pass it as it is, over short and long horizons, in windows and without
an end, and catch what is planted in it."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.noise import conformance
from retroact.noise import AnyRounds, Crossfade, CrossfadeEpochs, CrossfadeWindow, Fresh, Mechanism, Schauder, Tree
from retroact.noise.default_process import PROCESSES
from retroact.noise.faded import weights
from retroact.noise.process import Terms
from retroact.privacy import FINENESS, split
from retroact.testing import check_noise_law, check_sensitivity
from retroact.testing.crossfade_costs import crossfade_costs
from retroact.testing.innovations import interval_costs
from retroact.testing.lattice import lattice_fineness

SHARE = split(1.0, 1e-6, {"n": "gaussian"}, {})["n"]
FORMS = {
    "crossfade": (Crossfade, {"horizon": 15}),
    "windowed crossfade": (CrossfadeWindow, {"horizon": 100, "window": 16}),
    "unbounded crossfade": (CrossfadeEpochs, {"horizon": None}),
}
# Where position 0 as a round costs more than is paid: for m = 4 and from m = 6 on it does not, and nothing is wrong.
BROKEN = {2, 3, 5}


def spec_of(statistic=None, **options):
    options = {"epsilon": 1.0, "delta": 1e-6, "law": "gaussian", "horizon": 15, **options}
    statistic = statistic or ra.Count(noise="crossfade")
    return ra.Specification({"x": ra.Boolean(), "age": ra.Integer(0, 120)}, {"n": statistic}, **options)


def planted(monkeypatch, process, name="crossfade", **options):
    """A specification with this process in place of the right one; a class of its own, since processes are cached."""
    make = {
        "crossfade": lambda releases, live: process(releases),
        "windowed crossfade": lambda releases, live: process(live),
        "unbounded crossfade": lambda releases, live: process(),
    }[name]
    monkeypatch.setitem(PROCESSES, name, make)
    spec = spec_of(**options)
    assert spec.choice.noise == {"n": name}
    assert type(spec.processes["n"]) is process
    return spec


# What is right passes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [*(one for _, one in FORMS.values()), {"horizon": 3}, {"horizon": 1500}, {"horizon": None, "window": 1000}],
    ids=str,
)
@pytest.mark.parametrize("statistic", [ra.Count(noise="crossfade"), ra.Mean("age", noise="crossfade")], ids=repr)
def test_right_noise_passes(statistic, options):
    spec = spec_of(statistic, **options)
    check_sensitivity(spec, Random(1), pairs=5)
    assert all(found.holds for found in check_noise_law(spec, draws=500).values())


@pytest.mark.parametrize("horizon", [4095, 65_535])
def test_long_horizons_are_looked_at_to_their_end(horizon):
    spec = spec_of(horizon=horizon)
    most = max(float(candidate.cost) for candidate in crossfade_costs(spec, "n", Random(1)))
    assert 0.9999 < most / float(spec.shares["n"].amount) < 1
    assert list(crossfade_costs(spec_of(ra.Count(noise="schauder"), horizon=4095), "n", Random(1))) == []


@pytest.mark.parametrize(
    "process", [Crossfade(7), Crossfade(40), CrossfadeWindow(8), CrossfadeEpochs(5), AnyRounds(20), Fresh(9)], ids=repr
)
def test_costs_from_release_to_release_are_those_of_the_inverse(process):
    last = process.horizon or 60
    terms = process.weights_of(np.arange(1, last + 1))
    nodes = {}
    for row in range(last):
        one = terms.of(row)
        for level, index, weight in zip(one.levels.tolist(), one.indices.tolist(), one.weights.tolist(), strict=True):
            nodes.setdefault((level, index), np.zeros(last))[row] = weight / terms.denominator
    sizes = {level: float(process.spread(level, 2)) for level, _ in nodes}
    covariance = sum(sizes[level] * np.outer(column, column) for (level, _), column in nodes.items())
    inverse = np.linalg.inv(covariance)
    intervals = [(s, e) for s in range(last) for e in range(s + 1, last + 1)]
    exact = [inverse[s:e, s:e].sum() for s, e in intervals]
    found = interval_costs(process, lambda level: float(process.spread(level, 2)), last, intervals)
    assert found == pytest.approx(exact, rel=1e-9)


# What is planted is caught -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [15, 1023, 1500, 65_535])
def test_a_squared_sensitivity_that_is_too_small_is_caught(monkeypatch, horizon):
    class Cheap(Crossfade):
        def charge(self, p):
            return super().charge(p) * Fraction(7, 10)

    with pytest.raises(ra.VerificationError, match="sensitivity of n"):
        check_sensitivity(planted(monkeypatch, Cheap, horizon=horizon), Random(1), pairs=2)


def test_a_little_too_small_is_caught_over_a_long_horizon(monkeypatch):
    class Cheap(Crossfade):
        def charge(self, p):
            return super().charge(p) - Fraction(2, 1000)

    with pytest.raises(ra.VerificationError, match="releases 6,554 to 58,982"):
        check_sensitivity(planted(monkeypatch, Cheap, horizon=65_535), Random(1), pairs=2)


@pytest.mark.parametrize("horizon", [31, 4095])
def test_a_wrong_weight_is_caught(monkeypatch, horizon):
    class Light(Crossfade):
        def terms_at(self, rounds):
            terms = super().terms_at(rounds)
            return Terms(terms.levels, terms.indices, np.where(terms.weights > 1, terms.weights * 19 // 20, 1), 1)

    assert weights().max() == 4096
    with pytest.raises(ra.VerificationError, match="sensitivity of n"):
        check_sensitivity(planted(monkeypatch, Light, horizon=horizon), Random(1), pairs=2)


class FromZero(Crossfade):
    """Round q at position q - 1 of its grids."""

    def terms_at(self, rounds):
        return super().terms_at(rounds - 1)


@pytest.mark.parametrize("bits", range(2, 9))
def test_position_0_as_a_round_is_caught_wherever_it_costs_more_than_is_paid(monkeypatch, bits):
    horizon = (1 << bits) - 1
    process = FromZero(horizon)
    intervals = [(s, e) for s in range(horizon) for e in range(s + 1, horizon + 1)]
    most = interval_costs(process, lambda level: float(process.spread(level, 2)), horizon, intervals).max()
    spec = planted(monkeypatch, FromZero, horizon=horizon)
    assert (most > process.l2_squared) == (bits in BROKEN)
    if bits in BROKEN:
        with pytest.raises(ra.VerificationError, match="sensitivity of n"):
            check_sensitivity(spec, Random(1), pairs=2)
    else:
        check_sensitivity(spec, Random(1), pairs=2)


# What its node values hide, as too small a part of a step: their squared length is up to 5.78.
TOO_SMALL = Fraction(1, 5) * 2**24


@pytest.mark.parametrize("form", FORMS)
def test_noise_that_is_too_fine_for_its_lattice_is_caught(monkeypatch, form):
    """A change costs what it should, and the variance is right: but published values follow from a few node values."""
    process, options = FORMS[form]
    fine = type("Fine", (process,), {"kernel_squared": TOO_SMALL})
    spec = planted(monkeypatch, fine, form, **options)
    check_sensitivity(spec, Random(1), pairs=2)
    with pytest.raises(ra.VerificationError, match="4 times as wide as what no release can see, got"):
        check_noise_law(spec, draws=200)
    result, _ = conformance(Target.stream(spec), Seeds(1), draws=200)
    assert result.verdict == "violation"
    assert "what no release can see" in result.found


@pytest.mark.parametrize("form", FORMS)
def test_noise_of_coarse_nodes_that_is_always_0_is_caught(monkeypatch, form):
    process, options = FORMS[form]
    spec = planted(monkeypatch, type("Fine", (process,), {"kernel_squared": Fraction(0)}), form, **options)
    for check in (check_sensitivity, lambda spec, _: check_noise_law(spec, draws=200)):
        with pytest.raises(ra.VerificationError):
            check(spec, Random(1))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("process", [Crossfade(3), Crossfade(127), CrossfadeWindow(16), CrossfadeEpochs(7)], ids=repr)
def test_how_fine_noise_is_follows_from_weights_and_laws(process, epsilon):
    share = split(epsilon, 1e-6, {"n": "gaussian"}, {})["n"]
    made = Mechanism(process, share, units=(1, 64), norm1=Fraction(1), norm2_squared=Fraction(1))
    found = lattice_fineness(made, 1)
    assert FINENESS < found < 8 * FINENESS
    assert lattice_fineness(made, 64) == pytest.approx(64 * found)
    assert lattice_fineness(made.understated(Fraction(1, 2)), 1) == pytest.approx(found / 2)


def test_of_other_noise_nothing_is_said():
    for process, known in ((Schauder(20), False), (Fresh(5), True), (Tree(20), False)):
        made = Mechanism(process, SHARE, units=(1,), norm1=Fraction(1), norm2_squared=Fraction(1))
        assert (lattice_fineness(made, 1) is not None) == known
