"""The pictures of docs/windows.md, docs/past.md and docs/distinct.md, drawn from streams that are run here.

python benchmarks/pictures.py [FOLDER]
"""

import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

import retroact as ra
from retroact.report.axes import Panel, steps
from retroact.report.svg import document as drawing
from retroact.report.svg import element, path, segment, text

EPSILON, DELTA = 1.0, 1e-6
BUDGET = "ε = 1, δ = 10⁻⁶"
COLOURS = {"blocks": "#1d4e89", "releases": "#c2410c", "flips": "#8a5fb0"}
STYLE = (
    """
text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 13px; fill: #333 }
.title { font-size: 17px; font-weight: 600; fill: #111 } .panel { font-size: 14px; font-weight: 600 }
.small, .tick, .unit { font-size: 12px; fill: #666 } .note { font-size: 12.5px; fill: #444 }
.grid { stroke: #e6e6e6 } .zero, .axis { stroke: #888 } .mark { stroke: #999; stroke-dasharray: 2 3 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round } .dots { stroke-linecap: round }
.own { stroke: #1d4e89 } .band { fill: #1d4e89; fill-opacity: .15 } .twin { stroke: #c2410c; stroke-dasharray: 5 4 }
.true { stroke: #888; stroke-width: 1.2 } .span { fill: #e8b04a; fill-opacity: .2 }
.gone { fill: #c2410c; fill-opacity: .1 }
.bar { stroke: #1d4e89; stroke-width: 9; stroke-opacity: .22 }
.more { stroke-dasharray: 6 4 } .bound { stroke: #888; stroke-width: 1.4; stroke-dasharray: 2 4 }
""".strip()
    + "".join(f"\n.{form} {{ stroke: {colour} }}" for form, colour in COLOURS.items())
)


def document(width, height, title, description, body):
    """A picture of its own, on white."""
    return drawing(width, height, title, description, STYLE, Markup("").join(body)) + "\n"


def key_of(x, y, kind, label, *, area=False):
    """A sample of a line or an area, with what it stands for."""
    shape = f"M{x} {y - 9}h26v11h-26Z" if area else f"M{x} {y - 4}h26"
    return path(shape, kind if area else f"line {kind}") + text(x + 33, y, label)


def lines(x, y, texts, anchor="start"):
    return [text(x, y + 15 * i, line, "note", anchor) for i, line in enumerate(texts)]


# A window ------------------------------------------------------------------------------------------------------------

WINDOW, ROUNDS = 28, 120
CAMPAIGN, HEAVY, ERASED = (21, 30), (66, 84), 85


def windowed(with_subject):
    """The published counts of a stream, and the exact ones."""
    stream = ra.Stream(
        {"paid": ra.Boolean()},
        {"orders": ra.Count(window=WINDOW)},
        epsilon=EPSILON,
        delta=DELTA,
        key=ra.Key.for_testing(28),
    )
    chance, added, heavy = random.Random(7), {}, {}
    answers, exact = [], []
    for now in range(1, ROUNDS + 1):
        added[now] = chance.randint(24, 36) + (40 if CAMPAIGN[0] <= now <= CAMPAIGN[1] else 0)
        heavy[now] = 25 if with_subject and HEAVY[0] <= now <= HEAVY[1] else 0
        stream.add([{"paid": True}] * added[now])
        if heavy[now]:
            stream.add([{"paid": True}] * heavy[now], subject=["u17"] * heavy[now])
        if now == ERASED:
            stream.erase(subject="u17")
            heavy = dict.fromkeys(heavy, 0)
        answers.append(stream.close_round()["orders"])
        live = range(max(1, now - WINDOW + 1), now + 1)
        exact.append(sum(added[t] + heavy[t] for t in live))
    return answers, exact


def draw_windows():
    own, exact = windowed(True)
    twin, _ = windowed(False)
    rounds = range(1, ROUNDS + 1)
    apart = [(a.numerators[0] - b.numerators[0]) / a.denominator for a, b in zip(own, twin, strict=True)]
    assert all(a.encode() == b.encode() for a, b in zip(own[ERASED - 1 :], twin[ERASED - 1 :], strict=True))
    assert max(apart) == 25 * (HEAVY[1] - HEAVY[0] + 1)
    upper = Panel(64, 104, 836, 270, (1, ROUNDS), (0, 1600))
    lower = Panel(64, 442, 836, 90, (1, ROUNDS), (0, 500))
    ends = [answer.interval(0.95) for answer in own]
    first, last = CAMPAIGN
    body = [
        text(64, 32, f"Orders of the last {WINDOW} rounds, published in every round", "title"),
        text(
            64,
            52,
            f"{BUDGET} for all rounds together, no horizon; a record goes {WINDOW} rounds after its stamp",
            "small",
        ),
        key_of(64, 80, "own", "published"),
        key_of(180, 80, "band", "95 % interval", area=True),
        key_of(320, 80, "true", "exact count"),
        key_of(450, 80, "twin", "published by the twin, which never had subject u17"),
        upper.box((first, 0), (last, 1600), "span"),
        upper.box((first + WINDOW, 0), (last + WINDOW, 1600), "span"),
        upper.box((HEAVY[0], 0), (ERASED, 1600), "gone"),
        lower.box((HEAVY[0], 0), (ERASED, 500), "gone"),
        upper.grid(range(0, 1501, 250)),
        text(upper.left - 8, upper.top - 8, "orders", "small", "end"),
        upper.area(
            [(r, high) for r, (_, high) in zip(rounds, ends, strict=True)],
            [(r, low) for r, (low, _) in zip(rounds, ends, strict=True)],
            "band",
        ),
        upper.line(zip(rounds, exact, strict=True), "true"),
        upper.line(zip(rounds, (answer.value for answer in own), strict=True), "own"),
        upper.line(
            [(r, answer.value) for r, answer in zip(rounds, twin, strict=True) if HEAVY[0] - 1 <= r],
            "twin",
        ),
        segment(upper.x(ERASED), upper.top, upper.x(ERASED), lower.bottom, "mark"),
        *lines(upper.x(first) - 6, upper.top + 16, ["a campaign brings", "400 orders"], "end"),
        *lines(
            upper.x(first + WINDOW) - 6,
            upper.top + 16,
            ["they expire,", f"each {WINDOW} rounds", "after its stamp"],
            "end",
        ),
        *lines(upper.x(HEAVY[0]) + 5, upper.top + 16, ["subject u17", "adds 475 orders"]),
        *lines(
            upper.x(ERASED) + 6,
            upper.top + 16,
            [f"u17 is erased in round {ERASED}:", "from here on both streams", "publish the same bytes"],
        ),
        upper.axis(range(10, ROUNDS + 1, 10)),
        text(64, lower.top - 14, "Published by the stream minus published by the twin", "panel"),
        lower.grid((0, 250, 500)),
        lower.line(zip(rounds, apart, strict=True), "own"),
        text(lower.x(ERASED) + 6, lower.bottom - 10, "exactly 0", "note"),
        lower.axis(range(10, ROUNDS + 1, 10), unit="round"),
    ]
    description = (
        f"A count over {WINDOW} rounds. The orders of rounds {first} to {last} expire in rounds {first + WINDOW} to "
        f"{last + WINDOW}. Subject u17 is erased in round {ERASED}; the twin's answers are equal from there on."
    )
    return document(930, 586, "A windowed count, expiry and erasure", description, body)


# The past ------------------------------------------------------------------------------------------------------------

LAGS = [0, 1, 7, 30]
HORIZON, LAST, OUTAGE, BACK, FORGOTTEN = 180, 120, (76, 80), 84, 62


@dataclass
class Past:
    answers: dict
    """By (round, past round)."""
    exact: dict


def restated():
    """A shop with late orders, a source that is down for five rounds, and a subject who is erased."""
    stream = ra.Stream(
        {"paid": ra.Boolean()},
        {"orders": ra.Restated(ra.Count(), LAGS)},
        epsilon=EPSILON,
        delta=DELTA,
        horizon=HORIZON,
        key=ra.Key.for_testing(30),
    )
    chance, coming = random.Random(11), {}
    for stamp in range(1, LAST + 1):
        for _ in range(200):
            delay = 0 if chance.random() < 0.75 else min(25, 1 + int(chance.expovariate(1 / 5)))
            if OUTAGE[0] <= stamp <= OUTAGE[1] and chance.random() < 0.5:
                delay = BACK - stamp
            subject = "u17" if 20 <= stamp <= 38 and chance.random() < 0.06 else None
            coming.setdefault(stamp + delay, []).append((stamp, subject))
    held, answers, exact = [], {}, {}
    for now in range(1, LAST + 1):
        records = coming.get(now, [])
        for subject in (None, "u17"):
            stamps = [stamp for stamp, owner in records if owner == subject]
            if stamps:
                stream.add([{"paid": True}] * len(stamps), stamp=stamps, subject=[subject] * len(stamps))
        held += records
        if now == FORGOTTEN:
            stream.erase(subject="u17")
            held = [(stamp, owner) for stamp, owner in held if owner is None]
        release = stream.close_round()["orders"]
        wide = release.interval(0.95)
        for past, value in release.value.items():
            answers[now, past] = value, wide[past]
        for past in range(1, now + 1):
            exact[now, past] = sum(stamp <= past for stamp, _ in held)
    return Past(answers, exact)


def reports(found, past, panel, event, notes):
    """The reports on one past round, over what is exact from round to round."""
    rounds = range(past, past + 36)
    corners = steps([(r, found.exact[r, past]) for r in rounds], past + 36)
    low, high = panel.ys
    body = [
        text(panel.left, panel.top - 16, f"Number of orders stamped up to round {past}", "panel"),
        panel.grid(range(int(low), int(high) + 1, 100 if high - low < 1000 else 200)),
        segment(panel.x(event), panel.top, panel.x(event), panel.bottom, "mark"),
        panel.line(corners, "true"),
    ]
    for lag in LAGS:
        value, (bottom, top) = found.answers[past + lag, past]
        x = panel.x(past + lag + 0.5)
        body += [
            segment(x, panel.y(bottom), x, panel.y(top), "bar"),
            panel.dots([(past + lag + 0.5, value)], "own", 4),
            text(x + (-6 if lag == 0 else 0), panel.bottom - 8, str(lag), "note", "middle"),
        ]
    body.append(text(panel.x(past + 10), panel.bottom - 8, "← rounds later (lag)", "small"))
    body += lines(panel.x(event) + 6, panel.top + 16, notes)
    body.append(panel.axis(range(past, past + 37, 6), unit="round in which it is reported"))
    return body


def draw_past():
    found = restated()
    gone = found.exact[FORGOTTEN - 1, 40] - found.exact[FORGOTTEN, 40]
    left = Panel(70, 126, 370, 300, (40, 76), (7500, 8100))
    right = Panel(530, 126, 370, 300, (80, 116), (14800, 16000))
    body = [
        text(70, 32, "One past round, reported 0, 1, 7 and 30 rounds later", "title"),
        text(70, 52, f"Restated(Count(), [0, 1, 7, 30]), {BUDGET} for all rounds and lags, {HORIZON} rounds", "small"),
        path("M83 76h0", "dots own", stroke_width=8),
        text(103, 80, "reported", ""),
        key_of(180, 80, "band", "95 % interval", area=True),
        key_of(320, 80, "true", "exact: stamped up to that round, surviving now"),
        *reports(found, 40, left, FORGOTTEN, ["a subject is erased:", f"{gone} orders go"]),
        *reports(found, 80, right, BACK, ["a source is back: orders", "of rounds 76 to 80 come in"]),
    ]
    description = "Orders up to round 40 rise with late data and fall with an erasure; those up to round 80 rise."
    return document(930, 490, "A past round as reported at four lags", description, body)


# Forms of distinct counts --------------------------------------------------------------------------------------------

EXPONENTS = range(6, 21)


def half_width(statistic, horizon, **options):
    stream = ra.Stream({"user": ra.Text()}, {"x": statistic}, epsilon=EPSILON, delta=DELTA, horizon=horizon, **options)
    return stream.plan()["x"].half_width


def forms(horizon):
    return {
        "releases": half_width(ra.Distinct("user", form="releases"), horizon),
        "blocks": half_width(ra.Distinct("user", form="blocks", additions=1), horizon, late=False),
        "flips more": half_width(ra.Distinct("user", form="flips", flips=16), horizon),
        "flips": half_width(ra.Distinct("user", form="flips", flips=2), horizon),
    }


NAMES = {
    "releases": ("releases", "counts on nothing"),
    "blocks": ("blocks", "no late data, 1 addition a round"),
    "flips more": ("flips=16", "promised: 16 changes a value"),
    "flips": ("flips=2", "promised: 2 changes a value"),
}


def draw_forms():
    horizons = [2**k - 1 for k in EXPONENTS]
    found = {horizon: forms(horizon) for horizon in horizons}
    panel = Panel(
        70, 76, 590, 400, (math.log10(horizons[0]), math.log10(horizons[-1])), (math.log10(5), math.log10(6000))
    )
    body = [
        text(70, 32, "Distinct counts: error against the number of rounds", "title"),
        text(70, 52, f"95 % half-width in the worst round, in distinct values; {BUDGET}; logarithmic axes", "small"),
    ]
    for tick in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        y = panel.y(math.log10(tick))
        body += [
            segment(panel.left, y, panel.right, y, "grid"),
            text(panel.left - 8, y + 4, f"±{tick:,}", "tick", "end"),
        ]
    body.append(segment(panel.left, panel.bottom, panel.right, panel.bottom, "axis"))
    for horizon in horizons[::2]:
        x = panel.x(math.log10(horizon))
        body += [segment(x, panel.bottom, x, panel.bottom + 5, "axis")]
        body += [text(x, panel.bottom + 20, f"{horizon:,}", "tick", "middle")]
    body.append(
        text(
            (panel.left + panel.right) / 2,
            panel.bottom + 40,
            "rounds T (the horizon), a release in each",
            "unit",
            "middle",
        )
    )
    free = panel.top
    for name, (label, needs) in sorted(NAMES.items(), key=lambda item: -found[horizons[-1]][item[0]]):
        points = [(math.log10(horizon), math.log10(found[horizon][name])) for horizon in horizons]
        body += [panel.line(points, name), panel.dots(points, name.split()[0], 2.6)]
        y = max(panel.y(points[-1][1]), free)
        free = y + 35
        strong = element("tspan", label, font_weight="600", fill=COLOURS[name.split()[0]])
        beside = f" ±{found[horizons[-1]][name]:,.0f}"
        body.append(element("text", strong, beside, x=panel.right + 12, y=y + 1))
        body.append(text(panel.right + 12, y + 16, needs, "small"))
    slope = [(math.log10(h), math.log10(6 * (h / horizons[0]) ** 0.25)) for h in (horizons[0], horizons[-1])]
    body.append(panel.line(slope, "bound"))
    body.append(text(panel.right + 12, free + 1, "slope of the lower bound, T^(1/4),", "small"))
    body.append(text(panel.right + 12, free + 16, "for deletions in any round", "small"))
    description = f"At {horizons[-1]:,} rounds: " + ", ".join(
        f"{NAMES[name][0]} ±{value:,.0f}" for name, value in found[horizons[-1]].items()
    )
    return document(930, 540, "Half-widths of distinct counts by form and horizon", description, body)


PICTURES = {"windows.svg": draw_windows, "past.svg": draw_past, "distinct-forms.svg": draw_forms}


def write(pictures):
    """Draw each of them, and write it to the folder that is named, if one is."""
    for name, draw in pictures.items():
        drawn = draw()
        if len(sys.argv) > 1:
            (Path(sys.argv[1]) / name).write_text(drawn, encoding="utf-8")
        print(name, "drawn" if len(sys.argv) == 1 else f"written to {sys.argv[1]}")


if __name__ == "__main__":
    write(PICTURES)
