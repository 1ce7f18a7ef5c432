"""Sources that are read again, longer, shorter or in another order: no event is lost, moved or counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from retroact.cli.notes import Notes
from retroact.errors import InputError
from retroact.feeds import Grid, play
from support.feed_shop import CLOSE, Played, row, shop, written

GRID = Grid(0, 60, 600)
Rows = list[dict[str, Any]]


def lasting(folder: Path, **more: Any) -> Any:
    fields = {"country": ra.Category(["DE", "FR", "US"]), "amount": ra.Number(0, 500)}
    key = ra.Key.for_testing(1)
    return ra.Stream.open(folder / "shop", fields, {"orders": ra.Count()}, epsilon=1.0, key=key, **more)


def as_file(folder: Path, kind: str, rows: Rows) -> Path:
    """The same rows in one of three formats; what a row does not have is null."""
    path = folder / f"e.{kind}"
    names = list(dict.fromkeys(name for each in rows for name in each))
    if kind == "jsonl":
        return written(path, rows)
    if kind == "csv":
        cells = [",".join("" if each.get(name) is None else str(each[name]) for name in names) for each in rows]
        path.write_text("\n".join([",".join(names), *cells]) + "\n")
    else:
        pq.write_table(pa.table({name: [each.get(name) for each in rows] for name in names}), path)
    return path


KINDS = pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
# which row or line the first row is
FIRST = {"jsonl": 1, "csv": 2, "parquet": 1}


# What the end closes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["close", "US"])
def test_a_word_in_a_record_decides_nothing(tmp_path: Path, word: str) -> None:
    """A subject that is called like an operation, in lines that were read before."""
    path = written(tmp_path / "e.jsonl", [row(subject=word), row(subject="x")])
    with lasting(tmp_path) as stream, stream.receiving(str(path), (1,)):
        stream.add(row(), subject=word)
    with lasting(tmp_path) as stream:
        assert play(stream, path).rounds == 1


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_end_closes_nothing_once_rounds_were_closed(tmp_path: Path, kind: str) -> None:
    rows = [{"op": "add", "id": 1, **row()}, {"op": "close"}, {"op": "add", "id": 2, **row()}]
    lines: Rows = [{"op": "add", "id": 1, "record": row()}, CLOSE, {"op": "add", "id": 2, "record": row()}]
    path = as_file(tmp_path, kind, lines if kind == "jsonl" else rows)
    for expected in (1, 0, 0):
        with lasting(tmp_path) as stream:
            assert play(stream, path).rounds == expected
    with lasting(tmp_path) as stream, pytest.raises(InputError, match="What a round means never changes"):
        play(stream, path, close_by="end")


@KINDS
def test_positions_out_of_order_do_not_look_finished(tmp_path: Path, kind: str) -> None:
    """A large position in the open round, and a smaller one in closed rounds."""
    path, stream = as_file(tmp_path, kind, [row(lsn=9)]), shop()
    with stream.receiving(str(path), (5,), [5]):
        stream.add(row())
    stream.close_round()
    with stream.receiving(str(path), (9,), [9]):
        stream.add(row())
    assert Played(path, stream, position="lsn", close_by="end").totals.rounds == 1


# Rounds by number -------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize(
    ("numbers", "odd", "reason"),
    [([1, 2, None, 2], 2, "expected the number of its round"), ([None, None, 2], 2, "expected no number of a round")],
)
def test_rounds_by_number_are_those_of_all_events(
    tmp_path: Path, kind: str, numbers: list[int | None], odd: int, reason: str
) -> None:
    path = as_file(tmp_path, kind, [row(round=number) for number in numbers])
    with pytest.raises(InputError, match=rf"{FIRST[kind] + odd}: {reason}"):
        Played(path, rounds=3)


@KINDS
def test_rounds_by_number_stay_so_when_a_file_is_taken_up(tmp_path: Path, kind: str) -> None:
    path, stream = as_file(tmp_path, kind, [row(round=1), row(round=2)]), shop()
    Played(path, stream, rounds=2)
    path = as_file(tmp_path, kind, [row(round=1), row(round=2), row(round=None)])
    with pytest.raises(InputError, match=rf"{FIRST[kind] + 2}: expected the number of its round"):
        Played(path, stream, rounds=4)


def test_closing_needs_no_number(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", [row(round=1), CLOSE, row(round=2), row(round=2)])
    assert Played(path, rounds=3).totals.rounds == 3


# Files that change ------------------------------------------------------------------------------------------------


@KINDS
def test_a_file_on_a_grid_that_grew_is_refused(tmp_path: Path, kind: str) -> None:
    rows = [row(at=10), row(at=100)]
    path = as_file(tmp_path, kind, rows)
    more: dict[str, Any] = {"rounds": GRID, "columns": {"time": "at"}}
    with lasting(tmp_path, **more) as stream:
        assert play(stream, path, grid=GRID, time="at").rounds == 10
    with lasting(tmp_path, **more) as stream:
        assert play(stream, path).rounds == 0
    as_file(tmp_path, kind, [*rows, row(at=20)])
    with (
        lasting(tmp_path, **more) as stream,
        pytest.raises(InputError, match=r"changed since it was begun \(. .* then, . now"),
    ):
        play(stream, path, grid=GRID, time="at")


@KINDS
def test_a_shorter_file_is_another_one(tmp_path: Path, kind: str) -> None:
    path, stream = as_file(tmp_path, kind, [row(), row(), row()]), shop()
    Played(path, stream)
    as_file(tmp_path, kind, [row(), row()])
    read = FIRST[kind] + 2
    with pytest.raises(InputError, match=rf"expected at least {read} .*, got {read - 1}: is it another file"):
        Played(path, stream)


def test_a_shorter_frame_is_another_one() -> None:
    stream, table = shop(), pa.table({"country": ["DE"] * 3, "amount": [1, 2, 3]})
    play(stream, table, source_name="orders")
    assert play(stream, table.to_reader(), source_name="orders").rounds == 0
    with pytest.raises(InputError, match="expected at least 3 rows, which were read before, got fewer"):
        play(stream, table.slice(0, 2).to_reader(), source_name="orders")


def test_old_line_ends_count_as_the_reader_counts_them(tmp_path: Path) -> None:
    path, stream = tmp_path / "e.csv", shop()
    path.write_bytes(b"country,amount\rDE,1\rDE,2\r")
    assert Played(path, stream).totals.added == 2
    assert Played(path, stream).totals.rounds == 0


@KINDS
def test_files_of_one_name_in_two_folders(tmp_path: Path, kind: str) -> None:
    stream = shop()
    for name in ("monday", "tuesday"):
        (tmp_path / name).mkdir()
        path = as_file(tmp_path / name, kind, [row()])
        assert Played(path, stream).totals.added == 1
        assert stream.position(str(path)) == (FIRST[kind],)


@KINDS
def test_where_reading_resumes_is_said(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, stream = as_file(tmp_path, kind, [row(), row()]), shop()
    assert Played(path, stream).totals.taken_up is None
    totals = Played(path, stream, source_name=None).totals
    Notes(quiet=False).totals(stream, totals, None)
    told = " ".join(capsys.readouterr().err.split())
    assert told.replace(" ", "").startswith(f"note:{path}resumesafter{'row' if kind == 'parquet' else 'line'}")


# Empty input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"), [("e.csv", "country,amount,at\n"), ("e.csv", ""), ("e.jsonl", ""), ("e.jsonl", "\n\n")]
)
def test_no_records_are_published_like_one(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert Played(path, grid=GRID, time="at").totals.rounds == 10
    assert Played(path, rounds=4).totals.rounds == 4
    with pytest.raises(InputError, match="no events in"):
        Played(path)


# Positions --------------------------------------------------------------------------------------------------------


@KINDS
def test_different_events_need_different_positions(tmp_path: Path, kind: str) -> None:
    rows = [row("DE", 1, lsn=7), row("DE", 2, lsn=8), row("DE", 1, lsn=7)]
    assert Played(as_file(tmp_path, kind, rows), position="lsn").totals.absorbed == 1
    one = FIRST[kind]
    reason = rf"{one + 3}: expected a different position for every event, got 8 as in (line|row) {one + 1} - at lsn"
    with pytest.raises(InputError, match=reason):
        Played(as_file(tmp_path, kind, [*rows, row("FR", 2, lsn=8)]), position="lsn")


def test_a_repeated_position_at_the_beginning_of_a_round(tmp_path: Path) -> None:
    """What opens a round by its number waits to be handed over, too."""
    events = [row(round=1, lsn=1), row(round=2, lsn=2), row(round=2, lsn=2)]
    played = Played(written(tmp_path / "e.jsonl", events), position="lsn", rounds=2)
    assert (played.totals.added, played.totals.absorbed) == (2, 1)


# Delta tables -----------------------------------------------------------------------------------------------------


def delta(versions: list[int], path: Path) -> Path:
    columns = {"country": ["DE"] * len(versions), "amount": [1] * len(versions), "id": [*range(len(versions))]}
    kinds = {"_change_type": ["insert"] * len(versions), "_commit_version": versions, "at": [60 * v for v in versions]}
    pq.write_table(pa.table({**columns, **kinds}), path)
    return path


def test_changes_come_oldest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retroact.feeds.readers.arrow.ROWS", 2)
    assert Played(delta([1, 1, 2, 5], tmp_path / "a.parquet")).totals.added == 4
    with pytest.raises(InputError, match=r"row 3: changes must come oldest first: sort by _commit_version"):
        Played(delta([1, 3, 2, 5], tmp_path / "b.parquet"))
    # on a grid only the order within a round counts
    assert Played(tmp_path / "b.parquet", time="at", grid=GRID).totals.added == 4
    with pytest.raises(InputError, match=r"row 3: changes must come oldest first"):
        Played(tmp_path / "b.parquet", time="at", grid=Grid(0, 600, 1200))
