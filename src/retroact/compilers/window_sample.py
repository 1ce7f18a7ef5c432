"""Any one-shot private algorithm, run in every release on a sample of the records of a window (Theorem "sampling").

**Privacy.** One operation adds one live record, or takes one away, in at most W releases (W = window / every), and
changes nothing else: one operation is one interval, also with late records. In each of them the sample is
- *whole* (no sampling): one record more or less;
- *fresh*, a uniform subset of size k: one record in the place of another with probability at most k / (n + 1), where
  the smaller of the two windows has at least n >= k records; without a bound on n, with probability 1;
- *Poisson*, every copy with the same public rate q and fresh coins: one record more or less, with probability q;
- *ranks* (persistent), the k copies of smallest rank: one record in the place of another; and in all releases together
  nothing at all, unless the one rank that differs is among the k smallest once (Appendix C);
- *coins* (persistent), every copy whose coin, tossed once, says so: the same with one record more or less.
A record that lacks a field which the algorithm reads does not count as live: it is left out before anything is drawn or
counted, so samples, ranks and gates are those of a stream without it. `privacy.window_cost` composes the releases
exactly; where a bound relies on n, n is promised or guarded by a gate. Ranks and coins belong to (stamp, value, copy),
which must not come back once it is gone: they need streams without late records. The rate and the size are public, and
never depend on how many records are live.
**Retroactivity.** A sample is a function of the coins of the round and of the live records in canonical order
(`live_records`), and the answer is a function of the sample and of further coins: Lemma "closure".
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal

from ..checks import as_fraction, choice, flag, positive_int
from ..coins import COIN_BITS
from ..errors import InputError
from ..messages import mismatch
from ..noise import Fresh
from ..noise.default_process import Candidates, quietest
from ..oneshot import SUBSTITUTION, Contract, InteriorPoint, Median, OneShot
from ..paper_forms import paper_form
from ..params import Parameters
from ..privacy import Cost, Form, largest_epsilon0, window_cost
from ..schema import Schema
from ..statistics.grant import ONE_COUNT, Demand, Grant, Layout, StreamTerms
from ..statistics.statistic import Example, Statistic
from .gate import PARTS, Calibrated, Gate, gate_of
from .linear_model import LinearModel
from .noisy_sums import NoisySums, NoisySumsBound
from .sample_bound import SampleBound

# The most that one run may spend, unless its whole share is larger.
MOST = Fraction(10)


class WindowSample(Statistic):
    """``of`` run in every release on a sample of the records of the last ``window`` rounds:

    - neither ``size`` nor ``rate``: on all of them,
    - ``size=k``: on k of them, drawn afresh for every release; or the k of smallest rank (``persistent=True``),
    - ``rate=q``: on each of them with probability q, drawn afresh; or once and for all (``persistent=True``).

    ``occupancy=n`` promises that at least n records are live in every release; ``gate=n`` enforces it, and answers ⊥
    where there may be fewer. The larger n is, the cheaper samples of a fixed size are.

    >>> WindowSample(Median("age"), window=24, size=100, gate=2000)
    WindowSample(Median('age'), size=100, gate=Gate(records=2000, epsilon=None, noise=None), window=24)
    """

    kind: ClassVar[str] = "window_sample"
    theorem: ClassVar[str] = 'Theorem "sampling"'
    tables: ClassVar[Mapping[str, type[Parameters]]] = {"of": OneShot, "gate": Gate}
    restatable: ClassVar[bool] = False
    interval = False

    def __init__(
        self,
        of: OneShot,
        *,
        size: int | None = None,
        rate: float | str | Fraction | None = None,
        persistent: bool = False,
        occupancy: int | None = None,
        gate: Gate | int | None = None,
        accounting: Literal["exact", "paper"] = "exact",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if self.noise is not None:
            raise InputError("a sample has no noise, only its gate has (gate=Gate(n, noise=...))", place="noise")
        if not isinstance(of, OneShot):
            raise InputError(f"expected a one-shot algorithm such as oneshot.Median('age'), got {of!r}", place="of")
        if size is not None and rate is not None:
            raise InputError("expected a size or a rate, not both", place="rate")
        flag(persistent, "persistent")
        if persistent and size is None and rate is None:
            raise InputError("expected a size or a rate: without a sample nothing persists", place="persistent")
        choice(accounting, ("exact", "paper"), "accounting")
        if accounting == "paper" and size is None:
            raise InputError("expected a size: the paper has samples of a fixed size only", place="accounting")
        self.of = of
        self.size = None if size is None else positive_int(size, "size")
        self.rate = None if rate is None else exact_rate(rate)
        self.persistent, self.accounting = persistent, accounting
        self.occupancy = None if occupancy is None else positive_int(occupancy, "occupancy")
        self.gate = gate_of(gate)
        if self.occupancy is not None and self.size is None:
            raise InputError("expected a size: nothing else depends on how many records are live", place="occupancy")
        if self.occupancy is not None and self.gate is not None:
            raise InputError("expected a promise (occupancy) or a gate, not both", place="gate")
        for name, live in (("occupancy", self.occupancy), ("gate", None if self.gate is None else self.gate.records)):
            if live is not None and self.size is not None and live < self.size:
                raise InputError(f"expected at least the size of the sample, {self.size:,}, got {live:,}", place=name)
        if of.takes is not None and of.takes != size:
            raise mismatch(f"a size of {of.takes:,}, which {of.label} is made for", size, "size")
        if isinstance(of, NoisySums) and of.epsilon is None and not self.pays_together:
            raise InputError(
                f"expected all live records for {of.label}, got a part of them: what sampling saves is not accounted "
                "for (an epsilon of one run may be given)",
                place="of",
            )
        if self.substitutes and not self._rests_on:
            raise InputError(
                f"{of.kind} is private for one record in the place of another, so its samples must always have the "
                "same size: give a size, and an occupancy or a gate",
                place="of",
            )
        self.calibrated: Calibrated | None = None

    @classmethod
    def examples(cls) -> list[Example]:
        stream, few = {"epsilon": 8.0}, {"epsilon": 4.0, "updates": 6, "deltas": (1e-4,), "horizons": (8,)}
        lasting = cls(Median("age"), window=4, rate=0.5, persistent=True)
        gated = cls(InteriorPoint("age"), window=4, size=4, gate=8)
        descent = LinearModel(["age", "member"], "amount", iterations=4)
        return [
            Example("median of a window", cls(Median("age"), window=4), stream, checks=few),
            Example("Poisson sample", cls(Median("age"), window=4, rate=0.5), stream, checks=few),
            Example("lasting sample", lasting, {**stream, "late": False}, checks={**few, "late": False}),
            Example("sample of one size", gated, {"epsilon": 16.0, "delta": 0.05}, checks={**few, "epsilon": 500.0}),
            Example("regression by descent", cls(descent, window=4), {**stream, "delta": 1e-6}, checks=few),
        ]

    @property
    def form(self) -> Form:
        if self.size is not None:
            return "ranks" if self.persistent else "fresh"
        if self.rate is not None:
            return "coins" if self.persistent else "poisson"
        return "whole"

    @property
    def pays_together(self) -> bool:
        """Whether all runs are one Gaussian mechanism (`noisy_sums`)."""
        return isinstance(self.of, NoisySums) and self.of.epsilon is None and self.form == "whole" and self.gate is None

    @property
    def _rests_on(self) -> bool:
        """Whether the guarantee relies on a minimum number of live records."""
        return self.size is not None and (self.occupancy is not None or (self.gate is not None and not self.persistent))

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        largest = super().demand(schema, stream).largest
        self.of.check(schema, f"{stream.place}.of")
        if self.pays_together:
            return Demand(largest, "gaussian")
        cost = None if self.of.epsilon is None else partial(self._fixed_cost, stream)
        return Demand(largest, "pure", delta=True, fixed_cost=cost)

    def _fixed_cost(self, stream: StreamTerms, failure: Fraction) -> tuple[Fraction, Fraction]:
        """Its epsilon, where its algorithm has a fixed price."""
        reach, place = _reach(stream.reach, stream.place), stream.place
        _, own = self._failures(failure, place)
        cost = self._cost(reach, own)
        if cost.epsilon == float("inf"):
            raise InputError(
                f"{self.of.kind} fails with probability {float(self.of.contract.delta):.3g} in each of {reach:,} "
                f"releases, which a delta of {float(own):.3g} does not cover",
                place=f"{place}.of",
            )
        # Nine digits, rounded up: the same on every machine.
        whole = Fraction(Context(prec=9, rounding=ROUND_CEILING).plus(Decimal(cost.epsilon)))
        if self.gate is not None:
            whole += Fraction(self.gate.epsilon) if self.gate.epsilon else whole / (PARTS - 1)
        return whole, Fraction(0)

    def resolved(self, grant: Grant) -> WindowSample:
        """A copy with the epsilon of one run and a calibrated gate."""
        reach = _reach(grant.reach, grant.place)
        if self.persistent and grant.late:
            raise InputError(
                "persistent ranks and coins belong to a stamp and a value, which must not come back once they are "
                "deleted: give late=False to the stream",
                place=f"{grant.place}.persistent",
            )
        mine = copy(self)
        lost, own = self._failures(grant.failure, grant.place)
        epsilon = grant.share.amount
        if self.gate is not None:
            given = Fraction(self.gate.epsilon) if self.gate.epsilon else epsilon / PARTS
            if given >= epsilon:
                raise InputError(
                    f"expected less than all that the statistic has, {float(epsilon):.4g}, got {float(given):.4g}",
                    place=f"{grant.place}.gate.epsilon",
                )
            epsilon -= given
            mine.calibrated = Calibrated(self.gate, given, lost, lost if self._rests_on and lost else None)
        if self.of.epsilon is None:
            # Where samples are so rare that delta covers them, any epsilon would do, but a huge one is not wanted.
            largest = paper_form("paper_epsilon0") if self.accounting == "paper" else largest_epsilon0
            spent = min(largest(self.form, epsilon=float(epsilon), **self._terms(reach, own)), max(MOST, epsilon))
            try:
                mine.of = self.of.at(spent)
            except InputError as error:
                raise error.under(f"{grant.place}.of") from None
        return mine

    @property
    def _some_contract(self) -> Contract:
        """The contract of its algorithm, at an epsilon of 1 if none is set yet."""
        return self.of.promised(Fraction(1) if self.of.epsilon is None else self.of.epsilon)

    @property
    def substitutes(self) -> bool:
        """Whether its algorithm is private for one record in the place of another only."""
        return self._some_contract.relation == SUBSTITUTION

    def replaced(self, **sample: Any) -> WindowSample:
        """For comparison: the same algorithm on another kind of sample, with all of the budget to spend."""
        of = copy(self.of)
        of.epsilon = None
        return WindowSample(of, **sample, **self.options())

    def _failures(self, failure: Fraction, place: str) -> tuple[Fraction, Fraction]:
        """The parts of delta: for the gate (once for its noise, once for letting too few pass), and the rest."""
        if self.gate is None:
            return Fraction(0), failure
        if not failure and self.substitutes:
            raise InputError(
                "a gate lets too few records pass with some probability, which takes a delta above 0, and "
                f"{self.of.kind} must never see too few",
                place=f"{place}.gate",
            )
        return failure / 4, failure / 2

    def _terms(self, reach: int, delta: Fraction) -> dict[str, Any]:
        contract, live = self._some_contract, self.occupancy
        if self.gate is not None and self._rests_on and delta:
            live = self.gate.records
        return {
            "releases": reach,
            "delta0": float(contract.delta),
            "delta": float(delta),
            "size": self.size,
            "rate": None if self.rate is None else float(self.rate),
            "occupancy": live,
            "bounded_range": contract.bounded_range,
            "substitution": contract.relation == SUBSTITUTION,
        }

    def _cost(self, reach: int, delta: Fraction) -> Cost:
        cost = paper_form("paper_cost") if self.accounting == "paper" else window_cost
        found: Cost = cost(self.form, epsilon0=float(self.of.contract.epsilon), **self._terms(reach, delta))
        return found

    def layout(self, schema: Schema) -> Layout:
        """The process of the gate's count, or of noisy sums."""
        return self.of.layout(schema) if isinstance(self.of, NoisySums) and self.pays_together else ONE_COUNT

    def candidates(self, grant: Grant) -> Candidates:
        """The grant of the gate's count, or of noisy sums."""
        if self.gate is None:
            queries = self.of.queries if isinstance(self.of, NoisySums) and self.pays_together else 1
            return {"fresh": Fresh(_reach(grant.reach, grant.place) * queries)}
        return self.gate.candidates(grant.releases, grant.live, grant.place)

    def preferred(self, grant: Grant) -> str:
        """The process for its gate, which has no interval."""
        if self.pays_together:
            return "fresh"
        kind = "pure" if self.gate is None else self.gate.kind_of_share(self._failures(grant.failure, grant.place)[0])
        return quietest(self.candidates(grant), kind, grant.judged)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.of.reads(schema)

    def bind(self, grant: Grant) -> SampleBound:
        return NoisySumsBound(self, grant) if self.pays_together else SampleBound(self.resolved(grant), grant)

    def settled_cost(self, grant: Grant) -> Cost:
        """The cost of a resolved sample, without its gate."""
        return self._cost(_reach(grant.reach, grant.place), self._failures(grant.failure, grant.place)[1])


def _reach(reach: int | None, place: str) -> int:
    if reach is None:
        raise InputError(
            "expected a window, or a horizon: how many releases can one record be in?", place=f"{place}.window"
        )
    return reach


def exact_rate(rate: float | str | Fraction) -> Fraction:
    """Exactly the number as written.

    >>> exact_rate(0.1), exact_rate("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    exact = as_fraction(rate)
    if exact is None or not 0 < exact <= 1:
        raise mismatch("a rate above 0 and up to 1", rate, "rate")
    if exact * (1 << COIN_BITS) < 1:
        raise mismatch(f"a rate of at least 2^-{COIN_BITS}", rate, "rate")
    return exact
