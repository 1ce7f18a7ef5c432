"""Sampling with expiry: what every form costs, how an audit sees it, and that the books add up."""

import math
from fractions import Fraction

import pytest

import retroact as ra
from retroact.coins import Key
from retroact.compilers import Gate, WindowSample
from retroact.errors import InputError
from retroact.oneshot import (
    BOTTOM,
    SUBSTITUTION,
    Contract,
    InteriorPoint,
    Median,
    OneShot,
)
from retroact.paper import TreeLog, paper_advanced, paper_amplified, paper_basic, paper_ranks
from retroact.privacy import GaussianDP, window_cost
from retroact.stream import Specification
from support.window_samples import AGES, COINS, FORMS, Values, live_of, seen_by, stream_of

# What it costs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_settled_algorithm_spends_the_share_and_no_more(form, delta):
    if form == "gate" and delta == 0:
        return
    options = {**FORMS[form], **({"gate": Gate(2, epsilon=0.2)} if "gate" in FORMS[form] else {})}
    spec = Specification(
        AGES,
        {"it": WindowSample(Median("age"), window=24, **options)},
        epsilon=1.0,
        delta=delta,
        horizon=1000,
        late=False,
    )
    sample, grant = spec.bounds["it"].statistic, spec.grants["it"]
    gate = 0.0 if sample.gate is None else (sample.gate.epsilon or 0.2)
    cost = sample.settled_cost(grant)
    assert cost.epsilon <= 1 - gate
    assert cost.epsilon > 0.99 * (1 - gate)
    assert spec.guarantee.epsilon == 1.0
    terms = sample._terms(24, sample._failures(grant.failure, "it")[1])
    more = window_cost(sample.form, epsilon0=1.01 * float(sample.of.epsilon), **terms)
    assert more.epsilon > 1 - gate


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("options", [{}, {"occupancy": 400}])
def test_the_papers_accounting_charges_what_its_theorems_say(persistent, options):
    def settled_with(accounting):
        sample = WindowSample(Median("age"), window=24, size=5, persistent=persistent, accounting=accounting, **options)
        spec = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=500, late=False)
        return spec.bounds["it"].statistic, spec.guarantee

    paper, guarantee = settled_with("paper")
    exact, _ = settled_with("exact")
    epsilon0 = float(paper.of.epsilon)
    assert epsilon0 < float(exact.of.epsilon)
    bounds = [paper_basic(24, epsilon0, 0.0)[0], paper_advanced(24, epsilon0, 0.0, 1e-6)[0]]
    if options and not persistent:
        bounds.append(paper_amplified(24, epsilon0, 0.0, 1e-6, 5 / 401)[0])
    if options and persistent:
        whole = paper_advanced(24, epsilon0, 0.0, 0.5e-6)
        bounds.append(paper_ranks(24, 5, 400, *whole, 0.5e-6)[0] if whole[0] <= 1 else math.inf)
    assert 0.999 < min(bounds) <= 1.0
    assert ("live in every released round" in guarantee.text) == (min(bounds) == bounds[-1] and bool(options))
    stream = stream_of(
        WindowSample(Median("age"), window=24, size=5, persistent=persistent, accounting="paper", **options)
    )
    assert 0 <= stream.close_round()["it"].value <= 120


def test_a_declared_price_is_charged():
    sample = WindowSample(Median("age", epsilon=0.01), window=100)
    alone = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=1000)
    spent = float(alone.shares["it"].amount)
    assert spent == pytest.approx(sample._cost(100, Fraction(1e-6)).epsilon, rel=1e-6)
    both = Specification(AGES, {"it": sample, "n": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=1000)
    assert both.measure.epsilon(1e-6) <= 1.0
    with pytest.raises(InputError, match="above the declared costs"):
        Specification(
            AGES, {"it": WindowSample(Median("age", epsilon=1), window=100)}, epsilon=1.0, delta=1e-6, horizon=1000
        )
    with pytest.raises(InputError, match="does not cover"):
        Specification(
            AGES,
            {"it": WindowSample(Values(Fraction(1, 100), delta=Fraction(1, 100)), window=100)},
            epsilon=1.0,
            delta=1e-6,
            horizon=10,
        )


def test_guarantees_say_what_they_rest_on():
    def guarantee(**options):
        sample = WindowSample(Median("age"), window=24, **options)
        return Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=99, late=False).guarantee

    assert guarantee().adaptive
    assert guarantee().promises == ()
    assert "at least 5,000 records are live" in guarantee(size=20, occupancy=5000).text
    assert "live" not in guarantee(size=20, gate=5000).text
    assert guarantee(size=20, gate=5000).adaptive
    assert guarantee(rate=0.01).adaptive
    assert "oblivious streams only" in guarantee(rate=0.01, persistent=True).text
    assert "oblivious streams only" in guarantee(size=20, occupancy=5000, persistent=True).text
    assert "live" not in guarantee(size=20, persistent=True).text


def test_substitution_needs_samples_of_one_size():
    replaced = Values(Fraction(1, 100), SUBSTITUTION)
    for options in ({}, {"rate": 0.1}, {"size": 5}):
        with pytest.raises(InputError, match="in the place of another"):
            WindowSample(replaced, window=5, **options)
    for persistent in (False, True):
        unamplified = WindowSample(replaced, window=5, size=2, occupancy=2, persistent=persistent)
        assert "at least 2 records are live" in stream_of(unamplified).guarantee.text
    stream = stream_of(WindowSample(replaced, window=5, size=2, occupancy=2))
    stream.add([{"age": 1}])
    assert stream.close_round()["it"].value is BOTTOM
    stream.add([{"age": 2}])
    assert stream.close_round()["it"].value == [1, 2]
    with pytest.raises(InputError, match="delta above 0"):
        stream_of(WindowSample(replaced, window=5, size=2, gate=2), delta=0.0, epsilon=10.0)


class Presence(OneShot):
    """Randomised response on whether 7 is among the records: the worst case for an epsilon."""

    kind = "presence"

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def promised(self, epsilon):
        return Contract(epsilon)

    def at(self, epsilon):
        return Presence(epsilon)

    def check(self, schema, place):
        pass

    def run(self, rows, schema, coins):
        truth = bool((rows.columns["age"] == 7).any())
        # e^1 : 1, in 2^32 parts
        lie = int(ra.coins.integer(coins, 1 << 32)) >= int((1 << 32) * math.e / (1 + math.e))
        return truth ^ lie

    def arguments(self):
        return {}


# An audit of the compiled algorithm -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "attained"), [("poisson", True), ("promised", False), ("whole", True)])
def test_an_audit_of_compiled_answers_stays_below_the_cost_and_near_it(form, attained):
    """One record more in W = 1 release: the log-ratio of a visible event is at most the cost, and, where the algorithm
    is its own worst case, nearly that."""
    options = {"promised": {"size": 2, "occupancy": 4}, "poisson": {"rate": 0.5}, "whole": {}}[form]
    sample = WindowSample(Presence(Fraction(1)), window=1, **options)
    runs = 4_000
    shown = []
    for values in ([1, 2, 3, 4], [1, 2, 3, 4, 7]):
        live, coins = live_of(values), COINS.branch
        answers = (sample.of.run(seen_by(sample, live, r), None, coins("answer", r, len(values))) for r in range(runs))
        shown.append(sum(answers) / runs)
    loss = math.log(shown[1] / shown[0])
    cost = sample._cost(1, Fraction(0)).epsilon
    error = math.sqrt((1 / shown[0] + 1 / shown[1]) / runs)
    assert loss < cost + 4 * error
    if attained:
        assert loss > cost - 4 * error


MIXES = {
    "alone": {"a": WindowSample(Median("age"), window=24)},
    "gated": {"a": WindowSample(Median("age"), window=24, size=20, gate=500)},
    "gated, given": {"a": WindowSample(Median("age"), window=24, size=20, gate=Gate(500, epsilon=0.3))},
    "declared and gated": {"a": WindowSample(Median("age", epsilon=0.05), window=24, size=20, gate=500)},
    "with a declared delta": {"a": WindowSample(TreeLog("age", delta=1e-9), window=24, rate=0.1), "n": ra.Count()},
    "everything": {
        "a": WindowSample(Median("age"), window=24, size=20, gate=500),
        "b": WindowSample(Values(Fraction(1, 100), delta=Fraction(1, 10**10)), window=24, size=20),
        "c": WindowSample(InteriorPoint("age"), window=7, every=2, rate=0.2, persistent=True),
        "n": ra.Count(),
        "bins": ra.Histogram("age"),
        "m": ra.Quantiles("age", [0.5]),
    },
}


# The books ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mix", MIXES)
def test_what_all_parts_spend_together_is_within_the_budget(mix):
    """Every part is looked up where it is used, and added up anew."""
    spec = Specification(AGES, MIXES[mix], epsilon=2.0, delta=1e-6, horizon=500, late=False)
    pure, delta, square = 0.0, 0.0, 0.0
    for name, bound in spec.bounds.items():
        statistic, share, grant = bound.statistic, spec.shares[name], spec.grants[name]
        if not isinstance(statistic, WindowSample):
            pure += float(share.amount) if share.kind == "pure" else 0.0
            square += float(share.amount) if share.kind == "gaussian" else 0.0
            delta += float(spec.failures[name])
            continue
        noise = spec.mechanism(name, COINS)
        contract = statistic.of.contract
        counted = {
            "releases": min(24 if name != "c" else 4, 500),
            "epsilon0": float(contract.epsilon),
            "delta0": float(contract.delta),
            "size": statistic.size,
            "rate": None if statistic.rate is None else float(statistic.rate),
            "bounded_range": contract.bounded_range,
            "occupancy": 500 if statistic.gate else None,
        }
        own = float(grant.failure)
        if statistic.calibrated is not None:
            calibrated = statistic.calibrated
            lost = GaussianDP(math.sqrt(noise.share.amount)).delta(float(calibrated.epsilon))
            assert lost <= float(calibrated.spent) * (1 + 1e-9)
            pure += float(calibrated.epsilon)
            delta += float(calibrated.spent + calibrated.failure)
            own -= float(calibrated.spent + calibrated.failure)
        cost = window_cost(statistic.form, delta=own, **counted)
        gate = float(statistic.calibrated.epsilon) if statistic.calibrated is not None else 0.0
        assert gate + cost.epsilon <= float(share.amount) * (1 + 1e-9)
        pure += cost.epsilon
        delta += own
    assert pure + (GaussianDP(math.sqrt(square)).epsilon(1e-6 - delta) if square else 0) <= 2.0 * (1 + 1e-9)
    assert delta <= 1e-6 * (1 + 1e-12)
    assert spec.measure.epsilon(1e-6) <= 2.0 * (1 + 1e-9)


def test_a_gate_before_lasting_ranks_amplifies_nothing():
    def epsilon0(**options):
        sample = WindowSample(Median("age"), window=24, size=20, persistent=True, **options)
        spec = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=500, late=False)
        return float(spec.bounds["it"].statistic.of.epsilon), spec.guarantee

    plain, _ = epsilon0()
    gated, guarantee = epsilon0(gate=5000)
    promised, _ = epsilon0(occupancy=5000)
    assert gated < plain < promised
    assert guarantee.adaptive
    assert guarantee.promises == ()


def test_answers_have_coins_of_their_own_in_every_round_and_statistic():
    stream = ra.Stream(
        {"x": ra.Integer(0, 2**40)},
        {name: WindowSample(InteriorPoint("x"), window=4) for name in "ab"},
        epsilon=1.0,
        horizon=20,
        key=Key.for_testing(1),
    )
    points = [release.value for _ in range(20) for release in stream.close_round().values()]
    assert len(set(points)) == 40  # uniform points of an empty window
