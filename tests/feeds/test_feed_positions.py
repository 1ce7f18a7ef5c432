"""A feed is taken up where it was left, and what is delivered twice is taken once."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.feeds import Grid, play
from retroact.feeds.deliver import Delivery
from retroact.stream import passes
from retroact.stream.core import Core
from support.feed_shop import CLOSE, Played, row, shop, written

GRID = Grid(0, 60, 600)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def events() -> list[dict[str, Any]]:
    rng = random.Random(4)
    made: list[dict[str, Any]] = []
    for n in range(60):
        made.append(row(rng.choice(["DE", "FR"]), n, id=rng.randrange(20)) if n % 9 else CLOSE)
        if n % 17 == 0:
            made.append(CLOSE)
    return [*made, CLOSE]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_growing_file_is_taken_up(tmp_path: Path, suffix: str) -> None:
    """At every line, as if it had been read at once; a second time without anything new changes nothing."""
    path = tmp_path / f"e.{suffix}"
    if suffix == "jsonl":
        written(path, events())
    else:
        cells = [
            ",".join(map(str, (e.get("op", "add"), e.get("id", ""), e.get("country", ""), e.get("amount", ""))))
            for e in events()
        ]
        path.write_text("\n".join(["op,id,country,amount", *cells]) + "\n")
    whole, content = Played(path), lines_of(path)
    for step in (1, 2, 7):
        stream, releases = shop(), []
        for count in [*range(2, len(content), step), len(content), len(content)]:
            path.write_text("".join(content[:count]))
            releases += Played(path, stream, close_by="progress").releases
        assert releases == whole.releases
        assert stream.state() == whole.surviving


def test_a_complete_file_is_not_played_twice(tmp_path: Path) -> None:
    path, stream = written(tmp_path / "e.jsonl", [row(), row()]), shop()
    assert Played(path, stream).totals.rounds == 1
    assert Played(path, stream).totals.rounds == 0
    assert Played(path, stream, source_name="another").totals.rounds == 1
    path = written(tmp_path / "tail.jsonl", [row(), CLOSE, row()])
    assert Played(path, stream).totals.rounds == 1
    assert Played(path, stream).totals.rounds == 0


class StopHereError(Exception):
    pass


def interrupted(path: Path, stream: Any, calls: int, **options: Any) -> list[dict[str, Any]]:
    """Play until a round was published so many times, and give up in the middle of things."""
    published: list[dict[str, Any]] = []

    def publish(round: Any) -> None:
        nonlocal calls
        published.extend(release.to_dict() for release in round.values())
        calls -= 1
        if calls == 0:
            raise StopHereError

    with suppress(StopHereError):
        play(stream, path, publish=publish, **options)
    return published


@pytest.mark.parametrize("stops", [[1], [3], [2, 2], [1, 1, 1, 4]])
def test_a_grid_is_taken_up(tmp_path: Path, stops: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    rows = [row("DE", n, at=rng.randrange(600)) for n in range(200)]
    path = written(tmp_path / "e.jsonl", rows)
    whole = Played(path, grid=GRID, time="at")
    monkeypatch.setattr("retroact.feeds.source.BLOCK", 300)
    monkeypatch.setattr(passes, "MOST", 1)  # every round is settled alone
    stream, releases = shop(), []
    for stop in [*stops, 100]:
        releases += interrupted(path, stream, stop, grid=GRID, time="at")
    assert releases == whole.releases
    assert stream.state() == whole.surviving
    assert Played(path, stream, grid=GRID, time="at").totals.rounds == 0


def test_a_grid_and_lines_do_not_mix(tmp_path: Path) -> None:
    path, stream = written(tmp_path / "e.jsonl", [row(at=1)]), shop()
    Played(path, stream, grid=GRID, time="at")
    with pytest.raises(InputError, match="was read on a grid before: expected another source name"):
        Played(path, stream)
    path, stream = written(tmp_path / "f.jsonl", [row(at=1)]), shop()
    Played(path, stream)
    with pytest.raises(InputError, match="was read without a grid before: expected another source name"):
        Played(path, stream, grid=GRID, time="at")


def test_what_is_delivered_twice_is_taken_once(tmp_path: Path) -> None:
    sent = [row("DE", n, lsn=100 + n) for n in range(20)]
    rng = random.Random(6)
    feed = [*sent, *rng.choices(sent, k=30)]
    rng.shuffle(feed)
    path = written(tmp_path / "e.jsonl", [*feed, CLOSE, *sent, row("FR", 1, lsn=500), CLOSE])
    played = Played(path, position="lsn")
    assert played.totals.added == len({event["lsn"] for event in feed}) + 1
    assert played.totals.absorbed == len(feed) + 20 - (played.totals.added - 1)
    assert ":" in (played.totals.first_absorbed or "")
    again = Played(path, played.stream, position="lsn", close_by="end")
    assert (again.totals.added, again.totals.absorbed) == (0, len(feed) + 21)


def test_positions_across_blocks_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [{"op": "c", "after": row("DE", n % 50), "source": {"lsn": n % 50}} for n in range(200)]
    for block in (1 << 19, 300):
        monkeypatch.setattr("retroact.feeds.source.BLOCK", block)
        played = Played(written(tmp_path / "e.jsonl", sent), position="source.lsn")
        assert (played.totals.added, played.totals.absorbed) == (50, 150)
        assert (played.totals.first_absorbed or "").endswith("e.jsonl:51")
    (tmp_path / "e.csv").write_text("country,amount,lsn\n" + "".join(f"DE,1,{n % 50}\n" for n in range(200)))
    assert Played(tmp_path / "e.csv", position="lsn").totals.absorbed == 150


@pytest.mark.parametrize("value", [None, "x", 1.5, True, [1]])
def test_positions_are_whole_numbers(tmp_path: Path, value: Any) -> None:
    path = written(tmp_path / "e.jsonl", [row(lsn=1), row(lsn=value)])
    with pytest.raises(
        InputError, match=r"e.jsonl:2: expected a whole number, the position of the event, got .* - at lsn"
    ):
        Played(path, position="lsn")


def test_an_error_leaves_what_was_handed_over(tmp_path: Path) -> None:
    """The good lines before it stay in the open round, with their position: a corrected file is taken up there."""
    path, stream = tmp_path / "e.jsonl", shop()
    good = [row(), CLOSE, row("FR", 2)]
    written(path, [*good, {"op": "shut"}, row("US", 3), CLOSE])
    with pytest.raises(InputError, match=r"e.jsonl:4: expected one of add"):
        Played(path, stream)
    assert stream.round == 2
    written(path, [*good, CLOSE, row("US", 3), CLOSE])
    assert Played(path, stream).totals.rounds == 2
    assert stream.state() == Played(path).surviving


# Streams that last -----------------------------------------------------------------------------------------------


def lasting(folder: Path, **more: Any) -> Any:
    fields = {"country": ra.Category(["DE", "FR", "US"]), "amount": ra.Number(0, 500)}
    statistics = {"orders": ra.Count(), "revenue": ra.Sum("amount")}
    key = ra.Key.for_testing(3)
    return ra.Stream.open(folder / "shop", fields, statistics, epsilon=1.0, horizon=200, key=key, **more)


@pytest.mark.parametrize("kind", ["lines", "grid", "positions"])
def test_a_stream_that_lasts_goes_on_after_a_crash(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off in the middle of the feed, again and again: what is published is what one run publishes."""
    rng = random.Random(7)
    rows = [row("DE", n, at=rng.randrange(600), id=rng.randrange(40), lsn=2 * n) for n in range(150)]
    feed = [e for n, each in enumerate(rows) for e in ([each, {**CLOSE, "lsn": 2 * n + 1}] if n % 20 == 19 else [each])]
    options: dict[str, Any] = {
        "lines": {"id": "id"},
        "grid": {"id": "id", "time": "at", "grid": GRID},
        "positions": {"id": "id", "position": "lsn"},
    }[kind]
    if kind == "lines":
        feed = [{name: value for name, value in event.items() if name != "lsn"} for event in feed]
    path = written(tmp_path / "e.jsonl", rows if kind == "grid" else feed)
    whole = Played(path, **options)
    # on a grid every round is settled alone, and what came of an unfinished one comes again: it takes few steps
    monkeypatch.setattr("retroact.feeds.source.BLOCK", 5000 if kind == "grid" else 500)
    monkeypatch.setattr(passes, "MOST", 1)
    for owner, part in ((Delivery, "deliver"), (Delivery, "_stamped"), (Core, "append")):
        monkeypatch.setattr(owner, part, _failing(rng, getattr(owner, part)))
    columns = {"ignore": True, **{role: options[role] for role in ("id", "time", "position") if role in options}}
    more = {"columns": columns, "rounds": GRID if kind == "grid" else None}
    for _ in range(200):
        with lasting(tmp_path, **more) as stream, suppress(StopHereError):
            play(stream, path, **options)
            break
    with lasting(tmp_path, **more) as stream:
        releases = list(stream.releases())
    assert [line["value"] for line in releases] == [line["value"] for line in whole.releases]


def _failing(rng: random.Random, step: Any) -> Any:
    """Gives up before or after some of the steps of what is delivered."""

    def failing(*given: Any, **more: Any) -> Any:
        chance = rng.random()
        if chance < 0.05:
            raise StopHereError
        done = step(*given, **more)
        if chance > 0.95:
            raise StopHereError
        return done

    return failing


@pytest.mark.parametrize("position", [2**62, -(2**62), 2**63 - 1, 2**70])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_position_beyond_the_largest_names_file_and_line(suffix: str, position: int, tmp_path: Path) -> None:
    path = tmp_path / f"e{suffix}"
    if suffix == ".jsonl":
        path.write_text(
            f'{{"country": "DE", "amount": 1, "lsn": 7}}\n{{"country": "DE", "amount": 1, "lsn": {position}}}\n'
        )
    elif suffix == ".csv":
        path.write_text(f"country,amount,lsn\nDE,1,7\nDE,1,{position}\n")
    else:
        positions = pa.array([7, min(position, 2**63 - 1)], pa.int64())
        pq.write_table(pa.table({"country": ["DE"] * 2, "amount": [1.0] * 2, "lsn": positions}), path)
    with pytest.raises(InputError, match=r"below 2\^62") as caught:
        Played(path, shop(), position="lsn")
    error = caught.value
    assert (error.source, error.path, error.row) == (str(path), "lsn", 3 if suffix == ".csv" else 2)
