"""Statistics as they are written in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError
from .clusters import Distances, KMeans, KMedian
from .count import Count
from .distinct import Distinct
from .group import GroupBy
from .histogram import Histogram
from .linear import Linear
from .mean import Mean
from .quantiles import Quantiles
from .restated import Restated
from .statistic import Statistic
from .sum import Sum
from .variance import Variance

OPTIONS = ("where", "window", "every", "noise", "weight")
# What wraps a statistic: groups of it, and its restated past.
AROUND = ("by", "lags", "across")

CLUSTERS = ("k", "radius", "centre", "scale", "clip", "expected", "mode", "levels", "bits")

# For each type: what makes it, the key of its fields, and what else it takes.
TYPES: dict[str, tuple[Callable[..., Statistic], str | None, tuple[str, ...]]] = {
    Count.kind: (Count, None, ()),
    Sum.kind: (Sum, "field", ()),
    Mean.kind: (Mean, "field", ()),
    Variance.kind: (Variance, "field", ()),
    Histogram.kind: (Histogram, "field", ("sum", "bins", "adaptive", "most_bins", "limit")),
    Quantiles.kind: (Quantiles, "field", ("probabilities", "cdf", "counts")),
    Distinct.kind: (Distinct, "field", ("form", "block", "additions", "flips")),
    Distances.kind: (Distances, "field", ("probabilities", "cdf", "counts", "radius", "centre", "scale")),
    KMeans.kind: (KMeans, "field", CLUSTERS),
    KMedian.kind: (KMedian, "field", CLUSTERS),
}
REQUIRED = {KMeans.kind: ("k",), KMedian.kind: ("k",)}
SEVERAL = (Histogram.kind, Distinct.kind, Distances.kind, KMeans.kind, KMedian.kind)


def statistic_from_spec(spec: Mapping[str, Any], place: str) -> Statistic:
    """
    >>> statistic_from_spec({"type": "sum", "field": "amount", "by": "country"}, "revenue")
    GroupBy(by='country', of={'type': 'sum', 'field': 'amount', 'every': 1})
    >>> statistic_from_spec({"type": "histogram", "field": ["country", "age"], "lags": [7]}, "past")
    Restated(of={'type': 'histogram', 'by': ['country', 'age'], 'every': 1}, lags=[7])
    """
    if not isinstance(spec, Mapping):
        raise InputError(f'expected a table such as {{ type = "count" }}, got {spec!r}', place=place)
    kind = spec.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise InputError(f"expected one of {', '.join(TYPES)}, got {kind!r}", place=f"{place}.type")
    make, key, more = TYPES[kind]
    allowed = ("type", *((key,) if key else ()), *more, *OPTIONS, *AROUND)
    unknown = [name for name in spec if name not in allowed]
    if unknown:
        raise InputError(f"expected only {', '.join(allowed)}, got {unknown[0]!r}", place=f"{place}.{unknown[0]}")
    if "where" in spec and not isinstance(spec["where"], Mapping):
        raise InputError(f"expected a table of conditions, got {spec['where']!r}", place=f"{place}.where")
    missing = [name for name in REQUIRED.get(kind, ()) if name not in spec]
    if missing:
        raise InputError(f"expected {missing[0]}, which is missing", place=f"{place}.{missing[0]}")
    arguments = (_fields(spec, kind, key, place),) if key else ()
    options = {name: spec[name] for name in (*more, *OPTIONS) if name in spec}
    try:
        return _around(make(*arguments, **options), spec)
    except InputError as error:
        raise error.under(place) from None


def _fields(spec: Mapping[str, Any], kind: str, key: str, place: str) -> Any:
    given = spec.get(key)
    several = kind in SEVERAL and isinstance(given, list) and all(isinstance(name, str) for name in given)
    if not isinstance(given, str) and not several:
        expected = "the name of a field, or a list of them" if kind in SEVERAL else "the name of a field"
        raise InputError(f"expected {expected}, got {given!r}", place=f"{place}.{key}")
    return given


def _around(statistic: Statistic, spec: Mapping[str, Any]) -> Statistic:
    if "by" in spec:
        if not isinstance(statistic, Linear):
            raise InputError(f"expected a statistic with a list of coordinates, got {spec['type']!r}", place="by")
        statistic = GroupBy(spec["by"], statistic)
    if "lags" in spec:
        return Restated(statistic, spec["lags"], across=spec.get("across"))
    if "across" in spec:
        raise InputError("expected lags beside it", place="across")
    return statistic
