"""Records by one, by many, in columns and frames are the same; what is bad changes nothing."""

import math

import numpy as np
import pyarrow as pa
import pytest

import retroact as ra
from support.order_streams import ORDER, SCHEMA, stream


def test_one_many_columns_and_frames_are_the_same():
    records = [{"country": c, "amount": a, "age": g} for c, a, g in [("DE", 1.5, 20), ("é", 2, 30), ("DE", 0, 40)]]
    columns = {name: [r[name] for r in records] for name in SCHEMA}
    frame = pa.table(columns)
    ways = [
        lambda s: [s.add(r, subject=f"u{i}") for i, r in enumerate(records)],
        lambda s: s.add(records, subject=["u0", "u1", "u2"]),
        lambda s: s.add({k: np.array(v) for k, v in columns.items()}, subject=np.array(["u0", "u1", "u2"])),
        lambda s: s.add(frame, subject=pa.array(["u0", "u1", "u2"])),
        lambda s: s.add(frame.to_batches()[0], subject=("u0", "u1", "u2")),
    ]
    states = []
    for way in ways:
        s = stream()
        way(s)
        s.close_round()
        states.append(s.state())
    assert len(set(states)) == 1


def test_batches_delete_by_value_and_id():
    s = stream()
    s.add([ORDER, ORDER, {**ORDER, "age": 5}], id=["a", "b", "c"])
    s.add([ORDER] * 3)
    s.close_round()
    s.delete(id=["a", "c", "zz"])
    s.delete([ORDER, ORDER], stamp=[1, 1])
    applied = s.close_round().applied
    assert (applied.removed, applied.ignored_deletions) == (4, 1)


BAD_RECORDS = [
    ({"country": "DE", "amount": 12.5}, "no 'age'"),
    ({**ORDER, "extra": 1}, "unknown field 'extra'"),
    ({**ORDER, "amount": 501}, "amount"),
    ({**ORDER, "amount": -1}, "amount"),
    ({**ORDER, "amount": math.nan}, "amount"),
    ({**ORDER, "amount": math.inf}, "amount"),
    ({**ORDER, "amount": "many"}, "amount"),
    ({**ORDER, "amount": None}, "amount"),
    ({**ORDER, "age": 10**40}, "age"),
    ({**ORDER, "age": 2.5}, "age"),
    ({**ORDER, "age": True}, "age"),
    ({**ORDER, "country": 5}, "country"),
    ({**ORDER, "country": "\ud800"}, "country"),
    ({k: [v, v] if k != "age" else [v] for k, v in ORDER.items()}, "equal length"),
    ([ORDER, {**ORDER, "age": -1}], "age, row 2"),
    (42, "expected a record"),
    ("text", "expected a record"),
]


@pytest.mark.parametrize(("bad", "place"), BAD_RECORDS)
def test_bad_records_change_nothing(bad, place):
    s, untouched = stream(), stream()
    for one in (s, untouched):
        one.add(ORDER, id="o-1", subject="u1")
    with pytest.raises(ra.InputError, match=place):
        s.add(bad)
    with pytest.raises(ra.InputError, match=place):
        s.delete(bad, stamp=1)
    assert s.close_round().encode() == untouched.close_round().encode()
    assert s.state() == untouched.state()


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"id": 1.5}, "id"), ({"id": ""}, "id"), ({"id": True}, "id"), ({"id": ["a", "b", "c"]}, "id"),
        ({"subject": b"x"}, "subject"), ({"subject": "\udfff"}, "subject"), ({"stamp": 0}, "stamp"),
        ({"stamp": -3}, "stamp"), ({"stamp": 1.0}, "stamp"), ({"stamp": "1"}, "stamp"), ({"stamp": True}, "stamp"),
    ],
)  # fmt: skip
def test_bad_names_and_stamps_change_nothing(options, place):
    s, untouched = stream(), stream()
    with pytest.raises(ra.InputError, match=place):
        s.add(ORDER, **options)
    with pytest.raises(ra.InputError, match=place):
        s.add([ORDER, ORDER], **options)
    assert s.close_round().encode() == untouched.close_round().encode()


@pytest.mark.parametrize(
    "bad", [{}, {"id": "a", "data": ORDER}, {"id": None}, {"id": "a", "stamp": 1}, {"id": ["a", None]}]
)
def test_bad_deletions(bad):
    s = stream()
    with pytest.raises(ra.InputError):
        s.delete(**bad)


@pytest.mark.parametrize("bad", [None, "", 1.5, ["a", None], b"a", {"a": 1}])
def test_bad_erasures(bad):
    with pytest.raises(ra.InputError, match="subject"):
        stream().erase(subject=bad)


def test_huge_stamps_are_in_the_future():
    s = stream()
    assert s.add(ORDER, stamp=10**30) is None
    s.delete(ORDER, stamp=10**30)
    applied = s.close_round().applied
    assert (applied.ignored_additions, applied.ignored_deletions) == (1, 1)
