"""Bad input: exit code 2, a message that names file and line, and no output file left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli_program import CLOSE, Ended, Program, add, lines

GOOD = lines(add(), CLOSE, add(id=1), add(id="x"))
RECORD = {"country": "DE", "amount": 1}


def refused(ended: Ended, folder: Path, before: set[str]) -> str:
    assert ended.code == 2, ended.err
    assert "Traceback" not in ended.err
    assert {path.name for path in folder.iterdir()} == before
    message, *hints = ended.err.splitlines()
    assert all(line.startswith("hint: ") for line in hints)
    return message.removeprefix("error: ")


LINES: dict[str, tuple[object, str]] = {
    "text for a number": (add(amount="x"), "expected a number, got 'x' - at amount"),
    "out of bounds": (add(amount=501), "expected a number between 0 and 500, got 501 - at amount"),
    "huge": (add(amount=10**40), f"expected a number between 0 and 500, got {10**40} - at amount"),
    "a list": (add(amount=[1, 2]), "expected a number, got [1, 2] - at amount"),
    "missing value": (add(amount=None), "expected a number, got no value - at amount"),
    "missing field": (
        {"op": "add", "record": {"country": "DE"}},
        "expected the fields country, amount, got no 'amount'",
    ),
    "unknown field": ({"op": "add", "record": {**RECORD, "x": 1}}, "got an unknown field 'x'"),
    "other category": (add("XX"), "expected one of 'DE', 'FR', 'US', got 'XX' - at country"),
    "no record": ({"op": "add"}, "expected a record to add, got none - at record"),
    "record no object": ({"op": "add", "record": 5}, "expected an object, got 5 - at record"),
    "no op": ({"record": RECORD}, 'expected "op" with one of add, delete, erase, close, got none'),
    "unknown op": ({"op": "upsert"}, "expected one of add, delete, erase, close, got 'upsert' - at op"),
    "op no text": ({"op": ["add"]}, "expected one of add, delete, erase, close, got ['add'] - at op"),
    "unknown key": (add(source="web"), "expected only op, record, id, subject, stamp, round, got 'source'"),
    "no object": ([1], "expected an object such as"),
    "text alone": ("add", "expected an object such as"),
    "id no name": (add(id=1.5), "expected text or a whole number, got 1.5 - at id"),
    "id yes or no": (add(id=True), "expected text or a whole number, got True - at id"),
    "empty id": (add(id=""), "expected a non-empty text, got '' - at id"),
    "empty subject": (add(subject=""), "expected a non-empty text, got '' - at subject"),
    "stamp no number": (add(stamp="1"), "expected a whole number, got '1' - at stamp"),
    "stamp zero": (add(stamp=0), "expected a round from 1 on, got 0 - at stamp"),
    "round decreasing": (
        {"op": "close", "round": 1},
        "expected a round from 2 on (round 1 is closed), got 1 - at round",
    ),
    "round too late": ({"op": "close", "round": 31}, "expected a round up to 30 (--rounds), got 31 - at round"),
    "round of one event": (add(round=2), "expected no number of a round, as the events before it have none, got 2"),
    "empty deletion": ({"op": "delete"}, "expected either id=... or a record with its stamp"),
    "deletion without stamp": ({"op": "delete", "record": RECORD}, "a deletion by value names its stamp"),
    "deletion by both": ({"op": "delete", "id": 1, "record": RECORD}, "expected either id=... or a record"),
    "deletion with subject": ({"op": "delete", "id": 1, "subject": "u"}, "expected an id alone"),
    "deletion out of bounds": ({"op": "delete", "stamp": 1, "record": {**RECORD, "amount": -1}}, "got -1 - at amount"),
    "deletion of an empty id": ({"op": "delete", "id": ""}, "expected a non-empty text, got '' - at id"),
    "erasure of nobody": ({"op": "erase"}, "expected a subject to erase, got none - at subject"),
    "erasure with id": ({"op": "erase", "subject": "u", "id": 1}, "expected a subject alone"),
    "close with more": ({"op": "close", "subject": "u"}, "expected nothing else with it, except a round"),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str, program: Program, folder: Path) -> None:
    bad, message = LINES[name]
    later = lines(add(), CLOSE, add(amount="also wrong")) + "{broken"
    (folder / "events.jsonl").write_text(f"{GOOD}\n{json.dumps(bad)}\n{later}")
    before = {path.name for path in folder.iterdir()}
    ended = program("run", "events.jsonl", "--spec", "shop.toml", "--rounds", 30, "--out", "out", "-q")
    found = refused(ended, folder, before)
    assert found.startswith("events.jsonl:6: ")
    assert message in found


BYTES: dict[str, tuple[bytes, str]] = {
    "broken": (b'{"op": "add",}', "broken JSON (trailing comma in object) - at column 14"),
    "cut off": (b'{"op": "add"', "(input data was truncated) - at column 13"),
    "two on a line": (b'{"op":"close"} {"op":"close"}', "(trailing characters) - at column 16"),
    "NaN": (b'{"op":"add","record":{"country":"DE","amount":NaN}}', "expected a finite number, got NaN - at column 47"),
    "Infinity": (b'{"op":"add","record":{"country":"DE","amount":-Infinity}}', "got -Infinity - at column"),
    "out of range": (b'{"op":"add","record":{"country":"DE","amount":1e999}}', "number out of range"),
    "endless integer": (b'{"op":"add","stamp":' + b"9" * 5000 + b"}", "out of range"),
    "deep": (b'{"op":' + b"[" * 100_000, "more nesting than can be read"),
    "not UTF-8": (b'{"op":"\xff"}', "expected UTF-8 text, got the byte 0xff - at column 8"),
    "half a character": (b'{"op":"\\ud800"}', "events.jsonl:5: "),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name: str, program: Program, folder: Path) -> None:
    bad, message = BYTES[name]
    (folder / "events.jsonl").write_bytes(GOOD.encode() + bad + b"\n" + GOOD.encode())
    before = {path.name for path in folder.iterdir()}
    found = refused(program("run", "events.jsonl", "--spec", "shop.toml", "--out", "out", "-q"), folder, before)
    assert found.startswith("events.jsonl:5: ")
    assert message in found


CSV: dict[str, tuple[bytes, str]] = {
    "value": (b"country,amount\nDE,1\nDE,x\n", "events.csv:3: expected a number, got 'x' - at amount"),
    "after a cell of two lines": (b'country,amount,id\nDE,1,"a\nb"\nDE,-1,c\n', "events.csv:4: "),
    "NaN": (b"country,amount\nDE,NaN\n", "events.csv:2: expected a number, got 'NaN' - at amount"),
    "underscore": (b"country,amount\nDE,1_0\n", "events.csv:2: expected a number, got '1_0' - at amount"),
    "empty cell": (b"country,amount\nDE,\n", "events.csv:2: expected a number, got no value - at amount"),
    "short row": (b"country,amount\nDE\n", "events.csv:2: expected 2 cells, as in the header, got 1"),
    "unknown column": (
        b"country,amount,x\nDE,1,2\n",
        "events.csv:1: expected the columns country, amount (and id, subject, op, stamp, round), got an unknown column "
        "'x'; to ignore columns: ignore = true, or a list, in [columns]",
    ),
    "no column": (
        b"country\nDE\n",
        "events.csv:1: expected the columns country, amount, got no 'amount' among 'country'",
    ),
    "same column twice": (b"country,amount,amount\n", "events.csv:1: expected different columns, got 'amount' twice"),
    "empty op": (b"op,country,amount\n,DE,1\n", "events.csv:2: expected one of add, delete, erase, close (or insert, "),
    "round no number": (
        b"country,amount,round\nDE,1,one\n",
        "events.csv:2: expected a whole number, got 'one' - at round",
    ),
    "round below": (b"country,amount,round\nDE,1,2\nDE,1,1\n", "events.csv:3: expected a round from 2 on"),
    "round negative": (
        b"country,amount,round\nDE,1,-1\n",
        "events.csv:2: expected a whole number, got '-1' - at round",
    ),
    "open quote": (b'country,amount\nDE,1\nDE,"1\nDE,2\n', "events.csv:3: expected a closing quote for a cell"),
    "text after quote": (b'country,amount\nDE,"1"2\n', "events.csv:2: expected CSV, got"),
    "not UTF-8": (
        b"country,amount\nDE,1\n\xff,2\n",
        "events.csv:3: expected UTF-8 text, got the byte 0xff - at column 1",
    ),
}


@pytest.mark.parametrize("name", CSV)
def test_csv(name: str, program: Program, folder: Path) -> None:
    content, message = CSV[name]
    (folder / "events.csv").write_bytes(content)
    before = {path.name for path in folder.iterdir()}
    ended = program("run", "events.csv", "--spec", "shop.toml", "--rounds", 30, "--out", "out", "-q")
    found = refused(ended, folder, before)
    assert found.startswith(message)


PLAIN: dict[str, tuple[dict[str, Any], str]] = {
    "value": ({"amount": "x", "who": "u", "day": 1}, "expected a number, got 'x' - at amount"),
    "missing field": ({"who": "u", "day": 1}, "expected the fields amount, got no 'amount'"),
    "missing role": ({"amount": 1, "day": 1}, "expected 'who', the subject of the record, got none"),
    "subject": ({"amount": 1, "who": [1], "day": 1}, "expected text or a whole number, got [1] - at who"),
    "round": ({"amount": 1, "who": "u", "day": "1"}, "expected a whole number, got '1' - at day"),
    "round below": ({"amount": 1, "who": "u", "day": 0}, "expected a round from 1 on, got 0 - at round"),
    "native": ({"op": "drop"}, "expected one of add, delete, erase, close, got 'drop' - at op"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_records(name: str, program: Program, folder: Path) -> None:
    bad, message = PLAIN[name]
    (folder / "events.jsonl").write_text(lines({"amount": 1, "who": "v", "day": 1, "x": 0}, bad, {}))
    before = {path.name for path in folder.iterdir()}
    options = ("--sum", "amount:0..9", "--epsilon", 1, "--subject", "who", "--round", "day", "--out", "out", "-q")
    options = (*options, "--rounds", 30)
    assert refused(program("run", "events.jsonl", *options), folder, before) == f"events.jsonl:2: {message}"


def test_files(program: Program, folder: Path) -> None:
    (folder / "empty.jsonl").write_text("")
    (folder / "blank.jsonl").write_text("\n \n\n")
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("country,amount\n")
    (folder / "utf16.jsonl").write_text('{"op": "close"}', encoding="utf-16")
    before = {path.name for path in folder.iterdir()}
    for name, message in {
        "empty.jsonl": "no events in empty.jsonl",
        "blank.jsonl": "no events in blank.jsonl",
        "empty.csv": "no events in empty.csv",
        "header.csv": "no events in header.csv",
        "nowhere.jsonl": "nowhere.jsonl: no such file or directory",
        ".": ".: expected a file, got a directory",
        "utf16.jsonl": "utf16.jsonl:1: expected UTF-8 text, got UTF-16",
    }.items():
        found = refused(program("run", name, "--spec", "shop.toml", "--out", "out"), folder, before)
        assert found.startswith(message)
    assert refused(program("run", "-", "--spec", "shop.toml", stdin=b""), folder, before) == "no events in stdin"


COUNT = b'[statistics]\nn = { type = "count" }\n'
SPECS: dict[str, tuple[bytes, str]] = {
    "syntax": (b"epsilon = 1\nhorizon = = 2\n", "spec.toml:2: expected TOML: invalid value"),
    "cut off": (b'epsilon = 1\n[schema]\na = { type = "integer"', "spec.toml:3: expected TOML: "),
    "not UTF-8": (b"# \xff\n", "spec.toml:1: expected UTF-8 text, got the byte 0xff"),
    "no schema": (b"epsilon = 1\n", "spec.toml: expected schema, which is missing - at schema"),
    "unknown key": (b"epsilon = 1\nhue = 3\n", "got 'hue' - at hue"),
    "field": (
        b'epsilon = 1\n[schema]\na = { type = "integer", lower = 3, upper = 1 }\n' + COUNT,
        "spec.toml:3: expected lower to be at most upper, got 3 and 1 - at schema.a",
    ),
    "statistic": (
        b'epsilon = 1\n[schema]\na = { type = "integer", lower = 0, upper = 1 }\n[statistics]\nn = { type = "sun" }\n',
        "got 'sun' (did you mean 'sum'?) - at statistics.n.type",
    ),
    "budget": (
        b'epsilon = -1\n[schema]\na = { type = "integer", lower = 0, upper = 1 }\n' + COUNT,
        "- at epsilon",
    ),
    "end of the grid": (
        b'epsilon = 1\n[schema]\na = { type = "integer", lower = 0, upper = 1 }\n[rounds]\nstart = 2026-01-01\n'
        b'length = "1w"\nend = 2026-01-09\n' + COUNT,
        "spec.toml:7: expected an end that is a whole number of lengths (1w) after the start, such as 2026-01-08",
    ),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("command", ["run", "plan", "explain"])
def test_specifications(command: str, name: str, program: Program, folder: Path) -> None:
    content, message = SPECS[name]
    (folder / "spec.toml").write_bytes(content)
    (folder / "events.jsonl").write_text(GOOD)
    before = {path.name for path in folder.iterdir()}
    arguments = ("run", "events.jsonl", "--out", "out", "--spec") if command == "run" else (command,)
    found = refused(program(*arguments, "spec.toml"), folder, before)
    assert found.startswith("spec.toml:")
    assert message in found


OPTIONS: dict[str, tuple[tuple[object, ...], str]] = {
    "nothing": ((), "expected what to publish: a specification file"),
    "no statistic": (("--epsilon", 1), "expected a statistic such as --count with --epsilon"),
    "no epsilon": (("--count",), "expected a budget for the whole published sequence, such as --epsilon 1"),
    "both": (("--spec", "shop.toml", "--count"), "expected either a specification file or options"),
    "no bounds": (("--sum", "amount", "--epsilon", 1), "such as amount:0..500, got 'amount' - at --sum"),
    "bounds": (("--sum", "amount:9..1:1", "--epsilon", 1), "got 9 and 1 - at --sum amount:9..1:1"),
    "no number": (
        ("--mean", "amount:a..b", "--epsilon", 1),
        "expected a number, got 'a' - at --mean amount:a..b.lower",
    ),
    "step": (("--mean", "amount:0..10:3", "--epsilon", 1), "expected a multiple of the step 3, got 10"),
    "two bounds": (
        ("--sum", "a:0..1", "--mean", "a:0..2", "--epsilon", 1),
        "expected a with the same bounds everywhere",
    ),
    "twice": (("--sum", "a:0..1", "--sum", "a:0..1", "--epsilon", 1), "got sum_a twice"),
    "categories": (("--by", "country", "--epsilon", 1), "such as country=DE,FR,US, got 'country' - at --by"),
    "same category": (("--by", "country=DE,DE", "--epsilon", 1), "got 'DE' twice - at --by country=DE,DE.values"),
    "epsilon": (("--count", "--epsilon", 0), "- at epsilon"),
    "delta": (("--count", "--epsilon", 1, "--delta", 2), "- at delta"),
    "horizon": (("--count", "--epsilon", 1, "--horizon", 0), "- at horizon"),
    "every": (("--count", "--epsilon", 1, "--every", 0), "every"),
    "no such column": (
        ("--count", "--epsilon", 1, "--id", "order"),
        "expected 'order', the id of the record, got none",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, program: Program, folder: Path) -> None:
    options, message = OPTIONS[name]
    (folder / "events.jsonl").write_text(GOOD if "--spec" in options else '{"amount": 1}\n')
    before = {path.name for path in folder.iterdir()}
    found = refused(program("run", "events.jsonl", *options, "--out", "out", "-q"), folder, before)
    assert message in found


def test_no_such_column_in_csv(program: Program, folder: Path) -> None:
    (folder / "events.csv").write_text("amount\n1\n")
    before = {path.name for path in folder.iterdir()}
    ended = program("run", "events.csv", "--count", "--epsilon", 1, "--id", "order")
    assert refused(ended, folder, before) == "events.csv:1: expected a column 'order' for the id, got amount"


@pytest.mark.parametrize("options", [("--epsilon", "x"), ("--nonsense",), ("--format", "xml"), ("--rounds", 0)])
def test_usage(options: tuple[object, ...], program: Program, folder: Path) -> None:
    assert program("run", "events.jsonl", *options).code == 2
    assert program().code in (0, 2)


def test_horizon_at_the_end(program: Program) -> None:
    ended = program("run", "-", "--spec", "shop.toml", "-q", stdin=b'{"op": "close"}\n' * 51)
    assert ended.code == 3
    assert "stdin:51: all 50 promised rounds are released" in ended.err
    assert len({release["round"] for release in ended.releases}) == 50


def test_unexpected_errors_are_not_hidden(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("retroact.cli.run.Stream.from_specification", broken)
    with pytest.raises(ZeroDivisionError):
        program("run", "-", "--spec", "shop.toml", stdin=b'{"op": "close"}\n')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run x --rounds 0", "0 is not in the range x>=1 - at --rounds"),
        ("run x --format foo", "'foo' is not one of 'jsonl', 'csv', 'parquet', 'arrow' - at --format"),
        ("run", "missing argument 'EVENTS'"),
        ("run x y\x1b[2J", "got unexpected extra argument (y\\x1b[2J)"),
    ],
)
def test_a_wrong_command_line_is_an_error_like_any_other(arguments: str, message: str, program: Program) -> None:
    ended = program(*arguments.split())
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {message}\nhint: retroact run --help\n")
