"""The median tracker: what one operation touches, what it sums up, how far it errs, and that it is not retroactive."""

import itertools
import math
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from retroact.coins import Key
from retroact.compilers.maps import RankMap
from retroact.compilers.smooth import smooth
from retroact.errors import ExhaustedError, InputError, KeyReusedError
from retroact.ledger.definition import Add, Delete, DeleteId, Erase, trajectory
from retroact.oneshot.block_cdf import block_error
from retroact.stateful import Cumulative, MedianTracker, Stateful, median
from retroact.stateful.median import MedianDesign
from retroact.testing import CheckFailedError, Pair, check_twin

EPSILON, RECORDS = 100, 6000


def tracker(horizon=7, *, lower=0, upper=999, epsilon=EPSILON, seed=1, **options):
    options = {"delta": 1e-6, "records": RECORDS, "key": Key.for_testing(seed), **options}
    return MedianTracker(lower, upper, horizon, epsilon=epsilon, **options)


def close_all(made, sequence):
    return [made.close(updates) for updates in sequence]


def exact_cdf(values, lower, upper, block, epsilon, coins, *, delta):
    """In the place of a private estimate: the truth."""
    ordered = [int(value) for value in sorted(values)]
    return [(value, bisect_right(ordered, value)) for value in sorted(set(ordered))]


# Privacy: what one operation touches ---------------------------------------------------------------------------------


@pytest.fixture
def nodes(monkeypatch):
    """The records of all nodes of a history, in the order in which they are completed."""
    seen = []

    def record(values, *arguments, **options):
        seen.append(tuple(sorted(int(value) for value in values)))
        return []

    monkeypatch.setattr(median, "block_cdf", record)

    def of(sequence):
        seen.clear()
        close_all(tracker(len(sequence)), sequence)
        return list(seen)

    return of


def more(one, other):
    """How many records one has beyond the other, and the other way round."""
    extra = list(one)
    missing = [value for value in other if value not in extra or extra.remove(value)]
    return len(extra), len(missing)


def touched(nodes, one, other):
    changed = [more(a, b) for a, b in zip(nodes(one), nodes(other), strict=True) if a != b]
    assert all(pair in ((0, 1), (1, 0)) for pair in changed)
    return len(changed)


def inserted(sequence, round, update):
    return (*sequence[: round - 1], (*sequence[round - 1], update), *sequence[round:])


def test_all_neighbours_of_three_rounds(nodes):
    """One value, every history of up to one update a round, every update inserted anywhere."""
    options = [None, Add(5), Add(5, stamp=1), Delete(5, 1), Delete(5, 2)]
    limit = tracker(3).design.nodes
    most = 0
    for choices in itertools.product(options, repeat=3):
        sequence = tuple(() if choice is None else (choice,) for choice in choices)
        for round, update in itertools.product((1, 2, 3), options[1:]):
            most = max(most, touched(nodes, sequence, inserted(sequence, round, update)))
    assert most == limit == 4


@pytest.mark.parametrize("horizon", [7, 8, 12])
def test_random_neighbours_of_more_rounds(nodes, horizon):
    random = Random(horizon)
    limit = tracker(horizon).design.nodes

    def update(round):
        stamp = random.randint(1, round)
        return random.choice([Add(1), Add(1), Add(1, stamp=stamp), Add(2), Delete(1, stamp), Delete(1, stamp)])

    found = set()
    for _ in range(300):
        sequence = tuple(tuple(update(round) for _ in range(random.randrange(4))) for round in range(1, horizon + 1))
        round = random.randint(1, horizon)
        found.add(touched(nodes, sequence, inserted(sequence, round, update(round))))
    assert max(found) <= limit == 2 * (int(math.log2(horizon)) + 1)
    assert max(found) > limit / 2  # both an addition and the deletion that it lets through
    worst = touched(nodes, ((Delete(1, 1),), *[()] * (horizon - 1)), ((Delete(1, 1), Add(1)), *[()] * (horizon - 1)))
    assert worst == limit


def test_the_budget_is_split_among_these_nodes():
    design = tracker(1000, epsilon=1, failure=1e-3).design
    assert design.nodes == 20
    assert design.node_epsilon * design.nodes == 1
    assert design.node_delta * design.nodes <= Fraction(1e-6)


# What is summed up ---------------------------------------------------------------------------------------------------


def random_history(random, horizon, updates, upper=999):
    sequence, known = [], []
    for round in range(1, horizon + 1):
        rows = []
        for _ in range(updates):
            if known and random.random() < 0.4:
                value, stamp = random.choice(known)
                rows.append(Delete(value, stamp))  # some hit, some come twice
            else:
                value, late = random.randint(0, upper), random.random() < 0.1
                stamp = random.randint(1, round) if late else round
                rows.append(Add(value, stamp=stamp if late else None))
                known.append((value, stamp))
        rows.append(Add(random.randint(0, upper), stamp=round + 1))  # from the future: ignored
        sequence.append(tuple(rows))
    return tuple(sequence)


def truth(data):
    """The values that survive, sorted."""
    return sorted(point.value for point, copies in data.items() for _ in range(copies))


@pytest.mark.parametrize("bounds", [(0, 999), (-(10**30), 10**30)])
def test_with_exact_nodes_the_answer_is_the_truth(monkeypatch, bounds):
    monkeypatch.setattr(median, "block_cdf", exact_cdf)
    monkeypatch.setattr(median, "estimate", lambda pairs, block, value: dict(pairs)[value])
    for seed in range(5):
        sequence = random_history(Random(seed), 11, 12)
        answers = close_all(tracker(11, lower=bounds[0], upper=bounds[1]), sequence)
        for answer, data in zip(answers, trajectory(sequence), strict=True):
            values = truth(data)
            assert answer.value.total == len(values)
            for value in range(0, 1000, 37):
                assert answer.value.upto(value) == bisect_right(values, value)
            assert answer.median == (values[(len(values) - 1) // 2] if values else None)


def test_what_is_made_rising_is_no_farther_from_any_rising_function():
    random = Random(3)
    for _ in range(300):
        jumps = {value: random.randint(-3, 6) for value in range(8)}
        raw = list(itertools.accumulate(jumps[value] for value in range(8)))
        made = Cumulative.rising(jumps)
        found = [made.upto(value) for value in range(8)]
        assert found == sorted(found)
        assert found[0] >= 0
        for _ in range(20):
            other = sorted(random.choices(range(15), k=8))
            distance = max(abs(a - b) for a, b in zip(raw, other, strict=True))
            assert max(abs(a - b) for a, b in zip(found, other, strict=True)) <= distance


def test_steps_that_do_not_rise_are_refused():
    for steps in (((1, 2), (1, 3)), ((2, 1), (1, 2)), ((1, 3), (2, 2)), ((1, -1),)):
        with pytest.raises(InputError, match="ris"):
            Cumulative(steps)
    assert Cumulative().median is None


# Errors --------------------------------------------------------------------------------------------------------------


def discrepancy(estimate, values):
    """sup |(C - N/2) - (C' - N'/2)| over the domain."""
    points = sorted({0, 999, *values, *(value for value, _ in estimate.steps)})
    shift = (estimate.total - len(values)) / 2
    near = (place for value in points for place in (value - 1, value))
    return max(abs(estimate.upto(x) - bisect_right(values, x) - shift) for x in near)


def test_the_error_holds_in_every_round():
    largest = 0
    for seed in range(3):
        sequence = random_history(Random(seed), 7, 800)
        made = tracker(7, seed=seed)
        for answer, data in zip(close_all(made, sequence), trajectory(sequence), strict=True):
            largest = max(largest, discrepancy(answer.value, truth(data)))
    bound = tracker(7).error(1e-4)
    assert largest <= bound
    # And it is not empty talk: the bound is within a factor of what happens, and far below the number of records.
    assert bound / 20 < largest
    assert bound < 1000


def test_the_error_sums_up_the_nodes():
    design = tracker(6).design
    assert design.error(1e-4) == pytest.approx(
        3
        * sum(
            block_error(1000, RECORDS // i, design.block, design.node_epsilon, design.node_delta, 1e-4 / 12)
            for i in (1, 2)  # rounds up to 6 have at most two digits 1
        )
    )
    assert design.error(1e-3) < design.error(1e-4) < design.error(0.9e-4)
    assert math.isinf(design.error(1e-9))
    assert tracker(6, records=10**6).error(1e-4) > design.error(1e-4)
    assert tracker(63).error(1e-4) > 3 * design.error(1e-4)


def test_the_error_grows_with_the_logarithm_of_the_domain_as_documented():
    """Not with its iterated logarithm; and what is picked by rank errs by as much again for each bit."""
    bits = (16, 64, 256)
    designs = [MedianDesign(2**b, 15, Fraction(8), Fraction(1, 10**6), 100_000, 1e-4) for b in bits]
    found = [design.error(1e-4) for design in designs]
    text = " ".join((Path(__file__).parents[2] / "docs" / "compilers.md").read_text().split())
    assert "{:,.0f} for 2¹⁶ values, {:,.0f} for 2⁶⁴, {:,.0f} for 2²⁵⁶".format(*found) in text
    # From 64 to 256 bits by as much for each bit as from 16 to 64, or more; and far from doubling with the bits.
    slopes = [(b - a) / (d - c) for (a, b), (c, d) in zip(pairwise(found), pairwise(bits), strict=True)]
    assert 1 < slopes[1] / slopes[0] < 2
    assert found[2] < 2 * found[0]
    for design, b in zip(designs, bits, strict=True):
        error = Fraction(design.error(1e-4))
        picked = RankMap(0, 2**b - 1).at(error, Fraction(1), Fraction(1, 10**6), 1)
        assert picked.error(1e-3) == pytest.approx(4 * float(error) * (b * math.log(2) + math.log(1e3)), rel=1e-3)


def test_no_design_for_too_small_a_chance():
    with pytest.raises(InputError, match="chance of failure"):
        _ = MedianDesign(2**16, 4096, Fraction(1), Fraction(1, 10**6), 10**6, 1e-12).block


# What it promises ----------------------------------------------------------------------------------------------------


def test_guarantee():
    made = tracker()
    assert isinstance(made, Stateful)
    assert (made.guarantee.epsilon, made.guarantee.delta) == (EPSILON, 1e-6)
    assert made.guarantee.unit.endswith("(private, not retroactive)")


def test_same_key_same_bytes():
    sequence = random_history(Random(1), 5, 200)
    runs = [
        [answer.encode() for answer in close_all(tracker(5, epsilon=20, seed=seed), sequence)] for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert all(a != b for a, b in zip(runs[0], runs[2], strict=True))


def test_it_is_not_retroactive():
    gone = tuple(Add(value) for value in range(0, 1000, 2))
    erased = tuple(Delete(value, 1) for value in range(0, 1000, 2))
    pair = Pair((gone, erased, ()), ((), (), ()), unite=2)
    assert not MedianTracker.retroactive

    class Bytes:
        def __init__(self, key):
            self._made = MedianTracker(0, 999, 3, epsilon=40, delta=1e-6, records=RECORDS, key=key)

        def close(self, updates):
            return self._made.close(updates).encode()

    with pytest.raises(CheckFailedError, match="round 2"):
        check_twin(Bytes, [pair])


def test_a_wrong_round_changes_nothing():
    made, undisturbed = tracker(3), tracker(3)
    for wrong in (
        Add(1000), Add(-1), Add(1.5), Add(True), Add("1"), Add(1, id="a"), DeleteId("a"), Erase("s"), Delete([1], 1), 3,
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            made.close([Add(7), wrong])
        assert caught.value.place == "updates"
    rounds = ([Add(5)] * 500, [Delete(5, 1), Delete("no such value", 1), Delete(2000, 1)], [])
    assert [a.encode() for a in close_all(made, rounds)] == [a.encode() for a in close_all(undisturbed, rounds)]
    with pytest.raises(ExhaustedError, match="3 promised rounds"):
        made.close([])


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"lower": 1000}, "upper"), ({"lower": 0.0}, "lower"), ({"upper": True}, "upper"), ({"horizon": 0}, "horizon"),
        ({"epsilon": 0}, "epsilon"), ({"delta": 0}, "delta"), ({"delta": 1}, "delta"), ({"records": 0}, "records"),
        ({"failure": 0}, "failure"), ({"failure": 1}, "failure"), ({"failure": 1e-20}, "failure"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_refused(change, place):
    key = Key.generate()
    with pytest.raises(InputError) as caught:
        tracker(**{"key": key, **change})
    assert caught.value.place == place
    tracker(key=key)
    with pytest.raises(KeyReusedError):
        tracker(key=key)


# Smoothed ------------------------------------------------------------------------------------------------------------


def test_a_median_with_deletions_that_is_approximately_retroactive():
    base = MedianTracker(0, 999, 3, epsilon=60, delta=1e-6, records=30_000, key=Key.for_testing(1))
    error = base.error(1e-4)
    made = smooth(base, error=error, failure=1e-4, alpha=4.0, map=RankMap(0, 999), key=Key.for_testing(2))
    assert made.retroactivity.alpha(1e-4) == pytest.approx(4.0)
    assert made.retroactivity.beta(4.0) == pytest.approx(1e-4)
    assert made.guarantee.epsilon == 60
    random = Random(5)
    low = [random.randrange(500) for _ in range(15_000)]
    high = [random.randrange(500, 1000) for _ in range(15_000)]
    rounds = ([Add(value) for value in low + high], [Delete(value, 1) for value in low], [])
    bound = made.accuracy(3, 1e-3).error
    assert bound < 7500
    for updates, values in zip(rounds, (low + high, high, high), strict=True):
        answer = made.close(updates)
        assert isinstance(answer.value, int)
        ordered = sorted(values)
        off = max(
            bisect_right(ordered, answer.value - 1) - len(ordered) / 2,
            len(ordered) / 2 - bisect_right(ordered, answer.value),
        )
        assert off <= bound
