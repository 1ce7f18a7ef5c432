"""Pictures in plain SVG text: scales, ticks, lines, bands. Colours and fonts come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retroact.escape import markup

XY = tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """A rectangle of the picture in which data are drawn."""

    left: float
    top: float
    width: float
    height: float
    xs: XY
    ys: XY

    def x(self, value: float) -> float:
        low, high = self.xs
        return self.left + (value - low) / (high - low) * self.width

    def y(self, value: float) -> float:
        low, high = self.ys
        return self.top + self.height - (value - low) / (high - low) * self.height

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def path(self, points: Iterable[XY]) -> str:
        return "M" + "L".join(f"{digits(self.x(x))} {digits(self.y(y))}" for x, y in points)

    def line(self, points: Iterable[XY], kind: str) -> str:
        return f'<path class="line {kind}" d="{self.path(points)}"/>'

    def area(self, upper: Sequence[XY], lower: Sequence[XY], kind: str) -> str:
        return f'<path class="{kind}" d="{self.path([*upper, *reversed(lower)])}Z"/>'

    def dots(self, points: Iterable[XY], kind: str, radius: float) -> str:
        """One path of round caps: far smaller than a circle for every point."""
        path = "".join(f"M{digits(self.x(x))} {digits(self.y(y))}h0" for x, y in points)
        return f'<path class="dots {kind}" stroke-width="{digits(2 * radius)}" d="{path}"/>'

    def steps(self, changes: Sequence[XY], end: float) -> list[XY]:
        """The corners of a function that holds its value until the next change, and the last one up to ``end``."""
        corners: list[XY] = []
        for (x, y), (until, _) in zip(changes, [*changes[1:], (end, 0.0)], strict=True):
            corners += [(x, y), (until, y)]
        return corners

    def grid(self, ticks: Sequence[float]) -> str:
        """Horizontal lines with their values."""
        out = []
        for tick in ticks:
            y = self.y(tick)
            out.append(segment(self.left, y, self.right, y, "zero" if tick == 0 else "grid"))
            out.append(text(self.left - 8, y + 4, label(tick), "tick", "end"))
        return "".join(out)

    def axis(self, ticks: Sequence[float], *, unit: str = "") -> str:
        """The horizontal axis, with ticks below the panel."""
        out = [segment(self.left, self.bottom, self.right, self.bottom, "axis")]
        for tick in ticks:
            x = self.x(tick)
            out.append(segment(x, self.bottom, x, self.bottom + 5, "axis"))
            out.append(text(x, self.bottom + 20, label(tick), "tick", "middle"))
        if unit:
            out.append(text((self.left + self.right) / 2, self.bottom + 38, unit, "unit", "middle"))
        return "".join(out)


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers within [low, high].

    >>> ticks(0, 9440, 4), ticks(570, 630, 4)
    ([0, 2500, 5000, 7500], [580, 600, 620])
    """
    raw = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = max(1, round(next(m for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.99) * magnitude))
    return list(range(math.ceil(low / step) * step, math.floor(high / step) * step + 1, step))


def label(tick: float) -> str:
    """As an axis shows a number.

    >>> label(-2500), label(0.25)
    ('−2,500', '0.25')
    """
    return (f"{tick:,.0f}" if tick == round(tick) else f"{tick:g}").replace("-", "−")


def text(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{kind}" x="{digits(x)}" y="{digits(y)}"{where}>{markup(content)}</text>'


def segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{digits(x1)} {digits(y1)}L{digits(x2)} {digits(y2)}"/>'


def rectangle(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    inside = f"<title>{markup(title)}</title>" if title else ""
    return (
        f'<rect class="{kind}" x="{digits(x)}" y="{digits(y)}" width="{digits(max(width, 0))}" '
        f'height="{digits(height)}" rx="2">{inside}</rect>'
    )


def box(panel: Panel, lowest: XY, highest: XY, kind: str) -> str:
    """The rectangle between two points of the data."""
    left, right = panel.x(lowest[0]), panel.x(highest[0])
    top, bottom = panel.y(highest[1]), panel.y(lowest[1])
    return rectangle(left, top, right - left, bottom - top, kind)


def picture(name: str, width: float, height: float, title: str, description: str, body: str) -> str:
    """A picture that a screen reader announces by its title and description."""
    return (
        f'<svg class="{name.rsplit("-", 1)[-1]}" viewBox="0 0 {digits(width)} {digits(height)}" role="img" '
        f'aria-labelledby="{name}-title {name}-text"><title id="{name}-title">{markup(title)}</title>'
        f'<desc id="{name}-text">{markup(description)}</desc>{body}</svg>'
    )


def digits(value: float) -> str:
    """One decimal is a tenth of a pixel.

    >>> digits(12.04), digits(-0.04), digits(7.25)
    ('12', '0', '7.2')
    """
    return f"{round(value, 1) + 0.0:g}"
