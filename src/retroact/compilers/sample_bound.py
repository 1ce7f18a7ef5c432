"""A sample with its schema and what the stream grants it: what is live, what is drawn of it, and what to expect.

Live records are gathered by stamp and value, without a key. Their canonical order and their ranks depend on the key,
and are added where it is (`SampleBound.named`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..arrays import F64, I64
from ..coins import Coins
from ..noise import Mechanism
from ..noise.process import Outlook
from ..oneshot import BOTTOM, SUBSTITUTION
from ..params import plain
from ..privacy import Cost, Share
from ..schema import Rows
from ..statistics.answer import Answer, Published
from ..statistics.bound import At, Bound, Totals
from ..statistics.grant import Grant
from ..statistics.tally import Labelled
from ..statistics.wrapper import core
from .gate import Limit
from .live_records import Live, drawn
from .outlook import outlook, rank_error, sampling_error

if TYPE_CHECKING:
    from .window_sample import WindowSample

ONE = Fraction(1)
# A window is kept in about this many blocks.
BLOCKS = 32


class SampleBound(Bound):
    """``noise`` is that of the gate; without a gate only its coins are used. ``limit`` is what the noisy count must
    reach."""

    statistic: WindowSample
    limit: Limit | None = None

    def __init__(self, statistic: WindowSample, grant: Grant) -> None:
        gate = statistic.calibrated
        super().__init__(statistic, grant, share=Share("pure", ONE) if gate is None else gate.share)
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
        assert rows.stamps is not None
        return Labelled((rows.stamps, *(rows.columns[name] for name in self.reads)), weights[:, None])

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
        if own.of.contract.relation == SUBSTITUTION and live.count < (own.size or 0):
            return BOTTOM  # only if a promise is broken or a gate has failed
        rows = drawn(own.form, live, noise.coins, at.round, size=own.size, rate=own.rate)
        return own.of.run(rows, self.schema, noise.coins.branch("answer", at.round))

    def passed(self, noise: Mechanism, live: int, release: int) -> bool:
        """Whether the gate, if any, is open."""
        if self.limit is None:
            return True
        shift, denominator = noise.draw(release)
        return bool((live - self.limit.at(release)) * denominator + int(shift[0]) >= 0)

    def error(self, deviations: F64, records: int) -> float:
        """In ranks of the window, with probability 0.95; not a number where that is unknown."""
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

    def notes(self, records: int) -> tuple[str, ...]:
        return tuple(outlook(self))

    @cached_property
    def cost(self) -> Cost:
        """Of all runs, without the gate."""
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
