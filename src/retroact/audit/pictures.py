"""Pictures of an audit in plain SVG text: what attacks reached, histories that unite, bits that were recovered.

Colours and fonts come from the page. Legends stand above the panels, so that no text lies over another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..report.svg import XY, Panel, digits, label, picture, segment, text
from .result import Curve, Result

WIDTH = 440.0
LEFT, RIGHT, BELOW = 52.0, 14.0, 50.0
ROW = 21.0
# How wide a letter of a legend is at most, and the sample before it.
LETTER, SAMPLE = 7.4, 34.0
# Beyond this ratio the horizontal axis is logarithmic.
WIDE = 30.0
QUARTERS = (0, 0.25, 0.5, 0.75, 1)

Entry = tuple[str, str]
"""The class of a sample, and what it stands for."""


def pictures(result: Result, name: str) -> list[str]:
    """All pictures that the curves of a result make; ``name`` tells them apart on a page.

    >>> from .result import curve
    >>> twin = {"one": curve([(1, 3), (2, 5)]), "other": curve([(1, 2), (2, 5)]), "unite": curve([(2, 0)])}
    >>> result = Result(part="retroactivity", test="twin", question="", tried="", runs=1, verdict="passed", found="",
    ...     detectable="", curves=twin)
    >>> [drawn[:4] for drawn in pictures(result, "a")]
    ['<svg']
    """
    curves = {series: _points(points) for series, points in result.curves.items()}
    curves = {series: points for series, points in curves.items() if points}
    wrong = result.verdict == "violation"
    out = []
    if {"claimed", "measured"} <= curves.keys():
        out.append(tradeoff(f"{name}-tradeoff", result.test, curves["claimed"], curves["measured"], wrong=wrong))
    if {"one", "other", "unite"} <= curves.keys():
        out.append(twins(f"{name}-twins", result.test, curves["one"], curves["other"], curves["unite"][0][0]))
    if "ceiling" in curves:
        out.append(transition(f"{name}-transition", result.test, curves, wrong=wrong))
    return out


def tradeoff(name: str, test: str, claimed: Sequence[XY], measured: Sequence[XY], *, wrong: bool = False) -> str:
    """False alarms against misses: how well any attacker may do, and how well the best one that was tried did."""
    claimed, found = sorted(claimed), "over" if wrong else "measured"
    entries: list[Entry] = [
        ("line claimed", "claimed limit"),
        ("area forbidden", "ruled out by the claim"),
        (f"dots {found}", "best attack tried"),
        ("line blind", "blind guessing"),
    ]
    frame = _Frame(entries, 300, (0, 1), (0, 1), QUARTERS)
    panel = frame.panel
    body = (
        panel.area([*claimed, (1.0, 0.0)], [(0, 0), (1, 0)], "forbidden")
        + frame.axes(QUARTERS, "false alarms", "missed")
        + panel.line([(0, 1), (1, 0)], "blind")
        + panel.line(claimed, "claimed")
        + panel.dots(sorted(measured), found, 2.6)
    )
    closest = min(measured, key=sum)
    said = f"The attack that errs least has {closest[0]:.3g} false alarms and misses {closest[1]:.3g}."
    return frame.draw(name, f"Trade-off of attacks: {test}", said, body)


def twins(name: str, test: str, one: Sequence[XY], other: Sequence[XY], unite: float) -> str:
    """Two histories under one key: apart before they unite, one line from there on."""
    values = [y for _, y in (*one, *other)]
    room = (max(values) - min(values)) * 0.06 or 1.0
    low, high = min(values) - room, max(values) + room
    rounds = [x for x, _ in (*one, *other)]
    first, last = min(rounds), max(*rounds, min(rounds) + 1)
    entries: list[Entry] = [
        ("line with", "first history"),
        ("line twin thick", "second history"),
        ("line erasure", f"the same records survive from round {unite:,.0f} on"),
    ]
    frame = _Frame(entries, 240, (first, last), (low, high), _ticks(low, high, 5))
    panel, x = frame.panel, frame.panel.x(unite)
    body = (
        frame.axes(_ticks(first, last, 6, whole=True), "round", "answer")
        + panel.line(other, "twin thick")
        + panel.line(one, "with")
        + segment(x, panel.top, x, panel.bottom, "line erasure")
    )
    differing = [a[0] for a, b in zip(one, other, strict=False) if a != b]
    before = sum(round < unite for round in differing)
    said = (
        f"The answers differ in {before:,} rounds before round {unite:,.0f}, and in {len(differing) - before:,} after."
    )
    return frame.draw(name, f"Two histories that unite: {test}", said, body)


def transition(name: str, test: str, curves: dict[str, list[XY]], *, wrong: bool = False) -> str:
    """How many secret bits a decoder gets back, by how much noise there is."""
    attacks = sorted(curves.keys() - {"ceiling", "this stream"}, key=lambda series: (len(series), series))
    entries: list[Entry] = [(f"line series{i % 4}", series) for i, series in enumerate(attacks)]
    entries.append(("line ceiling", "limit set by privacy"))
    shown, found = [*attacks, "ceiling"], "over" if wrong else "own"
    if "this stream" in curves:
        entries.append((f"dots {found}", "this stream"))
        shown.append("this stream")
    scale = _Scale.of([x for series in shown for x, _ in curves[series]])
    lowest = math.floor(10 * min(0.5, *(y for series in shown for _, y in curves[series])))
    steps = [tick / 10 for tick in range(lowest, 11)]
    frame = _Frame(entries, 250, (0, 1), (lowest / 10 - 0.02, 1.02), steps[:: 1 + len(steps) // 7])
    panel = frame.panel
    body = frame.axes([], "error of an answer / √n", "share of bits recovered")
    for tick in scale.ticks():
        x = panel.x(scale(tick))
        body += segment(x, panel.bottom, x, panel.bottom + 5, "axis")
        body += text(x, panel.bottom + 20, f"{tick:g}", "tick", "middle")
    for i, series in enumerate(attacks):
        line = sorted((scale(x), y) for x, y in curves[series])
        body += panel.line(line, f"series{i % 4}") + panel.dots(line, f"series{i % 4}", 2.6)
    body += panel.line(sorted((scale(x), y) for x, y in curves["ceiling"]), "ceiling")
    body += panel.dots([(scale(x), y) for x, y in curves.get("this stream", [])], found, 5.5)
    said = "; ".join(f"{series}: {curves[series][-1][1]:.2f} at {curves[series][-1][0]:g}" for series in shown)
    return frame.draw(name, f"Bits recovered by the error of answers: {test}", f"Last points: {said}.", body)


class _Frame:
    """A panel with its legend above and its axes."""

    def __init__(self, entries: Sequence[Entry], height: float, xs: XY, ys: XY, up: Sequence[float]) -> None:
        self._legend, rows = _legend(entries)
        self._up = up
        left = max(LEFT, 8 + LETTER * max(len(label(tick)) for tick in up))
        self.panel = Panel(left, rows * ROW + 34, WIDTH - left - RIGHT, height, xs, ys)

    def axes(self, across: Sequence[float], below: str, above: str) -> str:
        panel = self.panel
        return text(0, panel.top - 15, above, "unit") + panel.grid(self._up) + panel.axis(across, unit=below)

    def draw(self, name: str, title: str, said: str, body: str) -> str:
        return picture(name, WIDTH, self.panel.bottom + BELOW, title, said, self._legend + body)


def _legend(entries: Sequence[Entry]) -> tuple[str, int]:
    """Samples with their names, in as many rows as they need."""
    out, x, row = [], 0.0, 0
    for kind, series in entries:
        width = SAMPLE + LETTER * len(series) + 14
        if x and x + width > WIDTH:
            x, row = 0.0, row + 1
        y = 14 + row * ROW
        shape, _, rest = kind.partition(" ")
        if shape == "area":
            out.append(f'<path class="{rest}" d="M{digits(x)} {digits(y - 9)}h26v10h-26Z"/>')
        elif shape == "dots":
            out.append(f'<path class="{kind}" stroke-width="6" d="M{digits(x + 13)} {digits(y - 4)}h0"/>')
        else:
            out.append(segment(x, y - 4, x + 26, y - 4, kind))
        out.append(text(x + SAMPLE, y, series, ""))
        x += width
    return "".join(out), row + 1


@dataclass(frozen=True)
class _Scale:
    """Puts errors on [0, 1]: as they are, or by their logarithms; zero then lies at the left end."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[float]) -> _Scale:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = min(positive), max(positive)
        if high / low > WIDE:
            return cls(low / 2 if min(values) <= 0 else low, high, True)
        return cls(0.0, high, False)

    def __call__(self, value: float) -> float:
        if not self.logarithmic:
            return value / self.high
        return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        if not self.logarithmic:
            return _ticks(0, self.high, 6)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [m * 10.0**p for p in powers for m in ((1, 2, 5) if len(powers) < 4 else (1,))]
        return [float(f"{tick:.6g}") for tick in every if self.low <= tick <= self.high]


def _points(curve: Curve) -> list[XY]:
    """Numbers; what is not finite cannot be drawn."""
    points = [(float(x), float(y)) for x, y in curve]
    return [point for point in points if all(map(math.isfinite, point))]


def _ticks(low: float, high: float, about: int, *, whole: bool = False) -> list[float]:
    """Round numbers within [low, high].

    >>> _ticks(0, 1, 5), _ticks(1, 30, 6, whole=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0, 20.0, 25.0, 30.0])
    """
    raw = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m for m in (1, 2, 5, 10) if m * magnitude >= raw * 0.99) * magnitude
    step = max(1.0, float(round(step))) if whole else step
    return [float(f"{i * step:.12g}") for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
