"""A picture of errors against horizons: one panel for each kind of history, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from retroact.report.axes import Panel
from retroact.report.svg import document, joined, path, segment, text

Curves = Mapping[str, Sequence[tuple[int, float]]]

WIDTH, HEIGHT = 920, 486
LEFT, TOP, GAP = 70, 138, 66
PANEL_WIDTH, PANEL_HEIGHT = 370, 280
TITLE = "Error of private distinct counts against the number of rounds"
STYLE = """
text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 13px; fill: #333 }
.title { font-size: 17px; font-weight: 600; fill: #111 } .panel { font-size: 15px; font-weight: 600 }
.small, .tick, .unit { font-size: 12px; fill: #666 } .grid { stroke: #e4e4e4 } .axis { stroke: #888 }
.line { fill: none; stroke-width: 2.4; stroke-linejoin: round } .dots { stroke-linecap: round }
""".strip()

# (colour, dashes), in the order of the algorithms: two warm ones for trackers, cold ones for retroactive forms.
LOOKS = [("#c2410c", ""), ("#f59e0b", "6 4"), ("#7dabd8", "6 4"), ("#1d4e89", ""), ("#2a9d8f", ""), ("#777", "2 3")]


def picture(experiment):
    """RMS error against the number of rounds, for insertion-only and for churning histories (`price`)."""
    streams = [s for s in ("insertion-only", "churning") if any(row.stream == s for row in experiment.rows)]
    curves = {
        stream: {
            name: [(r.horizon, r.rms) for r in experiment.rows if (r.stream, r.algorithm) == (stream, name)]
            for name in experiment.algorithms
        }
        for stream in streams
    }
    return chart(curves, f"ε = {experiment.epsilon:g}, δ = {experiment.delta:g}")


def chart(curves: Mapping[str, Curves], budget: str) -> str:
    """``curves[history][algorithm]`` is a list of (horizon, error).

    >>> chart({"easy": {"one": [(256, 10.0), (1024, 20.0)]}}, "ε = 1")[:4]
    '<svg'
    """
    points = [point for panel in curves.values() for line in panel.values() for point in line]
    horizons = sorted({horizon for horizon, _ in points})
    low = 10 ** math.floor(math.log10(min(error for _, error in points)))
    high = max(error for _, error in points) * 1.25
    names = list(dict.fromkeys(name for panel in curves.values() for name in panel))
    note = f"root mean square over rounds, {budget}, logarithmic axes; trackers are private but not retroactive"
    body = [text(LEFT, 34, "Error of a private distinct count, in every round", "title"), text(LEFT, 56, note, "small")]
    body.append(_legend(names))
    xs, ys = _logs(horizons[0], max(horizons[-1], 2 * horizons[0])), _logs(low, high)
    for number, (history, panel) in enumerate(curves.items()):
        frame = Panel(LEFT + number * (PANEL_WIDTH + GAP), TOP, PANEL_WIDTH, PANEL_HEIGHT, xs, ys)
        body += [text(frame.left, TOP - 12, f"{history} histories", "panel"), _axes(frame, horizons, low, high)]
        for name, line in panel.items():
            colour, dashes = LOOKS[names.index(name) % len(LOOKS)]
            places = [_logs(*point) for point in line]
            body.append(frame.line(places, "", stroke=colour, stroke_dasharray=dashes))
            body.append(frame.dots(places, "", 3.2, stroke=colour))
    last = (f"{h}: " + ", ".join(f"{n} {p[-1][1]:.0f}" for n, p in c.items()) for h, c in curves.items())
    return str(document(WIDTH, HEIGHT, TITLE, f"At the last horizon: {'; '.join(last)}", STYLE, joined(*body)))


def _logs(x: float, y: float) -> tuple[float, float]:
    return math.log(x), math.log(y)


def _axes(frame: Panel, horizons: Sequence[int], low: float, high: float) -> Markup:
    parts = []
    for tick in _ticks(low, high):
        y = frame.y(math.log(tick))
        parts += [
            segment(frame.left, y, frame.right, y, "grid"),
            text(frame.left - 8, y + 4, f"{tick:,}", "tick", "end"),
        ]
    across = ((frame.x(math.log(horizon)), f"{horizon:,}") for horizon in horizons)
    return joined(*parts, frame.axis_at(across, unit="number of rounds T"))


def _legend(names: Sequence[str]) -> Markup:
    parts, left = [], float(LEFT)
    for name, (colour, dashes) in zip(names, LOOKS, strict=False):
        parts.append(path(f"M{left:.1f} 78h26", "line", stroke=colour, stroke_dasharray=dashes))
        parts.append(text(left + 33, 82, name))
        left += 33 + 7.2 * len(name) + 30
    return joined(*parts)


def _ticks(low: float, high: float) -> list[int]:
    """1, 2 and 5 times powers of ten.

    >>> _ticks(10, 300)
    [10, 20, 50, 100, 200]
    """
    powers = range(max(0, math.floor(math.log10(low))), math.ceil(math.log10(high)) + 1)
    return [tick for p in powers for tick in (10**p, 2 * 10**p, 5 * 10**p) if low <= tick <= high]
