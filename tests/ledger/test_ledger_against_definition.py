"""The ledger is the model: on generated histories, however they are cut into batches, and on large ones."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retroact.ledger import Ledger
from retroact.ledger.definition import Add, Delete, DeleteId, Erase, trajectory
from retroact.schema import Integer, Rows, Schema, Text
from support.ledger_histories import (
    IDS,
    SUBJECTS,
    WORLDS,
    arrive,
    canonical_key,
    check_internals,
    contents,
    histories,
    play,
    points,
    shuffled,
    values_of,
)
from support.updates_by_hand import Updates

every_world = pytest.mark.parametrize("world", WORLDS)


@every_world
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_equal_data_after_every_round(world: str, data: st.DataObject) -> None:
    schema, values = WORLDS[world]
    sequence = data.draw(histories(values))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    ledger, before = Ledger(schema), Counter()
    for round, (updates, expected) in enumerate(zip(sequence, trajectory(sequence), strict=True), start=1):
        change = play(ledger, round, updates, chance)
        surviving = ledger.data()
        assert contents(surviving) == expected
        assert points(surviving) == sorted(expected, key=lambda point: canonical_key(point, schema))
        assert len(ledger) == expected.total()
        check_internals(ledger)

        moved = Counter()
        for stamp, value, weight in zip(
            change.stamps.tolist(), values_of(change.rows), change.weights.tolist(), strict=True
        ):
            assert weight != 0
            moved[stamp, value] += weight
        difference = Counter({(p.stamp, p.value): 0 for p in expected | before})
        difference.update(Counter((p.stamp, p.value) for p in expected.elements()))
        difference.subtract(Counter((p.stamp, p.value) for p in before.elements()))
        assert {k: v for k, v in moved.items() if v} == {k: v for k, v in difference.items() if v}
        assert change.added == change.weights[change.weights > 0].sum()
        assert change.added - change.removed == expected.total() - before.total()
        assert change.ignored_additions == sum(isinstance(u, Add) and (u.stamp or 0) > round for u in updates)
        before = expected

        who = (*SUBJECTS, "nobody", SUBJECTS[0])
        theirs = [sum(n for p, n in expected.items() if p.subject == subject) for subject in who]
        assert ledger.of_subjects(who) == theirs
        assert ledger.of_subjects([sha256(subject.encode()).digest() for subject in who]) == theirs
        for past in range(round + 1):
            assert contents(ledger.data(last=past)) == {p: n for p, n in expected.items() if p.stamp <= past}
            assert contents(ledger.data(round - past, round)) == {
                p: n for p, n in expected.items() if p.stamp >= round - past
            }
            rows, counts = ledger.rows_between(past, past)
            with_stamp = Counter()
            for value, count in zip(values_of(rows), counts.tolist(), strict=True):
                with_stamp[value] += count
            assert with_stamp == Counter(p.value for p in expected.elements() if p.stamp == past)


@every_world
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_equal_data_give_equal_state_whatever_the_history(world: str, data: st.DataObject) -> None:
    schema, values = WORLDS[world]
    sequence = data.draw(histories(values))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    ledger, again = Ledger(schema), Ledger(schema)
    for round, updates in enumerate(sequence, start=1):
        play(ledger, round, updates, chance)
        play(again, round, updates, chance)
        if chance.random() < 0.5:
            again = Ledger.from_state(schema, again.state())
            check_internals(again)
        assert again.state() == ledger.state()
    twin = Ledger(schema)
    amnesia = [Add(p.value, p.stamp, p.id, p.subject) for p in trajectory(sequence)[-1].elements()]
    play(twin, len(sequence), tuple(amnesia), chance)
    assert twin.state() == ledger.state()


@every_world
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_ignored_deletions_are_those_that_name_nothing(world: str, data: st.DataObject) -> None:
    """Told apart by leaving them out: every deletion that counts as ignored can go, one after the other."""
    schema, values = WORLDS[world]
    sequence = data.draw(histories(values, rounds=3))
    chance = random.Random(0)
    ledger = Ledger(schema)
    plain, held = Counter(), {}
    for round, updates in enumerate(sequence, start=1):
        change = play(ledger, round, updates, chance)
        expected = 0
        for u in updates:
            if isinstance(u, Add) and u.id is None and (u.stamp or round) <= round:
                plain[u.stamp or round, u.value, u.subject] += 1
        for u in updates:
            if isinstance(u, Delete):
                expected += plain[u.stamp, u.value, u.subject] == 0
                plain[u.stamp, u.value, u.subject] -= plain[u.stamp, u.value, u.subject] > 0
        for u in updates:
            if isinstance(u, Add) and u.id is not None and (u.stamp or round) <= round:
                held[u.id] = u.subject
            elif isinstance(u, DeleteId):
                expected += held.pop(u.id, "nothing") == "nothing"
        for u in updates:
            if isinstance(u, Erase):
                mine = [key for key in +plain if key[2] == u.subject]
                ours = [id for id, subject in held.items() if subject == u.subject]
                for key in mine:
                    del plain[key]
                for id in ours:
                    del held[id]
        assert change.ignored_deletions == expected


def test_order_within_a_round_matters_for_one_id_only() -> None:
    schema, values = WORLDS["one word"]
    updates = (*(Add(values[k % 3], id=IDS[k % 2]) for k in range(8)), DeleteId(IDS[0]))
    states = set()
    for seed in range(20):
        chance, ledger = random.Random(seed), Ledger(schema)
        ledger.apply(1, arrive(schema, 1, shuffled(updates, chance), chance))
        states.add(ledger.state())
    assert len(states) == 1


LARGE_SCHEMAS = {
    "one word": Schema({"n": Integer(-50, 50), "m": Integer(0, 30)}),
    "two words": Schema({"n": Integer(-50, 50), "x": Integer(0, 2**50), "y": Integer(0, 2**50), "m": Integer(0, 30)}),
    "three words": Schema({name: Integer(-(2**52), 2**52) for name in "xyz"}),
    "text": Schema({"t": Text(), "m": Integer(0, 30)}),
    "64 bits": Schema({"x": Integer(-(2**63), 2**63 - 1)}),
    "several of 64 bits": Schema(
        {"n": Integer(0, 6), "x": Integer(-(2**63), 2**63 - 1), "y": Integer(-(2**63), 2**63 - 1), "m": Integer(0, 1)}
    ),
}


@pytest.mark.parametrize("kind", LARGE_SCHEMAS)
def test_large_rounds_against_a_dict(kind: str) -> None:
    schema = LARGE_SCHEMAS[kind]
    chance = np.random.default_rng(5)
    # few distinct values in each column, so that keys meet again and again
    pools = {
        name: np.array([f"text {k}" for k in range(300)], dtype=object)
        if field.interned
        else chance.integers(field.lower, field.upper + 1, 30)
        for name, field in schema.fields.items()
    }

    def rows(count: int) -> Rows:
        return Rows({name: pool[chance.integers(0, len(pool), count)] for name, pool in pools.items()}, count)

    ledger, data = Ledger(schema), Counter()
    for round in range(1, 9):
        size = int(chance.integers(1, 12_000))
        added, stamps = rows(size), chance.integers(max(1, round - 3), round + 1, size)
        deleted, deleted_stamps = rows(size // 2), chance.integers(max(1, round - 3), round + 1, size // 2)
        updates = Updates(schema)
        updates.add(added, stamps)
        updates.delete(deleted, deleted_stamps)
        change = ledger.apply(round, updates)
        ignored = 0
        for key in zip(stamps.tolist(), values_of(added), strict=True):
            data[key] += 1
        for key in zip(deleted_stamps.tolist(), values_of(deleted), strict=True):
            ignored += data[key] == 0
            data[key] -= data[key] > 0
        assert change.ignored_deletions == ignored
        found = ledger.data()
        pairs = zip(found.stamps.tolist(), values_of(found.rows), strict=True)
        assert Counter(dict(zip(pairs, found.counts.tolist(), strict=True))) == +data


def test_large_rounds_of_ids_against_a_dict() -> None:
    schema = LARGE_SCHEMAS["text"]
    chance = random.Random(6)
    ledger, held = Ledger(schema), {}
    for round in range(1, 7):
        updates = Updates(schema)
        for _ in range(40):
            ids = [f"id {chance.randrange(3000)}" for _ in range(chance.randrange(120))]
            if chance.random() < 0.4:
                updates.delete_ids(ids)
                for id in ids:
                    held.pop(id, None)
                continue
            values = [(f"text {chance.randrange(40)}", chance.randrange(31)) for _ in ids]
            subjects = [chance.choice([None, "s", "t", "u"]) for _ in ids]
            updates.add(Rows.from_tuples(schema, values), round, subjects, ids)
            held.update({id: (round, *rest) for id, *rest in zip(ids, values, subjects, strict=True)})
        if round % 2 == 0:
            updates.erase(["t"])
            held = {id: record for id, record in held.items() if record[2] != "t"}
        ledger.apply(round, updates)
        check_internals(ledger)
        found = ledger.data()
        records = zip(found.stamps.tolist(), values_of(found.rows), found.subjects, strict=True)
        assert dict(zip(found.ids, records, strict=True)) == held


def test_keys_grow_with_stamps_texts_and_subjects() -> None:
    schema = LARGE_SCHEMAS["text"]
    ledger, expected = Ledger(schema), []
    widths = set()
    for round, texts in [(1, 1), (2, 20), (255, 300), (256, 1), (70_000, 5000), (2**40, 3)]:
        updates = Updates(schema)
        for k in range(texts):
            record, subject = (f"{round} {k}", k % 31), f"{k % 9}" if round > 2 else None
            updates.add_one(record, round, None, subject)
            updates.add_one(record, round, f"{round} {k}", subject)
            expected += [(round, record, None, subject), (round, record, f"{round} {k}", subject)]
        ledger.apply(round, updates)
        check_internals(ledger)
        assert contents(ledger.data()) == Counter(expected)
        widths.add(ledger._keys.layout.widths.stamp)
    assert widths == {8, 12, 20, 44}


def test_the_state_does_not_depend_on_the_hash_seed() -> None:
    program = """
from retroact.ledger import Ledger, Updates
from retroact.schema import Schema, Text
schema = Schema({"t": Text()})
updates = Updates(schema)
for k in range(50):
    updates.add_one((f"text {k % 7}",), 1, f"id {k}" if k % 3 else None, f"subject {k % 5}")
ledger = Ledger(schema)
ledger.apply(1, updates)
print(ledger.state().hex())
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1
