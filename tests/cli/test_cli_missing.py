"""Missing values on the command line: counted where they are not needed, told to the operator, published nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.cli_program import CLOSE, Program, lines

FLIGHTS = [{"carrier": f"c{n % 3}", "delay": None if n % 4 == 0 else 5 + n % 20} for n in range(200)]
OPTIONS = ("--count", "--mean", "delay:-60..600:1", "--skip-missing", "--epsilon", 400, "--horizon", 3)
NOTE = "note: mean_delay leaves out 50 surviving records without a value\n"


def test_a_count_counts_every_record_whatever_else_it_lacks(program: Program, folder: Path) -> None:
    """The same bytes from all formats: a field that is empty, null or left out is missing."""
    rows = [f"{f['carrier']},{'' if f['delay'] is None else f['delay']}" for f in FLIGHTS]
    (folder / "flights.csv").write_text("\n".join(["carrier,delay", *rows, ""]))
    (folder / "null.jsonl").write_text("".join(json.dumps(flight) + "\n" for flight in FLIGHTS))
    known = [{name: value for name, value in flight.items() if value is not None} for flight in FLIGHTS]
    (folder / "absent.jsonl").write_text("".join(json.dumps(flight) + "\n" for flight in known))
    bare = [{"delay": flight["delay"]} if "delay" in flight else {} for flight in known]
    (folder / "native.jsonl").write_text(lines(*({"op": "add", "record": record} for record in bare), CLOSE))
    pq.write_table(pa.Table.from_pylist(FLIGHTS), folder / "flights.parquet")
    files = ("flights.csv", "null.jsonl", "absent.jsonl", "native.jsonl", "flights.parquet")
    outputs = set()
    for name in files:
        ended = program("run", name, *OPTIONS, "--testing-key", 5)
        assert ended.code == 0, ended.err
        count, mean = ended.releases
        assert abs(count["value"] - 200) < 2, "every flight counts"
        assert abs(mean["value"] - 14.8) < 2, "and those without a delay are no part of the mean"
        assert "200 records added" in ended.err
        assert NOTE in ended.err
        assert "note: count leaves out" not in ended.err
        outputs.add(ended.out)
    assert len(outputs) == 1


def test_numbers_left_out_are_for_the_operator_alone(program: Program, folder: Path) -> None:
    (folder / "flights.jsonl").write_text("".join(json.dumps(flight) + "\n" for flight in FLIGHTS))
    for out in ("out.jsonl", "out.csv", "out.parquet"):
        ended = program("run", "flights.jsonl", *OPTIONS, "--testing-key", 5, "--out", out)
        assert (ended.code, ended.out) == (0, "")
        assert NOTE in ended.err
        assert b"leaves" not in (folder / out).read_bytes()
        assert b"left" not in (folder / out).read_bytes()
    quiet = program("run", "flights.jsonl", *OPTIONS, "--testing-key", 5, "-q")
    assert "leaves out" not in quiet.err + quiet.out


def test_a_store_goes_on_with_records_that_lack_values(program: Program, folder: Path) -> None:
    """Deletions by value pass the same door: what is empty in the file is missing in the record."""
    (folder / "spec.toml").write_text(
        "epsilon = 50.0\nhorizon = 8\n[schema]\n"
        'delay = { type = "integer", lower = -60, upper = 600, missing = "skip" }\n'
        'kind = { type = "text", missing = "skip" }\n'
        '[statistics]\nflights = { type = "count" }\ndelay = { type = "mean", field = "delay" }\n'
        'jets = { type = "count", where = { kind = "jet" } }\n'
    )
    header = "op,stamp,delay,kind\n"
    (folder / "one.csv").write_text(header + "add,,5,jet\nadd,,,jet\nadd,,-60,\nadd,,,\nclose,,,\n")
    (folder / "two.csv").write_text(header + "delete,1,,\ndelete,1,,jet\ndelete,1,-60,jet\nclose,,,\n")
    one = program("run", "one.csv", "--spec", "spec.toml", "--store", "flights", "--testing-key", 5)
    assert one.code == 0, one.err
    assert "note: delay leaves out 2 surviving records" in one.err
    assert "note: jets leaves out 2 surviving records" in one.err
    two = program("run", "two.csv", "--store", "flights", "--testing-key", 5)
    assert two.code == 0, two.err
    assert "0 records added, 2 removed; 1 deletion named nothing" in two.err
    assert "delay leaves out" not in two.err
    assert "note: jets leaves out 1 surviving record without a value" in two.err
