"""The past as it would have been reported, knowing what is known now (Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self, get_args

from msgspec.structs import replace

from ..checks import choice, integer
from ..coins import Coins
from ..errors import InputError
from ..noise import IndependentCopy, Mechanism, Oblivious, OneSided, Process, Rectangle
from ..noise.default_process import Candidates
from ..noise.rectangle import INDICES
from ..params import Parameters
from ..privacy import Share
from ..schema import Schema
from .answer import NoisyTotals, Published, by_name, noisy_totals
from .answer_rows import AnswerRows, ByKey
from .bound import At, Bound, Totals
from .count import Count
from .distinct import Distinct
from .grant import Grant, Layout, View
from .statistic import Example, Statistic
from .wrapper import Wrapper, WrapperBound, layers

Across = Literal["lags", "rectangle"]
CROSSED = "rectangle "


class Restated(Wrapper):
    """In round i, the statistic for the revised states RevData_{i, i - lag}, for every declared lag: the records that
    survive in round i and are stamped up to i - lag. The value is a dictionary from past round to answer.

    **Privacy.** Over all pairs (i, i - lag) that are ever published. In one lag an operation is an interval of rounds,
    as without lags. ``across="lags"`` gives every lag separate noise and an equal part of the budget.
    ``across="rectangle"`` gives all lags one noise over rounds and past times (`noise.Rectangle`), whose size does not
    depend on the number of lags. By default the one with less error is taken: the former for few lags, the latter for
    many.
    **Retroactivity.** Histories that unite agree on all stamps, hence on all revised states (Appendix A). Two histories
    with the same record, stamped 6 in one and 8 in the other, do not unite: past rounds 6 and 7 show it.

    >>> Restated(Count(), [1, 7])
    Restated(Count(), [1, 7])
    """

    kind: ClassVar[str] = "restated"
    outer: ClassVar[tuple[str, ...]] = ("lags", "across")
    tables: ClassVar[Mapping[str, type[Parameters]]] = {"of": Statistic}

    def __init__(self, of: Statistic, lags: Sequence[int], *, across: Across | None = None) -> None:
        within = layers(of)
        if any(isinstance(one, Distinct) for one in within):
            raise InputError(
                "a distinct count has no restated series: every revision can make a value appear in or vanish from any "
                "past round, and no noise is known that hides such patterns over all pairs of rounds",
                place="of",
            )
        if any(not one.restatable for one in within if isinstance(one, Statistic)):
            raise InputError(
                f"a {of.kind} has no restated series: what a record costs is known for the rounds in which it is live",
                place="of",
            )
        if not isinstance(of, Statistic) or any(isinstance(one, Restated) for one in within):
            raise InputError(f"expected a statistic that is not restated itself, got {of!r}", place="of")
        if of.noise in within[-1].own_noise:
            raise InputError(f"noise {of.noise!r} has no proven cost over the revised past", place="noise")
        if isinstance(of.noise, Oblivious):
            raise InputError("a law of your own has no proven cost over the revised past", place="noise")
        if isinstance(lags, str) or not isinstance(lags, Sequence) or not lags:
            raise InputError(f"expected a list of lags, got {lags!r}", place="lags")
        for lag in lags:
            integer(lag, "lags", least=0, expected="lags of whole rounds from 0 on")
        if len(set(lags)) != len(lags):
            raise InputError("expected every lag once", place="lags")
        super().__init__(of)
        self.lags = tuple(sorted(lags))
        self.across = None if across is None else choice(across, get_args(Across), "across")

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("restated", cls(Count(), [0, 2]), {"horizon": 64}),
            Example("restated, one noise", cls(Count(), [0, 1, 3], across="rectangle"), {"horizon": 64}),
        ]

    def statement(self) -> str:
        return f"{super().statement()}; Appendix A for the restated past"

    def each(self, grant: Grant) -> Grant:
        """The grant of one lag: the whole share where all lags have one noise, an equal part otherwise."""
        if grant.noise.startswith(CROSSED):
            share = grant.share
        else:
            share = Share(grant.share.kind, grant.share.amount / len(self.lags))
        # A threshold may fail in any lag.
        failure = grant.failure / len(self.lags)
        return replace(grant, share=share, failure=failure, noise=grant.noise.removeprefix(CROSSED))

    def candidates(self, grant: Grant) -> Candidates:
        """The processes of the inner statistic, once for each lag, and each crossed with the past for all lags."""
        own, crossed = layers(self.of)[-1].own_noise, {}
        found = {name: process for name, process in self.of.candidates(grant).items() if name not in own}
        if grant.horizon is not None and grant.horizon < INDICES and grant.window is None:
            crossed = {
                f"{CROSSED}{name}": Rectangle(process, grant.horizon, lag=self.lags[0], every=grant.every)
                for name, process in found.items()
                if process.horizon is not None and process.crossable
            }
        if self.across == "rectangle" and not crossed:
            raise InputError(
                f"a rectangle needs a horizon below {INDICES:,} and no window: use across='lags'",
                place=f"{grant.place}.across",
            )
        if self.across is not None:
            return found if self.across == "lags" else crossed
        return {**found, **crossed}

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return ByKey([("past_round", "integer")], super().answer_rows(schema))

    def bind(self, grant: Grant) -> RestatedBound:
        each = self.each(grant)
        # Choices follow from the inner process, also where the lags share one noise.
        resolved = self.of.bind(each).resolved
        process = self.process(grant)
        parts = [
            self.of.bind(replace(each, process=part, lag=lag, resolved=resolved))
            for lag, part in zip(self.lags, self._processes(process), strict=True)
        ]
        return RestatedBound(self, parts, process, grant)

    def _processes(self, process: Process) -> list[Process]:
        if isinstance(process, Rectangle):
            past, every = process.past.horizon, process.every
            return [Rectangle(process.process, past, lag=lag, every=every) for lag in self.lags]
        return [IndependentCopy(process, number) for number in range(len(self.lags))]


class RestatedBound(WrapperBound):
    """One inner bound for every lag, each with its part of the noise."""

    statistic: Restated

    def __init__(self, statistic: Restated, parts: list[Bound], process: Process, grant: Grant) -> None:
        super().__init__(statistic, parts[0], grant)
        self.parts, self.process = parts, process
        self.noise = Lagged(self.layout, [part.noise for part in parts], shared=isinstance(process, Rectangle))
        self.views = tuple(View(window=grant.window, lag=lag) for lag in statistic.lags)

    def drawn(self, coins: Coins) -> Self:
        mine = super().drawn(coins)
        mine.parts = [part.drawn(coins) for part in self.parts]
        return mine

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        assert isinstance(noise, Lagged)
        each = zip(self.statistic.lags, self.parts, totals, noise.parts, strict=True)
        answers = {
            view: part.release([total], own, at)
            for view, (lag, part, total, own) in enumerate(each)
            # The stream has no noise for rounds before its first one.
            if at.index * self.grant.every - lag >= 1
        }
        common = math.lcm(*(one.denominator for one in answers.values()))
        numerators = [n * (common // one.denominator) for one in answers.values() for n in one.numerators]
        answer = by_name({at.round - self.statistic.lags[view]: one.answer for view, one in answers.items()})

        def noisy_of_all() -> NoisyTotals:
            return {
                (view, name, place): total * (common // one.denominator)
                for view, one in answers.items()
                for (_, name, place), total in noisy_totals(one).items()
            }

        return Published(answer, tuple(numerators), common, noisy_of_all)

    def notes(self, records: int) -> tuple[str, ...]:
        lags, pure, horizon = len(self.statistic.lags), self.grant.share.kind == "pure", self.grant.horizon
        shared = isinstance(self.process, Rectangle)
        chosen = "one noise over rounds and past times" if shared else "separate noise for every lag"
        separate, together = float(lags) if pure else math.sqrt(lags), "not possible here"
        if horizon is not None and self.grant.window is None:
            past = OneSided(horizon).outlook(1 if pure else 2, horizon)
            together = f"{past.deviation:.3g}" if past else together
        how = (
            f"{lags} lags by {chosen}: errors grow by a factor of {separate:.3g} with noise for every lag, "
            f"{together} with one noise for all"
        )
        return (*super().notes(records), how)


class Lagged(Mechanism):
    """The noise of all lags; as a mechanism, that of the first."""

    def __init__(self, layout: Layout, parts: list[Mechanism], *, shared: bool) -> None:
        self.parts, self.shared = parts, shared
        super().__init__(
            parts[0].process, parts[0].share, units=layout.units, norm1=layout.norm1, norm2_squared=layout.norm2_squared
        )

    def under(self, coins: Coins) -> Self:
        mine = super().under(coins)
        mine.parts = [part.under(coins) for part in self.parts]
        return mine
