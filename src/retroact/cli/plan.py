"""`retroact plan`: errors before epsilon, and what wanted errors cost."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table

from retroact.cli.console import console_for, message, plain
from retroact.cli.options import command
from retroact.cli.specification import Asked
from retroact.errors import InputError
from retroact.stream import Plan, solve
from retroact.stream import plan as planned


@command
def plan(
    asked: Asked,
    error: Annotated[
        list[str] | None,
        typer.Option(metavar="STATISTIC=ERROR", help="Wanted: ± 95 % in the worst round, for each one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """The expected error of every statistic, before anything is released; or the epsilon that wanted errors cost.

    \b
    Examples:
      retroact plan retroact.toml
      retroact plan --count --sum amount:0..500 --horizon 365 --delta 1e-6 \\
        --error count=50 --error sum_amount=2000
    """
    errors = error or []
    # A specification is checked as a whole; an epsilon that is to be found needs a stand-in for that.
    spec = asked.specification(epsilon=1.0 if errors else None)
    if errors:
        wanted = wanted_errors(errors)
        shape = {
            "records": spec.records,
            "law": spec.law,
            "delta": spec.delta,
            "horizon": spec.horizon,
            "window": spec.window,
            "late": spec.late,
        }
        result = solve(spec.schema, spec.statistics, errors=wanted, **shape)  # type: ignore[arg-type]
    else:
        result = planned(spec)
    if as_json:
        found = {"weights": dict(result.weights)} if errors else {}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({**result.to_dict(), **found})).decode() + "\n")
        return
    console = console_for("stdout")
    console.print(plan_table(result, brief=False))
    rounds = "no horizon" if result.horizon is None else f"{result.horizon:,} rounds"
    for row in result.rows:
        for note in row.notes:
            message(console, f"{row.statistic}: {note}")
    if result.other is not None and result.other.half_widths:
        message(console, str(result.other))
    message(console, f"{rounds}; errors of means and variances are for {result.records:,} records")
    message(console, result.guarantee.text)
    if errors:
        message(console, "")
        message(console, "For these errors, give the stream:")
        message(console, f"  epsilon = {_rounded_up(result.epsilon)}")
        message(console, f"  law = {result.law}")
        for name, weight in result.weights.items():
            message(console, f"  weight of {name} = {weight:.6g}")


def plan_table(expected: Plan, *, brief: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("statistic", overflow="fold")
    heads = ["± 95 %\nworst round", "± 95 %\ntypical"]
    if not brief:
        heads += ["standard\ndeviation", "± 95 %\nall rounds"]
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("noise", no_wrap=True)
    table.add_column("budget", no_wrap=True)
    for row in expected.rows:
        more = () if brief else (number(row.standard_deviation), number(row.simultaneous))
        table.add_row(
            plain(row.statistic), number(row.half_width), number(row.typical_half_width), *more, row.noise, row.budget
        )
    return table


def number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def wanted_errors(texts: Sequence[str]) -> Mapping[str, float]:
    """
    >>> wanted_errors(["orders=50", "revenue=1e3"])
    {'orders': 50.0, 'revenue': 1000.0}
    """
    wanted: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            wanted[name] = float(value)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise InputError(f"expected a statistic and its error, such as orders=50, got {text!r}", place="--error")
    return wanted


def _rounded_up(value: float) -> str:
    """Four digits; never less than the value, which would miss the wanted errors."""
    text = f"{value:.4g}"
    return text if float(text) >= value else f"{value * 1.0005:.4g}"
