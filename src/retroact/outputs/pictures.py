"""Charts as SVG, for wide and for narrow windows, from the kit in `report`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from ..report.axes import Entry, Panel, legend, ticks
from ..report.svg import joined, picture, rectangle, segment, text
from .charts import Bars, Chart, ChartMark, Dots, Lines, as_number, shown

ROW, LETTER, CAPITAL = 30.0, 7.0, 9.0
# The widest label of a bar, in letters, in wide and narrow windows.
LONGEST = {960: 34, 400: 15}


def drawn(chart: Chart, name: str) -> Markup:
    """Both pictures, of which a page shows one; ``name`` is unique on the page."""
    draw = {Lines: _lines, Bars: _bars, Dots: _dots}[type(chart)]
    parts = []
    for width, kind in ((960, "wide"), (400, "narrow")):
        body, height = draw(chart, width)  # type: ignore[operator]
        parts.append(picture(f"{name}-{kind}", width, height, title(chart), described(chart), body))
    return joined(*parts)


def title(chart: Chart) -> str:
    return f"{chart.statistic}: published values with 95 % intervals"


def described(chart: Chart) -> str:
    """The picture in words."""
    if isinstance(chart, Lines):
        ends = [f"{name + ': ' if name else ''}{_said(marks[-1])}" for name, marks in chart.series.items()]
        first, last = chart.rounds[0], chart.rounds[-1]
        return f"From round {first:,} to round {last:,}. In round {last:,}: {'; '.join(ends)}."
    if isinstance(chart, Dots):
        places = (", ".join(f"{axis} {shown(x)}" for axis, x in zip(chart.axes, place, strict=True))
                  for place in chart.places)  # fmt: skip
        said = [f"cluster {mark.label} at {at}, weight {shown(mark.value)}"
                for at, mark in zip(places, chart.marks, strict=True)]  # fmt: skip
        return f"In round {chart.round:,}: {'; '.join(said) or 'no cluster stands out'}."
    said = [f"{mark.label}: {_said(mark)}" for mark in chart.bars]
    more = f"; and {chart.more:,} more" if chart.more else ""
    return f"In round {chart.round:,}: {'; '.join(said) or 'nothing to draw'}{more}."


def _said(mark: ChartMark) -> str:
    value, interval = mark.cells
    return f"{value} (95 %: {interval})" if mark.low is not None else value


def _lines(chart: Lines, width: int) -> tuple[Markup, float]:
    """Each line with its band; a single round as points with whiskers."""
    dated = any(isinstance(mark.value, datetime) or hasattr(mark.value, "isoformat") for mark in chart.marks)
    left = 96.0 if dated else 74.0
    entries: list[Entry] = [("line", f"series{i % 4}", name) for i, name in enumerate(chart.series) if name]
    rounds = chart.rounds
    ends: Entry = ("area", "band", "95 % interval") if len(rounds) > 1 else ("line", "whisker", "95 % interval")
    names, height = legend([*entries, ends], 0, 0, width)
    xs = (rounds[0] - 0.5, rounds[0] + 0.5) if len(rounds) == 1 else (float(rounds[0]), float(rounds[-1]))
    panel = Panel(left, height + 10, width - left - (44 if chart.starts else 24), 230, xs, _range(chart.marks))
    body = [names, _grid(panel, dated=dated), _rounds(chart, panel, 7 if width > 500 else 3)]
    for i, marks in enumerate(chart.series.values()):
        body.append(_curve(panel, marks, f"series{i % 4}"))
    return joined(*body), panel.bottom + 46


def _curve(panel: Panel, marks: Sequence[ChartMark], kind: str) -> Markup:
    """A line and its band, with gaps where there is no value."""
    known = [(float(m.round), as_number(m.value), as_number(m.low), as_number(m.high)) for m in marks]
    parts, run = [], []
    for place in [*known, None]:
        if place is not None and place[1] is not None:
            run.append(place)
            continue
        if len(run) == 1:
            parts.append(_whisker(panel, *run[0]))
        elif run:
            band = [(x, low, high) for x, _, low, high in run if low is not None and high is not None]
            if band:
                parts.append(panel.area([(x, high) for x, _, high in band], [(x, low) for x, low, _ in band], "band"))
            parts.append(panel.line(((x, value) for x, value, *_ in run), kind))  # type: ignore[misc]
        if run and len(run) <= 60:
            parts.append(panel.dots(((x, value) for x, value, *_ in run), kind, 2.4))  # type: ignore[misc]
        run = []
    return joined(*parts)


def _whisker(panel: Panel, x: float, value: float | None, low: float | None, high: float | None) -> Markup:
    if low is None or high is None:
        return Markup("")
    at, bottom, top = panel.x(x), panel.y(low), panel.y(high)
    caps = (segment(at - 6, y, at + 6, y, "whisker") for y in (bottom, top))
    return joined(segment(at, bottom, at, top, "whisker"), *caps)


def _range(marks: Sequence[ChartMark], *, zero: bool = False) -> tuple[float, float]:
    """The range from the lowest to the highest of what is drawn, with zero where it is near."""
    found = [as_number(part) for m in marks if as_number(m.value) is not None for part in (m.value, m.low, m.high)]
    numbers = [part for part in found if part is not None] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    if zero or 0 <= low <= 0.5 * high:
        low, high = min(low, 0.0), max(high, 0.0)
    room = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return (low if low == 0 else low - room), high + room


def _grid(panel: Panel, *, dated: bool) -> Markup:
    marks = ticks(*panel.ys, 4)
    if not dated:
        return panel.grid(marks)
    lines = (segment(panel.left, panel.y(at), panel.right, panel.y(at), "grid") for at in marks)
    names = (text(panel.left - 8, panel.y(at) + 4, f"{_day(at):%Y-%m-%d}", "tick", "end") for at in marks)
    return joined(*lines, *names)


def _day(days: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)


def _rounds(chart: Lines, panel: Panel, about: int) -> Markup:
    """The axis of rounds: by the days or times on which they start, if they have any."""
    rounds = chart.rounds
    first, last = rounds[0], rounds[-1]
    if not chart.starts:
        later = [] if first == last else ticks(first, last, about, whole=True)
        wanted = [1.0 * first, *(at for at in later if at - first > (last - first) / about / 1.5)]
        return panel.axis(wanted, unit="round")
    short = all(start.hour == start.minute == 0 for start in chart.starts.values())
    written = "%Y-%m-%d" if short else "%m-%d %H:%M"
    passed = [0.0] if first == last else ticks(0, last - first, about, whole=True)
    known = [first + int(at) for at in passed if first + int(at) in chart.starts]
    names = [(panel.x(at), f"{chart.starts[at]:{written}}") for at in known]
    return panel.axis_at(names, unit="start of the round")


def _bars(chart: Bars, width: int) -> tuple[Markup, float]:
    longest = LONGEST[width]
    names = [mark.label if len(mark.label) <= longest else f"{mark.label[: longest - 1]}…" for mark in chart.bars]
    left = 16 + max((_length(name) for name in names), default=4 * LETTER)
    entries: list[Entry] = [("area", "bar", "published"), ("line", "whisker", "95 % interval")]
    entries += [("mark", "erasure", "threshold")] if chart.threshold is not None else []
    shown_above, height = legend(entries, 0, 0, width)
    xs = _range(chart.bars, zero=True)
    if chart.threshold is not None:
        xs = xs[0], max(xs[1], chart.threshold * 1.05)
    panel = Panel(left, height + 10, width - left - 74, ROW * max(1, len(names)), xs, (0, 1))
    across = ticks(*xs, 6 if width > 500 else 3)
    body = [shown_above, *(panel.upright(at, "zero" if at == 0 else "grid") for at in across), panel.axis(across)]
    for i, (name, mark) in enumerate(zip(names, chart.bars, strict=True)):
        body.append(_bar(panel, panel.top + (i + 0.5) * ROW, name, mark))
    if chart.threshold is not None:
        body.append(panel.upright(chart.threshold, "erasure"))
    bottom = panel.bottom + 30
    if chart.more:
        body.append(text(0, bottom + 14, f"and {chart.more:,} more", "note"))
        bottom += 20
    return joined(*body), bottom


def _length(name: str) -> float:
    return sum(CAPITAL if letter.isupper() else LETTER for letter in name)


def _bar(panel: Panel, y: float, name: str, mark: ChartMark) -> Markup:
    zero, end = panel.x(0), panel.x(as_number(mark.value) or 0.0)
    low, high = (as_number(mark.value if part is None else part) or 0.0 for part in (mark.low, mark.high))
    ends = panel.x(low), panel.x(high)
    value, interval = mark.cells
    whisker = [segment(*ends[:1], y, ends[1], y, "whisker"), *(segment(x, y - 5, x, y + 5, "whisker") for x in ends)]
    return joined(
        text(panel.left - 8, y + 5, name, "", "end"),
        rectangle(min(zero, end), y - 9, abs(end - zero), 18, "bar", f"{mark.label}: {value} (95 %: {interval})"),
        *([] if mark.low is None else whisker),
        text(max(ends[1], end) + 8, y + 5, value, "note"),
    )


def _dots(chart: Dots, width: int) -> tuple[Markup, float]:
    """Draw dots in the plane of two coordinates, or on a line; areas are proportional to weights."""
    xs = _spread([place[0] for place in chart.places])
    ys = _spread([place[1] for place in chart.places]) if len(chart.axes) > 1 else (-1.0, 1.0)
    panel = Panel(74, 26, width - 98, 300 if len(chart.axes) > 1 else 90, xs, ys)
    body = [panel.axis(ticks(*xs, 6 if width > 500 else 3), unit=chart.axes[0])]
    if len(chart.axes) > 1:
        body += [panel.grid(ticks(*ys, 4)), text(0, 12, chart.axes[1], "unit")]
    largest = max((as_number(mark.value) or 0.0 for mark in chart.marks), default=1.0) or 1.0
    for place, mark in zip(chart.places, chart.marks, strict=True):
        at = place[0], place[1] if len(place) > 1 else 0.0
        radius = max(3.0, 22 * max(0.0, (as_number(mark.value) or 0.0) / largest) ** 0.5)
        body.append(panel.dots([at], "series0 disc", radius))
        # on the side where there is room
        side, anchor = (-1, "end") if panel.x(at[0]) > panel.left + 0.6 * panel.width else (1, "start")
        name = f"{mark.label}: {mark.cells[0]}"
        body.append(text(panel.x(at[0]) + side * (radius + 5), panel.y(at[1]) + 4, name, "note", anchor))
    return joined(*body), panel.bottom + 46


def _spread(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = (high - low) * 0.18 or abs(high) * 0.1 or 1.0
    return low - room, high + room
