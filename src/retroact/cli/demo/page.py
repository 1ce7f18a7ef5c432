"""The page that the demo writes: one self-contained file with two pictures and the numbers behind them."""

from __future__ import annotations

from ...report.page import render
from .pictures import countries, history
from .story import Story, amount, orders, tiny

Rows = list[tuple[str, ...]]


def page(story: Story) -> str:
    """Write the page: the same bytes for the same story."""
    return render(
        "demo.html",
        story=story,
        orders=orders,
        tiny=tiny,
        history=history(story),
        countries=countries(story),
        points=_points(story),
        by_country=[line.cells for line in story.countries],
        published=[line.cells for line in story.lines],
        expected=_expected(story),
    )


def _points(story: Story) -> Rows:
    """About ten rounds of the picture, and those around the erasure."""
    step = max(1, len(story.points) // 10)
    return [
        (
            f"{p.round:,}",
            amount(p.released),
            f"{amount(p.low)} to {amount(p.high)}",
            f"{p.true:,}",
            amount(p.twin),
            amount(p.released - p.twin),
        )
        for i, p in enumerate(story.points)
        if i % step == 0 or abs(p.round - story.erased_at + 0.5) < 1
    ]


def _expected(story: Story) -> Rows:
    total, rows = sum(story.plan.weights.values()), []
    for row in story.plan.rows:
        label, prefix, digits = story.names[row.statistic]
        errors = (row.typical_half_width, row.half_width, row.simultaneous)
        shown = ("–" if error is None else f"±{amount(error, digits, prefix)}" for error in errors)
        rows.append((label, *shown, f"{story.plan.weights[row.statistic] / total:.0%}"))
    return rows
