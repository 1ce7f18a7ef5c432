"""Pictures of an audit: what attacks reached, and histories that unite.

Legends stand above the panels, so that texts never overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    wrong, out = result.verdict == "violation", dict[str, Markup]()
    if {"claimed", "measured"} <= curves.keys():
        out["tradeoff"] = tradeoff(name, result.test, curves["claimed"], curves["measured"], wrong=wrong)
    if {"one", "other", "unite"} <= curves.keys():
        out["twins"] = twins(name, result.test, curves["one"], curves["other"], curves["unite"][0][0])
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
    frame = _Plot(entries, 300, (0, 1), (0, 1), QUARTERS, "missed")
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
    frame = _Plot(entries, 240, (first, last), (low, high), up, "answer")
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


class _Plot:
    """A panel below its legend, with the name of its vertical axis."""

    def __init__(self, entries: Sequence[Entry], height: float, xs: XY, ys: XY, up: Sequence[float], unit: str) -> None:
        above, rows = legend(entries, 0, 0, WIDTH)
        left = max(LEFT, 8 + LETTER * max(len(label(tick)) for tick in up))
        self.panel = Panel(left, rows + 34, WIDTH - left - RIGHT, height, xs, ys)
        self._head = above + text(0, self.panel.top - 15, unit, "unit")

    def draw(self, name: str, title: str, words: str, body: Markup) -> Markup:
        return picture(name, WIDTH, self.panel.bottom + BELOW, title, words, self._head + body)


def _points(curve: Curve) -> list[XY]:
    """The finite points."""
    points = [(float(x), float(y)) for x, y in curve]
    return [point for point in points if all(map(math.isfinite, point))]
