"""The median of a long stream: rank errors and times, beside the exponential mechanism in every round and OpenDP.

python benchmarks/quantiles.py [--seeds N] [BITS ...]
python benchmarks/quantiles.py --picture PATH

The stream: 4,095 rounds with 100 additions each, 70 % of them deleted about 300 rounds later, (1, 1e-6)-private as a
whole. Two kinds of values: uniform ones, whose median is the middle of the domain, where Haar weights are small, and
skewed ones (u^1.6), whose median is at a third of it. The default, crossfade noise, stands beside Schauder noise. The
peers answer afresh in every round, each with its share of the budget by concentrated composition; OpenDP needs a list
of candidates: 4,096 over the domain, evenly.
"""

import argparse
import math
import time
import warnings
from pathlib import Path

import numpy as np
import opendp.prelude as dp

import retroact as ra
from retroact.privacy import ZeroConcentratedDP
from retroact.report.axes import Panel, ticks
from retroact.report.svg import document, joined, segment, text
from retroact.statistics.bound import At
from retroact.statistics.tally import Tally
from retroact.statistics.value_tree import ValueTree

EPSILON, DELTA, ROUNDS, ADDITIONS = 1.0, 1e-6, 4095, 100
CHECKED = np.linspace(1000, ROUNDS, 60).astype(int)
SHAPES = {"uniform": 1.0, "skewed": 1.6}
STUDY = {16: 74, 32: 113, 64: 151}
CANDIDATE_BITS = 12
NAMES = ("Retroact", "Retroact, Schauder noise", "exponential mechanism each round", "OpenDP each round")


def largest_rho():
    """The zero-concentrated budget that is worth (1, 1e-6)."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if ZeroConcentratedDP(middle).epsilon(DELTA) <= EPSILON else (low, middle)
    return low


class Peers:
    """Answers from sorted values alone; the exponential mechanism is of bounded range: rho = eps0^2 / 8 a release."""

    def __init__(self, bits, releases, rng):
        self.bits, self.rng = bits, rng
        rho = largest_rho() / releases
        self.epsilon = math.sqrt(8 * rho)
        known = min(bits, CANDIDATE_BITS)
        self._candidates = np.arange(1 << known, dtype=np.uint64) << np.uint64(bits - known)
        self._opendp = dp.m.make_private_quantile(
            dp.vector_domain(dp.atom_domain(T="u64")),
            dp.symmetric_distance(),
            dp.zero_concentrated_divergence(),
            self._candidates.tolist(),
            alpha=0.5,
            scale=1 / self.epsilon * (1 + 1e-9),
        )
        assert self._opendp.map(1) <= rho

    def opendp(self, ordered):
        return self._opendp(ordered)

    def exponential(self, ordered):
        """P(o) in proportion to exp(eps0 * min(#<=o, #>=o)), over all values of the domain, by intervals."""
        size = len(ordered)
        # Beyond so many ranks from the middle nothing has a weight to speak of.
        reach = math.ceil(60 / self.epsilon)
        first, last = max(0, size // 2 - reach), min(size, size // 2 + reach)
        near = ordered[first:last]
        begins = np.flatnonzero(np.concatenate([[True], near[1:] != near[:-1]]))
        values = near[begins]
        below = first + begins
        upto = np.concatenate([below[1:], [last]])
        gaps = np.diff(values) - np.uint64(1)
        scores = np.concatenate([np.minimum(upto, size - below), np.minimum(below[1:], size - below[1:])])
        lengths = np.concatenate([np.ones(len(values)), gaps.astype(np.float64)])
        with np.errstate(divide="ignore"):
            pieces = self.epsilon * scores + np.log(lengths) + self.rng.gumbel(size=len(scores))
        chosen = int(np.argmax(pieces))
        if chosen < len(values):
            return int(values[chosen])
        before = chosen - len(values)
        return int(values[before]) + 1 + int(self.rng.random() * int(gaps[before]))


def specification(bits, horizon=ROUNDS, probabilities=(0.5,), noise="crossfade"):
    """A tree, with the noise that streams of many rounds have by default."""
    field = ra.Integer(-(2**63), -(2**63) + 2**bits - 1)
    statistics = {"q": ra.Quantiles("v", probabilities, noise=noise)}
    return ra.Specification({"v": field}, statistics, epsilon=EPSILON, delta=DELTA, horizon=horizon)


def mechanism(spec, seed):
    return spec.mechanism("q", ra.Key.for_testing(seed).coins("stream"))


def tally_of(ordered):
    return Tally((ordered,), np.ones((len(ordered), 1), dtype=np.int64))


def median(ordered, bits, noise, round):
    tree = ValueTree(tally_of(ordered), bits, noise, round)
    return tree.descend([tree.rank(0.5)])[0]


def rank_error(ordered, value):
    """How many ranks a value is from being a median."""
    below, upto = (np.searchsorted(ordered, np.uint64(value), side=side) for side in ("left", "right"))
    return max(0.0, below - len(ordered) / 2, len(ordered) / 2 - upto)


def values_of(uniform, bits, shape):
    return (uniform ** SHAPES[shape] * 2.0**bits).astype(np.uint64)


class History:
    """The same for every domain and kind of values: who lives when, in the order of the values."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        count = ROUNDS * ADDITIONS
        self.uniform = np.sort(rng.random(count))
        self._added = rng.permutation(np.repeat(np.arange(1, ROUNDS + 1), ADDITIONS))
        leaves = rng.random(count) < 0.7
        self._gone = np.where(leaves, self._added + rng.integers(200, 401, count), ROUNDS + 1)

    def live(self, round):
        return (self._added <= round) & (round < self._gone)


def errors(bits, seeds):
    """For every kind of values and every method the rank errors at the checked rounds of all seeds."""
    specs = [specification(bits, noise=noise) for noise in ("crossfade", "schauder")]
    out = {shape: [[] for _ in NAMES] for shape in SHAPES}
    for seed in range(seeds):
        history, peers = History(seed), Peers(bits, ROUNDS, np.random.default_rng([seed, bits]))
        trees = [mechanism(spec, seed) for spec in specs]
        for shape in SHAPES:
            values = values_of(history.uniform, bits, shape)
            for round in CHECKED.tolist():
                ordered = values[history.live(round)]
                found = [median(ordered, bits, noise, round) for noise in trees]
                found += [peers.exponential(ordered), peers.opendp(ordered)]
                for own, value in zip(out[shape], found, strict=True):
                    own.append(rank_error(ordered, value))
    return out


def show_errors(bits, seeds):
    whole = errors(bits, seeds)
    for shape, found in whole.items():
        ours = np.mean(found[0])
        for name, own in zip(NAMES, found, strict=True):
            mean, high = np.mean(own), np.percentile(own, 95)
            study = f"{STUDY[bits]:>8}" if own is found[0] and bits in STUDY else ""
            print(f"2^{bits:<6}{shape:10}{name:36}{mean:8.0f}{high:8.0f}{mean / ours:9.2f}x{study}")
    ours, schauder = (np.mean([found[which] for found in whole.values()]) for which in (0, 1))
    print(f"2^{bits:<6}both: {ours / schauder:.3f} of the error with Schauder noise")


def show_horizons(bits=32, size=100_000, draws=300):
    """Where the exponential mechanism is better: few releases. Skewed values that do not change."""
    print(f"\nMean rank error by the number of releases, 2^{bits}, skewed, {size:,} records")
    print(f"{'releases':>9}{'ours':>9}{'exponential':>13}{'theirs / ours':>15}")
    rng = np.random.default_rng(1)
    ordered = np.sort(values_of(rng.random(size), bits, "skewed"))
    for horizon in (1, 15, 127, 1023, 4095, 16_383, 65_535):
        spec, peers = specification(bits, horizon=horizon), Peers(bits, horizon, rng)
        rounds = np.linspace(1, horizon, draws).astype(int).tolist()
        ours = [
            rank_error(ordered, median(ordered, bits, mechanism(spec, seed), round))
            for seed, round in enumerate(rounds)
        ]
        theirs = [rank_error(ordered, peers.exponential(ordered)) for _ in range(draws)]
        print(f"{horizon:9,}{np.mean(ours):9.0f}{np.mean(theirs):13.0f}{np.mean(theirs) / np.mean(ours):14.2f}x")


def milliseconds(function, calls=50):
    taken = []
    for number in range(calls):
        start = time.perf_counter()
        function(number)
        taken.append(time.perf_counter() - start)
    return 1e3 * float(np.median(taken))


def show_times(bits, size=100_000):
    rng = np.random.default_rng(2)
    ordered = np.sort(values_of(rng.random(size), bits, "skewed"))
    totals, peers = tally_of(ordered), Peers(bits, ROUNDS, rng)
    taken = []
    for probabilities in ((0.5,), tuple(k / 100 for k in range(1, 100))):
        spec = specification(bits, probabilities=probabilities)
        noise, bound = mechanism(spec, 1), spec.bounds["q"]
        taken.append(milliseconds(lambda k, b=bound, n=noise: b.release([totals], n, At(1000 + k, 1))))
    taken += [milliseconds(lambda k, ask=ask: ask(ordered)) for ask in (peers.exponential, peers.opendp)]
    print(f"2^{bits:<6}{taken[0]:14.1f}{taken[1]:18.1f}{taken[2]:22.1f}{taken[3]:12.1f}")


# The picture ---------------------------------------------------------------------------------------------------------

STYLE = """
text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 13px; fill: #333 }
.title { font-size: 17px; font-weight: 600; fill: #111 } .tick, .unit, .small { font-size: 12px; fill: #666 }
.grid { stroke: #e4e4e4 } .zero, .axis { stroke: #888 } .erasure { stroke: #b91c1c; stroke-dasharray: 4 3 }
.red { fill: #b91c1c } .line { fill: none; stroke-width: 2; stroke-linejoin: round }
.low { stroke: #2a9d8f } .middle { stroke: #1d4e89 } .high { stroke: #c2410c }
.low.band, .middle.band, .high.band { stroke: none; opacity: 0.16 }
.low.band { fill: #2a9d8f } .middle.band { fill: #1d4e89 } .high.band { fill: #c2410c }
.twin { stroke: #111; stroke-width: 1.7; stroke-dasharray: 0.1 4.5; stroke-linecap: round }
""".strip()
KINDS = {0.25: "low", 0.5: "middle", 0.75: "high"}
ERASED, LAST = 60, 100


def stories():
    """Two streams under one key: one gets the orders of a reseller and erases them, the other never had them."""
    streams = [
        ra.Stream(
            {"amount": ra.Number(0, 500, step=0.01)}, {"q": ra.Quantiles("amount", list(KINDS))},
            epsilon=EPSILON, delta=DELTA, horizon=LAST, key=ra.Key.for_testing(1),
        )
        for _ in range(2)
    ]  # fmt: skip
    warnings.simplefilter("ignore", ra.HorizonWarning)
    rng = np.random.default_rng(3)
    out = [[], []]
    for round in range(1, LAST + 1):
        orders = np.round(500 * rng.beta(2, 5, 150), 2)
        bulk = np.round(rng.uniform(300, 480, 120), 2)
        for stream, own in zip(streams, out, strict=True):
            stream.add({"amount": orders})
            if stream is streams[0] and 15 < round < ERASED:
                stream.add({"amount": bulk}, subject=["reseller"] * len(bulk))
            if stream is streams[0] and round == ERASED:
                stream.erase(subject="reseller")
            own.append(stream.close_round()["q"])
    return out


def picture():
    told, twin = stories()
    same = [one.encode() == other.encode() for one, other in zip(told, twin, strict=True)]
    assert all(same[ERASED - 1 :])
    assert not any(same[20 : ERASED - 1])
    panel = Panel(64, 92, 820, 300, (1, LAST), (0, 480))
    gap = Panel(64, 452, 820, 84, (1, LAST), (-20, 200))
    body = [
        text(64, 34, "Quartiles of the amounts of all surviving orders, with 95 % intervals", "title"),
        text(
            64,
            56,
            f"ε = {EPSILON:g}, δ = 10⁻⁶ for all {LAST} rounds; one reseller is erased in round {ERASED}",
            "small",
        ),
        panel.grid(ticks(0, 480, 5)),
        panel.axis([1, 20, 40, 60, 80, 100]),
        gap.grid([0, 100, 200]),
        gap.axis([1, 20, 40, 60, 80, 100], unit="round"),
        text(64, gap.top - 10, "difference between the two streams: exactly 0 from the erasure on", "small"),
    ]
    rounds = range(5, LAST + 1)
    for p, kind in KINDS.items():
        chosen = [told[r - 1] for r in rounds]
        upper = [(r, one.interval(0.95)[p][1]) for r, one in zip(rounds, chosen, strict=True)]
        lower = [(r, one.interval(0.95)[p][0]) for r, one in zip(rounds, chosen, strict=True)]
        clipped = [(r, min(high, 480)) for r, high in upper]
        body.append(panel.area(clipped, lower, f"{kind} band"))
    for p, kind in KINDS.items():
        body.append(panel.line([(r, told[r - 1].value[p]) for r in rounds], kind))
        body.append(panel.line([(r, twin[r - 1].value[p]) for r in rounds], "twin"))
        body.append(gap.line([(r, told[r - 1].value[p] - twin[r - 1].value[p]) for r in rounds], kind))
    for one in (panel, gap):
        body.append(segment(one.x(ERASED), one.top - 6, one.x(ERASED), one.bottom, "erasure"))
    body.append(text(panel.x(ERASED) + 6, panel.top + 6, "erasure", "red"))
    left = 64.0
    for kind, name in (
        ("high", "3/4"),
        ("middle", "median"),
        ("low", "1/4"),
        ("twin", "a stream that never had the reseller"),
    ):
        body += [segment(left, 74, left + 26, 74, f"line {kind}"), text(left + 33, 78, name)]
        left += 48 + 8 * len(name) + 12
    description = (
        "Three curves with bands rise while the reseller's orders come in, fall when they are erased, and from then on "
        "are those of a stream that never had them."
    )
    return document(920, 596, "Private quartiles before and after an erasure", description, STYLE, joined(*body))


def main():
    parser = argparse.ArgumentParser(description="Quantiles of a long stream, beside peers.")
    parser.add_argument("bits", nargs="*", type=int, metavar="BITS")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.picture:
        options.picture.write_text(picture() + "\n", encoding="utf-8")
        return
    dp.enable_features("contrib")
    start = time.time()
    domains = options.bits or [16, 32, 64]
    rho = largest_rho()
    print(f"Median, {ROUNDS:,} rounds, epsilon = {EPSILON:g}, delta = {DELTA:g}, {options.seeds} seeds, 60 rounds each")
    print(f"peers: rho = {rho:.4g} in all, epsilon = {math.sqrt(8 * rho / ROUNDS):.4g} a round")
    print(f"{'domain':8}{'values':10}{'method':36}{'mean':>8}{'95 %':>8}{'/ ours':>10}{'study':>8}   (rank errors)")
    for bits in domains:
        show_errors(bits, options.seeds)
    show_horizons()
    print("\nTime of a release at 100,000 records, in ms, intervals at six levels included; peers: the median alone")
    print(f"{'domain':8}{'our median':>14}{'our 99 quantiles':>18}{'exponential (numpy)':>22}{'OpenDP':>12}")
    for bits in domains:
        show_times(bits)
    print(f"\n{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
