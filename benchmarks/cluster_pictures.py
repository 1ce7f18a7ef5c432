"""Pictures of k-means over a stream that drifts: one source erased, beside its twin; and the centres over the rounds.

python benchmarks/cluster_pictures.py [FOLDER]

Writes clusters.svg and drift.svg into the folder, if one is given, and prints how far the private centres are from the
means of the surviving records. The records are made up, so they may be shown.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from markupsafe import Markup

import retroact as ra
from retroact.arrays import F64, I64
from retroact.report.axes import dots
from retroact.report.cluster_picture import PALETTE, Viewport, moved, panel, unit_of, viewed
from retroact.report.page import style
from retroact.report.svg import document as drawing
from retroact.report.svg import joined, text
from retroact.statistics.clusters.centres import Centres

EPSILON, DELTA, HORIZON = 1.0, 1e-6, 63
BUDGET = "ε = 1, δ = 10⁻⁶ for all 63 rounds"
# Records of each source; in every round one of so many reports a new place, which replaces the old one.
SIZES, EVERY = (5200, 4600, 4000, 3400, 2800), 4
# Four of them go round the fifth, by so many degrees in all.
RING, TURN = 6.3, 160
RADIUS, SPREAD = 10, 0.9
GONE, ERASED = 4, 32
NAME = f"source {GONE + 1}"
# Points and rounds that are drawn, and how far a trail goes back.
SHOWN, MARKED, TRAIL = 1000, (8, 16, 31, 32, 48, 63), 20
SPARE = "#777777"
GIVEN = "Colours and numbers were given here, by the nearest source; a centre that is left over is grey."
DOTS = "Small dots: some of the records (made up)."


@dataclass(frozen=True)
class Moment:
    """A round of a stream: what it published, and the surviving records with their sources."""

    release: ra.Release
    points: F64
    sources: I64

    @property
    def means(self) -> F64:
        return np.array([self.points[self.sources == source].mean(axis=0) for source in np.unique(self.sources)])

    @property
    def found(self) -> tuple[Centres, list[str]]:
        """The centres in the order of the sources that they are nearest to, with colours; those left over come last."""
        found = self.release.value
        distances = np.linalg.norm(found.centres[:, None] - self.means, axis=2)
        order: dict[int, int] = {}
        for centre, source in zip(*np.unravel_index(np.argsort(distances, axis=None), distances.shape), strict=True):
            if centre not in order.values() and source not in order:
                order[source] = centre
        names = sorted(order)
        which = [order[name] for name in names]
        spare = [centre for centre in range(len(found)) if centre not in which]
        colours = [PALETTE[np.unique(self.sources)[name]] for name in names] + [SPARE] * len(spare)
        mine = [found.centres, found.weights, found.weight_errors]
        centres, weights, errors = (part[which + spare] for part in mine)
        return replace(found, centres=centres, weights=weights, weight_errors=errors), colours

    @property
    def apart(self) -> tuple[float, float]:
        """The largest distance of a centre from the nearest mean of a source, and of such a mean from a centre."""
        distances = np.linalg.norm(self.release.value.centres[:, None] - self.means, axis=2)
        return float(distances.min(axis=1).max()), float(distances.min(axis=0).max())


def middles(now: int) -> F64:
    """Where the sources are in a round."""
    angles = np.deg2rad(np.array([200.0, 290.0, 110.0, 20.0]) + TURN * (now - 1) / (HORIZON - 1))
    ring = RING * np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([ring, [1.5 - 3 * now / HORIZON, 1.0]])


def rounds(twin: bool) -> Iterator[Moment]:
    """A stream that erases a source, or its twin, which never had it; the same key, and the same other records."""
    stream = ra.Stream(
        {"x": ra.Number(-RADIUS, RADIUS, step=0.01), "y": ra.Number(-RADIUS, RADIUS, step=0.01)},
        {"centres": ra.KMeans(["x", "y"], len(SIZES), RADIUS, clip=True, expected=sum(SIZES))},
        epsilon=EPSILON,
        delta=DELTA,
        horizon=HORIZON,
        key=ra.Key.for_testing(5),
    )
    rng = np.random.default_rng(2)
    sources = np.repeat(np.arange(len(SIZES)), SIZES)
    points = np.zeros((len(sources), 2))
    for now in range(1, HORIZON + 1):
        places = np.clip(middles(now)[sources] + SPREAD * rng.standard_normal(points.shape), -RADIUS, RADIUS)
        reports = np.ones(len(sources), dtype=bool) if now == 1 else rng.random(len(sources)) < 1 / EVERY
        present = sources != GONE if twin or now >= ERASED else np.ones(len(sources), dtype=bool)
        points = np.where(reports[:, None], places, points)
        own = np.flatnonzero(reports & present)
        stream.add(
            {"x": places[own, 0], "y": places[own, 1]},
            id=[f"thing {i}" for i in own],
            subject=[f"source {source + 1}" for source in sources[own]],
        )
        if now == ERASED and not twin:
            stream.erase(subject=NAME)
        yield Moment(stream.close_round()["centres"], points[present], sources[present])


def told() -> tuple[list[Moment], list[Moment]]:
    """Both streams, after it is checked that from the erasure on they publish the same bytes."""
    warnings.simplefilter("ignore", ra.HorizonWarning)
    own, twin = list(rounds(False)), list(rounds(True))
    same = [a.release.encode() == b.release.encode() for a, b in zip(own, twin, strict=True)]
    if not all(same[ERASED - 1 :]) or any(same[: ERASED - 1]):
        raise ra.VerificationError("the streams do not unite in the round of the erasure: the picture would be false")
    return own, twin


def document(size: tuple[int, int], title: str, description: str, body: list[Markup]) -> str:
    return str(drawing(*size, title, description, style("centres.css"), joined(*body), "centres")) + "\n"


def few(points: F64) -> F64:
    """Evenly by their numbers."""
    return points[:: -(-len(points) // SHOWN)]


# Before, after, and the twin -----------------------------------------------------------------------------------------

SIZE, LEFT, APART = (258.0, 258.0), 54, 298


def draw_clusters(own: list[Moment], twin: list[Moment]) -> str:
    before, after, other = own[ERASED - 2], own[ERASED - 1], twin[ERASED - 1]
    view, unit = frame(before)
    panels = [
        (before, f"Round {ERASED - 1}, before the erasure", "five sources"),
        (after, f"Round {ERASED}, {NAME} is erased", "four sources"),
        (other, f"Round {ERASED}, the twin without {NAME}", "the same bytes"),
    ]
    body = [
        text(LEFT, 34, "Private centres of a stream that drifts, before and after one source is erased", "title"),
        text(LEFT, 54, f"k-means with k = {len(SIZES)}, {BUDGET}; a disc is as large as the private weight beside it"),
    ]
    for number, (moment, heading, words) in enumerate(panels):
        (found, colours), left = moment.found, LEFT + number * APART
        body += [
            text(left, 90, heading, "dark"),
            moved(left, 118, panel(found, few(moment.points), view, unit, colours)),
            text(left, 438, f"about {found.records:,.0f} records, {words}"),
        ]
    body += [
        text(
            LEFT, 466, f"From round {ERASED} on, each release of the stream is, byte for byte, that of the twin. {DOTS}"
        ),
        text(LEFT, 484, GIVEN),
    ]
    description = "; ".join(f"{heading}: {in_words(moment)}" for moment, heading, _ in panels)
    return document((930, 502), "Centres before and after an erasure, and those of the twin", description, body)


def frame(moment: Moment) -> tuple[Viewport, float]:
    """One view, and one measure of discs, for all panels."""
    found = moment.found[0]
    return viewed(found, few(moment.points), (0, 1), SIZE), 1.5 * unit_of(found, SIZE)


def in_words(moment: Moment) -> str:
    found = moment.found[0]
    places = zip(found.centres, found.weights, strict=True)
    return ", ".join(f"({x:.1f}, {y:.1f}) with weight {weight:,.0f}" for (x, y), weight in places)


# Drift ---------------------------------------------------------------------------------------------------------------


def draw_drift(own: list[Moment]) -> str:
    view, unit = frame(own[0])
    body = [
        text(LEFT, 34, "Private centres follow the drift", "title"),
        text(
            LEFT,
            54,
            f"k-means with k = {len(SIZES)}, {BUDGET}; dark dots: where a centre was in the {TRAIL} rounds before",
        ),
    ]
    for number, now in enumerate(MARKED):
        (found, colours), points = own[now - 1].found, few(own[now - 1].points)
        left, top = LEFT + number % 3 * APART, 118 + number // 3 * 348
        panels = panel(found, points, view, unit, colours) + trails(own, now, view, unit)
        body += [
            text(left, top - 28, f"Round {now}" + (f": {NAME} is erased" if now == ERASED else ""), "dark"),
            moved(left, top, panels),
        ]
    body.append(text(LEFT, 784, f"{GIVEN} {DOTS}"))
    description = "; ".join(f"round {now}: {in_words(own[now - 1])}" for now in MARKED)
    return document((930, 802), f"Private centres in six of {HORIZON} rounds", description, body)


def trails(own: list[Moment], now: int, view: Viewport, unit: float) -> Markup:
    """The earlier centres of every source that is still there, but for those under its disc."""
    latest, out = own[now - 1].found[0], Markup("")
    for source in range(len(own[now - 1].means)):
        earlier = [own[then - 1].found[0].centres[source] for then in range(max(1, now - TRAIL), now)]
        places, (here,) = view.place(np.array(earlier)), view.place(latest.centres[[source]])
        clear = np.linalg.norm(places - here, axis=1) > unit * np.sqrt(latest.weights[source]) + 3
        look = {"stroke": "#222", "stroke_width": 2.6, "stroke_linecap": "round", "stroke_opacity": ".7"}
        out += dots(places[clear].tolist(), "", **look)
    return out


# What was measured ---------------------------------------------------------------------------------------------------


def report(panels: dict[str, Moment]) -> None:
    print(f"{'panel':42}{'records':>9}{'centre from a mean':>20}{'mean from a centre':>20}   (largest distances)")
    for name, moment in panels.items():
        centre, mean = moment.apart
        print(f"{name:42}{len(moment.points):9,}{centre:20.2f}{mean:20.2f}")


def main() -> None:
    own, twin = told()
    print(f"Releases from round {ERASED} on equal those of the twin, byte for byte; none before does.")
    panels = {f"clusters: round {ERASED - 1}": own[ERASED - 2], f"clusters: round {ERASED}": own[ERASED - 1]}
    panels |= {f"clusters: round {ERASED}, the twin": twin[ERASED - 1]}
    report(panels | {f"drift: round {now}": own[now - 1] for now in MARKED})
    if len(sys.argv) > 1:
        for name, picture in {"clusters.svg": draw_clusters(own, twin), "drift.svg": draw_drift(own)}.items():
            (Path(sys.argv[1]) / name).write_text(picture, encoding="utf-8")
            print(Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
