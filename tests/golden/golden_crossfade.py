"""What is published with crossfade noise: over a horizon, in windows, and without either past the end of an epoch."""

from functools import partial

from golden_history import ROUNDS, happen
from golden_streams import Stream, clusters, one, planned, played, published

import retroact as ra

NOISE = "crossfade"
# The first epoch of a stream without a horizon ends with this round.
EPOCH = 1023


def later(make, *first_rounds):
    """Some stretches of three rounds of a long stream. Nothing happens after round 8."""
    stream = ra.Stream.from_specification(make(), key=ra.Key.for_testing(1))
    yield from played(stream, range(1, ROUNDS + 1))
    for first in first_rounds:
        while stream.round < first:
            stream.close_round()
        for _ in range(3):
            yield from (release.encode() for release in stream.close_round().values())


def keyed():
    """One instance of clusters only: they are large."""
    return {
        "bins": ra.Histogram("city", noise=NOISE),
        "values": ra.Quantiles("age", [0.25, 0.5], cdf=[40], noise=NOISE),
        "by group": ra.Quantiles("age", [0.5], by="country", noise=NOISE),
        "means": clusters(NOISE)["grid"],
    }


def restored(make):
    """It goes on from its state every two rounds."""
    spec, key = make(), ra.Key.for_testing(1)
    stream = ra.Stream.from_specification(spec, key=key)
    for round in range(1, ROUNDS + 1):
        happen(stream, round)
        yield from (release.encode() for release in stream.close_round().values())
        if round % 2 == 0:
            stream = ra.Stream.from_state(spec, stream.state(), key=key)


def streams() -> dict[str, Stream]:
    two = {"n": ra.Count(noise=NOISE), "age": ra.Mean("age", noise=NOISE)}
    plan = partial(planned, law="gaussian")
    found: dict[str, Stream] = {
        "linear": partial(published, plan(one(NOISE), horizon=1000)),
        "over the shortest horizons": partial(published, plan(one(NOISE))),
        "every second round": partial(published, plan(one(NOISE, every=2), horizon=300)),
        "bins and values": partial(published, plan(keyed(), horizon=63, epsilon=40.0, delta=0.05)),
        "large units": partial(published, plan({"s": ra.Sum("amount", noise=NOISE)}, horizon=65_535, epsilon=0.5)),
        "separate lags": partial(
            published, plan({"past": ra.Restated(ra.Count(noise=NOISE), [0, 2], across="lags")}, horizon=100)
        ),
        "states": partial(restored, plan(two, horizon=40)),
        "to the last round": partial(later, plan(two, horizon=40), 14, 30, 38),
        "windows": partial(published, plan(one(NOISE, window=3), horizon=1000)),
        "windows without end": partial(later, plan(two, window=40, horizon=None), 31, 64, 80),
        "windows every second round": partial(published, plan(one(NOISE, every=2, window=4), horizon=None)),
        "without end": partial(published, plan(one(NOISE), horizon=None)),
        "past the end of an epoch": partial(later, plan(two, horizon=None), EPOCH - 1, 2 * EPOCH),
    }
    return {f"{name}, {NOISE}": stream for name, stream in found.items()}
