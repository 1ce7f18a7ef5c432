"""`retroact plan`: the errors to expect, and the epsilon that wanted errors cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import msgspec

from ..errors import InputError
from ..stream import Plan, solve
from ..stream import plan as planned
from ..stream.doubts import coarse_steps, doubts
from ..stream.plan import number
from .console import console_for, message, say
from .options import command, flag, option
from .specification import SpecOrOptions
from .table import Kind, table

LIMITS = ("records", "law", "delta", "horizon", "window", "late")


@command
def plan(
    asked: SpecOrOptions,
    error: Annotated[
        list[str] | None, option("The 95 % error to allow in the worst round; one for each.", "STATISTIC=ERROR")
    ] = None,
    as_json: Annotated[bool, flag("Print JSON, for programs.", "--json")] = False,
) -> None:
    """Show the error to expect of every statistic before anything is released, or find the epsilon that wanted errors
    cost.

    \b
    Examples:
      retroact plan retroact.toml
      retroact plan --count --sum amount:0..500 --horizon 365 --delta 1e-6 \\
        --error count=50 --error sum_amount=2000
    """
    # A specification needs an epsilon; where it is yet to be found, 1 stands in for it.
    spec = asked.specification(epsilon=1.0 if error else None)
    if error:
        limits = {name: getattr(spec, name) for name in LIMITS}
        with _at_errors():
            result = solve(spec.schema, spec.statistics, errors=wanted_errors(error), **limits)
    else:
        result = planned(spec)
    if as_json:
        found = {"weights": dict(result.weights)} if error else {}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({**result.to_dict(), **found})).decode() + "\n")
        return
    warnings = [f"warning: {doubt}" for doubt in doubts(spec, result)]
    for line in (asked.unread, *warnings, *(f"note: {step}" for step in coarse_steps(spec))):
        if line is not None:
            say(line, err=True)
    console = console_for("stdout")
    console.lines(plan_table(result, brief=False, width=console.width))
    lines = result.remarks
    if error:
        lines += ["", "For these errors, give the stream:", f"  epsilon = {_rounded_up(result.epsilon)}"]
        lines += [f"  law = {result.law}"]
        lines += [f"  weight of {name} = {weight:.6g}" for name, weight in result.weights.items()]
    for line in lines:
        message(console, line)


def plan_table(expected: Plan, *, brief: bool, width: int) -> list[str]:
    heads: dict[str, Kind] = {"statistic": "fold", "± 95 %\nworst round": "right", "± 95 %\ntypical": "right"}
    if not brief:
        heads |= {"standard\ndeviation": "right", "± 95 %\nall rounds": "right"}
    rows = []
    for row in expected.rows:
        errors = (row.half_width, row.typical_half_width, row.standard_deviation, row.simultaneous)
        rows.append([row.statistic, *map(number, errors[:2] if brief else errors), row.noise, row.budget])
    return table({**heads, "noise": "left", "budget": "left"}, rows, width=width)


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


@contextmanager
def _at_errors() -> Iterator[None]:
    """An error at a wanted error is at the option."""
    try:
        yield
    except InputError as error:
        whole, _, name = (error.path or "").partition(".")
        raise error.moved(f"--error {name}".strip()) if whole == "errors" else error from None


def _rounded_up(value: float) -> str:
    """Four digits; never less than the value, which would miss the wanted errors."""
    text = f"{value:.4g}"
    return text if float(text) >= value else f"{value * 1.0005:.4g}"
