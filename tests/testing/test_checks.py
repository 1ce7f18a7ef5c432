"""The checks pass what is right and catch what is planted."""

import re
import warnings
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.ledger.definition import Add, Delete, neighbouring, unite_at
from retroact.noise import Mechanism, Oblivious
from retroact.statistics import Noisy, Statistic
from retroact.testing import (
    AdaptGame,
    Check,
    CheckFailedError,
    Finding,
    Seeds,
    Shape,
    StreamAlgorithm,
    check_algorithm,
    check_bounded_state,
    check_example,
    check_key,
    check_law,
    check_missing,
    check_no_op_deletions,
    check_noise_law,
    check_oblivious,
    check_order,
    check_sensitivity,
    check_state,
    check_statistic,
    check_twin,
    every_example,
    history,
    neighbouring_pairs,
    require,
    shuffled,
    strategies,
    uniting_pairs,
)
from retroact.testing.check import caught
from retroact.testing.drawn_noise import drawn, noises
from retroact.testing.law import SameLaw
from retroact.testing.noise_law import NoiseLaw
from retroact.testing.twin import Twin
from support.in_bound import Planted
from support.planted import (
    ArrivalOrder,
    DictOrder,
    FloatSum,
    FutureDeletions,
    GrowingState,
    NoNoise,
    Reference,
    SequentialNoise,
    StaleCache,
    Tombstones,
    UnkeyedClock,
)
from support.tiers import in_full

pytestmark = pytest.mark.usefixtures("near_changes")

SHAPE = Shape(values=(1e17, 1.0, 2.0, 3.0), rounds=6)


def pairs(count=150, seed=1):
    return list(uniting_pairs(SHAPE, Random(seed), count))


def test_generated_pairs_unite_where_they_say_and_differ_before():
    found = pairs(300)
    assert all(unite_at(p.one, p.other) == p.unite for p in found)
    assert sum(p.unite > 1 for p in found) > 100, "too few pairs with a past to forget"
    assert len({p.unite for p in found}) == 6


def test_generated_neighbours_are_neighbours():
    assert all(neighbouring(a, b) for a, b in neighbouring_pairs(SHAPE, Random(2), 200))


def test_shuffling_keeps_the_order_of_events_on_one_id():
    random = Random(3)
    for _ in range(200):
        for updates in history(SHAPE, random):
            other = shuffled(updates, random)
            assert sorted(map(repr, other)) == sorted(map(repr, updates))
            for id in {getattr(u, "id", None) for u in updates} - {None}:
                assert [u for u in other if getattr(u, "id", None) == id] == [
                    u for u in updates if getattr(u, "id", None) == id
                ]


def test_a_correct_algorithm_passes():
    assert "twin" in check_algorithm(Reference, SHAPE, pairs=100)


@pytest.mark.parametrize("bug", [FloatSum, SequentialNoise, DictOrder, StaleCache, UnkeyedClock, FutureDeletions])
def test_the_twin_check_catches(bug):
    with pytest.raises(CheckFailedError, match=r"twin check: Pair \d+ of 150 has other answers in round"):
        check_twin(bug, pairs())


def test_what_a_check_cannot_tell_does_not_pass():
    class Undecided(Check):
        def run(self, target, seeds):
            return Finding(verdict="inconclusive", found="Nobody knows.")

        def planted(self, target):
            return []

    with pytest.raises(CheckFailedError, match="asked: Nobody knows"):
        require(Undecided(), None, Seeds(1), what="asked")


@pytest.mark.parametrize("check", [Twin(tuple(pairs(20))), SameLaw(tuple(pairs(3)), 100, 1e-6)], ids=["twin", "law"])
def test_checks_for_authors_catch_what_they_plant(check):
    assert check.run(Reference, Seeds(1)).verdict == "passed"
    assert caught(check, Reference, Seeds(2))[1]


def test_texts_that_never_repeat_are_no_law():
    class Unique(Reference):
        def close(self, updates):
            return f"text {super().close(updates)!r} {Random().random()}".encode()

    with pytest.raises(CheckFailedError, match="could not be compared"):
        check_law(Unique, pairs(1), runs=60)


def test_float_sums_remember_the_classic_case():
    add = lambda v: (Add(v),)  # noqa: E731
    pair = next(p for p in pairs(1))
    one = (add(1.0), add(1e17), (Delete(1e17, 2),))
    other = (add(1.0), (), ())
    assert unite_at(one, other) == 3
    with pytest.raises(CheckFailedError):
        check_twin(FloatSum, [type(pair)(one, other, 3)])


def test_tombstones_are_caught_in_the_state():
    check_twin(Tombstones, pairs(40))  # the answers are right
    with pytest.raises(CheckFailedError, match="something of the past is kept"):
        check_state(Tombstones, pairs())


def test_growing_state_is_caught():
    churn = lambda r: (Add(1.0), Add(2.0)) if r % 2 else (Delete(1.0, r - 1), Delete(2.0, r - 1))  # noqa: E731
    with pytest.raises(CheckFailedError, match="bounded state"):
        check_bounded_state(GrowingState, churn)


def test_remembered_deletions_are_caught():
    random = Random(4)
    with pytest.raises(CheckFailedError, match="no-op deletions"):
        check_no_op_deletions(FutureDeletions, [history(SHAPE, random) for _ in range(300)], SHAPE, random)


def test_arrival_order_is_caught():
    random = Random(5)
    with pytest.raises(CheckFailedError, match="order within a round"):
        check_order(ArrivalOrder, [history(SHAPE, random) for _ in range(400)], random)


def test_missing_noise_is_caught():
    with pytest.raises(CheckFailedError, match="no noise"):
        check_key(NoNoise, history(SHAPE, Random(6)))


def spec(delta=0.0, horizon=8, **statistics):
    law = "gaussian" if delta else "laplace"
    return ra.Specification(
        {"age": ra.Integer(0, 120)}, statistics or {"n": ra.Count()}, epsilon=1.0, delta=delta, horizon=horizon, law=law
    )


def test_noise_keyed_by_data_is_caught(monkeypatch):
    """Retroactive, since equal data give equal noise, and not private: the twin check cannot see it."""

    def of(cls, totals, mechanism, index, round):
        numerators, denominator = mechanism.draw(1 + (index + int(totals.sum())) % 8)
        return cls(totals * denominator + numerators, denominator, mechanism, index, round)

    monkeypatch.setattr(Noisy, "of", classmethod(of))
    shape = Shape(values=((0,), (50,), (120,)), rounds=8)
    check_twin(lambda key: StreamAlgorithm(spec(), key), uniting_pairs(shape, Random(7), 20))
    with pytest.raises(ra.VerificationError, match="not its totals plus the noise"):
        check_oblivious(spec(), Random(8))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_wrong_scale_is_caught(monkeypatch, delta):
    assert check_noise_law(spec(delta), draws=4000)["n"].holds
    right = Mechanism.law

    def smaller(self, level, unit):
        law = right(self, level, unit)
        return DiscreteLaplace(law.scale * Fraction(9, 10)) if delta == 0 else type(law)(law.parameter * Fraction(4, 5))

    monkeypatch.setattr(Mechanism, "law", smaller)
    with pytest.raises(ra.VerificationError, match="refuted"):
        check_noise_law(spec(delta), draws=4000)
    with pytest.raises(ra.VerificationError, match="costs"):
        check_sensitivity(spec(delta), Random(9))


def test_fresh_noise_each_round_is_caught_by_the_covariance(monkeypatch):
    right = Mechanism.draw

    def fresh(self, index):
        return right(self.under(self.coins.branch(index)), index)

    monkeypatch.setattr(Mechanism, "draw", fresh)
    (noise,) = noises(spec(), "n")
    found = NoiseLaw("n", 4000).run([noise.kind(drawn(noise, 4000, Seeds(1).coins()))], Seeds(1))
    assert found.verdict == "violation"
    assert "memory between rounds" in found.found


def test_noise_of_another_key_is_caught(monkeypatch):
    right = Noisy.of.__func__

    def of(cls, totals, mechanism, index, round):
        mechanism = mechanism.under(mechanism.coins.branch("other"))
        return right(cls, totals, mechanism, index, round)

    monkeypatch.setattr(Noisy, "of", classmethod(of))
    with pytest.raises(ra.VerificationError, match="not its totals plus the noise"):
        check_oblivious(spec(), Random(8))


def test_an_understated_norm_is_caught():
    class Double(ra.Count):
        def contribute(self, rows, schema):
            parts = super().contribute(rows, schema)
            return type(parts)(parts.row, parts.coordinate, parts.amount * 2)

    with pytest.raises(ra.VerificationError, match="costs"):
        check_sensitivity(spec(n=Double()), Random(10))


EXAMPLES = every_example()
# Of this package: other tests define statistics too.
KINDS = {kind: one for kind, one in Statistic.kinds.items() if one.__module__.startswith("retroact.")}
SCHEMA = EXAMPLES["count"].schema


@pytest.mark.parametrize("kind", KINDS)
def test_every_statistic_gives_examples_of_itself(kind):
    """One that gives none would go through no check."""
    own = KINDS[kind]
    assert any(type(example.statistic) is own for example in own.examples())
    assert [example.name for example in own.examples()] == [n for n, e in EXAMPLES.items() if type(e.statistic) is own]


def test_the_docs_have_a_row_for_every_statistic():
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
    table = page.partition("| statistic |")[2].partition("Options of every")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"(\w+)\(", row)}
    assert listed == {"map" if kind == "mapped" else one.__name__ for kind, one in KINDS.items()}


# With and without a delta and a horizon: an example that has them fixed is checked where no other is without.
FREE = [example.statistic for example in EXAMPLES.values() if not example.stream]
CHECKED = [name for name, example in EXAMPLES.items() if not example.stream or example.statistic not in FREE]


# By default the examples take turns, pure with a horizon or Gaussian without, and each is in the other stream where
# values may be missing. In full all are in both, and crossed: pure without a horizon and Gaussian with one.
TURNS = [(name, turn % 2) for turn, name in enumerate(CHECKED)]


def checked(name, **effort):
    ran = check_example(EXAMPLES[name], **effort)
    assert {"twin", "sensitivity", "oblivious noise", "bounded state", "missing values"} <= set(ran)
    assert ("noise law" in ran) is bool(effort["draws"])


@pytest.mark.parametrize(("name", "only"), TURNS)
def test_every_statistic_passes_every_check(name, only):
    checked(name, only=only, pairs=4, draws=300)


# What is missing is the matter of a class: by default its first example is checked.
FIRST = {next((name for name in CHECKED if type(EXAMPLES[name].statistic) is kind), None) for kind in KINDS.values()}


@pytest.mark.parametrize(("name", "only"), [turn if turn[0] in FIRST else in_full(*turn) for turn in TURNS])
def test_every_statistic_passes_every_check_with_missing_values(name, only):
    """Histories in which a quarter of all values is missing."""
    checked(name, only=1 - only, lacking=True, pairs=2, draws=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize(
    "effort",
    [
        {"pairs": 40, "draws": 2000},
        {"pairs": 6, "draws": 2000, "crossed": True},
        {"pairs": 6, "draws": 0, "lacking": True},
    ],
    ids=["full", "crossed", "missing values"],
)
def test_every_statistic_passes_every_check_in_full(name, effort):
    checked(name, **effort)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
def test_one_operation_costs_no_more_where_values_are_missing(name):
    example = EXAMPLES[name]
    budget = {"epsilon": 1.0, "delta": 1e-6, "horizon": 100, **example.stream}
    check_missing(ra.Specification(example.schema, {"n": example.statistic}, **budget), Random(1), pairs=70)


def test_a_statistic_that_counts_what_is_missing_is_caught():
    class Blind(Planted, ra.Mean):
        class InBound:
            def gather(self, rows, weights):
                return self._gather(rows, weights)

    with pytest.raises(ra.VerificationError, match="counts a record that lacks what it reads"):
        check_missing(spec(n=Blind("age")), Random(11))


def test_a_statistic_that_reads_more_than_it_says_is_caught():
    class Secretive(ra.Sum):
        def reads(self, schema):
            return ()

    with pytest.raises(ra.VerificationError, match="reads more than it says"):
        check_missing(spec(n=Secretive("age")), Random(12))


def test_a_statistic_that_leaves_out_too_many_is_caught():
    """The whole record, in place of the one value that is missing."""

    class Strict(Planted, ra.Count):
        class InBound:
            def counted(self, rows):
                return np.flatnonzero(~np.logical_or.reduce(list(rows.missing.values()))) if rows.missing else None

    with pytest.raises(ra.VerificationError, match="leaves out a record it reads"):
        check_missing(spec(n=Strict()), Random(13))


@pytest.mark.parametrize("noise", ["paper", "doubling", "own"])
def test_reference_forms_pass_the_checks(noise):
    own = Oblivious(DiscreteLaplace(50), "fifty", epsilon=0.02)
    statistic = ra.Count(noise=own if noise == "own" else noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ra.HorizonWarning)
        check_statistic(statistic, SCHEMA, pairs=8, horizons=(None,) if noise == "doubling" else (8,))


def test_a_law_with_a_delta_is_for_oblivious_streams_only():
    for delta, adaptive in ((0.0, True), (1e-9, False)):
        own = Oblivious(DiscreteLaplace(50), "fifty", epsilon=0.02, delta=delta)
        made = ra.Specification(SCHEMA, {"n": ra.Count(noise=own)}, epsilon=1.0, delta=1e-6, horizon=8)
        assert made.guarantee.adaptive is adaptive
        assert ("oblivious streams only" in made.guarantee.text) is not adaptive


def every_statistic(delta):
    """Of those that need no budget of their own, and a delta and a horizon like any other."""
    plain = {name: e.statistic for name, e in EXAMPLES.items() if not {*e.stream, *e.checks} - {"horizon"}}
    free = {name: s for name, s in plain.items() if "mapped" not in name and s.noise != "doubling"}
    return ra.Specification(SCHEMA, free, epsilon=8.0, delta=delta, horizon=6)


TWO_VALUES = ((1.5, "DE", "a", 30, True, (0.5, 0.5)), (-10, "FR", "é", 60, False, (0, -1)))


# With a budget at which bins of two or three records pass their thresholds.
BY_KEY = ra.Specification(
    SCHEMA,
    {
        "notes": ra.Histogram("city"),
        "notes of the last rounds": ra.Histogram(["city", "member"], window=3),
        "amounts": ra.Histogram("city", sum="amount", every=2),
        "listed": ra.Histogram("city", bins=["a", "é"]),
        "ages": ra.Quantiles("age", [0.25, 0.5], cdf=[40], counts=[(18, 60)]),
        "ages of the last rounds": ra.Quantiles("age", [0.5], window=2),
        "different notes": ra.Distinct("city"),
        "different notes of the last rounds": ra.Distinct("city", window=3),
        "past counts": ra.Restated(ra.Count(), [0, 2]),
        "past notes": ra.Restated(ra.Histogram("city"), [1], across="rectangle"),
    },
    epsilon=1000.0,
    delta=0.3,
    horizon=6,
    law="gaussian",
)
EVERYTHING = every_statistic(1e-6)
ALL = pytest.mark.parametrize("specification", [EVERYTHING, BY_KEY], ids=["by coordinate", "by key"])


@ALL
@settings(deadline=None, max_examples=40)
@given(pair=strategies.uniting_pairs(Shape(values=TWO_VALUES, rounds=6)))
def test_twin_check_by_hypothesis(specification, pair):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ra.HorizonWarning)
        check_twin(lambda key: StreamAlgorithm(specification, key), [pair], keys=(1,))


def test_bins_are_released_in_generated_histories():
    """Otherwise the twin check would compare empty answers."""
    shape, random, released = Shape(values=TWO_VALUES, rounds=6), Random(12), 0
    for _ in range(40):
        algorithm = StreamAlgorithm(BY_KEY, ra.Key.for_testing(1))
        for updates in history(shape, random):
            released += bool(algorithm.release(updates)["notes"].value)
    assert released > 40


@settings(deadline=None, max_examples=50)
@given(strategies.neighbouring_pairs(Shape(values=("a", "b"), rounds=4)))
def test_hypothesis_neighbours(pair):
    assert neighbouring(*pair)


@pytest.mark.slow
@ALL
def test_ten_thousand_pairs(specification):
    """Every statistic at once, 10,000 random uniting pairs: no byte differs."""
    from retroact.testing import values_of

    shape = Shape(values_of(ra.Schema(SCHEMA), Random(0)), rounds=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ra.HorizonWarning)
        compared = check_twin(
            lambda key: StreamAlgorithm(specification, key), uniting_pairs(shape, Random(11), 10_000), keys=(1,)
        )
    assert compared > 20_000


class Curious:
    """Adds while the answers look low, and challenges in the round after the first high one."""

    def __init__(self, challenge):
        self.challenge = challenge
        self.done = False

    def updates(self, round, answers):
        challenge = None
        if answers and not self.done and round > 2:
            challenge, self.done = self.challenge(round), True
        return ([Add((30,))] if len(answers) % 2 else []), challenge


@pytest.mark.parametrize("challenge", [lambda r: Add((120,)), lambda r: Delete((30,), 2)], ids=["addition", "deletion"])
def test_the_adaptive_game_differs_by_one_interval(challenge):
    """Under one key the two worlds' answers differ by the challenge alone, until they agree again."""
    game = AdaptGame(lambda key: StreamAlgorithm(spec(), key), lambda: Curious(challenge), rounds=6)
    zero, one = (game.play(world, ra.Key.for_testing(3)) for world in (0, 1))
    assert zero.challenges == one.challenges
    differs = [a != b for a, b in zip(zero.answers, one.answers, strict=True)]
    assert differs == [False, False, True, True, True, True]


def test_an_adversary_with_a_memory_starts_every_game_afresh():
    """It adds what it has seen so far, over all rounds it ever played: carried over, the worlds would differ although
    the algorithm publishes nothing about its data."""

    class Mute:
        def __init__(self, key):
            self.updates = 0

        def close(self, updates):
            self.updates += len(updates)
            return b"nothing"

    class Remembers:
        def __init__(self):
            self.rounds, self.done = 0, False

        def updates(self, round, answers):
            self.rounds += 1
            challenge = None if self.done else Add((1,))
            self.done = True
            seen.append(self.rounds)
            return [Add((2,))] * self.rounds, challenge

    seen = []
    game = AdaptGame(Mute, Remembers, rounds=3)
    views = [game.play(world, ra.Key.for_testing(1)) for world in (0, 1)]
    assert views[0] == views[1]
    assert views[1].challenges == ((1, Add((1,))),)
    assert seen == [1, 2, 3, 1, 2, 3]
    with pytest.raises(ra.InputError, match=r"a function that makes an adversary, got one Remembers.* at adversary"):
        AdaptGame(Mute, Remembers(), rounds=3)


def test_the_game_refuses_a_second_challenge():
    class Greedy:
        def updates(self, round, answers):
            return [], Add((1,)) if round < 3 else Delete((1,), 1)

    make = lambda key: StreamAlgorithm(spec(), key)  # noqa: E731
    with pytest.raises(ra.InputError, match="one challenge"):
        AdaptGame(make, Greedy, rounds=3).play(0, ra.Key.for_testing(1))
    with pytest.raises(ra.InputError, match="one challenge of a kind"):
        AdaptGame(make, Greedy, rounds=3, challenges="each").play(0, ra.Key.for_testing(1))
