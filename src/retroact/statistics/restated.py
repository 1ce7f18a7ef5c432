"""The past as it would have been reported, knowing what is known now (Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import ClassVar, Literal, Self

from ..checks import integer
from ..coins import Coins
from ..errors import InputError
from ..noise import IndependentCopy, Mechanism, Oblivious, OneSided, Process, Rectangle
from ..noise.default_process import Candidates
from ..noise.process import Shift
from ..noise.rectangle import INDICES
from ..params import Parameters
from ..privacy import Share
from .answer import Answer, NoisyTotals, Published, noisy_totals
from .bound import At, Bound, Totals
from .distinct import Distinct
from .grant import Layout, Setting, View
from .statistic import Statistic
from .wrapper import Wrapper, WrapperBound, layers

Across = Literal["lags", "rectangle"]
CROSSED = "rectangle "


class Restated(Wrapper):
    """In round i, the statistic for the revised states RevData_{i, i - lag}, for every declared lag: the records that
    survive in round i and are stamped up to i - lag. The value is a dictionary from past round to answer.

    **Privacy.** Over all pairs (i, i - lag) that are ever published. In one lag an operation is an interval of rounds,
    as without lags. ``across="lags"`` gives every lag noise of its own and an equal part of the budget.
    ``across="rectangle"`` gives all of them one noise over rounds and past times (`noise.Rectangle`), whose size does
    not depend on the number of lags. Left out, the one with less error is taken: few lags, or many.
    **Retroactivity.** Histories that unite agree on all stamps, hence on all revised states (Appendix A): the same
    record with stamp 6 in one and 8 in the other does not unite, and shows at past rounds 6 and 7.

    >>> from retroact.statistics import Count
    >>> Restated(Count(), [1, 7])
    Restated(Count(), [1, 7])
    """

    kind: ClassVar[str] = "restated"
    beside: ClassVar[tuple[str, ...]] = ("lags", "across")
    tables: ClassVar[Mapping[str, type[Parameters]]] = {"of": Statistic}

    def __init__(self, of: Statistic, lags: Sequence[int], *, across: Across | None = None) -> None:
        within = layers(of)
        if any(isinstance(one, Distinct) for one in within):
            raise InputError(
                "a distinct count has no restated series: with every revision a value can appear in or vanish from any "
                "past round again, and no noise is known that hides such patterns over all pairs of rounds",
                place="of",
            )
        if any(not one.restatable for one in within if isinstance(one, Statistic)):
            raise InputError(
                f"a {of.kind} has no restated series: what a record costs is known for the rounds in which it is live",
                place="of",
            )
        if not isinstance(of, Statistic) or any(isinstance(one, Restated) for one in within):
            raise InputError(f"expected a statistic that is not restated itself, got {of!r}", place="of")
        if isinstance(of.noise, Oblivious):
            raise InputError("a law of your own has no proven cost over the revised past", place="noise")
        if isinstance(lags, str) or not isinstance(lags, Sequence) or not lags:
            raise InputError(f"expected a list of lags, got {lags!r}", place="lags")
        for lag in lags:
            integer(lag, "lags", least=0, expected="lags of whole rounds from 0 on")
        if len(set(lags)) != len(lags):
            raise InputError("expected every lag once", place="lags")
        if across not in (None, "lags", "rectangle"):
            raise InputError(f"expected 'lags' or 'rectangle', got {across!r}", place="across")
        super().__init__(of)
        self.lags, self.across = tuple(sorted(lags)), across

    def statement(self) -> str:
        return f"{super().statement()}; Appendix A for the restated past"

    def each(self, setting: Setting) -> Setting:
        """What a lag is given: all of the share where one noise serves them all, an equal part otherwise."""
        if setting.noise.startswith(CROSSED):
            share = setting.share
        else:
            share = Share(setting.share.kind, setting.share.amount / len(self.lags))
        # A threshold may fail in any lag.
        failure = setting.failure / len(self.lags)
        return replace(setting, share=share, failure=failure, noise=setting.noise.removeprefix(CROSSED))

    def candidates(self, setting: Setting) -> Candidates:
        """Those of the inner statistic for every lag, and each of them crossed with the past for all."""
        found, crossed = self.of.candidates(setting), {}
        if setting.horizon is not None and setting.horizon < INDICES and setting.window is None:
            crossed = {
                f"{CROSSED}{name}": Rectangle(process, setting.horizon, lag=self.lags[0], every=setting.every)
                for name, process in found.items()
                if process.horizon is not None
            }
        if self.across == "rectangle" and not crossed:
            raise InputError(
                f"a rectangle needs a horizon below {INDICES:,} and no window: use across='lags'",
                place=f"{setting.place}.across",
            )
        if self.across is not None:
            return found if self.across == "lags" else crossed
        return {**found, **crossed}

    def apart(self, setting: Setting) -> float:
        return float(len(self.lags)) ** (2 if setting.share.kind == "pure" else 1)

    def rectangle(self, setting: Setting) -> float:
        if setting.horizon is None:
            return math.inf
        past = OneSided(setting.horizon)
        norm = float(past.l1) ** 2 if setting.share.kind == "pure" else float(past.l2_squared)
        return norm * past.extremes()[0]

    def bind(self, setting: Setting) -> RestatedBound:
        inner = self.of.bind(self.each(setting))
        mine = copy(self)
        mine.of = inner.statistic
        return RestatedBound(mine, inner, setting)


class RestatedBound(WrapperBound):
    """The inner statistic once for every lag, each with its part of the noise."""

    statistic: Restated

    def __init__(self, statistic: Restated, of: Bound, grant: Setting) -> None:
        super().__init__(statistic, of, grant)
        self.process = statistic.process(grant)
        # What is resolved follows from the inner process, also where the lags share one noise.
        self.parts = [
            of.statistic.bind(replace(of.grant, process=part, lag=lag))
            for lag, part in zip(statistic.lags, self._processes(), strict=True)
        ]
        self.noise = Lagged(
            self.layout, [part.noise for part in self.parts], shared=isinstance(self.process, Rectangle)
        )
        self.views = tuple(View(window=grant.window, lag=lag) for lag in statistic.lags)

    def _processes(self) -> list[Process]:
        process = self.process
        if isinstance(process, Rectangle):
            past, every = process.past.horizon, process.every
            return [Rectangle(process.process, past, lag=lag, every=every) for lag in self.statistic.lags]
        return [IndependentCopy(process, number) for number in range(len(self.statistic.lags))]

    def drawn(self, coins: Coins) -> Self:
        mine = super().drawn(coins)
        mine.parts = [part.drawn(coins) for part in self.parts]
        return mine

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        assert isinstance(noise, Lagged)
        # Rounds before the stream's own first one have no noise in it.
        shown = [at.index * self.grant.every - lag >= 1 for lag in self.statistic.lags]
        answers = {
            at.round - lag: part.release([total], own, at)
            for lag, part, total, own, there in zip(
                self.statistic.lags, self.parts, totals, noise.parts, shown, strict=True
            )
            if there
        }
        common = math.lcm(*(one.denominator for one in answers.values()))
        numerators = [n * (common // one.denominator) for one in answers.values() for n in one.numerators]
        inner = {past: one.answer for past, one in answers.items()}
        answer = Answer(
            {past: one.value for past, one in inner.items()},
            {past: one.standard_error for past, one in inner.items()},
            lambda level: {past: one.interval(level) for past, one in inner.items()},
        )

        def noisy_of_all() -> NoisyTotals:
            views = (view for view, there in enumerate(shown) if there)
            return {
                (view, name, place): total * (common // one.denominator)
                for view, one in zip(views, answers.values(), strict=True)
                for (_, name, place), total in noisy_totals(one).items()
            }

        return Published(answer, tuple(numerators), common, noisy_of_all)

    def notes(self, records: int) -> tuple[str, ...]:
        statistic, grant = self.statistic, self.grant
        apart, rectangle = math.sqrt(statistic.apart(grant)), math.sqrt(statistic.rectangle(grant))
        shared = isinstance(self.process, Rectangle)
        chosen = "one noise over rounds and past times" if shared else "noise of its own for every lag"
        other = f"{rectangle:.3g}" if math.isfinite(rectangle) and grant.window is None else "not possible here"
        how = (
            f"{len(statistic.lags)} lags by {chosen}: errors grow by a factor of {apart:.3g} with noise for every lag, "
            f"{other} with one noise for all"
        )
        return (*self.parts[0].notes(records), how)


class Lagged(Mechanism):
    """The noise of all lags; taken by itself, that of the first."""

    def __init__(self, layout: Layout, parts: list[Mechanism], *, shared: bool) -> None:
        self.parts, self.shared = parts, shared
        super().__init__(
            parts[0].process,
            parts[0].share,
            units=layout.units,
            norm1=layout.norm1,
            norm2_squared=layout.norm2_squared,
        )

    def under(self, coins: Coins) -> Self:
        mine = super().under(coins)
        mine.parts = [part.under(coins) for part in self.parts]
        return mine

    def moved(self, coordinate: int, patterns: Sequence[Sequence[int]]) -> list[tuple[Mechanism, Shift]]:
        if not self.shared:
            parts = zip(self.parts, patterns, strict=True)
            return [moved for part, pattern in parts for moved in part.moved(coordinate, [pattern])]
        return [(self, min(self._rectangles(patterns), key=lambda shift: self.cost_of(coordinate, shift)))]

    def _rectangles(self, patterns: Sequence[Sequence[int]]) -> list[Shift]:
        """Every rectangle that shows as these patterns (pairs that are never published leave some choice)."""
        processes = [part.process for part in self.parts]
        amounts = {amount for pattern in patterns for amount in pattern if amount}
        if len(amounts) != 1:
            raise InputError("expected one amount on a rectangle")
        (amount,) = amounts
        shown = {(k, i) for k, pattern in enumerate(patterns) for i, value in enumerate(pattern, 1) if value}
        first, last = min(i for _, i in shown), max(i for _, i in shown)
        found = []
        for start in range(first):
            for end in range(last, len(patterns[0]) + 1):
                for stamp in range(1, last * self.every + 1):
                    inside = {
                        (k, i)
                        for k, process in enumerate(processes)
                        for i in range(start + 1, end + 1)
                        if isinstance(process, Rectangle) and i * process.every - process.lag >= stamp
                    }
                    if inside == shown and isinstance(processes[0], Rectangle):
                        moved = processes[0].rectangle(start, end, stamp)
                        found.append({node: amount * value for node, value in moved.items()})
        if not found:
            raise InputError("expected a rectangle of rounds and past times")
        return found

    @property
    def every(self) -> int:
        process = self.parts[0].process
        return process.every if isinstance(process, Rectangle) else 1
