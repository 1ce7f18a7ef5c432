"""Interior points, medians and quantiles of a field by the exact exponential mechanism, one at a time or several."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import U64
from ..coins import Coins
from ..coins.coins import integer_cells
from ..errors import InputError
from ..schema import Schema
from .base import Contract
from .exponential import HALF, Values, ordered, quantile_point, unit_of
from .ordered_domain import Decode, Ordered, check_beta, exact_probability, plain_probability, upward

# With several quantiles, records of equal value are distinguished by this many random bits.
TIE_BITS = 24


class Quantile(Ordered):
    """A value near the quantile of a field.

    **Privacy.** epsilon, with the range bounded by it, for one record more or less: `quantile_law`.

    >>> from retroact.schema import Integer, Rows
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> rows = Rows.from_tuples(schema, [(age,) for age in range(100)])
    >>> Quantile("age", 0.9, epsilon=1).run(rows, schema, Coins(bytes(32)))
    91
    """

    kind: ClassVar[str] = "quantile"

    def __init__(
        self, field: str, probability: float | str | Fraction, *, epsilon: float | Fraction | None = None
    ) -> None:
        super().__init__(field, epsilon=epsilon)
        self.probability = exact_probability(probability, "probability")

    def promised(self, epsilon: Fraction) -> Contract:
        return Contract(epsilon, bounded_range=True)

    def answer(self, values: U64, last: int, decode: Decode, coins: Coins) -> Any:
        return decode(quantile_point(values, 0, last, self.probability, self.spent, coins))

    def needed(self, schema: Schema, beta: float) -> int | None:
        """None for the smallest and the largest value: outcomes next to them lie outside the data."""
        return quantile_records(self.size(schema), self.probability, self.spent, beta)

    def rank_error(self, schema: Schema, beta: float) -> float:
        return rank_bound(self.size(schema), self.probability, self.spent, beta)


class Median(Quantile):
    """A value near the median of a field.

    **Privacy.** epsilon, with the range bounded by it, for one record more or less: `quantile_law`.

    >>> Median("age", epsilon=0.5)
    Median('age', epsilon=0.5)
    """

    kind: ClassVar[str] = "median"

    def __init__(self, field: str, *, epsilon: float | Fraction | None = None) -> None:
        super().__init__(field, HALF, epsilon=epsilon)


class InteriorPoint(Median):
    """A value of a field that is neither below nor above all records, if there are enough: the median.

    **Privacy.** epsilon, with the range bounded by it, for one record more or less: `quantile_law`.

    >>> from retroact.schema import Integer
    >>> schema = Schema({"id": Integer(0, 2**63 - 1)})
    >>> InteriorPoint("id", epsilon=1).needed(schema, 0.05)
    92
    """

    kind: ClassVar[str] = "interior_point"


class QuantilePoints(Ordered):
    """Several quantiles of a field: the middle one first, then those below it from the records below, and those above
    it from the records above. The answer is a monotone dict from probability to value.

    **Privacy.** With m quantiles there are d = floor(log2 m) + 1 levels. One record more or less matters to at most one
    mechanism of a level, since the parts of the domain that earlier answers leave do not overlap. So, given all earlier
    answers, a level costs epsilon / d, and adaptive composition gives epsilon. The range is bounded for one quantile,
    but not for several, where the interval of the log ratio depends on earlier answers.

    Records of equal value are distinguished by 24 random bits each; otherwise a value that many have would go missing
    from both sides. The bits are independent of everything else: given those of the common records and of the one that
    differs, the proof above holds, and so it does for the mixture.

    >>> from retroact.schema import Integer, Rows
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> rows = Rows.from_tuples(schema, [(age % 100,) for age in range(2000)])
    >>> QuantilePoints("age", [0.25, 0.5, 0.75], epsilon=1).run(rows, schema, Coins(bytes(32)))
    {0.25: 24, 0.5: 50, 0.75: 74}
    """

    kind: ClassVar[str] = "quantile_points"

    def __init__(
        self, field: str, probabilities: Sequence[float | str | Fraction], *, epsilon: float | Fraction | None = None
    ) -> None:
        super().__init__(field, epsilon=epsilon)
        if isinstance(probabilities, str) or not isinstance(probabilities, Sequence) or not probabilities:
            raise InputError(f"expected a list of probabilities, got {probabilities!r}", place="probabilities")
        self.probabilities = tuple(sorted(exact_probability(p, "probabilities") for p in probabilities))
        if len(set(self.probabilities)) != len(self.probabilities):
            raise InputError("expected every probability once, got one twice", place="probabilities")

    @property
    def depth(self) -> int:
        return len(self.probabilities).bit_length()

    def promised(self, epsilon: Fraction) -> Contract:
        return Contract(epsilon, bounded_range=self.depth == 1)

    @property
    def _bits(self) -> int:
        return TIE_BITS if self.depth > 1 else 0

    def answer(self, values: U64, last: int, decode: Decode, coins: Coins) -> dict[float | str, Any]:
        apart = told_apart(values, last, self._bits, coins.branch("ties"))
        top = ((last + 1) << self._bits) - 1
        found = quantile_points(apart, 0, top, self.probabilities, self.spent, coins.branch("points"))
        places = zip(self.probabilities, found, strict=True)
        return {plain_probability(p): decode(point >> self._bits) for p, point in places}

    def needed(self, schema: Schema, beta: float) -> int | None:
        """None for several quantiles: no bound on their ranks says that all are within the data."""
        if self.depth > 1:
            return None
        return quantile_records(self.size(schema), self.probabilities[0], self.spent, beta)

    def rank_error(self, schema: Schema, beta: float) -> float:
        """At most the sum of the errors of a quantile's level and of all levels above: an answer that is e ranks off
        moves the rank asked for next by a fraction of e. Each level above also adds the records that share a value and
        its random bits with the answer; one is counted here."""
        size = self.size(schema) << self._bits
        each, share = self.spent / self.depth, check_beta(beta) / len(self.probabilities)

        def errors(asked: tuple[Fraction, ...], above: float) -> Iterator[float]:
            if asked:
                p, below, beyond = _split(asked)
                here = above + rank_bound(size, p, each, share)
                yield here
                yield from errors(below, here + 1)
                yield from errors(beyond, here + 1)

        return max(errors(self.probabilities, 0.0))


def _split(asked: tuple[Fraction, ...]) -> tuple[Fraction, tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The middle one, and the others as probabilities among the records below and above it."""
    middle = len(asked) // 2
    p = asked[middle]
    return p, tuple(q / p for q in asked[:middle]), tuple((q - p) / (1 - p) for q in asked[middle + 1 :])


def quantile_points(
    values: Values, lower: int, upper: int, probabilities: Sequence[Fraction], epsilon: Fraction, coins: Coins
) -> list[int]:
    """Values of the domain near the quantiles for ascending probabilities; ascending themselves.

    **Privacy.** epsilon, for one value more or less: see `QuantilePoints`.

    >>> quantile_points([5] * 50 + [7] * 50, 0, 9, [Fraction(1, 4), Fraction(3, 4)], Fraction(2), Coins(bytes(32)))
    [5, 7]
    """
    each = epsilon / len(probabilities).bit_length()
    found: list[int] = []

    def descend(part: Values, low: int, high: int, asked: tuple[Fraction, ...], name: int) -> None:
        if not asked:
            return
        if low > high:
            # No value is left on this side of the answer above, and no record either.
            found.extend([min(max(low, lower), upper)] * len(asked))
            return
        p, below, beyond = _split(asked)
        point = quantile_point(part, low, high, p, each, coins.branch(name))
        descend(part[: bisect_left(part, point)], low, point - 1, below, 2 * name)
        found.append(point)
        descend(part[bisect_right(part, point) :], point + 1, high, beyond, 2 * name + 1)

    descend(ordered(values, lower, upper), lower, upper, tuple(probabilities), 1)
    return found


def told_apart(values: U64, last: int, bits: int, coins: Coins) -> Values:
    """Sorted values of 0 .. last, each followed by ``bits`` random bits; sorted again."""
    if not bits:
        return values
    random = coins.words([0], [0], integer_cells(len(values))).block(0)[0][0] >> np.uint64(64 - bits)
    if last.bit_length() + bits <= 64:
        return np.sort(values << np.uint64(bits) | random)
    return sorted(value << bits | extra for value, extra in zip(values.tolist(), random.tolist(), strict=True))


def rank_bound(size: int, probability: Fraction, epsilon: Fraction, beta: float) -> float:
    """The most ranks that `quantile_point` is off, with probability 1 - beta, in a domain of ``size`` values.

    Some value scores zero or better, and has weight 1. Those that are more than t ranks off weigh e^(-unit c t) each,
    and there are at most ``size`` of them.

    >>> round(rank_bound(2**64, HALF, Fraction(1), 0.05), 1)
    47.4
    """
    unit = float(unit_of(probability, epsilon) * probability.denominator)
    return (math.log(size) - math.log(check_beta(beta))) / unit * (1 + 1e-9)


def interior_records(size: int, epsilon: Fraction, beta: float) -> int:
    """How many records guarantee that `interior_point` is within the data with probability 1 - beta.

    Outside lie at most size - 2 values of score 0, or size - 1 if all n records are equal. Equal ones weigh e^(epsilon
    n) together. Otherwise the values within weigh 2 e^(epsilon n / 2) or more: let the median have the ranks l+1 .. r,
    and r <= n - l (else mirror it). It scores r, and the next value scores n - r.

    >>> [interior_records(2**bits, Fraction(1), 0.05) for bits in (16, 32, 64)]
    [27, 49, 94]
    """
    odds, rate = math.log((1 - check_beta(beta)) / beta), float(epsilon)
    two = 2 / rate * (math.log(max(size - 2, 1)) + odds - math.log(2))
    one = 1 / rate * (math.log(max(size - 1, 1)) + odds)
    return max(1, upward(two), upward(one))


def quantile_records(size: int, probability: Fraction, epsilon: Fraction, beta: float) -> int | None:
    """How many records guarantee that `quantile_point` is within the data with probability 1 - beta.

    Values outside score min(p, 1 - p) n or worse, and there are less than ``size``; some value inside scores 0.

    >>> quantile_records(2**64, Fraction(9, 10), Fraction(1), 0.05)
    852
    """
    if probability == HALF:
        return interior_records(size, epsilon, beta)
    if probability in (0, 1):
        return None
    slope = float(unit_of(probability, epsilon) * min(probability.numerator, (1 - probability).numerator))
    return max(1, upward((math.log(size) + math.log((1 - check_beta(beta)) / beta)) / slope))
