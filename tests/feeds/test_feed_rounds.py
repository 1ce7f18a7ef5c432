"""What ends rounds: lines, progress messages, a grid, the end; and never a count or the order of records."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from retroact.errors import InputError
from retroact.feeds import Grid, play
from support.feed_shop import CLOSE, Played, by_hand, row, shop, written

PROGRESS = {"mz_timestamp": 2, "mz_progressed": True, "mz_diff": None, "country": None, "amount": None}


def test_progress(tmp_path: Path) -> None:
    first, second = {"mz_timestamp": 1, "mz_diff": 1, **row()}, {"mz_timestamp": 2, "mz_diff": 1, **row("FR", 2)}
    bare = {"mz_timestamp": 3, "mz_progressed": True}
    path = written(tmp_path / "events.jsonl", [first, PROGRESS, second, bare, bare, CLOSE, first])
    played = Played(path, close_by="progress")
    assert (played.totals.rounds, played.totals.added) == (4, 2)
    played = Played(path, close_by="lines")
    assert (played.totals.rounds, played.totals.skipped) == (1, {"progress messages": 3})
    assert Played(written(tmp_path / "none.jsonl", [first]), close_by="progress").totals.rounds == 0
    (tmp_path / "e.csv").write_text("mz_progressed,mz_diff,country,amount\nf,1,DE,1\nt,,,\nf,1,FR,2\n")
    assert Played(tmp_path / "e.csv", close_by="progress").totals.rounds == 1


def test_end(tmp_path: Path) -> None:
    path = written(tmp_path / "events.jsonl", [row(), CLOSE, row(round=7), {"mz_progressed": True}])
    played = Played(path, close_by="end")
    assert (played.totals.rounds, played.totals.added) == (1, 2)
    assert played.totals.skipped == {"close lines": 1, "progress messages": 1}


@pytest.mark.parametrize("wanted", ["updates", "count", "updates:1000", "1000", "rows", "events=5", "records"])
def test_never_by_a_count(wanted: str) -> None:
    with pytest.raises(InputError, match=r"rounds never close by a count .*one record added or deleted"):
        shop(rounds={"close_by": wanted})


@pytest.mark.parametrize("wanted", ["time", "timestamp", "event-time", "timestamps", "watermark", "day"])
def test_never_by_the_times_of_records(wanted: str) -> None:
    with pytest.raises(InputError, match=r"rounds never close by .* the times of records.*--start"):
        shop(rounds={"close_by": wanted})


def test_other_options() -> None:
    grid = Grid(0, 60, 600)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"close_by": "moon"}, "expected one of lines, progress, grid, end, got 'moon'"),
        ({"close_by": "grid"}, "expected a grid"),
        ({"close_by": "end", "grid": grid, "time": "t"}, "by the grid or by end, got both"),
        ({"late": "maybe"}, "expected 'stamp' or 'refuse', got 'maybe'"),
        ({"contribution": 0}, "expected a whole number from 1 to"),
        ({"contribution": 10**18}, "expected a whole number from 1 to"),
        ({"time": "t"}, "expected a grid"),
        ({"grid": grid}, "expected the column of the time"),
        ({"grid": grid, "time": "t", "rounds": 3}, "its end says how many"),
        ({"grid": grid, "time": "t", "position": "p"}, "expected no positions with a grid"),
    ]
    for options, message in wrong:
        with pytest.raises(InputError, match=message):
            play(shop(), "no such file", **options)


# A grid of ten minutes ----------------------------------------------------------------------------------------

GRID = Grid(0, 60, 600)


def timed(*times: int, **more: Any) -> list[dict[str, Any]]:
    return [row(["DE", "FR", "US"][n % 3], n % 500, at=time, **more) for n, time in enumerate(times)]


def test_a_grid_does_not_care_for_the_order(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = timed(*(rng.randrange(600) for _ in range(500)))
    orders = [rows, sorted(rows, key=lambda r: r["at"]), sorted(rows, key=lambda r: -r["at"])]
    played = [Played(written(tmp_path / "e.jsonl", order), grid=GRID, time="at") for order in orders]
    assert played[0].totals.rounds == 10
    assert played[0].releases == played[1].releases == played[2].releases
    stream = shop()
    releases = []
    for round in range(10):
        for each in rows:
            if each["at"] // 60 == round:
                stream.add(row(each["country"], each["amount"]))
        releases += [release.to_dict() for release in stream.close_round().values()]
    assert played[0].releases == releases


def test_a_grid_in_small_blocks_and_in_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    rows = timed(*(rng.randrange(600) for _ in range(300)))
    whole = Played(written(tmp_path / "e.jsonl", rows), grid=GRID, time="at")
    monkeypatch.setattr("retroact.feeds.source.BLOCK", 200)
    monkeypatch.setattr("retroact.feeds.readers.csv.ROWS", 7)
    assert Played(tmp_path / "e.jsonl", grid=GRID, time="at").releases == whole.releases
    (tmp_path / "e.csv").write_text(
        "at,country,amount\n" + "".join(f"{r['at']},{r['country']},{r['amount']}\n" for r in rows)
    )
    assert Played(tmp_path / "e.csv", grid=GRID, time="at").releases == whole.releases


def test_one_more_record_shifts_nobody_else(tmp_path: Path) -> None:
    rows = timed(*range(5, 600, 7))
    less = Played(written(tmp_path / "e.jsonl", rows), grid=GRID, time="at")
    more = Played(written(tmp_path / "e.jsonl", [*timed(599), *rows]), grid=GRID, time="at")
    assert [r["round"] for r in more.releases] == [r["round"] for r in less.releases]
    assert more.releases[:18] == less.releases[:18]


def test_the_number_of_rounds_is_public(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", timed(1))
    assert Played(path, grid=GRID, time="at").totals.rounds == 10
    with pytest.raises(InputError, match=r"needs its end \(--end\): how many rounds are published is a public choice"):
        Played(path, grid=Grid(0, 60), time="at")


def test_times_off_the_grid_are_refused_before_anything_happens(tmp_path: Path) -> None:
    for bad, message in ((-1, "got one before the start"), (600, "got one after the end"), ("x", "got 'x'")):
        stream = shop()
        path = written(tmp_path / "e.jsonl", timed(1, 2, 550, bad))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"e.jsonl:4: expected .*{message}.* - at at"):
            Played(path, stream, grid=GRID, time="at")
        assert stream.round == 1
    with pytest.raises(InputError, match=r"e.jsonl:2: expected a time, got none"):
        Played(written(tmp_path / "e.jsonl", [*timed(1), row()]), grid=GRID, time="at")


def test_late_records(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", timed(10, 70, 130, 190))
    stream = shop()
    for _ in range(2):
        stream.close_round()
    played = Played(path, stream, grid=GRID, time="at")
    hand = by_hand(
        [], [], [("add", {"data": row("DE", 0), "stamp": 1}), ("add", {"data": row("FR", 1), "stamp": 2}),
                 ("add", {"data": row("US", 2)})],
        [("add", {"data": row("DE", 3)})], *([[]] * 6),
    )  # fmt: skip
    assert played.surviving == hand.state()
    stream = shop()
    for _ in range(2):
        stream.close_round()
    played = Played(path, stream, grid=GRID, time="at", late="refuse")
    assert (played.totals.added, played.totals.late) == (2, 2)
    assert (played.totals.first_late or "").endswith("e.jsonl:1")
    stream = shop(late=False)
    stream.close_round()
    with pytest.raises(InputError, match=r"e.jsonl:1: this stream takes no late data"):
        Played(path, stream, grid=GRID, time="at")


def change(op: str, at: int, before: Any, after: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "ts_ms": at * 1000}


def test_changes_by_the_time_of_the_change(tmp_path: Path) -> None:
    events = [
        change("c", 5, None, row(id=1)),
        change("u", 65, {"id": 1}, row("FR", 2, id=1)),
        change("d", 125, {"id": 1}, None),
    ]
    random.Random(1).shuffle(events)
    played = Played(written(tmp_path / "e.jsonl", events), grid=GRID, time="ts_ms")
    assert (played.totals.added, played.totals.removed) == (2, 2)


def test_a_time_in_the_row_before_gives_the_stamp(tmp_path: Path) -> None:
    old, new = row("DE", 1, at=10), row("FR", 2, at=70)
    events = [change("c", 0, None, old), change("u", 0, old, new), change("c", 0, None, row("US", 3, at=10))]
    played = Played(written(tmp_path / "e.jsonl", events), grid=GRID, time="at")
    assert (played.totals.added, played.totals.removed) == (3, 1)
    with pytest.raises(InputError, match=r"e.jsonl:2: a deletion without id"):
        Played(tmp_path / "e.jsonl", grid=GRID, time="ts_ms")


def test_native_events_on_a_grid(tmp_path: Path) -> None:
    events = [
        {"op": "add", "record": row(), "subject": "u", "at": 10},
        {"op": "add", "record": row(at=70)},
        {"op": "erase", "subject": "u", "at": 130},
    ]
    played = Played(written(tmp_path / "e.jsonl", events), grid=GRID, time="at")
    assert (played.totals.added, played.totals.removed) == (2, 1)


def test_texts_as_times(tmp_path: Path) -> None:
    grid = Grid("2026-01-01", "1d", "2026-01-08")
    rows = [row(at="2026-01-03T00:00:00Z"), row(at="2026-01-02T23:59:59.5Z"), row(at="2026-01-01T03:00:00+02:00")]
    played = Played(written(tmp_path / "e.jsonl", rows), grid=grid, time="at")
    assert played.totals.rounds == 7
    (tmp_path / "e.csv").write_text("country,amount,at\n" + "".join(f"DE,1,{r['at']}\n" for r in rows))
    assert Played(tmp_path / "e.csv", grid=grid, time="at").releases == played.releases


def test_a_column_of_times_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("country,amount\nDE,1\n")
    with pytest.raises(InputError, match=r"e.csv:1: expected a column 'at' for the time"):
        Played(tmp_path / "e.csv", grid=GRID, time="at")


def test_a_long_line_of_json_is_a_line(tmp_path: Path) -> None:
    big = {**row(), "note": "x" * 3_000_000}
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in (row(), big, row())))
    assert Played(tmp_path / "e.jsonl").totals.added == 3
