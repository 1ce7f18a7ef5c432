"""One law for the stream, then one process for each statistic: those with the smallest error over the specification;
and what each statistic is granted of the budget under a law. Declared costs and thresholds come first, and the rest is
divided by weight.

A law is scored by one number: the weighted mean of the logarithms of the statistics' 95 % half-widths, each in its
worst round and with its best process. Only statistics that have an interval, and noise of the stream's choosing, count.
If a half-width depends on the number of records, the specification's ``records`` is used, of which a window holds its
share.

**Privacy.** The score is computed from the specification alone, so the choice costs nothing; each option is private by
itself (`noise.default_process`). **Retroactivity.** Once made, the choice is part of the specification: it is in the
digest and stored with the stream, and opening a stream never chooses again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from ..errors import InputError
from ..messages import mismatch
from ..noise import Oblivious
from ..noise.default_process import LAWS, Law
from ..noise.tails import rounded_up
from ..privacy import Kind, Share, check_budget, split
from ..statistics import Grant, Statistic

if TYPE_CHECKING:
    from .specification import Specification

LEVEL = 0.95
# Noise that is 0 with that probability has no logarithm.
LEAST = 1e-300
# Decimals have the same digits on every machine.
EXACT = Context(prec=50)
# The part of delta for thresholds when noise needs delta too: the optimum is flat (docs/proofs.md, 7).
THRESHOLD_SHARE = Fraction(7, 20)

Option = TypeVar("Option", bound=str)
Judged = TypeVar("Judged")


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The law of a stream, and the process of each of its statistics by name."""

    law: Law
    noise: dict[str, str]

    @classmethod
    def from_dict(cls, data: Any) -> Choice:
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError:
            raise mismatch("a law and the noise of every statistic", data, "choice") from None


def choose(spec: Specification, laws: Sequence[Law]) -> Choice:
    """A law under which a statistic is impossible is left out; if every law is, the first reason is raised."""
    statistics = spec.statistics
    # Sorted, so that the score does not depend on the order of the statistics.
    voting = [
        name
        for name in sorted(statistics)
        if len(laws) > 1 and statistics[name].interval and not isinstance(statistics[name].noise, Oblivious)
    ]

    def judged(law: Law) -> tuple[Decimal, dict[str, Grant], dict[str, str]]:
        grants = granted(spec, law)
        chosen = {name: best(statistics[name], grants[name], spec.records_of(name)) for name in voting}
        score = _mean({name: width for name, (_, width) in chosen.items()}, spec.exact_weights)
        return score, grants, {name: process for name, (process, _) in chosen.items()}

    found = _possible(laws, judged)
    law = min(found, key=lambda law: (found[law][0], LAWS.index(law)))
    _, grants, noise = found[law]
    rest = [name for name in statistics if name not in noise]
    noise |= {name: best(statistics[name], grants[name], spec.records_of(name))[0] for name in rest}
    return Choice(law, {name: noise[name] for name in statistics})


def best(statistic: Statistic, grant: Grant, records: int) -> tuple[str, float]:
    """The process with the smallest half-width in its worst release, by name, and that half-width to 6 digits."""
    preferred = statistic.preferred(grant)
    if preferred is not None:
        return preferred, 0.0

    def width(name: str) -> float:
        bound = statistic.bind(replace(grant, noise=name))  # refuses noise that is too wide for its integers
        return rounded_up(bound.expected_error(bound.outlook.worst, records, LEVEL))

    found = _possible(statistic.candidates(grant), width)
    name = min(found, key=found.__getitem__)
    return name, found[name]


def _possible(options: Iterable[Option], judge: Callable[[Option], Judged]) -> dict[Option, Judged]:
    """The options that are not refused; if all are, the first reason is raised."""
    found: dict[Option, Judged] = {}
    reason: InputError | None = None
    for option in options:
        try:
            found[option] = judge(option)
        except InputError as error:
            reason = reason or error
    if reason is not None and not found:
        raise reason
    return found


def _mean(widths: Mapping[str, float], weights: Mapping[str, Fraction]) -> Decimal:
    """The weighted mean of the logarithms."""
    total, score = sum(weights.values(), Fraction(0)), Decimal(0)
    for name, width in widths.items():
        share = weights[name] / total
        part = EXACT.divide(Decimal(share.numerator), Decimal(share.denominator))
        score = EXACT.fma(part, EXACT.ln(Decimal(repr(max(width, LEAST)))), score)
    return score


def granted(spec: Specification, law: Law, noise: Mapping[str, str] | None = None) -> dict[str, Grant]:
    """The grant of each statistic under a law; ``noise`` names the processes once they are chosen."""
    whole = sum(spec.exact_weights.values())
    parts = {name: weight / whole for name, weight in spec.exact_weights.items()}
    failures, shares, spare = _split(spec, law)
    return {
        name: Grant(
            **asdict(spec.terms(name)),
            schema=spec.schema,
            share=shares[name],
            failure=failures[name],
            budget=(Fraction(spec.epsilon) * parts[name], Fraction(spec.delta) * parts[name]),
            noise=noise[name] if noise else "",
            spare=spare * parts[name],
        )
        for name in spec.statistics
    }


def _split(spec: Specification, law: Law) -> tuple[dict[str, Fraction], dict[str, Share], Fraction]:
    """For each statistic, the part of delta outside its noise, and what its noise may spend; and the delta left."""
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
    only = [name for name, one in spec.demands.items() if one.kind == "gaussian"]
    if only and failure == 0:
        what = f"expected delta > 0: a {spec.statistics[only[0]].kind} has Gaussian noise"
        raise InputError(what, place=f"statistics.{only[0]}")
    if "gaussian" in kinds.values() and slack == 0:
        raise InputError("expected a delta above what the declared laws cost", place="delta")
    shares = split(left, slack - sum(failures.values()), kinds, spec.weights) if kinds else {}
    spare = Fraction(0) if "gaussian" in kinds.values() else max(Fraction(0), slack - sum(failures.values()))
    return failures, {**shares, **{name: Share("pure", epsilon) for name, (epsilon, _) in fixed.items()}}, spare


def _failures(spec: Specification, slack: Fraction, gaussian: bool) -> dict[str, Fraction]:
    """The part of delta outside the noise of each statistic: the failure probability of a threshold."""
    needing = [name for name, demand in spec.demands.items() if demand.threshold]
    if needing and slack == 0:
        raise InputError(
            "bins that are not declared can only be released with delta > 0: give a delta, or declare the bins",
            place=f"statistics.{needing[0]}",
            hint="delta = 1e-6 (--delta 1e-6); or, where the categories are known, a category field "
            "(--count --by FIELD=A,B), or bins=[...] of the histogram",
        )
    whole, zero, weights = slack * THRESHOLD_SHARE if gaussian else slack, Fraction(0), spec.exact_weights
    among = sum(weights[name] for name, demand in spec.demands.items() if demand.delta)
    return {name: whole * weights[name] / among if one.delta else zero for name, one in spec.demands.items()}
