"""`retroact run` on change feeds: what it shows, what it refuses, and what it says at the end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from support.cli_program import CLOSE, Program, lines

COUNT = ("--count", "--sum", "amount:0..500", "--epsilon", 1, "--horizon", 50, "--testing-key", 1)


def debezium(op: str, before: Any, after: Any, lsn: int) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"lsn": lsn}, "ts_ms": lsn * 1000}


CHANGES = [
    debezium("c", None, {"order": 1, "amount": 5, "who": "u1", "note": "x"}, 1),
    debezium("c", None, {"order": 2, "amount": 6, "who": "u2", "note": "x"}, 2),
    debezium("c", None, {"order": 2, "amount": 6, "who": "u2", "note": "x"}, 2),
    None,
    CLOSE,
    debezium("d", {"order": 1}, None, 3),
    CLOSE,
]


def test_what_is_recognised_is_shown(program: Program) -> None:
    columns = ("--id", "order", "--subject", "who", "--position", "source.lsn")
    ended = program("run", "-", *COUNT, *columns, stdin=lines(*CHANGES).encode())  # type: ignore[arg-type]
    assert ended.code == 0, ended.err
    assert "stdin: JSON lines, Debezium; fields: amount" in ended.err
    assert "columns: id in 'order', subject in 'who', position in 'source.lsn'" in ended.err
    assert "ignored, as no statistic needs them: 'note'" in ended.err
    assert 'example, line 1: {"op":"add","record":{"amount":5},"id":1,"subject":"u1"}' in ended.err
    assert "absorbed 1 event that came before (first: stdin:3)" in ended.err
    assert "1 tombstones skipped" in ended.err
    assert "2 rounds; 2 records added, 1 removed" in ended.err


def test_a_specification_takes_other_envelopes_too(program: Program, folder: Path) -> None:
    rows = [{"insert": {"country": "DE", "amount": 1, "key": 7, "more": 1}}, CLOSE, {"delete": {"key": 7}}, CLOSE]
    ended = program("run", "-", "--spec", "shop.toml", "--id", "key", stdin=lines(*rows).encode())
    assert "stdin:1: expected the columns country, amount" in ended.err
    assert "got an unknown column 'more'" in ended.err
    spec = (folder / "shop.toml").read_text()
    (folder / "more.toml").write_text(f'{spec}\n[columns]\nid = "key"\nignore = ["more"]\n')
    ended = program("run", "-", "--spec", "more.toml", stdin=lines(*rows).encode())
    assert ended.code == 0, ended.err
    assert "1 record added, 1 removed" in ended.err
    plain = lines({"country": "DE", "amount": 1}, CLOSE).encode()
    assert program("run", "-", "--spec", "shop.toml", stdin=plain).code == 0


def test_a_grid(program: Program, folder: Path) -> None:
    days = ["2026-01-03", "2026-01-01T12:00:00Z", "2026-01-02T23:59:59.999Z"]
    (folder / "e.csv").write_text("amount,day\n" + "".join(f"{n},{day}\n" for n, day in enumerate(days)))
    grid = ("--time", "day", "--start", "2026-01-01", "--length", "1d")
    ended = program("run", "e.csv", *COUNT, *grid, "--end", "2026-01-06")
    assert ended.code == 0, ended.err
    assert sorted({release["round"] for release in ended.releases}) == [1, 2, 3, 4, 5]
    assert "time in 'day'" in ended.err
    assert "5 rounds; 3 records added" in ended.err
    ended = program("run", "e.csv", *COUNT, *grid, "-q")
    assert ended.code == 2
    assert "needs its end (--end)" in ended.err
    ended = program("run", "e.csv", *COUNT, *grid, "--end", "2026-01-03", "-q")
    assert ended.err.startswith("error: e.csv:2: expected a time on the grid, got one after the end - at day\nhint: ")


def test_aggregated_input_says_what_it_costs(program: Program) -> None:
    data = lines({"amount": 1, "diff": 3}, CLOSE).encode()
    assert "aggregated input" in program("run", "-", *COUNT, "-q", stdin=data).err
    ended = program("run", "-", *COUNT, "--contribution", 4, stdin=data)
    assert ended.code == 0, ended.err
    warning = "one event is up to 4 operations, so for one event the guarantee is that of a group of 4: ε = 4"
    assert ended.err.count(warning) == 2
    assert "3 records added" in ended.err


OPTIONS: dict[str, tuple[tuple[object, ...], str]] = {
    "count": (("--close-by", "updates:1000"), "rounds never close by a count"),
    "time": (("--close-by", "timestamp"), "depends on its own time alone - at --close-by"),
    "unknown": (("--close-by", "moon"), "expected one of lines, progress, grid, end, got 'moon'"),
    "grid": (("--close-by", "grid"), "expected a grid: --start and --length"),
    "start": (("--time", "t", "--length", "1h"), "expected start and length for a grid of rounds - at --start"),
    "length": (("--time", "t", "--start", "0"), "expected start and length for a grid of rounds - at --length"),
    "bad length": (("--time", "t", "--start", "0", "--length", "1 year"), "got '1 year' - at --length"),
    "bad start": (("--time", "t", "--start", "noon", "--length", "1h"), "got 'noon' - at --start"),
    "bad end": (("--time", "t", "--start", "0", "--length", "1h", "--end", "5"), "- at --end"),
    "grace": (("--grace", "soon"), "got 'soon' - at --grace"),
    "late": (("--late", "maybe"), "expected 'stamp' or 'refuse', got 'maybe' - at --late"),
    "no grid": (("--time", "t"), "expected a grid"),
    "positions": (
        ("--time", "t", "--start", "0", "--length", "1h", "--end", "3600", "--position", "p"),
        "expected no positions with a grid",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_refused_with_the_reason(name: str, program: Program, folder: Path) -> None:
    options, message = OPTIONS[name]
    (folder / "e.jsonl").write_text('{"amount": 1, "t": 1}\n')
    ended = program("run", "e.jsonl", *COUNT, *options, "-q")
    assert ended.code == 2
    assert message in ended.err
    assert len([line for line in ended.err.splitlines() if not line.startswith("hint: ")]) == 1


def test_tables(program: Program, folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    rows = {"amount": [5.0, 6.0], "who": ["u1", "u2"], "note": ["x", "y"]}
    parquet.write_table(pyarrow.table(rows), folder / "e.parquet")
    (folder / "e.jsonl").write_text(
        "".join(json.dumps({"amount": a, "who": w}) + "\n" for a, w in ((5, "u1"), (6, "u2")))
    )
    table = program("run", "e.parquet", *COUNT, "--subject", "who")
    assert table.code == 0, table.err
    assert table.out == program("run", "e.jsonl", *COUNT, "--subject", "who").out
    assert "e.parquet: Parquet" in table.err
    assert "subject in 'who'" in table.err
    assert "'note'" in table.err
    assert "2 records added" in table.err


def test_csv_on_standard_input_and_other_delimiters(program: Program, folder: Path) -> None:
    rows = "id;amount;country\n1;12.5;DE\n2;NA;FR\n"
    options = ["--count", "--sum", "amount:0..500", "--skip-missing", "--epsilon", 1, "--testing-key", 1]
    piped = program("run", "-", *options, "--na-values", "NA", stdin=rows.encode())
    assert (piped.code, len(piped.releases)) == (0, 2)
    assert "stdin: CSV, cells separated by ';'" in piped.err
    assert "amount leaves out 1 surviving record" in piped.err
    (folder / "rows.csv").write_bytes(gzip.compress(rows.replace(";", "\t").encode()))
    packed = program("run", "rows.csv", *options, "--na-values", "NA")
    assert packed.out == piped.out
    assert "rows.csv: CSV, compressed with gzip, cells separated by tabs" in packed.err
    named = program("run", "rows.csv", *options, "--na-values", "NA", "--delimiter", "tab", "--input-format", "csv")
    assert named.out == piped.out


def test_how_input_is_read_is_checked(program: Program, folder: Path) -> None:
    (folder / "rows.csv").write_text("id,amount\n1,5\n")
    (folder / "rows.jsonl").write_text('{"id": 1, "amount": 5}\n')
    options = ["--count", "--sum", "amount:0..500", "--epsilon", 1, "--testing-key", 1]
    for more, wrong in [
        (["rows.csv", "--delimiter", ";;"], "expected one character, such as ; or | or tab, got ';;' - at --delimiter"),
        (["rows.csv", "--input-format", "xml"], "'csv', 'tsv' or 'jsonl', got 'xml' - at --input-format"),
        (["rows.jsonl", "--na-values", "NA"], "expected CSV, got JSON lines, where null is missing - at --na-values"),
    ]:
        ended = program("run", *more, *options)
        assert (ended.code, ended.out) == (2, "")
        assert wrong in ended.err


def test_rounds_by_the_calendar(program: Program, folder: Path) -> None:
    (folder / "rows.csv").write_text("amount,at\n5,2026-03-29 00:30:00\n7,2026-03-31T21:59:00Z\n9,2026-04-01\n")
    grid = ["--time", "at", "--start", "2026-03-01", "--end", "2026-05-01", "--time-zone", "Europe/Berlin"]
    options = ["--count", "--epsilon", 1, *grid]
    ended = program("run", "rows.csv", *options, "--length", "1mo", "--store", "orders")
    assert (ended.code, len(ended.releases)) == (0, 2)
    assert program("verify", "orders").code == 0
    wrong = program("run", "rows.csv", *options, "--length", "2mo", "--store", "orders")
    assert (wrong.code, "rounds.length" in wrong.err) == (2, True)
    wrong = program("run", "rows.csv", *options[:-1], "Europe/Berlyn", "--length", "1mo")
    assert (wrong.code, "did you mean 'Europe/Berlin'?) - at --time-zone" in wrong.err) == (2, True)


def test_a_grid_is_delivered_in_parts(program: Program, folder: Path) -> None:
    (folder / "1.csv").write_text("day,who,amount\n2026-01-02,ann,5\n2026-01-01,bob,1\n")
    (folder / "2.csv").write_text("day,who,amount\n2026-01-06,cy,7\n")
    options = [*["--count", "--sum", "amount:0..9", "--epsilon", "1", "--subject", "who", "--time", "day"]]
    options += ["--start", "2026-01-01", "--length", "1d", "--end", "2026-01-11", "--testing-key", "1"]
    for file, until in (("1.csv", "2026-01-04"), ("2.csv", "2026-01-10")):
        checked = program("check", file, *options[:-2], "--until", until)
        assert checked.code == 0, checked.err
    stored = [*options, "--store", "s"]
    ended = program("run", "1.csv", *stored, "--until", "2026-01-04")
    assert {release["round"] for release in ended.releases} == {1, 2, 3}
    assert program("erase", "s", "--subject", "ann", "--testing-key", "1").code == 0
    ended = program("run", "2.csv", *stored, "--until", "2026-01-10")
    assert {release["round"] for release in ended.releases} == {4, 5, 6, 7, 8, 9}
    assert program("verify", "s", "--testing-key", "1").code == 0
    ended = program("run", "2.csv", *stored, "--until", "2026-01-10T12:00:00Z")
    assert ended.code == 2
    assert ended.err.endswith("got '2026-01-10T12:00:00Z' - at --until\n")
    ended = program("check", "2.csv", *options[:-2], "--until", "2026-01-05")
    assert ended.code == 2
    assert "got one from 2026-01-05 on (--until)" in ended.out
