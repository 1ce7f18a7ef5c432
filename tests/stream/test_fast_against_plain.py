"""Every fast way gives what the plain one gives: batches in columns and frames, against the definition in plain Python
and statistics that gather one record at a time."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete, DeleteId, Erase, Point, Update, trajectory
from support.ledger_histories import contents
from support.tiers import in_turns, repeated
from support.totals import arrays

SCHEMA = {"name": ra.Text(missing="skip"), "n": ra.Integer(0, 20, missing="skip"), "kind": ra.Category(["x", "y"])}
STATISTICS = {
    "count": ra.Count(),
    "recent": ra.Count(window=2),
    "sum": ra.Sum("n", window=3),
    "mean": ra.GroupBy("kind", ra.Mean("n")),
    "names": ra.Histogram("name"),
    "recent names": ra.Histogram(["kind", "name"], window=2),
    "median": ra.Quantiles("n", [0.5]),
    "some": ra.Count(where={"n": {"min": 3}}),
    "every second": ra.Sum("n", every=2),
}
COLUMNS = {"id": "key", "subject": {"column": "owner", "optional": True}}
NAMES, IDS, OWNERS = ("a", "é", "", None, "b" * 70), ("i", "j", "k" * 9, "l" * 65, "é"), ("s", "t" * 20, None, None)
ROUNDS, HISTORIES = 6, 20


def stream() -> ra.Stream:
    key = ra.Key.for_testing(1)
    return ra.Stream(SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=64, columns=COLUMNS, key=key)


def history(chance: random.Random) -> tuple[tuple[Update, ...], ...]:
    """Late data and data from the future, copies, no-ops, erasures, missing values, several events on one id."""
    known = [(chance.choice(NAMES), chance.choice((0, 3, 20, None)), chance.choice("xy")) for _ in range(4)]

    def update(round: int) -> Update:
        value, owner = chance.choice(known), chance.choice(OWNERS)
        stamp = chance.choice((None, None, chance.randint(1, round), round + 1))
        match chance.randrange(8):
            case 0 | 1 | 2:
                return Add(value, stamp, None, owner)
            case 3 | 4:
                return Add(value, stamp, chance.choice(IDS), owner)
            case 5:
                return Delete(value, chance.randint(1, round), owner)
            case 6:
                return DeleteId(chance.choice(IDS))
        return Erase(chance.choice(OWNERS[:2]))

    counts = (chance.choice((0, 1, 3, 12, 40)) for _ in range(ROUNDS))
    return tuple(tuple(update(round) for _ in range(count)) for round, count in enumerate(counts, 1))


def kind(update: Update) -> Any:
    return type(update), isinstance(update, Add) and update.id is not None


def as_data(values: list[tuple[Any, ...]], chance: random.Random) -> Any:
    columns = {name: [value[place] for value in values] for place, name in enumerate(SCHEMA)}
    match chance.randrange(6):
        case 0:
            return [dict(zip(SCHEMA, value, strict=True)) for value in values]
        case 1:
            return columns
        case 2:
            return {name: np.array(column, dtype=object) for name, column in columns.items()}
        case 3:
            return polars.DataFrame(columns, schema={"name": polars.String, "n": polars.Int64, "kind": polars.String})
    table = pa.table(columns, schema=pa.schema({"name": pa.string(), "n": pa.int64(), "kind": pa.string()}))
    if chance.random() < 0.5:
        return table
    coded = table.column("name").combine_chunks().dictionary_encode()
    return table.set_column(0, "name", coded)


def as_texts(texts: list[str | None], chance: random.Random) -> Any:
    return texts if chance.random() < 0.5 else pa.array(texts, pa.string())


def feed(fast: ra.Stream, round: int, updates: tuple[Update, ...], chance: random.Random) -> None:
    """In batches of one kind, cut anywhere."""
    waiting = list(updates)
    while waiting:
        batch = [waiting.pop(0)]
        while waiting and kind(waiting[0]) == kind(batch[0]) and chance.random() < 0.9:
            batch.append(waiting.pop(0))
        if isinstance(batch[0], Erase):
            fast.erase(subject=[each.subject for each in batch])
        elif isinstance(batch[0], DeleteId):
            fast.delete(id=as_texts([each.id for each in batch], chance))
        else:
            data = as_data([each.value for each in batch], chance)
            named = {"subject": as_texts([each.subject for each in batch], chance)}
            if isinstance(batch[0], Delete):
                fast.delete(data, stamp=[each.stamp for each in batch], **named)
                continue
            if batch[0].id is not None:
                named["id"] = as_texts([each.id for each in batch], chance)
            fast.add(data, stamp=[round if each.stamp is None else each.stamp for each in batch], **named)


def encoded(point: Point) -> Point:
    name, number, letter = point.value
    return point._replace(value=(name, number, "xy".index(letter)))


def require_plain_totals(fast: ra.Stream, round: int, surviving: Counter[Point]) -> None:
    """Each statistic, from one record at a time."""
    schema = fast.specification.schema
    for name, running in fast._core.engine.running.items():
        bound = running.bound
        for view, totals in zip(bound.views, running.totals, strict=True):
            first, last = view.span(round)
            none = fast._core.ledger.rows_between(0, 0)[0]
            plain = running._gather(none, np.zeros(0, dtype=np.int64))
            for point, copies in surviving.items():
                if first <= point.stamp <= last:
                    row = schema.encode([dict(zip(SCHEMA, point.value, strict=True))])[0]
                    for _ in range(copies):
                        plain = plain + running._gather(row, np.ones(1, dtype=np.int64))
            found, expected = ([array.tolist() for array in arrays(each)] for each in (totals, plain))
            assert found == expected, (name, round)


@pytest.mark.parametrize("seed", repeated(2, 150))
def test_any_history_in_any_batches(seed: int) -> None:
    empty = stream()
    for number in range(HISTORIES):
        chance = random.Random(1000 * seed + number)
        sequence, key = history(chance), ra.Key.for_testing(1)
        fast = ra.Stream.from_state(empty.specification, empty.state(), key=key)
        for round, (updates, surviving) in enumerate(zip(sequence, trajectory(sequence), strict=True), 1):
            feed(fast, round, updates, chance)
            fast.close_round()
            assert contents(fast._core.ledger.data()) == Counter({encoded(p): n for p, n in surviving.items()})
            if number % 4 == 0:
                require_plain_totals(fast, round, surviving)


# One bad value in a large batch, on each way in


def broken(data: pa.Table, name: str) -> pa.Table:
    """A text that is not UTF-8, in the buffers of Arrow."""
    column = data.column(name).combine_chunks()
    content = bytearray(column.buffers()[2])
    content[5] = 0xFF
    spoilt = pa.Array.from_buffers(pa.string(), len(column), [None, column.buffers()[1], pa.py_buffer(bytes(content))])
    return data.set_column(data.column_names.index(name), name, spoilt)


def large(**changed: Any) -> dict[str, list[Any]]:
    columns = {"name": [f"name {k}" for k in range(500)], "n": [k % 21 for k in range(500)], "kind": ["x", "y"] * 250}
    columns |= {"key": [f"key {k}" for k in range(500)], "owner": [f"owner {k % 50}" for k in range(500)]}
    for name, value in changed.items():
        columns[name][321] = value
    return columns


FORMS = {
    "columns": lambda columns: columns,
    "arrays": lambda columns: {name: np.array(column, dtype=object) for name, column in columns.items()},
    "records": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    "arrow": pa.table,
    "polars": polars.DataFrame,
    "pandas": lambda columns: pa.table(columns).to_pandas(),
}


@pytest.mark.parametrize(("form", "durable"), in_turns(FORMS, [False, True]))
@pytest.mark.parametrize(
    ("fault", "message"), [({"n": 21}, "n, row 322"), ({"kind": "z"}, "kind, row 322"), ({"key": None}, "id")]
)
def test_one_bad_value_refuses_a_large_batch(tmp_path, form, fault, message, durable) -> None:
    require_refused(tmp_path, FORMS[form](large(**fault)), message, durable)


@pytest.mark.parametrize("name", ["name", "key", "owner"])
@pytest.mark.parametrize("durable", [False, True])
def test_broken_buffers_are_refused(tmp_path, name, durable) -> None:
    require_refused(tmp_path, broken(pa.table(large()), name), "Invalid UTF8 sequence", durable)


def require_refused(folder: Any, bad: Any, message: str, durable: bool) -> None:
    options = {"epsilon": 1.0, "delta": 1e-6, "horizon": 64, "columns": COLUMNS, "key": ra.Key.for_testing(1)}
    fast = ra.Stream.open(folder / "store", SCHEMA, STATISTICS, **options) if durable else stream()
    untouched = stream()
    for one in (fast, untouched):
        one.add(large())
        one.close_round()
    with pytest.raises(InputError, match=message):
        fast.add(bad)
    if durable:
        assert fast.store.inbox() == []
    assert fast.close_round().encode() == untouched.close_round().encode()
    assert fast.state() == untouched.state()
    if durable:
        fast.close()
