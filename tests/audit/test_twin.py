"""Histories that unite, the twin check on them, and counterexamples that a person can read."""

import re
from pathlib import Path
from random import Random

import pytest

import retroact as ra
from retroact.audit import Approximate, Seeds, Target
from retroact.audit.twin import WHAT, twin
from retroact.ledger.definition import Add, Delete, Erase, live, unite_at
from retroact.privacy import Guarantee, PureDP
from retroact.testing import Pair, Shape
from retroact.testing.algorithm import answers
from retroact.testing.families import FAMILIES, draw, live_window, unite_live
from retroact.testing.histories import admitted
from retroact.testing.shrink import as_code, shrink
from retroact.testing.twin import MEMORIES, compare
from support.planted_algorithms import CORRECT, NASTY, PLANTED, FloatSum, FutureDeletions, Reference

CLAIM = Guarantee(PureDP(1.0), 1.0)
SHAPES = {
    "everything": NASTY,
    "on time": Shape(values=("a", "b"), late=False),
    "tiny": Shape(values=("a",), rounds=2, ids=0, subjects=0),
}
SCHEMA = {"age": ra.Integer(0, 120), "note": ra.Text()}


def operations(pair):
    return sum(len(updates) for side in (pair.one, pair.other) for updates in side)


def target(make, shape=NASTY, **more):
    return Target("planted", make, shape, CLAIM, **more)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_pair_unites_where_it_says_and_is_admitted(shape):
    for name, family in FAMILIES.items():
        pairs = draw(name, shape, Random(1), 40, window=3)
        assert pairs or name in ("late data", "replaced ids"), name
        for pair in pairs:
            assert pair.one != pair.other
            assert all(admitted(side, shape) == side for side in (pair.one, pair.other))
            if not family.live:
                assert pair.unite == unite_at(pair.one, pair.other)
                continue
            same = [live(pair.one, r, 3) == live(pair.other, r, 3) for r in range(1, shape.rounds + 1)]
            assert all(same[pair.unite - 1 :])
            assert pair.unite == 1 or not same[pair.unite - 2]


def test_families_have_a_past_to_forget():
    for name in FAMILIES:
        pairs = draw(name, NASTY, Random(2), 60, window=3)
        assert len(pairs) == 60
        if name not in ("no-op deletions", "shuffled rounds"):
            assert sum(pair.unite > 1 for pair in pairs) > 20, name
    assert set(FAMILIES) == set(WHAT)
    assert {memory for _, memory in WHAT.values()} == set(MEMORIES)


def test_live_data_unite_when_a_record_leaves_the_window_and_no_statistic_looks_further():
    one, other = ((Add("x"),), (), (), ()), ((), (), (), ())
    assert unite_at(one, other) is None
    assert [unite_live(one, other, window) for window in (1, 2, 3, 4)] == [2, 3, 4, None]
    windowed = {"n": ra.Count(window=2), "past": ra.Restated(ra.Count(window=2), [0, 3])}
    assert live_window(ra.Specification(SCHEMA, windowed, epsilon=1.0, horizon=9, window=2)) == 5
    assert live_window(ra.Specification(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=9)) is None
    assert draw("expiry", NASTY, Random(1), 5) == []


def test_the_docs_have_a_row_for_every_planted_algorithm():
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    table = page.partition("| planted algorithm |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (\w.*?) \|", table, re.MULTILINE) == list(PLANTED)


@pytest.mark.parametrize("bug", PLANTED)
def test_every_planted_bug_is_caught_and_shrunk(bug):
    make, seeds = PLANTED[bug], Seeds(3)
    # The families in turn, so that each bug meets the one that shows it early.
    drawn = [draw(family, NASTY, seeds.branch(family).random(), 25) for family in FAMILIES]
    pairs = [own[turn] for turn in range(25) for own in drawn if own]
    failing = next(pair for pair in pairs if compare(make, pair, [seeds.key()]).difference)
    small = shrink(failing, lambda pair: compare(make, pair, [seeds.key()]).difference is not None, NASTY)
    assert small.minimal
    assert operations(small.pair) <= 14
    assert unite_at(small.pair.one, small.pair.other) == small.pair.unite


@pytest.mark.parametrize("right", CORRECT)
def test_no_correct_algorithm_is_accused(right):
    results = twin(target(CORRECT[right]), Seeds(4), pairs=30, keys=1)
    assert [result.test for result in results] == [f"twin: {name}" for name in FAMILIES]
    (idle,) = (result for result in results if result.verdict == "not applicable")
    assert idle.test == "twin: expiry"
    assert "No pair was found" in idle.found
    results.remove(idle)
    assert all(result.verdict == "passed" and not result.void for result in results)
    assert all(result.control.caught and "%" in result.detectable for result in results)


def test_a_violation_comes_with_code_that_shows_it():
    results = {r.test: r for r in twin(target(FutureDeletions), Seeds(5), pairs=100, keys=1)}
    wrong = results["twin: no-op deletions"]
    assert wrong.verdict == "violation"
    given = {}
    exec("\n".join(wrong.counterexample), given)
    pair = Pair(given["one"], given["other"], given["unite"])
    assert unite_at(pair.one, pair.other) == pair.unite
    assert operations(pair) <= 4
    key = Seeds(5).branch("no-op deletions", "key").key(0)
    one, other = (answers(FutureDeletions, key, side) for side in (pair.one, pair.other))
    assert one[pair.unite - 1 :] != other[pair.unite - 1 :]
    assert results["twin: shuffled rounds"].verdict == "passed"


def test_code_says_everything_about_an_update():
    import datetime

    add = Add((datetime.date(2024, 1, 2), "a"), stamp=1, id="i", subject="s")
    pair = Pair(((add, Delete("x", 1, "s")), (Erase("s"),)), ((), ()), 2)
    given = {}
    exec("\n".join(as_code(pair)), given)
    assert (given["one"], given["other"], given["unite"]) == (pair.one, pair.other, pair.unite)


def test_shrinking_is_bounded_and_keeps_what_fails():
    pair = draw("amnesia", NASTY, Random(6), 1)[0]
    tries = []
    assert not shrink(pair, lambda p: tries.append(p) or True, NASTY, tries=3).minimal
    assert len(tries) == 3
    fussy = shrink(pair, lambda p: p == pair, NASTY)
    assert (fussy.pair, fussy.minimal) == (pair, True)


@pytest.mark.parametrize("rounds", [9, 40])
def test_streams_pass_and_have_a_picture(rounds):
    statistics = {"n": ra.Count(window=3), "notes": ra.Histogram("note", window=2, every=2)}
    spec = ra.Specification(SCHEMA, statistics, epsilon=5.0, delta=1e-3, horizon=rounds)
    results = {r.test.removeprefix("twin: "): r for r in twin(Target.stream(spec), Seeds(7), pairs=20, keys=1)}
    assert set(results) == set(FAMILIES)
    assert all(r.verdict == "passed" and r.control.caught for r in results.values())
    curves = results["erased lifecycles"].curves
    unite = int(curves["unite"][0][0])
    apart = [abs(float(a) - float(b)) for (_, a), (_, b) in zip(curves["one"], curves["other"], strict=True)]
    assert len(apart) == min(rounds, 30)
    assert max(apart[: unite - 1]) > 3
    assert not any(apart[unite - 1 :])


def test_what_cannot_be_compared_by_bytes_says_so():
    for other in ({"keyed": False}, {"retroactivity": Approximate(1.0, 1e-6)}):
        (result,) = twin(target(Reference, **other), Seeds(1))
        assert result.verdict == "not applicable"


class Strict(Reference):
    """Raises where a deletion names nothing."""

    def close(self, updates):
        if any(isinstance(u, Erase) and u.subject == "nobody" for u in updates):
            raise KeyError("nobody")
        return super().close(updates)


class Broken(Reference):
    def close(self, updates):
        raise RuntimeError("no database")


def test_an_exception_is_an_answer():
    results = {r.test: r for r in twin(target(Strict), Seeds(8), pairs=100, keys=1)}
    assert results["twin: no-op deletions"].verdict == "violation"
    assert "KeyError" in results["twin: no-op deletions"].counterexample[-1]
    broken = twin(target(Broken), Seeds(8), pairs=10, keys=1)
    assert {r.verdict for r in broken if r.test != "twin: expiry"} == {"inconclusive"}
    assert "RuntimeError was raised" in broken[0].found
    assert "no database" not in repr(broken)


def test_rare_releases_are_compared_and_none_is_not_applicable():
    spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(every=10)}, epsilon=1.0, horizon=100)
    seen = {r.test: r for r in twin(Target.stream(spec), Seeds(1), pairs=60, keys=1)}
    judged = [r for r in seen.values() if r.verdict != "not applicable"]
    assert {r.test for r in judged} >= {"twin: erased lifecycles", "twin: flips", "twin: amnesia"}
    assert all(r.verdict == "passed" and r.control.caught for r in judged)
    assert all(int(r.measured["answers"]) <= 2 * int(r.measured["pairs"]) for r in judged)
    silent = twin(Target.stream(spec).with_rounds(6), Seeds(1), pairs=20, keys=1)
    assert {r.verdict for r in silent} == {"not applicable"}
    assert any("Nothing is published" in r.found for r in silent)


def test_the_same_seed_gives_the_same_results():
    assert twin(target(FloatSum), Seeds(9), pairs=20) == twin(target(FloatSum), Seeds(9), pairs=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLANTED, *CORRECT])
def test_whole_twin_check_on_every_planted_algorithm(name):
    make = {**PLANTED, **CORRECT}[name]
    wrong = [r for r in twin(target(make), Seeds(10), pairs=500, keys=1) if r.verdict == "violation"]
    assert bool(wrong) == (name in PLANTED)
