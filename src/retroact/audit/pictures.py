"""Pictures of an audit: what attacks reached, histories that unite, bits that were recovered.

Legends stand above the panels, so that texts never overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..report.axes import LETTER, XY, Entry, Panel, label, legend, ticks
from ..report.svg import joined, picture, text
from .result import Curve, Result

WIDTH = 440.0
LEFT, RIGHT, BELOW = 52.0, 14.0, 50.0
QUARTERS = (0, 0.25, 0.5, 0.75, 1)


def pictures(result: Result, name: str) -> dict[str, Markup]:
    """All pictures of a result's curves, by kind; ``name`` makes their ids unique on a page.

    >>> from .result import curve
    >>> twin = {"one": curve([(1, 3), (2, 5)]), "other": curve([(1, 2), (2, 5)]), "unite": curve([(2, 0)])}
    >>> result = Result(part="retroactivity", test="twin", question="", tried="", runs=1, verdict="passed", found="",
    ...     detectable="", curves=twin)
    >>> [*pictures(result, "a")]
    ['twins']
    """
    curves = {series: _points(points) for series, points in result.curves.items()}
    curves = {series: points for series, points in curves.items() if points}
    wrong = result.verdict == "violation"
    out = {}
    if {"claimed", "measured"} <= curves.keys():
        out["tradeoff"] = tradeoff(name, result.test, curves["claimed"], curves["measured"], wrong=wrong)
    if {"one", "other", "unite"} <= curves.keys():
        out["twins"] = twins(name, result.test, curves["one"], curves["other"], curves["unite"][0][0])
    if "ceiling" in curves:
        out["transition"] = transition(name, result.test, curves, wrong=wrong)
    return out


def tradeoff(name: str, test: str, claimed: Sequence[XY], measured: Sequence[XY], *, wrong: bool = False) -> Markup:
    """False alarms against misses: how well any attacker may do, and how well the best one that was tried did."""
    claimed, found = sorted(claimed), "over" if wrong else "measured"
    entries: list[Entry] = [
        ("line", "claimed", "claimed limit"),
        ("area", "forbidden", "ruled out by the claim"),
        ("dot", found, "best attack tried"),
        ("line", "blind", "blind guessing"),
    ]
    frame = _Frame(entries, 300, (0, 1), (0, 1), QUARTERS, "missed")
    panel = frame.panel
    body = joined(
        panel.area([*claimed, (1.0, 0.0)], [(0, 0), (1, 0)], "forbidden"),
        panel.grid(QUARTERS),
        panel.axis(QUARTERS, unit="false alarms"),
        panel.line([(0, 1), (1, 0)], "blind"),
        panel.line(claimed, "claimed"),
        panel.dots(sorted(measured), found, 2.6),
    )
    closest = min(measured, key=sum)
    words = f"The attack that errs least has {closest[0]:.3g} false alarms and misses {closest[1]:.3g}."
    return frame.draw(f"{name}-tradeoff", f"Trade-off of attacks: {test}", words, body)


def twins(name: str, test: str, one: Sequence[XY], other: Sequence[XY], unite: float) -> Markup:
    """Two histories under one key: apart before they unite, one line from there on."""
    values = [y for _, y in (*one, *other)]
    room = (max(values) - min(values)) * 0.06 or 1.0
    low, high = min(values) - room, max(values) + room
    rounds = [x for x, _ in (*one, *other)]
    first, last = min(rounds), max(*rounds, min(rounds) + 1)
    entries: list[Entry] = [
        ("line", "with", "first history"),
        ("line", "twin thick", "second history"),
        ("line", "erasure", f"the same records survive from round {unite:,.0f} on"),
    ]
    up = ticks(low, high, 5)
    frame = _Frame(entries, 240, (first, last), (low, high), up, "answer")
    panel = frame.panel
    body = joined(
        panel.grid(up),
        panel.axis(ticks(first, last, 6, whole=True), unit="round"),
        panel.line(other, "twin thick"),
        panel.line(one, "with"),
        panel.upright(unite, "line erasure"),
    )
    differing = [a[0] for a, b in zip(one, other, strict=False) if a != b]
    before = sum(round < unite for round in differing)
    words = (
        f"The answers differ in {before:,} rounds before round {unite:,.0f}, and in {len(differing) - before:,} after."
    )
    return frame.draw(f"{name}-twins", f"Two histories that unite: {test}", words, body)


def transition(name: str, test: str, curves: dict[str, list[XY]], *, wrong: bool = False) -> Markup:
    """The share of secret bits that a decoder recovers, by the size of the noise."""
    attacks = sorted(curves.keys() - {"ceiling", "this stream"}, key=lambda series: (len(series), series))
    entries: list[Entry] = [("line", f"series{i % 4}", series) for i, series in enumerate(attacks)]
    entries.append(("line", "ceiling", "limit set by privacy"))
    shown, found = [*attacks, "ceiling"], "over" if wrong else "own"
    if "this stream" in curves:
        entries.append(("dot", found, "this stream"))
        shown.append("this stream")
    scale = _Scale.of([x for series in shown for x, _ in curves[series]])
    placed = {series: [(scale(x), y) for x, y in curves[series]] for series in shown}
    lowest = math.floor(10 * min(0.5, *(y for series in shown for _, y in curves[series])))
    steps = [tick / 10 for tick in range(lowest, 11)]
    up = steps[:: 1 + len(steps) // 7]
    frame = _Frame(entries, 250, (0, 1), (lowest / 10 - 0.02, 1.02), up, "share of bits recovered")
    panel = frame.panel
    across = [(panel.x(scale(tick)), f"{tick:g}") for tick in scale.ticks()]
    body = panel.grid(up) + panel.axis_at(across, unit="error of an answer / √n")
    for i, series in enumerate(attacks):
        line = sorted(placed[series])
        body += panel.line(line, f"series{i % 4}") + panel.dots(line, f"series{i % 4}", 2.6)
    body += panel.line(sorted(placed["ceiling"]), "ceiling") + panel.dots(placed.get("this stream", []), found, 5.5)
    words = "; ".join(f"{series}: {curves[series][-1][1]:.2f} at {curves[series][-1][0]:g}" for series in shown)
    title = f"Bits recovered by the error of answers: {test}"
    return frame.draw(f"{name}-transition", title, f"Last points: {words}.", body)


class _Frame:
    """A panel below its legend, with the name of its vertical axis."""

    def __init__(self, entries: Sequence[Entry], height: float, xs: XY, ys: XY, up: Sequence[float], unit: str) -> None:
        above, rows = legend(entries, 0, 0, WIDTH)
        left = max(LEFT, 8 + LETTER * max(len(label(tick)) for tick in up))
        self.panel = Panel(left, rows + 34, WIDTH - left - RIGHT, height, xs, ys)
        self._head = above + text(0, self.panel.top - 15, unit, "unit")

    def draw(self, name: str, title: str, words: str, body: Markup) -> Markup:
        return picture(name, WIDTH, self.panel.bottom + BELOW, title, words, self._head + body)


@dataclass(frozen=True)
class _Scale:
    """Maps errors to [0, 1] by their logarithms; zero is at the left end."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> _Scale:
        positive = sorted(value for value in values if value > 0) or [1.0]
        spread = min(values) > 0 and positive[0] < positive[-1]
        return cls(positive[0] if spread else positive[0] / 2, positive[-1])

    def __call__(self, value: float) -> float:
        return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [m * 10.0**p for p in powers for m in ((1, 2, 5) if len(powers) < 4 else (1,))]
        return [float(f"{tick:.6g}") for tick in every if self.low <= tick <= self.high]


def _points(curve: Curve) -> list[XY]:
    """The finite points."""
    points = [(float(x), float(y)) for x, y in curve]
    return [point for point in points if all(map(math.isfinite, point))]
