"""`retroact run --store`, stopped or killed at any time and run again, publishes the same bytes."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import retroact as ra
from support.cli_program import CLOSE, Program, lines
from support.store_commands import NEW, PEOPLE, Row, history


def reference(program: Program, events: Path, out: str, *options: object) -> Path:
    """What one uninterrupted run writes."""
    path = events.parent / f"reference-{out}"
    store = ("--spec", "shop.toml", "--store", "reference", "--testing-key", 5)
    ended = program("run", events, *store, *options, "--out", path, "-q")
    assert ended.code == 0, ended.err
    return path


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
def test_stopped_within_rounds_and_gone_on(program: Program, folder: Path, out: str) -> None:
    events, whole = folder / "events.jsonl", lines(*history(9))
    events.write_text(whole)
    expected = reference(program, events, out).read_bytes()
    every = whole.splitlines(keepends=True)
    for until in (9, 20, 21, 22, 45, len(every)):
        events.write_text("".join(every[:until]))
        ended = program("run", events, *NEW, "--testing-key", 5, "--out", out, "-q")
        assert ended.code == 0, ended.err
        assert out == "out.parquet" or expected.startswith((folder / out).read_bytes())
    assert (folder / out).read_bytes() == expected
    same_as_reference()


def same_as_reference() -> None:
    key = ra.Key.for_testing(5)
    with ra.Stream.open("orders", key=key) as stream, ra.Stream.open("reference", key=key) as other:
        assert stream.store.blocks() == other.store.blocks()
        assert stream.store.releases() == other.store.releases()
        assert stream.verify().problems == []


def as_jsonl(path: Path, rounds: int) -> tuple[object, ...]:
    events = history(rounds, records=8)
    where = [position for position, event in enumerate(events) if event is CLOSE]
    events.insert(where[rounds // 2], {"op": "erase", "subject": "carl-d"})
    path.write_text(lines(*events))
    return ()


def as_csv(path: Path, rounds: int) -> tuple[object, ...]:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["op", "id", "subject", "stamp", "country", "amount"])
        for event in history(rounds, records=8):
            record = event.get("record", {})
            names = [event.get(name, "") for name in ("id", "subject", "stamp")]
            rows.writerow([event["op"], *names, record.get("country", ""), record.get("amount", "")])
    return ()


NUMBERED = ("--id", "order", "--subject", "who", "--round", "day", "--rounds")


def numbered(rounds: int) -> list[Row]:
    rows = [(round, number) for round in range(1, rounds + 1) for number in range(40)]
    return [
        {"country": ("DE", "FR")[number % 2], "amount": float(number), "who": PEOPLE[number % 4],
         "order": str(number + 7 * round), "day": round}
        for round, number in rows
    ]  # fmt: skip


def as_numbered_csv(path: Path, rounds: int) -> tuple[object, ...]:
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, list(numbered(1)[0]))
        rows.writeheader()
        rows.writerows(numbered(rounds))
    return (*NUMBERED, rounds)


def as_parquet(path: Path, rounds: int) -> tuple[object, ...]:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(numbered(rounds)), path, row_group_size=333)
    return (*NUMBERED, rounds)


def run_and_kill(arguments: list[str], at: int, fence: Path, delay: float) -> int:
    """Run the program in a process of its own, and kill it when its fence is at a round; how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            from retroact.cli import main

            with Path("stderr").open("w") as sys.stderr:
                main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            os._exit(code)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if fence.exists() and fence.stat().st_size and json.loads(fence.read_bytes())["round"] >= at:
            break
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("write", "name", "out"),
    [
        (as_jsonl, "events.jsonl", "out.jsonl"),
        (as_numbered_csv, "events.csv", "out.csv"),
        (as_csv, "events.csv", "out.jsonl"),
        (as_parquet, "events.parquet", "out.csv"),
    ],
)
def test_killed_again_and_again(program: Program, folder: Path, write: Any, name: str, out: str) -> None:
    if write is as_parquet:
        pytest.importorskip("pyarrow")
    rounds, choose, ended = 24, random.Random(name + out), []
    options = write(folder / name, rounds)
    expected = reference(program, folder / name, out, *options).read_bytes()
    command = ["run", name, *NEW, "--testing-key", "5", *map(str, options), "--out", out, "-q"]
    # the first time as soon as there is a fence
    for at in (0, 5, 11, 17, rounds + 1):
        ended.append(run_and_kill(command, at, folder / "orders.fence", choose.uniform(0, 0.01)))
        assert ended[-1] in (0, -signal.SIGKILL), (folder / "stderr").read_text()
        written = (folder / out).read_bytes() if (folder / out).exists() else b""
        assert expected.startswith(written)
    assert ended.count(-signal.SIGKILL) >= 3
    assert ended[-1] == 0
    assert written == expected
    assert program(*command).code == 0
    assert (folder / out).read_bytes() == expected
    same_as_reference()


def test_the_installed_program_killed_while_it_follows(program: Program, folder: Path) -> None:
    """A real process on a file that grows, killed in the middle of a round."""
    events = folder / "events.jsonl"
    whole = lines(*history(6))
    events.write_text(whole)
    expected = reference(program, events, "out.jsonl").read_bytes()
    events.write_text("".join(whole.splitlines(keepends=True)[:28]))
    command = [sys.executable, "-c", "from retroact.cli import main; main()", "run", "events.jsonl", *NEW]
    process = subprocess.Popen([*command, "--testing-key", "5", "--out", "out.jsonl", "-q", "--follow"])
    try:
        until = time.monotonic() + 60
        while not (folder / "out.jsonl").exists() or b'"round":3' not in (folder / "out.jsonl").read_bytes():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert expected.startswith((folder / "out.jsonl").read_bytes())
    events.write_text(whole)
    assert program("run", "events.jsonl", *NEW, "--testing-key", 5, "--out", "out.jsonl", "-q").code == 0
    assert (folder / "out.jsonl").read_bytes() == expected
