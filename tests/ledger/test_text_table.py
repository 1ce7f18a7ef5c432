"""Texts are found exactly, whatever their hashes; and nothing of a text stays behind."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retroact as ra
from retroact.ledger import text_table
from retroact.ledger.text_table import TextTable, grouped
from retroact.texts import Texts
from support.ledger_histories import check_table

# none, one and several words, the same bytes with and without zeros behind, and texts too long for columns
SOME = ["", "a", "b", "a\0", "ab", "12345678", "123456789", "Zürich", "x" * 64, "x" * 65, "x" * 66, "y" * 200]


def colliding(kinds: int):
    """Hashes of the full 64 bits, of which there are only so many."""

    def mixed_into(self: Texts, mark: np.ndarray, digest: object) -> np.ndarray:
        return np.array([sum((text or "").encode()) % kinds for text in self.strings()], dtype=np.uint64)

    return mixed_into


@pytest.mark.parametrize("kinds", [0, 1, 3])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from(SOME), max_size=8)), max_size=8))
def test_a_table_is_a_set_of_texts_whatever_the_hashes(steps, kinds, monkeypatch) -> None:
    if kinds:
        monkeypatch.setattr(Texts, "mixed_into", colliding(kinds))
    table, held = TextTable(), {}
    for adds, texts in steps:
        first = grouped(Texts.of(texts))
        assert [texts[k] for k in first.tolist()] == texts
        assert len({*first.tolist()}) == len({*texts})
        assert table.find(Texts.of(texts)).tolist() == [held.get(text, -1) for text in texts]
        if adds:
            new = [text for text in dict.fromkeys(texts) if text not in held]
            held.update(zip(new, table.insert(Texts.of(new)).tolist(), strict=True))
        else:
            gone = [held.pop(text) for text in dict.fromkeys(texts) if text in held]
            table.remove(np.array(gone, dtype=np.int64))
            table.shrink()
        check_table(table)
        assert table[np.array([*held.values()], dtype=np.int64)].strings() == [*held]


def test_texts_come_and_go_by_thousands() -> None:
    table, held, random = TextTable(), {}, np.random.default_rng(1)
    for step in range(12):
        new = [f"{step}-{k}" * (1 + k % 3) for k in range(int(random.integers(1, 3000)))]
        held.update(zip(new, table.insert(Texts.of(new)).tolist(), strict=True))
        gone = [text for text in held if random.random() < (0.97 if step % 4 == 3 else 0.4)]
        table.remove(np.array([held.pop(text) for text in gone], dtype=np.int64))
        assert (table.find(Texts.of(gone)) == -1).all()
        check_table(table)
        table.shrink()
        check_table(table)
        if table.sparse:
            table, old = table.compacted()
            assert old.tolist() == sorted(held.values())
            held = {text: int(np.searchsorted(old, number)) for text, number in held.items()}
            check_table(table)


@pytest.mark.parametrize("bad", [0, False, b"", 0.0, (), 7])
def test_what_is_no_text_is_refused_beside_missing_ones(bad) -> None:
    with pytest.raises(ra.InputError, match=f"expected a text, got {re.escape(repr(bad))} - at id"):
        Texts.of([None, "a", bad], place="id")


def test_no_memory_to_shrink_is_no_reason_to_fail(monkeypatch) -> None:
    """The room that was reserved for an edit is enough to carry it out, and what is removed is overwritten."""

    def fail(self: TextTable, more: int) -> None:
        raise MemoryError

    table = TextTable()
    numbers = table.insert(Texts.of([f"removed-{k:05}" for k in range(4000)]))
    new = Texts.of([f"new-{k}" for k in range(50)])
    table.reserve(len(new), int(new.counts.sum()))
    with monkeypatch.context() as patch:
        patch.setattr(TextTable, "_tidy", fail)
        patch.setattr(TextTable, "_rehash", fail)
        table.remove(numbers[5:])
        held = table.insert(new)
        table.shrink()
    check_table(table)
    assert b"removed-00005" not in table._words.tobytes()
    before = len(table._words), len(table._table)
    table.shrink()
    check_table(table)
    assert (len(table._words), len(table._table)) < before
    assert table[held].strings() == new.strings()
    assert table.find(Texts.of(["removed-00004", "removed-00005"])).tolist() == [4, -1]


STATISTICS = {
    "orders": ra.Count(),
    "countries": ra.Histogram("country"),
    "recent": ra.Count(window=2),
    "recent countries": ra.Histogram("country", window=2),
    "customers": ra.Distinct("country"),
    "amounts": ra.Quantiles("amount", [0.5]),
    "mean": ra.Mean("amount"),
    "places": ra.KMeans("place", 2),
}


def orders(folder: Path | None = None) -> ra.Stream:
    schema = {"country": ra.Text(), "amount": ra.Integer(0, 1 << 38), "place": ra.Vector(2, radius=1, step=STEP)}
    columns = {"id": "order", "subject": {"column": "customer", "optional": True}}
    key = ra.Key.for_testing(3)
    made = ra.Stream if folder is None else partial(ra.Stream.open, folder / "orders", fence=folder / "fence")
    return made(schema, STATISTICS, epsilon=100.0, delta=1e-6, horizon=64, columns=columns, key=key)


SECRET = {"order": "order of the secret", "customer": "customer of the secret", "country": "land of the secret"}
AMOUNT, PLACE, STEP = 0x2EC2E75EC2, 0x14C0FFEE, 2.0**-30


def table_of(rows: range, *secrets: int) -> pyarrow.Table:
    columns = {
        "order": [f"order-{k}" for k in rows],
        "customer": [f"customer-{k % 7}" for k in rows],
        "country": [f"land-{k % 5}" for k in rows],
    }
    for name, column in columns.items():
        for place in secrets:
            column[place] = SECRET[name] + (str(place) if name == "order" else "")
    columns["amount"] = [AMOUNT if k in secrets else k for k in range(len(rows))]
    columns["place"] = [[PLACE * STEP, 0.5] if k in secrets else [k / 1000, 0.25] for k in range(len(rows))]
    return pyarrow.table(columns)


def played(*, erased: bool) -> ra.Stream:
    stream = orders()
    stream.add(
        table_of(range(500), 3, 400) if erased else table_of(range(500)).filter([k not in (3, 400) for k in range(500)])
    )
    stream.close_round()
    stream.add(
        table_of(range(400, 700), 7) if erased else table_of(range(400, 700)).filter([k != 7 for k in range(300)])
    )
    stream.delete(id=[f"order-{k}" for k in range(0, 90, 3) if k != 3])
    if erased:
        stream.erase(subject=SECRET["customer"])
    stream.close_round()
    return stream


def test_the_hash_of_a_process_changes_nothing(monkeypatch) -> None:
    states, releases = [], []
    for seed in (1, 2):
        monkeypatch.setattr(text_table, "_SEED", np.uint64(seed))
        monkeypatch.setattr(text_table, "_KEY", bytes([seed]) * 32)
        stream = played(erased=True)
        states.append(stream.state())
        releases.append(stream.close_round().encode())
    assert states[0] == states[1]
    assert releases[0] == releases[1]


def referred(thing: object) -> list[object]:
    """What an object refers to: also keys that are texts, which `get_referents` leaves out, and what functions hold,
    but not all else in their modules."""
    if isinstance(thing, FunctionType):
        return [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
    more = gc.get_referents(thing)
    if isinstance(thing, dict):
        more += thing
    if isinstance(thing, np.ndarray):
        more += [thing.base] + (thing.tolist() if thing.dtype == object else [])
    return more


def of_modules() -> list[object]:
    """What the package itself could keep: in its modules, its classes and the caches of its functions."""
    own = [vars(module) for name, module in sys.modules.items() if name.split(".")[0] == "retroact"]
    classes = {each for names in own for each in names.values() if isinstance(each, type)}
    return [*own, *(dict(vars(each)) for each in classes if each.__module__.startswith("retroact"))]


def reachable(*start: object) -> Iterator[object]:
    """Everything that can be reached from some objects, but for modules and classes."""
    seen, waiting = {id(each) for each in start}, [*start]
    while waiting:
        thing = waiting.pop()
        yield thing
        for other in referred(thing):
            if id(other) not in seen and not isinstance(other, ModuleType | type):
                seen.add(id(other))
                waiting.append(other)


def found_in(stream: ra.Stream) -> set[str]:
    """Which secrets are in a text, a number or a buffer that the stream or the package still reaches."""
    needles = {name: text.encode() for name, text in SECRET.items()}
    needles |= {"amount": AMOUNT.to_bytes(8, "little"), "place": PLACE.to_bytes(8, "little")}
    found = set()
    for thing in reachable(stream, *of_modules()):
        if isinstance(thing, str):
            content = thing.encode(errors="replace")
        elif isinstance(thing, int | float | np.number):
            found |= {name for name, number in (("amount", AMOUNT), ("place", PLACE)) if thing == number}
            continue
        elif isinstance(thing, np.ndarray) and thing.dtype != object:
            content = thing.tobytes()
        elif isinstance(thing, bytes | bytearray | memoryview | pyarrow.Buffer):
            content = bytes(thing)
        else:
            continue
        found |= {name for name, needle in needles.items() if needle in content}
    ledger = stream._core.ledger
    for held in (ledger._multiset, ledger._registers):
        if (ledger._keys.layout.field("amount", held._words) == AMOUNT).any():
            found.add("amount")
    return found


def planted(kind: str, secret: str) -> object:
    if kind == "list":
        return [secret]
    if kind == "key":
        return {secret: 1}
    if kind == "closure":
        return lambda: secret
    if kind == "default":
        return lambda text=secret: text
    if kind == "cache":
        cached = lru_cache(lambda text: len(text))
        cached(secret)
        return cached
    return partial(print, secret)


@pytest.mark.parametrize("kind", ["list", "key", "closure", "default", "cache", "partial"])
def test_a_planted_secret_is_found(kind: str, monkeypatch) -> None:
    stream = played(erased=True)
    assert found_in(stream) == set()
    secret = SECRET["customer"] + "!"
    stream._core.engine.planted = planted(kind, secret)
    assert found_in(stream) == {"customer"}
    del stream._core.engine.planted
    assert found_in(stream) == set()
    monkeypatch.setattr(text_table, "_planted", planted(kind, secret), raising=False)
    assert found_in(stream) == {"customer"}


@pytest.mark.parametrize("durable", [False, True])
def test_after_an_erasure_no_buffer_of_the_stream_has_id_subject_or_values(durable: bool, tmp_path: Path) -> None:
    stream = orders(tmp_path if durable else None)
    given = table_of(range(500), 3, 400)
    stream.add(given)
    assert found_in(stream) >= {"order", "customer", "country", "amount"}
    stream.close_round()
    assert found_in(stream) >= {"order", "customer", "country", "amount"}
    stream.erase(subject=SECRET["customer"])
    stream.close_round()
    assert found_in(stream) == set()
    if durable:
        assert not any(SECRET["customer"].encode() in path.read_bytes() for path in (tmp_path / "orders").iterdir())
        stream.close()
    assert found_in(played(erased=True)) == set()
    assert played(erased=True).state() == played(erased=False).state()
