"""What is published with lapped noise, over a horizon with three levels."""

from functools import partial

from golden_streams import Stream, one, planned, published

import retroact as ra

NOISE = "lapped"


def streams() -> dict[str, Stream]:
    plans = {
        "linear": one(NOISE),
        "every second round": one(NOISE, every=2),
        "bins and values": {
            "bins": ra.Histogram("city", bins=["Lyon", "Köln", "Rom"], noise=NOISE),
            "values": ra.Quantiles("age", [0.25, 0.5], cdf=[40], noise=NOISE),
            "ratio": ra.Ratio(ra.Count(where={"country": "DE"}), ra.Count(), noise=NOISE),
        },
        "restated": {"past": ra.Restated(ra.Sum("amount", noise=NOISE), [0, 2], across="rectangle")},
    }
    return {
        f"{name}, lapped": partial(published, planned(statistics, law="laplace", horizon=1000))
        for name, statistics in plans.items()
    }
