"""What each statistic is granted of the budget under a law: declared costs and thresholds come first, and the rest is
divided by weight."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import InputError
from ..noise.default_process import Law
from ..privacy import Kind, Share, check_budget, split
from ..statistics import Grant

if TYPE_CHECKING:
    from .specification import Specification

# The part of delta for thresholds when noise needs delta too: the optimum is flat (docs/proofs.md, 7).
THRESHOLD_SHARE = Fraction(7, 20)


def granted(spec: Specification, law: Law, noise: Mapping[str, str] | None = None) -> dict[str, Grant]:
    """The grant of each statistic under a law; ``noise`` names the processes once they are chosen."""
    whole = sum(spec.exact_weights.values())
    parts = {name: weight / whole for name, weight in spec.exact_weights.items()}
    failures, shares = _split(spec, law)
    return {
        name: Grant(
            **vars(spec.terms(name)),
            schema=spec.schema,
            share=shares[name],
            failure=failures[name],
            budget=(Fraction(spec.epsilon) * parts[name], Fraction(spec.delta) * parts[name]),
            noise=noise[name] if noise else "",
        )
        for name in spec.statistics
    }


def _split(spec: Specification, law: Law) -> tuple[dict[str, Fraction], dict[str, Share]]:
    """For each statistic, the part of delta outside its noise, and what its noise may spend."""
    whole, failure = check_budget(spec.epsilon, spec.delta)
    usual: Kind = "pure" if law == "laplace" else "gaussian"
    kinds = {name: one.kind or usual for name, one in spec.demands.items() if one.fixed_cost is None}
    priced = [(name, one.fixed_cost, one.delta) for name, one in spec.demands.items() if one.fixed_cost is not None]
    # Fixed costs come off delta before it is divided; some depend on the statistic's part of delta.
    fixed = {name: cost(Fraction(0)) for name, cost, delta in priced if not delta}
    slack = failure - sum((delta for _, delta in fixed.values()), Fraction(0))
    failures = _failures(spec, max(slack, Fraction(0)), "gaussian" in kinds.values())
    fixed |= {name: cost(failures[name]) for name, cost, delta in priced if delta}
    left = whole - sum((epsilon for epsilon, _ in fixed.values()), Fraction(0))
    if left < 0 or slack < 0 or (kinds and left == 0):
        costs = ", ".join(f"{name} {float(epsilon):.4g}" for name, (epsilon, _) in fixed.items())
        raise InputError(f"expected a budget above the declared costs over the horizon: {costs}", place="epsilon")
    if "gaussian" in kinds.values() and slack == 0:
        raise InputError("expected a delta above what the declared laws cost", place="delta")
    shares = split(left, slack - sum(failures.values()), kinds, spec.weights) if kinds else {}
    return failures, {**shares, **{name: Share("pure", epsilon) for name, (epsilon, _) in fixed.items()}}


def _failures(spec: Specification, slack: Fraction, gaussian: bool) -> dict[str, Fraction]:
    """The part of delta outside the noise of each statistic: the failure probability of a threshold."""
    needing = [name for name, demand in spec.demands.items() if demand.threshold]
    if needing and slack == 0:
        raise InputError(
            "bins that are not declared can only be released with delta > 0: give a delta, or declare the bins "
            "(bins=[...], or a category field)",
            place=f"statistics.{needing[0]}",
        )
    whole, zero, weights = slack * THRESHOLD_SHARE if gaussian else slack, Fraction(0), spec.exact_weights
    among = sum(weights[name] for name, demand in spec.demands.items() if demand.delta)
    return {name: whole * weights[name] / among if one.delta else zero for name, one in spec.demands.items()}
