"""Lemma "amnesia" and Theorem "countdistinct" as experiments."""

import doctest
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import amnesia as amnesia_program
import price
import tracker_columns
from amnesia import EXAMPLE, RetroactiveDistinct, Tracked, amnesia, insertion_only_twin
from distinct_chart import picture
from distinct_counts import FORMS, block_mechanism, fresh_mechanism
from lives import Lives
from price import KNOWN, STREAMS, TRACKER, price_of_retroactivity
from retroact.coins import Key
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete, surviving, trajectory, unite_at
from retroact.stateful import FlippancyTracker
from retroact.stateful.tracker import coins_of
from retroact.stateful.tracker_design import TrackerDesign
from retroact.testing import CheckFailedError, Pair, Shape, check_twin, history, uniting_pairs
from tracker_columns import flippancy, track

EPSILON, DELTA = 1.0, 1e-6
MECHANISMS = {"retroactive, fresh": fresh_mechanism, "retroactive, blocks": block_mechanism}


def random_lives(seed, horizon=40, records=60):
    rng = np.random.default_rng(seed)
    births = rng.integers(1, horizon + 1, records)
    deaths = np.minimum(births + rng.integers(1, horizon, records), horizon + 1)
    return Lives(horizon, rng.integers(0, 8, records), births, deaths)


@pytest.mark.parametrize("module", [amnesia_program, price, tracker_columns], ids=lambda module: module.__name__)
def test_examples_of_the_experiments(module):
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("seed", range(20))
def test_columns_follow_the_definition(seed):
    lives = random_lives(seed)
    data = trajectory(lives.sequence())
    assert lives.distinct().tolist() == [len({point.value for point in points}) for points in data]
    flips = lives.flips()
    present, made = set(), {}
    for round, points in enumerate(data, start=1):
        now = {point.value for point in points}
        changed = set(flips.values[flips.rounds == round].tolist())
        assert changed == now ^ present
        for value in changed:
            made[value] = made.get(value, 0) + 1
        present = now
    assert flippancy(flips) == max(made.values())


@pytest.mark.parametrize("name", STREAMS)
def test_streams_have_one_update_a_round(name):
    horizon = 400
    lives = STREAMS[name](horizon, 3)
    sequence = lives.sequence()
    assert len(sequence) == horizon
    assert all(len(updates) == 1 for updates in sequence)
    most = flippancy(lives.flips())
    assert {"insertion-only": most == 1, "churning": 8 < most < 30, "toggling": most == 20}[name]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("flips", [None, 3])
def test_the_tracker_in_columns_is_the_tracker(name, flips):
    horizon, key = 256, Key.for_testing(4)
    lives = STREAMS[name](horizon, 1)
    made = FlippancyTracker(horizon, epsilon=EPSILON, delta=DELTA, flips=flips, key=key)
    answers = [made.close(updates).value for updates in lives.sequence()]
    coins = coins_of(key, horizon, EPSILON, DELTA, flips)
    found = track(TrackerDesign(horizon, EPSILON, DELTA, flips, coins), lives.flips())
    assert answers == [Fraction(int(n), found.denominator) for n in found.numerators]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("form", FORMS)
def test_retroactive_forms_in_columns_are_those_of_the_definition(name, form):
    horizon, key = 200, Key.for_testing(4)
    lives = STREAMS[name](horizon, 1)
    algorithm = RetroactiveDistinct(*MECHANISMS[form](horizon, EPSILON, DELTA, key))
    one_by_one = [float(Fraction(algorithm.close(updates).decode())) for updates in lives.sequence()]
    assert FORMS[form](lives, EPSILON, DELTA, key).tolist() == pytest.approx(one_by_one, abs=1e-9)


def test_insertion_only_twins_have_the_same_survivors():
    shape, random = Shape(("a", "b"), rounds=9, late=False), Random(5)
    for _ in range(50):
        sequence = history(shape, random)
        round = random.randint(1, 9)
        twin = insertion_only_twin(sequence, round)
        assert all(isinstance(update, Add) for updates in twin[:round] for update in updates)
        assert surviving(twin, round) == surviving(sequence, round)
        assert unite_at(sequence, twin) <= round
    with pytest.raises(InputError, match="expected a round from 1 to 2, got 3"):
        insertion_only_twin(((), ()), 3)


@pytest.mark.parametrize("form", MECHANISMS)
def test_retroactive_forms_pass_the_twin_check(form):
    pairs = uniting_pairs(Shape(("a", "b", "c"), late=False), Random(3), 60)
    assert check_twin(lambda key: RetroactiveDistinct(*MECHANISMS[form](8, EPSILON, DELTA, key)), pairs) > 100


def test_the_tracker_fails_the_twin_check():
    pair = Pair(EXAMPLE, insertion_only_twin(EXAMPLE, 5), 5)

    def make(key):
        return Tracked(FlippancyTracker(len(EXAMPLE), epsilon=EPSILON, delta=DELTA, key=key))

    with pytest.raises(CheckFailedError, match="other answers in round 5"):
        check_twin(make, [pair])
    # Before anything was deleted there is nothing to forget.
    early = Pair(EXAMPLE[:2], insertion_only_twin(EXAMPLE[:2], 2), 2)
    assert check_twin(make, [early]) == 2


def test_amnesia():
    found = amnesia()
    assert set(found.equal) == set(FORMS)
    assert set(found.differ) == {"tracker"}
    assert "all equal byte for byte" in str(found)
    lives = STREAMS["churning"](64, 1)
    found = amnesia(lives.sequence(), 60, keys=(5,))
    assert found.equal == dict.fromkeys(FORMS, 5)
    assert set(found.differ) == {"tracker"}
    kept = ((Add("x"),), (Add("y"),), (Delete("y", 1),))
    assert not amnesia(kept, 3).differ


@pytest.fixture(scope="module")
def experiment():
    told = []
    found = price_of_retroactivity((256, 4096), seeds=4, progress=told.append)
    assert told[0] == "256 rounds, insertion-only"
    assert len(told) == 6
    return found


def test_retroactive_errors_do_not_depend_on_the_history(experiment):
    for form in FORMS:
        errors = [experiment.row(4096, stream, form).rms for stream in STREAMS]
        assert max(errors) < 1.3 * min(errors)


def test_the_tracker_adapts(experiment):
    easy, hard = (experiment.row(4096, stream, TRACKER) for stream in ("insertion-only", "churning"))
    assert (easy.flips, hard.flips > 10) == (1, True)
    assert hard.rms > 1.5 * easy.rms
    for form in FORMS:
        assert experiment.row(4096, "insertion-only", form).rms > 1.3 * easy.rms
    assert experiment.row(4096, "insertion-only", KNOWN).rms < easy.rms


def test_the_gap_grows_with_the_horizon(experiment):
    def gap(horizon):
        form, tracker = (experiment.row(horizon, "insertion-only", a).rms for a in ("retroactive, blocks", TRACKER))
        return form / tracker

    assert gap(4096) > gap(256)


def test_table_and_picture(experiment):
    lines = str(experiment).splitlines()
    assert len(lines) == 1 + 2 * len(STREAMS)
    assert len({len(line) for line in lines}) == 1
    root = ElementTree.fromstring(picture(experiment))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"insertion-only histories", "churning histories", "tracker", *FORMS} <= set(texts)
    paths = [path.attrib for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert sum(path["d"].count("h0") for path in paths if "dots" in path["class"]) == 2 * 2 * 4


def test_forms_of_your_own():
    def exact(lives, epsilon, delta, key):
        return lives.distinct().astype(float)

    found = price_of_retroactivity((32,), seeds=1, retroactive={"no noise": exact})
    assert found.row(32, "churning", "no noise").largest == 0
