"""A last line that nothing ends may be half of one: a durable stream leaves it unread, and says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import retroact as ra
from support.cli_program import CLOSE, Ended, Program, lines

SPEC = """
epsilon = 1.0
horizon = 50
[schema]
amount = { type = "number", lower = 0, upper = 500 }
[statistics]
orders = { type = "count" }
"""
STORE = ("--store", "orders", "--testing-key", 5)


@pytest.fixture
def run(program: Program, folder: Path):
    (folder / "spec.toml").write_text(SPEC)

    def call(name: str, *more: object, stdin: bytes | None = None) -> Ended:
        return program("run", name, "--spec", "spec.toml", *STORE, *more, stdin=stdin)

    return call


def amounts(folder: Path) -> list[float]:
    """Of the records of the store, in hundredths, those of the open round too."""
    with ra.Stream.open(folder / "orders", key=ra.Key.for_testing(5)) as stream:
        if not stream.over:
            stream.close_round()
        data = stream._core.ledger.data()
        return sorted(data.rows.columns["amount"].repeat(data.counts).tolist())


def test_half_a_number_is_not_taken_for_a_whole_one(run, folder: Path) -> None:
    (folder / "e.csv").write_bytes(b"id,amount\na,5\nb,12")
    first = run("e.csv")
    (folder / "e.csv").write_bytes(b"id,amount\na,5\nb,125.5\n")
    second = run("e.csv")
    assert amounts(folder) == [500, 12550]
    assert (first.code, second.code) == (0, 0)
    assert "warning: e.csv:3: the last line has no end" in first.err
    assert "no end" not in second.err


FIVE = b'{"op":"add","record":{"amount":5}}\n'
REST = b'{"op":"add","record":{"amount":125.5}}\n'
HALVES = {
    "CSV": ("e.csv", b"id,amount\na,5\n", b"b,12", b"5.5\n", 3, 0),
    "CSV with an open quote": ("e.csv", b"id,amount\na,5\n", b'"b\nb",12', b"5.5\n", 3, 0),
    "CSV inside a quote": ("e.csv", b"id,amount\na,5\n", b'"b\nb', b'",125.5\n', 3, 0),
    "CSV after the end inside a quote": ("e.csv", b"id,amount\na,5\n", b'"b\n', b'",125.5\n', 3, 0),
    "CSV with old ends": ("e.csv", b"id,amount\ra,5\r", b"b,12", b"5.5\r", 3, 0),
    "CSV that adds": ("e.csv", b"op,id,amount\nadd,a,5\n", b"add,b,12", b"5.5\n", 3, 0),
    "CSV that may delete": ("e.csv", b"op,id,amount\nadd,a,5\n", b"ad", b"d,b,125.5\n", 3, 2),
    "CSV that deletes": ("e.csv", b"op,id,amount\nadd,a,5\n", b"delete,c,", b"\nadd,b,125.5\n", 3, 2),
    "CSV whose op comes last": ("e.csv", b"id,amount,op\na,5,add\n", b"b,125.5,ad", b"d\n", 3, 2),
    "CSV with a weight": ("e.csv", b"diff,amount\n1,5\n", b"1,12", b"5.5\n", 3, 0),
    "CSV with a negative weight": ("e.csv", b"diff,id,amount\n1,a,5\n", b"-1,c,7", b"\n1,b,125.5\n", 3, 2),
    "JSON": ("e.jsonl", FIVE, b'{"op": "add", "record": {"amount": 12', b"5.5}}\n", 2, 0),
    "JSON that is whole": ("e.jsonl", FIVE, b'{"record":{"amount":125.5},"op":"add"}', b"\n", 2, 0),
    "JSON that may be anything": ("e.jsonl", FIVE, b'{"rec', b'ord":{"amount":125.5},"op":"add"}\n', 2, 2),
    "JSON that deletes": ("e.jsonl", FIVE, b'{"op":"delete","id":1}', b"\n" + REST, 2, 2),
    "JSON that closes": ("e.jsonl", FIVE, b'{"op":"close"}', b"\n" + REST, 2, 2),
    "plain JSON": ("e.jsonl", b'{"amount":5}\n', b'{"amount":125.5}', b"\n", 2, 0),
    "half of plain JSON": ("e.jsonl", b'{"amount":5}\n', b'{"amount":12', b"5.5}\n", 2, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", HALVES)
def test_half_a_line_waits_for_the_rest(name: str, run, folder: Path) -> None:
    file, whole, half, rest, line, code = HALVES[name]
    (folder / file).write_bytes(whole + half)
    for _ in range(2):
        ended = run(file)
        assert ended.code == code, ended.err
        assert f"{file}:{line}: the last line has no end" in ended.err
        assert ended.err.count(f"{file}:{line}") == 1
    (folder / file).write_bytes(whole + half + rest)
    ended = run(file)
    assert ended.code == 0, ended.err
    assert "no end" not in ended.err
    assert amounts(folder) == [500, 12550]


@pytest.mark.parametrize("name", ["CSV", "CSV that adds", "JSON that is whole", "plain JSON"])
def test_complete_takes_a_last_line_without_an_end(name: str, run, folder: Path) -> None:
    file, whole, half, *_ = HALVES[name]
    (folder / file).write_bytes(whole + half)
    for more in (("--complete",), (), ("--complete",)):
        ended = run(file, *more)
        assert (ended.code, "no end" in ended.err) == (0, False)
    assert amounts(folder) == [500, 1200 if "CSV" in name else 12550]


@pytest.mark.parametrize("name", ["CSV", "JSON", "CSV that may delete", "header"])
def test_a_last_line_without_an_end_is_named_when_nothing_else_came(name: str, run, folder: Path) -> None:
    content = {
        "CSV": b"id,amount\nb,12",
        "header": b"id,amo",
        "CSV that may delete": b"op,amount\nde",
        "JSON": b'{"op": "a',
    }
    file = "e.jsonl" if name == "JSON" else "e.csv"
    (folder / file).write_bytes(content[name])
    ended = run(file)
    assert (ended.code, ended.out) == (0 if name == "CSV" else 2, "")
    assert f"{file}:{2 if name.startswith('CSV') else 1}: the last line has no end" in ended.err
    # nor is a round closed for it
    with ra.Stream.open(folder / "orders", key=ra.Key.for_testing(5)) as stream:
        assert stream.round == 1
    again = run(file, "-q")
    assert (again.code, "the last line has no end" in again.err) == (ended.code, True)


def test_the_end_of_standard_input_ends_its_last_line(run, folder: Path) -> None:
    ended = run("-", stdin=b'{"op":"add","record":{"amount":5}}\n{"op":"add","record":{"amount":12}}')
    assert (ended.code, "no end" in ended.err) == (0, False)
    assert amounts(folder) == [500, 1200]


def test_without_a_store_the_last_line_is_taken(program: Program, folder: Path) -> None:
    (folder / "spec.toml").write_text(SPEC)
    (folder / "e.csv").write_bytes(b"id,amount\na,5\nb,12")
    ended = program("run", "e.csv", "--spec", "spec.toml", "--testing-key", 1)
    assert (ended.code, "no end" in ended.err) == (0, False)
    assert "2 records added" in ended.err


def test_blanks_at_the_end_are_no_line(run, folder: Path) -> None:
    for file, content in {
        "e.csv": b"id,amount\na,5\n  ",
        "f.jsonl": b'{"op":"add","record":{"amount":5}}\n \t',
    }.items():
        (folder / file).write_bytes(content)
        ended = run(file)
        assert (ended.code, "no end" in ended.err) == (0, False), ended.err


def test_on_a_grid_half_a_line_stops_the_run_before_rounds_close(run, folder: Path) -> None:
    grid = ("--time", "at", "--start", "2026-01-01", "--length", "1d", "--end", "2026-01-03")
    (folder / "e.csv").write_bytes(b"at,amount\n2026-01-01,5\n2026-01-02,12")
    ended = run("e.csv", *grid)
    assert (ended.code, ended.out) == (2, "")
    assert "e.csv:3: the last line has no end" in ended.err
    assert run("e.csv", *grid, "--complete").code == 0
    assert amounts(folder) == [500, 1200]


def test_close_lines_before_half_a_line_are_published(run, folder: Path) -> None:
    (folder / "e.jsonl").write_text(lines({"op": "add", "record": {"amount": 1}}, CLOSE) + '{"op": "delete", "id":')
    ended = run("e.jsonl")
    assert ended.code == 2
    assert [json.loads(line)["round"] for line in ended.out.splitlines()] == [1]
    assert "e.jsonl:3: the last line has no end" in ended.err


def test_a_followed_file_gives_the_rest_of_its_last_line_in_time(run, folder: Path) -> None:
    """A real process: half a line waits while it runs, and is named when it is interrupted before the rest came."""
    (folder / "spec.toml").write_text(SPEC)
    events, out = folder / "e.jsonl", folder / "out.jsonl"
    end = json.dumps(CLOSE).encode() + b"\n"
    events.write_bytes(FIVE + end + REST[:-12])
    program = [sys.executable, "-c", "from retroact.cli import main; main()", "run", "e.jsonl", "--spec", "spec.toml"]
    command = [*program, *map(str, STORE), "--out", "out.jsonl", "-q", "--follow"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=folder)
    try:
        published(out, 1, process)
        with events.open("ab") as file:
            file.write(REST[-12:] + end + FIVE[:-9])
        published(out, 2, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert b"e.jsonl:5: the last line has no end" in err
    assert amounts(folder) == [500, 12550]


def published(out: Path, round: int, process: subprocess.Popen) -> None:
    """Waits for a round in the output."""
    until = time.monotonic() + 60
    while not out.exists() or f'"round":{round},'.encode() not in out.read_bytes():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
