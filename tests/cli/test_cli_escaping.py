"""Names in files are shown so that they cannot move the cursor, start a line, or turn other text round."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retroact.escape import markup, printable
from support.cli_program import CLOSE, Program, add, lines

# C0, C1, DEL, separators of lines and paragraphs, marks of direction
HOSTILE = "a\x1b[2J\x1b]0;t\x07\r\x00\x7f\x85\x9b31m\u2028\u2029\u061c\u200e\u200f\u202e\u2066\u2069b"
NAME = f"{HOSTILE}\nerror: c"
SHOWN = "a\\x1b[2J"


def safe(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=True)


COUNT = '[statistics]\nn = { type = "count" }\n'
AMOUNT = '[schema]\namount = { type = "number", lower = 0, upper = 500 }\n'
SPECS = {
    "unknown key": f"epsilon = 1\n{quoted(NAME)} = 1\n{AMOUNT}{COUNT}",
    "field": f"epsilon = 1\n[schema]\n{quoted(NAME)} = {{ type = 'integer', lower = 2, upper = 1 }}\n{COUNT}",
    "type of a field": f"epsilon = 1\n[schema]\na = {{ type = {quoted(NAME)} }}\n{COUNT}",
    "key of a field": f"epsilon = 1\n[schema]\na = {{ type = 'text', {quoted(NAME)} = 1 }}\n{COUNT}",
    "statistic": f"epsilon = 1\n{AMOUNT}[statistics]\n{quoted(NAME)} = {{ type = 'sum', field = 'b' }}\n",
    "type of a statistic": f"epsilon = 1\n{AMOUNT}[statistics]\nn = {{ type = {quoted(NAME)} }}\n",
    "key of a statistic": f"epsilon = 1\n{AMOUNT}[statistics]\nn = {{ type = 'count', {quoted(NAME)} = 1 }}\n",
    "field of a statistic": f"epsilon = 1\n{AMOUNT}[statistics]\nn = {{ type = 'sum', field = {quoted(NAME)} }}\n",
    "condition": f"epsilon = 1\n{AMOUNT}[statistics]\nn = {{ type = 'count', where = {{ {quoted(NAME)} = 1 }} }}\n",
    "key given twice": f"{quoted(NAME)} = 1\n{quoted(NAME)} = 1\n",
    "broken": f"epsilon = {HOSTILE}\n",
}


@pytest.mark.parametrize("name", SPECS)
def test_names_of_a_specification_are_escaped(name: str, program: Program, folder: Path) -> None:
    (folder / "spec.toml").write_text(SPECS[name])
    ended = program("plan", "spec.toml")
    assert (ended.code, ended.out) == (2, "")
    assert safe(ended.err)
    assert len(ended.err.splitlines()) == 1
    assert name in ("broken", "key given twice") or SHOWN in ended.err


RECORD = {"amount": 1}
EVENTS = {
    "key": [{**add(), NAME: 1}],
    "field": [{"op": "add", "record": {"country": "DE", "amount": 1, NAME: 1}}],
    "operation": [{"op": NAME}],
    "value": [add(amount=NAME)],
    "category": [add(NAME)],
    "envelope": [add(), {"before": {NAME: 1}, "after": None, "op": "d", NAME: 2}],
    "position": [add(lsn=1, id=NAME), add(lsn=1, id=f"{NAME}2")],
}


@pytest.mark.parametrize("name", EVENTS)
def test_names_in_json_lines_are_escaped(name: str, program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(lines(*EVENTS[name]))
    more = ("--position", "lsn") if name == "position" else ()
    ended = program("run", "events.jsonl", "--spec", "shop.toml", *more)
    assert (ended.code, ended.out) == (2, "")
    assert safe(ended.err)


CELL = NAME.replace('"', '""')
CSVS = {
    "unknown": f'country,amount,"{CELL}"\nDE,1,2\n',
    "twice": f'country,amount,"{CELL}","{CELL}"\nDE,1,2,2\n',
    "value": f'country,amount\nDE,"{CELL}"\n',
    "operation": f'country,amount,op\nDE,1,"{CELL}"\n',
}


@pytest.mark.parametrize("name", CSVS)
def test_names_in_csv_are_escaped(name: str, program: Program, folder: Path) -> None:
    (folder / "events.csv").write_bytes(CSVS[name].encode())
    for more in ((), ("--id", "order")):
        ended = program("run", "events.csv", "--spec", "shop.toml", *more)
        assert (ended.code, ended.out) == (2, "")
        assert safe(ended.err)
        assert SHOWN in ended.err or (name in ("value", "operation") and more)


def test_names_of_the_columns_of_a_table_are_escaped(program: Program, folder: Path) -> None:
    for columns in ({"amount": [1.0], NAME: [1]}, {"amount": [1.0], "country": [NAME]}):
        pq.write_table(pa.table(columns), folder / "events.parquet")
        for more in ((), ("--id", "order")):
            ended = program("run", "events.parquet", "--spec", "shop.toml", *more)
            assert (ended.code, ended.out) == (2, "")
            assert safe(ended.err)


def test_names_are_escaped_when_all_goes_well(program: Program, folder: Path) -> None:
    # decoders of lines take no others
    name = "".join(c for c in NAME if c >= " ")
    statistics = f"{quoted(NAME)} = {{ type = 'sum', field = {quoted(name)} }}\n"
    field = f"{quoted(name)} = {{ type = 'number', lower = 0, upper = 1 }}"
    (folder / "spec.toml").write_text(f"epsilon = 1\nhorizon = 3\n[schema]\n{field}\n[statistics]\n{statistics}")
    record = {"op": "add", "record": {name: 1}, "id": NAME, "subject": NAME}
    (folder / "events.jsonl").write_text(lines(record, CLOSE))
    (folder / "events.csv").write_bytes(f"{name},op\n1,add\n".encode())
    pq.write_table(pa.table({name: [1.0], f"{NAME}2": ["x"]}), folder / "events.parquet")
    for events in ("events.jsonl", "events.csv", "events.parquet"):
        ended = program("run", events, "--spec", "spec.toml", "--testing-key", 1, "--out", "out.jsonl")
        assert ended.code == (2 if events == "events.parquet" else 0)
        assert "\\u202e" in ended.err
        assert safe(ended.err)
    for command in ("plan", "explain"):
        ended = program(command, "spec.toml")
        assert ended.code == 0
        assert SHOWN in ended.out
        assert safe(ended.out)
    # data for programs stay as they are
    assert json.loads((folder / "out.jsonl").read_text().split("\n")[0])["statistic"] == NAME


def test_subjects_and_file_names_are_escaped(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(lines(add(subject=HOSTILE), CLOSE))
    assert program("run", "events.jsonl", "--spec", "shop.toml", "--store", "orders").code == 0
    (folder / "list.csv").write_bytes(f"subject,request\n{HOSTILE.replace(chr(13), '')},r\n".encode())
    ended = program("erase", "orders", "--from", "list.csv")
    assert ended.code == 5  # without its carriage return it is another
    assert SHOWN in ended.out
    assert safe(ended.out + ended.err)
    (folder / "list.csv").write_bytes(f'subject,"{CELL}"\nu,r\n'.encode())
    ended = program("erase", "orders", "--from", "list.csv")
    assert ended.code == 2
    assert SHOWN in ended.err
    assert safe(ended.err)
    ended = program("run", "x\x1b[2J.jsonl", "--spec", "shop.toml")
    assert ended.err == "error: x\\x1b[2J.jsonl: no such file or directory\n"


def test_names_in_pages_are_escaped() -> None:
    shown = markup(f"<i>{NAME}")
    assert shown.startswith("&lt;i&gt;a\\x1b[2J")
    assert shown.isprintable()
    assert printable(NAME).isprintable()
