"""Streams of orders."""

import retroact as ra

SCHEMA = {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}
ORDER = {"country": "DE", "amount": 12.5, "age": 31}


def stream(seed=1, *, horizon=20, epsilon=1.0, delta=1e-6, schema=SCHEMA, window=None, law=None, **statistics):
    return ra.Stream(
        schema,
        statistics or {"orders": ra.Count(), "revenue": ra.Sum("amount")},
        epsilon=epsilon,
        delta=delta,
        horizon=horizon,
        window=window,
        law=law,
        key=ra.Key.for_testing(seed),
    )


def totals(one, name="orders"):
    """The true totals behind the last release."""
    return [int(t) for t in one._core.engine.running[name].totals[0]]
