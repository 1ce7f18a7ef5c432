"""A histogram of 100,000 live bins: time, memory, threshold and error, beside OpenDP's threshold mechanism.

python benchmarks/histogram.py [--bins N] [--picture PATH]
"""

import argparse
import math
import statistics
import sys
import time
import warnings
from pathlib import Path

import msgspec
import numpy as np
import opendp.prelude as dp

import retroact as ra
from retroact.paper import PaperThreshold
from retroact.privacy import largest_mu
from retroact.report.axes import Panel
from retroact.report.svg import document, element, joined, segment, text
from retroact.statistics.bound import At

EPSILON, DELTA = 1.0, 1e-6
# What goes to thresholds, as in our streams; the rest is for the noise.
FAILURE = 0.35 * DELTA
COMPARED, LONG = 1023, 65_535
MOST_BINS = 1_000_000
RUNS, OTHER_RUNS = 10, 5
SCHEMA = {"page": ra.Text()}

dp.enable_features("contrib")


class Timed:
    """The median time of some runs, the shortest and the longest one, and the last result."""

    def __init__(self, work, runs=RUNS):
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.result = work()
            times.append(time.perf_counter() - start)
        self.median, self._ends = statistics.median(times), (min(times), max(times))

    def __str__(self):
        return f"{self.median:.3f} s ({self._ends[0]:.3f} to {self._ends[1]:.3f})"


def specification(horizon, histogram=None):
    histogram = ra.Histogram("page") if histogram is None else histogram
    return ra.Specification(SCHEMA, {"h": histogram}, epsilon=EPSILON, delta=DELTA, horizon=horizon)


def filled(horizon, counts):
    """A stream whose first round brought every page its records."""
    stream = ra.Stream.from_specification(specification(horizon), key=ra.Key.for_testing(1))
    stream.add({"page": [page for page, count in counts.items() for _ in range(count)]})
    stream.close_round()
    return stream


def at_round(stream, round):
    """The same surviving data in a later round: all that a stream keeps of its past is there."""
    parts = msgspec.msgpack.decode(stream.state())
    parts[3] = round
    return ra.Stream.from_state(stream.specification, msgspec.msgpack.encode(parts), key=ra.Key.for_testing(1))


def release_of(stream, round):
    running = stream._core.engine.running["h"]
    return lambda: running.bound.release(running.totals, running.noise, At(round, round))


def size_of_totals(stream):
    (tally,) = stream._core.engine.running["h"].totals
    arrays = sum(part.nbytes for part in (*tally.words, tally.amounts, *tally.labels))
    return arrays, sum(map(sys.getsizeof, tally.labels[0].tolist()))


def ours(counts):
    print(f"\n{len(counts):,} live bins, {sum(counts.values()):,} records, epsilon = {EPSILON:g}, delta = {DELTA:g}")
    print(f"horizon {LONG:,}; medians of {RUNS} runs (shortest to longest)\n")
    stream = filled(LONG, counts)
    early, late = 10, 60_000
    nodes = [len(stream._core.engine.running["h"].noise.process.at(round).levels) for round in (early, late)]
    print(f"{'':28}{f'round {early:,}, {nodes[0]} nodes':>28}{f'round {late:,}, {nodes[1]} nodes':>28}")
    times = [Timed(release_of(stream, round)) for round in (early, late)]
    print(f"{'one release':28}{times[0]!s:>28}{times[1]!s:>28}")
    names = list(counts)
    rng = np.random.default_rng(1)

    def with_updates(stream):
        """500 records come, half of them in new bins, and 500 go: others in every run."""

        def round():
            new = [f"new {i}" for i in rng.integers(0, 2**40, 250)]
            more, less = ([names[i] for i in rng.integers(0, len(names), count)] for count in (250, 500))
            stream.add({"page": more + new})
            stream.delete({"page": less}, stamp=1)
            return stream.close_round()

        return Timed(round)

    times = [with_updates(at_round(stream, round)) for round in (early, late)]
    print(f"{'a round with 1,000 updates':28}{times[0]!s:>28}{times[1]!s:>28}")
    arrays, labels = size_of_totals(stream)
    print(f"\nmemory of the totals: {arrays / 1e6:.1f} MB in arrays, {labels / 1e6:.1f} MB in the names of bins")


def theirs(counts):
    """OpenDP's mechanisms, run anew in each of 1,023 rounds: a record may count in all of them, so losses add up."""
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    l1, l2 = (metric(dp.absolute_distance(T=int)) for metric in (dp.l01inf_distance, dp.l02inf_distance))

    def laplace(scale, threshold):
        return dp.m.make_laplace_threshold(space, l1, scale=scale, threshold=threshold)

    def gaussian(scale, threshold):
        return dp.m.make_gaussian_threshold(space, l2, scale=scale, threshold=threshold)

    exact = math.sqrt(COMPARED) / float(largest_mu(EPSILON, DELTA - FAILURE))
    rows = [
        ("OpenDP Laplace, epsilon adds up", laplace, float(COMPARED), math.sqrt(2), DELTA),
        ("OpenDP Gaussian, zCDP", gaussian, concentrated_scale(), 1.0, FAILURE),
        ("OpenDP Gaussian, exact composition", gaussian, exact, 1.0, FAILURE),
    ]
    for name, make, scale, deviation, failure in rows:
        threshold = smallest(lambda t: make(scale, t).map((1, 1, 1))[1] <= failure / COMPARED, scale)  # noqa: B023
        mechanism = make(scale, threshold)
        yield name, threshold, scale * deviation, Timed(lambda: mechanism(counts), OTHER_RUNS)  # noqa: B023


def concentrated_scale():
    """The smallest scale whose rho, 1 / (2 scale^2) in each round, converts to epsilon at what is left of delta."""

    def private(scale):
        noise = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale)
        together = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([noise] * COMPARED))
        return together.map(1).epsilon(DELTA - FAILURE) <= EPSILON

    low, high = 50.0, 1000.0
    while high - low > 0.1:
        middle = (low + high) / 2
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


def smallest(holds, scale):
    """The smallest whole number for which a condition holds that goes on holding."""
    low, high = 0, max(1, math.ceil(scale))
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def long_run(counts):
    """The mean release over the horizon, beside OpenDP's Gaussian threshold mechanism for as many rounds: processor
    time, medians of three."""
    stream = filled(LONG, counts)
    rounds = np.linspace(1, LONG, 64).astype(int).tolist()
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    metric, scale = dp.l02inf_distance(dp.absolute_distance(T=int)), math.sqrt(LONG) / float(largest_mu(EPSILON, DELTA))
    other = dp.m.make_gaussian_threshold(space, metric, scale=scale, threshold=math.ceil(10 * scale))
    times = {"ours": [], "theirs": []}
    for _ in range(3):
        start = time.process_time()
        for round in rounds:
            release_of(stream, round)()
        middle = time.process_time()
        other(counts)
        times["ours"].append((middle - start) / len(rounds))
        times["theirs"].append(time.process_time() - middle)
    own, peer = (statistics.median(parts) for parts in times.values())
    print(f"\nmean of {len(rounds)} rounds up to {LONG:,}: {own * 1e3:.1f} ms of processor time a release; OpenDP's")
    print(f"Gaussian threshold mechanism: {peer * 1e3:,.0f} ms, {peer / own:.0f} times as long")


def compare(counts):
    stream = filled(COMPARED, counts)
    noise = stream._core.engine.running["h"].noise
    deviation = math.sqrt(noise.variances_of(0, np.arange(1, COMPARED + 1)).max())
    took = Timed(release_of(stream, 10))
    own = float(stream._core.engine.running["h"].bound.threshold.at(1)), deviation, took.median
    print(f"\n{len(counts):,} bins, released in {COMPARED:,} rounds, ({EPSILON:g}, {DELTA:g}) for all of them together")
    print("ratios are ours / theirs; times are of one release, with what it takes to hand the bins over to a library\n")
    print(f"{'':36}{'threshold':>10}{'ratio':>7}{'sd a bin':>10}{'ratio':>7}{'time of a release':>28}{'ratio':>7}")
    print(f"{'retroact':36}{own[0]:10,.0f}{'':7}{own[1]:10.1f}{'':7}{took!s:>28}")
    bounded = ra.Histogram("page", adaptive=True, most_bins=MOST_BINS)
    adaptive = specification(COMPARED, bounded).bounds["h"]
    print(f"{f'  adaptive, {MOST_BINS:,} bins at most':36}{float(adaptive.threshold.at(1)):10,.0f}")
    for name, threshold, sd, took in theirs(counts):
        ratios = [f"{a / b:7.3f}" for a, b in zip(own, (threshold, sd, took.median), strict=True)]
        print(f"{name:36}{threshold:10,}{ratios[0]}{sd:10.1f}{ratios[1]}{took!s:>28}{ratios[2]}")
    paper = float(PaperThreshold.of(EPSILON, DELTA, COMPARED).at(1))
    print(f"{'the paper, Theorem histogram':36}{paper:10,.0f}{own[0] / paper:7.3f}")
    print(
        "\nFresh noise in every round is retroactive too, and private for adaptive streams; what it costs is the error."
    )


# The picture ---------------------------------------------------------------------------------------------------------

ROUNDS, ERASED = 60, 41
WIDTH, HEIGHT = 920, 446
LOOKS = {"/home": "#1d4e89", "/news": "#2a9d8f", "/offer": "#c2410c", "/rare": "#777"}
STYLE = """
text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 13px; fill: #333 }
.title { font-size: 17px; font-weight: 600; fill: #111 } .panel { font-size: 15px; font-weight: 600 }
.note, .tick, .unit { font-size: 12px; fill: #666 } .grid { stroke: #e4e4e4 } .axis, .zero { stroke: #888 }
.threshold { stroke: #b45309; stroke-dasharray: 5 4; stroke-width: 1.4 } .mark { stroke: #999; stroke-dasharray: 2 3 }
.united { fill: #eef6f1 } .line { fill: none; stroke-width: 1.3; opacity: .55 }
.dots { fill: none; stroke-linecap: round }
""".strip()


def growth(page, round):
    """How many records of a page come in a round."""
    start = {"/home": 300}.get(page, 0) if round == 1 else 0
    return start + {"/home": 4, "/news": 3, "/offer": 12 if 6 <= round <= 24 else 0, "/rare": round % 2}[page]


def history(with_offer):
    """Released and true counts by page and round."""
    stream = ra.Stream.from_specification(specification(ROUNDS), key=ra.Key.for_testing(7))
    released, truth = {page: [] for page in LOOKS}, {page: [] for page in LOOKS}
    present = dict.fromkeys(LOOKS, 0)
    answers = []
    for round in range(1, ROUNDS + 1):
        for page in LOOKS:
            if page != "/offer" or with_offer:
                stream.add({"page": [page] * growth(page, round)}, subject=[page] * growth(page, round))
                present[page] += growth(page, round)
        if round == ERASED and with_offer:
            stream.erase(subject="/offer")
            present["/offer"] = 0
        release = stream.close_round()["h"]
        answers.append(release.encode())
        for page in LOOKS:
            truth[page].append((round, present[page]))
            if page in release.value:
                released[page].append((round, release.value[page]))
    return released, truth, answers, release.value.threshold


def panel_of(left, title, released, truth, threshold, mark):
    panel = Panel(left, 104, 380, 262, (0, ROUNDS + 1), (0, 620))
    body = [
        panel.box((ERASED, 0), (ROUNDS + 1, 620), "united"),
        text(left, 92, title, "panel"),
        panel.grid(range(0, 601, 100)),
        panel.axis(range(0, ROUNDS + 1, 10), unit="round"),
        segment(panel.left, panel.y(threshold), panel.right, panel.y(threshold), "threshold"),
        segment(panel.x(ERASED), panel.top, panel.x(ERASED), panel.bottom, "mark"),
        text(panel.x(ERASED) - 6, panel.top + 14, mark, "note", "end"),
        text(panel.right - 4, panel.y(threshold) + 15, f"threshold {threshold:.0f}", "note", "end"),
    ]
    for page, colour in LOOKS.items():
        counted = [(round, count) for round, count in truth[page] if count]
        if counted:
            (first, _), (last, count) = counted[0], counted[-1]
            points = [(first - 1, 0), *counted, *([(last + 1, count), (last + 1, 0)] if last < ROUNDS else [])]
            body.append(panel.line(points, "", stroke=colour))
        if released[page]:
            body.append(panel.dots(released[page], "", 2.1, stroke=colour))
    return joined(*body)


def picture():
    """One page is filled, passes the threshold and is erased; beside it the history in which it never was."""
    one, other = history(True), history(False)
    if one[2][ERASED - 1 :] != other[2][ERASED - 1 :]:
        raise SystemExit("the twins differ after they united: this picture would be false")
    legend, left = [], 60.0
    for page, colour in LOOKS.items():
        legend += [element("circle", cx=left + 4, cy=62, r=4, fill=colour), text(left + 14, 66, page)]
        left += 76
    legend.append(text(left + 8, 66, "dots: released, lines: true counts, which nobody sees", "note"))
    body = joined(
        text(60, 34, "A bin that is emptied leaves no trace", "title"),
        *legend,
        panel_of(60, "what happened", *one[:2], one[3], "/offer is erased"),
        panel_of(510, "its twin: /offer never was", *other[:2], other[3], ""),
        text(60, HEIGHT - 12, f"From round {ERASED} on (green) both publish the same bytes under one key.", "note"),
    )
    description = (
        f"The page /offer passes the threshold of {one[3]:.0f} in round {one[0]['/offer'][0][0]} and is erased in "
        f"round {ERASED}; from then on both histories publish the same."
    )
    return document(WIDTH, HEIGHT, "A histogram over 60 rounds and its twin", description, STYLE, body)


def main():
    parser = argparse.ArgumentParser(description="Histograms of many bins: time, memory, threshold and error.")
    parser.add_argument("--bins", type=int, default=100_000)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.picture:
        warnings.simplefilter("ignore", ra.HorizonWarning)
        options.picture.write_text(picture() + "\n", encoding="utf-8")
        return
    start = time.time()
    # One page in a hundred has many records, the others a few.
    counts = {f"page {i}": 400 if i % 100 == 0 else 1 + i % 3 for i in range(options.bins)}
    ours(counts)
    long_run(counts)
    compare(counts)
    print(f"\n{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
