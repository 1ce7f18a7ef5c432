"""What a quantile statistic publishes: a dictionary from probability to value, and what else was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..noise import Tail
from .noisy import check_level


class Ranks(dict[float, Any]):
    """A quantile is None where the number of records cannot be told from zero."""

    def __init__(
        self,
        values: Mapping[float, Any],
        *,
        cdf: Mapping[Any, float | None],
        counts: Mapping[tuple[Any, Any], float],
        records: float,
        raw: Mapping[Any, float],
        noise: Mapping[str, Mapping[Any, Tail]],
    ) -> None:
        super().__init__(values)
        self.cdf = dict(cdf)
        """The fraction of records up to each point; monotone."""
        self.counts = dict(counts)
        """The number of records in each range, both ends included."""
        self.records = records
        """The noisy number of all records."""
        self._raw, self._noise = raw, noise

    def counts_interval(self, level: float = 0.95) -> dict[tuple[Any, Any], tuple[float, float]]:
        check_level(level)
        reach = {span: tail.half_width(level) for span, tail in self._noise["counts"].items()}
        return {span: (count - reach[span], count + reach[span]) for span, count in self.counts.items()}

    def cdf_interval(self, level: float = 0.95) -> dict[Any, tuple[float, float]]:
        """|records below - F * records| stays within the noise of both, which bounds F from both sides: around the
        fraction of the point itself, since one that was averaged with noisier neighbours has their noise too."""
        check_level(level)
        out = {}
        for point, fraction in self.cdf.items():
            if fraction is None:
                out[point] = (0.0, 1.0)
                continue
            reach = self._noise["cdf"][point].half_width(level) / self.records
            own = min(1.0, max(0.0, self._raw[point]))
            out[point] = (max(0.0, min(fraction, own - reach)), min(1.0, max(fraction, own + reach)))
        return out

    def to_plain(self) -> dict[str, Any]:
        """Everything, for output; the quantiles alone where nothing else was asked for."""
        quantiles = {str(p): value for p, value in self.items()}
        if not self.cdf and not self.counts:
            return quantiles
        return {
            "quantiles": quantiles,
            "cdf": {str(point): fraction for point, fraction in self.cdf.items()},
            "counts": {f"{first}..{last}": count for (first, last), count in self.counts.items()},
        }


def increasing(values: Sequence[float]) -> list[float]:
    """The nearest sequence that never falls (pool adjacent violators).

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
