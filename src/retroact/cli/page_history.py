"""The main picture: what was published with the customer, and what the twin published without."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..report.svg import Panel, box, picture, segment, text, ticks
from .page_story import Point, Story, amount, orders

TITLE = "Published orders with the erased customer, and in the twin without"


@dataclass(frozen=True)
class _Place:
    """Where a panel goes: its frame without headings and tick labels, and how many ticks it has room for."""

    left: float
    top: float
    width: float
    height: float
    ticks: int
    margin: float = 46.0


def history(story: Story) -> str:
    """For wide windows side by side, for narrow ones below each other: the text keeps its size in both."""
    wide = (
        _overview(story, _Place(46, 70, 898, 190, 10))
        + _close_up(story, _Place(46, 362, 530, 270, 8))
        + _differences(story, _Place(656, 362, 288, 270, 4, 36))
    )
    narrow = (
        _overview(story, _Place(46, 88, 344, 170, 4))
        + _close_up(story, _Place(46, 356, 344, 240, 4))
        + _differences(story, _Place(46, 720, 344, 170, 4))
    )
    return picture("history-wide", 960, 676, TITLE, _description(story), wide) + picture(
        "history-narrow", 400, 934, TITLE, _description(story), narrow
    )


def _description(story: Story) -> str:
    largest = max(value for _, value in story.differences)
    return (
        f"Three panels. First: over {story.rounds:,} rounds, the published count of all orders follows the true count. "
        f"Second: a close-up around round {story.erased_at:,}, where customer {story.customer} is erased: two lines "
        "run apart before it and are one line from it on. Third: the difference of the two published counts, which "
        f"reaches {largest:,.0f} before the erasure and is exactly 0 in all {story.later:,} rounds from it on."
    )


def _overview(story: Story, place: _Place) -> str:
    points = story.points
    low, high = min(0.0, *(p.low for p in points)), max(p.high for p in points)
    panel = Panel(place.left, place.top, place.width, place.height, (1, story.rounds), (low, high))
    rounds = [t for t in ticks(1, story.rounds, place.ticks) if t > 0.06 * story.rounds]
    first, last = story.close_up[0], story.close_up[-1]
    x = panel.x(story.erased_at)
    close = [value for p in (first, last) for value in (p.low, p.high)]
    # A lens only where the close-up is a small part of the whole.
    small = last.round - first.round < story.rounds / 4
    lens = box(panel, (first.round, min(close)), (last.round, max(close)), "lens") if small else ""
    legend = [
        ("line with", f"with customer {story.customer}"),
        ("line twin thick", "twin, without"),
        ("band", "95 % interval"),
        ("line truth", "true (demo only)"),
    ]
    return (
        text(
            place.left - place.margin,
            place.top - 48 - 18 * (place.width < 500),
            "All orders so far, as published",
            "heading",
        )
        + _legend(place.left - place.margin, place.top - 22, place.width, legend)
        + panel.grid(ticks(low, high, 4))
        + panel.axis([1, *rounds], unit="")
        + _curves(panel, points)
        + lens
        + segment(x, panel.top - 4, x, panel.bottom, "erasure")
        + text(x - 8, panel.top + 10, f"round {story.erased_at:,}: customer {story.customer} erased", "strong", "end")
        + text(
            panel.right,
            panel.bottom - 14,
            f"last: published {amount(points[-1].released)}, true {points[-1].true:,}",
            "note",
            "end",
        )
    )


def _close_up(story: Story, place: _Place) -> str:
    points = story.close_up
    low, high = min(p.low for p in points), max(p.high for p in points)
    panel = Panel(place.left, place.top, place.width, place.height, (points[0].round, points[-1].round), (low, high))
    x = panel.x(story.erased_at)
    # The names of the lines go above and below what they do beneath the names.
    beside = [p for p in points if panel.x(p.round) < panel.left + 150]
    above, below = max(p.released for p in beside), min(p.twin for p in beside)
    return (
        text(
            place.left - place.margin,
            place.top - 24,
            f"Close-up: the lines meet in round {story.erased_at:,}",
            "heading",
        )
        + panel.grid(ticks(math.ceil(low), math.floor(high), 4))
        + panel.axis(ticks(points[0].round, points[-1].round, place.ticks), unit="round")
        + _curves(panel, points)
        + panel.dots(((p.round, p.twin) for p in points), "twin", 3.6)
        + panel.dots(((p.round, p.released) for p in points), "with", 1.9)
        + segment(x, panel.top, x, panel.bottom, "erasure")
        + text(x - 8, panel.top + 14, f"customer {story.customer}", "strong", "end")
        + text(x - 8, panel.top + 31, "erased", "strong", "end")
        + text(x + 8, panel.bottom - 14, "one line from here", "strong same-text")
        + text(panel.left + 8, min(panel.y(below) + 24, panel.bottom - 8), "twin, without", "strong twin-text")
        + text(panel.left + 8, panel.y(above) - 14, f"with customer {story.customer}", "strong with-text")
    )


def _differences(story: Story, place: _Place) -> str:
    largest = max(1.0, *(value for _, value in story.differences))
    panel = Panel(
        place.left, place.top, place.width, place.height, (1, story.rounds), (-0.05 * largest, largest * 1.12)
    )
    before = [change for change in story.differences if change[0] < story.erased_at]
    corners = [*panel.steps(before, story.erased_at), (story.erased_at, 0.0)]
    middle = panel.x((story.erased_at + story.rounds) / 2)
    rounds = [t for t in ticks(1, story.rounds, place.ticks) if t > 0.06 * story.rounds]
    return (
        text(place.left - place.margin, place.top - 24, "Difference of the two, in orders", "heading")
        + panel.grid(ticks(0, largest, 4))
        + panel.axis([1, *rounds], unit="round")
        + panel.area(corners, [(x, 0.0) for x, _ in corners], "fill")
        + panel.line(corners, "with")
        + segment(panel.x(story.erased_at), panel.top, panel.x(story.erased_at), panel.bottom, "erasure")
        + panel.line([(story.erased_at, 0), (story.rounds, 0)], "same")
        + text(
            panel.x(story.erased_at) - 8, panel.y(largest) - 8, orders(round(before[-1][1])), "strong with-text", "end"
        )
        + text(middle, panel.y(0) - 46, "exactly 0", "strong same-text", "middle")
        + text(middle, panel.y(0) - 29, f"in all {story.later:,}", "note", "middle")
        + text(middle, panel.y(0) - 13, "later rounds", "note", "middle")
    )


def _curves(panel: Panel, points: tuple[Point, ...]) -> str:
    return (
        panel.area([(p.round, p.high) for p in points], [(p.round, p.low) for p in points], "band")
        + panel.line(((p.round, p.twin) for p in points), "twin thick")
        + panel.line(((p.round, p.released) for p in points), "with")
        + panel.line(((p.round, p.true) for p in points), "truth")
    )


def _legend(left: float, y: float, width: float, entries: list[tuple[str, str]]) -> str:
    """Swatches with their names, in one row or, where it is narrow, in two."""
    out = []
    x, columns = left, 2 if width < 500 else len(entries)
    for i, (kind, name) in enumerate(entries):
        x = left if i % columns == 0 else x
        row = y - 20 * ((len(entries) - 1) // columns - i // columns)
        shape = f"M{x:g} {row - 9:g}h22v10h-22Z" if kind == "band" else f"M{x:g} {row - 4:g}h22"
        out.append(f'<path class="{kind}" d="{shape}"/>' + text(x + 29, row, name, "note"))
        x += 182 if columns == 2 else 52 + 7 * len(name)
    return "".join(out)
