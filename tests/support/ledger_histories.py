"""Histories for the tests of the ledger: generated, played in random batches, and read back as the model's points."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from retroact.ledger import Change, Ledger, Stamped
from retroact.ledger.definition import Add, Delete, DeleteId, Erase, Point, Update
from retroact.ledger.sorted_keys import take
from retroact.ledger.text_table import TextTable
from retroact.schema import Bytes, Integer, Rows, Schema, Text, Vector
from retroact.texts import places_of
from support.updates_by_hand import Updates

# The paper's running example, and the history that it unites with in round 5.
RUNNING = (
    (Add("a"),),
    (Add("b"), Add("b")),
    (Delete("b", 2),),
    (Delete("b", 1),),
    (Delete("b", 2),),
    (Delete("b", 2),),
)
TWIN = ((Add("a"),), (), (), (), (), ())

IDS = ("i", "j", "")
SUBJECTS = ("s", "t", "\u00e9\U0001f600")
LARGE = 2**53 - 1
LOW, HIGH = -(2**63), 2**63 - 1

# a schema, and the few values that its histories are made of
WORLDS: dict[str, tuple[Schema, tuple[tuple, ...]]] = {
    "one word": (Schema({"n": Integer(-1, 3)}), ((-1,), (0,), (3,))),
    "nothing to tell apart": (Schema({"n": Integer(5, 5)}), ((5,),)),
    "text": (
        Schema({"t": Text(), "n": Integer(0, 1)}),
        (("b", 0), ("a", 1), ("\uffff", 0), ("\U00010000", 0), ("", 1)),
    ),
    "two words": (
        Schema({"x": Integer(-LARGE, LARGE), "t": Text(), "y": Integer(-LARGE, LARGE)}),
        ((-LARGE, "a", LARGE), (-LARGE, "a", -LARGE), (LARGE, "b", 0), (0, "a", LARGE)),
    ),
    "64 bits": (
        Schema({"m": Integer(0, 2), "x": Integer(LOW, HIGH), "y": Integer(LOW, HIGH), "t": Text()}),
        ((0, LOW, HIGH, "a"), (0, HIGH, LOW, "a"), (0, -1, 0, "b"), (0, 0, -1, ""), (2, LOW, LOW, "a")),
    ),
    "bytes": (
        Schema({"b": Bytes(), "n": Integer(0, 1)}),
        (("", 0), ("\0", 1), ("\0\0", 0), ("\xff\0", 0), ("\xff", 1), ("\x80", 0), ("\x7f", 0)),
    ),
    "vectors": (
        Schema({"p": Vector(3, radius=2**30, step=1), "q": Vector(1, radius=5, step=1)}),
        (((1, 2, -3), (0,)), ((1, 2, -2), (0,)), ((-1, 2, -3), (5,)), ((1, 2, -3), (-5,))),
    ),
    # the values that are written where one is missing are among them: neither may be taken for the other
    "missing": (
        Schema(
            {
                "t": Text(missing="skip"),
                "m": Integer(0, 1),
                "n": Integer(-1, 3, missing="skip"),
                "p": Vector(2, radius=5, step=1, missing="skip"),
            }
        ),
        (
            ("", 0, -1, (0, 0)),
            (None, 0, -1, (0, 0)),
            ("", 0, None, (0, 0)),
            ("", 0, -1, None),
            (None, 0, None, None),
            ("a", 0, None, (1, 0)),
            (None, 1, 3, (0, 0)),
        ),
    ),
}


@st.composite
def histories(draw: st.DrawFn, values: tuple[tuple, ...], *, rounds: int = 6) -> tuple[tuple[Update, ...], ...]:
    value, stamp = st.sampled_from(values), st.integers(1, rounds + 1)
    subject = st.sampled_from((None, None, *SUBJECTS))
    update = st.one_of(
        st.builds(Add, value, st.none() | stamp, st.none(), subject),
        st.builds(Add, value, st.none() | stamp, st.sampled_from(IDS), subject),
        st.builds(Delete, value, st.integers(-1, rounds + 1), subject),
        st.builds(DeleteId, st.sampled_from(IDS)),
        st.builds(Erase, st.sampled_from(SUBJECTS)),
    )
    return tuple(draw(st.lists(st.lists(update, max_size=8).map(tuple), min_size=1, max_size=rounds).map(tuple)))


def shuffled(updates: tuple[Update, ...], chance: random.Random) -> list[Update]:
    """Any order, except that the events of one id stay in order."""
    mixed = list(updates)
    chance.shuffle(mixed)
    events: dict[object, list[Update]] = {}
    for update in updates:
        if (id := _id(update)) is not None:
            events.setdefault(id, []).append(update)
    return [events[_id(update)].pop(0) if _id(update) is not None else update for update in mixed]


def arrive(schema: Schema, round: int, order: list[Update], chance: random.Random) -> Updates:
    """The updates of one round, handed over one by one or in batches of one kind."""
    updates = Updates(schema)
    pending: list[Update] = []
    for update in order:
        if pending and (_kind(update) != _kind(pending[0]) or chance.random() < 0.3):
            _hand_over(schema, round, updates, pending, chance)
            pending = []
        pending.append(update)
    if pending:
        _hand_over(schema, round, updates, pending, chance)
    return updates


def play(ledger: Ledger, round: int, updates: tuple[Update, ...], chance: random.Random) -> Change:
    return ledger.apply(round, arrive(ledger.schema, round, shuffled(updates, chance), chance))


def values_of(rows: Rows) -> list[tuple]:
    columns = []
    for name, column in rows.columns.items():
        values = list(map(tuple, column.tolist())) if column.ndim == 2 else column.tolist()
        gone = rows.missing.get(name, np.zeros(rows.count, bool)).tolist()
        columns.append([None if missing else value for value, missing in zip(values, gone, strict=True)])
    return list(zip(*columns, strict=True))


def points(surviving: Stamped) -> list[Point]:
    """One point for each distinct record, in the order they come."""
    named = zip(surviving.stamps.tolist(), values_of(surviving.rows), surviving.ids, surviving.subjects, strict=True)
    return [Point(*fields) for fields in named]


def contents(surviving: Stamped) -> Counter[Point]:
    found = points(surviving)
    assert len(set(found)) == len(found)
    return Counter(dict(zip(found, surviving.counts.tolist(), strict=True)))


def canonical_key(point: Point, schema: Schema) -> tuple:
    whole = [field.blank if v is None else v for v, field in zip(point.value, schema.fields.values(), strict=True)]
    texts = tuple(v.encode() if isinstance(v, str) else v for v in whole), [v is None for v in point.value]
    owner = (point.id is not None, (point.id or "").encode(), point.subject is not None, (point.subject or "").encode())
    return point.stamp, texts, owner


def check_internals(ledger: Ledger) -> None:
    """Nothing is kept besides the surviving records, and the indices agree with them."""
    multiset, registers, layout = ledger._multiset, ledger._registers, ledger._keys.layout
    assert (multiset.counts > 0).all()
    assert not multiset._counts[multiset.size :].any()
    assert multiset.copies == multiset.counts.sum()
    for word in multiset._words:
        assert len(word) == len(multiset._counts)
        assert not word[multiset.size :].any()
    if multiset._spare is not None:
        assert not any(array.any() for array in (*multiset._spare[0], multiset._spare[1]))
    stacked = list(zip(*(word.tolist() for word in multiset.words), strict=True))
    assert all(one < other for one, other in pairwise(stacked))
    check_table(registers._ids)
    slots = registers._ids.numbers()
    assert (layout.stamps(take(registers._words, slots)) > 0).all()
    for word in registers._words:
        assert not np.delete(word, slots).any()
    parts = multiset.words, take(registers._words, slots)
    index, whose = registers._index, layout.subjects(parts[1]).tolist()
    if index._entries is not None:
        listed = {divmod(entry, 1 << 32) for entry in index._entries.tolist()} - {(0, 0)}
        held = {(code, slot) for code, slot in zip(whose, slots.tolist(), strict=True) if code}
        assert listed <= held
        assert {slot for _, slot in held - listed} <= {slot for some in index._fresh for slot in some.tolist()}
    for name, table in ledger._keys.texts.items():
        uses = Counter(layout.field(name, *parts).tolist())
        assert {code: table._references.counts[code] for code in table._codes.values()} == uses
        assert {text: code for code, text in enumerate(table._texts.tolist()) if code in uses} == table._codes
        assert table._references.counts.sum() == uses.total()
        assert sum(text is not None for text in table._texts) == len(uses)
        assert sorted([*table._free, *table._codes.values()]) == list(range(table.size))
        assert table._references.loose == []
    subjects, owners = ledger._keys.subjects, layout.subjects(*parts)
    check_table(subjects._table)
    uses = Counter((owners[owners > 0] - 1).tolist())
    assert {number: subjects._references.counts[number] for number in subjects._table.numbers().tolist()} == uses
    assert subjects._references.counts.sum() == uses.total()
    assert subjects._references.loose == []


def check_table(table: TextTable) -> None:
    """It finds each of its texts, and has no word of another."""
    numbers = table.numbers()
    texts = table[numbers]
    assert len({*texts.strings()}) == len(numbers) == len(table)
    assert (table.find(texts) == numbers).all()
    assert sorted([*table._free.tolist(), *numbers.tolist()]) == list(range(table.size))
    assert sorted(table._table[table._table >= 0].tolist()) == numbers.tolist()
    assert table._taken == (table._table != -1).sum()
    used = np.zeros(len(table._words), dtype=np.bool_)
    used[places_of(texts.starts, texts.counts)] = True
    assert not table._words[~used].any()
    assert table._unused == table._filled - used.sum()
    assert not np.delete(table._starts, numbers).any()
    assert {*np.delete(table._lengths, numbers).tolist()} <= {0, -2}


def _id(update: Update) -> object:
    return update.id if isinstance(update, Add | DeleteId) else None


def _kind(update: Update) -> tuple:
    return type(update), _id(update) is None


def _hand_over(schema: Schema, round: int, updates: Updates, pending: list[Update], chance: random.Random) -> None:
    kind, single = type(pending[0]), len(pending) == 1 and chance.random() < 0.7
    if kind is DeleteId:
        return updates.delete_ids([update.id for update in pending])
    if kind is Erase:
        return updates.erase([update.subject for update in pending])
    values = [update.value for update in pending]
    stamps = [round if update.stamp is None else update.stamp for update in pending]
    subjects: list | str | None = [update.subject for update in pending]
    ids = [_id(update) for update in pending]
    if single and kind is Add:
        return updates.add_one(values[0], stamps[0], ids[0], subjects[0])
    if single:
        return updates.delete(Rows.from_tuples(schema, values), stamps[0], subjects[0])
    if len(set(subjects)) == 1 and chance.random() < 0.5:
        subjects = subjects[0]
    given = stamps[0] if len(set(stamps)) == 1 and chance.random() < 0.5 else np.array(stamps)
    rows = Rows.from_tuples(schema, values)
    if kind is Add:
        return updates.add(rows, given, subjects, None if ids[0] is None else ids)
    return updates.delete(rows, given, subjects)
