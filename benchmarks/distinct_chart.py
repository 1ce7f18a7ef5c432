"""A picture of errors against horizons in plain SVG text: one panel for each kind of history, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from retroact.escape import markup

Curves = Mapping[str, Sequence[tuple[int, float]]]

WIDTH, HEIGHT = 920, 486
LEFT, TOP, GAP = 70, 138, 66
PANEL_WIDTH, PANEL_HEIGHT = 370, 280

STYLE = """
text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 13px; fill: #333 }
.title { font-size: 17px; font-weight: 600; fill: #111 } .panel { font-size: 15px; font-weight: 600 }
.small { font-size: 12px; fill: #666 } .grid { stroke: #e4e4e4 } .axis { stroke: #888 }
.line { fill: none; stroke-width: 2.4; stroke-linejoin: round }
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
    body = [
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 34, "Error of a private distinct count, in every round", "title"),
        _text(LEFT, 56, note, "small"),
        *_legend(names),
    ]
    for number, (history, panel) in enumerate(curves.items()):
        left = LEFT + number * (PANEL_WIDTH + GAP)
        frame = _Frame(left, (horizons[0], max(horizons[-1], 2 * horizons[0])), (low, high))
        body += [_text(left, TOP - 12, f"{history} histories", "panel"), *frame.axes(horizons)]
        for name, line in panel.items():
            body.append(frame.line(line, *LOOKS[names.index(name) % len(LOOKS)]))
    description = "; ".join(
        f"{h}: " + ", ".join(f"{n} {p[-1][1]:.0f}" for n, p in c.items()) for h, c in curves.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        "<title>Error of private distinct counts against the number of rounds</title>"
        f"<desc>At the last horizon: {markup(description)}</desc>{''.join(body)}</svg>"
    )


class _Frame:
    """One panel: where a horizon and an error lie."""

    def __init__(self, left: float, xs: tuple[float, float], ys: tuple[float, float]) -> None:
        self.left, self.xs, self.ys = left, xs, ys

    def x(self, value: float) -> float:
        return self.left + _share(value, self.xs) * PANEL_WIDTH

    def y(self, value: float) -> float:
        return TOP + (1 - _share(value, self.ys)) * PANEL_HEIGHT

    def axes(self, horizons: Sequence[int]) -> list[str]:
        bottom, right = TOP + PANEL_HEIGHT, self.left + PANEL_WIDTH
        out = []
        for tick in _ticks(*self.ys):
            out.append(_segment(self.left, self.y(tick), right, self.y(tick), "grid"))
            out.append(_text(self.left - 8, self.y(tick) + 4, f"{tick:,}", "small", "end"))
        out.append(_segment(self.left, bottom, right, bottom, "axis"))
        for horizon in horizons:
            out.append(_segment(self.x(horizon), bottom, self.x(horizon), bottom + 5, "axis"))
            out.append(_text(self.x(horizon), bottom + 20, f"{horizon:,}", "small", "middle"))
        out.append(_text((self.left + right) / 2, bottom + 42, "number of rounds T", "small", "middle"))
        return out

    def line(self, points: Sequence[tuple[int, float]], colour: str, dashes: str) -> str:
        places = [(self.x(x), self.y(y)) for x, y in points]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>' for x, y in places)
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'<path class="line" stroke="{colour}"{dash} d="{path}"/>{dots}'


def _legend(names: Sequence[str]) -> list[str]:
    out = []
    left = float(LEFT)
    for name, (colour, dashes) in zip(names, LOOKS, strict=False):
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        out.append(f'<path class="line" stroke="{colour}"{dash} d="M{left:.1f} 78h26"/>')
        out.append(_text(left + 33, 82, name, ""))
        left += 33 + 7.2 * len(name) + 30
    return out


def _ticks(low: float, high: float) -> list[int]:
    """1, 2 and 5 times powers of ten.

    >>> _ticks(10, 300)
    [10, 20, 50, 100, 200]
    """
    powers = range(max(0, math.floor(math.log10(low))), math.ceil(math.log10(high)) + 1)
    return [tick for p in powers for tick in (10**p, 2 * 10**p, 5 * 10**p) if low <= tick <= high]


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = (math.log(end) for end in ends)
    return (math.log(value) - low) / (high - low)


def _text(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{where}>{markup(content)}</text>'


def _segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'
