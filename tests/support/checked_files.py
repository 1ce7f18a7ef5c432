"""Files of orders that are checked, and run: the verdicts agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli_program import Ended, Program

SPEC = """
epsilon = 1.0
horizon = 50

[columns]
id = "order"
subject = "customer"
op = { column = "op", optional = true }
ignore = ["note"]

[schema]
country = { type = "category", values = ["DE", "FR", "US"] }
amount = { type = "number", lower = 0, upper = 500, step = 0.01 }
age = { type = "integer", lower = 0, upper = 120, missing = "skip" }

[statistics]
orders = { type = "count" }
revenue = { type = "sum", field = "amount" }
age = { type = "mean", field = "age" }
"""
GRID = '\n[rounds]\nstart = "2026-01-01"\nlength = "1d"\nend = "2026-01-08"\n'
HEAD = "order,customer,country,amount,age,note"
GOOD = ["o1,u1,DE,12.5,31,hello", "o2,u2,FR,3,,", "o3,u1,US,499.99,7,"]


@pytest.fixture
def spec(folder: Path) -> Path:
    (folder / "orders.toml").write_text(SPEC)
    timed = SPEC.replace('subject = "customer"', 'subject = "customer"\ntime = "day"') + GRID
    (folder / "timed.toml").write_text(timed)
    return folder


def csv(folder: Path, *rows: str, head: str = HEAD) -> None:
    (folder / "e.csv").write_text("\n".join([head, *rows]) + "\n")


def both(program: Program, *options: object, file: str = "e.csv", spec: str = "orders.toml") -> Ended:
    """Check and run; their verdicts agree."""
    checked = program("check", spec, file, *options)
    ran = program("run", file, "--spec", spec, "-q", "--testing-key", 1, "--allow-missing", *options)
    assert ran.code in (0, 2, 3)
    assert checked.code == (2 if ran.code else 0), (checked, ran)
    return checked


def found(ended: Ended) -> list[tuple[str, int, list[int]]]:
    """Where, how many, and the first lines of all that is refused."""
    table = ended.out.partition("A run refuses:")[2].partition("A run ")[0]
    rows = re.findall(r"^ (\S+) +([\d,]+)   (?:line|row)s? ([\d ,]+)", table, re.M)
    return [(place, _int(count), [_int(row) for row in first.split(", ") if row]) for place, count, first in rows]


def _int(text: str) -> int:
    return int(text.replace(",", ""))
