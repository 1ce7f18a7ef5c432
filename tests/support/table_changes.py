"""Changes for the tests of columnar feeds, and what they come to when a stream gets them one by one."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

import retroact as ra
from retroact.feeds.options import options_for
from retroact.feeds.play import open_feed
from retroact.stream.columns import ROLES
from retroact.stream.grid import Grid

SCHEMA = {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}
START = 1_767_225_600
HOURS = Grid(START, "1h", START + 6 * 3600)


def stream(**changed):
    return ra.Stream(
        changed.pop("schema", SCHEMA),
        changed.pop("statistics", {"n": ra.Count(), "sum": ra.Sum("amount"), "by": ra.Histogram("country")}),
        epsilon=8.0,
        delta=1e-3,
        horizon=64,
        key=ra.Key.for_testing(7),
        **changed,
    )


def released(rounds):
    """The published rounds, exactly."""
    return [(r.number, {name: (release.value, release.standard_error) for name, release in r.items()}) for r in rounds]


def options(into, source=None, *, ignore=True, **given):
    """What `retroact.feeds.play` makes of its keywords; other columns are passed over."""
    roles = {role: given.pop(role, None) for role in ROLES}
    name = given.pop("source_name", None) or (str(source) if isinstance(source, str | Path) else None)
    grid, late = given.pop("grid", None), given.pop("late", None)
    cut = {} if grid is None else dict(grid.spec())
    cut |= {"late_events": late, **{key: given.pop(key, None) for key in ("close_by", "contribution")}}
    found = options_for(into, name, roles, cut, **given)
    return replace(found, columns=found.columns.updated({"ignore": ignore}))


def play_table(into, source, options, publish=None, *, progress=None):
    """A table by options that are made already; ``progress`` is told how many rows are done, after each batch."""
    with open_feed(source, into.schema, options) as feed:
        return feed.play(into, publish, after=progress and (lambda: progress(feed.source.count)))


def play(source, into=None, *, progress=None, **given):
    into = into or stream()
    rounds = []
    totals = play_table(into, source, options(into, source, **given), rounds.append, progress=progress)
    return into, rounds, totals


def ends(source, **options):
    """What a source comes to: its releases, and the surviving data."""
    into, rounds, _ = play(source, **options)
    return released(rounds), into.state()


def person(country="DE", amount=12.5, age=31):
    return {"country": country, "amount": amount, "age": age}


def rows(*given, columns=()):
    """A table of dicts; what a dict does not have is null."""
    names = list(dict.fromkeys([*columns, *(name for row in given for name in row)]))
    return pa.table({name: [row.get(name) for row in given] for name in names})


def random_changes(count, seed=0, rounds=6):
    """Additions, updates, deletions and erasures over a few ids, in growing rounds."""
    random = np.random.default_rng(seed)
    numbers = np.sort(random.integers(1, rounds + 1, count))
    changes = []
    for number in numbers.tolist():
        kind = random.choice(["add", "add", "add", "delete", "erase"], p=[0.3, 0.3, 0.2, 0.15, 0.05])
        row = {"op": str(kind), "round": number}
        if kind == "erase":
            row["subject"] = f"u{random.integers(9)}"
        else:
            row["id"] = f"o{random.integers(count // 3 + 1)}"
        if kind == "add":
            row |= person(
                f"c{random.integers(4)}", float(np.round(random.random() * 500, 2)), int(random.integers(121))
            )
            row["subject"] = f"u{random.integers(9)}" if random.random() < 0.8 else None
        changes.append(row)
    return changes


def as_lines(changes, path):
    lines = []
    for row in changes:
        event = {name: row[name] for name in ("op", "id", "subject", "round") if row.get(name) is not None}
        if "country" in row:
            event["record"] = {name: row[name] for name in SCHEMA}
        lines.append(msgspec.json.encode(event))
    path.write_bytes(b"\n".join(lines))


def applied_by_hand(changes, rounds):
    into, published = stream(), []
    for number in range(1, rounds + 1):
        for row in changes:
            if row["round"] != number:
                continue
            if row["op"] == "add":
                into.add({name: row[name] for name in SCHEMA}, id=row["id"], subject=row.get("subject"))
            elif row["op"] == "delete":
                into.delete(id=row["id"])
            else:
                into.erase(subject=row["subject"])
        published.append(into.close_round())
    return released(published), into.state()


A, B, C = person("DE", 1.0, 10), person("FR", 2.0, 20), person("US", 3.0, 30)
