"""What an audited stream claims, under which model, and what each of its statistics must hold for that.

A claim is what is promised to whom; an obligation is what must hold inside for the promise to hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np

from ..coins import DiscreteGaussian, DiscreteLaplace, Law
from ..compilers import sample_in
from ..noise import Mechanism, Oblivious
from ..noise.process import some_rounds
from ..privacy import Guarantee
from ..statistics import Statistic
from ..stream import Specification
from ..testing.ranges import ranges_in
from .target import Approximate, Target

# Rounds whose noise is looked at for the laws that are in use.
ROUNDS = 4096
# A longer fraction is shown as a decimal.
LONGEST = 12

EXACT = (
    "exact: from the first round on in which the same records survive in two histories, all answers have the same law "
    "in both"
)


class StatedClaim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is promised, for the whole published sequence. Numbers are exact decimals, as text."""

    epsilon: str
    delta: str
    measure: str
    """The finer bound that epsilon and delta follow from, such as μ = 0.3."""
    unit: str
    adaptive: bool
    promises: list[str] = []
    """Promises of the caller, which nobody checks."""
    retroactivity: str


class Obligation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold inside for one statistic."""

    statistic: str
    theorem: str
    noise: str
    sensitivity: str
    law: str
    share: str


def claim_of(guarantee: Guarantee, retroactivity: Approximate | None = None, *, keyed: bool = True) -> StatedClaim:
    """
    >>> from retroact.privacy import PureDP
    >>> claim = claim_of(Guarantee(PureDP(1.0), epsilon=1.0))
    >>> claim.epsilon, claim.delta, claim.measure
    ('1', '0', 'ε = 1')
    """
    return StatedClaim(
        epsilon=exact(guarantee.epsilon),
        delta=exact(guarantee.delta),
        measure=str(guarantee.measure),
        unit=guarantee.unit,
        adaptive=guarantee.adaptive,
        promises=list(guarantee.promises),
        retroactivity=_retroactivity(retroactivity, keyed),
    )


def model_of(target: Target) -> list[str]:
    """Who attacks, what differs between the two worlds they must tell apart, and what they see."""
    out = [
        "The attacker knows the program, the schema, the statistics, the budget and all records but one, and sees "
        "every answer of every round. The attacker does not have the key.",
        "Privacy: two histories of the same rounds are neighbours if one of them has one operation more in one round: "
        f"one addition or one deletion of a record. The claim is for {target.claim.unit}.",
        "Later additions and deletions may be chosen after seeing earlier answers."
        if target.claim.adaptive
        else "Additions and deletions are fixed beforehand: they do not react to answers.",
        "Retroactivity: two histories unite in a round if the same records, with the same stamps, survive in both from "
        "that round on. Answers before that round may differ.",
    ]
    spec = target.specification
    if spec is not None and spec.late:
        out.append("Records may come late, with the stamp of a past round.")
    if spec is not None and spec.after_erasure == "reject":
        out.append("Streams were run in memory, where later records of erased subjects are not rejected.")
    if spec is not None and any(isinstance(s.noise, Oblivious) for s in spec.statistics.values()):
        out.append("The cost of a user-defined noise law is taken as declared.")
    return out


def obligations_of(specification: Specification) -> list[Obligation]:
    """
    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=100)
    >>> obligations_of(spec)[0].law
    'discrete Laplace noise of scales 4.5 to 14.4 on every node'
    """
    return [_obligation(specification, name) for name in specification.statistics]


def exact(value: float) -> str:
    """A number as text that reads back exactly.

    >>> exact(1.0), exact(0.1), exact(1e-06)
    ('1', '0.1', '1e-06')
    """
    return repr(float(value)).removesuffix(".0")


def _obligation(spec: Specification, name: str) -> Obligation:
    statistic, process = spec.statistics[name], spec.processes[name]
    mechanism = spec.bounds[name].noise
    found = sample_in(spec.bounds[name])
    if found is not None:
        sample = found.statistic
        noise = f"every answer is a run of {sample.of.label} on a sample of its window ({sample.form})"
        noise += "" if sample.gate is None else f", behind a count with noise by {process!r}"
        sensitivity = "one record in every window it lives in"
        law = found.price
    elif (ranges := ranges_in(spec.bounds[name])) is not None:
        noise = "every answer is drawn from the counts by value, by exponential mechanisms"
        sensitivity = f"one record is seen by {ranges.mechanisms:,} of them"
        law = f"each has a range of {float(ranges.range):.6g}"
    else:
        noise = f"independent noise on the nodes of {process!r}, added with fixed weights"
        sensitivity = _sensitivity(spec, name, mechanism)
        law = _law(mechanism, statistic, spec.bounds[name].layout.units, spec.releases(name))
    return Obligation(
        statistic=name,
        theorem=statistic.statement(),
        noise=noise,
        sensitivity=sensitivity,
        law=law,
        share=str(spec.measure_of(name)),
    )


def _sensitivity(spec: Specification, name: str, mechanism: Mechanism) -> str:
    layout = spec.bounds[name].layout
    pure = mechanism.share.kind == "pure"
    moved = layout.norm1 if pure else layout.norm2_squared
    nodes = mechanism.process.charge(1 if pure else 2)
    norm = "in the first norm" if pure else "in the squared second norm"
    return (
        f"one record moves the totals by at most {_shown(moved)} (in units), and the rounds it counts in move the "
        f"nodes by at most {_shown(nodes)} (in spreads), both {norm}"
    )


def _shown(value: Fraction) -> str:
    """Exact if short."""
    return str(value) if len(str(value)) <= LONGEST else f"{float(value):.6g}"


def _law(mechanism: Mechanism, statistic: Statistic, units: Sequence[int], releases: int | None) -> str:
    if isinstance(statistic.noise, Oblivious):
        return f"{statistic.noise.name}, as declared: ε = {statistic.noise.epsilon:.6g} for one release"
    levels = np.unique(mechanism.process.weights_of(some_rounds(releases or ROUNDS, ROUNDS)).levels).tolist()
    laws = [mechanism.law(level, unit) for level in levels for unit in dict.fromkeys(units)]
    sizes = sorted({_size(law) / mechanism.refinement for law in laws})
    kind = "Laplace" if mechanism.share.kind == "pure" else "Gaussian"
    what = "scale" if kind == "Laplace" else "deviation"
    ends = f"{what} {sizes[0]:.6g}" if len(sizes) == 1 else f"{what}s {sizes[0]:.6g} to {sizes[-1]:.6g}"
    fine = f", in steps of 1/{mechanism.refinement}" if mechanism.refinement > 1 else ""
    return f"discrete {kind} noise of {ends}{fine} on every node"


def _size(law: Law) -> float:
    if isinstance(law, DiscreteLaplace):
        return float(law.scale)
    return math.sqrt(law.parameter if isinstance(law, DiscreteGaussian) else law.variance)


def _retroactivity(claimed: Approximate | None, keyed: bool) -> str:
    if claimed is not None:
        return (
            f"approximate: once the same records survive in two histories, any {claimed.block:,} answers in a row are "
            f"(α, β)-close, with α = {exact(claimed.alpha)} and β = {exact(claimed.beta)}"
        )
    return f"{EXACT}; under one key they are the same bytes" if keyed else f"{EXACT}, though not the same bytes"
