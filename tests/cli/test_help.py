"""The help of the commands: options in groups, closed choices, and examples that run."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest

from retroact.cli.main import COMMANDS, app
from support.cli_program import Program

SPEC = """
epsilon = 1.0
horizon = 365

[schema]
amount = { type = "number", lower = 0, upper = 500 }

[statistics]
orders = { type = "count" }
revenue = { type = "sum", field = "amount" }

[columns]
id = "order"
subject = "customer"
ignore = true
"""
ORDERS = """order,customer,amount,day,created,note
o1,u17,12,1,2026-01-01T10:00:00Z,a
o2,u18,30,2,2026-01-02T11:00:00Z,b
o3,u17,499,2,2026-01-02T12:00:00Z,c
"""
EVENTS = '{"order": "o1", "customer": "u17", "amount": 12}\n{"order": "o2", "customer": "u18", "amount": 7}\n'
ROWS = [dict(zip(ORDERS.splitlines()[0].split(","), line.split(","), strict=True)) for line in ORDERS.splitlines()[1:]]
# What is there before the examples of a command run.
BEFORE = dict.fromkeys(("erase", "compact", "export", "report", "columns"), ("run",)) | {"verify": ("run", "erase")}
SLOW = ("audit", "demo")
WITHOUT = ("completion",)


def command(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


def context(name: str) -> click.Context:
    return click.Context(command(name), click.Context(app, **app.context_settings), name, terminal_width=200)


def shown(name: str) -> str:
    return command(name).get_help(context(name))


def sections(name: str) -> dict[str, list[str]]:
    """The lines of the help under each heading."""
    found: dict[str, list[str]] = {}
    for part in shown(name).split("\n\n"):
        heading, *lines = part.splitlines()
        if heading.endswith(":"):
            found[heading.removesuffix(":")] = [line.strip() for line in lines]
    return found


def examples(name: str) -> list[list[str]]:
    """The arguments of each example, without the name of the program."""
    text = textwrap.dedent(command(name).help or "")
    _, _, listed = re.sub(r"Example:\n", "Examples:\n", text).partition("Examples:\n")
    calls = [shlex.split(line) for line in listed.replace("\\\n", " ").splitlines() if line.strip()]
    assert all(call[:2] == ["retroact", name] for call in calls)
    return [call[1:] for call in calls]


@pytest.fixture
def shop(folder: Path) -> Path:
    """A folder with all files that examples name, except those that commands make."""
    import pyarrow
    import pyarrow.parquet

    for name, text in {
        "retroact.toml": SPEC,
        "orders.toml": SPEC,
        "orders.csv": ORDERS,
        "events.jsonl": EVENTS,
    }.items():
        (folder / name).write_text(text)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), folder / "orders.parquet")
    return folder


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in (*SLOW, *WITHOUT)])
def test_the_examples_of_a_command_run(name: str, program: Program, shop: Path) -> None:
    for earlier in BEFORE.get(name, ()):
        for call in examples(earlier):
            assert program(*call).code == 0
    if name == "init":
        for made in ("retroact.toml", "orders.toml"):
            (shop / made).unlink()
    calls = examples(name)
    assert calls
    for call in calls:
        ended = program(*call)
        assert ended.code == 0, f"{shlex.join(call)}: {ended.err}"


@pytest.mark.parametrize("name", SLOW)
def test_the_examples_of_a_slow_command_are_read(name: str) -> None:
    assert examples(name)
    for call in examples(name):
        command(name).make_context(name, call[1:], context(name).parent)


def test_an_example_with_an_unknown_option_would_be_found() -> None:
    with pytest.raises(click.NoSuchOption):
        command("audit").make_context("audit", ["retroact.toml", "--outt", "report.json"], context("audit").parent)


def test_commands_with_many_options_list_them_in_groups() -> None:
    groups = {
        "run": ["What to publish", "Budget and horizon", "Columns", "Rounds", "Input", "Output", "Store and key",
                "After a restore"],
        "check": ["What to publish", "Budget and horizon", "Columns", "Rounds", "Input"],
        "plan": ["What to publish", "Budget and horizon"],
        "explain": ["What to publish", "Budget and horizon"],
        "init": ["Columns"],
    }  # fmt: skip
    for name, headings in groups.items():
        assert [*sections(name)][2:] == [*headings, "Other options"]
    assert [*sections("compact")][2:] == ["Store and key", "Other options"]
    assert "Options" in sections("demo")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_listed_once(name: str) -> None:
    listed = shown(name).splitlines()
    for option in command(name).params:
        if isinstance(option, click.Option):
            found = [line for line in listed if f"{line} ".startswith(f"  {', '.join(sorted(option.opts, key=len))} ")]
            assert len(found) == 1, option.opts[0]


def test_an_option_is_under_its_heading() -> None:
    found = sections("run")
    for heading, option in {
        "What to publish": "--skip-missing", "Budget and horizon": "--epsilon", "Columns": "--na-values",
        "Rounds": "--grace", "Input": "--follow", "Output": "--html", "Store and key": "--fence",
        "After a restore": "--after", "Other options": "--help",
    }.items():  # fmt: skip
        assert any(line.startswith((option, f"-h, {option}")) for line in found[heading]), option


def test_closed_choices_and_defaults_are_shown() -> None:
    lines = [line.strip() for line in shown("run").splitlines()]

    def help_of(option: str) -> str:
        return next(line for line in lines if line.startswith(option))

    assert "[lines|progress|grid|end]" in help_of("--close-by")
    assert "[stamp|refuse]" in help_of("--late")
    assert "[csv|tsv|jsonl]" in help_of("--input-format")
    assert "Default: 0." in help_of("--delta")


def test_shells_complete_closed_choices() -> None:
    option: Any = next(param for param in command("run").params if param.name == "late")
    assert [item.value for item in option.shell_complete(context("run"), "re")] == ["refuse"]
