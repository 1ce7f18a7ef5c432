"""A sample with its schema and what the stream grants it: what is live, what is drawn of it, and what to expect.

Live records are gathered by stamp and value, without a key. Their canonical order and their ranks depend on the key,
and are added where it is (`SampleBound.named`).

Sampling is for algorithms that are expensive to run. It never needs fewer live records than running on the whole window
with less to spend in each run, and a plan says so (`outlook`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from ..arrays import F64, I64
from ..coins import Coins
from ..errors import InputError
from ..noise import Mechanism
from ..noise.process import Outlook
from ..oneshot import BOTTOM, SUBSTITUTION
from ..params import plain
from ..privacy import Cost, Share
from ..schema import Rows, Schema
from ..statistics.answer import Answer, Published
from ..statistics.bound import At, Bound, Totals
from ..statistics.by_round import Pick
from ..statistics.grant import Grant
from ..statistics.tally import Labelled, Labels
from ..statistics.wrapper import core
from .gate import Limit
from .live_records import Live, drawn

if TYPE_CHECKING:
    from .window_sample import WindowSample

ONE = Fraction(1)
# A window is kept in about this many blocks.
BLOCKS = 32
BETA = 0.05
# Sampling rates that a plan tries, and a sample size for trying them.
RATES = tuple(Fraction(1, 4**i) for i in range(1, 6))
TRIAL = 10_000


class SampleBound(Bound):
    """``noise`` is that of the gate; without a gate only its coins are used. ``limit`` is what the noisy count must
    reach."""

    statistic: WindowSample
    limit: Limit | None = None
    additive = False

    def __init__(self, statistic: WindowSample, grant: Grant, share: Share | None = None) -> None:
        gate = statistic.calibrated
        own = Share("pure", ONE) if gate is None else gate.share
        super().__init__(statistic, grant, share=own if share is None else share)
        if gate is not None:
            self.limit = gate.limit(self.noise, grant.releases, grant.place)
        given = None if gate is None else [gate.epsilon, gate.spent, gate.failure]
        self.digest_extras = {
            "accounting": statistic.accounting,
            "epsilon": plain(statistic.of.epsilon),
            "gate": plain(given),
        }
        self.keyed = statistic.of.keyed

    def _gather(self, rows: Rows, weights: I64) -> Labelled:
        return Labelled(self._labels(rows), weights[:, None])

    def _gather_by(self, rows: Rows, weights: I64, group: I64, count: int) -> Pick:
        order = np.argsort(group, kind="stable")
        labels = tuple(label[order] for label in (group, *self._labels(rows)))
        return Labelled(labels, weights[order, None]).each(count)

    def _labels(self, rows: Rows) -> Labels:
        assert rows.stamps is not None
        return (rows.stamps, *(rows.columns[name] for name in self.reads))

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        """Every live record; checks verify that one operation moves one of them."""
        return {label: amount for label, (amount,) in Labelled.of(totals.labels, totals.amounts).items()}

    def named(self, totals: Totals, coins: Coins) -> Live:
        stamps, *columns = totals.labels
        rows = Rows(dict(zip(self.reads, columns, strict=True)), len(totals), stamps=stamps)
        ranks = coins.branch("ranks") if self.statistic.persistent else None
        span = max(1, (self.grant.window or self.grant.horizon or 1) // BLOCKS)
        return Live.of(rows, totals.amounts[:, 0], self.reads, self.schema, coins, span=span, ranks=ranks)

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        return Published(Answer(self._answer(totals[0], noise, at), None, lambda level: None), (), 1)

    def _answer(self, live: Live, noise: Mechanism, at: At) -> Any:
        own = self.statistic
        if not self.passed(noise, live.count, at.index):
            return BOTTOM
        if own.substitutes and live.count < (own.size or 0):
            return BOTTOM  # only if a promise is broken or a gate has failed
        rows = drawn(own.form, live, noise.coins, at.round, size=own.size, rate=own.rate)
        return own.of.in_release(rows, self.schema, noise, at.index, at.round)

    def passed(self, noise: Mechanism, live: int, release: int) -> bool:
        """Whether the gate, if any, is open."""
        if self.limit is None:
            return True
        shift, denominator = noise.draw(release)
        return bool((live - self.limit.at(release)) * denominator + int(shift[0]) >= 0)

    def error(self, deviations: F64, records: int) -> float:
        """The error in ranks of the window, with probability 0.95; not a number where that is unknown."""
        return rank_error(self.statistic, self.schema, records, 0.05)

    def expected_error(self, index: int, records: int, level: float | None = None) -> float:
        """In ranks, the same for every release: a sample has no deviation."""
        if level is None:
            return math.nan
        return rank_error(self.statistic, self.schema, records, float(1 - Fraction(repr(level))))

    def floor(self, records: int) -> float:
        return sampling_error(self.statistic, records, 0.05)

    @property
    def outlook(self) -> Outlook:
        return Outlook(1, 1, 0.0)

    @property
    def method(self) -> str:
        return f"{self.statistic.form} {self.statistic.of.label}"

    @property
    def noisy(self) -> str:
        """What of it has noise, in a word; empty if nothing has."""
        return "" if self.limit is None else "gate"

    @property
    def price(self) -> str:
        """What each run spends, in words."""
        return f"each run spends ε = {float(self.statistic.of.contract.epsilon):.4g}"

    def notes(self, records: int) -> tuple[str, ...]:
        return tuple(outlook(self))

    @cached_property
    def cost(self) -> Cost:
        """The cost of all runs, without the gate."""
        return self.statistic.settled_cost(self.grant)

    @property
    def adaptive(self) -> bool:
        return self.cost.adaptive

    @property
    def promises(self) -> tuple[str, ...]:
        own, out = self.statistic, []
        contract = own.of.contract
        if not own.of.proven:
            spent = f"ε = {float(contract.epsilon):.4g}" + (f", δ = {float(contract.delta):.3g}" * bool(contract.delta))
            out.append(f"{own.of.label} is private ({spent}) for {contract.relation}, also where there is none")
        rests = contract.relation == SUBSTITUTION or self.cost.amplified
        if own.occupancy is not None and rests:
            needed = [name for name in self.reads if name in self.schema.optional]
            those = f"records that have {', '.join(needed)}" if needed else "records"
            out.append(f"at least {own.occupancy:,} {those} are live in every released round, any one record apart")
        if not self.keyed:
            out.append(
                f"{own.of.label} draws its own randomness (retroactive in law, not in bytes): no round is closed a "
                "second time from an older state"
            )
        return tuple(out)


def sample_in(bound: Bound) -> SampleBound | None:
    """The sample inside a bound, if any."""
    inner = core(bound)
    return inner if isinstance(inner, SampleBound) else None


def rank_error(sample: WindowSample, schema: Schema, records: int, beta: float) -> float:
    """How many ranks of a window of ``records`` records the answer is off at most, with probability 1 - beta; not a
    number where that is unknown.

    The answer is off by r ranks of the sample; the sample of k records errs by at most sqrt(ln(4 / beta) / 2k) in any
    fraction (Dvoretzky, Kiefer, Wolfowitz and Massart; sampling without replacement errs less), half of beta each.
    """
    drawn = sampling_error(sample, records, beta)
    own = sample.of.rank_error(schema, beta / 2 if drawn else beta)
    return math.nan if own is None else min(float(records), own * records / _seen(sample, records) + drawn)


def sampling_error(sample: WindowSample, records: int, beta: float) -> float:
    """The part of it that comes from sampling, at any budget."""
    seen = _seen(sample, records)
    return 0.0 if seen >= records else records * math.sqrt(math.log(4 / beta) / (2 * seen))


def _seen(sample: WindowSample, records: int) -> float:
    """How many of ``records`` live records the algorithm sees."""
    if sample.size is not None:
        return min(sample.size, records)
    return float(sample.rate or 1) * records


def outlook(bound: SampleBound) -> Iterator[str]:
    """The lines of a plan: what one run spends by which bound, how many records it takes, and what would take fewer."""
    sample, grant, cost = bound.statistic, bound.grant, bound.cost
    reach = f"{grant.reach:,} release{'s' * (grant.reach != 1)}"
    known = "" if math.isnan(rank_error(sample, grant.schema, 1, BETA)) else "errors are in ranks (records); "
    yield f"{known}{bound.price}; one record is in at most {reach} ({sample.form}, {cost.bound})"
    if bound.limit is not None:
        first, sure = float(bound.limit.at(1)), _sure(bound)
        yield f"⊥ until the noisy count of live records reaches {first:,.0f}; almost sure to answer from {sure:,.0f} on"
    seen = sample.of.needed(grant.schema, BETA)
    if seen is None:
        return
    if sample.size is not None and seen > sample.size:
        yield f"the sample is too small: at what a run may spend it takes {seen:,} records to find a point of the data"
    else:
        own = _needed(bound, seen)
        yield f"{own:,} live records are enough for an answer within the data (probability {1 - BETA:.2f})"
    found = {
        "the whole window": _at(sample.replaced(), grant, BETA),
        "a Poisson sample": _poisson(sample, grant),
        "a fixed size behind a gate": _fixed(sample, grant),
    }
    others = ", ".join(f"{name} {live:,}" for name, live in found.items() if live is not None)
    yield f"at best, with the same budget: {others}; sample where the algorithm is expensive to run"


def _sure(bound: SampleBound) -> int:
    """How many live records make it all but certain that a gate opens: the noise may subtract what the margin adds."""
    limit = bound.limit
    if limit is None:
        return 0
    over = float(limit.at(1) - limit.records) if limit.margin is not None else bound.noise.half_width(1, 0, 0.998)
    return math.ceil(limit.at(1) + Fraction(over))


def _needed(bound: SampleBound, seen: int) -> int:
    sample, grant, opened = bound.statistic, bound.grant, _sure(bound)
    if sample.rate is not None:
        return max(opened, drawn_from(sample.of.needed(grant.schema, BETA / 2) or seen, sample.rate))
    return max(seen, sample.occupancy or 0, opened)


def _poisson(sample: WindowSample, grant: Grant) -> int | None:
    found = [(_at(sample.replaced(rate=rate), grant, BETA / 2), rate) for rate in RATES]
    return min((drawn_from(seen, rate) for seen, rate in found if seen is not None), default=None)


def _fixed(sample: WindowSample, grant: Grant) -> int | None:
    """What one run may spend depends on the fraction of the window that is drawn, and hardly on its size: first the
    fraction, then the size, then the gate for it."""
    found = []
    for rate in RATES if grant.failure else ():
        seen = _at(sample.replaced(size=TRIAL, gate=math.ceil(TRIAL / rate)), grant, BETA)
        found += [] if seen is None else [(math.ceil(seen / rate), seen)]
    if not found:
        return None
    gate, size = min(found)
    chosen = sample.replaced(size=size, gate=gate)
    return _sure(chosen.bind(replace(grant, noise=chosen.preferred(grant))))


def _at(sample: WindowSample, grant: Grant, beta: float) -> int | None:
    """How many records the algorithm must see with what such a sample lets it spend."""
    try:
        return sample.resolved(grant).of.needed(grant.schema, beta)
    except InputError:
        return None


def drawn_from(seen: int, rate: Fraction) -> int:
    """How many live records yield ``seen`` at this rate with probability 1 - beta / 2 (normal approximation)."""
    z = 1.96
    return math.ceil((seen + z * z / 2 + z * math.sqrt(seen + z * z / 4)) / rate)
