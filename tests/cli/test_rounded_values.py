"""Steps that nobody chose: they are named before anything is published, and `check` counts the values they round."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.feeds.batch import ADD, Changes, ColumnValues
from retroact.feeds.moved import MovedValues
from retroact.schema import Number, Schema
from support.cli_program import Program

NOTE = "note: a is rounded to steps of 1, since no step is declared"
BUDGET = ("--epsilon", 1)


@pytest.mark.parametrize(
    ("bounds", "noted"), [("a:0..10000", True), ("a:0..500", False), ("a:0..10000:0.01", False), ("a:0..9:1", False)]
)
def test_a_coarse_step_by_default_is_named(bounds: str, noted: bool, program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("a\n" + "1.5\n" * 30)
    ran = program("run", "e.csv", "--sum", bounds, *BUDGET)
    planned = program("plan", "--sum", bounds, *BUDGET)
    for ended in (ran, planned):
        assert ended.code == 0
        assert (NOTE in ended.err) == noted
        assert ("intervals cover the noise, and not the rounding" in ended.err) == noted


def test_a_file_with_its_own_step_is_not_noted(program: Program, folder: Path) -> None:
    for step, noted in (("", True), (", step = 1", False)):
        (folder / "own.toml").write_text(
            f'epsilon = 1.0\n[schema]\na = {{ type = "number", lower = 0, upper = 10000{step} }}\n'
            '[statistics]\ns = { type = "sum", field = "a" }\n'
        )
        assert (NOTE in program("plan", "own.toml").err) == noted


def test_rounded_values_are_counted_with_their_first_lines(program: Program, folder: Path) -> None:
    (folder / "e.csv").write_text("a\n" + "1.5\n" * 30 + "7\n9999.75\n")
    ended = program("check", "e.csv", "--sum", "a:0..10000", *BUDGET)
    assert ended.code == 0
    assert "values are rounded to steps of 1 (lines 2, 3, 4, …)" in ended.out
    line = next(line for line in ended.out.splitlines() if "rounded" in line)
    assert line.split()[:2] == ["a", "31"]
    assert "rounded" not in program("check", "e.csv", "--sum", "a:0..10000:0.01", *BUDGET).out


@given(
    st.lists(st.decimals(-20, 20, places=4), min_size=1, max_size=20),
    st.sampled_from(["0.01", "0.1", "1", "5", "0.25"]),
)
def test_exactly_the_values_off_the_steps_are_counted(values: list[Decimal], step: str) -> None:
    moved = MovedValues(Schema({"a": Number(-20, 20, step=step)}))
    numbers = np.arange(len(values))
    moved.note(Changes(numbers, np.full(len(values), ADD), {"a": ColumnValues.of([str(v) for v in values])}, {}))
    off = [row for row, value in enumerate(values) if Fraction(value) % Fraction(step)]
    assert sum(kind.count for kind in moved.found) == len(off)
    assert [row for kind in moved.found for row in kind.first] == off[:3]


def test_missing_values_and_the_widest_bounds_are_not_rounded() -> None:
    moved = MovedValues(Schema({"a": Number(0, 10, step=1, missing="skip"), "b": Number(0, 2**53 - 1, step=1)}))
    fields = {"a": ColumnValues.of([None, 3, 2.5]), "b": ColumnValues.of([1, 2**53 - 1, 1.5])}
    moved.note(Changes(np.arange(3), np.full(3, ADD), fields, {}))
    assert [(kind.place, kind.count) for kind in moved.found] == [("a", 1)]


@pytest.mark.parametrize("step", ["0.01", "1", "25"])
def test_what_noise_drowns_does_not_depend_on_the_step(step: str, program: Program, folder: Path) -> None:
    bounds = f"a:2000..7000:{step}"
    weak = program("plan", "--sum", bounds, "--mean", bounds, "--epsilon", 0.00001, "--records", 400)
    assert "give at most 2.8e+06" in weak.err
    assert "give at most 5e+03" in weak.err
