"""1,000 rounds of one row against one round of 1,000 rows, gathered at once, for every example of every statistic.

Processor time, medians of nine. The last columns make the totals of every round, one object each, which a stream does
as it releases them.
"""

import statistics
import time
import warnings
from random import Random

import numpy as np

import retroact as ra
from retroact.coins import Coins
from retroact.statistics import Statistic
from retroact.testing.histories import values_of
from retroact.testing.records import Record, rows_of

ROWS, RUNS = 1000, 9


def microseconds(work):
    work()
    times = []
    for _ in range(RUNS):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return statistics.median(times) / 1e3


def measured(example):
    options = {"epsilon": 1.0, "horizon": 64, **example.stream}
    spec = ra.Specification(example.schema, {"it": example.statistic}, **options)
    random = Random(1)
    values = list(values_of(spec.schema, random, whole=True))
    records = [Record(dict(zip(spec.schema.fields, random.choice(values), strict=True)), 1, 1) for _ in range(ROWS)]
    rows, weights = rows_of(spec.schema, records)[0], np.ones(ROWS, dtype=np.int64)
    bound = spec.bounds["it"].drawn(Coins(bytes(32)))
    one, many = np.ones(ROWS, dtype=np.int64), np.arange(1, ROWS + 1)
    return (
        microseconds(lambda: bound.gather_by(rows, weights, one)),
        microseconds(lambda: bound.gather_by(rows, weights, many)),
        microseconds(lambda: list(bound.gather_by(rows, weights, many).items())),
    )


def main():
    warnings.simplefilter("ignore", ra.HorizonWarning)
    print(f"{'':36}{'one round':>12}{'1,000 rounds':>14}{'ratio':>8}{'and each made':>16}{'ratio':>8}")
    worst = 0.0
    for kind in sorted(Statistic.kinds):
        for example in Statistic.kinds[kind].examples():
            one, many, made = measured(example)
            worst = max(worst, many / one)
            ratios = f"{many / one:7.1f}x", f"{made / one:7.1f}x"
            print(f"{example.name:36}{one:9.0f} us{many:11.0f} us{ratios[0]}{made:13.0f} us{ratios[1]}")
    print(f"\nworst ratio {worst:.1f}, expected at most 3")


if __name__ == "__main__":
    main()
