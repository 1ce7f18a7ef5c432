"""What every statistic is given of the budget under a law: laws and algorithms of the user's own cost what they
declare, thresholds come off delta, and the rest is divided by weight."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import InputError
from ..noise import Oblivious
from ..noise.default_process import Law
from ..privacy import Kind, Share, check_budget, split
from ..privacy.budget import check_weight
from ..statistics import Setting
from ..statistics.grant import reach_of

if TYPE_CHECKING:
    from .specification import Specification

# What thresholds take of delta where noise needs some of it too: the optimum is flat (docs/proofs.md, 7).
THRESHOLD_SHARE = Fraction(7, 20)


def granted(spec: Specification, law: Law, noise: Mapping[str, str] | None = None) -> dict[str, Setting]:
    """What every statistic is given under a law, with its process where that is chosen."""
    weights = {name: check_weight(weight, f"statistics.{name}.weight") for name, weight in spec.weights.items()}
    parts = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    failures, shares = _split(spec, law)
    return {
        name: Setting(
            spec.schema,
            shares[name],
            failures[name],
            spec.horizon,
            statistic.every,
            spec.window_of(name),
            spec.late,
            f"statistics.{name}",
            (Fraction(spec.epsilon) * parts[name], Fraction(spec.delta) * parts[name]),
            noise=noise[name] if noise else "",
        )
        for name, statistic in spec.given.items()
    }


def _split(spec: Specification, law: Law) -> tuple[dict[str, Fraction], dict[str, Share]]:
    whole, failure = check_budget(spec.epsilon, spec.delta)
    laws = {
        name: s.noise.cost(known_horizon(spec, name))
        for name, s in spec.statistics.items()
        if isinstance(s.noise, Oblivious)
    }
    kinds: dict[str, Kind] = {name: s.kind_of_share(law) for name, s in spec.statistics.items() if name not in laws}
    slack = failure - sum((d for _, d in laws.values()), Fraction(0))
    failures = _thresholds(spec, max(slack, Fraction(0)), "gaussian" in kinds.values())
    fixed = {name: epsilon for name, (epsilon, _) in laws.items()}
    for name, statistic in spec.statistics.items():
        reach = reach_of(spec.window_of(name), spec.horizon, statistic.every)
        cost = statistic.fixed_cost(reach, failures[name], f"statistics.{name}")
        if cost is not None:
            fixed[name] = cost
            del kinds[name]
    left = whole - sum(fixed.values(), Fraction(0))
    if left < 0 or slack < 0 or (kinds and left == 0):
        costs = ", ".join(f"{name} {float(epsilon):.4g}" for name, epsilon in fixed.items())
        raise InputError(f"expected a budget above what is declared to cost over the horizon: {costs}", place="epsilon")
    if "gaussian" in kinds.values() and slack == 0:
        raise InputError("expected a delta above what the declared laws cost", place="delta")
    slack -= sum(failures.values())
    shares = split(left, slack, kinds, spec.weights) if kinds else {}
    return failures, {name: shares.get(name) or Share("pure", fixed[name]) for name in spec.statistics}


def _thresholds(spec: Specification, slack: Fraction, gaussian: bool) -> dict[str, Fraction]:
    """The part of delta that each threshold may fail with."""
    weights = {
        name: check_weight(spec.weights[name], f"statistics.{name}.weight")
        for name, s in spec.statistics.items()
        if s.spends_delta(spec.schema)
    }
    needing = [name for name in weights if spec.statistics[name].thresholded(spec.schema)]
    if needing and slack == 0:
        raise InputError(
            "bins that are not declared can only be released with delta > 0: give a delta, or declare the bins "
            "(bins=[...], or a category field)",
            place=f"statistics.{needing[0]}",
        )
    whole = slack * THRESHOLD_SHARE if gaussian else slack
    return {
        name: whole * weights[name] / sum(weights.values()) if name in weights else Fraction(0)
        for name in spec.statistics
    }


def known_horizon(spec: Specification, name: str) -> int:
    releases = spec.releases(name)
    if releases is None:
        raise InputError('a law of your own needs a horizon (Theorem "linear")', place=f"statistics.{name}.noise")
    return releases
