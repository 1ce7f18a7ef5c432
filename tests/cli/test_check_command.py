"""`retroact check` lists what a run would refuse, and says so exactly when a run refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.checked_files import GOOD, HEAD, both, csv, found
from support.cli_program import CLOSE, Program, add, lines

# a file that is not shrunk is found sooner
MANY = settings(
    max_examples=50, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


def test_a_good_file_is_accepted(program: Program, spec: Path) -> None:
    csv(spec, *GOOD)
    ended = both(program)
    assert "e.csv: a run would accept this file" in ended.out
    assert "Exact counts, for the operator alone" in ended.out
    # a missing age is left out of the mean, and of nothing else
    assert [line.split()[:2] for line in ended.out.splitlines() if "without a value" in line] == [["age", "1"]]


def test_every_fault_is_counted_with_its_first_lines(program: Program, spec: Path) -> None:
    bad = ["o4,u1,XX,1,,", "o5,u1,DE,x,,", "o6,u1,DE,,5,", "o7,,DE,1,5,", "o8,u1,YY,900,500,", "o9,u1,DE,-1,,"]
    csv(spec, *GOOD, *bad, "o10,u1,DE,1", *(f"p{i},u1,ZZ,1,5," for i in range(5000)))
    assert sorted(found(both(program))) == [
        ("age", 1, [9]),
        ("amount", 1, [6]),
        ("amount", 1, [7]),
        ("amount", 2, [9, 10]),
        ("country", 5002, [5, 9, 12]),
        ("line", 1, [11]),
        ("subject", 1, [8]),
    ]


def test_what_is_shown_is_on_the_first_line_with_the_next_step(program: Program, spec: Path) -> None:
    csv(
        spec, *GOOD, "o4,u1,DE,x,,", "o5,u1,DE,NA,,", "o6,u1,DE,NA,,", "o7,u1,DE,900,,", "o8,u1,DE,700,,", "o9,u1,DE,,,"
    )
    ended = both(program)
    assert "expected a number, got 'x'" in ended.out
    assert "got '900'" in ended.out
    assert "got '700'" not in ended.out
    assert ended.out.count("hint: clip = true on the field (--clip)") == 1
    assert ended.out.count('hint: the value is missing: missing = "skip" on the field') == 1


BROKEN = {
    "category": ["o4,u1,XX,1,,"],
    "text in a number": ["o4,u1,DE,x,,"],
    "NA": ["o4,u1,DE,NA,,"],
    "empty": ["o4,u1,DE,,,"],
    "range": ["o4,u1,DE,501,,"],
    "decimal": ["o4,u1,DE,1,1.5,"],
    "subject": ["o4,,DE,1,,"],
    "cells": ["o4,u1,DE,1"],
    "more cells": ["o4,u1,DE,1,,,,"],
    "quote": ['o4,u1,DE,"1"x,,'],
    "open quote": ['o4,u1,DE,"1,,'],
    "same id": ["o1,u1,DE,1,,"],
    "no id": [",u1,DE,1,,"],
    "blank line": ["", "o4,u1,DE,1,,"],
    "nothing": [],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_refuses_what_a_check_refuses_in_csv(name: str, program: Program, spec: Path) -> None:
    csv(spec, *GOOD, *BROKEN[name], *GOOD)
    both(program)
    csv(spec, *BROKEN[name], *GOOD)
    both(program)


OPS = {
    "unknown": "o4,u1,DE,1,,,buy",
    "delete": "o1,,,,,,delete",
    "delete nothing": "o9,,,,,,delete",
    "erase": ",u1,,,,,erase",
    "erase nobody": ",,,,,,erase",
    "erase a stranger": ",u99,,,,,erase",
    "close": ",,,,,,close",
    "close with more": "o1,,,,,,close",
    "empty": "o4,u1,DE,1,,,",
    "upsert": "o1,u1,DE,1,,,upsert",
    "upsert without id": ",u1,DE,1,,,upsert",
}


@pytest.mark.parametrize("name", OPS)
def test_operations(name: str, program: Program, spec: Path) -> None:
    rows = [f"{row},add" for row in GOOD]
    csv(spec, *rows, OPS[name], *rows, head=f"{HEAD},op")
    both(program)


@pytest.mark.parametrize(
    "head", ["order,customer,country,amount,age,extra", "order,customer,country,amount,ages,note", "order,amount", "x",
             "order,customer,country,amount,age,age", "order,buyer,country,amount,age,note"]
)  # fmt: skip
def test_headers(head: str, program: Program, spec: Path) -> None:
    csv(spec, *GOOD, head=head)
    assert both(program).code == 2


def test_an_unknown_column_does_not_hide_what_else_is_wrong(program: Program, spec: Path) -> None:
    csv(spec, "o4,u1,XX,1,,", head="order,customer,country,amount,age,extra")
    ended = both(program)
    assert "unknown column 'extra'" in ended.out
    assert ("country", 1, [2]) in found(ended)


TIMES = ["2026-01-03", "2026-01-01T10:00:00Z", "2025-12-31", "2026-01-08", "tomorrow", "", "1767312000", "2026-01-05"]


@pytest.mark.parametrize("time", TIMES)
def test_times(time: str, program: Program, spec: Path) -> None:
    rows = [f"{row},2026-01-0{day}" for day, row in enumerate(GOOD, 2)]
    csv(spec, *rows, f"o4,u1,DE,1,,,{time}", f"o5,u1,DE,1,,,{time}", head=f"{HEAD},day")
    ended = both(program, spec="timed.toml")
    assert found(ended) == ([("day", 2, [5, 6])] if ended.code else [])
    assert ended.code == (2 if time in ("2025-12-31", "2026-01-08", "tomorrow", "") else 0)


@pytest.mark.parametrize("rounds", ["1 2 3", "1 1 2 2", "2 1", "3 2 1 3", "1 60", "0 1", "x 1", "1 '' 2", "1 4"])
def test_rounds_by_number(rounds: str, program: Program, spec: Path) -> None:
    numbers = [number.strip("'") for number in rounds.split()]
    csv(spec, *(f"o{i},u1,DE,1,,,{number}" for i, number in enumerate(numbers)), head=f"{HEAD},round")
    both(program, "--round", "round", "--rounds", 3)


def test_rows_out_of_order_are_counted_together(program: Program, spec: Path) -> None:
    csv(spec, *(f"o{i},u1,DE,1,,,{3 - i % 3}" for i in range(3000)), head=f"{HEAD},round")
    ended = both(program, "--round", "round", "--rounds", 3)
    assert [(place, count) for place, count, _ in found(ended)] == [("round", 2000)]


def test_ids_that_come_twice_are_named_and_not_refused(program: Program, spec: Path) -> None:
    csv(spec, *GOOD, *GOOD[:2])
    ended = both(program)
    assert ended.code == 0
    assert "added again" in ended.out
    assert "lines 5, 6" in ended.out


JSON_LINES: dict[str, Any] = {
    "good": add(),
    "broken": '{"op": "add"',
    "no JSON": "hello",
    "wrong op": {"op": "bye"},
    "no record": {"op": "add"},
    "unknown key": add(colour="red"),
    "range": add(amount=501),
    "missing": {"op": "add", "record": {"country": "DE"}},
    "twice": '{"op": "add", "op": "add", "record": {"country": "DE", "amount": 1}}',
    "close": CLOSE,
    "delete": {"op": "delete", "id": "o1"},
    "delete by value": {"op": "delete", "record": {"country": "DE", "amount": 1}},
    "plain": {"country": "DE", "amount": 1},
    "list": [1],
    "not UTF-8": b"\xff\xfe",
}


@pytest.mark.parametrize("name", JSON_LINES)
def test_json_lines(name: str, program: Program, folder: Path) -> None:
    odd = JSON_LINES[name]
    text = odd if isinstance(odd, bytes) else (odd if isinstance(odd, str) else json.dumps(odd)).encode()
    good = lines(add(), add()).encode()
    (folder / "e.jsonl").write_bytes(good + text + b"\n" + good + text + b"\n")
    ended = both(program, file="e.jsonl", spec="shop.toml")
    if ended.code and "stops" not in ended.out:
        assert [(count, first) for _, count, first in found(ended)] == [(2, [3, 6])], ended.out


@pytest.mark.parametrize("amount", [[1.0, 600.0, None], [1.0, 2.0, 3.0], ["a", "1", "2"]], ids=str)
@pytest.mark.parametrize("country", [["DE", "FR", "XX"], ["DE", None, "FR"], ["DE", "DE", "US"]], ids=str)
def test_tables(amount: list[Any], country: list[Any], program: Program, spec: Path) -> None:
    table = pa.table({
        "order": [1, 2, 3], "customer": ["a", "b", None], "age": [1, None, 3], "amount": amount,
        "country": pa.array(country).dictionary_encode(),
    })  # fmt: skip
    pq.write_table(table, spec / "e.parquet")
    assert both(program, file="e.parquet").code == 2
    pq.write_table(table.set_column(1, "customer", pa.array(["a", "b", "c"])), spec / "e.parquet")
    both(program, file="e.parquet")


CELLS = {
    "order": ["o1", "o2", ""],
    "customer": ["u1", "u2", ""],
    "country": ["DE", "FR", "XX", ""],
    "amount": ["1", "12.5", "500.001", "501", "x", "", "NaN", "1e400"],
    "age": ["5", "", "NA", "121", "1.5", "7.0"],
    "note": ["", "hello, you", "\n"],
    "op": ["add", "add", "add", "delete", "erase", "close", "", "bye"],
    "round": ["1", "1", "2", "3", "0", "", "9"],
}


def rows_of(names: list[str]) -> st.SearchStrategy[list[list[str]]]:
    # mostly good cells, so that a bad one is not hidden among others
    good = st.tuples(*(st.sampled_from(CELLS[name][:2]) for name in names))
    odd = st.tuples(*(st.sampled_from(CELLS[name]) for name in names))
    return st.lists((good | good | good | odd).map(list), max_size=6)


@MANY
@given(data=st.data(), marked=st.booleans(), numbered=st.booleans())
def test_a_check_says_what_a_run_does(
    data: st.DataObject, marked: bool, numbered: bool, program: Program, spec: Path
) -> None:
    names = [*HEAD.split(","), *(["op"] if marked else []), *(["round"] if numbered else [])]
    rows = data.draw(rows_of(names))
    quoted = [",".join(f'"{cell}"' if "\n" in cell or "," in cell else cell for cell in row) for row in rows]
    csv(spec, *quoted, head=",".join(names))
    both(program, *(["--round", "round", "--rounds", 3] if numbered else []))


def test_options_describe_the_stream_too(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("who,amount\nu1,5\nu2,700\n")
    options = ("--count", "--sum", "amount:0..500", "--subject", "who", "--epsilon", 1)
    ended = program("check", "e.csv", *options)
    assert ended.code == 2
    assert found(ended) == [("amount", 1, [3])]
    assert program("check", "e.csv", *options, "--clip").code == 0


def test_nothing_is_made(program: Program, spec: Path) -> None:
    csv(spec, *GOOD)
    before = sorted(spec.rglob("*"))
    assert both(program).code == 0
    assert sorted(spec.rglob("*")) == before


def test_a_missing_file_and_two_specifications(program: Program, spec: Path) -> None:
    ended = program("check", "orders.toml", "gone.csv")
    assert ended.code == 2
    assert "no such file" in ended.out
    csv(spec, *GOOD)
    assert program("check", "orders.toml", "e.csv", "--spec", "orders.toml").code == 2


PLAIN: dict[str, Any] = {
    "unknown": {"country": "DE", "amount": 1, "colour": "red"},
    "unknown and bad": {"country": "XX", "amount": 1, "colour": "red"},
    "lacks a field": {"country": "DE", "colour": "red"},
    "native": add(),
    "deletion": {"op": "delete", "id": "o1"},
    "close": CLOSE,
    "list": [{"country": "DE"}],
    "fine": {"country": "DE", "amount": 1},
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("alone", [False, True])
def test_plain_records(name: str, alone: bool, program: Program, folder: Path) -> None:
    fine = [] if alone else [PLAIN["fine"]]
    (folder / "e.jsonl").write_text(lines(*fine, PLAIN[name], *fine))
    ended = both(program, file="e.jsonl", spec="shop.toml")
    if "unknown" in name:
        assert "unknown column 'colour'" in ended.out
        assert "stops" not in ended.out
    if "bad" in name:
        assert ("country", 1, [1 if alone else 2]) in found(ended)


ROW = {
    "country": ["DE", "FR", "XX", None],
    "amount": [1, 12.5, "x", 501, None],
    "colour": ["red"],
    "id": ["a", 1, None],
}


@MANY
@given(data=st.data())
def test_a_check_of_json_lines_says_what_a_run_does(data: st.DataObject, program: Program, folder: Path) -> None:
    rows = []
    for _ in range(data.draw(st.integers(1, 5))):
        row = {"country": "DE", "amount": 1}
        for key in data.draw(st.lists(st.sampled_from(list(ROW)), max_size=2)):
            row[key] = data.draw(st.sampled_from(ROW[key]))
        native = {"op": data.draw(st.sampled_from(["add", "delete", "close"])), "record": row}
        rows.append(data.draw(st.sampled_from([row, row, native, {"op": "delete", **row}])))
    (folder / "e.jsonl").write_text(lines(*rows))
    both(program, file="e.jsonl", spec="shop.toml")
