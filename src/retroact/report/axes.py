"""From data to places in a picture: panels with axes and curves, round numbers, legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup

from .svg import digits, joined, path, rectangle, segment, text

XY = tuple[float, float]
Entry = tuple[Literal["line", "dot", "area", "mark"], str, str]
"""An entry of a legend: the shape of the sample, its class, and what it stands for."""
# The largest width of a letter, the width of a legend's sample with its space, and the height of a legend's row.
LETTER, SAMPLE, ROW = 7.4, 34.0, 21.0


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

    def line(self, points: Iterable[XY], kind: str, **attributes: Any) -> Markup:
        return path(self.path(points), f"line {kind}", **attributes)

    def area(self, upper: Sequence[XY], lower: Sequence[XY], kind: str) -> Markup:
        return path(self.path([*upper, *reversed(lower)]) + "Z", kind)

    def dots(self, points: Iterable[XY], kind: str, radius: float, **attributes: Any) -> Markup:
        return dots(((self.x(x), self.y(y)) for x, y in points), f"dots {kind}", stroke_width=2 * radius, **attributes)

    def box(self, lowest: XY, highest: XY, kind: str) -> Markup:
        """The rectangle between two points of the data."""
        left, top = self.x(lowest[0]), self.y(highest[1])
        return rectangle(left, top, self.x(highest[0]) - left, self.y(lowest[1]) - top, kind)

    def upright(self, x: float, kind: str) -> Markup:
        """A vertical line through the panel."""
        return segment(self.x(x), self.top, self.x(x), self.bottom, kind)

    def grid(self, ticks: Iterable[float]) -> Markup:
        """Horizontal lines with their values."""
        parts = []
        for tick in ticks:
            y = self.y(tick)
            parts.append(segment(self.left, y, self.right, y, "zero" if tick == 0 else "grid"))
            parts.append(text(self.left - 8, y + 4, label(tick), "tick", "end"))
        return joined(*parts)

    def axis(self, ticks: Iterable[float], *, unit: str = "") -> Markup:
        """The horizontal axis, with ticks below the panel."""
        return self.axis_at(((self.x(tick), label(tick)) for tick in ticks), unit=unit)

    def axis_at(self, ticks: Iterable[tuple[float, str]], *, unit: str = "") -> Markup:
        """The same, with ticks given by their places in the picture and their labels."""
        parts = [segment(self.left, self.bottom, self.right, self.bottom, "axis")]
        for x, name in ticks:
            parts.append(segment(x, self.bottom, x, self.bottom + 5, "axis"))
            parts.append(text(x, self.bottom + 20, name, "tick", "middle"))
        if unit:
            parts.append(text((self.left + self.right) / 2, self.bottom + 38, unit, "unit", "middle"))
        return joined(*parts)


def dots(places: Iterable[XY], kind: str, **attributes: Any) -> Markup:
    """One path of round caps: far smaller than one circle per point."""
    return path("".join(f"M{digits(x)} {digits(y)}h0" for x, y in places), kind, **attributes)


def steps(changes: Sequence[XY], end: float) -> list[XY]:
    """The corners of a function that holds its value until the next change, and the last one up to ``end``.

    >>> steps([(1, 5), (3, 6)], 9)
    [(1, 5), (3, 5), (3, 6), (9, 6)]
    """
    ends = [*(x for x, _ in changes[1:]), end]
    return [corner for (x, y), until in zip(changes, ends, strict=True) for corner in ((x, y), (until, y))]


def legend(entries: Sequence[Entry], left: float, top: float, width: float) -> tuple[Markup, float]:
    """Samples with their names, in as many rows as needed; and the height of them all."""
    parts, x, y = [], left, top + 14
    for shape, kind, name in entries:
        wide = SAMPLE + LETTER * len(name) + 14
        if x > left and x + wide > left + width:
            x, y = left, y + ROW
        if shape == "area":
            sample = path(f"M{digits(x)} {digits(y - 9)}h26v10h-26Z", kind)
        elif shape == "dot":
            sample = dots([(x + 13, y - 4)], f"dots {kind}", stroke_width=6)
        elif shape == "mark":
            sample = segment(x + 13, y - 12, x + 13, y + 3, kind)
        else:
            sample = segment(x, y - 4, x + 26, y - 4, f"line {kind}")
        parts += [sample, text(x + SAMPLE, y, name, "note")]
        x += wide
    return joined(*parts), y + ROW - 14 - top


def ticks(low: float, high: float, about: int, *, whole: bool = False) -> list[float]:
    """Round numbers within [low, high].

    >>> ticks(0, 9440, 4), ticks(570, 630, 4), ticks(0, 1, 5), ticks(1, 5, 10, whole=True)
    ([0.0, 2500.0, 5000.0, 7500.0], [580.0, 600.0, 620.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    raw = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.99) * magnitude
    step = max(1.0, float(round(step))) if whole else step
    return [float(f"{i * step:.12g}") for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def label(tick: float) -> str:
    """A number as an axis shows it.

    >>> label(-2500), label(0.25), label(3e12)
    ('−2,500', '0.25', '3 × 10¹²')
    """
    if tick and not 1e-4 <= abs(tick) < 1e7:
        return number(tick)
    return (f"{tick:,.0f}" if tick == round(tick) else f"{tick:g}").replace("-", "−")


def number(value: float, error: float | None = None) -> str:
    """A number for people; with an error, both are rounded to two digits of the error.

    >>> number(1234.5, 67.8), number(0.12345), number(1.23e12, 1.2e11)
    ('1,234 ± 68', '0.1235', '(1.23 ± 0.12) × 10¹²')
    """
    top = max(abs(value), error or 0.0)
    if top and not 1e-4 <= top < 1e7:
        power = math.floor(math.log10(top))
        inner = number(value / 10.0**power, error and error / 10.0**power)
        raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return (f"({inner})" if error else inner) + f" × 10{raised}"
    if not error:
        return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")
    digits = 1 - math.floor(math.log10(error))
    return " ± ".join(f"{round(x, digits):,.{max(0, digits)}f}" for x in (value, error)).replace("-", "−")
