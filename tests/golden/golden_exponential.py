"""What is published of quantiles by the exponential mechanism: values and the ends of their intervals."""

from functools import partial

from golden_streams import DELTAS, Stream, planned, published

import retroact as ra

NOISE = "exponential"


def streams() -> dict[str, Stream]:
    plans = {
        "fields": {
            "ages": ra.Quantiles("age", [0.5], noise=NOISE),
            "amounts": ra.Quantiles("amount", [0.25, 0.9], noise=NOISE, where={"member": True}),
            "moments": ra.Quantiles("at", [0.5], noise=NOISE),
        },
        "groups": {"ages": ra.Quantiles("age", [0.5], by=["country", "member"], noise=NOISE)},
        "windows": {"ages": ra.Quantiles("age", [0.5, 0.99], window=3, noise=NOISE)},
        "every second round": {"days": ra.Quantiles("day", [0.75], every=2, noise=NOISE)},
    }
    found: dict[str, Stream] = {}
    for law, delta in DELTAS.items():
        for name, statistics in plans.items():
            found[f"{name}, {NOISE}, {law}"] = partial(published, planned(statistics, law=law, epsilon=30.0))
        beside = {"ages": ra.Quantiles("age", [0.5], noise=NOISE), "n": ra.Count(noise="schauder")}
        found[f"beside a count, {NOISE}, {law}"] = partial(
            published, planned(beside, law=law, epsilon=20.0, delta=max(delta, 1e-6))
        )
    return found
