"""`retroact init` on files that are not what they seem: no header, other forms of dates and numbers, its own output."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from retroact.cli.proposal import Proposal, proposed
from retroact.cli.questions import Questions
from retroact.feeds.header import FileHeader, Kind
from support.cli_program import Program

NAMES = "hint: a file without a header needs a line with the names of its columns above the first row"


@pytest.mark.parametrize(
    "first",
    [
        "Ann Smith,1980-02-03,5000", "Ann,3.1.1980,x", "Ann,1/3/80 10:15 PM,x", "Ann,5000,x", "Ann,-7.25,x",
        "Ann,ann@example.org,x", "Ann,10:15 am,x", "Ann,€ 12,x", "Ann,+49 30 1234,x", "Ann,3 Feb 1980,x",
        "Ann,Feb 3, 1980", "Ann,true,x", "Ann,NA,x", "Ann,,x", "Ann,https://example.org/ann,x", "Ann,DE,x",
        "Ann,550e8400-e29b-41d4-a716-446655440000,x", "Ann,1980-02-03T10:00:00Z,x",
    ],
)  # fmt: skip
def test_a_file_without_a_header_gives_no_value_away(first: str, program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text(f"{first}\nBob,DE,z\nCarl,FR,z\n")
    ended = program("init", "e.csv")
    assert ended.code == 2
    assert "error: e.csv:1: expected the names of the columns in the first line, got " in ended.err
    assert NAMES in ended.err
    assert not (folder / "retroact.toml").exists()


@pytest.mark.parametrize(
    "names", ["country,2019,2020", ",mpg,cyl", "name,1stFlrSF,x2", "day,May,e-mail", "id,%,no", "a,b,"]
)
def test_names_may_look_odd(names: str, program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text(f"{names}\nDE,1.5,\n")
    years = "2019" in names
    assert program("init", "e.csv").code == (2 if years else 0)
    assert program("init", "e.csv", "--overwrite", "--header").code == 0
    assert tomllib.loads((folder / "retroact.toml").read_text())["statistics"]


@pytest.mark.parametrize(
    ("file", "out"), [("e.csv", "e.csv"), ("e.csv", "./e.csv"), ("e.csv", "link.toml"), ("data.toml", "data.toml")]
)
def test_the_file_that_is_described_is_never_replaced(file: str, out: str, program: Program, folder: Path) -> None:
    (folder / file).write_text("amount,country\n1,DE\n")
    (folder / "link.toml").symlink_to("e.csv")
    ended = program("init", file, "--out", out, "--overwrite")
    assert ended.code == 2
    assert "expected another file than the" in ended.err
    assert " described - at --out" in ended.err
    assert (folder / file).read_text() == "amount,country\n1,DE\n"


def test_a_specification_may_be_replaced_and_a_key_may_not(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("amount,country\n1,DE\n")
    (folder / "x.key").write_text("ab" * 32)
    assert program("init", "e.csv", "--out", "x.key", "--overwrite").code == 2
    assert (folder / "x.key").read_text() == "ab" * 32
    for _ in range(2):
        assert program("init", "e.csv", "--overwrite").code == 0


def test_other_forms_are_recognised_and_noted(program: Program, folder: Path) -> None:
    cells = "T1;C1;01.01.2024 13:19;1.041,39;31\nT2;C2;31.12.2024 01:01;7;5\n"
    (folder / "my file.csv").write_text("Ticket No.;Customer ID;Opened (local);Amount EUR;Minutes\n" + cells)
    ended = program("init", "my file.csv", "--out", "my.toml")
    given = tomllib.loads((folder / "my.toml").read_text())
    assert given["columns"] == {
        "id": "Ticket No.", "subject": "Customer ID", "time": "Opened (local)", "ignore": True
    }  # fmt: skip
    assert {name: field["type"] for name, field in given["schema"].items()} == dict.fromkeys(
        ("Amount EUR", "Minutes"), "number"
    )
    assert ended.err.splitlines()[1:] == [
        "note: 'Opened (local)' does not look like 2026-12-31 or 2026-12-31T23:59:59Z: a run refuses times in another "
        "form",
        "note: 'Amount EUR' does not look like 1234.5: a run refuses numbers in another form",
    ]


def test_the_next_command_can_be_pasted(program: Program, folder: Path) -> None:
    (folder / "my file.csv").write_text("amount,country\n1,DE\n")
    ended = program("init", "my file.csv", "--out", "x y.toml")
    typed = ended.err.partition("Then: ")[2]
    assert shlex.split(typed) == ["retroact", "check", "x y.toml", "my file.csv"]


def test_roles_that_no_column_has_are_offered(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("amount,country\n1,DE\n")
    program("init", "e.csv")
    written = (folder / "retroact.toml").read_text()
    for role in ("id", "subject"):
        assert f'# {role} = "COLUMN"' in written


def _interrupted(answers: list[str]) -> Callable[[str], str]:
    left = iter(answers)

    def ask(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return ask


def test_answers_before_the_end_of_the_input_are_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = FileHeader({"amount": "number"}, False)
    questions = Questions(_interrupted(["-", "-", "-", "-", "", "0.5"]))
    found = questions.proposal(proposed(columns), columns.columns, roles=True)
    questions.choose(found)
    assert questions.choices == {"epsilon": "0.5"}
    assert capsys.readouterr().err.count("note: no more answers") == 1


def test_dates_can_be_published(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("born,created_at,amount\n1980-02-03,2026-01-01T10:00:00Z,5\n")
    ended = program("init", "e.csv", "--publish", "born", "--publish", "created_at")
    assert ended.code == 0
    text = (folder / "retroact.toml").read_text()
    fields, statistics = (tomllib.loads(text)[name] for name in ("schema", "statistics"))
    assert {name: field["type"] for name, field in fields.items()} == {"born": "date", "created_at": "timestamp"}
    assert {*statistics} == {"records", "quantiles_born", "quantiles_created_at"}
    for name, value in {"epsilon": "1.0", "delta": "0", "records": "9", "horizon": "3"}.items():
        text = text.replace(f'{name} = "FILL IN"', f"{name} = {value}")
    for name, value in {"lower": '"1900-01-01T00:00:00Z"', "upper": '"2100-01-01T00:00:00Z"', "clip": "true"}.items():
        text = text.replace(f'{name} = "FILL IN"', f"{name} = {value}")
    for name in ("start", "length", "end", "time_zone"):
        text = text.replace(f'{name} = "FILL IN"', {"start": 'start = "2026-01-01"', "length": 'length = "1d"',
                            "end": 'end = "2026-01-04"', "time_zone": 'time_zone = "UTC"'}[name])  # fmt: skip
    born = text.partition("\nborn = ")[2].partition("\n")[0]
    text = text.replace(born, born.replace("T00:00:00Z", "")).replace('missing = "FILL IN"', 'missing = "skip"')
    (folder / "retroact.toml").write_text(text)
    assert program("check", "e.csv").code == 0, text


def test_bounds_of_dates_are_asked_for_as_dates(folder: Path) -> None:
    answers = iter(["", "", "", "", "soon", "1900-01-01", "2030-12-31", "yes", "skip"])
    questions = Questions(lambda prompt: next(answers))
    questions.choose(Proposal(fields={"born": "date"}))
    assert questions.choices == {
        "schema.born.lower": '"1900-01-01"', "schema.born.upper": '"2030-12-31"', "schema.born.clip": "true",
        "schema.born.missing": '"skip"',
    }  # fmt: skip


def test_lists_and_objects_are_not_published(program: Program, folder: Path) -> None:
    (folder / "e.jsonl").write_text('{"tags": ["a"], "amount": 1}\n')
    ended = program("init", "e.jsonl", "--publish", "tags")
    assert ended.code == 2
    assert "got other values in 'tags' - at --publish" in ended.err


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [("tttttnn", "0156"), ("nnnnntt", "0156"), ("ttttt", "0123"), ("nnnnnt", "0125"), ("tnnnnn", "0123"), ("tn", "01")],
)
def test_measures_and_categories_are_both_proposed(kinds: str, expected: str) -> None:
    of: dict[str, Kind] = {"t": "text", "n": "number"}
    columns = {f"c{i}": of[kind] for i, kind in enumerate(kinds)}
    assert [*proposed(FileHeader(columns, False)).fields] == [f"c{i}" for i in expected]


def test_a_long_first_cell_is_looked_at_once(tmp_path, program) -> None:
    """To look at it from every digit on would take minutes."""
    (tmp_path / "long.csv").write_text(f"{'1' * 130_000}x,age\nb,2\n")
    assert program("init", str(tmp_path / "long.csv"), "--out", str(tmp_path / "r.toml")).code == 0
