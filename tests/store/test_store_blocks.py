"""Blocks are a function of key and surviving data; texts and records survive the journey to bytes."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retroact as ra
from retroact.errors import VerificationError
from retroact.ledger import Ledger
from retroact.ledger.codec import Records, pack, pack_whole, packed, to_bytes, unpack, unpack_whole
from retroact.ledger.operations import NO_RECORDS, Stamped
from retroact.schema import Rows, Schema
from retroact.store import canonical_blocks
from retroact.texts import Texts
from support.tiers import examples
from support.updates_by_hand import Updates

SCHEMA = Schema(
    {
        "name": ra.Text(missing="skip"),
        "amount": ra.Integer(0, 9, missing="skip"),
        "place": ra.Vector(2, radius=5, step=1),
    }
)
MARKS = canonical_blocks.Marks(b"k" * 32)

names = st.sampled_from(["", "a", "b\0", "Zürich", "x" * 8, "y" * 63, "z" * 64, "w" * 65, "é" * 40, "long " * 50])
records = st.tuples(names | st.none(), st.integers(0, 2) | st.none(), st.tuples(st.integers(0, 1), st.integers(0, 1)))
subjects = st.sampled_from([None, "u", "v" * 70])
ids = st.sampled_from([None, "i", "j\0", "k" * 66])
events = st.one_of(
    st.tuples(st.just("add"), records, ids, subjects),
    st.tuples(st.just("delete"), records, st.integers(1, 4), subjects),
    st.tuples(st.just("empty"), ids.filter(bool)),
    st.tuples(st.just("erase"), subjects.filter(bool)),
)


def encoded(record):
    name, amount, place = record
    return SCHEMA.encode_record({"name": name, "amount": amount, "place": place})


def apply(updates, round, event):
    kind, *parts = event
    if kind == "add":
        record, id, subject = parts
        updates.add_one(encoded(record), round, id, subject)
    elif kind == "delete":
        record, stamp, subject = parts
        updates.delete(Rows.from_tuples(SCHEMA, [encoded(record)]), stamp, subject)
    elif kind == "empty":
        updates.delete_ids(parts)
    else:
        updates.erase(parts)


@pytest.mark.parametrize("size", [1, 2, 4])
@settings(max_examples=60, deadline=None)
@given(history=st.lists(st.lists(events, max_size=8), min_size=1, max_size=5))
def test_edits_lead_to_the_blocks_of_the_surviving_data(size, history):
    usual, canonical_blocks.SIZE = canonical_blocks.SIZE, size
    try:
        ledger, stored = Ledger(SCHEMA), {}
        for round, arrived in enumerate(history, start=1):
            updates = Updates(SCHEMA)
            for event in arrived:
                apply(updates, round, event)
            change = ledger.plan(round, updates)
            records = Records.of(ledger.named(change), SCHEMA)
            edit = canonical_blocks.edit(
                SCHEMA, MARKS, sorted(stored), records, lambda at, stored=stored: [stored[p] for p in at]
            )
            ledger.commit(change)
            for place in edit.gone:
                del stored[place]
            assert not stored.keys() & dict(edit.new).keys()
            stored.update(edit.new)
            assert sorted(stored.items()) == canonical_blocks.canonical(MARKS, Records.of(ledger.data(), SCHEMA))
        again = Ledger.of(unpack(SCHEMA, [stored[place] for place in sorted(stored)]))
        assert again.state() == ledger.state()
    finally:
        canonical_blocks.SIZE = usual


@examples(100)
@given(texts=st.lists(st.one_of(st.none(), st.text(max_size=90)), max_size=9), others=st.lists(names, max_size=4))
def test_texts_come_back(texts, others):
    texts = [None if text is None else text.encode(errors="replace").decode() for text in texts]
    packed, more = Texts.of(texts), Texts.of(others)
    assert Texts.from_content(packed.lengths, packed.content()).strings() == texts
    assert packed.followed_by(more).strings() == [*texts, *others]
    where = np.arange(len(texts))[::-2]
    assert packed[where].strings() == [texts[k] for k in where]


@examples(200)
@given(
    texts=st.lists(
        st.none() | st.text("ab", max_size=40) | st.sampled_from(["", "é", "x" * 255, "x" * 256]), min_size=1
    ),
    times=st.sampled_from([1, 70]),
)
def test_a_column_of_texts_is_encoded_as_the_list_of_them(texts, times):
    texts = texts * times
    column = Texts.of(texts)
    for some, one in ((column, texts), (column[::-1], texts[::-1]), (column.followed_by(column), [*texts, *texts])):
        assert msgspec.msgpack.encode([packed(some)]) == msgspec.msgpack.encode([one])
        assert some.content() == "".join(text or "" for text in one).encode()


@examples(200)
@given(
    numbers=st.lists(
        st.integers(-(2**63), 2**63 - 1) | st.integers(-130, 130) | st.integers(-40_000, 40_000), min_size=2
    )
)
def test_numbers_of_the_open_round_take_the_bytes_that_they_need(numbers):
    schema = Schema({"x": ra.Integer(-(2**63), 2**63 - 1)})
    stamped = Stamped.of(Rows({"x": np.array(numbers)}, len(numbers)), 1)
    packed = pack_whole(schema, stamped, narrow=True)
    assert unpack_whole(schema, packed).rows.columns["x"].tolist() == numbers
    assert len(packed) <= len(pack_whole(schema, stamped))
    if len({*numbers}) > 1 and all(-128 <= number < 128 for number in numbers):
        assert len(packed) < len(numbers) + 20


def test_a_long_column_of_texts_too():
    texts = [f"order-{k}" for k in range(70_000)]
    assert msgspec.msgpack.encode([packed(Texts.of(texts))]) == msgspec.msgpack.encode([texts])


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(records, ids, subjects), min_size=1, max_size=6))
def test_the_mark_of_a_record_is_its_own(rows):
    """Not a matter of who comes with it: neither of their number nor of how long their texts are."""
    whole = Records.of(surviving(rows), SCHEMA)
    each = [int(MARKS(Records.of(surviving([row], first=k), SCHEMA))[0]) for k, row in enumerate(rows)]
    assert MARKS(whole).tolist() == each


def surviving(rows, first=0):
    ledger, updates = Ledger(SCHEMA), Updates(SCHEMA)
    for position, (record, id, subject) in enumerate(rows):
        updates.add_one(encoded(record), position + 1, None if id is None else f"{id}{first + position}", subject)
    ledger.apply(len(rows), updates)
    return ledger.data()


def test_blocks_are_of_the_size_that_is_said_and_keyed():
    rows, _ = SCHEMA.encode({"name": ["n"] * 20_000, "amount": [1] * 20_000, "place": [[0, 0]] * 20_000})
    ledger, updates = Ledger(SCHEMA), Updates(SCHEMA)
    updates.add(rows, 1, [f"u{k}" for k in range(20_000)])
    ledger.apply(1, updates)
    whole = Records.of(ledger.data(), SCHEMA)
    found = canonical_blocks.canonical(MARKS, whole)
    assert 20_000 / canonical_blocks.SIZE / 2 < len(found) < 20_000 / canonical_blocks.SIZE * 2
    other = canonical_blocks.canonical(canonical_blocks.Marks(b"l" * 32), whole)
    assert {place for place, _ in found} & {place for place, _ in other} <= {canonical_blocks.FIRST}


@pytest.mark.parametrize("broken", [b"", b"\x90", b"\xc1", b"not a block at all"])
def test_what_is_no_block_is_refused(broken):
    with pytest.raises(VerificationError, match="expected blocks of records"):
        unpack(SCHEMA, [broken])


def test_a_block_that_lost_bytes_is_refused():
    (block,) = pack(
        Records.of(surviving([(("a", 1, (0, 0)), None, "u"), (("b", 2, (0, 1)), "i", None)]), SCHEMA), [0, 2]
    )
    refused = 0
    for place in range(len(block)):
        try:
            unpack(SCHEMA, [block[:place] + block[place + 1 :]])
        except VerificationError:
            refused += 1
    assert refused == len(block)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(records, ids, subjects), min_size=1, max_size=6))
def test_a_state_is_one_block(rows):
    """Written whole, without the columns that blocks are cut from."""
    data = surviving(rows)
    whole = Records.of(data, SCHEMA)
    state = to_bytes(SCHEMA, data)
    cut = [0, len(whole)]
    assert pack(unpack(SCHEMA, [msgspec.msgpack.decode(state)["records"]]), cut) == pack(whole, cut)
    assert Ledger.from_state(SCHEMA, state).state() == state


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(records, min_size=1, max_size=6),
    owners=st.one_of(subjects, st.lists(subjects, min_size=6, max_size=6)),
    copies=st.booleans(),
    data=st.data(),
)
def test_records_of_the_open_round_come_back(rows, owners, copies, data):
    encoded_rows = Rows.from_tuples(SCHEMA, [encoded(row) for row in rows])
    stamps = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows))))
    who = owners[: len(rows)] if isinstance(owners, list) else owners
    counts = stamps + 1 if copies else None
    part = Stamped(encoded_rows, stamps, who, copies=counts)
    again = unpack_whole(SCHEMA, pack_whole(SCHEMA, part))
    assert again.owners() == part.owners()
    assert again.stamps.tolist() == stamps.tolist()
    assert (again.copies is None) == (counts is None)
    assert counts is None or again.copies.tolist() == counts.tolist()
    for name, column in encoded_rows.columns.items():
        assert again.rows.columns[name].dtype == column.dtype
        assert again.rows.columns[name].tolist() == column.tolist()
    assert pack_whole(SCHEMA, NO_RECORDS) is None
