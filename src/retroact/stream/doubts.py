"""Budgets that protect nothing, or drown everything: judged by the specification alone, never by data."""

from __future__ import annotations

from fractions import Fraction

from ..messages import exact_text
from ..schema import Number
from ..statistics import Count, Mean, Statistic, Sum
from .plan import Plan
from .specification import Specification

FINE = Fraction(1, 100)
"""Values with more decimals than this are rare in wide bounds."""
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


def coarse_steps(spec: Specification) -> list[str]:
    """Steps that nobody chose, and that may be coarser than the values.

    >>> import retroact as ra
    >>> wide = {"amount": ra.Number(0, 10000), "age": ra.Number(0, 120)}
    >>> print(*coarse_steps(ra.Specification(wide, {"n": ra.Sum("amount")}, epsilon=1.0)))
    amount is rounded to steps of 1, since no step is declared: intervals cover the noise, and not the rounding. For \
finer values: step = 0.01 on the field (amount:0..10000:0.01 in an option)
    """
    found = []
    for name, field in spec.schema.fields.items():
        if isinstance(field, Number) and field.step_by_default and field.step > FINE:
            bounds = "..".join(exact_text(bound * field.step) for bound in (field.lower, field.upper))
            found.append(
                f"{name} is rounded to steps of {exact_text(field.step)}, since no step is declared: intervals cover "
                f"the noise, and not the rounding. For finer values: step = {exact_text(FINE)} on the field "
                f"({name}:{bounds}:{exact_text(FINE)} in an option)"
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
        # bounds are kept in steps
        steps = high - low if isinstance(statistic, Mean) else spec.records * max(abs(low), abs(high))
        return float(steps * field.step)
    return None
