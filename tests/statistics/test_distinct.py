"""Distinct counts: every form hides what it says it hides, answers what it says, and refuses what it cannot keep."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

import retroact as ra
from retroact.ledger.definition import Add, Delete, trajectory
from retroact.noise import Bridge, Oblivious, Unbounded
from retroact.statistics import View
from retroact.statistics.distinct_forms import FORMS
from retroact.testing import (
    CheckFailedError,
    Shape,
    StreamAlgorithm,
    check_statistic,
    check_twin,
    uniting_pairs,
    values_of,
)
from retroact.testing.hiding import cost_of
from support.in_bound import Planted
from support.tiers import in_full, in_turns

SCHEMA = {"user": ra.Text(), "country": ra.Category(["DE", "FR"]), "age": ra.Integer(0, 120)}
BOTH = pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
# What each form is given here, of the statistic and of the stream.
DECLARED = {
    "releases": ({}, {}),
    "blocks": ({"additions": 3, "block": 4}, {"late": False}),
    "flips": ({"flips": 8}, {}),
}
EVERYTHING = View()
EVERY_FORM = pytest.mark.parametrize("form", FORMS)


def distinct(form, by="user", **options):
    return ra.Distinct(by, form=form, **(DECLARED[form][0] | options))


def specification(statistic, *, delta=1e-6, horizon=8, epsilon=1.0, **stream):
    """With Gaussian noise where there is a delta, so that both laws are tried."""
    budget = {"epsilon": epsilon, "delta": delta, "law": "gaussian" if delta else "laplace"}
    return ra.Specification(SCHEMA, {"n": statistic}, horizon=horizon, **budget, **stream)


def record(user, country="DE", age=30):
    return {"user": user, "country": country, "age": age}


# All the generic checks ----------------------------------------------------------------------------------------------

VARIANTS = {
    "releases": distinct("releases"),
    "releases, tuples": distinct("releases", ["country", "age"], where={"age": {"min": 18}}),
    "releases, window": distinct("releases", window=3),
    "releases, window and every": distinct("releases", "age", window=3, every=2),
    "releases, mapped": distinct("releases").map(round),
    "blocks": distinct("blocks"),
    "blocks, one round each": distinct("blocks", block=1),
    "blocks, three rounds": distinct("blocks", ["user", "country"], block=3, where={"country": "DE"}),
    "blocks, every": distinct("blocks", every=2),
    "blocks, mapped": distinct("blocks").map(round),
    "flips": distinct("flips"),
    "flips, every": distinct("flips", every=2),
    "any": ra.Distinct("user", additions=2),
}


@pytest.mark.parametrize("draws", [300, in_full(1000)])
@pytest.mark.parametrize(("name", "delta"), in_turns(VARIANTS, (0.0, 1e-6), always=["releases"]))
def test_every_form_passes_every_check(name, delta, draws):
    form = name.split(",")[0]
    # Without a horizon a block has 1,024 releases, which takes its time.
    horizons = (8, None) if name == "releases" else (8,)
    ran = check_statistic(
        VARIANTS[name],
        SCHEMA,
        deltas=(delta,),
        horizons=horizons,
        pairs=6,
        draws=draws,
        **DECLARED.get(form, ({}, {"late": False}))[1],
    )
    assert {"twin", "sensitivity", "noise law", "oblivious noise", "bounded state"} <= set(ran)


# All neighbours, by brute force --------------------------------------------------------------------------------------


def updates(round, late):
    """Every update of one value that a stream takes in a round: (whether it adds, its stamp)."""
    adds = [(True, stamp) for stamp in range(1 if late else round, round + 1)]
    return adds + [(False, stamp) for stamp in range(1, round + 1)]


def applied(copies, changes):
    """Additions first, then deletions, each of one copy that is there."""
    for adds, stamp in sorted(changes, reverse=True):
        count = copies[stamp - 1] + 1 if adds else max(0, copies[stamp - 1] - 1)
        copies = (*copies[: stamp - 1], count, *copies[stamp:])
    return copies


@cache
def reachable(rounds, view=EVERYTHING, late=False, flips=None):
    """Every pattern by which the count can differ, round by round, over all sequences with at most one update a round
    and all with one update more: of one value, since other values count alike in both. Sequences that agree in copies
    by stamp and in the pattern so far are followed once."""
    nothing = (0,) * rounds
    front = {((), nothing, nothing, False, 0, 0)}
    for round in range(1, rounds + 1):
        allowed = updates(round, late)
        first, last = view.span(round)
        after = set()
        for pattern, one, other, inserted, *changed in front:
            for common in [(), *((u,) for u in allowed)]:
                for more in [(), *((u,) for u in allowed if not inserted)]:
                    now = applied(one, common), applied(other, common + more)
                    flipped = [
                        c + (any(old) != any(new)) if flips else 0
                        for c, old, new in zip(changed, (one, other), now, strict=True)
                    ]
                    if flips is None or max(flipped) <= flips:
                        seen = [any(copies[first - 1 : max(0, last)]) for copies in now]
                        after.add(((*pattern, seen[1] - seen[0]), *now, inserted or more != (), *flipped))
        front = after
    return {pattern for pattern, *_ in front}


def modelled(rounds, values, view=EVERYTHING, late=False):
    """The same from the definitions, one pair of sequences after the other."""

    def allowed(round, values):
        return [Add(v, stamp) if adds else Delete(v, stamp) for v in values for adds, stamp in updates(round, late)]

    bases = [()]
    for round in range(1, rounds + 1):
        bases = [(*base, choice) for base in bases for choice in [(), *((u,) for u in allowed(round, values))]]
    for base in bases:
        before = counted(base, view)
        for round in range(1, rounds + 1):
            for update in allowed(round, "a"):
                other = counted((*base[: round - 1], (*base[round - 1], update), *base[round:]), view)
                yield tuple(new - old for old, new in zip(before, other, strict=True))


def counted(sequence, view):
    """The true counts, from the definitions."""
    out = []
    for round, data in enumerate(trajectory(sequence), 1):
        first, last = view.span(round)
        out.append(len({point.value for point in data if first <= point.stamp <= last}))
    return out


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("view", [EVERYTHING, View(window=2), View(block=2)], ids=str)
def test_reachable_patterns_are_those_of_the_definitions(view, late):
    expected = reachable(4, view, late)
    assert set(modelled(4, "a", view, late)) == expected
    if not late:
        assert set(modelled(3, "ab", view, late)) == reachable(3, view, late)


def test_any_set_of_rounds_can_be_reached():
    """The reason for `noise.AnyRounds`: one update a round, no late data (paper, section 6)."""
    assert {pattern[1:] for pattern in reachable(6) if min(pattern) >= 0} == set(product((0, 1), repeat=5))


def largest_cost(spec, patterns, origin=0):
    """What hiding the worst pattern costs, as a part of the share, in a stream that began after round ``origin``."""
    statistic = spec.statistics["n"]
    mechanism, every = spec.mechanism("n", ra.Key.for_testing(1).coins("n")), statistic.every
    ahead = spec.bounds["n"].design.place(1, origin + every, every) - 1
    released = {(0,) * ahead + pattern[origin + every - 1 :: every] for pattern in patterns}
    assert len(released) > 1
    return max(cost(mechanism, pattern) for pattern in released) / spec.shares["n"].amount


def cost(mechanism, pattern):
    return cost_of(mechanism, 0, mechanism.process.shift_hiding(pattern))


def view_of(spec):
    (view,) = spec.bounds["n"].views
    return view


@BOTH
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"window": 2}, {"window": 3}, {"every": 2}, {"window": 3, "every": 2}], ids=str
)
def test_any_pattern_is_hidden(options, late, delta):
    rounds = 5 if late else 8
    spec = specification(distinct("releases", **options), delta=delta, horizon=rounds)
    worst = largest_cost(spec, reachable(rounds, view_of(spec), late))
    assert 0.98 < worst <= 1 or (0.45 < worst <= 1 and "window" in options)


@BOTH
def test_any_pattern_is_hidden_without_a_horizon(delta):
    spec = specification(distinct("releases"), delta=delta, horizon=None)
    assert largest_cost(spec, reachable(4, late=True)) == pytest.approx(0.5, abs=0.01), "half goes to the first block"


@BOTH
@pytest.mark.parametrize(("block", "every"), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (7, 1), (2, 2), (4, 2), (6, 3)])
def test_blocks_hide_all_neighbours(block, every, delta):
    """Also those of a stream that begins within a block."""
    rounds = 9 if every == 3 else 8
    for origin in range(5):
        statistic = distinct("blocks", block=block, every=every)
        spec = specification(statistic, delta=delta, horizon=rounds - origin, late=False)
        worst = largest_cost(spec, reachable(rounds, view_of(spec)), origin)
        assert 0.1 < worst <= 1


@BOTH
@pytest.mark.parametrize("flips", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("late", [False, True])
def test_flips_hide_all_neighbours_that_keep_the_promise(flips, late, delta):
    rounds = 5 if late else 8
    spec = specification(distinct("flips", flips=flips), delta=delta, horizon=rounds)
    assert 0.5 < largest_cost(spec, reachable(rounds, EVERYTHING, late, flips=flips)) <= 1
    if flips == 1:
        with pytest.raises(ra.InputError, match="one interval of rounds, got 2"):
            largest_cost(spec, reachable(rounds, EVERYTHING, late))


def test_late_data_would_break_blocks():
    """Why it is refused: old records that come and go in every round make a pattern that the noise of blocks cannot
    hide, by whatever shift: d' Sigma^-1 d, the least of all costs, is far above the share."""
    rounds, block = 256, 32
    spec = specification(distinct("blocks", additions=1, block=block), horizon=rounds, late=False)
    mechanism = spec.mechanism("n", ra.Key.for_testing(1).coins("n"))
    own = [(Add("a"),), *((),) * (rounds - 1)]
    toggled = [() if r < 2 else (Delete("a", 2),) if r % 2 else (Add("a", 2),) for r in range(1, rounds + 1)]
    sequences = tuple(toggled), tuple((*x, *y) for x, y in zip(own, toggled, strict=True))
    before, after = (counted(sequence, view_of(spec)) for sequence in sequences)
    pattern = np.subtract(after, before)
    assert Counter(pattern[block:].tolist()) == {0: 112, 1: 112}
    with pytest.raises(ra.InputError, match="one interval in every block"):
        cost(mechanism, pattern.tolist())
    covariance = covariance_of(mechanism, rounds)
    share = float(spec.shares["n"].amount)
    assert pattern @ np.linalg.solve(covariance, pattern) > 6 * share
    # The same measure on what no late data can make: below the share.
    steps = np.array([float(q % block >= 3 * (q // block) and q >= block) for q in range(rounds)])
    assert steps @ np.linalg.solve(covariance, steps) <= float(cost(mechanism, [int(s) for s in steps])) <= share


def covariance_of(mechanism, rounds):
    terms = mechanism.process.weights_of(np.arange(1, rounds + 1))
    pairs = np.stack([terms.levels.ravel(), terms.indices.ravel()], axis=1)
    nodes, where = np.unique(pairs, axis=0, return_inverse=True)
    matrix = np.zeros((rounds, len(nodes)))
    np.add.at(matrix, (np.repeat(np.arange(rounds), terms.levels.shape[1]), where.ravel()), terms.weights.ravel())
    variances = np.array([mechanism.law(int(level), 1).variance for level in nodes[:, 0]])
    return matrix * variances @ matrix.T / (terms.denominator * mechanism.refinement) ** 2


# Where a release is in the noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "every"), [(1, 1), (4, 1), (5, 1), (4, 2), (6, 3), (6, 6)])
def test_noise_begins_anew_where_blocks_do(length, every):
    for horizon in (6, 20, 21):
        spec = specification(distinct("blocks", every=every, block=length), horizon=horizon, late=False)
        design, process = spec.bounds["n"].design, spec.processes["n"]
        for origin in range(2 * length + 1):
            places = []
            for index in range(1, horizon // every + 1):
                round = origin + index * every
                place = design.place(index, round, every)
                places.append(((place - 1) // (length // every), (round - 1) // length))
                assert 1 <= place <= process.horizon
                assert (place - 1) % (length // every) == (round - 1) % length // every
            steps = np.diff(places, axis=0)
            assert (steps[:, 0] == steps[:, 1]).all(), "a block of noise for every block of rounds"


@EVERY_FORM
def test_a_successor_goes_on_within_a_block(form):
    _, stream = DECLARED[form]
    first = ra.Stream(
        SCHEMA, {"n": distinct(form)}, epsilon=1.0, delta=1e-6, horizon=5, key=ra.Key.for_testing(1), **stream
    )
    for round in range(1, 6):
        first.add([record(f"u{round}-{i}") for i in range(3)])
        first.close_round()
    second = first.successor(epsilon=1000.0, delta=1e-6, horizon=6, key=ra.Key.for_testing(2))
    for round in range(6, 12):
        second.add([record(f"u{round}-{i}") for i in range(3)])
        release = second.close_round()["n"]
        low, high = release.interval(0.9999)
        assert low <= 3 * round <= high


# What is answered ----------------------------------------------------------------------------------------------------


def history(round):
    """At most three additions a round, deletions in rounds that are multiples of 3."""
    added = [(f"u{round}", "DE"), (f"u{round // 2}", "FR"), (f"v{round}", "DE")][: 3 if round != 4 else 1]
    deleted = [] if round % 3 else [(f"v{round - 1}", "DE", round - 1), (f"u{round - 2}", "DE", round - 2)]
    return added, deleted


def played(statistic, key, rounds=6, delta=1e-6, horizon=6, **stream):
    """The releases of the history, with the set of surviving (user, country, stamp)."""
    made = ra.Stream.from_specification(
        specification(statistic, delta=delta, horizon=horizon, **stream), key=ra.Key.for_testing(key)
    )
    survivors, out = set(), []
    for round in range(1, rounds + 1):
        added, deleted = history(round)
        made.add([record(*add) for add in added])
        for user, country, stamp in deleted:
            made.delete(record(user, country), stamp=stamp)
        survivors |= {(*add, round) for add in added}
        survivors -= set(deleted)
        out.append((made.close_round(), set(survivors)))
    return made, out


@BOTH
@EVERY_FORM
@pytest.mark.parametrize("by", ["user", ["user", "country"]], ids=str)
def test_answers_are_the_count_with_its_noise_on(form, by, delta):
    statistic = distinct(form, by, where={"country": ["DE", "FR"]})
    made, releases = played(statistic, 5, delta=delta, **DECLARED[form][1])
    noise = made.specification.mechanism("n", ra.Key.for_testing(5).coins("stream"))
    for round, (release, survivors) in enumerate(releases, 1):
        since = 3 * (round - (round - 1) // 4 * 4) if form == "blocks" else 0
        last = (round - 1) // 4 * 4 if form == "blocks" else round
        width = 1 if by == "user" else 2
        truth = len({s[:width] for s in survivors if s[2] <= last})
        drawn, denominator = noise.draw(round)
        exact = Fraction(release["n"].numerators[0], release["n"].denominator)
        assert exact == truth + Fraction(since, 2) + Fraction(int(drawn[0]), denominator)
        assert release["n"].value == float(exact)
        assert release["n"].standard_error == math.sqrt(noise.variances(round)[0])
        low, high = release["n"].interval(0.9)
        assert high - low == pytest.approx(2 * noise.half_width(round, 0, 0.9) + since)
        assert low + high == pytest.approx(2 * float(exact))


KEYS = 300
LEVEL = 0.8
# Of a mean, or of a share of hits: one right test in 15,000 fails.
LIMIT = 4


@pytest.mark.parametrize(("form", "delta"), in_turns(FORMS, (0.0, 1e-6)))
def test_right_on_average_and_as_often_as_intervals_say(form, delta):
    errors, hits = [], []
    _, releases = played(distinct(form), 0, delta=delta, **DECLARED[form][1])
    # Every key has intervals of the same length (and a tail takes its time).
    reach = [np.ptp(release["n"].interval(LEVEL)) / 2 for release, _ in releases]
    for key in range(KEYS):
        _, releases = played(distinct(form), key, delta=delta, **DECLARED[form][1])
        off, hit = [], []
        for round, (release, survivors) in enumerate(releases, 1):
            last = (round - 1) // 4 * 4 if form == "blocks" else round
            centre = len({s[0] for s in survivors if s[2] <= last}) + 3 * (round - last) / 2
            off.append(release["n"].value - centre)
            hit.append(abs(release["n"].value - len({s[0] for s in survivors})) <= reach[round - 1])
        errors.append(off)
        hits.append(hit)
    means, deviations = np.mean(errors, axis=0), np.std(errors, axis=0)
    assert (np.abs(means) <= LIMIT * deviations / math.sqrt(KEYS)).all()
    slack = LIMIT * math.sqrt(LEVEL * (1 - LEVEL) / KEYS)
    assert (np.mean(hits, axis=0) >= LEVEL - slack).all()
    if form != "blocks":
        assert (np.mean(hits, axis=0) <= LEVEL + slack + 0.02).all(), "intervals are wider than they need to be"


class Stale(Planted, ra.Distinct):
    """Planted: between the beginnings of blocks, the last answer again."""

    class InBound:
        def release(self, totals, noise, at):
            if at.index % 4 == 1:
                self.statistic.kept = super().release(totals, noise, at)
            return self.statistic.kept


def test_a_stale_answer_is_found():
    shape = Shape(values_of(ra.Schema(SCHEMA), Random(0)), rounds=8)

    def check(statistic):
        spec = specification(statistic)
        return check_twin(lambda key: StreamAlgorithm(spec, key), uniting_pairs(shape, Random(4), 60), keys=(1,))

    assert check(ra.Distinct("user")) > 100
    with pytest.raises(CheckFailedError, match="unite"):
        check(Stale("user"))


# Which form is taken -------------------------------------------------------------------------------------------------


def chosen(statistic, delta=1e-6, **stream):
    spec = specification(statistic, delta=delta, **stream)
    return spec, spec.bounds["n"].design


def test_daily_releases_for_a_year():
    spec, design = chosen(ra.Distinct("user"), horizon=365)
    assert design.form == "releases"
    assert spec.bounds["n"].floor(1) == 0
    assert ra.plan(spec)["n"].standard_deviation == pytest.approx(42.5, abs=1)
    mu = math.sqrt(spec.shares["n"].amount)
    assert ra.plan(spec)["n"].standard_deviation == pytest.approx((math.sqrt(365) + 1) / (2 * mu), rel=0.01)


def test_the_form_with_the_smallest_error_is_taken():
    long = {"horizon": 65_536}
    spec, design = chosen(ra.Distinct("user", additions=1), late=False, **long)
    assert (design.form, design.rounds) == ("blocks", 256)
    assert spec.bounds["n"].floor(1) == 128
    assert design.reach == pytest.approx(538, abs=1)
    assert chosen(ra.Distinct("user", additions=1), **long)[1].form == "releases"
    assert chosen(ra.Distinct("user"), late=False, **long)[1].form == "releases"
    assert chosen(ra.Distinct("user", additions=1000), late=False, horizon=1000)[1].form == "releases"
    assert chosen(ra.Distinct("user", additions=1, flips=2), late=False, **long)[1].form == "flips"
    assert chosen(ra.Distinct("user", flips=300), horizon=365)[1].form == "releases"
    assert chosen(ra.Distinct("user", additions=1, flips=2), late=False, horizon=None)[1].form == "releases"
    assert chosen(ra.Distinct("user", additions=1, flips=2, window=9), late=False, horizon=365)[1].form == "releases"


@BOTH
def test_no_other_form_or_block_would_be_much_better(delta):
    """The least half-width, over all forms and over blocks of other lengths."""
    for horizon in (20, 365, 5000):
        stream = {"late": False, "horizon": horizon, "delta": delta}
        options = {"additions": 2, "flips": 6}
        least = chosen(ra.Distinct("user", **options), **stream)[1].reach
        forms = [chosen(ra.Distinct("user", form=form, **options), **stream)[1] for form in FORMS]
        assert least == min(design.reach for design in forms)
        automatic = forms[FORMS.index("blocks")].reach
        for block in (1, 3, 8, 40, 200, 1000):
            other = chosen(ra.Distinct("user", form="blocks", block=block, additions=2), **stream)[1]
            assert automatic <= 1.1 * other.reach, "only powers of two are tried, by their deviation"


def test_blocks_fit_the_releases():
    spec, design = chosen(ra.Distinct("user", every=7, additions=1, form="blocks"), late=False, horizon=30_000)
    assert design.rounds % 7 == 0 < design.rounds
    assert spec.processes["n"].length == design.rounds // 7


def notes(statistic, **stream):
    spec, _ = chosen(statistic, **stream)
    return spec.bounds["n"].notes(1000)


def test_notes_say_what_was_taken_and_what_else_there_is():
    first, *rest = notes(ra.Distinct("user"), horizon=4096)
    assert first == "form 'releases': ±269.9 at 95 % in the worst round, the smallest that this stream allows"
    assert [note.split(": form")[0] for note in rest] == ["with late=False and additions=1", "with flips=2"]
    first, *rest = notes(ra.Distinct("user", additions=1), late=False, horizon=4096)
    assert first.startswith("form 'blocks' of 64 rounds: ±197.3 (32 of it for what is too new to count)")
    assert rest[0] == "instead: form 'releases': ±269.9"
    assert rest[-1].startswith("the bound on additions (1 a round) is for accuracy alone")
    (only,) = notes(ra.Distinct("user"), horizon=None)
    assert "in release 1,024" in only
    assert notes(ra.Distinct("user", form="releases"), horizon=4096)[0].endswith("as asked for")
    assert len(notes(ra.Distinct("user", window=5), horizon=4096)) == 1


def test_promises_are_those_of_the_form_that_was_taken():
    spec, _ = chosen(ra.Distinct("user", flips=4, additions=2), late=False, horizon=65_536)
    assert spec.guarantee.promises == (
        "no value of user appears or disappears more than 4 times over the stream, whichever records are left out",
    )
    limited = ra.Distinct(["user", "country"], form="flips", flips=4, where={"age": {"min": 18}})
    assert "user, country among the records that where= lets through" in chosen(limited)[0].guarantee.text
    assert chosen(ra.Distinct("user", flips=300, additions=2), late=False, horizon=365)[0].guarantee.promises == ()
    assert chosen(distinct("blocks"), late=False)[0].guarantee.promises == ()
    assert all(chosen(distinct(f), **DECLARED[f][1])[0].guarantee.adaptive for f in FORMS)


# What is refused -----------------------------------------------------------------------------------------------------

LAW = Oblivious(ra.noise.Mechanism, "own", epsilon=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "guess"}, r"expected one of releases, blocks, flips, got 'guess' - at form"),
        ({"field": []}, r"expected the names of one or more different fields, got \[\] - at field"),
        ({"field": ["user", "user"]}, "different fields"),
        ({"form": "blocks"}, "expected a bound on the records that are added in a round, got none - at additions"),
        ({"block": 4}, "at additions"),
        ({"additions": 0}, "expected a whole number from 1 on, got 0 - at additions"),
        ({"additions": 0.5}, "at additions"),
        ({"block": 5, "additions": 1, "every": 2}, r"expected a multiple of every \(2 rounds\), got 5 - at block"),
        ({"block": 5, "additions": 1, "form": "flips", "flips": 2}, "form 'blocks' only, got form 'flips' - at block"),
        ({"form": "flips"}, "expected a bound on how often a value comes and goes, got none - at flips"),
        ({"flips": 0}, "at flips"),
        ({"noise": "schauder"}, "expected no noise for a distinct count, got 'schauder'.* - at noise"),
        ({"noise": "paper"}, "at noise"),
        ({"noise": Bridge}, "at noise"),
        ({"noise": Unbounded}, "at noise"),
        ({"noise": LAW}, "at noise"),
    ],
    ids=str,
)
def test_statistics_that_cannot_be(options, message):
    with pytest.raises(ra.InputError, match=message):
        ra.Distinct(**({"field": "user"} | options))


@pytest.mark.parametrize(
    ("statistic", "stream", "message"),
    [
        (distinct("blocks"), {}, "with late data an old stamp can come and go every round.* - at statistics.n.form"),
        (distinct("blocks"), {"late": False, "horizon": None}, "expected a horizon with form 'blocks'"),
        (distinct("blocks"), {"late": False, "window": 4}, "expected no window with form 'blocks'"),
        (distinct("flips"), {"window": 4}, "expected no window with form 'flips'.* - at statistics.n.form"),
        (distinct("flips", window=4), {}, "expected no window with form 'flips'"),
        (distinct("flips"), {"horizon": None}, "expected a horizon with form 'flips'"),
        (distinct("releases", "name"), {}, "expected one of the fields user, .*, got 'name' - at statistics.n.field"),
    ],
)
def test_streams_that_do_not_allow_a_form(statistic, stream, message):
    with pytest.raises(ra.InputError, match=message):
        ra.Stream(SCHEMA, {"n": statistic}, **({"epsilon": 1.0, "delta": 1e-6, "horizon": 8} | stream))


def test_the_door_keeps_what_the_forms_count_on():
    made = ra.Stream(SCHEMA, {"n": distinct("blocks")}, epsilon=1.0, horizon=8, late=False)
    made.close_round()
    with pytest.raises(ra.InputError, match="takes no late data"):
        made.add(record("u"), stamp=1)
    made.add(record("u"), stamp=2)
    with pytest.raises(ra.InputError, match="at most 4,096 bytes"):
        made.add(record("u" * 5000))


def test_a_refused_form_is_not_taken_by_itself():
    """A grant made by hand: what `form=None` leaves out is what an explicit form refuses."""
    statistic = ra.Distinct("user", additions=1, flips=2)
    spec = specification(statistic, horizon=65_536, late=False)
    grant = spec.grants["n"]

    def forms(statistic, grant):
        return [design.form for design in statistic.designs(grant).values()]

    assert statistic.design(grant).form == "flips"
    assert forms(statistic, grant) == ["releases", "releases", "blocks", "flips"]
    for change in ({"horizon": None}, {"window": 100}):
        assert set(forms(statistic, replace(grant, **change))) == {"releases"}
        with pytest.raises(ra.InputError, match="expected one of any rounds"):
            statistic.design(replace(grant, **change))
    plain = ra.Distinct("user", additions=1)
    assert "flips" not in forms(plain, grant)
    assert set(forms(plain, replace(grant, late=True))) == {"releases"}


def test_specification_and_repr():
    assert repr(ra.Distinct("user")) == "Distinct('user')"
    full = ra.Distinct(["user", "country"], form="blocks", block=8, additions=2, every=4, where={"age": {"min": 18}})
    assert full.spec()["type"] == "distinct"
    assert repr(full).startswith("Distinct(['user', 'country'], form='blocks', block=8, additions=2, where=")
    forms = [specification(distinct(f), late=False).digest("n") for f in FORMS]
    assert len(set(forms)) == 3
