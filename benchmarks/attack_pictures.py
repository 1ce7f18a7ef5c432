"""Pictures of the attacks, each a file of its own in plain SVG text: for a page on what retraining gives away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from retraining import Averaged, Tables
from retroact.report.axes import XY, Panel
from retroact.report.svg import document, rectangle, segment, text

WIDTH = 930
STYLE = """
text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 13px; fill: #333 }
.title { font-size: 17px; font-weight: 600; fill: #111 } .panel { font-size: 14px; font-weight: 600 }
.small, .tick, .unit { font-size: 12px; fill: #666 } .note { font-size: 12.5px; fill: #444 }
.grid { stroke: #e6e6e6 } .zero, .axis { stroke: #888 } .line { fill: none; stroke-width: 2.2; stroke-linejoin: round }
.dots { stroke-linecap: round } .first { stroke: #f3b58f } .second { stroke: #dd7a3c } .third { stroke: #9a3412 }
.limit { stroke: #777; stroke-dasharray: 6 4; stroke-width: 1.6 } .coin { stroke: #aaa; stroke-dasharray: 2 4 }
.pointer { stroke-width: 1 } .bad { stroke: #c2410c } .kept { stroke: #8a5fb0 } .own { stroke: #1d4e89 }
.yes { fill: #1d4e89 } .no { fill: #e8b04a } .wrong { fill: #b91c1c; font-weight: 700 } .right { fill: #2a7d4f }
""".strip()
FRACTIONS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def transition_picture(
    lines: Mapping[int, Sequence[XY]], allowed: float, marks: Sequence[tuple[str, str, float, float]]
) -> str:
    """Bits recovered against the error of an answer over sqrt(n), a line for each n; a mark is a release of a kind
    ("bad" or "own") with its name, that ratio and the fraction of bits that it gave away.

    >>> transition_picture({32: [(0.1, 1.0), (1.0, 0.6)]}, 0.73, [("own", "a stream", 7.5, 0.5)])[:4]
    '<svg'
    """
    panel = Panel(64, 100, 620, 340, (math.log10(0.05), 1), (0.4, 1.02))
    kinds = ("first", "second", "third")
    body = [
        *_head("Secret bits recovered from distinct counts, by the error of the counts", 64),
        text(64, 56, "n secret bits, 4n queries, linear program; Gaussian errors of c√n on every count", "small"),
        *_axes(panel, [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10], "c: standard error of a count, over √n", logarithmic=True),
        panel.line([(panel.xs[0], allowed), (panel.xs[1], allowed)], "limit"),
        text(panel.left + 6, panel.y(allowed) - 6, f"ε = 1 allows {allowed:.1%} on average", "note"),
        panel.line([(panel.xs[0], 0.5), (panel.xs[1], 0.5)], "coin"),
        text(panel.left + 6, panel.y(0.5) - 6, "coin tossing", "note"),
    ]
    left = 64.0
    for kind, (n, line) in zip(kinds, lines.items(), strict=False):
        points = [(math.log10(c), fraction) for c, fraction in line]
        body += [panel.line(points, kind), panel.dots(points, kind, 2.6), *_key(left, 80, kind, f"n = {n}")]
        left += 110
    for (kind, name, ratio, fraction), y in zip(marks, _apart([panel.y(m[3]) for m in marks]), strict=True):
        place = (math.log10(ratio), fraction)
        pointer = segment(panel.x(place[0]) + 7, panel.y(fraction), panel.right + 10, y, f"pointer {kind}")
        body += [
            panel.dots([place], kind, 5),
            pointer,
            *_beside(panel, y, name, f"c = {ratio:.2f}: {fraction:.0%} recovered"),
        ]
    ends = ", ".join(f"n = {n}: {line[0][1]:.0%} at c = {line[0][0]:g}" for n, line in lines.items())
    said = ends + "; " + "; ".join(f"{name}: {fraction:.0%}" for _, name, _, fraction in marks)
    return _document(500, "Phase transition of reconstruction", said, body)


def differencing_picture(tables: Tables, *, index: int = 0) -> str:
    """One deleted record: what its deletion changes in the exact table of counts, and in that of a stream."""
    deleted = tables.deleted[index]
    changes = [np.diff(table, axis=0)[index] for table in (tables.exact, tables.published)]
    body = [
        *_head("A table of counts before and after one deletion: what changed", 64),
        text(64, 56, "yes less no on 20 questions, after less before; a bar below zero is read as a yes", "small"),
        *_swatch(64, 80, "yes", "the deleted person had said yes"),
        *_swatch(330, 80, "no", "the deleted person had said no"),
    ]
    hits = []
    for left, name, change in ((64, "Exact retraining", changes[0]), (520, "Stream, ε = 1", changes[1])):
        reach = float(np.abs(change).max())
        unit = 1.0 if reach <= 1 else 10 ** math.floor(math.log10(reach))
        panel = Panel(left, 130, 380, 230, (0, len(deleted)), (-1.15 * reach, 1.15 * reach))
        right = (change < 0) == (deleted > 0)
        hits.append(int(right.sum()))
        body += [text(left, 116, f"{name}: {hits[-1]} of {len(deleted)} answers read right", "panel")]
        steps = [tick * unit for tick in range(-int(reach / unit), int(reach / unit) + 1)]
        body.append(panel.grid([step for step in steps if len(steps) < 12 or not step or abs(step) % (5 * unit) == 0]))
        for place, (value, answer, ok) in enumerate(
            zip(change.tolist(), deleted.tolist(), right.tolist(), strict=True)
        ):
            top, bottom = panel.y(max(value, 0)), panel.y(min(value, 0))
            body.append(rectangle(panel.x(place + 0.15), top, panel.width / len(deleted) * 0.7, bottom - top,
                                  "yes" if answer > 0 else "no"))  # fmt: skip
            body.append(text(panel.x(place + 0.5), panel.bottom + 18, "✓" if ok else "✗", "right" if ok else "wrong",
                             "middle"))  # fmt: skip
        body.append(text((panel.left + panel.right) / 2, panel.bottom + 42, "question", "unit", "middle"))
    said = f"Read right: {hits[0]} of {len(deleted)} after exact retraining, {hits[1]} from the stream."
    return _document(420, "Differencing one deletion", said, body)


def deletions_picture(rows: Sequence[Averaged], allowed: float) -> str:
    """The others' bits, recovered by averaging over releases, against the number of the attacker's own deletions."""
    most = rows[-1].deletions
    panel = Panel(64, 100, 620, 300, (0, math.log10(most + 1)), (0.4, 1.02))
    places = [math.log10(row.deletions + 1) for row in rows]
    body = [
        *_head("An attacker deletes records of their own, and sees those of the others", 64),
        text(64, 56, "each deletion triggers a new release of random queries, (1, 10⁻⁶)-private by itself", "small"),
        *_axes(panel, [row.deletions for row in rows], "deletions of the attacker's own records (scale of 1 + number)",
               logarithmic=True, shift=1),
        panel.line([(0, allowed), (panel.xs[1], allowed)], "limit"),
        text(panel.left + 6, panel.y(allowed) - 6, f"ε = 1 allows {allowed:.1%} on average", "note"),
        panel.line([(0, 0.5), (panel.xs[1], 0.5)], "coin"),
    ]  # fmt: skip
    series = {
        "bad": ("fresh noise in every release", [row.fresh for row in rows]),
        "kept": ("the first noise kept", [row.kept for row in rows]),
        "own": ("a stream, ε = 1 for all releases", [row.stream for row in rows]),
    }
    heights = _apart([panel.y(values[-1]) for _, values in series.values()])
    for (kind, (name, values)), y in zip(series.items(), heights, strict=True):
        points = list(zip(places, values, strict=True))
        body += [panel.line(points, kind), panel.dots(points, kind, 3)]
        body += _beside(panel, y, name, f"{values[-1]:.0%} recovered")
    said = f"After {most} deletions: " + ", ".join(f"{name} {values[-1]:.0%}" for name, values in series.values())
    return _document(460, "Recovered bits against deletions", said, body)


def _axes(panel: Panel, across: Sequence[float], unit: str, *, logarithmic: bool, shift: int = 0) -> list[Markup]:
    out = []
    for tick in FRACTIONS:
        y = panel.y(tick)
        out += [
            segment(panel.left, y, panel.right, y, "grid"),
            text(panel.left - 8, y + 4, f"{tick:.0%}", "tick", "end"),
        ]
    out.append(segment(panel.left, panel.bottom, panel.right, panel.bottom, "axis"))
    for tick in across:
        x = panel.x(math.log10(tick + shift) if logarithmic else tick)
        out.append(segment(x, panel.bottom, x, panel.bottom + 5, "axis"))
        out.append(text(x, panel.bottom + 20, f"{tick:g}", "tick", "middle"))
    out.append(text((panel.left + panel.right) / 2, panel.bottom + 42, unit, "unit", "middle"))
    return out


def _apart(heights: Sequence[float], least: float = 38) -> list[float]:
    """Heights of labels, from above: those that would touch move down.

    >>> _apart([10, 20, 100])
    [10, 48, 100]
    """
    out: list[float] = []
    for height in heights:
        out.append(max(height, out[-1] + least) if out else height)
    return out


def _beside(panel: Panel, y: float, name: str, more: str) -> list[Markup]:
    return [text(panel.right + 14, y + 4, name, ""), text(panel.right + 14, y + 20, more, "small")]


def _head(title: str, left: float) -> list[Markup]:
    return [text(left, 34, title, "title")]


def _key(x: float, y: float, kind: str, label: str) -> list[Markup]:
    return [segment(x, y - 4, x + 26, y - 4, f"line {kind}"), text(x + 33, y, label, "")]


def _swatch(x: float, y: float, kind: str, label: str) -> list[Markup]:
    return [rectangle(x, y - 10, 12, 12, kind), text(x + 19, y, label, "")]


def _document(height: int, title: str, description: str, body: Sequence[Markup]) -> str:
    return str(document(WIDTH, height, title, description, STYLE, Markup("").join(body))) + "\n"
