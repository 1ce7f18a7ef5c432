"""The pictures of the page on compilers: a window's median behind a gate, what samples take, and smoothed blocks.

python benchmarks/compiler_pictures.py [FOLDER]

The streams are run here, the bounds are computed, and the audit is made: about half a minute in all.
"""

import math
import warnings
from fractions import Fraction
from itertools import groupby

import numpy as np
from markupsafe import Markup

import retroact as ra
from block_attack import audit_blocks
from grudge import Grudge
from pictures import BUDGET, document, lines, write
from retroact.coins import Key
from retroact.compilers.gate import PARTS, Calibrated
from retroact.compilers.smooth import smooth
from retroact.noise import Mechanism
from retroact.noise.default_process import quietest
from retroact.paper import PaperRetroactivity
from retroact.privacy import largest_epsilon0
from retroact.report.axes import Panel
from retroact.report.svg import element, path, rectangle, segment, text
from retroact.schema import Schema
from sampling import BETA, DELTA, EPSILON, HORIZON, needed_for

COLOURS = {"paper": "#c2410c", "fixed": "#8a5fb0", "poisson": "#2a9d8f", "whole": "#1d4e89", "audit": "#111"}
STYLE = (
    """
.bottom { fill: #777; fill-opacity: .17 } .gate { stroke: #b91c1c; stroke-width: 1.4 } .red { fill: #b91c1c }
.ring { fill: none; stroke: #c2410c; stroke-width: 1.5 } .own.dots { fill: none }
.thin { stroke: #1d4e89; stroke-width: 1.6 } .thin.twin { stroke: #c2410c } .dotted { stroke-dasharray: 6 4 }
""".strip()
    + "".join(f"\n.{kind} {{ stroke: {colour} }}" for kind, colour in COLOURS.items())
)


def drawn(width, height, title, description, body):
    return document(width, height, title, description, [element("style", Markup(STYLE)), *body])


def at_end(panel, ends):
    """A label behind the end of each line, from above; those that would touch move down. ``ends`` are tuples of the
    last value, the kind of the line, its name, what is beside it, and a second line."""
    out, free = [], panel.top
    for value, kind, name, beside, more in sorted(ends, key=lambda end: -end[0]):
        y = max(panel.y(math.log10(value)), free)
        free = y + 37
        strong = element("tspan", name, font_weight="600", fill=COLOURS[kind])
        out.append(element("text", strong, f" {beside}", x=panel.right + 14, y=y + 2))
        out.append(text(panel.right + 14, y + 17, more, "small"))
    return out


def logarithmic(panel, across, up, unit):
    """Both axes, of a panel whose coordinates are decimal logarithms."""
    out = []
    for tick in up:
        y = panel.y(math.log10(tick))
        out.append(segment(panel.left, y, panel.right, y, "grid"))
        out.append(text(panel.left - 8, y + 4, f"{tick:,}", "tick", "end"))
    out.append(segment(panel.left, panel.bottom, panel.right, panel.bottom, "axis"))
    for tick in across:
        x = panel.x(math.log10(tick))
        out.append(segment(x, panel.bottom, x, panel.bottom + 5, "axis"))
        out.append(text(x, panel.bottom + 20, f"{tick:,}", "tick", "middle"))
    out.append(text((panel.left + panel.right) / 2, panel.bottom + 42, unit, "unit", "middle"))
    return out


def logs(points):
    return [(math.log10(x), math.log10(y)) for x, y in points]


# A median behind a gate ----------------------------------------------------------------------------------------------

WINDOW, ROUNDS, GATE = 12, 100, 600
DOWN, HEAVY, ERASED = (30, 41), (58, 74), 75
TYPICAL, FEW, BULK = 110, 20, 60


def story(with_reseller):
    """The releases of a stream, the live records in every round, and their median."""
    stream = ra.Stream(
        {"amount": ra.Number(0, 500, step=0.01)},
        {"median": ra.WindowSample(ra.oneshot.Median("amount"), window=WINDOW, gate=ra.Gate(GATE))},
        epsilon=EPSILON, delta=DELTA, horizon=ROUNDS, key=ra.Key.for_testing(4),
    )  # fmt: skip
    random = np.random.default_rng(5)
    orders, bulk = {}, {}
    releases, live, exact = [], [], []
    for now in range(1, ROUNDS + 1):
        season = 0.06 * math.sin(now / 9)
        many = FEW if DOWN[0] <= now <= DOWN[1] else min(TYPICAL, 18 * now) + int(random.integers(-8, 9))
        orders[now] = np.round(500 * np.clip(random.beta(2, 5, many) + season, 0, 1), 2)
        large = np.round(random.uniform(300, 480, BULK), 2)
        stream.add({"amount": orders[now]})
        if with_reseller and HEAVY[0] <= now <= HEAVY[1]:
            bulk[now] = large
            stream.add({"amount": large}, subject=["reseller"] * BULK)
        if with_reseller and now == ERASED:
            stream.erase(subject="reseller")
            bulk = {}
        releases.append(stream.close_round()["median"])
        window = [held[t] for t in range(now - WINDOW + 1, now + 1) for held in (orders, bulk) if t in held]
        amounts = np.concatenate(window)
        live.append(len(amounts))
        exact.append(float(np.median(amounts)))
    return releases, live, exact


def draw_window():
    warnings.simplefilter("ignore", ra.HorizonWarning)
    (own, live, exact), (twin, fewer, _) = story(True), story(False)
    same = [a.encode() == b.encode() for a, b in zip(own, twin, strict=True)]
    first = HEAVY[0]
    assert all(same[: first - 1])
    assert not any(same[first - 1 : ERASED - 1])
    assert all(same[ERASED - 1 :])
    rounds = range(1, ROUNDS + 1)
    answered = [(r, one.value) for r, one in zip(rounds, own, strict=True) if one.value is not ra.oneshot.BOTTOM]
    silent = [r for r, one in zip(rounds, own, strict=True) if one.value is ra.oneshot.BOTTOM]
    assert not any(r >= first for r in silent)
    upper = Panel(64, 112, 836, 270, (0, ROUNDS), (50, 300))
    lower = Panel(64, 442, 836, 110, (0, ROUNDS), (0, 2200))
    body = [
        text(64, 32, f"The median of the last {WINDOW} rounds, or ⊥ where too few records are live", "title"),
        text(
            64, 52, f"{BUDGET} for all {ROUNDS} rounds; one reseller is erased in round {ERASED}; "
            "the twin has the same key and never had the reseller", "small",
        ),
        path("M70 76h0", "dots own", stroke_width=6.4), text(82, 80, "released median"),
        element("circle", class_="ring", cx=227, cy=76, r=4.8), text(239, 80, "released by the twin"),
        path("M402 76h26", "line true"), text(435, 80, "true median"),
        rectangle(545, 70, 26, 12, "bottom"), text(578, 80, "⊥: too few records"),
        text(upper.left - 8, upper.top - 10, "amount", "small", "end"),
        upper.grid(range(50, 301, 50)),
        lower.grid((0, 1000, 2000)),
    ]  # fmt: skip
    for _, group in groupby(enumerate(silent), key=lambda pair: pair[1] - pair[0]):
        run = [r for _, r in group]
        left, width = upper.x(run[0] - 0.5), upper.x(run[-1] + 0.5) - upper.x(run[0] - 0.5)
        body += [rectangle(left, panel.top, width, panel.height, "bottom") for panel in (upper, lower)]
        if len(run) > 5:
            body += [
                text(left + width / 2, upper.top + 20 + 15 * i, line, "note", "middle")
                for i, line in enumerate(("⊥: too few", "records"))
            ]
    body += [
        segment(upper.x(ERASED - 0.5), upper.top, upper.x(ERASED - 0.5), lower.bottom, "mark"),
        upper.line(zip(rounds, exact, strict=True), "true"),
        *(
            element("circle", class_="ring", cx=upper.x(r), cy=upper.y(one.value), r=4.8)
            for r, one in zip(rounds, twin, strict=True)
            if r >= first
        ),
        upper.dots(answered, "own", 3.2),
        *lines(upper.x(first + 6), upper.y(225), ["the reseller's orders", f"come in, {BULK} a round"], "end"),
        *lines(
            upper.x(ERASED - 0.5) + 6,
            upper.top + 20,
            ["the reseller is erased:", "from here on both streams", "publish the same bytes"],
        ),
        upper.axis(range(10, ROUNDS + 1, 10)),
        text(64, lower.top - 14, "Live records", "panel"),
        lower.line(zip(rounds, live, strict=True), "thin"),
        lower.line([(r, n) for r, n in zip(rounds, fewer, strict=True) if r >= first - 1], "thin twin"),
        text(lower.x(DOWN[0]) + 8, lower.y(1600), f"a source is down, rounds {DOWN[0]} to {DOWN[1]}", "note"),
        segment(lower.left, lower.y(GATE), lower.right, lower.y(GATE), "gate"),
        text(lower.right - 4, lower.y(GATE) + 16, f"gate: {GATE}, by a private count", "red", "end"),
        lower.axis(range(10, ROUNDS + 1, 10), unit="round"),
    ]
    off = [abs(value - exact[r - 1]) for r, value in answered]
    runs = f"{len(silent)} of {ROUNDS} rounds"
    empty, least = max(live[r - 1] for r in silent), min(live[r - 1] for r, _ in answered)
    before, after = same[first - 1 : ERASED - 1], same[ERASED - 1 :]
    print(f"window: ⊥ in {runs} ({silent}) with up to {empty:,} live records, answers from {least:,} on")
    print(f"window: off the true median by {np.mean(off):.1f} on average and at most {max(off):.1f}; of releases "
          f"{sum(before)} of {len(before)} equal before the erasure, {sum(after)} of {len(after)} then")  # fmt: skip
    description = (
        f"Medians of {WINDOW} rounds behind a gate at {GATE} live records. In {runs} the answer is ⊥: at the start and "
        f"while a source is down. The medians of the stream and of its twin differ from round {first}, in which the "
        f"reseller's first orders come in, to round {ERASED - 1}; from round {ERASED} on they are equal."
    )
    return drawn(930, 606, "A windowed median behind a gate, and an erasure", description, body)


# What samples take ---------------------------------------------------------------------------------------------------

BITS, WINDOWS = 64, [2**i for i in range(15)]
RATES = (2, 4, 10, 20, 100)
"""A sample of a fixed size is one record of so many that the gate asks for."""


def fixed_size(window):
    """For every rate: the live records from which a gate is sure to answer, and the size of the sample.

    With k / (n + 1) <= 1 / rate the cost depends on the rate alone, so the size follows from it, and n from the size.
    """
    schema = Schema({"x": ra.Integer(-(2 ** (BITS - 1)), 2 ** (BITS - 1) - 1)})
    epsilon, delta = Fraction(EPSILON), Fraction(str(DELTA))
    calibrated = Calibrated(ra.Gate(1), epsilon / PARTS, delta / 4, delta / 4)
    found = calibrated.gate.candidates(HORIZON, window, "gate")
    one, process = Fraction(1), found[quietest(found, calibrated.share.kind, HORIZON)]
    noise = Mechanism(process, calibrated.share, units=(1,), norm1=one, norm2_squared=one)
    margin = math.ceil(calibrated.limit(noise, HORIZON, "gate").at(1)) - 1
    out = {}
    for rate in RATES:
        spent = largest_epsilon0(
            "fresh", releases=window, epsilon=epsilon - epsilon / PARTS, delta=float(delta / 2), size=1,
            occupancy=rate - 1, bounded_range=True,
        )  # fmt: skip
        size = ra.oneshot.InteriorPoint("x", epsilon=spent).needed(schema, BETA)
        out[rate] = rate * size + 2 * margin, size
    return out


def draw_sampling():
    found = {"paper": [], "fixed": [], "poisson": [], "whole": []}
    for window in WINDOWS:
        _, sure, poisson, whole = needed_for(BITS, window)
        samples = fixed_size(window)
        for kind, needed in (
            ("paper", sure),
            ("fixed", min(samples.values())[0]),
            ("poisson", poisson),
            ("whole", whole),
        ):
            found[kind].append((window, needed))
        shown = ", ".join(f"{n:,} (k = {k:,} at 1/{rate})" for rate, (n, k) in samples.items())
        print(f"sampling: W = {window:,}: corollary {sure:,}, Poisson {poisson:,}, whole {whole:,}; fixed size {shown}")
    panel = Panel(90, 84, 570, 400, (0, math.log10(WINDOWS[-1])), (math.log10(50), math.log10(3e6)))
    body = [
        text(90, 32, "Live records for an interior point of 2⁶⁴ values in every round", "title"),
        text(
            90, 52, f"{BUDGET} for one record over {HORIZON:,} rounds; an answer within the data with probability "
            f"{1 - BETA:g}; logarithmic axes", "small",
        ),
        *logarithmic(panel, WINDOWS[::2], [10**i for i in range(2, 7)], "window W: rounds in which a record is live"),
    ]  # fmt: skip
    for kind, points in found.items():
        style = f"{kind} dotted" if kind == "poisson" else kind
        body += [panel.line(logs(points), style), panel.dots(logs(points), kind, 2.6)]
    last = {kind: points[-1][1] for kind, points in found.items()}
    least = found["paper"][0][1]
    body.append(text(panel.left + 4, panel.y(math.log10(least)) - 10, f"its gate alone asks for {least:,}", "note"))
    names = {
        "paper": ("the paper's corollary", "a fixed size behind its gate, sure at 3n"),
        "fixed": ("fixed size", "behind a gate, exact costs"),
        "poisson": ("Poisson sample", "exact costs, no gate"),
        "whole": ("whole window", "no sample, no gate"),
    }
    body += at_end(panel, [(last[kind], kind, name, f"{last[kind]:,}", more) for kind, (name, more) in names.items()])
    description = f"At a window of {WINDOWS[-1]:,} rounds: " + ", ".join(
        f"{name} {last[kind]:,}" for kind, (name, _) in names.items()
    )
    return drawn(930, 546, "Live records that samples take, by window", description, body)


# Smoothed blocks -----------------------------------------------------------------------------------------------------

ALPHA, BETA_ONE, RUNS = 1.0, 1e-6, 100_000
BLOCKS = [2**i for i in range(9)]


def draw_smoothing():
    rows = audit_blocks(BLOCKS, alpha=ALPHA, beta=BETA_ONE, runs=RUNS)
    assert all(row.audited <= row.exact <= row.paper for row in rows)
    smoothed = smooth(
        Grudge(Fraction(1)), error=1, failure=0, alpha=ALPHA, beta=BETA_ONE, calibration="paper", key=Key.for_testing(1)
    )
    theorem = PaperRetroactivity(1.0, ALPHA, BETA_ONE)
    lengths = sorted({round(2 ** (i / 8)) for i in range(8 * 8 + 1)})
    curves = {
        "paper": [(b, theorem.alpha_of(b, BETA_ONE)) for b in lengths],
        "whole": [(b, smoothed.retroactivity.alpha(b * BETA_ONE, b)) for b in lengths],
    }
    panel = Panel(70, 84, 570, 400, (0, math.log10(BLOCKS[-1])), (math.log10(0.5), math.log10(300)))
    body = [
        text(70, 32, "How far apart two united histories may look, by the length of a block", "title"),
        text(
            70, 52, "α of B answers together, at β = B · 10⁻⁶; noise calibrated as in the paper for α = 1 of one "
            "answer; logarithmic axes", "small",
        ),
        text(panel.left - 8, panel.top - 4, "α", "small", "end"),
        *logarithmic(panel, BLOCKS, (1, 2, 5, 10, 20, 50, 100, 200), "block length B: consecutive answers"),
    ]  # fmt: skip
    body += [panel.line(logs(points), kind) for kind, points in curves.items()]
    body.append(panel.dots(logs((row.block, row.audited) for row in rows), "audit", 4))
    end = rows[-1]
    body += at_end(
        panel,
        [
            (end.paper, "paper", "the paper's theorem", f"α = {end.paper:.0f}", "composition, answer by answer"),
            (end.exact, "whole", "exact bound", f"α = {end.exact:.1f}", "one Gaussian vector for the block"),
            (end.audited, "audit", "● shown by an audit", f"α = {end.audited:.1f}",
             f"worst base, {2 * RUNS:,} runs, 99 % sure"),
        ],
    )  # fmt: skip
    for row in rows:
        print(f"smoothing: B = {row.block}: theorem {row.paper:.3g}, exact {row.exact:.3f}, audit {row.audited:.3f} "
              f"({row.audited / row.exact:.3f} of exact), theorem / exact {row.paper / row.exact:.1f}")  # fmt: skip
    description = "; ".join(
        f"block of {row.block}: theorem {row.paper:.0f}, exact {row.exact:.2f}, audit {row.audited:.2f}" for row in rows
    )
    return drawn(930, 546, "Retroactivity of blocks of smoothed answers", description, body)


PICTURES = {"window_interior_point.svg": draw_window, "sampling.svg": draw_sampling, "smoothing.svg": draw_smoothing}


if __name__ == "__main__":
    write(PICTURES)
