"""Centres as a picture in plain SVG text: discs as large as the weights, in two columns, or on a line for one."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import F64, I64
from ..errors import InputError
from ..escape import markup

Size = tuple[float, float]

WIDTH, LEFT, TOP, MOST_POINTS = 720, 76, 88, 4000
PLANE, LINE = (620.0, 410.0), (620.0, 170.0)
# The largest disc with its ring, of the width; all discs together, of the area; free space, of what is shown.
BIGGEST, SHARE, MARGIN = 0.038, 0.05, 0.12
# The whole ball is shown if it is at most so much wider than the rest; a side that is so much shorter is stretched.
ROOMY, UNEVEN = 1.4, 12.0
# Discs from this radius on have their number inside; where labels go, seen from their discs, the best place first.
INSIDE = 9.0
ASIDE = ((1, 0), (-1, 0), (0, -1), (0, 1), (0.9, -0.8), (-0.9, -0.8), (0.9, 0.8), (-0.9, 0.8), (0, -1.6), (0, 1.6))
# Told apart also by most people who do not see all colours.
PALETTE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#8a8a2e", "#332288", "#777777"
LIGHT = "#cc79a7", "#e69f00", "#56b4e9"
STYLE = """
.centres text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 12px; fill: #666 }
.centres .title { font-size: 17px; font-weight: 600; fill: #111 } .centres .warning { fill: #b45309 }
.centres .ball { fill: #f4f7fb; stroke: #a9bad0 } .centres .grid { stroke: #000; stroke-opacity: .07 }
.centres .frame { fill: none; stroke: #999 } .centres .dots { stroke-width: 2.6; stroke-linecap: round; opacity: .5 }
.centres .disc { fill-opacity: .9; stroke: #fff } .centres .ring { fill: none; stroke-width: 1.2 }
.centres .dark { fill: #111; font-weight: 700 } .centres .bright { fill: #fff; font-weight: 700 }
.centres .halo { fill: #222; stroke: #fff; stroke-width: 3; stroke-linejoin: round; paint-order: stroke }
""".strip()


class Clusters(Protocol):
    """What is drawn: centres by columns, their weights with errors, and the ball that they lie in."""

    @property
    def centres(self) -> F64: ...
    @property
    def weights(self) -> F64: ...
    @property
    def weight_errors(self) -> F64: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def records(self) -> float: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def cost_error(self) -> float | None: ...
    @property
    def objective(self) -> str: ...
    @property
    def centre(self) -> F64 | None: ...
    @property
    def radius(self) -> float | None: ...
    @property
    def scale(self) -> F64 | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def predict(self, points: F64) -> I64: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Viewport:
    """The window of a panel: its size in pixels, the columns along its sides, where they begin, and units a pixel."""

    size: Size
    axes: list[int]
    names: list[str]
    scale: F64
    start: F64
    step: F64

    def place(self, points: F64) -> F64:
        """Pixels from the upper left corner; on a line, all at half the height."""
        along = (points[:, self.axes] - self.start) / self.step
        up = along[:, 1] if len(self.axes) == 2 else np.full(len(along), self.size[1] / 2)
        return np.column_stack([along[:, 0], self.size[1] - up])


def drawn(found: Clusters, points: F64 | None, axes: Sequence[int]) -> str:
    """A picture of its own.

    >>> from retroact.statistics.clusters.centres import Centres
    >>> found = Centres(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([10.0, 5.0]), columns=("x", "y"))
    >>> drawn(found, None, (0, 1)).count('class="disc"')
    2
    """
    count = 0 if points is None else min(len(points), MOST_POINTS)
    shown = None if points is None else points[np.arange(count) * len(points) // max(1, count)]
    view = viewed(found, shown, axes)
    title = f"{len(found)} centre{'' if len(found) == 1 else 's'} by k-{found.objective.replace('medians', 'median')}"
    cost = "" if found.cost is None else f"; cost {_number(found.cost, found.cost_error)}"
    caption = f"about {_number(max(0, round(found.records)))} records{cost}"
    body = [text(LEFT, 30, title, "title"), text(LEFT, 50, caption)]
    body.append(f'<g transform="translate({LEFT} {TOP})">{panel(found, shown, view, unit_of(found, view.size))}</g>')
    height = TOP + view.size[1] + 64
    dots = [] if points is None else [f"dots: {count:,} of {len(points):,} points of your own, which are not private"]
    for look, lines in (("", dots + _remarks(found, view)), ("warning", found.notes)):
        for part in (part for line in lines for part in textwrap.wrap(line, 100)):
            body.append(text(LEFT, height, part, look))
            height += 18
    told = markup("; ".join(_told(found, view, i) for i in range(len(found))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="centres" viewBox="0 0 {WIDTH} {_px(height)}" role="img">'
        f"<title>{title}</title><desc>{told}</desc><style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{_px(height)}" fill="#fff"/>{"".join(body)}</svg>'
    )


def panel(found: Clusters, points: F64 | None, view: Viewport, unit: float, colours: Sequence[str] = PALETTE) -> str:
    """Axes, the ball, points and centres, from (0, 0) on; ``unit`` is the radius of a disc of weight 1, in pixels."""
    size = f'width="{_px(view.size[0])}" height="{_px(view.size[1])}"'
    dots = "" if points is None else _dots(found, points, view, colours)
    # An inner picture ends at its frame, and needs no name that another picture on a page could have as well.
    inner = f"<svg {size}>{_ball(found, view)}{dots}</svg>"
    return f'{inner}{_sides(view)}<rect class="frame" {size}/>{_discs(found, view, unit, colours)}'


def viewed(found: Clusters, points: F64 | None, axes: Sequence[int], size: Size | None = None) -> Viewport:
    """All centres and points; the ball too, if it is not much larger, or if nothing else gives a measure."""
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
    # Distances as the statistic has them, unless all would lie in a thin strip.
    step = np.where((step > 0) & (step * UNEVEN < widest), step, widest)
    return Viewport(size, which, names, scale, (low + high - step * room) / 2 * scale, step * scale)


def _columns(found: Clusters, axes: Sequence[int]) -> tuple[list[int], list[str]]:
    dimension = found.shape[1]
    which = [0] if dimension == 1 and axes == (0, 1) else list(axes) if np.iterable(axes) else []
    if len(which) not in (1, 2) or len(set(which)) < len(which) or not set(which) <= set(range(dimension)):
        raise InputError(f"expected one or two different numbers from 0 to {dimension - 1}, got {axes!r}", place="axes")
    names = found.columns if len(found.columns) == dimension else [f"{found.columns[0]}[{i}]" for i in range(dimension)]
    # What is no letter at all has no place in a picture's text.
    return which, ["".join(c if c.isprintable() else "\ufffd" for c in names[i]) for i in which]


def unit_of(found: Clusters, size: Size) -> float:
    """The radius of a disc of weight 1, so that the largest one with its ring and all of them together leave room."""
    weights = np.maximum(found.weights, 0.0)
    largest = float(weights.max(initial=1e-9)) + float(found.weight_errors.max(initial=0.0))
    share = SHARE * size[0] * size[1] / (math.pi * max(float(weights.sum()), 1e-9))
    return min(BIGGEST * size[0] / math.sqrt(largest), math.sqrt(share))


def _ball(found: Clusters, view: Viewport) -> str:
    """Its outline; nothing if no part of it is in view."""
    if found.centre is None or found.radius is None:
        return ""
    (x, y), size, reach = view.place(found.centre[None])[0], view.size, found.radius * view.scale / view.step
    nearest = np.array([min(max(x, 0), size[0]) - x, min(max(y, 0), size[1]) - y])[: len(reach)] / reach
    farthest = np.array([max(x, size[0] - x), max(y, size[1] - y)])[: len(reach)] / reach
    if not (nearest**2).sum() <= 1 <= (farthest**2).sum():
        return ""
    if len(reach) == 1:
        left, right = _px(x - reach[0]), _px(x + reach[0])
        return f'<path class="ball" d="M{left} -1H{right}V{_px(size[1] + 1)}H{left}Z"/>'
    return f'<ellipse class="ball" cx="{_px(x)}" cy="{_px(y)}" rx="{_px(reach[0])}" ry="{_px(reach[1])}"/>'


def _dots(found: Clusters, points: F64, view: Viewport, colours: Sequence[str]) -> str:
    """One path of round caps for each centre; on a line they are spread over the height, by their numbers."""
    places = view.place(points)
    if len(view.axes) == 1:
        places[:, 1] += (np.arange(len(points)) * 0.618034 % 1 - 0.5) * 0.8 * view.size[1]
    labels, out = found.predict(points) if len(found) else np.full(len(points), -1), ""
    for label in np.unique(labels).tolist():
        path = "".join(f"M{_px(x)} {_px(y)}h0" for x, y in places[labels == label].tolist())
        out += f'<path class="dots" stroke="{colours[label % len(colours)]}" d="{path}"/>'
    return out


def _sides(view: Viewport) -> str:
    """Round values in the columns' units, and the names of the columns."""
    (wide, high), out = view.size, []
    for side, name in enumerate(view.names):
        low, step, length = float(view.start[side]), float(view.step[side]), view.size[side]
        for value, shown in _round_values(low, low + step * length, max(2, round(length / (90, 60)[side]))):
            at = (value - low) / step if side == 0 else high - (value - low) / step
            line = f"M{_px(at)} 0V{_px(high)}" if side == 0 else f"M0 {_px(at)}H{_px(wide)}"
            label = text(at, high + 18, shown, "", "middle") if side == 0 else text(-8, at + 4, shown, "", "end")
            out.append(f'<path class="grid" d="{line}"/>{label}')
        short = name if len(name) <= 60 else name[:59] + "…"
        out.append(text(wide / 2, high + 38, short, "", "middle") if side == 0 else text(0, -8, short))
    return "".join(out)


def _discs(found: Clusters, view: Viewport, unit: float, colours: Sequence[str]) -> str:
    """The heaviest first, so that none is hidden; labels over all of them."""
    places, radii = view.place(found.centres), unit * np.sqrt(np.maximum(found.weights, 0.0))
    taken, discs, labels = np.hstack([places - radii[:, None], places + radii[:, None]]), [], []
    for i in np.argsort(-radii, kind="stable").tolist():
        (x, y), r, colour = places[i].tolist(), float(radii[i]), colours[i % len(colours)]
        at, words = f'cx="{_px(x)}" cy="{_px(y)}"', f"<title>{markup(_told(found, view, i))}</title>"
        discs.append(f'<circle class="disc" {at} r="{_px(r)}" fill="{colour}">{words}</circle>')
        number = text(x, y + 4, str(i + 1), "dark" if colour in LIGHT else "bright", "middle") if r >= INSIDE else ""
        label = ("" if number else f"{i + 1}: ") + f"{found.weights[i]:,.0f}".replace("-", "−")
        if len(found.weight_errors):
            r = max(r, unit * math.sqrt(max(0.0, float(found.weights[i] + found.weight_errors[i]))))
            discs.append(f'<circle class="ring" {at} r="{_px(r)}" stroke="{colour}"/>')
        taken = np.vstack([taken, _free_place((x, y), r, 6.8 * len(label), view.size, taken)])
        labels.append(number + text(taken[-1, 0], taken[-1, 3] - 4, label, "halo"))
    return "".join(discs + labels)


def _free_place(middle: Size, r: float, wide: float, size: Size, taken: F64) -> F64:
    """For a label beside a disc, where the least is in the way: left, top, right, bottom."""
    half, middles = np.array([wide / 2, 8.0]), np.array(middle) + np.array(ASIDE) * [r + 4 + wide / 2, r + 9]
    boxes, others = np.hstack([middles - half, middles + half])[:, None], np.vstack([[0, 0, *size], taken])
    common = np.minimum(boxes[..., 2:], others[:, 2:]) - np.maximum(boxes[..., :2], others[:, :2])
    areas = np.maximum(common, 0).prod(axis=2).round()
    return np.asarray(boxes[np.argmin(areas[:, 1:].sum(axis=1) - 3 * areas[:, 0]), 0])


def _remarks(found: Clusters, view: Viewport) -> list[str]:
    """What the picture does not tell by itself."""
    out = []
    if found.radius is not None and not _ball(found, view):
        out.append(f"ball of radius {_number(found.radius)} around the centre, out of view")
    units = view.step / view.scale
    if units.max() > 1.01 * units.min():
        out.append(f"not to scale: distances are mostly along {view.names[int(units.argmax())]}")
    return out


def _told(found: Clusters, view: Viewport, i: int) -> str:
    """A centre in words."""
    where = (f"{n} {_number(float(found.centres[i, axis]))}" for n, axis in zip(view.names, view.axes, strict=True))
    error = float(found.weight_errors[i]) if len(found.weight_errors) else None
    return f"centre {i + 1}: {', '.join(where)}, weight {_number(float(found.weights[i]), error)}"


def _round_values(low: float, high: float, about: int) -> list[tuple[float, str]]:
    """With their texts."""
    raw = (high - low) / about
    tens = 10.0 ** math.floor(math.log10(raw))
    step = tens * next(m for m in (1, 2, 5, 10) if m * tens >= 0.8 * raw)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    plain = decimals < 7 and max(abs(low), abs(high)) < 1e7
    return [(v, f"{v:,.{decimals}f}".replace("-", "−") if plain else _number(v)) for v in values]


def _number(value: float, error: float | None = None) -> str:
    """For people; with an error, both to two of its digits."""
    top = max(abs(value), error or 0.0)
    if top and not 1e-4 <= top < 1e7:
        power = math.floor(math.log10(top))
        inner = _number(value / 10.0**power, error and error / 10.0**power)
        raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return (f"({inner})" if error else inner) + f" × 10{raised}"
    if not error:
        return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")
    digits = 1 - math.floor(math.log10(error))
    return " ± ".join(f"{round(x, digits):,.{max(0, digits)}f}" for x in (value, error)).replace("-", "−")


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{_px(x)}" y="{_px(y)}" text-anchor="{anchor}">{markup(content)}</text>'


def _px(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
