"""What is published by group, as a ratio, and of categories with a rest; law and noise are named everywhere."""

from functools import partial

from golden_history import ROUNDS, SCHEMA
from golden_streams import DELTAS, Stream, planned, played, published

import retroact as ra


def with_a_rest(law):
    """Every statistic that groups, by a category that lists only some of the values."""
    statistics = {
        "count": ra.GroupBy("country", ra.Count(noise="schauder")),
        "quantiles": ra.Quantiles("age", [0.5], by="country", noise="schauder"),
        "bins": ra.Histogram("country", noise="schauder"),
    }
    schema = {**SCHEMA, "country": ra.Category(["DE"], other="rest")}
    spec = ra.Specification(schema, statistics, law=law, epsilon=12.0, horizon=ROUNDS, delta=DELTAS[law])
    yield from played(ra.Stream.from_specification(spec, key=ra.Key.for_testing(1)), range(1, ROUNDS + 1))


def streams() -> dict[str, Stream]:
    share = ra.Ratio(ra.Count(where={"country": "DE"}), ra.Count(), noise="schauder")
    sums = ra.Ratio(ra.Sum("amount"), ra.Sum("age", where={"member": True}), noise="bridge", window=3)
    found: dict[str, Stream] = {}
    for law in ("laplace", "gaussian"):
        for name, statistic in {
            "ratio of counts": share,
            "ratio of sums in a window": sums,
            "ratio by group": ra.GroupBy(["country", "member"], share.replace(top=ra.Sum("age"))),
            "quantiles by group": ra.Quantiles("age", [0.25, 0.5], cdf=[40], by="country", noise="schauder"),
            "quantiles by two fields": ra.Quantiles("day", by=["country", "size"], noise="tree", every=2),
            "distances by group": ra.Distances("place", [0.5], by="member", noise="schauder"),
        }.items():
            found[f"{name}, {law}"] = partial(published, planned({"s": statistic}, law=law))
        found[f"distinct by group, {law}"] = partial(
            published, planned({"s": ra.Distinct("city", by="country")}, law=law, chosen={"s": "any rounds"})
        )
        found[f"categories with a rest, {law}"] = partial(with_a_rest, law)
    return found
