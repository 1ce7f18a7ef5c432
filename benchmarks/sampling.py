"""Sampling with expiry: how fast the live records are kept and drawn from, what samples cost, and how many live records
an answer takes; one-shot medians beside OpenDP.

python benchmarks/sampling.py [rates | costs | needed | medians]

The peer of the live structure is what one would write first: all live records in one array that is filtered and
concatenated in every round, and drawn from with numpy (which is neither canonical nor keyed).
"""

import math
import sys
import time
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp

import retroact as ra
from retroact.coins import Key, distinct
from retroact.compilers.live_records import Live, smallest
from retroact.compilers.sample_bound import drawn_from
from retroact.oneshot import InteriorPoint, Median
from retroact.oneshot.exponential import interior_point
from retroact.paper import gate_union
from retroact.paper.sampling_costs import paper_cost
from retroact.privacy import largest_epsilon0, window_cost
from retroact.schema import Rows, Schema

SCHEMA = Schema({"x": ra.Integer(0, 2**40)})
COINS = Key.for_testing(1).coins("sampling")
LIVE = 1_000_000
EPSILON, DELTA, HORIZON, BETA = 1.0, 1e-6, 2**16, 0.05


def kept(values, stamps, span, ranks, weight=1):
    rows = Rows({"x": values}, len(values), stamps=stamps)
    return Live.of(rows, np.full(len(values), weight, dtype=np.int64), ("x",), SCHEMA, COINS, span=span, ranks=ranks)


def slide(window, ranks, rounds, deleted):
    """(operations a second, milliseconds for a sample of 100); of the older records so many are deleted for each new
    one, wherever they are."""
    each, random = LIVE // window, np.random.default_rng(window)
    span = max(1, window // 32)
    values = random.integers(0, 2**40, (window + rounds) * each)
    stamps = np.repeat(np.arange(1, window + rounds + 1), each)
    live = kept(values[:LIVE], stamps[:LIVE], span, ranks)

    def draw(round):
        if ranks is not None:
            return smallest(live, 100)
        return live.rows(distinct(COINS.branch(round), live.count, 100))

    draw(0)
    operations, spent, drawn = 0, 0.0, []
    gone = np.zeros(len(values), dtype=bool)
    for r in range(rounds):
        new = slice(LIVE + r * each, LIVE + (r + 1) * each)
        old = np.arange(r * each, (r + 1) * each)
        old = old[~gone[old]]
        some = random.choice(np.arange((r + 1) * each, LIVE), int(each * deleted), replace=False)
        some = some[~gone[some]]
        gone[some] = True
        start = time.perf_counter()
        live = live + kept(values[new], stamps[new], span, ranks)
        live = live - kept(values[old], stamps[old], span, ranks)
        live = live - kept(values[some], stamps[some], span, ranks)
        spent += time.perf_counter() - start
        operations += each + len(old) + len(some)
        start = time.perf_counter()
        draw(r + 1)
        drawn.append(time.perf_counter() - start)
    return operations / spent, 1000 * float(np.median(drawn))


def recompute(window, rounds):
    """The peer, on the same stream without deletions."""
    each, random = LIVE // window, np.random.default_rng(window)
    values = random.integers(0, 2**40, LIVE)
    stamps = np.repeat(np.arange(1, window + 1), each)
    spent, drawn = 0.0, []
    for r in range(rounds):
        new = random.integers(0, 2**40, each)
        start = time.perf_counter()
        keep = stamps > r + 1
        values, stamps = (
            np.concatenate([values[keep], new]),
            np.concatenate([stamps[keep], np.full(each, window + r + 1)]),
        )
        spent += time.perf_counter() - start
        start = time.perf_counter()
        values[random.choice(len(values), 100, replace=False)]
        drawn.append(time.perf_counter() - start)
    return 2 * each * rounds / spent, 1000 * float(np.median(drawn))


def rates():
    print(f"{LIVE:,} live records: operations a second and a sample of 100; the peer is an array that is filtered\n")
    head = f"{'window':>8} {'a round':>8} {'deleted':>8}  {'fresh':>10} {'sample':>9}  {'ranks':>10} {'sample':>9}"
    print(f"{head}  {'array':>10} {'sample':>9}  {'ratio':>6}")
    for window, rounds in ((100, 20), (1000, 40), (10_000, 60)):
        peer = recompute(window, rounds)
        for deleted in (0, 0.1):
            fresh = slide(window, None, rounds, deleted)
            ranks = slide(window, COINS, rounds, deleted)
            row = f"{window:>8,} {LIVE // window:>8,} {deleted:>8.0%}  {fresh[0]:>10,.0f} {fresh[1]:>6.2f} ms"
            row += f"  {ranks[0]:>10,.0f} {ranks[1]:>6.2f} ms"
            print(f"{row}  {peer[0]:>10,.0f} {peer[1]:>6.2f} ms  {fresh[0] / peer[0]:>6.1f}" if not deleted else row)
    stream = ra.Stream(
        {"x": ra.Integer(0, 2**40)},
        {"median": ra.WindowSample(Median("x"), window=100, size=100, gate=50_000)},
        epsilon=EPSILON, delta=DELTA, horizon=1000,
    )  # fmt: skip
    random, times = np.random.default_rng(1), []
    for _ in range(120):
        stream.add({"x": random.integers(0, 2**40, LIVE // 100)})
        start = time.perf_counter()
        stream.close_round()
        times.append(time.perf_counter() - start)
    last = float(np.median(times[-20:]))
    print(f"\na stream with a gate, 10,000 records a round, window 100: {1000 * last:.1f} ms a round, ledger included")
    print(f"({LIVE // 100 / last:,.0f} records/s)")


def costs():
    """What one record costs over W releases of an algorithm with epsilon 1: the paper's bound, and ours."""
    print("epsilon at delta = 1e-6 for one record in W releases, each run an exponential mechanism of epsilon 1\n")
    print(f"{'W':>6} {'q':>6}  {'paper':>8} {'fresh':>8} {'range':>8} {'Poisson':>8} {'range':>8} {'ratio':>6}")
    for window in (24, 168, 1000, 10_000):
        for n in (9, 99, 999):
            size, q = 1, 1 / (n + 1)
            paper = paper_cost(
                "fresh", releases=window, epsilon0=1, delta0=0, delta=DELTA, size=size, occupancy=n
            ).epsilon
            fresh, ranged = (
                window_cost(
                    "fresh", releases=window, epsilon0=1, delta0=0, delta=DELTA, size=size, occupancy=n, bounded_range=b
                )
                for b in (False, True)
            )
            plain, best = (
                window_cost("poisson", releases=window, epsilon0=1, delta0=0, delta=DELTA, rate=q, bounded_range=b)
                for b in (False, True)
            )
            print(f"{window:>6,} {q:>6.3f}  {paper:>8.3f} {fresh.epsilon:>8.3f} {ranged.epsilon:>8.3f} "
                  f"{plain.epsilon:>8.3f} {best.epsilon:>8.3f} {paper / best.epsilon:>6.1f}")  # fmt: skip


def needed_for(bits, window):
    """Live records for an interior point with probability 0.95: the paper's corollary, a gate with our accounting, a
    Poisson sample, the whole window."""
    schema = Schema({"x": ra.Integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)})

    def needed(epsilon0, beta=BETA):
        return InteriorPoint("x", epsilon=epsilon0).needed(schema, beta)

    # The corollary: epsilon0 = 1, a fifth of epsilon for the gate, which must pass at 2n and is sure to at 3n.
    k = needed(Fraction(1))
    n = 1 + gate_union(HORIZON, EPSILON / 5, DELTA / 2)
    while (
        paper_cost("fresh", releases=window, epsilon0=1, delta0=0, delta=DELTA / 2, size=k, occupancy=n).epsilon > 0.8
    ):
        n = math.ceil(n * 1.01)
    best = min(
        drawn_from(
            needed(
                largest_epsilon0("poisson", releases=window, epsilon=EPSILON, delta=DELTA, rate=q, bounded_range=True),
                BETA / 2,
            ),
            q,
        )
        for q in (0.5, 0.25, 0.1, 0.05, 0.01)
    )
    whole = needed(largest_epsilon0("whole", releases=window, epsilon=EPSILON, delta=DELTA, bounded_range=True))
    return n, 3 * n, best, whole


CASES = ((32, 24), (32, 1000), (64, 168), (64, 1000), (64, 10_000))


def needed():
    print("live records for a window interior point, (1, 1e-6) in all, probability 0.95, 65,536 rounds\n")
    head = f"{'domain':>7} {'W':>7}  {'corollary: n':>13} {'sure at 3n':>11} {'Poisson':>9}"
    print(f"{head} {'whole window':>13} {'ratio':>7}")
    for bits, window in CASES:
        n, sure, poisson, whole = needed_for(bits, window)
        print(f"  2^{bits:<4} {window:>7,}  {n:>13,} {sure:>11,} {poisson:>9,} {whole:>13,} {sure / whole:>7.0f}")


def peer_median(scale):
    """OpenDP's, with 4,096 candidates over the domain."""
    grid = np.unique(np.linspace(0, 2**32 - 1, 4096).astype(np.int64)).tolist()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=grid, alpha=0.5, scale=scale)


def timed(values, runs, ask):
    """Mean rank error and milliseconds."""
    start = time.perf_counter()
    found = [ask(run) for run in range(runs)]
    spent = time.perf_counter() - start
    return np.mean(np.abs(np.searchsorted(values, found) - len(values) / 2)), 1000 * spent / runs


def medians():
    """One shot: our exact exponential mechanism and OpenDP's."""
    dp.enable_features("contrib")
    random = np.random.default_rng(3)
    peer = peer_median(dp.binary_search_param(peer_median, 1, 1.0))
    print("one private median at epsilon = 1 of values below 2^32: rank error (mean of 20) and time\n")
    print(f"{'records':>9}  {'ours':>6} {'ms':>7}  {'OpenDP':>7} {'ms':>8}  {'time ratio':>10}")
    for n in (1000, 10_000, 100_000):
        values = np.sort(random.integers(0, 2**32, n))
        coins, listed = COINS.branch("median", n), values.tolist()
        own = timed(values, 20, partial(ours, values, coins))
        other = timed(values, 20, lambda run, listed=listed: peer(listed))
        row = f"{n:>9,}  {own[0]:>6.1f} {own[1]:>7.2f}  {other[0]:>7.1f} {other[1]:>8.2f}"
        print(f"{row}  {other[1] / own[1]:>10.1f}")


def ours(values, coins, run):
    return interior_point(values, 0, 2**32 - 1, Fraction(1), coins.branch(run))


if __name__ == "__main__":
    parts = {"rates": rates, "costs": costs, "needed": needed, "medians": medians}
    for number, name in enumerate(sys.argv[1:] or parts):
        print("\n" * bool(number), end="")
        parts[name]()
