"""Lasting ranks belong to places of copies: two histories differ by one rank, also where copies of the key are left.

A key is what an algorithm reads of a record, so the deletion that ends a difference may leave copies of the same key.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import pytest

from retroact.ledger.definition import Add, Delete, trajectory
from retroact.privacy import window_cost
from support.window_transcripts import EPSILON0, divergence, samples, score, transcripts


def histories(most=3, releases=4):
    """Copies in S+ and in S- by release, which never rise, and the releases in which S+ has one more."""
    for minus in product(range(most + 1), repeat=releases):
        for first in range(releases):
            for last in range(first + 1, releases + 1):
                plus = [c + (first <= i < last) for i, c in enumerate(minus)]
                if all(a >= b for counts in (plus, minus) for a, b in pairwise(counts)):
                    yield plus, list(minus), range(first, last)


def moved(plus, minus, within, place=None):
    """The ranks of S+ by place, as numbers, those of S- by place, and r*: at place c + 1 of S+ unless told."""
    least, top = min(minus[i] for i in within), plus[within[0]]
    at = least if place is None else place
    ranks = list(range(max(plus) + 1))
    cycled = ranks[:at] + ranks[at + 1 : top] + [ranks[at]] + ranks[top:]
    return ranks, cycled, ranks[at]


def test_one_rank_differs_while_the_histories_do_and_none_before_or_after():
    left = 0
    for plus, minus, within in histories():
        ranks, cycled, own = moved(plus, minus, within)
        assert sorted(cycled) == ranks  # a permutation of places: independent ranks stay what they are
        for i, (more, fewer) in enumerate(zip(plus, minus, strict=True)):
            extra = {own} if i in within else set()
            assert set(ranks[:more]) - set(cycled[:fewer]) == extra
            assert not set(cycled[:fewer]) - set(ranks[:more])
        left += within[-1] + 1 < len(minus) and minus[within[-1] + 1] > 0
    assert left > 20


def test_at_the_first_place_the_copies_that_are_left_would_differ():
    wrong = 0
    for plus, minus, within in histories():
        ranks, cycled, own = moved(plus, minus, within, place=0)
        wrong += any(
            set(ranks[:more]) ^ set(cycled[:fewer]) != ({own} if i in within else set())
            for i, (more, fewer) in enumerate(zip(plus, minus, strict=True))
        )
    assert wrong > 20


def law(counts, own, others, size):
    """Of the states, with exact probabilities: so many copies of one value in each release, beside other records."""
    stream = [{**{("copy", j): own for j in range(c)}, **dict(enumerate(others))} for c in counts]
    names = tuple(sorted({name for live in stream for name in live}, key=str))
    found = Counter()
    for sequence, count in samples(tuple(frozenset(live) for live in stream), names, size).items():
        states = tuple(score(live[n] for n in sample) for live, sample in zip(stream, sequence, strict=True))
        found[states] += Fraction(count, math.factorial(len(names)))
    return found


@pytest.mark.parametrize(("size", "others"), [(1, 2), (2, 2)])
def test_what_is_claimed_for_ranks_holds_where_copies_are_left(size, others):
    amplified = left = 0
    for plus, minus, within in histories(most=2, releases=3):
        for own, *rest in product((-1, 1), repeat=1 + others):
            one, two = (transcripts(law(counts, own, rest, size)) for counts in (plus, minus))
            live = min(minus) + others
            for delta in (0.0, 0.05, 0.2):
                for given in ({}, {"occupancy": live}):
                    claim = window_cost(
                        "ranks", releases=3, epsilon0=EPSILON0, delta0=0.0, delta=delta, size=size, **given
                    )
                    assert divergence(one, two, claim.epsilon) <= delta + 1e-12
                    assert divergence(two, one, claim.epsilon) <= delta + 1e-12
                    amplified += claim.amplified
        left += within[-1] < 2 and minus[-1] > 0
    assert amplified > 50
    assert left > 5


def test_a_deletion_may_leave_copies_of_what_an_algorithm_reads():
    """Two records of one stamp that agree in what is read: without the first the deletion finds nothing, and the second
    is there in both, from the difference on and after it."""
    first, second, gone = Add(("x", 1)), Add(("x", 2)), Delete(("x", 1), 1)
    plus, minus = ((first, second), (), (gone,), ()), ((second,), (), (gone,), ())
    counts = [
        [sum(copies for point, copies in data.items() if point.value[0] == "x") for data in trajectory(sequence)]
        for sequence in (plus, minus)
    ]
    assert counts == [[2, 2, 1, 1], [1, 1, 1, 1]]
    assert (*counts, range(2)) in list(histories())
