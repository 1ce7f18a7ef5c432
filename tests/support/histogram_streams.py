"""Streams of histograms."""

import retroact as ra

SCHEMA = {
    "page": ra.Text(),
    "digest": ra.Bytes(),
    "country": ra.Category(["DE", "FR"]),
    "age": ra.Integer(0, 120),
    "day": ra.Date("2020-01-01", "2029-12-31"),
    "member": ra.Boolean(),
    "amount": ra.Number(-10, 500, step=0.01),
}
PAGES = {"page": ra.Text(), "amount": ra.Number(-10, 500, step=0.01)}


def specification(statistic, *, epsilon=200.0, delta=0.3, horizon=8, schema=PAGES, **options):
    """With Gaussian noise where there is a delta, so that both laws are tried."""
    budget = {"epsilon": epsilon, "delta": delta, "law": "gaussian" if delta else "laplace"}
    return ra.Specification(schema, {"h": statistic}, horizon=horizon, **budget, **options)


def stream_of(statistic, *, seed=1, **budget):
    return ra.Stream.from_specification(specification(statistic, **budget), key=ra.Key.for_testing(seed))


def pages(*names, amount=1.0):
    return {"page": list(names), "amount": [amount] * len(names)}


def totals(stream):
    (tally,) = stream._core.engine.running["h"].totals
    return tally
