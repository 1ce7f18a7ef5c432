"""`retroact export`: what was published, in all formats."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from support.cli_program import Program


def test_export_in_all_formats(program: Program, orders: Path) -> None:
    folder = orders.parent
    for name in ("a.jsonl", "a.csv", "a.parquet", "a.arrow"):
        assert program("export", "orders", "--out", name).code == 0
    assert (folder / "a.jsonl").read_bytes() == (folder / "out.jsonl").read_bytes()
    assert program("export", "orders").out.encode() == (folder / "a.jsonl").read_bytes()
    assert program("export", "orders", "--format", "csv").out.encode() == (folder / "a.csv").read_bytes()
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(folder / "a.parquet").to_pylist()
    assert pyarrow.ipc.open_file(folder / "a.arrow").read_all().to_pylist() == rows
    with (folder / "a.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    numbers = ("value", "standard_error", "low", "high")
    assert len(rows) == len(table) > 30
    for row, line in zip(rows, table, strict=True):
        keys = [str(row["round"]), row["statistic"], row["country"] or ""]
        assert keys == [line["round"], line["statistic"], line["country"]]
        assert [row[name] for name in numbers] == [float(line[name]) if line[name] else None for name in numbers]


def test_export_of_some_rounds(program: Program, orders: Path) -> None:
    whole = (orders.parent / "out.jsonl").read_text().splitlines()
    for options, wanted in {
        ("--first", 3): {3, 4, 5, 6},
        ("--last", 2): {1, 2},
        ("--first", 4, "--last", 5): {4, 5},
        ("--first", 5, "--last", 4): set(),
        ("--first", 9): set(),
    }.items():
        ended = program("export", "orders", *options)
        assert ended.code == 0
        assert ended.out.splitlines() == [line for line in whole if json.loads(line)["round"] in wanted]
    assert program("export", "orders", "--first", 0).code == 2
    ended = program("export", "orders", "--out", "nowhere/out.csv")
    assert (ended.code, ended.err) == (
        2,
        "error: nowhere/out.csv: expected a file in a folder that exists - at --out\n",
    )
