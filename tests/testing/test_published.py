"""What is published is judged: bugs inside `release` are caught on every kind of statistic, in quick audits too."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.noise import published_law
from retroact.audit.run import TESTS
from retroact.compilers import sample_bound
from retroact.compilers.live_records import drawn
from retroact.noise import Fresh, Mechanism
from retroact.oneshot import Median
from retroact.privacy import Share
from retroact.statistics import Answer, Layout, Published
from retroact.testing import check_published, check_residuals, check_sample
from retroact.testing.claimed_law import Claim, Nodes
from retroact.testing.judgement import ERROR, judge
from retroact.testing.published import Scene
from retroact.testing.residuals import enough_keys, residuals
from support.crooked import BUGS, CASES, KINDS, SCHEMA, Bare, Tenth, crooked, specification
from support.in_bound import Planted
from support.tiers import in_full


@pytest.mark.parametrize(("kind", "bug"), CASES)
def test_a_bug_in_a_release_is_caught_number_by_number(kind, bug):
    with pytest.raises(ra.VerificationError, match=r"not its totals plus|not only through"):
        check_published(specification(crooked(kind, bug)), "n", Random(1), keys=1)


@pytest.mark.parametrize("kind", KINDS)
def test_right_statistics_publish_their_totals_and_noise(kind):
    for delta in (1e-6, *([] if kind == "histogram" else [0.0])):
        assert check_published(specification(KINDS[kind](), delta=delta), "n", Random(1), keys=1) >= 5


# What nine tenths of the noise are takes more keys to see; noise of the other sign in all rounds has the same law.
# Number by number every bug is caught on every kind above; by law the kinds take turns, in full all are tried.
BY_LAW = [
    (kind, bug) if (list(KINDS).index(kind) + turn) % 2 else in_full(kind, bug)
    for turn, bug in enumerate(BUGS)
    for kind in KINDS
    if (kind, bug) in CASES and bug not in ("nine tenths of the noise", "the other sign", "a third too much noise")
]


@pytest.mark.parametrize(("kind", "bug"), BY_LAW)
def test_the_law_of_what_is_published_refutes_a_bug_in_a_release(kind, bug):
    scene = Scene(specification(crooked(kind, bug)), "n", Random(1))
    # Where one of four bins has none, it takes more of them.
    more = 2 if "one bin" in bug else 1
    keys = enough_keys(scene, more * TESTS["published noise"].quick["draws"])
    looks = [1, 16] if "late" in bug else [1, 2, 3]
    with pytest.raises(ra.VerificationError, match="Refuted: "):
        check_residuals(scene, keys=keys, looks=looks)


@pytest.mark.parametrize("kind", KINDS)
def test_the_law_of_right_statistics_is_not_refuted(kind):
    scene = Scene(specification(KINDS[kind]()), "n", Random(2))
    judged = check_residuals(scene, keys=enough_keys(scene, 600), first=100)
    assert judged.smallest >= 0.1
    assert judged.chance > 1e-3


@pytest.mark.parametrize("statistic", [Tenth("age"), Bare()], ids=["a tenth", "none"])
def test_the_law_of_what_is_published_refutes_too_little_noise(statistic):
    (law,) = published_law(Target.stream(specification(statistic)), Seeds(1), **TESTS["published noise"].quick)
    assert (law.verdict, law.control.caught) == ("violation", True)


class Exact(Planted, ra.Count):
    """Noisy integers, and a value without noise."""

    class InBound:
        def release(self, totals, noise, at):
            published = super().release(totals, noise, at)
            value = float(totals[0][0])
            return Published(
                Answer(value, 1.0, lambda level: (value, value)), published.numerators, published.denominator
            )


class Peeking(Planted, ra.KMeans):
    """Its centres come from noisy counters, its cost from the exact number of records."""

    class InBound:
        def release(self, totals, noise, at):
            published = super().release(totals, noise, at)
            value = replace(published.answer.value, cost=float(totals[0][0].amounts[:, 0].sum()))
            answer = Answer(value, published.answer.standard_error, published.answer.interval)
            return Published(answer, published.numerators, published.denominator, published.noisy)


class Narrow(Planted, ra.Quantiles):
    """Values from noisy counts, intervals from exact ones."""

    class InBound:
        def release(self, totals, noise, at):
            published = super().release(totals, noise, at)
            records = int(totals[0].amounts.sum())
            answer = Answer(published.answer.value, published.answer.standard_error, lambda level: (0, records))
            return Published(answer, published.numerators, published.denominator, published.noisy)


@pytest.mark.parametrize(
    "statistic", [Exact(), Peeking("place", 2), Narrow("age", [0.5])], ids=lambda s: type(s).__name__
)
def test_what_is_not_explained_by_noisy_totals_is_caught(statistic):
    with pytest.raises(ra.VerificationError, match="not only through"):
        check_published(specification(statistic), "n", Random(1), keys=1, looks=2)


def test_integers_other_than_the_noisy_totals_are_caught():
    class Other(Planted, ra.Quantiles):
        class InBound:
            def release(self, totals, noise, at):
                published = super().release(totals, noise, at)
                records = int(totals[0].amounts.sum())
                return Published(published.answer, (records,), 1, published.noisy)

    with pytest.raises(ra.VerificationError, match=r"not its totals|other integers"):
        check_published(specification(Other("age", [0.5])), "n", Random(1), keys=1, looks=2)


def test_a_statistic_that_does_not_say_what_it_is_made_of_is_refused():
    class Silent(Planted, ra.Count):
        class InBound:
            def release(self, totals, noise, at):
                published = super().release(totals, noise, at)
                return Published(published.answer, (), 1)

    with pytest.raises(ra.VerificationError, match="does not say which noisy totals"):
        check_published(specification(Silent()), "n", Random(1), keys=1, looks=2)


@pytest.mark.parametrize("kind", ["count", "declared histogram", "quantiles"])
def test_noise_that_is_drawn_too_small_is_refuted_by_what_is_published(monkeypatch, kind):
    """In the noise itself, not in a release: what is drawn again is as small."""
    scene = Scene(specification(KINDS[kind]()), "n", Random(1))
    draw, sample = Mechanism.draw, Mechanism.sample

    def smaller(numbers):
        return numbers[0] * 2 // 3, numbers[1]

    monkeypatch.setattr(Mechanism, "draw", lambda self, *rest: smaller(draw(self, *rest)))
    monkeypatch.setattr(Mechanism, "sample", lambda self, *rest: smaller(sample(self, *rest)))
    with pytest.raises(
        ra.VerificationError, match=r"Refuted: the (size of the noise|tails of the noise|memory between)"
    ):
        check_residuals(scene, keys=enough_keys(scene, 600), looks=[1, 2, 16])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_node_that_is_narrower_than_the_budget_asks_is_caught(monkeypatch, delta):
    right = Mechanism._size
    monkeypatch.setattr(Mechanism, "_size", lambda self, *rest: right(self, *rest) * Fraction(99, 100))
    with pytest.raises(ra.VerificationError, match="the budget requires"):
        check_published(specification(ra.Count(), delta=delta), "n", Random(1))


def test_the_error_rate_is_not_exceeded():
    """Of 100 right counts none is refuted, and what they show is as likely as it should be: bounds are above."""
    scene = Scene(specification(ra.Count(), delta=0.0), "n", Random(1))
    chances = [judge(residuals(scene, keys=64, first=1000 * i, looks=[1, 2, 5])).chance for i in range(100)]
    assert min(chances) > ERROR
    assert sum(chance < 0.05 for chance in chances) <= 5


@pytest.mark.parametrize("noise", ["bridge", "schauder", "tree"])
def test_the_claimed_law_is_that_of_the_process(noise):
    """By its moments and tails, which the program works out another way."""
    for delta in (0.0, 1e-6):
        scene = Scene(specification(ra.Count(noise=noise), delta=delta), "n", Random(1))
        (kind,) = residuals(scene, keys=8, looks=[3, 13])
        mechanism = scene.noise(ra.Key.for_testing(1))
        for look in (3, 13):
            form, tail = kind.nodes.form(look), mechanism.tail(look, 0)
            assert form.deviation**2 == pytest.approx(float(mechanism.variances(look)[0]), rel=0.01)
            found = list(form.within([bound * form.deviation for bound in (0.5, 1.0, 2.5)]))
            assert len(found) == 3
            for edge, least, most in found:
                assert least <= 1 - 2 * tail.upper(edge) <= most
                assert most - least < 0.01


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7), Fraction(10**6), Fraction(10**13)])
def test_the_characteristic_function_of_a_node_is_that_of_its_law(scale):
    """By its series where it is short, and by the limit law, 1 / (1 + x^2), where noise is wide."""
    claim = Claim(Layout((1,), Fraction(1), Fraction(1), 1), Share("pure", 1 / scale), Fresh(1))
    form = Nodes(claim, 1, {1: 1}).form(1)
    for size in (0.3, 1.7, 2.8):
        t = size / float(scale)
        if scale < 100:
            k = np.arange(-4000, 4001)
            masses = np.exp(-np.abs(k) / float(scale))
            expected = float((masses * np.cos(t * k)).sum() / masses.sum())
        else:
            expected = 1 / (1 + size**2)
        assert form.at(t) == pytest.approx(expected, rel=1e-9)


SAMPLES = {
    "all": {},
    "fresh": {"size": 6, "occupancy": 8},
    "by rate": {"rate": 0.25},
    "lasting ranks": {"size": 6, "persistent": True},
    "lasting coins": {"rate": 0.25, "persistent": True},
    "behind a gate": {"size": 6, "gate": 12},
}


def sampled(**options):
    made = ra.WindowSample(Median("age"), window=4, **options)
    return ra.Specification(SCHEMA, {"m": made}, epsilon=16.0, delta=0.05, horizon=16, late=False)


@pytest.mark.parametrize("form", SAMPLES)
def test_samples_are_as_claimed(form):
    assert check_sample(sampled(**SAMPLES[form]), "m", Random(1)).chance > 1e-4


def first_ones(form, live, coins, round, **options):
    return live.rows(np.arange(6))


def all_of_them(form, live, coins, round, **options):
    return live.all()


def the_same_again(form, live, coins, round, **options):
    return drawn(form, live, coins, 1, **options)


def twice_the_rate(form, live, coins, round, *, size, rate):
    return drawn(form, live, coins, round, size=size, rate=2 * rate)


@pytest.mark.parametrize(
    ("form", "bug", "words"),
    [
        ("fresh", first_ones, "how often a record is drawn|the same sample again"),
        ("fresh", the_same_again, "memory between samples"),
        ("by rate", the_same_again, "memory between samples"),
        ("by rate", twice_the_rate, "how often a record is drawn"),
        ("lasting coins", all_of_them, "how often a record is drawn"),
        ("all", first_ones, "the size of a sample"),
    ],
)
def test_samples_that_are_not_drawn_as_claimed_are_refuted(monkeypatch, form, bug, words):
    monkeypatch.setattr(sample_bound, "drawn", bug)
    with pytest.raises(ra.VerificationError, match=words):
        check_sample(sampled(**SAMPLES[form]), "m", Random(1))
