"""Files that grow: read as they do, in whole lines, with rounds by the clock on a grid."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retroact.errors import InputError
from retroact.feeds import Grid
from retroact.feeds.options import options_for
from retroact.feeds.play import Feed
from retroact.feeds.source import Source, open_source
from support.feed_shop import CLOSE, Played, row, shop, written

PROGRAM = [sys.executable, "-c", "from retroact.cli import main; main()"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retroact.feeds.source.POLL", 0.01)


class Following:
    """A feed that is played in the background."""

    def __init__(self, path: Path, *, time: str | None = None, **declared: Any) -> None:
        self.stream = shop(**declared)
        self.rounds: list[int] = []
        self.error: Exception | None = None
        self._opened = open_source(str(path), follow=True)
        self._source: Source = self._opened.__enter__()
        options = options_for(self.stream, str(path), {"time": time}, {}, follow=True)
        self._feed = Feed(self._source, self.stream.schema, options)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._feed.play(self.stream, lambda round: self.rounds.append(round.number))
        except Exception as error:
            self.error = error

    def until(self, rounds: int) -> None:
        end = time.monotonic() + 20
        while len(self.rounds) < rounds and time.monotonic() < end and self._thread.is_alive():
            time.sleep(0.005)

    def end(self, *, stop: bool = True) -> Any:
        if stop:
            self._source.stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._opened.__exit__(None, None, None)
        return self._feed.delivery.rounds.totals  # type: ignore[union-attr]


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Any]:
    with (tmp_path / "e.jsonl").open("wb", buffering=0) as file:
        yield file


def test_lines_as_they_come(tmp_path: Path, growing: Any) -> None:
    following = Following(tmp_path / "e.jsonl")
    growing.write((json.dumps(row()) + "\n" + json.dumps(CLOSE) + "\n" + json.dumps(row())[:20]).encode())
    following.until(1)
    time.sleep(0.05)
    assert following.rounds == [1]
    growing.write((json.dumps(row())[20:] + "\n" + json.dumps(CLOSE) + "\n").encode())
    following.until(2)
    growing.write(b'{"op": "clo')
    totals = following.end()
    assert following.error is None
    assert (totals.rounds, totals.added) == (2, 2)


def test_cells_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text('op,country,amount,note\nadd,DE,1,"two\n')
    following = Following(path)
    time.sleep(0.05)
    with path.open("a") as file:
        file.write('lines"\nclose,,,\n')
    following.until(1)
    totals = following.end()
    assert following.error is None
    assert (totals.rounds, totals.added) == (1, 1)


def test_truncated_and_replaced_files(tmp_path: Path) -> None:
    for number, (spoil, message) in enumerate(
        [
            (lambda path: path.write_bytes(b""), "truncated to 0 bytes"),
            (lambda path: written(path.with_name("new"), [row()]).replace(path), "replaced by another"),
            (lambda path: path.unlink(), "is gone"),
        ]
    ):
        path = written(tmp_path / f"{number}.jsonl", [row(), CLOSE])
        following = Following(path)
        following.until(1)
        spoil(path)
        following.end(stop=False)
        assert isinstance(following.error, InputError)
        assert message in str(following.error)


def test_a_grid_by_the_clock(tmp_path: Path, growing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds close when their time is over, with or without records, whatever the records say."""
    now = [1000.0]
    monkeypatch.setattr("retroact.feeds.grid.now", lambda: now[0])
    grid = Grid(1000, 60, 1300)
    following = Following(tmp_path / "e.jsonl", rounds=grid, time="at")
    growing.write((json.dumps(row(at=1290)) + "\n").encode())
    time.sleep(0.1)
    assert following.rounds == []
    now[0] = 1125.0
    following.until(2)
    assert following.rounds == [1, 2]
    growing.write((json.dumps(row("FR", 2, at=1001)) + "\n").encode())
    time.sleep(0.1)
    now[0] = 1300.0
    following.until(5)
    totals = following.end(stop=False)
    assert following.error is None
    assert (totals.rounds, totals.added) == (5, 2)
    stream = shop()
    for round in range(1, 6):
        if round == 1:
            stream.add(row())
        if round == 3:
            stream.add(row("FR", 2), stamp=1)
        stream.close_round()
    assert stream.state() == following.stream.state()


def test_grace_and_refusal_and_no_times(tmp_path: Path, growing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1065.0]
    monkeypatch.setattr("retroact.feeds.grid.now", lambda: now[0])
    rounds = {**Grid(1000, 60).spec(), "late_events": "refuse", "grace": "10s"}
    following = Following(tmp_path / "e.jsonl", rounds=rounds, time="at")
    growing.write((json.dumps(row(at=1001)) + "\n").encode())
    time.sleep(0.1)
    assert following.rounds == []
    now[0] = 1071.0
    following.until(1)
    growing.write((json.dumps(row(at=1002)) + "\n").encode())
    time.sleep(0.1)
    now[0] = 1131.0
    following.until(2)
    totals = following.end()
    assert following.error is None
    assert (totals.added, totals.late) == (1, 1)
    following = Following(tmp_path / "e.jsonl", rounds=Grid(1000, 60, 1060))
    totals = following.end(stop=False)
    assert (totals.rounds, totals.added) == (1, 0)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["e.jsonl", "-"])
def test_interrupted(tmp_path: Path, how: signal.Signals, name: str) -> None:
    """An end as good as any: whole lines are handed over, the output is there, and the exit code is 0."""
    written(tmp_path / "e.jsonl", [row(), CLOSE])
    command = [*PROGRAM, "run", name, "--count", "--epsilon", "1", "--follow", "--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write((tmp_path / "e.jsonl").read_bytes())
    process.stdin.flush()
    while b"fresh key" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.5)
    process.send_signal(how)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert b"1 round; 1 record added" in err
    assert json.loads((tmp_path / "out").read_bytes())["round"] == 1


def test_a_grid_on_standard_input_needs_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"amount": 1}\n')))
    with pytest.raises(InputError, match="a grid on standard input needs --follow"):
        Played("-", grid=Grid(0, 60, 600), time="at")


def test_rounds_are_published_when_their_time_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when they take their last record: what comes in between belongs to the next one."""
    clock = [1000.0]
    monkeypatch.setattr("retroact.feeds.grid.now", lambda: clock[0])
    path = written(tmp_path / "e.jsonl", [row(at=1010)])
    rounds = {**Grid(1000, 60, 1180).spec(), "grace": "10s", "publish_after": "90s"}
    following = Following(path, rounds=rounds, time="at")
    wait_for(lambda: len(following.stream._core.open.updates) == 1)
    clock[0] = 1075.0
    time.sleep(0.1)
    with path.open("a") as file:
        file.write(f"{json.dumps(row(at=1065))}\n")
    time.sleep(0.2)
    assert (following.rounds, len(following.stream._core.open.updates)) == ([], 1)
    clock[0] = 1150.0
    following.until(1)
    wait_for(lambda: len(following.stream._core.open.updates) == 1)
    assert (following.rounds, following.stream.records) == ([1], 1)
    clock[0] = 1300.0
    following.until(3)
    assert following.rounds == [1, 2, 3]
    assert following.end(stop=False).added == 2


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()
