"""Erasures in a feed that find nothing: named by their lines, whatever the format, the batches and the stream."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.feeds import play
from retroact.feeds.totals import Missed
from support import table_changes
from support.table_changes import SCHEMA, as_lines, person, random_changes, rows, stream
from support.tiers import repeated

ROUNDS = 6


def found_one_by_one(changes):
    """The lines of erasures that find nothing, by a stream that gets the changes one at a time."""
    into, lines = stream(), []
    for line, row in enumerate(changes, start=1):
        while into.round < row["round"]:
            into.close_round()
        if row["op"] == "add":
            into.add({name: row[name] for name in SCHEMA}, id=row["id"], subject=row.get("subject"))
        elif row["op"] == "delete":
            into.delete(id=row["id"])
        elif not into.erase(subject=row["subject"]).found:
            lines.append(line)
    return lines


def rare(seed):
    """Many subjects, so that both happen often: some come only after their erasure."""
    random = np.random.default_rng(seed)
    changes = random_changes(500, seed, rounds=ROUNDS)
    for row in changes:
        if row.get("subject"):
            row["subject"] = f"u{random.integers(150)}"
        if row["op"] == "add" and random.random() < 0.4:
            row["id"] = None
    return changes


def as_csv(changes, path):
    names = ["op", "id", "subject", "round", *SCHEMA]
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, names)
        out.writeheader()
        out.writerows({name: "" if row.get(name) is None else row[name] for name in names} for row in changes)


@pytest.fixture
def everything_is_named(monkeypatch):
    monkeypatch.setattr("retroact.feeds.totals.NAMED", 10**6)


@pytest.fixture(params=[1, 7, 64, None], ids=lambda rows: f"batches of {rows}")
def batches(request, monkeypatch):
    """How many rows or lines are handed over at once; None: as many as usual."""
    if request.param is not None:
        monkeypatch.setattr("retroact.feeds.readers.csv.ROWS", request.param)
        monkeypatch.setattr("retroact.feeds.readers.arrow.ROWS", request.param)
        monkeypatch.setattr("retroact.feeds.source.BLOCK", 90 * request.param)


@pytest.mark.usefixtures("everything_is_named", "batches")
@pytest.mark.parametrize("form", ["lines", "csv", "table", "frame"])
@pytest.mark.parametrize("lasting", [False, True], ids=["memory", "store"])
@pytest.mark.parametrize("seed", repeated(1, 3))
def test_lines_are_those_of_a_stream_that_gets_one_change_at_a_time(tmp_path, form, lasting, seed):
    changes = rare(seed)
    expected = found_one_by_one(changes)
    assert 3 < len(expected) < sum(row["op"] == "erase" for row in changes) - 3
    path, source, unit = tmp_path / f"events.{'jsonl' if form == 'lines' else form}", None, "line"
    if form == "lines":
        as_lines(changes, path)
    elif form == "csv":
        as_csv(changes, path)
        expected = [line + 1 for line in expected]
    else:
        source, unit = rows(*changes, columns=["op", "id", "subject", "round"]), "row"
        if form == "table":
            pa.parquet = pytest.importorskip("pyarrow.parquet")
            path = tmp_path / "events.parquet"
            pa.parquet.write_table(source, path)
            source = None
    if not lasting:
        totals = play(stream(), path if source is None else source, rounds=ROUNDS)
    else:
        spec = stream().specification
        key, fence = ra.Key.for_testing(7), tmp_path / "the.fence"
        with ra.Stream.open(tmp_path / "s", specification=spec, key=key, fence=fence) as into:
            totals = play(into, path if source is None else source, rounds=ROUNDS, complete=form == "lines")
    assert (totals.missed.count, totals.missed.first, totals.missed.unit) == (len(expected), expected, unit)


@pytest.mark.usefixtures("everything_is_named")
def test_a_grid_counts_by_its_rounds(tmp_path):
    hour = [table_changes.START + 3600 * k + 60 for k in range(6)]
    changes = [
        {"op": "erase", "subject": "a", "time": hour[1]},  # when the record of hour 0 is gone
        {"op": "erase", "subject": "a", "time": hour[0]},  # before it
        {"op": "add", **person(), "subject": "a", "time": hour[0]},
        {"op": "add", **person(), "subject": "b", "time": hour[3]},
        {"op": "erase", "subject": "b", "time": hour[2]},
        {"op": "erase", "subject": "b", "time": hour[4]},
    ]
    _, _, totals = table_changes.play(rows(*changes), grid=table_changes.HOURS, time="time")
    assert totals.missed.first == [2, 1, 5]  # in the order of play
    path = tmp_path / "events.csv"
    names = ["op", "subject", "time", *SCHEMA]
    lines = [",".join(names)] + [",".join(str(row.get(name, "")) for name in names) for row in changes]
    path.write_text("\n".join(lines) + "\n")
    assert play(stream(), path, grid=table_changes.HOURS, time="time").missed.first == [3, 2, 6]


@pytest.mark.parametrize("form", ["lines", "frame"])
def test_subjects_that_are_numbers(tmp_path, form):
    changes = [{"op": "erase", "subject": 17}, {"op": "add", **person(), "subject": 17}, {"op": "erase", "subject": 17}]
    if form == "frame":
        assert play(stream(), rows(*changes)).missed.first == [1]
        return
    changes[1] = {"op": "add", "record": person(), "subject": "17"}
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in changes))
    assert play(stream(), path).missed.first == [1]


def test_copies_of_aggregated_input_are_counted():
    changes = [
        {"diff": 3, **person(), "subject": "a"},
        {"diff": 2, **person(age=5), "subject": "b"},
    ]
    into = stream()
    play(into, rows(*changes), contribution=3, close_by="end")
    assert [o.surviving for o in into.erase(subject=["a", "b"]).outcomes] == [3, 2]


def test_what_is_absorbed_erases_nothing(tmp_path):
    """A line that was taken before is no erasure, and what it would add is not there a second time."""
    path = tmp_path / "events.jsonl"
    events = [
        {"op": "add", "record": person(), "subject": "a", "at": 1},
        {"op": "erase", "subject": "b", "at": 2},
        {"op": "erase", "subject": "b", "at": 2},
        {"op": "erase", "subject": "a", "at": 3},
    ]
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    into = stream(columns={"subject": {"column": "subject", "optional": True}, "op": "op", "position": "at"})
    totals = play(into, path)
    assert (totals.absorbed, totals.missed.first) == (1, [2])


def test_a_refused_batch_misses_nothing(tmp_path):
    into = stream()
    changes = [{"op": "erase", "subject": "a"}, {"op": "add", **person(amount=1e9), "subject": "a"}]
    with pytest.raises(InputError, match="row 2"):
        play(into, rows(*changes))
    assert play(into, rows({"op": "add", **person(), "subject": "b"})).missed.count == 0


def test_a_barred_record_was_not_there(tmp_path):
    spec = ra.Specification(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=9, after_erasure="reject")
    with ra.Stream.open(tmp_path / "s", specification=spec, key=ra.Key.for_testing(8)) as into:
        into.erase(subject="a")
        into.close_round()
        changes = [{"op": "add", **person(), "subject": "a"}, {"op": "erase", "subject": "a"}]
        assert play(into, rows(*changes)).missed.first == [2]


def test_erasures_of_a_stream_without_subjects_are_refused(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"op": "erase", "subject": "a"}\n')
    for source in (path, rows({"op": "erase", **person()})):
        into = stream(columns={"op": "op"})
        with pytest.raises(InputError, match="has no subjects"):
            play(into, source)


def test_the_list_is_bounded():
    found = Missed()
    found.add("orders.csv", "line", list(range(1, 4)))
    found.add("orders.csv", "line", list(range(1000, 1100)))
    assert found.count == 103
    words = "orders.csv: no record was found for 103 erasures (lines 1, 2, 3, 1,000, 1,001 and 98 more)"
    assert found.words() == words
    assert (found.count, found.untold) == (103, 0)
    found.add("orders.csv", "row", [7])
    assert found.words() == "orders.csv: no record was found for 1 erasure (row 7)"


def test_many_erasures_do_not_scan_the_ledger_one_by_one(monkeypatch):
    into = stream()
    count = 2000
    play(into, rows(*({"op": "add", **person(), "subject": f"u{k}"} for k in range(count))))
    asked = []
    own = type(into._core.ledger).of_subjects

    def counted(ledger, who):
        asked.append(len(who))
        return own(ledger, who)

    monkeypatch.setattr(type(into._core.ledger), "of_subjects", counted)
    totals = play(into, rows(*({"op": "erase", "subject": f"u{2 * k}"} for k in range(count)), columns=SCHEMA))
    assert (asked, totals.missed.count) == ([count], count // 2)
