"""Charts as plots by matplotlib: lines with bands, bars with the threshold, fans of quantiles, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .charts import Bars, Chart, Dots, Lines, as_number
from .frames import needed
from .table import NOT_PRIVATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plotted(chart: Chart, ax: Axes | None = None, *, testing: bool = False) -> Axes:
    """Draw a chart into the Axes, or into a new figure."""
    if ax is None:
        ax = new_axes()
    draw: Any = {Lines: _lines, Bars: _bars, Dots: _dots}[type(chart)]
    draw(chart, ax)
    ax.set_title(chart.statistic + (f" ({NOT_PRIVATE})" if testing else ""), parse_math=False)
    return ax


def new_axes() -> Axes:
    ax: Axes = needed("matplotlib.pyplot", "retroact[plot]").subplots(layout="constrained")[1]
    return ax


def _lines(chart: Lines, ax: Axes) -> None:
    for name, marks in chart.series.items():
        known = [mark for mark in marks if mark.value is not None and not isinstance(mark.value, str)]
        xs: list[Any] = [chart.starts.get(mark.round, mark.round) for mark in known]
        values = [mark.value for mark in known]
        ends = [(mark.low, mark.high) for mark in known if mark.low is not None]
        (line,) = ax.plot(xs, values, marker="o" if len(xs) <= 60 else None, markersize=3.5, label=name or "published")
        if ends and len(ends) == len(known):
            lows, highs = ([end[side] for end in ends] for side in (0, 1))
            if len(xs) == 1:
                ax.vlines(xs, lows, highs, color=line.get_color())
            else:
                ax.fill_between(xs, lows, highs, alpha=0.2, color=line.get_color(), linewidth=0)
    ax.set_xlabel("start of the round" if chart.starts else "round")
    if chart.starts:
        dates = needed("matplotlib.dates", "retroact[plot]")
        locator = dates.AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    if len(chart.series) > 1:
        ax.legend()


def _bars(chart: Bars, ax: Axes) -> None:
    places = range(len(chart.bars))
    values = [as_number(mark.value) or 0.0 for mark in chart.bars]
    ax.barh(places, values, color="#86a9cc", label="published")
    known = [(place, mark.low, mark.high) for place, mark in enumerate(chart.bars) if mark.low is not None]
    if known:
        ax.hlines(*map(list, zip(*known, strict=True)), color="black", label="95 % interval")  # type: ignore[arg-type]
    if chart.threshold is not None:
        ax.axvline(chart.threshold, linestyle="--", color="grey", label="threshold")
    ax.set_yticks(places, [mark.label for mark in chart.bars], parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel(f"round {chart.round:,}" + (f"; and {chart.more:,} more" if chart.more else ""))
    ax.legend()


def _dots(chart: Dots, ax: Axes) -> None:
    places = [(place[0], place[1] if len(place) > 1 else 0.0) for place in chart.places]
    weights = [max(0.0, as_number(mark.value) or 0.0) for mark in chart.marks]
    largest = max(weights, default=1.0) or 1.0
    ax.scatter(
        [x for x, _ in places], [y for _, y in places], s=[20 + 400 * weight / largest for weight in weights], alpha=0.7
    )
    for at, mark in zip(places, chart.marks, strict=True):
        ax.annotate(mark.label, at, textcoords="offset points", xytext=(8, 8), parse_math=False)
    ax.set_xlabel(f"{chart.axes[0]} (round {chart.round:,})", parse_math=False)
    if len(chart.axes) > 1:
        ax.set_ylabel(chart.axes[1], parse_math=False)


def errors_plotted(rows: Sequence[tuple[str, float, float]], ax: Axes | None = None) -> Axes:
    """Expected errors: statistic, in the worst round, in a typical round. Statistics have different units, so the axis
    is logarithmic."""
    ax = ax or new_axes()
    known = [row for row in rows if row[1] > 0]  # unknown errors are not drawn
    places = range(len(known))
    ax.barh([place - 0.2 for place in places], [row[1] for row in known], 0.38, label="worst round")
    ax.barh([place + 0.2 for place in places], [row[2] for row in known], 0.38, label="typical round")
    ax.set_yticks(places, [row[0] for row in known], parse_math=False)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlabel("± 95 %, each in its own unit")
    ax.legend()
    return ax
