"""Releases as HTML: a page that is one file, and fragments for notebooks. Published numbers and public choices only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..privacy import Guarantee
from ..report.axes import number
from ..report.page import render
from .charts import Bars, Chart, ChartMark, Lines, charts, marks_of, shown
from .pictures import drawn
from .shown import rounds_text
from .table import Table, TableForm

MOST_ROWS = 200
ADD_UP = (
    "this run is a publication by itself: its budget adds to those of all other published runs over the same people, "
    "and later erasures need a durable stream (--store)"
)
Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class About:
    """What a page says about the stream behind it. All of it is public."""

    guarantee: Guarantee
    horizon: int | None
    used: int
    """How many of the promised rounds are published."""
    left: int | None
    """How many are left; None if no number of rounds was promised."""
    costs: Sequence[tuple[str, str, str]]
    """The share of the budget and the error in the worst round of each statistic."""
    records: int
    """How many records the errors of means are for: the declared number, whatever the true one is."""
    durable: bool


def page(form: TableForm, table: Table, about: About) -> str:
    """A complete page, with every statistic as a chart and the table behind it."""
    own = about.guarantee
    return render(
        "releases.html",
        testing=form.testing,
        about=about,
        rounds=len(set(table["round"])),
        latest=max(table["round"], default=0),
        sections=[_section(chart, place) for place, chart in enumerate(charts(form, table), start=1)],
        factor=number(math.exp(own.epsilon)) if own.epsilon < 100 else "e^ε",
        budget=f"ε = {own.epsilon:.4g}" + (f", δ = {_power(own.delta)}" if own.delta else ""),
        delta=_power(own.delta),
        several=_several(own),
        which=rounds_text(table["round"]),
        add_up=ADD_UP[:1].upper() + ADD_UP[1:],
    )


def _section(chart: Chart, place: int) -> dict[str, Any]:
    head, rows = _rows(chart)
    shown_rows = rows[-MOST_ROWS:] if isinstance(chart, Lines) else rows[:MOST_ROWS]
    empty = isinstance(chart, Bars) and not chart.bars
    return {
        "name": chart.statistic,
        "picture": None if empty else drawn(chart, f"chart{place}"),
        "caption": _caption(chart),
        "head": head,
        "rows": shown_rows,
        "hidden": len(rows) - len(shown_rows),
    }


def _caption(chart: Chart) -> str:
    if isinstance(chart, Lines):
        last = [(name, marks[-1]) for name, marks in chart.series.items()]
        said = "; ".join(f"{name + ': ' if name else ''}{_said(mark)}" for name, mark in last)
        gaps = any(mark.value is None for mark in chart.marks)
        few = " Where no value is drawn, there were too few records to tell it from the noise." if gaps else ""
        return f"Round {chart.rounds[-1]:,}: {said}.{few}"
    if isinstance(chart, Bars):
        more = f" The {len(chart.bars)} largest are drawn, and {chart.more:,} more are published." if chart.more else ""
        least = "" if chart.threshold is None else f" A bin needs a noisy count of {chart.threshold:,.4g}."
        return f"Round {chart.round:,}{', by ' + chart.by if chart.by else ''}.{more}{least}"
    return f"Round {chart.round:,}: centres of clusters, with areas by the number of records, up to noise."


def _said(mark: ChartMark) -> str:
    value, interval = mark.cells
    value = "no value" if mark.value is None else value
    return value if mark.low is None else f"{value}, 95 % interval {interval}"


def _rows(chart: Chart) -> tuple[tuple[str, ...], Rows]:
    """The table behind a chart."""
    if isinstance(chart, Lines):
        many = len(chart.series) > 1
        marks = sorted(chart.marks, key=lambda mark: mark.round) if many else chart.marks
        times = ("Start",) if chart.starts else ()
        head = ("Round", *times, *(("Quantile",) if many else ()), "Published", "95 % interval")
        return head, [
            (f"{mark.round:,}", *((shown(chart.starts.get(mark.round)),) if times else ()),
             *((mark.label,) if many else ()), *mark.cells)
            for mark in marks
        ]  # fmt: skip
    if isinstance(chart, Bars):
        return (chart.by.capitalize() or "Key", "Published", "95 % interval"), [
            (mark.label, *mark.cells) for mark in chart.rows
        ]
    places = zip(chart.places, chart.marks, strict=True)
    return ("Cluster", *chart.axes, "Records", "Standard error"), [
        (mark.label, *map(shown, place), mark.cells[0], shown(mark.error)) for place, mark in places
    ]


def _several(own: Guarantee) -> str:
    together = own.for_operations(5).epsilon
    return (
        f"with five records, ε = {together:.3g}"
        if math.isfinite(together)
        else "for five records, no ε is known at this δ"
    )


def _power(delta: float) -> str:
    if not delta:
        return ""
    digits, _, exponent = f"{delta:.0e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if digits == "1" else f"{digits} × 10{raised}"


def releases_fragment(title: str, form: TableForm, table: Table) -> str:
    """Releases for a notebook: one line for each number, latest round first."""
    marks = sorted(marks_of(form, table), key=lambda pair: -pair[1].round)
    keyed = any(mark.label != "–" for _, mark in marks)
    head = ("round", "statistic", *(("key",) if keyed else ()), "published", "95 % interval")
    rows = [(f"{mark.round:,}", statistic, *((mark.label,) if keyed else ()), *mark.cells) for statistic, mark in marks]
    return _fragment(title, head, rows, testing=form.testing)


def table_fragment(title: str, table: Table, notes: Sequence[str]) -> str:
    """Any table for a notebook."""
    rows = [tuple(map(shown, row)) for row in zip(*table.cells, strict=True)]
    return _fragment(title, [name.replace("_", " ") for name in table.names], rows, notes=notes)


def _fragment(title: str, head: Sequence[str], rows: Rows, *, testing: bool = False, notes: Sequence[str] = ()) -> str:
    """The first rows, and how many more there are."""
    more = max(0, len(rows) - MOST_ROWS)
    return render(
        "fragment.html", title=title, testing=testing, head=head, rows=rows[:MOST_ROWS], more=more, notes=notes
    )
