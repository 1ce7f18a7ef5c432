"""The pictures of the demo, for wide and for narrow windows: both histories, and orders by country."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from ...report.axes import Entry, Panel, legend, steps, ticks
from ...report.svg import joined, picture, rectangle, segment, text
from .story import Line, PublishedCount, Story, amount, orders

HISTORY = "Published orders with the erased customer, and in the twin without"
COUNTRIES = "Orders by country: published, with 95 % intervals, and true"
# How high a row of a country is.
ROW = 34.0


@dataclass(frozen=True)
class _Place:
    """Where a panel goes: its frame without headings and tick labels, and how many ticks fit."""

    left: float
    top: float
    width: float
    height: float
    ticks: int
    margin: float = 46.0

    def heading(self, words: str, above: float = 24) -> Markup:
        return text(self.left - self.margin, self.top - above, words, "heading")


def history(story: Story) -> Markup:
    """What was published with the customer, and by the twin without."""
    wide = joined(
        _overview(story, _Place(46, 46, 898, 190, 10)),
        _close_up(story, _Place(46, 362, 530, 270, 8)),
        _differences(story, _Place(656, 362, 288, 270, 4, 36)),
    )
    narrow = joined(
        _overview(story, _Place(46, 46, 344, 170, 4)),
        _close_up(story, _Place(46, 356, 344, 240, 4)),
        _differences(story, _Place(46, 720, 344, 170, 4)),
    )
    largest = max(value for _, value in story.differences)
    description = (
        f"Three panels. First: over {story.rounds:,} rounds, the published count of all orders follows the true count. "
        f"Second: a close-up around round {story.erased_at:,}, where customer {story.customer} is erased: two lines "
        "run apart before it and are one line from it on. Third: the difference of the two published counts, which "
        f"reaches {largest:,.0f} before the erasure and is exactly 0 in all {story.later:,} rounds from it on."
    )
    return joined(
        picture("history-wide", 960, 676, HISTORY, description, wide),
        picture("history-narrow", 400, 934, HISTORY, description, narrow),
    )


def _overview(story: Story, place: _Place) -> Markup:
    points = story.points
    low, high = min(0.0, *(p.low for p in points)), max(p.high for p in points)
    entries: list[Entry] = [
        ("line", "with", f"with customer {story.customer}"),
        ("line", "twin thick", "twin, without"),
        ("area", "band", "95 % interval"),
        ("line", "truth", "true (demo only)"),
    ]
    names, height = legend(entries, place.left - place.margin, place.top - 14, place.width + place.margin)
    panel = Panel(place.left, place.top + height + 2, place.width, place.height, (1, story.rounds), (low, high))
    first, last = story.close_up[0], story.close_up[-1]
    close = [value for p in (first, last) for value in (p.low, p.high)]
    x, erased = panel.x(story.erased_at), f"customer {story.customer} erased"
    latest = f"last: published {amount(points[-1].released)}, true {points[-1].true:,}"
    if place.width > 500:
        erased = f"round {story.erased_at:,}: {erased}"
    body = joined(
        place.heading("All orders so far, as published"),
        names,
        panel.grid(ticks(low, high, 4)),
        panel.axis(_rounds(story, place)),
        _curves(panel, points),
    )
    # a lens only where the close-up is a small part of the whole
    if last.round - first.round < story.rounds / 4:
        body += panel.box((first.round, min(close)), (last.round, max(close)), "lens")
    return joined(
        body,
        segment(x, panel.top - 4, x, panel.bottom, "erasure"),
        text(x - 8, panel.top + 10, erased, "strong", "end"),
        text(panel.right, panel.bottom - 14, latest, "note", "end"),
    )


def _close_up(story: Story, place: _Place) -> Markup:
    points = story.close_up
    low, high = min(p.low for p in points), max(p.high for p in points)
    panel = Panel(place.left, place.top, place.width, place.height, (points[0].round, points[-1].round), (low, high))
    x = panel.x(story.erased_at)
    # the names of the lines stand above and below the lines
    near = [p for p in points if panel.x(p.round) < panel.left + 150]
    above, below = max(p.released for p in near), min(p.twin for p in near)
    return joined(
        place.heading(f"Close-up: the lines meet in round {story.erased_at:,}"),
        panel.grid(ticks(math.ceil(low), math.floor(high), 4, whole=True)),
        panel.axis(ticks(*panel.xs, place.ticks, whole=True), unit="round"),
        _curves(panel, points),
        panel.dots(((p.round, p.twin) for p in points), "twin", 3.6),
        panel.dots(((p.round, p.released) for p in points), "with", 1.9),
        panel.upright(story.erased_at, "erasure"),
        text(x - 8, panel.top + 14, f"customer {story.customer}", "strong", "end"),
        text(x - 8, panel.top + 31, "erased", "strong", "end"),
        text(x + 8, panel.bottom - 14, "one line from here", "strong same-text"),
        text(panel.left + 8, min(panel.y(below) + 24, panel.bottom - 8), "twin, without", "strong twin-text"),
        text(panel.left + 8, panel.y(above) - 14, f"with customer {story.customer}", "strong with-text"),
    )


def _differences(story: Story, place: _Place) -> Markup:
    largest = max(1.0, *(value for _, value in story.differences))
    ys = (-0.05 * largest, largest * 1.12)
    panel = Panel(place.left, place.top, place.width, place.height, (1, story.rounds), ys)
    before = [change for change in story.differences if change[0] < story.erased_at]
    corners = [*steps(before, story.erased_at), (story.erased_at, 0.0)]
    middle, floor = panel.x((story.erased_at + story.rounds) / 2), panel.y(0)
    last = orders(round(before[-1][1]))
    return joined(
        place.heading("Difference of the two, in orders"),
        panel.grid(ticks(0, largest, 4, whole=True)),
        panel.axis(_rounds(story, place), unit="round"),
        panel.area(corners, [(x, 0.0) for x, _ in corners], "fill"),
        panel.line(corners, "with"),
        panel.upright(story.erased_at, "erasure"),
        panel.line([(story.erased_at, 0), (story.rounds, 0)], "same"),
        text(panel.x(story.erased_at) - 8, panel.y(largest) - 8, last, "strong with-text", "end"),
        text(middle, floor - 46, "exactly 0", "strong same-text", "middle"),
        text(middle, floor - 29, f"in all {story.later:,}", "note", "middle"),
        text(middle, floor - 13, "later rounds", "note", "middle"),
    )


def _rounds(story: Story, place: _Place) -> list[float]:
    """Ticks for all rounds, the first one included."""
    return [1, *(t for t in ticks(1, story.rounds, place.ticks, whole=True) if t > 0.06 * story.rounds)]


def _curves(panel: Panel, points: tuple[PublishedCount, ...]) -> Markup:
    return joined(
        panel.area([(p.round, p.high) for p in points], [(p.round, p.low) for p in points], "band"),
        panel.line(((p.round, p.twin) for p in points), "twin thick"),
        panel.line(((p.round, p.released) for p in points), "with"),
        panel.line(((p.round, p.true) for p in points), "truth"),
    )


def countries(story: Story) -> Markup:
    """Orders by country, published, against the truth."""
    words = "{}: published {}, 95 % interval {}, true {}"
    description = "; ".join(words.format(*line.cells) for line in story.countries)
    height = 60 + ROW * len(story.countries) + 50
    return joined(
        picture("countries-wide", 960, height, COUNTRIES, description, _bars(story, 46, 840, 8)),
        picture("countries-narrow", 400, height, COUNTRIES, description, _bars(story, 34, 306, 4)),
    )


def _bars(story: Story, left: float, width: float, about: int) -> Markup:
    lines = story.countries
    low, high = min(0.0, *(line.low for line in lines)), max(max(line.high, line.true) for line in lines)
    panel = Panel(left, 44, width, ROW * len(lines), (low, high), (0, len(lines)))
    across = ticks(low, high, about, whole=True)
    entries: list[Entry] = [
        ("area", "bar", "published"),
        ("line", "whisker", "95 % interval"),
        ("mark", "mark", "true (demo)"),
    ]
    return joined(
        legend(entries, 0, 4, left + width + 60)[0],
        *(panel.upright(tick, "zero" if tick == 0 else "grid") for tick in across),
        panel.axis(across, unit=f"orders, in round {story.rounds:,}"),
        *(_bar(panel, panel.top + (row + 0.5) * ROW, line) for row, line in enumerate(lines)),
    )


def _bar(panel: Panel, y: float, line: Line) -> Markup:
    zero, end, low, high, true = (panel.x(v) for v in (0, line.value or 0.0, line.low, line.high, line.true))
    title = "{}: published {} ({}), true {}".format(*line.cells)
    return joined(
        text(panel.left - 10, y + 5, line.label, "strong", "end"),
        rectangle(min(zero, end), y - 10, abs(end - zero), 20, "bar", title),
        segment(low, y, high, y, "whisker"),
        segment(low, y - 5, low, y + 5, "whisker"),
        segment(high, y - 5, high, y + 5, "whisker"),
        segment(true, y - 13, true, y + 13, "mark"),
        text(max(high, true) + 9, y + 5, line.show(line.value), "note"),
    )
