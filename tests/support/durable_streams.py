"""A stream in a store, the same in every test."""

import numpy as np

import retroact as ra

SCHEMA = {"name": ra.Text(), "amount": ra.Integer(0, 2 * 10**11)}
STATISTICS = {"people": ra.Count(), "total": ra.Sum("amount"), "recent": ra.Count(window=2, every=2)}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "horizon": 50}
KEY = ra.Key.for_testing(5)


def opened(where, tmp_path, name="a", *, budget=BUDGET, statistics=STATISTICS, key=KEY, **more):
    return ra.Stream.open(where, SCHEMA, statistics, key=key, fence=tmp_path / f"{name}.fence", **{**budget, **more})


def fill(stream, round, *, without=()):
    random = np.random.default_rng(round)
    for k in range(60):
        subject, amount = f"person-{k % 20:02}", int(random.integers(10**11, 2 * 10**11))
        if subject not in without:
            record = {"name": f"name of {subject} {round}", "amount": amount}
            stream.add(record, id=f"id-{round}-{k}" if k % 2 else None, subject=subject)
