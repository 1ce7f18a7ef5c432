"""What a quantile statistic publishes: a dictionary from probability to value, with the requested cdf and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from ..messages import Named
from ..noise import Spread
from .answer import check_level
from .answer_rows import READ, AnswerRows, ByKey, KeyColumn, Kind, OneValue, Row, part_of
from .ratio_interval import ratio_interval


class QuantileTable(Named):
    """Values, errors or intervals: of every quantile, of the distribution function and of the counts."""

    def __init__(
        self, values: Mapping[float, Any], cdf: Mapping[Any, Any], counts: Mapping[tuple[Any, Any], Any]
    ) -> None:
        super().__init__(values)
        self.cdf, self.counts = Named(cdf), Named(counts)

    def to_plain(self) -> dict[str, Any]:
        """Convert for output: everything, or the quantiles alone where nothing else was requested."""
        quantiles = {str(p): value for p, value in self.items()}
        if not self.cdf and not self.counts:
            return quantiles
        return {
            "quantiles": quantiles,
            "cdf": {str(point): fraction for point, fraction in self.cdf.items()},
            "counts": {f"{first}..{last}": count for (first, last), count in self.counts.items()},
        }


class QuantileRows(AnswerRows):
    """A row for each ``probability``, with the quantile; then for each ``point`` of the distribution function, with the
    fraction of records up to it; then for each range from ``first`` to ``last``, with the number of records in it.

    >>> rows = QuantileRows("integer", counts=True)
    >>> rows.keys
    (('probability', 'number'), ('first', 'integer'), ('last', 'integer'))
    >>> value = {"quantiles": {"0.5": 31}, "cdf": {}, "counts": {"18..50": 120.5}}
    >>> [(keys, value) for keys, value, *_ in rows.rows(value, None, None)]
    [((0.5, None, None), 31), ((None, 18, 50), 120.5)]
    """

    def __init__(self, kind: Kind, *, cdf: bool = False, counts: bool = False) -> None:
        own: Kind = kind if kind in ("date", "time") else "number"
        self._quantiles = ByKey([("probability", "number")], OneValue(own))
        points: list[KeyColumn] = [("point", kind)] * cdf
        ranges: list[KeyColumn] = [("first", kind), ("last", kind)] * counts
        self.keys = (*self._quantiles.keys, *points, *ranges)
        self.values = tuple({own: 0, **({"number": 0} if cdf or counts else {})})
        self._cdf, self._counts = cdf, counts

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        if not self._cdf and not self._counts:
            yield from self._quantiles.rows(value, error, interval)
            return
        for part in value:
            inner = ByKey([("", "text")], OneValue("number" if part != "quantiles" else self._quantiles.values[0]))
            for (key,), *rest in inner.rows(value[part], part_of(error, part), part_of(interval, part)):
                yield (self._keys(part, key), *rest)

    def _keys(self, part: str, key: str) -> tuple[Any, ...]:
        """Fill the columns of that part; the others are empty."""
        kinds = [kind for name, kind in self.keys]
        parts = {"quantiles": [key], "cdf": [key], "counts": list(key.partition("..")[::2])}[part]
        first = {"quantiles": 0, "cdf": 1, "counts": 1 + self._cdf}[part]
        read = [_end(text, kind) for text, kind in zip(parts, kinds[first:], strict=False)]
        return (*[None] * first, *read, *[None] * (len(kinds) - first - len(read)))


def _end(text: str, kind: Kind) -> Any:
    """A point or an end of a range, as it was declared."""
    return int(Fraction(text)) if kind == "integer" else READ[kind](text)


class Height(msgspec.Struct, frozen=True):
    """The distribution function at one point: noisy records below it over the noisy number of all. The noise of the
    latter (``root``) is in the former with weight ``share``; the rest (``own``) is independent of it."""

    below: float
    records: float
    share: float
    own: Spread
    root: Spread

    @property
    def value(self) -> float:
        return self.below / self.records

    def noise(self, fraction: float) -> Spread:
        """The noise of below - fraction * records."""
        return Spread.combined([(1.0, self.own), (self.share - fraction, self.root)])

    def interval(self, level: float) -> tuple[float, float]:
        """All fractions that agree with the noisy one up to its noise (`ratio_interval`)."""
        if self.records <= self.root.half_width(level):
            return 0.0, 1.0
        return ratio_interval(
            self.below, self.records, lambda fraction: self.noise(fraction).half_width(level), (0.0, 1.0)
        )


class Ranks(QuantileTable):
    """A quantile is None where the number of records is not significantly above zero.

    ``cdf`` has the fraction of records up to each point, and is monotone; ``counts`` the number of records in each
    range, both ends included; ``records`` the noisy number of all.
    """

    def __init__(
        self,
        values: Mapping[float, Any],
        *,
        cdf: Mapping[Any, float | None],
        counts: Mapping[tuple[Any, Any], float],
        records: float,
        raw: Mapping[Any, Height],
        noise: Mapping[tuple[Any, Any], Spread],
    ) -> None:
        super().__init__(values, cdf, counts)
        self.records = records
        self._raw, self._noise = raw, noise

    def errors(self, quantiles: Mapping[float, float | None]) -> QuantileTable:
        """Standard errors, each in the unit of its value."""
        fractions = {
            point: None if fraction is None else self._raw[point].noise(fraction).deviation / self.records
            for point, fraction in self.cdf.items()
        }
        return QuantileTable(quantiles, fractions, {span: noise.deviation for span, noise in self._noise.items()})

    def intervals(self, values: Mapping[float, Any], level: float) -> QuantileTable:
        return QuantileTable(values, self.cdf_interval(level), self.counts_interval(level))

    def counts_interval(self, level: float = 0.95) -> dict[tuple[Any, Any], tuple[float, float]]:
        check_level(level)
        reach = {span: noise.half_width(level) for span, noise in self._noise.items()}
        return {span: (count - reach[span], count + reach[span]) for span, count in self.counts.items()}

    def cdf_interval(self, level: float = 0.95) -> dict[Any, tuple[float, float]]:
        """The interval of the point's own fraction, extended to the published one, which may have been averaged with
        its neighbours and then has their noise too."""
        check_level(level)
        out = {}
        for point, fraction in self.cdf.items():
            low, high = (0.0, 1.0) if fraction is None else self._raw[point].interval(level)
            out[point] = (low, high) if fraction is None else (min(fraction, low), max(fraction, high))
        return out


def increasing(values: Sequence[float]) -> list[float]:
    """The nearest non-decreasing sequence (pool adjacent violators).

    >>> increasing([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, size), (last, one) = pools[-2], pools[-1]
            pools[-2:] = [((mean * size + last * one) / (size + one), size + one)]
    return [mean for mean, size in pools for _ in range(size)]
