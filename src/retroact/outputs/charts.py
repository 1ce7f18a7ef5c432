"""What the chart of a statistic shows, as data: for pages and for plots alike, from the tidy table alone.

Numbers over rounds are lines with their 95 % band, quantiles a fan of such lines. Numbers by key are bars of the latest
round, largest first (those of a model by size), and clusters are points of the latest round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ..report.axes import number
from .table import Table, TableForm

MOST_BARS = 20


@dataclass(frozen=True)
class ChartMark:
    """One published number with its interval; dates and times stay what they are."""

    round: int
    label: str
    value: Any
    low: Any
    high: Any
    error: float | None = None

    @property
    def cells(self) -> tuple[str, str]:
        return shown(self.value), "–" if self.low is None else f"{shown(self.low)} to {shown(self.high)}"


@dataclass(frozen=True)
class Lines:
    """Over rounds; ``series`` by name, one of them without a name or one for each probability."""

    statistic: str
    series: Mapping[str, tuple[ChartMark, ...]]
    starts: Mapping[int, datetime]
    """When each round starts, if there is a grid."""

    @property
    def marks(self) -> list[ChartMark]:
        return [mark for marks in self.series.values() for mark in marks]

    @property
    def rounds(self) -> list[int]:
        return sorted({mark.round for mark in self.marks})


@dataclass(frozen=True)
class Bars:
    """Of the latest round, largest first."""

    statistic: str
    round: int
    bars: tuple[ChartMark, ...]
    more: int
    """How many published numbers are not shown."""
    threshold: float | None = None
    rows: tuple[ChartMark, ...] = ()
    """All numbers of the round."""
    by: str = ""
    """What the labels are."""


@dataclass(frozen=True)
class Dots:
    """Clusters of the latest round: places in the first two coordinates (or one), with weights."""

    statistic: str
    round: int
    axes: tuple[str, ...]
    places: tuple[tuple[float, ...], ...]
    marks: tuple[ChartMark, ...]
    """Numbers and weights of the clusters."""


Chart = Lines | Bars | Dots


def charts(form: TableForm, table: Table) -> list[Chart]:
    """A chart for every statistic that was released.

    >>> from retroact.statistics.answer_rows import OneValue
    >>> form = TableForm({"orders": OneValue()})
    >>> lines = [{"round": r, "statistic": "orders", "value": 10.0 * r, "standard_error": 1.0,
    ...           "interval95": [10.0 * r - 2, 10.0 * r + 2]} for r in (1, 2)]
    >>> (chart,) = charts(form, form.table(lines))
    >>> [(mark.round, mark.value, mark.low) for mark in chart.series[""]]
    [(1, 10.0, 8.0), (2, 20.0, 18.0)]
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for cells in zip(*table.cells, strict=True):
        row = dict(zip(table.names, cells, strict=True))
        rows.setdefault(row["statistic"], []).append(row)
    return [_chart(form, name, rows[name]) for name in form.statistics if name in rows]


def marks_of(form: TableForm, table: Table) -> list[tuple[str, ChartMark]]:
    """Every number of a table with its statistic; the label says which number of the statistic it is."""
    rows = (dict(zip(table.names, cells, strict=True)) for cells in zip(*table.cells, strict=True))
    return [(row["statistic"], _mark(row, _label(row, form.keys_of(row["statistic"])))) for row in rows]


def _chart(form: TableForm, name: str, rows: list[dict[str, Any]]) -> Chart:
    keys = form.keys_of(name)
    latest = rows[-1]["round"]
    last = [row for row in rows if row["round"] == latest]
    if "cluster" in keys:
        axes = tuple(key for key in keys if key != "cluster")[:2]
        places = tuple(tuple(row[axis] for axis in axes) for row in last)
        return Dots(name, latest, axes, places, tuple(_mark(row, str(row["cluster"])) for row in last))
    # quantiles alone, if there are also points of the distribution function and counts
    quantiles = [row for row in rows if row.get("probability") is not None] if "probability" in keys else []
    over = quantiles or rows
    if all(row[key] is None for row in over for key in keys if key != "probability"):
        return _lines(name, over, bool(quantiles))
    marks = tuple(_mark(row, _label(row, keys)) for row in last)
    used = [key.replace("_", " ") for key in keys if any(row[key] is not None for row in last)]
    signed = form.signed(name)
    aside = [signed and any(str(row[key]).startswith("(") for key in keys) for row in last]
    numbers = [one for one, left in zip(marks, aside, strict=True) if isinstance(one.value, float | int) and not left]
    largest = sorted(numbers, key=lambda mark: -(abs(mark.value) if signed else mark.value))[:MOST_BARS]
    more = len(marks) - sum(aside) - len(largest)
    return Bars(name, latest, tuple(largest), more, form.threshold(name, latest), marks, " · ".join(used))


def _lines(name: str, rows: Iterable[Mapping[str, Any]], quantiles: bool) -> Lines:
    series: dict[str, list[ChartMark]] = {}
    starts = {}
    for row in rows:
        label = f"{100 * row['probability']:g} %" if quantiles else ""
        series.setdefault(label, []).append(_mark(row, label))
        if row.get("start") is not None:
            starts[row["round"]] = row["start"]
    return Lines(name, {label: tuple(marks) for label, marks in series.items()}, starts)


def _label(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return " · ".join(shown(row[key]) for key in keys if row[key] is not None) or "–"


def _mark(row: Mapping[str, Any], label: str) -> ChartMark:
    def cell(name: str) -> Any:
        time = row.get(f"{name}_time")
        return row[name] if time is None else time

    value = cell("value") if row.get("value_text") is None else row["value_text"]
    return ChartMark(row["round"], label, value, cell("low"), cell("high"), row["standard_error"])


def shown(value: Any) -> str:
    """A cell for people.

    >>> shown(1234.567), shown(date(2026, 1, 31)), shown(True), shown(None)
    ('1,235', '2026-01-31', 'true', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(float(value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return value.hex() if isinstance(value, bytes) else str(value)


def as_number(value: Any) -> float | None:
    """Where a value is drawn: dates and times by days since 1970."""
    if isinstance(value, datetime):
        return value.timestamp() / 86400
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days)
    return None if value is None or isinstance(value, str) else float(value)
