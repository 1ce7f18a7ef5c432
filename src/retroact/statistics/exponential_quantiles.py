"""Quantiles by the exponential mechanism, afresh in every release: for few releases of few probabilities.

For every probability p = a/c a release runs two mechanisms on its counts by value. The first draws the value v from the
whole domain (`oneshot.exponential`). The second draws how far the interval reaches from v, of the distances g = 0, 1,
2, ..., 7, 8, 10, 12, 14, 16, 20, ... (four to an octave). Of n records let L(o) be below o and H(o) at or below it. The
interval [v - g, v + g] holds a p-quantile if D(g) >= 0, where
  D(g) = min(a n - c L(v - g), c H(v + g) - a n),
without the first term once it reaches the lowest value, and without the second once it reaches the highest. D never
decreases. The mechanism looks for the g where D reaches S, with the score max(S - D(g), D(g before) - S).

**Privacy.** Both have a range bounded by r, for one record more or less: `quantile_law` for the first; in the second
one record moves either term of D(g) by a or a - c, or by -a or c - a, so every score by at most M = max(a, c - a),
and a unit of the score weighs r / 2M (`Weights`). A record counts in at most W releases, in one group each. So one
operation is seen by 2 k W mechanisms, for k probabilities, the second ones chosen by the answers of the first, and the
rounds by all earlier answers; `privacy.range_share` says which r their share of the budget allows. The published values
and reaches are all that a release shows.
**Retroactivity.** A release is a function of its coins, which are named by release, group and probability, and of the
counts by value; weights are integers, and no float decides anything.
**Coverage.** The best score is at most 0. A reach with D(g) < 0 scores above S, and there are J reaches, so one is
drawn with probability at most J e^(-S r / 2M), whatever the records and v; S makes that 1 - `LEVEL`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..coins import Coins
from ..noise import Mechanism
from ..oneshot.exponential import Ranked, choose, quantile_point
from ..oneshot.ordered_domain import exact_probability, log_up
from ..privacy.range_share import largest_range
from .answer import Answer, Published, by_name
from .bound import At, Totals
from .grant import Grant
from .quantile_answer import QuantileTable
from .quantiles import QuantilesBound
from .tally import Tally

if TYPE_CHECKING:
    from .quantiles import Quantiles

# The level of the intervals. Higher ones get the whole domain.
LEVEL = Fraction(19, 20)
# Mechanisms for each probability in a release.
EACH = 2
# A reach is this much too long on average, since there are four to an octave.
ROUNDED = 9 / 8
# How many half-widths beyond a quantile are enough: intervals over log-normal values were then at most 1.3 times as
# wide as over evenly spread ones.
ENOUGH = 2


def reaches(last: int) -> list[int]:
    """The distances that an interval can have on either side, up to the first that covers all values 0 .. last.

    >>> reaches(30)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]
    """
    found, step = [0, 1, 2, 3], 1
    while found[-1] < last:
        found += [step * part for part in (4, 5, 6, 7)]
        step *= 2
    return found[: next(place for place, reach in enumerate(found) if reach >= last) + 1]


class ExponentialBound(QuantilesBound):
    """Of its noise only the coins are used. ``range`` is what one mechanism may spend."""

    additive = False

    def __init__(self, statistic: Quantiles, grant: Grant) -> None:
        super().__init__(statistic, grant)
        self.last = self.field.upper - self.field.lower
        self.asked = [exact_probability(p, "probabilities") for p in statistic.probabilities]
        self.range, self.spends = largest_range(grant.share, grant.spare, self.mechanisms)
        self.digest_extras = {"range": str(self.range)}
        self.reaches = reaches(self.last)

    @property
    def mechanisms(self) -> int:
        """How many see one record."""
        assert self.grant.reach is not None  # it is not among the candidates otherwise
        return EACH * len(self.asked) * self.grant.reach

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        coins = noise.coins.branch("exponential", at.index)
        parts = [part for _, part in self._by_group(totals[0])]
        found = [self._drawn(part, coins.branch(group)) for group, part in enumerate(parts)]
        numerators = tuple(offset for one in found for triple in one for offset in triple)
        answers = [self._answer(one) for one in found]
        names = zip(self.groups.names, answers, strict=True) if self.groups.by else ()
        return Published(by_name(dict(names)) if self.groups.by else answers[0], numerators, 1)

    def _drawn(self, tally: Tally, coins: Coins) -> list[tuple[int, int, int]]:
        """The value and both ends for every probability, as offsets. Values rise with the probability."""
        points, ends = [], []
        for p in self.asked:
            own = coins.branch(str(p))
            points.append(self.point(tally, p, own.branch("value")))
            reach = choose(
                self.reach_pieces(tally, p, points[-1]),
                self.range / self.moved(p),
                own.branch("reach"),
                size=len(self.reaches),
            )
            ends.append((max(points[-1] - reach, 0), min(points[-1] + reach, self.last)))
        rising = dict(zip(sorted(range(len(points)), key=self.asked.__getitem__), sorted(points), strict=True))
        return [(rising[i], min(low, rising[i]), max(high, rising[i])) for i, (low, high) in enumerate(ends)]

    def point(self, tally: Tally, p: Fraction, coins: Coins) -> int:
        return quantile_point(Ranked(tally.words[0], tally.below), 0, self.last, p, self.range, coins)

    def reach_pieces(self, tally: Tally, p: Fraction, point: int) -> list[tuple[int, int, int]]:
        """The reaches around a point, with their scores."""
        a, c = p.numerator, p.denominator
        lows, highs = [point - reach for reach in self.reaches], [point + reach for reach in self.reaches]
        whole = next(i for i, (low, high) in enumerate(zip(lows, highs, strict=True)) if low <= 0 and high >= self.last)
        words, below, n = tally.words[0], tally.below, int(tally.below[-1])
        first = np.array([max(low, 0) for low in lows[:whole]], dtype=np.uint64)
        last = np.array([min(high, self.last) for high in highs[:whole]], dtype=np.uint64)
        under = below[np.searchsorted(words, first)].tolist()
        upto = below[np.searchsorted(words, last, side="right")].tolist()
        short = []
        for low, high, left, right in zip(lows, highs, under, upto, strict=False):
            terms = [a * n - c * left] * (low > 0) + [c * right - a * n] * (high < self.last)
            short.append(self.sought(p) - min(terms))
        scores = [*short[:1], *map(max, short[1:], (-score for score in short)), *(-score for score in short[-1:])]
        return [(reach, 1, score) for reach, score in zip(self.reaches, scores or [0], strict=False)]

    @staticmethod
    def moved(p: Fraction) -> int:
        """The range of the scores of a reach under one record more or less."""
        return 2 * max(p.numerator, p.denominator - p.numerator)

    def sought(self, p: Fraction) -> int:
        """The D that is looked for."""
        return math.ceil(log_up(len(self.reaches) / (1 - LEVEL)) * self.moved(p) / self.range)

    def _answer(self, found: list[tuple[int, int, int]]) -> Answer:
        field, asked = self.field, self.statistic.probabilities

        def table(values: Sequence[Any]) -> QuantileTable:
            named: Mapping[float, Any] = dict(zip(asked, values, strict=True))
            return QuantileTable(named, {}, {})

        def value(offset: int) -> Any:
            return field.decode(field.lower + offset)

        def interval(level: float) -> QuantileTable:
            ends = [(low, high) if level <= LEVEL else (0, self.last) for _, low, high in found]
            return table([(value(low), value(high)) for low, high in ends])

        errors = [float((high - low) * field.step / 2) for _, low, high in found]
        return Answer(table([value(point) for point, _, _ in found]), table(errors), interval)

    def expected_error(self, index: int, records: int, level: float | None = None) -> float:
        """The error in ranks: the deviation of a value, or half an interval of such a level, for the probability
        that is the farthest from the median. Records are evenly spread around the quantile, if there are enough
        beyond it."""
        farthest = max(self.asked, key=lambda p: abs(2 * p - 1))
        rank = self.moved(farthest) / farthest.denominator / float(self.range)
        if level is None:
            return math.sqrt(2) * rank
        half = ROUNDED * rank * (math.log(len(self.reaches) / (1 - level)) + 1)
        among = records / len(self.groups)
        # An interval reaches equally far to both sides. With few records beyond the quantile, their values may be so
        # far apart that it holds all those on the other side.
        beyond = float(min(farthest, 1 - farthest)) * among
        return half if ENOUGH * half <= beyond else max(half, among / 2)

    @property
    def method(self) -> str:
        return "exponential mechanism"

    def notes(self, records: int) -> tuple[str, ...]:
        among = f" in each of {len(self.groups):,} groups" if self.groups.by else ""
        spent = f"{self.mechanisms:,} mechanisms see one record, each with a range of {float(self.range):.4g}"
        return (f"errors are in ranks (records), over {self.last + 1:,} values{among}; {spent}",)
