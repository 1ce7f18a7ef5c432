"""Budgets that protect nothing, or drown everything: judged by the specification alone, never by data."""

from __future__ import annotations

from ..statistics import Count, Mean, Statistic, Sum
from .plan import Plan
from .specification import Specification

WEAKEST = 10.0
"""Above this epsilon a guarantee says little."""


def doubts(spec: Specification, expected: Plan) -> list[str]:
    """What somebody should know before anything is published.

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=50.0, horizon=1)
    >>> print(*doubts(spec, ra.plan(spec)))
    ε = 50 protects next to nothing: one record may change the odds of an output by a factor of e^50. Common: 0.1 to 3
    """
    guarantee, found = spec.guarantee, []
    if guarantee.epsilon > WEAKEST:
        found.append(
            f"ε = {guarantee.epsilon:g} protects next to nothing: one record may change the odds of an output by a "
            f"factor of e^{guarantee.epsilon:g}. Common: 0.1 to 3"
        )
    if guarantee.delta * spec.records >= 1:
        found.append(
            f"δ = {guarantee.delta:g} is not below 1/records, with about {spec.records:,} records (records=): it would "
            f"allow publishing records as they are. Better: {0.01 / spec.records:.0g} or less"
        )
    for name, statistic in spec.statistics.items():
        width, whole = expected[name].typical_half_width, _whole(spec, statistic)
        if whole is not None and width >= whole:
            found.append(
                f"{name}: the noise drowns it: ± {width:,.3g} at 95 %, where about {spec.records:,} records (records=) "
                f"give at most {whole:,.3g}. Better: a larger ε, fewer rounds, or fewer statistics"
            )
    return found


def _whole(spec: Specification, statistic: Statistic) -> float | None:
    """How large a statistic can be; None where nothing simple says it."""
    if isinstance(statistic, Count):
        return float(spec.records)
    if isinstance(statistic, Sum | Mean):
        field = spec.schema.fields[statistic.field]
        low, high = getattr(field, "lower", None), getattr(field, "upper", None)
        if low is None or high is None:
            return None
        return float(high - low) if isinstance(statistic, Mean) else spec.records * float(max(abs(low), abs(high)))
    return None
