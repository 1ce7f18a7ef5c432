"""`retroact init`: names and types become a specification with gaps, and no value of the file gets into it."""

from __future__ import annotations

import gzip
import os
import pty
import select
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from retroact.cli.draft import draft
from retroact.cli.gaps import GAP, gaps_in
from retroact.cli.proposal import proposed
from retroact.cli.questions import Questions
from retroact.feeds.header import header_of
from support.cli_program import Program

NAMES = ("order_id", "customer", "created_at", "country", "amount", "member", "comment")
ONE = [
    ("o-1", "ann", "2026-01-01T10:00:00Z", "DE", 12.5, True, "fine"),
    ("o-2", "bob", "2026-02-03T11:12:13Z", "FR", 7.0, False, "late"),
]
OTHER = [
    (f"x{i}", f"u{i}", f"2031-07-{i + 10}T00:00:00+02:00", f"land {i}", -1e6 * i, i % 2 > 0, f"no {i}")
    for i in range(1, 9)
]
Rows = list[tuple[Any, ...]]


def _cells(row: tuple[Any, ...]) -> list[str]:
    return [str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row]


def write_csv(path: Path, rows: Rows) -> None:
    path.write_text("\n".join([",".join(NAMES), *(",".join(_cells(row)) for row in rows)]) + "\n")


def write_json(path: Path, rows: Rows) -> None:
    import json

    path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows))


def table(rows: Rows) -> pa.Table:
    made = pa.table({name: list(column) for name, column in zip(NAMES, zip(*rows, strict=True), strict=True)})
    # values in a dictionary are data
    return made.set_column(3, "country", made["country"].dictionary_encode())


def write_tsv(path: Path, rows: Rows) -> None:
    path.write_text("\n".join("\t".join(cells) for cells in [NAMES, *map(_cells, rows)]) + "\n")


def write_gzip(path: Path, rows: Rows) -> None:
    write_csv(path, rows)
    path.write_bytes(gzip.compress(path.read_bytes()))


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "e.csv": write_csv,
    "e.tsv": write_tsv,
    "e.csv.gz": write_gzip,
    "e.jsonl": write_json,
    "e.parquet": lambda path, rows: pq.write_table(table(rows), path),
    "e.arrow": lambda path, rows: feather.write_feather(table(rows), path),
    "frame.parquet": lambda path, rows: table(rows).to_pandas().astype({"country": "category"}).to_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_other_rows_give_the_same_bytes(name: str, program: Program, folder: Path) -> None:
    made = []
    for place, rows in enumerate((ONE, OTHER)):
        WRITERS[name](folder / name, rows)
        assert program("init", name, "--out", f"{place}.toml").code == 0
        made.append((folder / f"{place}.toml").read_bytes())
    assert made[0] == made[1]
    text = made[0].decode()
    for rows in (ONE, OTHER):
        for row in rows:
            assert not [
                cell for cell in _cells(row) if len(cell) > 2 and cell in text and cell not in ("true", "false")
            ]
    given = tomllib.loads(text)
    assert given["columns"] == {"id": "order_id", "subject": "customer", "time": "created_at", "ignore": True}
    assert {*given["schema"]} == {"country", "amount", "member"}
    assert "published with the results" in text
    assert ("declares" if name.endswith((".parquet", ".arrow")) else "guess") in text


CHOICES = ["epsilon", "delta", "records", "rounds.start", "rounds.length", "rounds.end", "rounds.time_zone"]
FIELDS = {
    "amount": ("lower", "upper", "step", "clip", "missing"),
    "country": ("values", "missing"),
    "member": ("missing",),
}


@pytest.mark.parametrize("command", [("run", "e.csv"), ("plan",), ("check", "e.csv"), ("explain",)])
def test_every_public_choice_is_a_gap_that_is_refused(command: tuple[str, ...], program: Program, folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    (folder / "retroact.toml").unlink(missing_ok=True)
    assert program("init", "e.csv").code == 0
    ended = program(*command)
    assert ended.code == 2
    wanted = [*CHOICES, *(f"schema.{name}.{key}" for name, keys in FIELDS.items() for key in keys)]
    errors = ended.err.splitlines()
    assert sorted(line.rpartition(" - at ")[2] for line in errors) == sorted(wanted)
    text = (folder / "retroact.toml").read_text().splitlines()
    for line in errors:
        number = int(line.split(":")[2])
        assert line.startswith("error: retroact.toml:")
        assert GAP in text[number - 1]
        assert line.rpartition(".")[2].rpartition(" ")[2] in text[number - 1]


FILLED = {
    "epsilon": "1.0", "delta": "1e-6", "records": "100", "rounds.start": '"2026-01-01"', "rounds.length": '"1d"',
    "rounds.end": '"2026-03-01"', "rounds.time_zone": '"UTC"', "schema.amount.lower": "0", "schema.amount.upper": "500",
    "schema.amount.step": "0.01", "schema.amount.clip": "false", "schema.amount.missing": '"error"',
    "schema.country.values": '["DE", "FR"]', "schema.country.missing": '"skip"', "schema.member.missing": '"error"',
}  # fmt: skip


def test_a_filled_file_is_checked_and_run(program: Program, folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    header = header_of(str(folder / "e.csv"))
    text = draft(proposed(header), FILLED, declared=False)
    assert not gaps_in(text)
    (folder / "filled.toml").write_text(text)
    assert program("check", "filled.toml", "e.csv").code == 0
    ended = program("run", "e.csv", "--spec", "filled.toml", "-q", "--testing-key", 1)
    assert ended.code == 0
    assert {release["statistic"] for release in ended.releases} == {
        "records", "mean_amount", "records_by_country", "records_by_member"
    }  # fmt: skip


def test_an_error_that_is_wanted_stands_in_for_epsilon(program: Program, folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    text = draft(proposed(header_of(str(folder / "e.csv"))), {**FILLED, "epsilon": f'"{GAP}"'}, declared=False)
    (folder / "filled.toml").write_text(text)
    wanted = [f"--error={name}=50" for name in ("records", "mean_amount", "records_by_country", "records_by_member")]
    assert "epsilon = " in program("plan", "filled.toml", *wanted).out


def test_gaps_are_found_wherever_they_are() -> None:
    text = '\n'.join([
        'epsilon = "FILL IN"  # "FILL IN"', "note = 'please FILL IN'", "# delta = 'FILL IN'", "[a]", "x = ['FILL IN']",
        "[b.c]", "'q r' = { y = 'FILL IN' }", "[a.z]", "w = 'FILL IN'",
    ])  # fmt: skip
    assert [(error.path, error.row) for error in gaps_in(text)] == [
        ("epsilon", 1), ("a.x", 5), ("b.c.q r.y", 7), ("a.z.w", 9)
    ]  # fmt: skip


def test_an_existing_file_is_kept(program: Program, folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    (folder / "mine.toml").write_text("mine")
    ended = program("init", "e.csv", "--out", "mine.toml")
    assert (ended.code, (folder / "mine.toml").read_text()) == (2, "mine")
    assert "--overwrite" in ended.err
    assert program("init", "e.csv", "--out", "mine.toml", "--overwrite").code == 0
    assert (folder / "mine.toml").read_text() != "mine"


def test_options_name_roles_and_columns(program: Program, folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    ended = program("init", "e.csv", "--out", "o.toml", "--subject", "country", "--id", "", "--publish", "amount")
    assert ended.code == 0
    given = tomllib.loads((folder / "o.toml").read_text())
    assert given["columns"] == {"subject": "country", "time": "created_at", "ignore": True}
    assert [*given["schema"]] == ["amount"]
    wrong = program("init", "e.csv", "--out", "p.toml", "--publish", "amonut")
    assert wrong.code == 2
    assert "did you mean 'amount'" in wrong.err


HOSTILE = ['a"b', "x\\ny", "[columns]", "# note", "é à", "epsilon = 1", "\u202ereversed", "", "a.b"]


def test_columns_that_number_things_are_not_measurements(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("rownames,idNum,license_number,number,no,zip_code\n1,17-3,S1,4,2,98108\n")
    program("init", "e.csv")
    written = (folder / "retroact.toml").read_text()
    assert tomllib.loads(written)["columns"]["id"] == "idNum"
    assert tomllib.loads(written)["schema"].keys() == {"rownames", "number", "no", "zip_code"}
    assert tomllib.loads(written)["schema"]["zip_code"]["type"] == "category"


@pytest.mark.parametrize(
    ("date", "says"), [("12/31/2026", True), ("2026-12-31", False), ("2026-12-31T10:00:00", False)]
)
def test_times_in_another_form_are_noticed_at_once(date: str, says: bool, program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text(f"date,amount\n{date},5\n")
    ended = program("init", "e.csv")
    note = "note: 'date' does not look like 2026-12-31 or 2026-12-31T23:59:59Z: a run refuses times in another form\n"
    assert (note in ended.err) == says
    assert date not in ended.err + (folder / "retroact.toml").read_text()


def test_names_cannot_break_out_of_the_file(program: Program, folder: Path) -> None:
    pq.write_table(pa.table({name or "empty\nid = 1": [1.5] for name in HOSTILE}), folder / "e.parquet")
    assert program("init", "e.parquet", "--out", "h.toml").code == 0
    given = tomllib.loads((folder / "h.toml").read_text())
    assert {*given} == {"epsilon", "delta", "records", "horizon", "columns", "schema", "statistics"}
    assert given["columns"] == {"ignore": True}


@pytest.mark.parametrize("content", [b"", b"{", b"\x00\x01\x02", b"\n\n"])
@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.parquet", "e.arrow"])
def test_files_without_columns(content: bytes, name: str, program: Program, folder: Path) -> None:
    (folder / name).write_bytes(content)
    ended = program("init", name, "--out", "n.toml")
    assert ended.code in (0, 2)
    assert (folder / "n.toml").exists() == (ended.code == 0)
    assert program("init", "gone.csv", "--out", "n2.toml").code == 2


def test_answers_are_checked_one_by_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(folder / "e.csv", ONE)
    header = header_of(str(folder / "e.csv"))
    script = [
        # id, a typing error, subject, time, no operation; then which columns to publish
        *["", "custommer", "customer", "", "-", "", "", "n"],
        # epsilon, delta and records, some of them impossible
        *["-1", "one", "0.5", "2", "1e-6", "many", "1000"],
        *["Mars/Olympus", "UTC", "soon", "2026-01-01", "1 fortnight", "1d", "2025-01-01", "2026-02-01"],
        # categories; then a number whose upper bound is below the lower one, and an impossible step
        *["DE, FR", "skip", "0", "-5", "500", "0", "0.01", "perhaps", "yes", "never", "error"],
    ]
    answers = iter(script)
    questions = Questions(lambda prompt: next(answers))
    found = questions.proposal(proposed(header), header.columns, roles=True)
    questions.choose(found)
    assert next(answers, None) is None
    given = tomllib.loads(draft(found, questions.choices, declared=False))
    assert given["columns"] == {"id": "order_id", "subject": "customer", "time": "created_at", "ignore": True}
    assert given["schema"] == {
        "country": {"type": "category", "values": ["DE", "FR"], "missing": "skip"},
        "amount": {"type": "number", "lower": 0, "upper": 500, "step": 0.01, "clip": True, "missing": "error"},
    }
    assert (given["epsilon"], given["delta"], given["records"]) == (0.5, 1e-6, 1000)
    assert given["rounds"]["end"] == "2026-02-01"
    said = capsys.readouterr().err
    assert "did you mean 'customer'" in said
    assert said.count("expected") == 13


def test_it_asks_on_a_terminal(folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    main, side = pty.openpty()
    call = [sys.executable, "-m", "retroact", "init", "e.csv", "--out", "asked.toml"]
    child = subprocess.Popen(call, cwd=folder, stdin=side, stdout=side, stderr=side)
    os.close(side)
    seen, end = b"", time.monotonic() + 120
    while child.poll() is None and time.monotonic() < end:
        if select.select([main], [], [], 0.1)[0]:
            try:
                seen += os.read(main, 4096)
            except OSError:
                break
            if seen.endswith((b"? [order_id] ", b"] ", b": ")):
                os.write(main, b"\n")
    assert child.wait(60) == 0
    os.close(main)
    assert b"Which column is the id of a record? [order_id]" in seen
    assert gaps_in((folder / "asked.toml").read_text())


def test_without_a_terminal_nothing_is_asked(program: Program, folder: Path) -> None:
    write_csv(folder / "e.csv", ONE)
    ended = program("init", "e.csv", "--out", "q.toml", stdin=b"y\n" * 100)
    assert ended.code == 0
    assert "?" not in ended.out


def test_the_example_is_what_init_writes_with_its_gaps_filled() -> None:
    examples = Path(__file__).parents[2] / "examples"
    header = header_of(str(examples / "visits.csv"))
    given = tomllib.loads((examples / "visits.toml").read_text())
    choices = {name: str(given[name]) for name in ("epsilon", "delta", "records")}
    choices |= {f"rounds.{key}": f'"{value}"' for key, value in given["rounds"].items()}
    choices |= {
        f"schema.{name}.{key}": str(value).lower() if isinstance(value, bool) else str(value).replace("'", '"')
        if isinstance(value, list | int) else f'"{value}"'
        for name, table in given["schema"].items()
        for key, value in table.items()
    }  # fmt: skip
    assert draft(proposed(header), choices, declared=False) == (examples / "visits.toml").read_text()
