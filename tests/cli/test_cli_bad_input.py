"""What once ended with a traceback: an input error with its place, and exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from support.cli_program import CLOSE, Program, add, lines

ROW = {"country": "DE", "amount": 1}
DEBEZIUM = {"op": "c", "before": None, "after": ROW, "ts_ms": 1}
FIRST = {
    "Debezium with its schema": {"schema": {}, "payload": DEBEZIUM},
    "Debezium": DEBEZIUM,
    "insert/delete": {"insert": ROW},
    "native": add(),
    "plain": ROW,
    "words": {**ROW, "op": "+I"},
    "weights": {**ROW, "mz_diff": 1},
}
ODD: list[Any] = [[1], [], [[]], [None], 5, "x", True, {}, {"payload": [1]}, {"payload": {"op": []}}, {"op": {}}]


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
def test_lines_that_are_no_events(name: str, odd: Any, program: Program, folder: Path) -> None:
    (folder / "e.jsonl").write_text(lines(FIRST[name], odd))
    ended = program("run", "e.jsonl", "--spec", "shop.toml", "-q")
    if odd == [] and name == "insert/delete":
        # a list of no changes
        assert ended.code == 0
        return
    assert ended.code == 2
    assert ended.err.startswith("error: e.jsonl:2: ")


COUNT = "[statistics]\nn = { type = 'count' }\n"
SCHEMA = "[schema]\na = { type = 'number', lower = 0, upper = 9 }\nc = { type = 'category', values = ['x', 'y'] }\n"
KINDS = {"sum": "", "histogram": "", "quantiles": ", probabilities = [0.5]", "kmeans": ", k = 2"}
SPECS = {
    "statistics.n.type": [SCHEMA + f"[statistics]\nn = {{ type = {odd} }}\n" for odd in ("{}", "[]", "[[1]]", "5")],
    "statistics.n.by": [
        SCHEMA + f"[statistics]\nn = {{ type = 'count', by = {odd} }}\n"
        for odd in ("5", "[[1]]", "[{}]", "true", "1.5", "[]", "2020-01-01", "['c', 5]")
    ],
    "statistics.n.weight": [
        SCHEMA + f"[statistics]\nm = {{ type = 'count' }}\nn = {{ type = 'count', weight = {odd} }}\n"
        for odd in ("1e-320", "0", "-1", "inf", "nan", "1e300", "true", "[]", "{}")
    ],
    "schema.a": [f"[schema]\na = {{ type = {odd} }}\n{COUNT}" for odd in ("{}", "[]", "[[1]]", "5")],
    "schema.c": [
        f"[schema]\nc = {{ type = 'category', values = {odd} }}\n{COUNT}"
        for odd in ("[[]]", "[[['x']]]", "[{}]", "{}", "5")
    ],
    "statistics.n": [
        SCHEMA + f"[statistics]\nn = {{ type = '{kind}', field = {odd}{more} }}\n"
        for kind, more in KINDS.items()
        for odd in ("5", "{}", "[[1]]", "[{}]", "true")
    ],
    "statistics.n.field": [
        SCHEMA + "[statistics]\nn = { type = 'histogram', field = 'c', sum = ['a'] }\n",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("place", "text"), [(place, text) for place, texts in SPECS.items() for text in texts])
def test_values_that_no_specification_has(place: str, text: str, program: Program, folder: Path) -> None:
    text = f"epsilon = 1\nhorizon = 9\ndelta = 1e-6\n{text}"
    (folder / "spec.toml").write_text(text)
    ended = program("plan", "spec.toml")
    assert (ended.code, ended.out) == (2, "")
    key = f"{place.split('.')[1]} = "
    (line,) = (number for number, line in enumerate(text.splitlines(), 1) if line.startswith(key))
    assert ended.err.startswith(f"error: spec.toml:{line}: ")
    assert f"- at {place}" in ended.err


SINGLE = [np.datetime64("NaT"), np.timedelta64("NaT"), np.datetime64("2020-01-01"), np.float64("nan"), np.True_]
NAMES = [*SINGLE, np.array(5), np.array("u"), date(2020, 1, 1), float("nan"), b"u", {}, [np.datetime64("NaT")], [[1]]]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_and_stamps_that_are_none(name: Any) -> None:
    stream = ra.Stream({"x": ra.Integer(0, 9)}, {"n": ra.Count()}, epsilon=1.0, horizon=9, key=ra.Key.for_testing(1))
    for data in ({"x": 1}, {"x": [1]}):
        for role in ("id", "subject", "stamp"):
            with pytest.raises(ra.InputError) as caught:
                stream.add(data, **{role: name})
            assert caught.value.path == role
    for call in (lambda: stream.erase(subject=name), lambda: stream.delete(id=name)):
        with pytest.raises(ra.InputError):
            call()
    assert stream.discard() == 0


def test_broken_metadata_of_a_parquet_file(program: Program, folder: Path) -> None:
    path = folder / "e.parquet"
    pq.write_table(pa.table({"country": ["DE"] * 9, "amount": [1.0] * 9}), path)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    for broken in (
        content[:-8] + (2**31 - 1).to_bytes(4, "little") + content[-4:],
        content[: -8 - size] + bytes(size) + content[-8:],
        content[: -8 - size] + bytes([255] * size) + content[-8:],
        content[:-8].replace(b"country", b"countr\xff") + content[-8:],
        content[:40],
        b"PAR1",
        b"",
    ):
        path.write_bytes(broken)
        ended = program("run", "e.parquet", "--spec", "shop.toml", "-q")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: e.parquet: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_outputs_that_cannot_be_written(format: str, program: Program, folder: Path) -> None:
    (folder / "e.jsonl").write_text(lines(add(), CLOSE, add()))
    ended = program("run", "e.jsonl", "--spec", "shop.toml", "-q", "--out", "/dev/full", "--format", format)
    assert (ended.code, ended.err) == (2, "error: /dev/full: no space left on device - at --out\n")
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "retroact", "run", "e.jsonl", "--spec", "shop.toml", "-q", "--format", format]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "error: standard output: no space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["plan", "shop.toml"], ["plan", "shop.toml", "--json"], ["explain", "shop.toml"]])
def test_a_full_standard_output(command: list[str], folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        program = [sys.executable, "-m", "retroact", *command]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "error: standard output: no space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_receipt_that_cannot_be_written(program: Program, folder: Path) -> None:
    (folder / "e.jsonl").write_text(lines(add(subject="u"), CLOSE))
    assert program("run", "e.jsonl", "--spec", "shop.toml", "--store", "orders").code == 0
    ended = program("erase", "orders", "--subject", "u", "--request", "r", "--receipt", "/dev/full")
    assert ended.code == 2
    assert ended.err == "error: /dev/full: no space left on device - at --receipt\n"
