"""Deletions that wait for no round do at once what they would have done at the close, and leave no trace before it."""

from __future__ import annotations

import hashlib
import random
from itertools import product

import pytest

from retroact.ledger import Ledger, Operations, Removal
from retroact.ledger.definition import Add, Delete, DeleteId, Erase, trajectory
from retroact.schema import Integer, Rows, Schema
from support.ledger_histories import contents
from support.tiers import in_full, repeated
from support.updates_by_hand import Updates

SCHEMA = Schema({"n": Integer(0, 9)})
BEFORE = [
    (),
    (Add((1,), 1, "x", "erased"), Add((1,), 1, None, "erased"), Add((2,), 1, None, "other")),
    (Add((2,), 1, "x", "other"), Add((2,), 1, "y", "erased"), Add((1,), 1, None, "erased")),
]
EVENTS = [
    Add((3,), 2, None, "erased"),
    Add((4,), 2, None, "other"),
    Add((5,), 2, "x", "erased"),
    Add((6,), 2, "x", "other"),
    Add((7,), 3, "x", "erased"),
    Add((8,), 3, "x", "other"),
    DeleteId("x"),
    Delete((1,), 1, "erased"),
    Delete((2,), 1, "other"),
]


def arrive(updates, events):
    for event in events:
        if isinstance(event, Add):
            updates.add_one(event.value, event.stamp, event.id, event.subject)
        elif isinstance(event, Delete):
            updates.delete(Rows.from_tuples(SCHEMA, [event.value]), event.stamp, event.subject)
        elif isinstance(event, DeleteId):
            updates.delete_ids([event.id])
        else:
            updates.erase([event.subject])


def at_once(before, events, parts):
    """The ledger and what is left of the open round; the round is cut into parts, as a store has it."""
    ledger = Ledger(SCHEMA)
    whole = Updates(SCHEMA)
    arrive(whole, before)
    ledger.apply(1, whole)
    everything, left, event = Updates(SCHEMA), Updates(SCHEMA), 0
    arrive(everything, events)
    removal = Removal.of(everything, 2)
    for begin, end in zip(parts, [*parts[1:], len(events)], strict=True):
        part = Updates(SCHEMA)
        arrive(part, events[begin:end])
        whole = part.whole()
        left.append(removal.left(whole, event))
        event += len(whole.ids)
    ledger.apply(2, removal.deletions(SCHEMA))
    return ledger, left


def check(before, events, parts):
    expected = trajectory((before, events))[-1]
    ledger, left = at_once(before, events, parts)
    data = contents(ledger.data())
    assert not any(point.subject == "erased" for point in data)
    # of the others only what the id held is gone, and only if it ends empty or was deleted
    lost = {p for p in contents_of(before) if p.subject != "erased"} - {*data}
    on_x = [e for e in events if getattr(e, "id", None) == "x" and (getattr(e, "stamp", None) or 0) < 3]
    empties = bool(on_x) and (DeleteId("x") in on_x or getattr(on_x[-1], "subject", None) == "erased")
    assert all(point.id == "x" for point in lost)
    assert bool(lost) == (empties and any(p.id == "x" and p.subject == "other" for p in contents_of(before)))
    # of the open round nothing is left that names whom or what was erased
    rest = left.whole()
    assert (*rest.erased, *rest.digests, *rest.emptied) == ()
    assert not any(part and "erased" in part.owners() for part in (rest.added, rest.deleted, rest.placed))
    ledger.apply(2, left)
    assert contents(ledger.data()) == expected


def contents_of(updates):
    return trajectory((updates,))[-1]


# By default rounds of three events come after one of the histories, shorter ones after each.
SHORT = [
    (before, length) if length < 3 or before is BEFORE[2] else in_full(before, length)
    for before in BEFORE
    for length in range(4)
]


@pytest.mark.parametrize(("before", "length"), SHORT)
def test_every_short_round_gives_at_its_close_what_it_would_have_given(before, length):
    for events in product(EVENTS, repeat=length):
        check(before, (*events, Erase("erased")), [0])


@pytest.mark.parametrize("seed", repeated(1, 5))
def test_longer_rounds_in_parts_and_with_further_events_on_ids(seed):
    chance = random.Random(3 + seed)
    for _ in range(300):
        events = tuple(chance.choices([*EVENTS, Erase("erased")], k=chance.randrange(1, 12)))
        events = (*events, Erase("erased"))
        parts = [0, *sorted(chance.sample(range(1, len(events)), k=chance.randrange(0, min(4, len(events)))))]
        before = chance.choice(BEFORE)
        check(before, events, parts)
        later = tuple(chance.choices([e for e in EVENTS if getattr(e, "subject", None) != "erased"], k=3))
        ledger, left = at_once(before, events, parts)
        arrive(left, later)
        ledger.apply(2, left)
        assert contents(ledger.data()) == trajectory((before, events + later))[-1]


def test_subjects_are_also_named_by_their_digest():
    updates = Updates(SCHEMA)
    arrive(updates, (Add((3,), 1, None, "erased"), Add((3,), 1, "x", "erased"), Add((4,), 1, None, "other")))
    updates.append(Operations(digests=[hashlib.sha256(b"erased").digest()]))
    left = Removal.of(updates, 1).left_of(updates)
    assert (len(left), left.of_subjects(["other"])) == (1, [1])
    assert not Removal.of(left, 1)


def test_equal_records_that_are_kept_once_are_all_left():
    updates = Updates(SCHEMA)
    rows, _ = SCHEMA.encode({"n": [7, 8] * 5000})
    updates.add(rows, 1, ["other", "erased"] * 5000)
    updates.erase(["erased"])
    assert len(Removal.of(updates, 1).left_of(updates)) == 5000
