"""How fast the ledger takes updates, beside a plain Python dict that does the same job in the same run.

Run with `python benchmarks/ledger.py`. Every case ends with a check that ledger and dict hold the same data. The dict
gets its tuples ready made; the ledger starts from columns and also works out the change that statistics are fed with.
Where the system is slow to hand out memory (some sandboxes are), so is the ledger: MALLOC_TRIM_THRESHOLD_ and
MALLOC_MMAP_THRESHOLD_ set to a few gigabytes make glibc keep what it has.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retroact.ledger import Ledger, Operations, Stamped, Updates
from retroact.schema import Category, Integer, Number, Rows, Schema, Text

COUNTRIES = [f"country {k}" for k in range(200)]
PAST_ROUNDS = 20

SCHEMAS = {
    "one word: number, integer, category": Schema(
        {"amount": Number(0, 500, step="0.01"), "age": Integer(0, 120), "size": Category(["S", "M", "L"])}
    ),
    "two words: as above, two larger numbers": Schema(
        {
            "amount": Number(0, 500, step="0.01"),
            "age": Integer(0, 120),
            "size": Category(["S", "M", "L"]),
            "price": Integer(0, 2**40),
            "place": Integer(-(2**30), 2**30),
        }
    ),
    "one word with text: number, 200 texts": Schema({"amount": Number(0, 500, step="0.01"), "country": Text()}),
}


@dataclass
class Round:
    """The signed updates of one round, as columns."""

    added: Rows
    deleted: Rows
    deleted_stamps: np.ndarray


def random_rows(schema: Schema, count: int, random: np.random.Generator) -> Rows:
    columns = {}
    for name, field in schema.fields.items():
        if field.interned:
            columns[name] = np.array(COUNTRIES, dtype=object)[random.integers(0, len(COUNTRIES), count)]
        else:
            columns[name] = random.integers(field.lower, field.upper + 1, count)
    return Rows(columns, count)


def history(schema: Schema, count: int, random: np.random.Generator) -> tuple[list[Rows], Round]:
    """Rounds that leave `count` survivors, and one more with `count` updates: 80 % additions, 20 % deletions.

    A tenth of the deletions name what is not there.
    """
    past = [random_rows(schema, count // PAST_ROUNDS, random) for _ in range(PAST_ROUNDS)]
    survivors = Rows.concatenate(past)
    stamps = np.repeat(np.arange(1, PAST_ROUNDS + 1), count // PAST_ROUNDS)
    deletions = count // 5
    chosen = random.choice(survivors.count, deletions - deletions // 10, replace=False)
    deleted = Rows.concatenate([survivors.take(chosen), random_rows(schema, deletions // 10, random)])
    absent = random.integers(1, PAST_ROUNDS + 1, deletions // 10)
    return past, Round(
        random_rows(schema, count - deletions, random), deleted, np.concatenate([stamps[chosen], absent])
    )


def tuples(rows: Rows) -> list[tuple[object, ...]]:
    return list(zip(*(column.tolist() for column in rows.columns.values()), strict=True))


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ledger_of(schema: Schema, past: list[Rows]) -> Ledger:
    ledger = Ledger(schema)
    for stamp, rows in enumerate(past, start=1):
        updates = Updates(schema)
        updates.append(Operations(added=Stamped.of(rows, stamp)))
        ledger.apply(stamp, updates)
    return ledger


def apply_round(ledger: Ledger, schema: Schema, last: Round) -> None:
    updates = Updates(schema)
    updates.append(Operations(added=Stamped.of(last.added, PAST_ROUNDS + 1)))
    updates.append(Operations(deleted=Stamped.of(last.deleted, last.deleted_stamps)))
    ledger.apply(PAST_ROUNDS + 1, updates)


def apply_to_dict(data: dict, additions: list, deletions: list) -> None:
    for key in additions:
        data[key] = data.get(key, 0) + 1
    for key in deletions:
        copies = data.get(key, 0)
        if copies > 1:
            data[key] = copies - 1
        elif copies:
            del data[key]


def contents(ledger: Ledger) -> dict:
    data = ledger.data()
    return dict(zip(zip(data.stamps.tolist(), tuples(data.rows), strict=True), data.counts.tolist(), strict=True))


def bulk(name: str, schema: Schema, count: int, repeats: int) -> None:
    past, last = history(schema, count, np.random.default_rng(1))
    best = float("inf")
    for _ in range(repeats):
        ledger = ledger_of(schema, past)
        best = min(best, timed(lambda ledger=ledger: apply_round(ledger, schema, last)))

    data: dict = {}
    for stamp, rows in enumerate(past, start=1):
        apply_to_dict(data, [(stamp, record) for record in tuples(rows)], [])
    additions = [(PAST_ROUNDS + 1, record) for record in tuples(last.added)]
    deletions = list(zip(last.deleted_stamps.tolist(), tuples(last.deleted), strict=True))
    plain = timed(lambda: apply_to_dict(data, additions, deletions))
    assert contents(ledger) == data, "the ledger and the dict differ"
    report(name, count, best, plain)


def ids(name: str, schema: Schema, count: int, repeats: int) -> None:
    """80 % of the events place a record (half of those on ids that hold one already), 20 % empty an id."""
    random = np.random.default_rng(2)
    names = [f"order-{k}" for k in range(2 * count)]
    first, second = random_rows(schema, count, random), random_rows(schema, count - count // 5, random)
    placed = [names[k] for k in random.integers(count // 2, count + count // 2, second.count).tolist()]
    emptied = [names[k] for k in random.integers(0, count, count // 5).tolist()]

    best = float("inf")
    for _ in range(repeats):
        ledger = Ledger(schema)
        updates = Updates(schema)
        updates.append(Operations(placed=Stamped.of(first, 1), ids=names[:count]))
        ledger.apply(1, updates)

        def work(ledger: Ledger = ledger) -> None:
            updates = Updates(schema)
            updates.append(Operations(placed=Stamped.of(second, 2), ids=placed))
            updates.append(Operations(ids=emptied, emptied=range(len(emptied))))
            ledger.apply(2, updates)

        best = min(best, timed(work))

    data: dict = {id: (1, record) for id, record in zip(names[:count], tuples(first), strict=True)}
    records = tuples(second)

    def plain() -> None:
        for id, record in zip(placed, records, strict=True):
            data[id] = (2, record)
        for id in emptied:
            data.pop(id, None)

    spent = timed(plain)
    held = ledger.data()
    assert dict(zip(held.ids, zip(held.stamps.tolist(), tuples(held.rows), strict=True), strict=True)) == data, (
        "the ledger and the dict differ"
    )
    report(name, count, best, spent)


def small_rounds(name: str, schema: Schema, count: int) -> None:
    """Rounds of 1,000 updates against `count` survivors: what one round costs."""
    random = np.random.default_rng(3)
    past, _ = history(schema, count, random)
    ledger = ledger_of(schema, past)
    survivors, rounds = Rows.concatenate(past), 20

    def spent(share: float, start: int) -> float:
        times = []
        for round in range(start, start + rounds):
            deletions = int(1000 * share)
            updates = Updates(schema)
            updates.append(Operations(added=Stamped.of(random_rows(schema, 1000 - deletions, random), round)))
            chosen = random.choice(survivors.count, deletions, replace=False)
            stamps = chosen // (count // PAST_ROUNDS) + 1
            updates.append(Operations(deleted=Stamped.of(survivors.take(chosen), stamps)))
            times.append(timed(lambda round=round, updates=updates: ledger.apply(round, updates)))
        return 1e3 * float(np.median(times))

    without, with_deletions = spent(0, PAST_ROUNDS + 1), spent(0.2, PAST_ROUNDS + 1 + rounds)
    print(f"{name:<44} {without:8.2f} ms without deletions, {with_deletions:.2f} ms with 20 %")


def singles(schema: Schema, count: int) -> None:
    record = schema.encode_record({"amount": "12.50", "age": 31, "size": "M"})
    updates = Updates(schema)
    spent = timed(lambda: [updates.add_one(record, 1, None, None) for _ in range(count)])
    print(f"add_one: {1e9 * spent / count:.0f} ns a record; applying {count:,} of them", end=" ")
    print(f"{1e9 * timed(lambda: Ledger(schema).apply(1, updates)) / count:.0f} ns a record")


def report(name: str, count: int, best: float, plain: float) -> None:
    mine, theirs = count / best / 1e6, count / plain / 1e6
    print(f"{name:<44} {mine:8.1f} M/s {theirs:8.1f} M/s {mine / theirs:7.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="survivors, and updates in the timed round")
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many runs counts")
    arguments = parser.parse_args()
    print(f"{arguments.count:,} updates against {arguments.count:,} survivors, 80 % additions\n")
    print(f"{'':<44} {'ledger':>12} {'dict':>12} {'ratio':>9}")
    for name, schema in SCHEMAS.items():
        bulk(name, schema, arguments.count, arguments.repeats)
    one_word, two_words, text = SCHEMAS
    ids("ids, one word", SCHEMAS[one_word], arguments.count, arguments.repeats)
    print(f"\nrounds of 1,000 updates against {arguments.count:,} survivors")
    for name in (one_word, two_words, text):
        small_rounds(name, SCHEMAS[name], arguments.count)
    print()
    singles(SCHEMAS[one_word], min(arguments.count, 100_000))


if __name__ == "__main__":
    main()
