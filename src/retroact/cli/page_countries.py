"""The second picture: orders by country, published, against the truth."""

from __future__ import annotations

from ..report.svg import Panel, picture, rectangle, segment, text, ticks
from .page_story import Story, amount

TITLE = "Orders by country: published, with 95 % intervals, and true"
ROW = 34.0


def countries(story: Story) -> str:
    description = "; ".join(
        f"{line.label}: published {line.show(line.value)}, 95 % interval {line.interval}, true {line.show(line.true)}"
        for line in story.countries
    )
    height = 60 + ROW * len(story.countries) + 50
    wide = picture("countries-wide", 960, height, TITLE, description, _bars(story, 46, 840, 8))
    narrow = picture("countries-narrow", 400, height, TITLE, description, _bars(story, 34, 306, 4))
    return wide + narrow


def _bars(story: Story, left: float, width: float, about: int) -> str:
    lines = story.countries
    low, high = min(0.0, *(line.low for line in lines)), max(max(line.high, line.true) for line in lines)
    top, height = 44.0, ROW * len(lines)
    panel = Panel(left, top, width, height, (low, high), (0, len(lines)))
    out = [_legend()]
    for tick in ticks(low, high, about):
        x = panel.x(tick)
        out.append(segment(x, top, x, panel.bottom, "zero" if tick == 0 else "grid"))
        out.append(text(x, panel.bottom + 20, amount(tick), "tick", "middle"))
    out.append(text(left + width / 2, panel.bottom + 40, f"orders, in round {story.rounds:,}", "unit", "middle"))
    for row, line in enumerate(lines):
        y = top + (row + 0.5) * ROW
        value = line.value or 0.0
        zero, end = panel.x(0), panel.x(value)
        title = f"{line.label}: published {line.show(line.value)} ({line.interval}), true {line.show(line.true)}"
        out.append(text(left - 10, y + 5, line.label, "strong", "end"))
        out.append(rectangle(min(zero, end), y - 10, abs(end - zero), 20, "bar", title))
        out.append(segment(panel.x(line.low), y, panel.x(line.high), y, "whisker"))
        for x in (panel.x(line.low), panel.x(line.high)):
            out.append(segment(x, y - 5, x, y + 5, "whisker"))
        out.append(segment(panel.x(line.true), y - 13, panel.x(line.true), y + 13, "mark"))
        out.append(text(panel.x(max(line.high, line.true)) + 9, y + 5, line.show(line.value), "note"))
    return "".join(out)


def _legend() -> str:
    x, y = 0.0, 18.0
    bar = rectangle(x, y - 10, 22, 12, "bar") + text(x + 29, y, "published", "note")
    x += 108
    whisker = segment(x, y - 4, x + 22, y - 4, "whisker") + text(x + 29, y, "95 % interval", "note")
    x += 132
    mark = segment(x + 4, y - 12, x + 4, y + 3, "mark") + text(x + 13, y, "true (demo)", "note")
    return bar + whisker + mark
