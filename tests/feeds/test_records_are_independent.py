"""No record changes what becomes of another one: neither its presence, nor its id, nor its round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.feeds import Grid
from retroact.feeds.grid import cells_of
from support.feed_shop import CLOSE, LENIENT, Played, row, shop, written

ID = row("DE", 10, id="a")
NONE = row("FR", 20)


def counts() -> ra.Stream:
    key = ra.Key.for_testing(3)
    return ra.Stream({"*": ra.Integer(0, 0)}, {"n": ra.Count()}, epsilon=1.0, horizon=9, columns=LENIENT, key=key)


ENVELOPES: dict[str, Any] = {
    "Flink": (lambda r: {"op": "+I", **r}, lambda r: {"op": "upsert", **r}, lambda r: {"op": "-D", **r}),
    "insert/delete": (lambda r: {"insert": r}, lambda r: {"update": r}, lambda r: {"delete": r}),
    "Debezium": (
        lambda r: {"op": "c", "after": r},
        lambda r: {"op": "u", "before": None, "after": r},
        lambda r: {"op": "d", "before": r},
    ),
    "weights": (lambda r: {"diff": 1, **r}, lambda r: {"diff": 1, **r}, lambda r: {"diff": -1, **r}),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_first_row_does_not_decide_whether_there_are_ids(name: str, tmp_path: Path) -> None:
    insert, update, delete = ENVELOPES[name]
    path = tmp_path / "e.jsonl"
    lines = [insert(ID), update(ID), update(ID), insert(NONE)]
    states = {Played(written(path, order)).surviving for order in (lines, [lines[3], *lines[:3]])}
    assert len(states) == 1
    for first in (NONE, ID):
        # by id alone, and by value with a stamp
        gone = [delete({"id": "a"}), delete({**NONE, "stamp": 1}), CLOSE]
        played = Played(written(path, [insert(first), insert(NONE if first is ID else ID), CLOSE, *gone]))
        assert played.totals.removed == 2
        for lacking in ({"id": None}, {"country": "DE"}, {**NONE, "stamp": "x"}, NONE):
            with pytest.raises(InputError, match=r"e.jsonl:2: "):
                Played(written(path, [insert(first), delete(lacking)]))
        if name != "weights":
            with pytest.raises(InputError, match=r"e.jsonl:2: (an update replaces|expected the row before)"):
                Played(written(path, [insert(first), update(NONE)]))


def test_weights_are_taken_in_the_order_of_arrival(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    old, new = {"id": "a", **row("DE", 1)}, {"id": "a", **row("FR", 2)}
    for updated, records in (([(old, -1), (new, 1)], 1), ([(new, 1), (old, -1)], 0)):
        lines = [
            {**r, "mz_timestamp": t, "mz_diff": w} for t, (r, w) in zip((1, 2, 2), [(old, 1), *updated], strict=True)
        ]
        table = pa.Table.from_pylist(lines)
        cells = [",".join(map(str, line.values())) for line in lines]
        (tmp_path / "e.csv").write_text("\n".join([",".join(lines[0]), *cells]) + "\n")
        sources = [written(tmp_path / "e.jsonl", lines), tmp_path / "e.csv", table]
        states = {Played(source).surviving for source in sources}
        empty = Played(written(tmp_path / "none.jsonl", [CLOSE])).surviving
        assert len(states) == 1
        assert (states == {empty}) == (records == 0)


MIXED: list[Any] = [
    {"delete": {"id": 1}}, {"insert": {"id": 1}}, {"update": 1, "note": 2}, {"payload": None}, {"payload": "x", "y": 1},
    {"before": {"id": 1}, "after": {"id": 1}}, {"before": None, "after": None, "note": 1}, {"op": "x"}, {"op": None},
]  # fmt: skip


@pytest.mark.parametrize("line", MIXED, ids=json.dumps)
def test_marks_of_other_envelopes_are_no_plain_records(line: Any, tmp_path: Path) -> None:
    # a whole event of another envelope at the beginning makes the plain record the odd one
    for events in ([{"note": 1}, line], [{"op": "close"}, line, {"note": 1}]):
        with pytest.raises(InputError, match=r"e.jsonl:[23]: expected "):
            Played(written(tmp_path / "e.jsonl", events), counts())
    with pytest.raises(InputError, match=r"e.jsonl:2: expected "):
        Played(written(tmp_path / "e.jsonl", [row(), {**row(), **line}]))


def test_data_may_be_called_like_a_mark(tmp_path: Path) -> None:
    alone = [{"before": 1}, {"after": {"x": 1}}, {"note": 1}]
    assert Played(written(tmp_path / "e.jsonl", alone), counts()).totals.added == 3
    fields = {"update": ra.Number(0, 9), "before": ra.Number(0, 9)}
    stream = ra.Stream(fields, {"n": ra.Count()}, epsilon=1.0, horizon=9, columns=LENIENT)
    lines = [{"update": 1, "before": 2, "after": 3}, {"before": 1, "update": 2}]
    assert Played(written(tmp_path / "e.jsonl", lines), stream).totals.added == 2
    named = [row(update="2026-01-01"), row(update="2026-01-02")]
    grid = Grid("2026-01-01", "1d", "2026-01-03")
    assert Played(written(tmp_path / "t.jsonl", named), time="update", grid=grid).totals.added == 2
    placed = [row(payload=1), row(payload=2)]
    assert Played(written(tmp_path / "p.jsonl", placed), position="payload").totals.added == 2


GRID = Grid("1970-01-01", "1d", "1970-03-01")


@pytest.mark.parametrize(
    ("column", "day"), [("ts_ms", 86400 * 10**3), ("a.t_us", 86400 * 10**6), ("ns_ns", 86400 * 10**9)]
)
def test_the_unit_of_a_time_is_its_own(column: str, day: int) -> None:
    whole: list[Any] = [0, 3 * day - 1, 5 * day]
    cells = [1, 3, 6]
    text = "1970-02-01T00:00:00Z"
    assert cells_of(GRID, whole, column, [1, 2, 3], "e").tolist() == cells
    assert cells_of(GRID, [*whole, text], column, [1, 2, 3, 4], "e").tolist() == [*cells, 32]
    for times in (np.array(whole), np.array(whole, np.uint64), np.array(whole, object), list(np.array(whole))):
        assert cells_of(GRID, times, column, [1, 2, 3], "e").tolist() == cells
    assert cells_of(GRID, np.array(["1970-02-01"], "M8[s]"), column, [1], "e").tolist() == [32]
    assert cells_of(GRID, [86399, 86400], "seconds", [1, 2], "e").tolist() == [1, 2]
    for bad in (10**22, -(10**22), True, 1.5, None, "x"):
        for others in ([], [day], [text], [text, day]):
            lines = [*range(1, len(others) + 2)]
            with pytest.raises(InputError, match=rf"e:{len(lines)}: expected .* - at {column}"):
                cells_of(GRID, [*others, bad], column, lines, "e")
    for odd in (np.array([2**63 - 1]), np.array([-(2**63)]), np.array([2**64 - 1], np.uint64)):
        if column != "ns_ns" or odd[0] != 2**63 - 1:
            with pytest.raises(InputError):
                cells_of(GRID, odd, column, [1], "e")


def test_one_text_among_milliseconds(tmp_path: Path) -> None:
    first, second = row("DE", 1, t_ms=86_400_000), row("FR", 2, t_ms="1970-01-03T00:00:00Z")
    grid = Grid("1970-01-01", "1d", "1970-01-05")
    added = shop()
    for round, fields in enumerate([None, row("DE", 1), row("FR", 2), None], 1):
        if fields is not None:
            added.add(fields)
        assert added.round == round
        added.close_round()
    played = Played(written(tmp_path / "e.jsonl", [first, second]), time="t_ms", grid=grid)
    assert played.surviving == added.state()


def test_pq_is_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.Table.from_pylist([row(), row()]), tmp_path / "e.pq")
    assert Played(tmp_path / "e.pq").totals.added == 2


@pytest.mark.parametrize("weight", [-(2**63), -(2**63) + 1, 2**63 - 1, -6, 6])
def test_weights_beyond_the_contribution(weight: int) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pylist([row(diff=1, stamp=1), row(diff=weight, stamp=1)])
    for contribution in (None, 5):
        with pytest.raises(InputError, match=r"row 2: expected "):
            Played(table, contribution=contribution)


def test_times_of_lines_before_the_envelope_is_known(tmp_path: Path) -> None:
    erase = {"op": "erase", "subject": "u1", "at": "2026-01-02"}
    blank = " " * 1000 + "\n"
    grid = Grid("2026-01-01", "1d", "2026-01-04")
    path = tmp_path / "e.jsonl"
    record = {"op": "add", "record": row(), "subject": "u1", "at": "2026-01-01"}
    first, rest = json.dumps(erase) + "\n", json.dumps(record) + "\n"
    # more than a block of lines that tell nothing
    path.write_text(first + blank * 5000 + rest)
    played = Played(path, time="at", grid=grid)
    assert (played.totals.added, played.totals.removed, played.totals.rounds) == (1, 1, 3)
    path.write_text(first)
    assert Played(path, time="at", grid=grid).totals.rounds == 3


def test_positions_of_lines_before_the_envelope_is_known(tmp_path: Path) -> None:
    erase = {"op": "erase", "subject": "u1", "lsn": 7}
    record = {"op": "add", "record": row(), "subject": "u2", "lsn": 8}
    path = tmp_path / "e.jsonl"
    path.write_text(json.dumps(erase) + "\n" + (" " * 1000 + "\n") * 5000 + 2 * (json.dumps(record) + "\n"))
    played = Played(path, position="lsn")
    assert (played.totals.added, played.totals.absorbed) == (1, 1)


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_words_in_lines_that_were_read_before_say_nothing(suffix: str, tmp_path: Path) -> None:
    found = []
    for word in ("close", "other"):
        stream, path = shop(), tmp_path / f"{word}.{suffix}"
        for count in (1, 2):
            lines = [row(note=word), row(note="")][:count]
            if suffix == "csv":
                path.write_text("country,amount,note\n" + "".join(f"DE,1,{line['note']}\n" for line in lines))
            totals = Played(written(path, lines) if suffix == "jsonl" else path, stream, source_name="notes").totals
        stream.close_round()
        found.append((totals.rounds, totals.added, stream.round, stream.state()))
    assert found[0] == found[1]
