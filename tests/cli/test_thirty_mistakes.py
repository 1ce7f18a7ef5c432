"""What is answered to typical mistakes: where it is, what was found, what was expected, and the next step."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.cli_program import Program

HEADER = "order,customer,country,amount,day\n"
ROWS = "".join(f"o{i},c{i % 5},DE,{i}.5,{i % 3 + 1}\n" for i in range(20))
ORDERS = HEADER + ROWS
SPEC = """epsilon = 1.0
horizon = 3
[schema]
amount = { type = "number", lower = 0, upper = 500 }
[statistics]
"""
BUDGET = "--epsilon 1"

TIMED = f"--time t --start 2026-01-01 --length 1mo --end 2026-03-01 {BUDGET}"
NUMBERS = "hint: numbers are read in the form 1234.5 only, without units and separators of thousands; pandas.read_csv("
NO_TIME = "hint: leave rows without a time out of the file, or publish without a grid: without --time, --start"
JSON_LINES = "hint: one object a line: jq -c '.[]' old.json > new.jsonl for an array, jq -c . for objects over several"


@dataclass(frozen=True)
class Mistake:
    """A file, what is typed, and what the answer says."""

    content: str | bytes
    typed: str
    answer: tuple[str, ...]
    code: int = 2
    more: dict[str, str] = field(default_factory=dict)


MISTAKES: dict[str, Mistake] = {
    "a column that is not there": Mistake(
        ORDERS,
        f"run orders.csv --sum amuont:0..500 {BUDGET}",
        (
            "orders.csv:1: expected the columns amuont, got no 'amuont' (did you mean 'amount'?) among 'order', "
            "'customer', 'country', 'amount', 'day'",
        ),
    ),
    "a subject column that is not there": Mistake(
        ORDERS,
        f"run orders.csv --count --subject custmer {BUDGET}",
        (
            "orders.csv:1: expected a column 'custmer' for the subject, got order, customer, country, amount, day (did "
            "you mean 'customer'?)",
        ),
    ),
    "an empty cell": Mistake(
        HEADER + "o1,c1,DE,,1\n",
        f"run orders.csv --sum amount:0..500 {BUDGET}",
        (
            "orders.csv:2: expected a number, got no value - at amount",
            'hint: the value is missing: missing = "skip" on the field (--skip-missing) leaves the record out',
        ),
    ),
    "NA for a missing value": Mistake(
        HEADER + "o1,c1,DE,NA,1\n",
        f"run orders.csv --sum amount:0..500 {BUDGET}",
        (
            "orders.csv:2: expected a number, got 'NA' - at amount",
            "hint: if 'NA' stands for a missing value, say so (na_values in [columns], or --na-values)",
        ),
    ),
    "a word for a number": Mistake(
        HEADER + "o1,c1,DE,twelve,1\n",
        f"run orders.csv --sum amount:0..500 {BUDGET}",
        ("orders.csv:2: expected a number, got 'twelve' - at amount",),
    ),
    "a value out of bounds": Mistake(
        HEADER + "o1,c1,DE,900,1\n",
        f"run orders.csv --sum amount:0..500 {BUDGET}",
        ("orders.csv:2: expected a number between 0 and 500, got 900.0 - at amount", "hint: clip = true on the field"),
    ),
    "an undeclared category": Mistake(
        HEADER + "o1,c1,XX,9,1\n",
        f"run orders.csv --count --by country=DE,FR {BUDGET}",
        (
            "orders.csv:2: expected one of 'DE', 'FR', got 'XX' - at country",
            'hint: other = "other" on the category (--by FIELD=A,B,*) counts all other values as one more',
        ),
    ),
    "yes for true": Mistake(
        "order,paid\no1,yes\n",
        "run orders.csv --spec own.toml",
        (
            "orders.csv:2: expected true or false, got 'yes' - at paid",
            'hint: other words for true and false are categories: { type = "category", values = ["yes", "no"] }',
        ),
        more={
            "own.toml": SPEC.replace(
                "[schema]", 'columns = { id = "order" }\n[schema]\npaid = { type = "boolean" }'
            ).replace('amount = { type = "number", lower = 0, upper = 500 }\n', "")
            + 'n = { type = "count", where = { paid = true } }\n'
        },
    ),
    "a date in another order": Mistake(
        HEADER + "o1,c1,DE,5,12/31/2026\n",
        f"run orders.csv --count --time day --start 2026-01-01 --length 1mo --end 2027-01-01 {BUDGET}",
        (
            "orders.csv:2: expected a date such as 2020-12-31, got '12/31/2026' - at day",
            "hint: dates and times are read in the form of ISO 8601 only; pandas.to_datetime reads most others",
        ),
    ),
    "a ratio of words": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        (
            "own.toml:6: expected a count or a sum, got 'count' - at statistics.n.top",
            'hint: in a file such as { type = "count", where = { status = "late" } }',
        ),
        more={"own.toml": SPEC + 'n = { type = "ratio", top = "count", bottom = "count" }\n'},
    ),
    "a row with cells missing": Mistake(
        HEADER + "o1,c1,DE\n",
        f"run orders.csv --count {BUDGET}",
        ("orders.csv:2: expected 5 cells, as in the header, got 3",),
    ),
    "a date for the number of a round": Mistake(
        HEADER + "o1,c1,DE,5,2026-01-03\n",
        f"run orders.csv --count --round day --rounds 3 {BUDGET}",
        (
            "orders.csv:2: expected a whole number, got '2026-01-03' - at day",
            "hint: rounds are numbered from 1; for dates and times: --time COLUMN with --start, --length and --end",
        ),
    ),
    "a time without a grid": Mistake(
        ORDERS,
        f"run orders.csv --count --time day {BUDGET}",
        ("expected a grid (--start, --length, --end) with the column of the time - at --time",),
    ),
    "a length that is none": Mistake(
        ORDERS,
        f"run orders.csv --count --time day --start 2026-01-01 --length 1x --end 2026-02-01 {BUDGET}",
        ("expected a length such as", "got '1x' - at --length"),
    ),
    "more rounds than promised": Mistake(
        HEADER + "".join(f"o{i},c,DE,1,{i + 1}\n" for i in range(5)),
        f"run orders.csv --count --round day --rounds 3 {BUDGET}",
        ("orders.csv:5: expected a round up to 3 (--rounds), got 4 - at round",),
    ),
    "a horizon that is used up": Mistake(
        '{"op": "close"}\n' * 4,
        f"run events.jsonl --count --horizon 3 {BUDGET}",
        ("events.jsonl:4: all 3 promised rounds are released", "To continue: stream.successor("),
        code=3,
    ),
    "a workbook": Mistake(
        b"PK\x03\x04\x14\x00\x06\x00rest",
        f"run book.xlsx --count {BUDGET}",
        (
            "book.xlsx: expected CSV, JSON lines, Parquet or Arrow, got a workbook",
            "hint: save the sheet or table as CSV or Parquet",
        ),
    ),
    "an empty file": Mistake(
        "", f"run orders.csv --count {BUDGET}", ("no events in orders.csv", "hint: a file of records has at least one")
    ),
    "a header alone": Mistake(
        HEADER, f"run orders.csv --count {BUDGET}", ("no events in orders.csv", "below a line with the names")
    ),
    "a binary file": Mistake(
        bytes(range(128, 256)),
        f"run orders.csv --count {BUDGET}",
        ("orders.csv:1: expected UTF-8 text, got the byte 0x80 - at column 1", "hint: text in another encoding"),
    ),
    "text in Latin-1": Mistake(
        (HEADER + "o1,c1,M\xfcnchen,5,1\n").encode("latin-1"),
        f"run orders.csv --count --by country=DE,FR {BUDGET}",
        ("orders.csv:2: expected UTF-8 text, got the byte 0xfc - at column 8", "iconv -f LATIN1 -t UTF-8"),
    ),
    "a column twice": Mistake(
        "order,amount,amount\no1,1,2\n",
        f"run orders.csv --count {BUDGET}",
        ("orders.csv:1: expected different columns, got 'amount' twice",),
    ),
    "broken JSON": Mistake(
        '{"op": "add", "record": {"amount": 1}}\n{oops\n',
        f"run events.jsonl --sum amount:0..5 {BUDGET}",
        ("events.jsonl:2: expected JSON, got broken JSON", "at column 2"),
    ),
    "a file that is not there": Mistake(
        ORDERS, f"run order.csv --count {BUDGET}", ("order.csv: no such file or directory",)
    ),
    "a folder": Mistake(ORDERS, f"run . --count {BUDGET}", (".: expected a file, got a directory",)),
    "no statistic": Mistake(
        ORDERS, "run orders.csv", ("expected what to publish: a specification file", "--count --sum amount:0..500")
    ),
    "no epsilon": Mistake(
        ORDERS,
        "run orders.csv --count",
        ("expected a budget for the whole published sequence, such as --epsilon 1 - at --epsilon",),
    ),
    "no bounds": Mistake(
        ORDERS,
        f"run orders.csv --sum amount {BUDGET}",
        ("expected a field with its bounds, such as amount:0..500, got 'amount' - at --sum",),
    ),
    "an epsilon of 0": Mistake(
        ORDERS,
        "run orders.csv --count --epsilon 0",
        ("expected a number above 0 and up to 1,000, got 0.0 - at epsilon",),
    ),
    "an epsilon of 50": Mistake(
        ORDERS,
        "run orders.csv --count --epsilon 50",
        ("warning: ε = 50 protects next to nothing", "Common: 0.1 to 3"),
        code=0,
    ),
    "an epsilon of a billionth": Mistake(
        ORDERS,
        "run orders.csv --count --epsilon 1e-9",
        ("warning: count: the noise drowns it: ±", "about 10,000 records (records=)", "Better: a larger ε"),
        code=0,
    ),
    "a delta above one in records": Mistake(
        ORDERS,
        f"run orders.csv --count --delta 0.1 --records 199 {BUDGET}",
        ("warning: δ = 0.1 is not below 1/records, with about 199 records (records=)", "Better: 5e-05 or less"),
        code=0,
    ),
    "a specification that is not there": Mistake(
        ORDERS,
        "run orders.csv --spec shop2.toml",
        ("shop2.toml: no such file or directory", "hint: retroact init FILE writes a specification"),
    ),
    "broken TOML": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        ("own.toml:2: expected TOML: expected ']' at the end of a table declaration",),
        more={"own.toml": "epsilon = 1.0\n[schema\namount = 1\n"},
    ),
    "an unknown type of statistic": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        ("own.toml:6: expected one of ", " count, ", "got 'cuont' (did you mean 'count'?) - at statistics.n.type"),
        more={"own.toml": SPEC + 'n = { type = "cuont" }\n'},
    ),
    "a field that was not declared": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        (
            "own.toml:6: expected one of the fields amount, got 'amuont' (did you mean 'amount'?)",
            " - at statistics.n.field",
        ),
        more={"own.toml": SPEC + 'n = { type = "sum", field = "amuont" }\n'},
    ),
    "bounds the wrong way round": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        ("own.toml:4: expected lower to be below upper", "got 500 and 0 - at schema.amount"),
        more={
            "own.toml": SPEC.replace("lower = 0, upper = 500", "lower = 500, upper = 0") + 'n = { type = "count" }\n'
        },
    ),
    "groups of a number": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        ("own.toml:6: expected a field of type Category or Boolean, got Number ('amount') - at statistics.n.by",),
        more={"own.toml": SPEC + 'n = { type = "count", by = "amount" }\n'},
    ),
    "columns that nobody mentioned": Mistake(
        ORDERS,
        "run orders.csv --spec own.toml",
        (
            "orders.csv:1: expected the columns amount (and id, subject, op, stamp, round), got unknown columns "
            "'order', 'customer', 'country', 'day'; to ignore columns: ignore = true, or a list, in [columns]",
        ),
        more={"own.toml": SPEC + 'n = { type = "count" }\n'},
    ),
    "a full disk": Mistake(
        ORDERS,
        f"run orders.csv --count --out /dev/full {BUDGET}",
        ("/dev/full: no space left on device - at --out",),
    ),
    "a folder that is not there": Mistake(
        ORDERS,
        f"run orders.csv --count --out nowhere/x.jsonl {BUDGET}",
        ("nowhere/x.jsonl: expected a file in a folder that exists - at --out",),
    ),
    "an unknown option": Mistake(
        ORDERS,
        f"run orders.csv --cuont {BUDGET}",
        (
            "error: no such option '--cuont'",
            "Did you mean one of: '--count'",
        ),
    ),
    "a stream that is not there": Mistake(
        ORDERS, "erase shop --subject c1", ("shop: expected the folder of a stream, got none",)
    ),
    "another delimiter than the one that is named": Mistake(
        ORDERS.replace(",", ";"),
        f"run orders.csv --sum amount:0..500 --delimiter , {BUDGET}",
        (
            "orders.csv:1: expected cells separated by ',', got 'order;customer;country;amount;day' - at --delimiter",
            "hint: the header looks separated by ';'",
        ),
    ),
    "tabs that are not there, where no column is needed": Mistake(
        ORDERS.replace(",", ";"),
        f"run orders.csv --count --delimiter tab {BUDGET}",
        ("orders.csv:1: expected cells separated by '\\t', got", "hint: the header looks separated by ';'"),
    ),
    "a decimal comma": Mistake(
        'amount\n"41,39"\n',
        f"run orders.csv --sum amount:0..500 {BUDGET}",
        ("orders.csv:2: expected a number, got '41,39' - at amount", NUMBERS),
    ),
    "thousands with commas": Mistake(
        'amount\n"1,000"\n', f"run orders.csv --sum amount:0..5000 {BUDGET}", ("got '1,000' - at amount", NUMBERS)
    ),
    "a sum of money": Mistake(
        "amount\n$1000\n", f"run orders.csv --sum amount:0..5000 {BUDGET}", ("got '$1000' - at amount", NUMBERS)
    ),
    "a local time without its zone": Mistake(
        "t\n2026-01-01T10:00:00\n",
        f"run orders.csv --count {TIMED}",
        (
            "orders.csv:2: expected an offset from UTC, such as Z (a time without one is ambiguous), got "
            "'2026-01-01T10:00:00' - at t",
            "hint: local times need their zone: --time-zone Europe/Berlin (time_zone in [rounds])",
        ),
    ),
    "a local time without its zone, checked": Mistake(
        "t\n2026-01-01T10:00:00\n", f"check orders.csv --count {TIMED}", ("1 fault in it",)
    ),
    "an empty time": Mistake(
        "t,amount\n2026-01-01,1\n,2\n",
        f"run orders.csv --count {TIMED} --time-zone UTC",
        ("orders.csv:3: expected a time, got none: on a grid every event says when it happened", NO_TIME),
    ),
    "NULL for a time": Mistake(
        "t,amount\n2026-01-01,1\nNULL,2\n",
        f"run orders.csv --count {TIMED} --time-zone UTC",
        ("orders.csv:3: expected a timestamp such as", "got 'NULL' - at t", NO_TIME),
    ),
    "NULL for a time, named as a missing value": Mistake(
        "t,amount\n2026-01-01,1\nNULL,2\n",
        f"run orders.csv --count {TIMED} --time-zone UTC --na-values NULL",
        ("orders.csv:3: expected a time, got none", NO_TIME),
    ),
    "several texts for missing values in one option": Mistake(
        "amount\n1\nN/A\n-\n",
        f"run orders.csv --sum amount:0..5 --na-values N/A,- --skip-missing {BUDGET}",
        ("sum_amount leaves out 2 surviving records without a value",),
        code=0,
    ),
    "a JSON array": Mistake(
        '[{"amount": 1}, {"amount": 2}]\n',
        f"run events.json --sum amount:0..5 {BUDGET}",
        ("events.json:1: expected a JSON object on each line, got an array", JSON_LINES),
    ),
    "a JSON array, for init": Mistake(
        '[\n{"amount": 1}\n]\n', "init events.json", ("events.json:1: expected a JSON object on each line", JSON_LINES)
    ),
    "a JSON object over several lines": Mistake(
        '{\n "amount": 1\n}\n',
        f"run events.json --sum amount:0..5 {BUDGET}",
        ("events.json:1: expected a JSON object on each line, got one over several lines", JSON_LINES),
    ),
    "a quote that nothing closes": Mistake(
        'amount,note\n1,x\n2,"6" pipe\n3,"y\n4,z\n'.replace('"6" pipe', "y"),
        f"run orders.csv --count {BUDGET}",
        (
            "orders.csv:4: expected a closing quote for a cell that begins in this row, got the end of the file",
            'hint: a cell with a quote in it is written with two: "6"" pipe"',
        ),
    ),
    "a histogram of a number with bounds": Mistake(
        ORDERS,
        f"run orders.csv --histogram amount:0..120 {BUDGET}",
        (
            "expected the names of fields alone, since this counts each value by itself, got 'amount:0..120' - at "
            "--histogram",
            "hint: how numbers spread: --quantiles amount:0..120; known categories: --by amount=A,B",
        ),
    ),
    "a histogram without delta": Mistake(
        ORDERS,
        f"run orders.csv --histogram country {BUDGET}",
        (
            "bins that are not declared can only be released with delta > 0: give a delta, or declare the bins",
            "hint: delta = 1e-6 (--delta 1e-6); or, where the categories are known, a category field (--count --by",
        ),
    ),
    "check without a file": Mistake(
        ORDERS,
        "check",
        ("expected a file to check, got none", "hint: retroact check FILE, or retroact check SPEC FILE"),
    ),
    "check with a specification alone": Mistake(
        ORDERS, "check own.toml", ("expected a file to check, got a specification alone, own.toml",)
    ),
    "a page that is not called one": Mistake(
        ORDERS,
        f"run orders.csv --count --html page.txt {BUDGET}",
        ("expected a file name that ends with .html, got page.txt - at --html",),
    ),
    "a compressed file under another name, cut off": Mistake(
        gzip.compress(ORDERS.encode())[:60],
        f"run orders.csv --count {BUDGET}",
        ("orders.csv: expected a file compressed with gzip, got one that ends too early",),
    ),
    "an ending that no output has": Mistake(
        ORDERS,
        f"run orders.csv --count {BUDGET} --out releases.xlsx",
        ("expected a file name that ends with", ".csv, .parquet, .arrow, or --format, got releases.xlsx - at --out"),
    ),
}


def typed(program: Program, folder: Path, mistake: Mistake) -> tuple[int, str]:
    name = [*mistake.typed.split(), "-"][1]
    if name not in (".", "shop", "order.csv"):
        content = mistake.content
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    for name, text in mistake.more.items():
        (folder / name).write_text(text)
    ended = program(*mistake.typed.split())
    return ended.code, ended.err


@pytest.mark.parametrize("name", MISTAKES)
def test_the_answer(name: str, program: Program, folder: Path) -> None:
    code, answer = typed(program, folder, MISTAKES[name])
    for part in MISTAKES[name].answer:
        assert part in answer
    assert code == MISTAKES[name].code
    assert "Traceback" not in answer


def test_there_are_thirty() -> None:
    assert len(MISTAKES) >= 30


def _stored(program: Program, folder: Path, *more: str) -> str:
    (folder / "orders.csv").write_text(ORDERS)
    program("run", "orders.csv", "--count", "--subject", "customer", "--epsilon", "1", "--store", "shop")
    return program("run", "orders.csv", "--count", "--store", "shop", *more).err


def test_a_store_with_another_grid(program: Program, folder: Path) -> None:
    grid = ["--epsilon", "1", "--time", "day", "--start", "2026-01-01", "--length", "1d", "--end", "2026-02-01"]
    answer = _stored(program, folder, *grid)
    assert "shop: expected the specification that this stream runs under, got another one: " in answer
    assert "rounds.start: nothing in the store, 2026-01-01T00:00:00Z given" in answer
    assert "make a new stream, or a successor" in answer
    assert "choice" not in answer


def test_a_store_with_another_budget(program: Program, folder: Path) -> None:
    answer = _stored(program, folder, "--epsilon", "2")
    assert "got another one: epsilon: 1.0 in the store, 2.0 given. What was released rests on it" in answer


def test_somebody_unknown_is_erased(program: Program, folder: Path) -> None:
    _stored(program, folder, "--epsilon", "1")
    ended = program("erase", "shop", "--subject", "c77")
    assert ended.code == 5
    assert "no record was found of a subject. If that is right: --allow-missing" in ended.err


@pytest.fixture
def nobody(folder: Path) -> Iterator[Path]:
    """A folder that anybody may enter, and a user who is not root, to whom permissions apply."""
    folder.chmod(0o755)
    if os.geteuid():
        yield folder
        return
    os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(0)


@pytest.fixture
def loaded(program: Program, folder: Path) -> Path:
    """All modules are loaded, which another user might not be allowed to read; and a file that only its owner may."""
    (folder / "orders.csv").write_text(ORDERS)
    assert program("run", "orders.csv", "--count", "--epsilon", 1, "--out", "r.jsonl").code == 0
    (folder / "orders.csv").chmod(0)
    return folder


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_no_permission(program: Program, loaded: Path, nobody: Path) -> None:
    ended = program("run", "orders.csv", "--count", "--epsilon", "1")
    assert ended.code == 2
    assert "orders.csv: permission denied" in ended.err


@pytest.mark.parametrize("sign", ["!=", "<>", "=="])
def test_conditions_with_other_signs(sign: str, program: Program, folder: Path) -> None:
    ended = program("plan", "--count", "--where", f"amount:0..120 {sign} 120", "--epsilon", 1)
    assert ended.code == 2
    assert f"expected one of =, in, <, <=, >, >= between a field and a value, got '{sign}' - at --where" in ended.err
    assert ("'country in DE, FR'" in ended.err) == (sign != "==")


def test_a_condition_on_a_day_suggests_days(program: Program, folder: Path) -> None:
    ended = program("plan", "--count", "--where", "day >= 2024-06-01", "--epsilon", 1)
    assert "such as 'day:2020-01-01..2030-12-31 >= 2024-06-01', got none" in ended.err


def test_lists_in_options_are_read_in_one_way(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("name,amount\nAnn,1\nBob,2\n")
    for option in (("--by", "name=Ann, Bob"), ("--count", "--where", "name in Ann, Bob")):
        ended = program("run", "e.csv", *option, "--rounds", 1, "--epsilon", 900, "--testing-key", 1)
        assert ended.code == 0, ended.err
        for release in ended.releases:
            assert release["value"] == ({"Ann": 1, "Bob": 1} if isinstance(release["value"], dict) else 2)


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_a_specification_may_be_an_option_everywhere(command: str, program: Program, folder: Path) -> None:
    named = program(command, "--spec", "shop.toml")
    assert named.code == 0
    assert named.out == program(command, "shop.toml").out
    assert "expected one specification" in program(command, "shop.toml", "--spec", "shop.toml").err


def test_a_check_that_stops_says_what_to_do(program: Program, folder: Path) -> None:
    (folder / "e.json").write_text("[]")
    assert JSON_LINES in program("check", "e.json", "--count", "--epsilon", 1).out
    (folder / "e.csv").write_text("t\n2026-01-01T10:00:00\n")
    checked = program("check", "e.csv", "--count", *TIMED.split())
    assert "A run refuses:" in checked.out
    assert "hint: local times need their zone: --time-zone Europe/Berlin" in checked.out


def test_a_specification_in_the_folder_is_not_read_beside_options(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    (folder / "retroact.toml").write_text("this is not TOML")
    for command in ("run orders.csv", "check orders.csv", "plan", "explain"):
        ended = program(*f"{command} --count --epsilon 1".split())
        assert ended.code == 0
        note = "note: options describe the stream; retroact.toml in this folder is not read\n"
        assert ended.err.count("is not read") == ended.err.count(note) == 1


def test_the_horizon_is_mentioned_only_if_the_stream_goes_on(program: Program, folder: Path) -> None:
    lines = [f'{{"op": "add", "record": {{}}, "id": "{i}"}}\n{{"op": "close"}}\n' for i in range(5)]
    run = ["run", "events.jsonl", "--count", "--epsilon", "1", "--horizon", "5"]
    (folder / "events.jsonl").write_text("".join(lines))
    assert "plan what follows" not in program(*run).err
    assert "plan what follows" not in program(*run, "--store", "whole").err
    (folder / "events.jsonl").write_text("".join(lines[:4]))
    assert program(*run, "--store", "half").err.count("warning: round 4 of 5: plan what follows") == 1


def test_an_option_that_belongs_in_the_file_is_sent_there(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text("amount\n1\n")
    (folder / "retroact.toml").write_text("epsilon = 1")
    ended = program("check", "orders.csv", "--skip-missing")
    assert ended.code == 2
    assert "such as --count with --skip-missing; without one, retroact.toml describes the stream" in ended.err


def test_a_run_ends_with_the_name_of_its_page(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text("amount\n1\n")
    ended = program("run", "orders.csv", "--count", "--epsilon", 1, "--out", "r.csv", "--html", "page.html")
    assert ended.err.endswith("\npage: page.html\n")
