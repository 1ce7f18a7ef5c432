"""Appendix D: decoders, the history S(y), what distinct counts give away, and the verdict on a stream."""

import math
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest

import retroact as ra
from reconstruction import (
    FreshLaplace,
    FromNoise,
    PacedAttack,
    PaperAttack,
    Retroactive,
    Tracker,
    counts,
    decode_squares,
    draws,
    exact,
    paced,
    reconstruct,
    transition,
)
from retroact.audit import Seeds, Target
from retroact.audit.counting_attack import random_bits, random_sets, recovered
from retroact.audit.decoding import ceiling, chance, decode_lp, fraction_right, significant
from retroact.audit.reconstruction import AttackPlan, plan_for, reconstruction
from retroact.audit.target import make_stream
from retroact.errors import InputError
from retroact.ledger.definition import Delete, neighbouring, trajectory
from retroact.privacy import Guarantee, PureDP
from retroact.testing.altered import altered
from support.in_bound import Planted
from support.tiers import in_full

TEXT = {"user": ra.Text()}


def specification(epsilon=1.0, delta=1e-6, horizon=100, **options):
    own = {key: options.pop(key) for key in ("late",) if key in options}
    return ra.Specification(TEXT, {"users": ra.Distinct("user", **options)}, epsilon=epsilon, delta=delta,
                            horizon=horizon, **own)  # fmt: skip


# Decoders and bounds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decode", [decode_lp, decode_squares])
def test_exact_answers_with_a_common_shift_give_all_bits(decode):
    random = np.random.default_rng(1)
    queries, secret = random.choice([-1, 1], (120, 30)), random.integers(0, 2, 30).astype(bool)
    assert fraction_right(decode(queries, queries @ secret - 77), secret) == 1.0


def test_junk_ruins_squares_and_not_the_linear_program():
    ((_, lp, squares),) = transition(64, (0.1,), Seeds(5), repeats=2, junk=0.2)
    assert lp > 0.95
    assert squares < 0.85


def test_without_scipy_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(InputError, match=r"retroact\[audit\]"):
        decode_lp(np.ones((2, 1)), [1, 1])


@pytest.mark.parametrize("decode", [decode_lp, decode_squares])
def test_answers_that_are_no_numbers_are_refused(decode):
    with pytest.raises(InputError, match="finite"):
        decode(np.ones((2, 1)), [1, math.nan])
    with pytest.raises(InputError, match="for each row"):
        decode(np.ones((2, 1)), [1])


def test_the_ceiling_is_that_of_the_paper_and_randomised_response_meets_it():
    assert ceiling(1.0, 0.1) == pytest.approx(math.e / (1 + math.e) + 0.1 / (1 + math.e))
    assert ceiling(math.inf) == 1
    from scipy.stats import binom

    for right in (0, 50, 146, 170, 200):
        assert chance(right, 200, 1.0) == pytest.approx(binom.sf(right - 1, 200, ceiling(1.0)))


def test_delta_costs_little_and_the_bound_holds_for_the_worst_mechanism():
    """With probability delta everything is published, else randomised response: (epsilon, delta)-private."""
    epsilon, delta, bits, confidence = 0.5, 0.01, 40, 0.95
    least = significant(bits, epsilon, delta, confidence)
    assert significant(bits, epsilon, 0.0, confidence) <= least < bits
    random = np.random.default_rng(3)
    right = random.binomial(bits, ceiling(epsilon), 20_000)
    right[random.random(20_000) < delta] = bits
    assert (right >= least).mean() <= 1 - confidence
    assert chance(least - 1, bits, epsilon, delta) > 1 - confidence >= chance(least, bits, epsilon, delta)


# The history ---------------------------------------------------------------------------------------------------------

SHAPES = [
    {"kind": PaperAttack, "unit": 5},
    {"unit": 1},
    {"unit": 3},
    {"unit": 2, "wait": 1},
]


def shaped(sets, kind=PacedAttack, **shape):
    return kind(sets, **shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", [0, 2, 3])
def test_counts_are_those_of_the_model(shape, block):
    attack = shaped(random_sets(5, 6, Seeds(2)), **shape)
    secret = random_bits(5, Seeds(3))
    data = list(trajectory(attack.history(secret)))
    assert len(data) == attack.rounds
    expected = []
    for look in attack.looks.tolist():
        known = block * ((look - 1) // block) if block else look
        expected.append(len({point.value for point in data[look - 1] if point.stamp <= known}))
    assert counts(attack, secret, block).tolist() == expected
    queries, b = attack.queries(np.array(expected, dtype=float), block)
    off = b - queries @ secret
    # Exactly <s, y> where every record counts at once; else all answers are off by the same.
    assert (off == 0).all() if not block else np.ptp(off) == 0


def test_the_paper_has_one_update_a_round_and_deletes_only_its_own_copies():
    attack = PaperAttack.of(6, 4, Seeds(1))
    secret = np.ones(6, dtype=bool)
    history = attack.history(secret)
    assert attack.rounds == len(history) == (2 * 4 + 1) * 6
    assert attack.looks.tolist() == [6, 12, 24, 36, 48]
    assert max(map(len, history)) == 1
    assert all(update.stamp > 6 for updates in history for update in updates if isinstance(update, Delete))
    assert {point.value for point in list(trajectory(history))[-1]} == set(range(6))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_changing_a_bit_changes_one_operation(shape):
    attack = shaped(random_sets(5, 3, Seeds(2)), **shape)
    secret = random_bits(5, Seeds(3))
    for i in range(5):
        other = secret.copy()
        other[i] ^= True
        assert neighbouring(attack.history(secret), attack.history(other))


# What counts give away -----------------------------------------------------------------------------------------------


def test_the_phase_transition():
    rows = {c: (lp, squares) for c, lp, squares in transition(32, (0.05, 0.2, 0.5, 4.0), Seeds(1), repeats=6)}
    assert min(rows[0.05]) > 0.99
    assert min(rows[0.2]) > 0.9
    assert min(rows[0.5]) > 0.65
    assert max(rows[0.5]) < 0.9
    assert max(rows[4.0]) < 0.7


@pytest.mark.parametrize(
    ("way", "least", "most"),
    [
        (exact, 1.0, 1.0),
        (FreshLaplace(1.0), 0.95, 1.0),
        (FreshLaplace(0.1), 0.4, 0.85),
        (Tracker(1.0, 1e-6), 0.2, 0.73),
        (Retroactive("fresh", 1.0, 1e-6), 0.2, 0.73),
        (Retroactive("blocks", 1.0, 1e-6), 0.2, 0.73),
    ],
    ids=["exact", "laplace 1", "laplace 0.1", "tracker", "fresh", "blocks"],
)
def test_whole_histories(way, least, most):
    attack = PaperAttack.of(48, 192, Seeds(4))
    found = [reconstruct(way, attack, Seeds(4).branch(repeat)) for repeat in range(2)]
    for decoder in range(2):
        assert least <= np.mean([row[decoder] for row in found]) <= most


# Streams -------------------------------------------------------------------------------------------------------------

STREAMS = {
    "releases": specification(),
    "pure": specification(delta=0.0),
    "every other round": specification(every=2, horizon=200),
    "window": specification(window=70, horizon=None),
    "blocks": specification(form="blocks", block=2, additions=1, late=False, horizon=200),
    "two fields": ra.Specification(
        {"kind": ra.Category(["a", "b"]), "age": ra.Integer(-3, 120)},
        {"users": ra.Distinct(["kind", "age"])},
        epsilon=1.0,
        delta=1e-6,
        horizon=100,
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_answer_with_the_exact_counts_and_their_noise(name):
    spec = STREAMS[name]
    plan = plan_for(make_stream(spec), spec, "users", n=8)
    assert isinstance(plan, AttackPlan)
    assert plan.n == 8
    attack, secret, seeds = plan.attack(Seeds(1)), random_bits(8, Seeds(2)), Seeds(3)
    run = plan.answers(attack, secret, seeds)
    assert attack.history(secret) == paced(attack).history(secret)
    drawn = FromNoise(plan)(attack, secret, seeds).answers
    off = run - drawn
    # Blocks add half of what is too new to count: the same in all these rounds.
    assert np.ptp(off) < 1e-9
    assert name == "blocks" or abs(off[0]) < 1e-9
    if name == "releases":
        union = [len(set(np.flatnonzero(secret)) | set(np.flatnonzero(row))) for row in attack.sets]
        noise = draws(spec.mechanism("users", seeds.key().coins("stream")), attack.looks)
        assert (run - noise).round(9).tolist() == [secret.sum(), *union]


@pytest.mark.parametrize("name", STREAMS)
def test_every_form_gives_everything_away_without_noise(name):
    """So it is the noise that hides the bits, not an attack that does not fit the form."""
    spec = STREAMS[name].replace(epsilon=1000.0)
    plan = plan_for(make_stream(spec), spec, "users", n=8)
    assert recovered(plan.answers, plan.attack(Seeds(4)), Seeds(5)) == 1.0


def test_why_there_is_no_attack():
    flips = specification(form="flips", flips=2)
    assert "promise" in plan_for(make_stream(flips), flips, "users")
    short = specification(horizon=60)
    assert "too few rounds" in plan_for(make_stream(short), short, "users")
    few = ra.Specification({"age": ra.Integer(0, 5)}, {"n": ra.Distinct("age")}, epsilon=1.0, horizon=1000)
    assert "too few" in plan_for(make_stream(few), few, "n")


def test_a_stream_passes_and_its_control_is_caught():
    result = reconstruction(Target.stream(STREAMS["releases"]), Seeds(7), n=12, repeats=3)
    assert result.verdict == "passed"
    assert result.control.caught
    assert "cannot be attacked" not in result.found


def test_a_stream_that_claims_too_much_is_a_violation_and_the_same_again():
    target = replace(Target.stream(specification(epsilon=200.0)), claim=Guarantee(PureDP(1.0), 1.0, 1e-6))
    target = pickle.loads(pickle.dumps(target))
    result = reconstruction(target, Seeds(7), n=12, repeats=3)
    assert result.verdict == "violation"
    assert "36 of 36" in result.found
    assert reconstruction(target, Seeds(7), n=12, repeats=3) == result


def test_a_weak_promise_is_inconclusive_and_no_promise_is_not_tested():
    assert (
        reconstruction(Target.stream(specification(epsilon=200.0)), Seeds(1), n=8, repeats=1).verdict == "inconclusive"
    )
    nothing = replace(Target.stream(specification()), claim=Guarantee(PureDP(math.inf), math.inf))
    assert reconstruction(nothing, Seeds(1)).verdict == "not applicable"


@pytest.mark.parametrize(
    "spec",
    [ra.Specification(TEXT, {"n": ra.Count()}, epsilon=1.0, horizon=10), specification(horizon=10)],
    ids=["no distinct count", "too short"],
)
def test_others_are_said_to_be_replaced(spec):
    result = reconstruction(Target.stream(spec), Seeds(1), n=8, repeats=1)
    assert result.found.startswith("The stream cannot be attacked in this way")
    assert result.verdict == "not applicable"


class Bare(Planted, ra.Distinct):
    """Publishes exact counts."""

    class InBound:
        def release(self, totals, noise, at):
            return super().release(totals, altered(noise, lambda drawn: drawn.numbers * 0), at)


BARE = {
    "every round": (Bare("user"), {"horizon": 300}),
    "every other round": (Bare("user", every=2), {"horizon": 600}),
    "every seventh round": (Bare("user", every=7), {"horizon": 2000}),
    "blocks": (Bare("user", form="blocks", block=8, additions=2), {"horizon": 4000, "late": False}),
    "long blocks": (Bare("user", form="blocks", block=24, additions=2), {"horizon": 10_000, "late": False}),
}


@pytest.mark.parametrize(
    "name", ["every round", "every seventh round", "blocks", in_full("every other round"), in_full("long blocks")]
)
def test_exact_distinct_counts_are_a_violation_whatever_the_pace(name):
    """The stream itself is run, in every form: one that publishes exact counts gives all bits away."""
    statistic, options = BARE[name]
    spec = ra.Specification(TEXT, {"users": statistic}, epsilon=1.0, delta=1e-6, **options)
    result = reconstruction(Target.stream(spec), Seeds(3), repeats=2)
    assert result.verdict == "violation", result.found
    assert "run round by round" in result.tried
    assert result.control.caught
    assert result.measured["fraction recovered"] == "1"


@pytest.mark.parametrize("name", ["every seventh round", "blocks"])
def test_private_counts_pass_at_any_pace_and_their_control_is_caught(name):
    statistic, options = BARE[name]
    honest = ra.Distinct(**{name: statistic.argument(name) for name in statistic.parameters()})
    spec = ra.Specification(TEXT, {"users": honest}, epsilon=1.0, delta=1e-6, **options)
    result = reconstruction(Target.stream(spec), Seeds(3), repeats=2)
    assert (result.verdict, result.control.caught) == ("passed", True), result.found


def test_the_program_of_the_paper_has_no_shift():
    sets = random_sets(8, 32, Seeds(1))
    secret = random_bits(8, Seeds(2))
    queries = 1 - 2 * (~sets).astype(int)
    answers = queries @ secret + 3
    assert fraction_right(decode_lp(queries, answers), secret) == 1.0
    assert fraction_right(decode_lp(queries, answers, shift=False), secret) < 1.0
    assert fraction_right(decode_lp(queries, answers - 3, shift=False), secret) == 1.0
