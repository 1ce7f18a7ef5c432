"""Nothing tells of what is gone; a round that fails leaves everything as it was; stored states are checked."""

from __future__ import annotations

import hashlib
import pickle
import random
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.ledger import Ledger
from retroact.ledger.multiset import Multiset
from retroact.ledger.registers import Registers
from retroact.schema import Integer, Rows, Schema, Text
from support.ledger_histories import WORLDS, check_internals, contents, histories, play
from support.updates_by_hand import Updates

SCHEMA = Schema({"t": Text(), "n": Integer(0, 1000)})
SECRETS = ("secret text", "secret id", "secret subject")
SECRET_NUMBER = 777


def internals(ledger: Ledger) -> list[object]:
    return [value for name, value in vars(ledger).items() if name != "schema"]


def reachable(thing: object, seen: set[int]) -> Iterator[object]:
    """Everything that can be reached through attributes and containers, whole buffers included."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield thing
    if isinstance(thing, np.ndarray):
        base = thing if thing.base is None else thing.base
        yield from reachable(base, seen)
        parts: list[object] = base.tolist() if isinstance(base, np.ndarray) else []
    elif isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set):
        parts = list(thing)
    else:
        parts = list(getattr(thing, "__dict__", {}).values())
        parts += [getattr(thing, name) for name in getattr(type(thing), "__slots__", ()) if hasattr(thing, name)]
    for part in parts:
        yield from reachable(part, seen)


def assert_no_trace(ledger: Ledger) -> None:
    frozen = pickle.dumps(internals(ledger)) + ledger.state()
    for secret in SECRETS:
        assert secret.encode() not in frozen
        assert secret not in {thing for thing in reachable(internals(ledger), set()) if isinstance(thing, str)}
    for words in (ledger._multiset._words, ledger._registers._words):
        assert not (ledger._keys.layout.field("n", words) == SECRET_NUMBER).any()


def populated() -> Ledger:
    ledger, updates = Ledger(SCHEMA), Updates(SCHEMA)
    for k in range(40):
        updates.add_one((f"text {k % 6}", k), 1, f"id {k}" if k % 2 else None, f"subject {k % 4}" if k % 3 else None)
    ledger.apply(1, updates)
    return ledger


def with_secrets(updates: Updates, stamp: int) -> Updates:
    record = (SECRETS[0], SECRET_NUMBER)
    updates.add_one(record, stamp, None, SECRETS[2])
    updates.add_one(record, stamp, SECRETS[1], SECRETS[2])
    updates.add(Rows.from_tuples(SCHEMA, [record] * 3), stamp, SECRETS[2])
    return updates


def test_the_search_finds_what_is_there() -> None:
    ledger = populated()
    ledger.apply(2, with_secrets(Updates(SCHEMA), 2))
    with pytest.raises(AssertionError):
        assert_no_trace(ledger)


@pytest.mark.parametrize("stamp", [1, 2])
@pytest.mark.parametrize("same_round", [True, False])
@pytest.mark.parametrize("way", ["erase", "delete", "replace"])
def test_no_trace_of_what_is_gone(stamp: int, same_round: bool, way: str) -> None:
    never = populated()
    ledger, updates = populated(), with_secrets(Updates(SCHEMA), stamp)
    if not same_round:
        ledger.apply(2, updates)
        updates = Updates(SCHEMA)
    if way == "erase":
        updates.erase([SECRETS[2]])
    else:
        updates.delete(Rows.from_tuples(SCHEMA, [(SECRETS[0], SECRET_NUMBER)] * 4), stamp, SECRETS[2])
        if way == "replace":
            updates.add_one(("text 1", 1), stamp, SECRETS[1], None)
        updates.delete_ids([SECRETS[1]])
    change = ledger.apply(3, updates)
    assert change.ignored_deletions == 0
    check_internals(ledger)
    assert_no_trace(ledger)
    assert ledger.state() == never.state()


def test_no_trace_of_a_round_in_which_nothing_survives() -> None:
    ledger = populated()
    updates = with_secrets(Updates(SCHEMA), 9)
    updates.delete(Rows.from_tuples(SCHEMA, [(SECRETS[0], SECRET_NUMBER)]), 1, SECRETS[2])
    updates.delete_ids([SECRETS[1]])
    updates.erase([SECRETS[2]])
    change = ledger.apply(2, updates)
    assert (change.added, change.removed, change.ignored_additions, change.ignored_deletions) == (0, 0, 5, 2)
    assert_no_trace(ledger)
    assert ledger.state() == populated().state()


def test_numbers_shrink_back_after_great_losses() -> None:
    ledger, updates = populated(), Updates(SCHEMA)
    small = ledger._keys.layout.widths
    for k in range(3000):
        updates.add_one((f"passing {k}", 1), 2, f"passing {k}" if k % 2 else None, f"passing {k}")
    ledger.apply(2, updates)
    assert ledger._keys.layout.widths != small
    updates = Updates(SCHEMA)
    updates.erase([f"passing {k}" for k in range(3000)])
    ledger.apply(3, updates)
    check_internals(ledger)
    assert ledger._keys.layout.widths == small
    assert len(ledger._registers._words[0]) < 256
    assert b"passing" not in pickle.dumps(internals(ledger))
    assert ledger.state() == populated().state()


def out_of_bounds(updates: Updates) -> None:
    updates.add_one(("fine", 1001), 2)


def no_utf8_text(updates: Updates) -> None:
    updates.add_one(("\ud800", 1), 2)


def no_utf8_subject(updates: Updates) -> None:
    updates.add_one(("fine", 1), 2, None, "\ud800")


def no_utf8_id(updates: Updates) -> None:
    updates.add_one(("fine", 1), 2, "\ud800", "s")


def no_text(updates: Updates) -> None:
    updates.add_one((5, 1), 2)


def floats(updates: Updates) -> None:
    updates.add(Rows({"t": np.array(["x"], dtype=object), "n": np.array([1.0])}, 1), 2)


@pytest.mark.parametrize("spoil", [out_of_bounds, no_utf8_text, no_utf8_subject, no_utf8_id, no_text, floats])
def test_a_round_that_is_refused_changes_nothing(spoil) -> None:
    ledger, updates = populated(), with_secrets(Updates(SCHEMA), 2)
    updates.erase(["subject 1"])
    spoil(updates)
    with pytest.raises(InputError):
        ledger.apply(2, updates)
    check_internals(ledger)
    assert_no_trace(ledger)
    assert ledger.state() == populated().state()


@pytest.mark.parametrize(
    "failing", [(Multiset, "plan"), (Registers, "plan"), (Registers, "reserve"), (Multiset, "apply")]
)
def test_a_round_that_fails_changes_nothing_and_can_be_repeated(failing, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    ledger, updates = populated(), with_secrets(Updates(SCHEMA), 2)
    with monkeypatch.context() as patch:
        patch.setattr(*failing, fail)
        with pytest.raises(MemoryError):
            ledger.apply(2, updates)
    check_internals(ledger)
    assert_no_trace(ledger)
    assert ledger.state() == populated().state()
    again = populated()
    again.apply(2, with_secrets(Updates(SCHEMA), 2))
    ledger.apply(2, updates)
    assert ledger.state() == again.state()


def test_a_change_that_is_planned_and_dropped_leaves_nothing() -> None:
    ledger, updates = populated(), with_secrets(Updates(SCHEMA), 2)
    change = ledger.plan(2, updates)
    assert (change.added, len(ledger)) == (5, 40)
    ledger.drop(change)
    check_internals(ledger)
    assert_no_trace(ledger)
    assert ledger.state() == populated().state()
    with pytest.raises(InputError, match="expected the change that was planned last"):
        ledger.commit(change)
    assert ledger.apply(2, updates).added == 5


@pytest.mark.parametrize(
    "wrong",
    [
        lambda updates, rows: updates.add(rows, 0),
        lambda updates, rows: updates.add_one(("x", 1), 0),
        lambda updates, rows: updates.add(rows, np.array([1])),
        lambda updates, rows: updates.add(rows, 1.0),
        lambda updates, rows: updates.add(rows, 1, ["s"]),
        lambda updates, rows: updates.add(rows, 1, None, ["i"]),
        lambda updates, rows: updates.add(rows, 1, None, "ij"),
        lambda updates, rows: updates.delete(rows, np.array([[1, 1]])),
        lambda updates, rows: updates.delete_ids("ij"),
        lambda updates, rows: updates.erase("st"),
        lambda updates, rows: updates.erase([None]),
    ],
)
def test_what_is_wrong_on_its_face_is_refused_on_arrival(wrong) -> None:
    updates = Updates(SCHEMA)
    with pytest.raises(InputError):
        wrong(updates, Rows.from_tuples(SCHEMA, [("x", 1), ("y", 2)]))
    assert len(updates) == 0


def test_wrong_rounds_and_schemas_are_refused() -> None:
    with pytest.raises(InputError):
        Ledger(SCHEMA).apply(0, Updates(SCHEMA))
    with pytest.raises(InputError):
        Ledger(SCHEMA).apply(1, Updates(WORLDS["text"][0]))


def test_the_format_does_not_change_unnoticed() -> None:
    """Change the version of the format with this digest, and keep reading the old one."""
    digest = hashlib.sha256(populated().state()).hexdigest()
    assert digest == "99e8f3b21a4f2515fbfee223c40dc077da54da895fc69ae5fb6956bda572c66b"


def test_an_empty_ledger_has_a_state_too() -> None:
    for schema, _ in WORLDS.values():
        ledger = Ledger(schema)
        assert Ledger.from_state(schema, ledger.state()).state() == ledger.state()
        assert len(ledger) == len(ledger.data()) == 0
        assert ledger.rows_between(1, 1)[0].count == 0


def test_states_of_another_version_or_schema_are_refused() -> None:
    state = msgspec.msgpack.decode(populated().state())
    for key, value in [("version", 1), ("format", "other"), ("fields", ["t"]), ("records", []), ("missing", ["t"])]:
        with pytest.raises(InputError):
            Ledger.from_state(SCHEMA, msgspec.msgpack.encode({**state, key: value}))
    with pytest.raises(InputError):
        Ledger.from_state(Schema({"t": Text(), "n": Integer(0, 5)}), populated().state())


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_spoilt_state_is_refused_or_is_a_state(data: st.DataObject) -> None:
    state = msgspec.msgpack.decode(populated().state())
    parts = msgspec.msgpack.decode(state["records"])
    key = data.draw(st.sampled_from([*sorted(state), *range(len(parts))]))
    value = state[key] if isinstance(key, str) else parts[key]
    if isinstance(key, int) and isinstance(value, bytes) and data.draw(st.booleans()):
        numbers = np.frombuffer(value, dtype="<i8").copy()
        numbers[data.draw(st.integers(0, len(numbers) - 1))] = data.draw(
            st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 41)
        )
        value = numbers.tobytes()
    elif isinstance(value, list) and isinstance(key, int) and data.draw(st.booleans()):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(
            st.one_of(st.none(), st.integers(-5, 5), st.binary(max_size=2), st.text(max_size=2))
        )
    else:
        value = data.draw(
            st.one_of(st.none(), st.integers(-5, 5), st.binary(), st.lists(st.text(max_size=2), max_size=3))
        )
    if isinstance(key, int):
        parts[key] = value
        key, value = "records", msgspec.msgpack.encode(parts)
    try:
        ledger = Ledger.from_state(SCHEMA, msgspec.msgpack.encode({**state, key: value}))
    except InputError:
        return
    check_internals(ledger)
    assert contents(Ledger.from_state(SCHEMA, ledger.state()).data()) == contents(ledger.data())


@settings(max_examples=40, deadline=None)
@given(histories(WORLDS["text"][1]), st.binary(max_size=20), st.integers(0, 400))
def test_torn_states_are_refused(sequence: tuple, junk: bytes, cut: int) -> None:
    schema, _ = WORLDS["text"]
    ledger = Ledger(schema)
    for round, updates in enumerate(sequence, start=1):
        play(ledger, round, updates, random.Random(0))
    state = ledger.state()
    with pytest.raises(InputError):
        Ledger.from_state(schema, junk)
    with pytest.raises(InputError):
        Ledger.from_state(schema, state[: min(cut, len(state) - 1)])
