"""Columns and rounds on the command line: what options say becomes part of the stream, is kept and enforced."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import retroact as ra
from support.cli_program import SPEC, Program, lines

COUNT = ("--count", "--epsilon", 1)
ORDERS = "amount,order,customer,at\n5,a,u1,2026-01-01\n7,b,u2,2026-01-02\n9,c,u1,2026-01-03\n"
GRID = ("--time", "at", "--start", "2026-01-01", "--length", "1d", "--end", "2026-01-05")
ROLES = ("--id", "order", "--subject", "customer")


@pytest.fixture
def orders(folder: Path) -> Path:
    (folder / "orders.csv").write_text(ORDERS)
    return folder


def opened(folder: Path, name: str = "shop") -> Any:
    return ra.Stream.open(folder / name)


# The horizon ---------------------------------------------------------------------------------------------------------


def test_a_number_of_rounds_gives_the_horizon_of_a_new_stream(program: Program, orders: Path) -> None:
    with_rounds = program("run", "orders.csv", *COUNT, "--rounds", 12, "--testing-key", 1, "-q")
    with_both = program("run", "orders.csv", *COUNT, "--rounds", 12, "--horizon", 12, "--testing-key", 1, "-q")
    assert with_rounds.out == with_both.out
    assert len(with_rounds.releases) == 12
    program("run", "orders.csv", *COUNT, "--rounds", 12, "--store", "shop", "-q")
    with opened(orders) as stream:
        assert stream.specification.horizon == 12


def test_a_number_of_rounds_ends_a_run_and_is_not_stored(program: Program, orders: Path) -> None:
    for rounds, horizon in ((8, ("--horizon", 12)), (10, ()), (12, ("--horizon", 12))):
        ended = program("run", "orders.csv", *COUNT, *horizon, "--rounds", rounds, "--store", "shop", "-q")
        assert ended.code == 0, ended.err
    with opened(orders) as stream:
        assert (stream.specification.horizon, stream.round) == (12, 13)


def test_a_grid_gives_the_horizon(program: Program, orders: Path) -> None:
    ended = program("run", "orders.csv", *COUNT, *GRID, "--testing-key", 1)
    assert "horizon of 4 rounds" in ended.err
    again = program("run", "orders.csv", *COUNT, *GRID, "--horizon", 4, "--testing-key", 1)
    assert ended.out == again.out
    assert len(ended.releases) == 4


# What cannot be met --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [("--horizon", 5, "--rounds", 12), ("--horizon", 3, *GRID), ("--spec", "shop.toml", "--rounds", 51)],
    ids=["rounds", "grid", "rounds beyond a file"],
)
@pytest.mark.parametrize("store", [(), ("--store", "kept")], ids=["memory", "store"])
def test_more_rounds_than_the_horizon_are_refused_before_anything_is_read(
    program: Program, folder: Path, options: tuple[object, ...], store: tuple[object, ...]
) -> None:
    what = () if "--spec" in options else COUNT
    ended = program("run", "no such file.csv", *what, *options, *store)
    assert (ended.code, ended.out) == (2, "")
    assert "rounds, the horizon, got" in ended.err
    assert not (folder / "kept").exists()


def test_more_rounds_than_a_stored_horizon_are_refused_before_anything_is_read(program: Program, orders: Path) -> None:
    program("run", "orders.csv", *COUNT, "--rounds", 5, "--store", "shop", "-q")
    ended = program("run", "no such file.csv", "--rounds", 6, "--store", "shop")
    assert ended.code == 2
    assert "expected at most 5 rounds" in ended.err


# What is stored ------------------------------------------------------------------------------------------------------


def test_options_alone_write_exactly_the_roles_given(program: Program, orders: Path) -> None:
    for name, roles, expected in (
        ("shop", ROLES, {"id": "order", "subject": "customer", "ignore": True}),
        ("none", (), {"ignore": True}),
    ):
        assert program("run", "orders.csv", *COUNT, *roles, "--store", name, "-q").code == 0
        with opened(orders, name) as stream:
            assert stream.specification.columns.spec() == expected
            assert stream.specification.has_subjects == ("subject" in expected)


def test_another_grid_is_refused_before_anything_is_read(program: Program, orders: Path) -> None:
    first = program("run", "orders.csv", *COUNT, *GRID, "--horizon", 9, "--store", "shop", "-q")
    assert first.code == 0, first.err
    (orders / "more.csv").write_text(ORDERS)
    other_start = [{"2026-01-01": "2025-12-31"}.get(str(option), option) for option in GRID]
    assert program("run", "more.csv", *COUNT, *other_start, "--horizon", 9, "--store", "shop").code == 2
    for other in (("--start", "2025-12-31"), ("--length", "12h"), ("--end", "2026-01-06"), ("--late", "refuse")):
        for what in ((*COUNT, "--horizon", 9), ()):
            names = [*GRID[2:], *other]
            ended = program("run", "no such file.csv", *what, "--time", "at", *names, "--store", "shop")
            assert ended.code == 2
            assert "rounds" in ended.err
            assert "no such file" not in ended.err
    assert program("run", "orders.csv", "--store", "shop", "-q").code == 0


def test_other_columns_are_refused_and_change_by_a_command(program: Program, orders: Path) -> None:
    program("run", "orders.csv", *COUNT, *ROLES, "--store", "shop", "--horizon", 9, "-q")
    (orders / "new.csv").write_text("nr,buyer\nd,u3\n")
    ended = program("run", "new.csv", "--store", "shop", "--id", "nr", "-q")
    assert (ended.code, "expected 'order', as this stream has it, got 'nr'" in ended.err) == (2, True)
    shown = program("columns", "shop", "--id", "nr", "--subject", "buyer", "--source", "new.csv")
    assert shown.out == (
        "id: order\nsubject: customer\nothers: ignored\nnew.csv: id nr, subject buyer, others ignored\n"
    )
    ended = program("run", "new.csv", "--store", "shop", "-q")
    assert ended.code == 0, ended.err
    assert program("columns", "shop", "--id", "number", "--ignore", "").out.startswith("id: number\n")
    with opened(orders) as stream:
        assert stream.specification.columns.spec() == {"id": "number", "subject": "customer"}
        stream.erase(subject="u3")
        assert stream.close_round().applied.removed == 1


def test_whether_there_are_subjects_does_not_change(program: Program, orders: Path) -> None:
    program("run", "orders.csv", *COUNT, *ROLES, "--store", "with", "-q")
    program("run", "orders.csv", *COUNT, "--store", "without", "-q")
    for store, subject in (("with", ""), ("without", "customer")):
        ended = program("columns", store, "--subject", subject)
        assert ended.code == 2
        assert "subjects" in ended.err


def test_a_file_and_options_must_not_contradict_each_other(program: Program, orders: Path) -> None:
    (orders / "s.toml").write_text(SPEC + '\n[columns]\nid = "order"\n[rounds]\nclose_by = "end"\n')
    ended = program("run", "orders.csv", "--spec", "s.toml", "--id", "nr")
    assert "expected 'order', as the specification has it, got 'nr' - at --id" in ended.err
    ended = program("run", "orders.csv", "--spec", "s.toml", "--close-by", "progress")
    assert "close_by: end in the file, progress given" in ended.err


def test_no_round_is_closed_by_an_erasure_on_a_grid(program: Program, orders: Path) -> None:
    (orders / "orders.csv").write_text(ORDERS.rpartition("9,")[0])
    program("run", "orders.csv", *COUNT, *ROLES, *GRID, "--store", "shop", "--until", "2026-01-03", "-q")
    ended = program("erase", "shop", "--subject", "u1", "--close")
    assert ended.code == 2
    assert "expected no --close on a grid" in ended.err
    with opened(orders) as stream:
        assert (stream.round, stream.requests()) == (3, [])


# What is read --------------------------------------------------------------------------------------------------------


def test_other_columns_are_refused_with_those_that_are_known(program: Program, folder: Path) -> None:
    (folder / "s.toml").write_text(SPEC + '\n[columns]\nsubject = "customer"\n')
    (folder / "e.csv").write_text("country,amount,custmer\nDE,1,u1\n")
    ended = program("run", "e.csv", "--spec", "s.toml")
    assert "expected a column 'customer' for the subject, got country, amount, custmer (did you mean 'custmer'?)" in (
        ended.err
    )
    (folder / "e.csv").write_text("country,amount,customer,note\nDE,1,u1,x\n")
    ended = program("run", "e.csv", "--spec", "s.toml")
    assert "expected the columns country, amount (and customer), got an unknown column 'note'" in ended.err
    for ignore in ("true", '["note"]'):
        (folder / "s.toml").write_text(SPEC + f'\n[columns]\nsubject = "customer"\nignore = {ignore}\n')
        assert program("run", "e.csv", "--spec", "s.toml", "-q").code == 0


def test_what_says_that_rows_are_deleted_is_never_passed_over(program: Program, folder: Path) -> None:
    """Not where other columns are ignored, and not where the specification names no such column."""
    (folder / "e.csv").write_text("op,order,amount\nadd,a,5\ndelete,a,\n")
    ended = program("run", "e.csv", *COUNT, "--id", "order")
    assert "0 records added" in ended.err
    (folder / "s.toml").write_text(SPEC + '\n[columns]\nid = "order"\n')
    (folder / "e.csv").write_text("op,order,country,amount\nadd,a,DE,5\ndelete,a,,\n")
    plain = lines({"op": "+I", "order": "a", "country": "DE", "amount": 5}).encode()
    for ended in (
        program("run", "e.csv", "--spec", "s.toml"), program("run", "-", "--spec", "s.toml", stdin=plain)
    ):  # fmt: skip
        assert ended.code == 2
        assert "an unknown column 'op'; if it says what is done with a row: op = \"op\" in [columns]" in ended.err
    ended = program("run", "e.csv", "--spec", "s.toml", "--op", "op")
    assert "0 records added" in ended.err


def test_an_erasure_in_the_feed_of_a_stream_without_subjects_is_refused(program: Program) -> None:
    events = lines({"amount": 1}, {"op": "erase", "subject": "u1"}).encode()
    ended = program("run", "-", *COUNT, stdin=events)
    assert ended.code == 2
    assert "stdin:2: this stream has no subjects" in ended.err


def test_all_formats_give_the_same_bytes(program: Program, folder: Path) -> None:
    """With names and formats of their own: neither is part of a coin name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {"country": country, "amount": n, "kunde": f"u{n % 3}", "nr": f"o{n % 5}", "was": what, "tag": 1 + n // 4}
        for n, (country, what) in enumerate([("DE", "add"), ("FR", "add"), ("US", "delete"), ("DE", "update")] * 4)
    ]
    other = {"kunde": "customer", "nr": "order", "was": "kind", "tag": "day"}
    with (folder / "e.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    renamed = [{other.get(name, name): value for name, value in row.items()} for row in rows]
    (folder / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in renamed))
    pq.write_table(pa.Table.from_pylist(rows), folder / "e.parquet")
    german = '\n[columns]\nid = "nr"\nsubject = "kunde"\nop = "was"\nround = "tag"\n'
    english = '\n[columns]\nid = "order"\nsubject = "customer"\nop = "kind"\nround = "day"\n'
    own = '\n[sources."e.jsonl".columns]\nid = "order"\nsubject = "customer"\nop = "kind"\nround = "day"\n'
    outputs = set()
    for name, more in (("e.csv", german), ("e.jsonl", english), ("e.parquet", german), ("e.jsonl", german + own)):
        (folder / "s.toml").write_text(SPEC + more)
        ended = program("run", name, "--spec", "s.toml", "--rounds", 5, "--testing-key", 1, "-q")
        assert ended.code == 0, ended.err
        outputs.add(ended.out)
    assert len(outputs) == 1


def test_explain_says_where_it_comes_from(program: Program, folder: Path) -> None:
    rounds = '[rounds]\nstart = 2026-01-01\nlength = "1d"\nend = 2026-01-31\ngrace = "5m"\n'
    (folder / "s.toml").write_text(f'{SPEC}\n[columns]\nsubject = "customer"\nignore = ["note"]\n{rounds}')
    text = " ".join(program("explain", "s.toml").out.split())
    assert "subject in customer. Ignored: note; other columns are refused" in text
    assert "By time, 30 of them: start 2026-01-01T00:00:00Z, length 1d, end 2026-01-31T00:00:00Z" in text
    assert "grace 5m" in text
    (folder / "s.toml").write_text(f'{SPEC}\n[columns]\nid = "order"\n')
    assert "this stream has no subjects" in " ".join(program("explain", "s.toml").out.split())
