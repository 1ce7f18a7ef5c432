"""What a quantile statistic publishes: a dictionary from probability to value, and what else was asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..noise import Tail
from .noisy import check_level


class Beside(dict[float, Any]):
    """Something for every quantile, with the same for the distribution function and the counts beside it."""

    def __init__(
        self, values: Mapping[float, Any], cdf: Mapping[Any, Any], counts: Mapping[tuple[Any, Any], Any]
    ) -> None:
        super().__init__(values)
        self.cdf, self.counts = dict(cdf), dict(counts)

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


class Ranks(Beside):
    """A quantile is None where the number of records cannot be told from zero.

    ``cdf`` has the fraction of records up to each point, which is monotone; ``counts`` the number of records in each
    range, both ends included; ``records`` the noisy number of all.
    """

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
        super().__init__(values, cdf, counts)
        self.records = records
        self._raw, self._noise = raw, noise

    def errors(self, ranks: Mapping[float, float]) -> Beside:
        """Standard errors: of the quantiles in ranks, of the rest in its own unit."""
        deviations = {
            kind: {key: math.sqrt(tail.variance) for key, tail in tails.items()} for kind, tails in self._noise.items()
        }
        fractions = {
            point: None if fraction is None else deviations["cdf"][point] / self.records
            for point, fraction in self.cdf.items()
        }
        return Beside(ranks, fractions, deviations["counts"])

    def intervals(self, values: Mapping[float, Any], level: float) -> Beside:
        return Beside(values, self.cdf_interval(level), self.counts_interval(level))

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
