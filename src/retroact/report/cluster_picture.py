"""Centres as a picture in plain SVG: discs sized by weight, in a plane of two columns, or on a line for one."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from ..arrays import F64
from ..errors import InputError
from .axes import Panel, dots, number, ticks
from .page import style
from .svg import digits, document, element, joined, path, text

Size = tuple[float, float]
Clusters = Any
"""`statistics.Centres`, which this package lies below."""

WIDTH, LEFT, TOP, MOST_POINTS = 720, 76, 88, 4000
PLANE, LINE = (620.0, 410.0), (620.0, 170.0)
# Shares: the largest disc with its ring, of the width; all discs, of the area; the margin, of what is shown.
BIGGEST, SHARE, MARGIN = 0.038, 0.05, 0.12
# The whole ball is shown if it is at most ROOMY times wider than the rest; a side UNEVEN times shorter is stretched.
ROOMY, UNEVEN = 1.4, 12.0
# Discs of at least this radius have their number inside; where labels go relative to their discs, best place first.
INSIDE = 9.0
ASIDE = ((1, 0), (-1, 0), (0, -1), (0, 1), (0.9, -0.8), (-0.9, -0.8), (0.9, 0.8), (-0.9, 0.8), (0, -1.6), (0, 1.6))
# Distinguishable for most people with colour blindness.
PALETTE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#8a8a2e", "#332288", "#777777"
LIGHT = "#cc79a7", "#e69f00", "#56b4e9"


@dataclass(frozen=True, eq=False)
class Viewport:
    """The window of a panel: its size in pixels, the columns along its sides, where they start, and units per pixel."""

    size: Size
    axes: list[int]
    names: list[str]
    scale: F64
    start: F64
    step: F64

    @property
    def panel(self) -> Panel:
        """With the upper left corner at (0, 0)."""
        sides = [(s, s + d * long) for s, d, long in zip(self.start, self.step, self.size, strict=False)]
        return Panel(0, 0, *self.size, sides[0], sides[1] if len(sides) == 2 else (-1.0, 1.0))

    def place(self, points: F64) -> F64:
        """Points in pixels; on a line, all at half the height."""
        along = (points[:, self.axes] - self.start) / self.step
        up = along[:, 1] if len(self.axes) == 2 else np.full(len(along), self.size[1] / 2)
        return np.column_stack([along[:, 0], self.size[1] - up])


def drawn(found: Clusters, points: F64 | None, axes: Sequence[int]) -> str:
    """A complete picture.

    >>> from retroact.statistics.clusters.centres import Centres
    >>> found = Centres(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([10.0, 5.0]), columns=("x", "y"))
    >>> drawn(found, None, (0, 1)).count('class="disc"')
    2
    """
    count = 0 if points is None else min(len(points), MOST_POINTS)
    shown = None if points is None else points[np.arange(count) * len(points) // max(1, count)]
    view = viewed(found, shown, axes)
    title = f"{len(found)} centre{'' if len(found) == 1 else 's'} by k-{found.objective.replace('medians', 'median')}"
    cost = "" if found.cost is None else f"; cost {number(found.cost, found.cost_error)}"
    caption = f"about {number(max(0, round(found.records)))} records{cost}"
    body = [
        text(LEFT, 30, title, "title"),
        text(LEFT, 50, caption),
        moved(LEFT, TOP, panel(found, shown, view, unit_of(found, view.size))),
    ]
    height = TOP + view.size[1] + 64
    own = [] if points is None else [f"dots: {count:,} of {len(points):,} points of your own, which are not private"]
    for look, lines in (("", own + _remarks(found, view)), ("warning", found.notes)):
        for part in (part for line in lines for part in textwrap.wrap(line, 100)):
            body.append(text(LEFT, height, part, look))
            height += 18
    words = "; ".join(_in_words(found, view, i) for i in range(len(found)))
    return str(document(WIDTH, height, title, words, style("centres.css"), joined(*body), "centres"))


def moved(x: float, y: float, body: Markup) -> Markup:
    return element("g", body, transform=f"translate({x} {y})")


def panel(found: Clusters, points: F64 | None, view: Viewport, unit: float, colours: Sequence[str] = PALETTE) -> Markup:
    """Axes, the ball, points and centres, from (0, 0) on; ``unit`` is the radius of a disc of weight 1, in pixels."""
    wide, high = view.size
    own = Markup("") if points is None else _dots(found, points, view, colours)
    return joined(
        # an inner picture is clipped at its frame, and needs no id, which could clash on a page
        element("svg", _ball(found, view), own, width=wide, height=high),
        _sides(view),
        element("rect", class_="frame", width=wide, height=high),
        _discs(found, view, unit, colours),
    )


def viewed(found: Clusters, points: F64 | None, axes: Sequence[int], size: Size | None = None) -> Viewport:
    """All centres and points; the ball too, if it is not much larger, or if nothing else sets the scale."""
    which, names = _columns(found, axes)
    size, radius = size or (LINE if len(which) == 1 else PLANE), found.radius or 0.0
    room, scale = np.array(size[: len(which)]), np.ones(len(which)) if found.scale is None else found.scale[which]
    shown = np.vstack([found.centres, *([] if points is None else [points])])[:, which] / scale
    spread = np.ptp(shown, axis=0) if len(shown) else 0 * room
    near = 2 * radius < ROOMY * spread.max() < ROOMY * UNEVEN * spread.min()
    if found.centre is not None and (near or spread.max() <= 1e-6 * radius):
        shown = np.vstack([shown, found.centre[which] / scale - radius, found.centre[which] / scale + radius])
    low, high = (shown.min(axis=0), shown.max(axis=0)) if len(shown) else (0 * room, 0 * room)
    step = (high - low) * (1 + 2 * MARGIN) / room
    widest = float(step.max()) or max(1.0, float(np.abs(low).max())) / size[0]
    # To scale, unless everything would lie in a thin strip.
    step = np.where((step > 0) & (step * UNEVEN < widest), step, widest)
    return Viewport(size, which, names, scale, (low + high - step * room) / 2 * scale, step * scale)


def _columns(found: Clusters, axes: Sequence[int]) -> tuple[list[int], list[str]]:
    dimension = found.centres.shape[1]
    which = [0] if dimension == 1 and axes == (0, 1) else list(axes) if np.iterable(axes) else []
    if len(which) not in (1, 2) or len(set(which)) < len(which) or not set(which) <= set(range(dimension)):
        raise InputError(f"expected one or two different numbers from 0 to {dimension - 1}, got {axes!r}", place="axes")
    names = found.columns if len(found.columns) == dimension else [f"{found.columns[0]}[{i}]" for i in range(dimension)]
    # Unprintable characters have no place in a picture.
    return which, ["".join(c if c.isprintable() else "\ufffd" for c in names[i]) for i in which]


def unit_of(found: Clusters, size: Size) -> float:
    """The radius of a disc of weight 1 for which the largest disc with its ring, and all together, leave room."""
    weights = np.maximum(found.weights, 0.0)
    largest = float(weights.max(initial=1e-9)) + float(found.weight_errors.max(initial=0.0))
    share = SHARE * size[0] * size[1] / (math.pi * max(float(weights.sum()), 1e-9))
    return min(BIGGEST * size[0] / math.sqrt(largest), math.sqrt(share))


def _ball(found: Clusters, view: Viewport) -> Markup:
    """The outline of the ball; nothing if no part of it is in view."""
    if found.centre is None or found.radius is None:
        return Markup("")
    (x, y), size, reach = view.place(found.centre[None])[0], view.size, found.radius * view.scale / view.step
    nearest = np.array([min(max(x, 0), size[0]) - x, min(max(y, 0), size[1]) - y])[: len(reach)] / reach
    farthest = np.array([max(x, size[0] - x), max(y, size[1] - y)])[: len(reach)] / reach
    if not (nearest**2).sum() <= 1 <= (farthest**2).sum():
        return Markup("")
    if len(reach) == 1:
        left, right = digits(x - reach[0]), digits(x + reach[0])
        return path(f"M{left} -1H{right}V{digits(size[1] + 1)}H{left}Z", "ball")
    return element("ellipse", class_="ball", cx=x, cy=y, rx=reach[0], ry=reach[1])


def _dots(found: Clusters, points: F64, view: Viewport, colours: Sequence[str]) -> Markup:
    """One path per centre; on a line the points are spread over the height by their numbers."""
    places = view.place(points)
    if len(view.axes) == 1:
        places[:, 1] += (np.arange(len(points)) * 0.618034 % 1 - 0.5) * 0.8 * view.size[1]
    labels = found.predict(points) if len(found) else np.full(len(points), -1)
    return joined(
        *(
            dots(places[labels == one].tolist(), "dots", stroke=colours[one % len(colours)])
            for one in np.unique(labels).tolist()
        )
    )


def _sides(view: Viewport) -> Markup:
    """Axes with round values and the names of the columns."""
    panel, names = view.panel, [name if len(name) <= 60 else name[:59] + "…" for name in view.names]
    across = ticks(*panel.xs, max(2, round(panel.width / 75)))
    out = joined(*(panel.upright(tick, "grid") for tick in across), panel.axis(across, unit=names[0]))
    if len(names) == 2:
        out += panel.grid(ticks(*panel.ys, max(2, round(panel.height / 50)))) + text(0, -8, names[1])
    return out


def _discs(found: Clusters, view: Viewport, unit: float, colours: Sequence[str]) -> Markup:
    """The heaviest first, so that none is hidden; labels over all of them."""
    places, radii = view.place(found.centres), unit * np.sqrt(np.maximum(found.weights, 0.0))
    taken, discs, labels = np.hstack([places - radii[:, None], places + radii[:, None]]), [], []
    for i in np.argsort(-radii, kind="stable").tolist():
        (x, y), r, colour = places[i].tolist(), float(radii[i]), colours[i % len(colours)]
        words = element("title", _in_words(found, view, i))
        discs.append(element("circle", words, class_="disc", cx=x, cy=y, r=r, fill=colour))
        inside = r >= INSIDE
        if inside:
            labels.append(text(x, y + 4, str(i + 1), "dark" if colour in LIGHT else "bright", "middle"))
        label = ("" if inside else f"{i + 1}: ") + f"{found.weights[i]:,.0f}".replace("-", "−")
        if len(found.weight_errors):
            r = max(r, unit * math.sqrt(max(0.0, float(found.weights[i] + found.weight_errors[i]))))
            discs.append(element("circle", class_="ring", cx=x, cy=y, r=r, stroke=colour))
        taken = np.vstack([taken, _free_place((x, y), r, 6.8 * len(label), view.size, taken)])
        labels.append(text(taken[-1, 0], taken[-1, 3] - 4, label, "halo"))
    return joined(*discs, *labels)


def _free_place(middle: Size, r: float, wide: float, size: Size, taken: F64) -> F64:
    """A box for a label next to a disc, where it overlaps the least: left, top, right, bottom."""
    half, middles = np.array([wide / 2, 8.0]), np.array(middle) + np.array(ASIDE) * [r + 4 + wide / 2, r + 9]
    boxes, others = np.hstack([middles - half, middles + half])[:, None], np.vstack([[0, 0, *size], taken])
    common = np.minimum(boxes[..., 2:], others[:, 2:]) - np.maximum(boxes[..., :2], others[:, :2])
    areas = np.maximum(common, 0).prod(axis=2).round()
    return np.asarray(boxes[np.argmin(areas[:, 1:].sum(axis=1) - 3 * areas[:, 0]), 0])


def _remarks(found: Clusters, view: Viewport) -> list[str]:
    """What the picture alone does not show."""
    out = []
    if found.radius is not None and not _ball(found, view):
        out.append(f"ball of radius {number(found.radius)} around the centre, out of view")
    units = view.step / view.scale
    if units.max() > 1.01 * units.min():
        out.append(f"not to scale: distances are mostly along {view.names[int(units.argmax())]}")
    return out


def _in_words(found: Clusters, view: Viewport, i: int) -> str:
    where = (f"{n} {number(float(found.centres[i, axis]))}" for n, axis in zip(view.names, view.axes, strict=True))
    error = float(found.weight_errors[i]) if len(found.weight_errors) else None
    return f"centre {i + 1}: {', '.join(where)}, weight {number(float(found.weights[i]), error)}"
