"""Integers of 64 bits and strings of bytes in the ledger: kept exactly, ordered rightly, stored and read back."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.ledger import Ledger
from retroact.ledger.key_layout import KeyLayout, Widths
from retroact.schema import Boolean, Bytes, Field, Integer, Rows, Schema, Text
from support.ledger_histories import HIGH, LOW, canonical_key, check_internals, contents, points
from support.updates_by_hand import Updates

WIDE = Integer(LOW, HIGH)
ENDS = [LOW, LOW + 1, -(2**62), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**62, HIGH - 1, HIGH]
NEIGHBOURS: list[Field] = [WIDE, Integer(0, 2), Integer(7, 7), Text(), WIDE]
BLOBS = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"\x7f", b"\x80", b"\xff", b"\xff\0", bytes(range(256)) * 4096]


def filled(schema: Schema, records: list[tuple], round: int = 1) -> Ledger:
    ledger, updates = Ledger(schema), Updates(schema)
    updates.add(Rows.from_tuples(schema, records), round)
    ledger.apply(round, updates)
    check_internals(ledger)
    return ledger


@pytest.mark.parametrize("stamp", [1, 8, 33, 60, 63, 64])
def test_keys_sort_as_records_do(stamp: int) -> None:
    """Wherever a column of 64 bits begins, in one word or across two."""
    for fields in set(permutations(NEIGHBOURS, 3)):
        check_order(stamp, fields)


def check_order(stamp: int, fields: tuple[Field, ...]) -> None:
    schema = Schema({f"f{k}": field for k, field in enumerate(fields)})
    layout = KeyLayout(schema, Widths(stamp, {name: 4 for name, f in schema.fields.items() if f.interned}, 4))
    chance = np.random.default_rng(3)
    count = 500
    values = {}
    for name, field in schema.fields.items():
        upper = 15 if field.interned else field.upper
        pool = np.array(ENDS if field is WIDE else [field.lower, upper], dtype=np.int64)
        values[name] = pool[chance.integers(0, len(pool), count)]
    stamps, subjects = chance.integers(0, 2, count), chance.integers(0, 16, count)
    words = layout.pack(stamps, values, subjects, {})
    assert layout.stamps(words).tolist() == stamps.tolist()
    assert layout.subjects(words).tolist() == subjects.tolist()
    for name, column in values.items():
        assert layout.field(name, words).tolist() == column.tolist()
    records = list(
        zip(stamps.tolist(), *(column.tolist() for column in values.values()), subjects.tolist(), strict=True)
    )
    packed = list(zip(*(word.tolist() for word in words), strict=True))
    assert [record for _, record in sorted(zip(packed, records, strict=True))] == sorted(records)
    assert len(set(packed)) == len(set(records))


@pytest.mark.parametrize("field", [Integer(LOW, 0), Integer(0, HIGH), Integer(LOW, LOW), Integer(HIGH - 1, HIGH)])
def test_what_is_out_of_bounds_is_not_packed(field: Integer) -> None:
    schema = Schema({"x": field})
    inside, outside = [field.lower, field.upper], [x for x in ENDS if not field.lower <= x <= field.upper]
    assert contents(filled(schema, [(x,) for x in inside]).data()).total() == 2
    for wrong in outside:
        with pytest.raises(InputError, match=f"expected a number from {field.lower} to {field.upper}, got {wrong} "):
            filled(schema, [(field.lower,), (wrong,)])


@settings(max_examples=50, deadline=None)
@given(
    records=st.lists(
        st.tuples(st.integers(LOW, HIGH) | st.sampled_from(ENDS), st.booleans().map(int), st.sampled_from(ENDS)),
        max_size=30,
    ),
    data=st.data(),
)
def test_64_bits_there_and_back(records: list[tuple[int, int, int]], data: st.DataObject) -> None:
    schema = Schema({"x": WIDE, "b": Boolean(), "y": WIDE})
    ledger = filled(schema, records)
    assert Counter({point.value: n for point, n in contents(ledger.data()).items()}) == Counter(records)
    assert [point.value for point in points(ledger.data())] == sorted(set(records))
    again = Ledger.from_state(schema, ledger.state())
    check_internals(again)
    assert again.state() == ledger.state()
    gone = data.draw(st.lists(st.sampled_from(records), unique=True)) if records else []
    for each in (ledger, again):
        updates = Updates(schema)
        updates.delete(Rows.from_tuples(schema, gone), 1)
        change = each.apply(2, updates)
        assert (change.removed, change.ignored_deletions) == (len(gone), 0)
        check_internals(each)
    left = Counter(records) - Counter(gone)
    assert Counter({point.value: n for point, n in contents(again.data()).items()}) == left
    assert again.state() == ledger.state() == filled(schema, list(left.elements())).state()


def test_a_constant_first_word_before_a_full_second_one() -> None:
    # 64 bits of stamp and nothing else in the first word: shifting it aside takes all 64 bits
    schema = Schema({"x": WIDE, "t": Text()})
    layout = KeyLayout(schema, Widths(64, {"t": 0}, 0))
    columns = {"x": np.array(ENDS[::-1]), "t": np.zeros(len(ENDS), dtype=np.int64)}
    words = layout.pack(np.full(len(ENDS), 5), columns, np.zeros(len(ENDS), dtype=np.int64), {})
    assert len(words) == 2
    assert layout.field("x", words).tolist() == ENDS[::-1]
    ledger, updates = Ledger(schema), Updates(schema)
    updates.add(Rows.from_tuples(schema, [(x, t) for x in ENDS for t in ("b", "a")]), 2**62)
    ledger.apply(2**62, updates)
    assert [p.value for p in points(ledger.data())] == [(x, t) for x in ENDS for t in ("a", "b")]


def test_ids_hold_wide_values() -> None:
    schema = Schema({"x": WIDE})
    ledger = Ledger(schema)
    for round, x in enumerate(ENDS, start=1):
        updates = Updates(schema)
        updates.add_one((x,), round, "one")
        updates.add_one((-1 - x,), round, f"id {round}")
        ledger.apply(round, updates)
        check_internals(ledger)
    held = {point.id: point.value for point in points(ledger.data())}
    assert held == {"one": (HIGH,), **{f"id {k}": (-1 - x,) for k, x in enumerate(ENDS, start=1)}}
    assert Ledger.from_state(schema, ledger.state()).state() == ledger.state()


def test_bytes_there_and_back_in_order() -> None:
    field = Bytes()
    schema = Schema({"b": field, "x": WIDE})
    rows, _ = schema.encode({"b": BLOBS[::-1] * 2, "x": [HIGH, LOW] * len(BLOBS)})
    ledger, updates = Ledger(schema), Updates(schema)
    updates.add(rows, 1)
    ledger.apply(1, updates)
    check_internals(ledger)
    found = points(ledger.data())
    assert found == sorted(found, key=lambda point: canonical_key(point, schema))
    assert [field.decode(p.value[0]) for p in found] == [b for b in sorted(BLOBS) for _ in range(2)]
    again = Ledger.from_state(schema, ledger.state())
    check_internals(again)
    assert again.state() == ledger.state()
    assert points(again.data()) == found
    for each in (ledger, again):
        updates = Updates(schema)
        gone, _ = schema.encode({"b": [b"\0", b"\xff\0", b"\xff\0\0"], "x": [LOW, HIGH, LOW]})
        updates.delete(gone, 1)
        change = each.apply(2, updates)
        assert change.removed + change.ignored_deletions == 3
        assert change.ignored_deletions >= 1
    assert again.state() == ledger.state()


def test_the_longest_bytes() -> None:
    field, schema = Bytes(), Schema({"b": Bytes()})
    longest = [b"\xff" * 2**20, b"\0" * 2**20, b"\xff" * (2**20 - 1)]
    rows, _ = schema.encode({"b": longest})
    ledger, updates = Ledger(schema), Updates(schema)
    updates.add(rows, 1)
    updates.add_one(schema.encode_record({"b": longest[0]}) or (), 1)
    ledger.apply(1, updates)
    with pytest.raises(InputError, match="expected at most 1048576 bytes, got 1048577 - at b"):
        schema.encode({"b": b"\xff" * (2**20 + 1)})
    again = Ledger.from_state(schema, ledger.state())
    assert again.state() == ledger.state()
    found = {field.decode(p.value[0]): n for p, n in contents(again.data()).items()}
    assert found == {longest[0]: 2, longest[1]: 1, longest[2]: 1}


def test_no_byte_of_what_was_deleted_is_kept() -> None:
    schema = Schema({"b": Bytes(), "x": WIDE})
    empty = Ledger(schema)
    ledger, updates = Ledger(schema), Updates(schema)
    record = schema.encode_record({"b": b"secret\0", "x": HIGH})
    assert record is not None
    updates.add_one(record, 1)
    ledger.apply(1, updates)
    assert b"secret\0" in ledger.state()
    updates = Updates(schema)
    updates.delete(Rows.from_tuples(schema, [record]), 1)
    ledger.apply(2, updates)
    check_internals(ledger)
    assert ledger.state() == empty.state()
    assert msgspec.msgpack.decode(ledger.state())["records"] == b""
