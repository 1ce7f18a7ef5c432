"""The gate: answers only when enough records are live (Lemma "gate").

A private, retroactive count of the live records decides, release by release, whether there is an answer or ⊥.

**Privacy.** The count costs (epsilon, spent): it is a linear window statistic (Theorem "linear"). Let n be the number
of records that the sampling relies on, Z the noise of the count, and pass_l the event that n_l + Z_l >= n + 1 + eta_l,
where P(some Z_l > eta_l) <= failure over all releases. For two neighbouring histories S and S' let n_l be the live
records of the one with fewer. Compare the algorithm A with A', which says ⊤ and stops where it passes and n_l < n. In
A', given the count, every answered round has n_l >= n: its answers are amplified, and compose with the count to
(eps, delta). A and A' agree until ⊤, which requires Z_l > eta_l in S and in S' (the one with more has n_l + 1). So for
an event E without ⊤
  P[A(S) in E] <= P[A'(S) in E] + failure <= e^eps P[A'(S') in E] + delta + failure
               <= e^eps P[A(S') in E] + delta + failure:
failure is charged once. The noise is independent of the data, and the bound on it is for all releases together, so
streams may be adaptive. The lemma itself passes from 2n on, and requires
n >= 1 + 2 (log2 T + 1)^2 ln(2T / failure) / epsilon (``noise="paper"``).
**Retroactivity.** The count is a function of key, round and live records, and so is what it decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ..checks import integer, number, positive_int
from ..errors import InputError
from ..messages import mismatch
from ..noise import Mechanism, Threshold
from ..noise.default_process import Candidates, candidates
from ..noise.threshold import threshold_for
from ..paper_forms import paper_form
from ..params import Parameters
from ..privacy import Kind, Share, largest_mu

PARTS = 5
"""A gate takes this fraction of epsilon by default: one part in five."""


@dataclass(frozen=True)
class Gate(Parameters):
    """Answers only where at least ``records`` records are live, by a private count.

    ``epsilon`` is what the count spends of the statistic's budget (a fifth by default).

    >>> Gate(5000)
    Gate(records=5000, epsilon=None, noise=None)
    """

    records: int
    epsilon: float | None = None
    noise: Literal["paper"] | None = None

    def __post_init__(self) -> None:
        positive_int(self.records, "gate")
        if self.epsilon is not None:
            expected = "a number above 0 and up to 1,000"
            if isinstance(self.epsilon, Fraction):
                raise mismatch(expected, self.epsilon, "gate.epsilon")  # files have no ratios
            number(self.epsilon, "gate.epsilon", expected, above=0, most=1000)
        if self.noise not in (None, "paper"):
            raise InputError(f"expected 'paper' or nothing, got {self.noise!r}", place="gate.noise")

    def candidates(self, releases: int | None, live: int | None, place: str) -> Candidates:
        if self.noise == "paper" and releases is None:
            raise InputError("the paper's own gate needs a horizon", place=f"{place}.gate")
        return candidates(self.noise, releases, None if self.noise else live, place=f"{place}.gate")

    def kind_of_share(self, delta: Fraction) -> Kind:
        """The kind of share of its noise, given its part of delta."""
        return "pure" if self.noise == "paper" or not delta else "gaussian"


def gate_of(gate: Gate | int | None) -> Gate | None:
    """A number of records means a gate at that number."""
    if gate is None or isinstance(gate, Gate):
        return gate
    return Gate(integer(gate, "gate", expected="a number of records or a Gate"))


@dataclass(frozen=True)
class Calibrated:
    """A gate and its budget: epsilon, delta for its noise, and the probability with which it may let too few records
    pass (None where the guarantee does not rely on it)."""

    gate: Gate
    epsilon: Fraction
    spent: Fraction
    failure: Fraction | None

    @property
    def share(self) -> Share:
        if self.gate.kind_of_share(self.spent) == "pure":
            return Share("pure", self.epsilon)
        return Share("gaussian", largest_mu(self.epsilon, self.spent) ** 2)

    def limit(self, noise: Mechanism, releases: int | None, place: str) -> Limit:
        """The noisy count from which there is an answer."""
        if self.failure is None:
            return Limit(self.gate.records, None)
        if self.gate.noise == "paper":
            limit = paper_form("paper_limit")
            return Limit(limit(self.gate.records, releases, self.epsilon, self.failure, place), None)
        return Limit(self.gate.records, threshold_for(noise, self.failure, releases))


@dataclass(frozen=True)
class Limit:
    """What the noisy count must reach in a release: a number of records plus a margin for the noise."""

    records: int
    margin: Threshold | None

    def at(self, release: int) -> Fraction:
        return Fraction(self.records) + (0 if self.margin is None else self.margin.at(release))
