"""Several rounds planned at once are the same rounds one after the other: each change, what it found, and the state."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retroact.ledger import Ledger, Operations, RoundChanges
from retroact.ledger.lives import _walked
from support.ledger_histories import WORLDS, arrive, check_internals, histories, play, shuffled, values_of
from support.tiers import in_full
from support.updates_by_hand import Updates


def moved(rows, weights) -> Counter:
    found = Counter()
    for stamp, value, weight in zip(rows.stamps.tolist(), values_of(rows), weights.tolist(), strict=True):
        assert weight != 0
        found[stamp, value] += weight
    return Counter({key: weight for key, weight in found.items() if weight})


def of_round(changes: RoundChanges, round: int) -> Counter:
    where = np.flatnonzero(changes.rounds == round)
    return moved(changes.rows.take(where), changes.weights[where])


@pytest.mark.parametrize("examples", [20, in_full(2000)])
@pytest.mark.parametrize("world", WORLDS)
def test_as_one_after_the_other(world: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        _check_one_after_the_other(*WORLDS[world], data)

    check()


def _check_one_after_the_other(schema, values, data: st.DataObject) -> None:
    sequence = data.draw(histories(values, rounds=8))
    begin = data.draw(st.integers(0, len(sequence) - 1))
    end = data.draw(st.integers(begin + 1, len(sequence)))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    plain, passed = Ledger(schema), Ledger(schema)
    for round, updates in enumerate(sequence[:begin], 1):
        play(plain, round, updates, chance)
        play(passed, round, updates, chance)
    rounds = [
        arrive(schema, round, shuffled(updates, chance), chance)
        for round, updates in enumerate(sequence[begin:end], begin + 1)
    ]
    # a plan that is dropped leaves nothing behind
    before = passed.state()
    passed.drop(passed.plan_rounds(begin + 1, rounds))
    check_internals(passed)
    assert passed.state() == before
    changes = passed.plan_rounds(begin + 1, rounds)
    difference = _counted(passed.named(changes))
    for round, updates, counts in zip(range(begin + 1, end + 1), rounds, changes.counts, strict=True):
        whole = updates.whole()
        assert counts.survived == plain.of_subjects([*whole.erased, *whole.digests])
        change = plain.plan(round, updates)
        assert moved(change.rows, change.weights) == of_round(changes, round)
        assert (counts.added, counts.removed) == (change.added, change.removed)
        assert counts.ignored_deletions == change.ignored_deletions
        assert counts.ignored_additions == change.ignored_additions
        assert counts.revises == (change.removed > 0 or bool((change.stamps[change.weights > 0] < round).any()))
        plain.commit(change)
    passed.commit(changes)
    check_internals(passed)
    assert passed.state() == plain.state()
    # what all rounds do together is the difference of the data
    old, new = _counted(Ledger.from_state(schema, before).data()), _counted(plain.data())
    assert all(new[point] - old[point] == difference[point] for point in new | old | difference)
    for round, updates in enumerate(sequence[end:], end + 1):
        play(plain, round, updates, chance)
        play(passed, round, updates, chance)
        assert passed.state() == plain.state()


def _counted(part) -> Counter:
    points = zip(part.stamps.tolist(), values_of(part.rows), part.ids, part.subjects, strict=True)
    found = Counter()
    for point, copies in zip(points, part.counts.tolist(), strict=True):
        found[point] += copies
    return found


def test_nobody_who_was_added_and_erased_is_left() -> None:
    schema, values = WORLDS["text"]
    rounds = [Updates(schema) for _ in range(3)]
    rounds[0].add_one(values[0], 1, "id of the erased", "the erased")
    rounds[0].add_one(("only here", 0), 1, None, "the erased")
    rounds[2].append(Operations(erased=["the erased"]))
    ledger = Ledger(schema)
    changes = ledger.plan_rounds(1, rounds)
    assert [counts.survived for counts in changes.counts] == [[], [], [2]]
    assert ledger.named(changes).rows.count == 0
    ledger.commit(changes)
    assert len(ledger) == 0
    assert ledger.state() == Ledger(schema).state()
    check_internals(ledger)


def test_walks_of_very_many_copies_do_not_wrap() -> None:
    random = np.random.default_rng(4)
    for largest in (3, 1 << 55):
        for _ in range(200):
            key = np.sort(random.integers(0, 9, 40))
            net, erased = random.integers(-largest, largest + 1, 40), random.random(40) < 0.2
            expected, last, copies = [], None, 0
            for each, more, gone in zip(key.tolist(), net.tolist(), erased.tolist(), strict=True):
                copies = 0 if each != last else copies
                copies, last = max(0, copies + more), each
                expected.append(copies)
                copies = 0 if gone else copies
            assert _walked(key, net, erased).tolist() == expected
