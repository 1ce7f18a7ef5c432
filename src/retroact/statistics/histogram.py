"""Counts or sums for each bin, of a universe that need not be listed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from msgspec.structs import replace

from ..arrays import F64, I64
from ..checks import positive_int
from ..coins import Coins
from ..errors import InputError
from ..messages import plural
from ..noise import Mechanism, Oblivious, Threshold
from ..noise.threshold import check_failure, tail_quantile, threshold_for
from ..paper_forms import paper_form
from ..schema import Boolean, Integer, Number, Rows, Schema, field_of
from ..schema.field import field_names, one_or_list
from .answer import Answer, Bins, NoisyTotals, Published, with_noise
from .answer_rows import NUMBER, AnswerRows, by_fields
from .bound import At, Totals
from .grant import ONE_COUNT, Demand, Grant, Layout, StreamTerms
from .keys import KeyedBound, Keys
from .statistic import Example, Statistic
from .tally import Labelled, Tally

# More nonempty bins than this are refused rather than run out of memory.
LIMIT = 10_000_000


class Histogram(Statistic):
    """How many surviving records each bin has, or the sum of a field over them. Bins are the values of one field, or
    the tuples of several.

    **Privacy.** A record falls in one bin, so hiding it costs what a count costs (with ``sum``: a count and a sum).
    An undeclared bin is released once its noisy count reaches a threshold: `noise.threshold` has the proof, and says
    why the guarantee is for oblivious streams only, unless ``most_bins`` bounds the bins that ever hold a record
    (``adaptive=True``). With ``sum`` the count decides and the sum is shown. Declared bins (``bins=[...]``, or fields
    that are categories) are all released, without a threshold and also at delta = 0.
    **Retroactivity.** Theorem "histogram": noise is drawn by the name of the bin when needed and never stored. Only
    bins with surviving records are examined, so a bin whose records were all deleted looks like one that never existed.

    >>> Histogram("country", sum="amount")
    Histogram('country', sum='amount')
    """

    kind: ClassVar[str] = "histogram"
    undigested: ClassVar[tuple[str, ...]] = ("weight", "limit")
    theorem: ClassVar[str] = 'Theorem "histogram"; docs/proofs.md, 7'

    def __init__(
        self,
        field: str | Sequence[str],
        *,
        sum: str | None = None,
        bins: Sequence[Any] | None = None,
        adaptive: bool = False,
        most_bins: int | None = None,
        limit: int = LIMIT,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.by = field_names(field, "field")
        self.field = one_or_list(self.by)
        if bins is not None and (isinstance(bins, str | bytes) or not isinstance(bins, Sequence) or not len(bins)):
            raise InputError(f"expected a list of bins, got {bins!r}", place="bins")
        self.sum, self.bins = sum, None if bins is None else list(bins)
        self.most_bins = None if most_bins is None else positive_int(most_bins, "most_bins")
        self.adaptive = adaptive
        self.limit = positive_int(limit, "limit")

    @classmethod
    def examples(cls) -> list[Example]:
        small, shown = {"epsilon": 4.0, "delta": 1e-2}, {"epsilon": 200.0, "deltas": (0.3,), "horizons": (8,)}
        return [
            Example("histogram of declared bins", cls("country")),
            Example("histogram of listed bins", cls("city", bins=["a", ""], sum="amount"), {"delta": 0.0}),
            Example("histogram with a threshold", cls("city"), small, checks=shown),
            Example("histogram of sums", cls("city", sum="amount"), small, checks=shown),
        ]

    def layout(self, schema: Schema) -> Layout:
        keys = Keys(self.by, schema)
        if self.bins is not None:
            encoded = [keys.encode(bin, "bins") for bin in self.bins]
            if len(set(encoded)) != len(encoded):
                raise InputError("expected every bin once", place="bins")
        elif keys.declared and keys.count > self.limit:
            raise InputError(
                f"expected at most {self.limit:,} bins (limit), got {keys.count:,} combinations of categories: list "
                "the bins that are wanted, or take fewer fields",
                place="by",
            )
        elif isinstance(self.noise, Oblivious) and not keys.declared:
            raise InputError("a law of your own has no proven threshold: declare the bins", place="noise")
        if self.adaptive and self.most_bins is None and self.open(schema):
            raise InputError(
                "an adaptive guarantee needs most_bins, a public bound on how many bins ever hold a record",
                place="most_bins",
            )
        if self.sum is None:
            return ONE_COUNT
        field = field_of(schema, self.sum, Number, Integer, Boolean)
        largest = max(1, abs(field.lower), abs(field.upper))
        return Layout((1, largest), Fraction(2), Fraction(2), largest)

    def open(self, schema: Schema) -> bool:
        """Whether its bins are undeclared."""
        return self.bins is None and not Keys(self.by, schema).declared

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.by if self.sum is None else (*self.by, self.sum)

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        whole = super().demand(schema, stream)
        return replace(whole, threshold=self.open(schema), delta=self.open(schema))

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return by_fields(self.by, schema, NUMBER)

    def bind(self, grant: Grant) -> HistogramBound:
        return HistogramBound(self, grant)


class HistogramBound(KeyedBound):
    """``cells`` are those of declared bins, once they are drawn."""

    statistic: Histogram
    cells: Tally | None = None

    def __init__(self, statistic: Histogram, grant: Grant) -> None:
        super().__init__(statistic, grant, Keys(statistic.by, grant.schema))
        self.open = statistic.open(grant.schema)
        unlisted = "bounded" if statistic.adaptive else "unknown"
        self.digest_extras = {"bins": unlisted if self.open else "declared"}
        self._step = 1.0 if statistic.sum is None else float(grant.schema.fields[statistic.sum].step)
        self._charged = (statistic.most_bins or 1) if statistic.adaptive else 1
        """How many bins may fail: one that is fixed in advance, or any."""
        if self.open:
            check_failure(grant.failure, self._charged, grant.releases if grant.live is None else grant.live)

    @property
    def adaptive(self) -> bool:
        return super().adaptive and (self.statistic.adaptive or not self.open)

    @property
    def promises(self) -> tuple[str, ...]:
        if not self.statistic.adaptive or not self.open:
            return ()
        return (f"at most {self.statistic.most_bins:,} bins of {', '.join(self.statistic.by)} ever hold a record",)

    @cached_property
    def threshold(self) -> Threshold | None:
        """Computed on demand: many bounds are made only to be judged."""
        statistic, grant = self.statistic, self.grant
        if not self.open:
            return None
        if statistic.noise == "paper":
            assert grant.releases is not None  # `candidates` refuses the paper's tree without a horizon
            paper = paper_form("PaperThreshold")
            theirs: Threshold = paper.for_noise(self.noise, grant.failure, grant.releases, self._charged)
            return theirs
        # An adversary who chooses the bin after seeing its noise may also choose the window: all releases count.
        live = None if statistic.adaptive or grant.live is None else grant.reach
        return threshold_for(self.noise, grant.failure, grant.releases, live=live, bins=self._charged)

    def _amounts(self, rows: Rows, weights: I64) -> I64:
        if self.statistic.sum is None:
            return weights[:, None]
        return np.stack([weights, weights * rows.columns[self.statistic.sum]], axis=1)

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        return {(label, i): amount for label, amounts in totals.items() for i, amount in enumerate(amounts) if amount}

    def drawn(self, coins: Coins) -> Self:
        mine = copy(self)
        if not self.open:
            listed = self.statistic.bins
            bins = self.keys.all() if listed is None else [self.keys.encode(bin, "bins") for bin in listed]
            ones = np.ones((len(bins), 1), dtype=np.int64)
            mine.cells = self.keys.tally(Labelled(self.keys.columns(bins), ones), coins)
        return mine

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        tally: Tally = totals[0]
        self._check_limits(len(tally))
        shown = tally if self.cells is None else self.cells
        amounts = tally.amounts if self.cells is None else tally.find(shown.words)
        drawn, denominator = noise.sample(at.index, np.stack(shown.words, axis=1))
        noisy = with_noise(amounts, drawn, denominator)
        threshold = None if self.threshold is None else self.threshold.at(at.index)
        places = np.arange(len(noisy))
        if threshold is not None:
            places = np.flatnonzero(noisy[:, 0] >= math.ceil(threshold * denominator))
        # Largest first; ties, which are rare, in the order of their cells.
        places = places[np.argsort(-noisy[places, -1], kind="stable")]
        noisy, labels = noisy[places], tuple(label[places] for label in shown.labels)
        names, step, last, index = self.keys.decode(labels), self._step, noise.size - 1, at.index
        values = [numerator / denominator * step for numerator in noisy[:, -1].tolist()]

        def interval(level: float) -> dict[Any, tuple[float, float]]:
            reach = noise.half_width(index, last, level) * step
            return {name: (value - reach, value + reach) for name, value in zip(names, values, strict=True)}

        def absent(level: float) -> float:
            # A bin with c records is left out when c + Z < tau; Z is symmetric.
            return float(threshold or 0) + noise.half_width(index, 0, 2 * level - 1)

        bins = Bins(
            zip(names, values, strict=True),
            threshold=None if threshold is None else float(threshold),
            absent=None if threshold is None else absent,
        )
        answer = Answer(bins, dict.fromkeys(names, noise.deviation_of(last, index) * step), interval)

        def noisy_bins() -> NoisyTotals:
            cells = zip(*(label.tolist() for label in labels), strict=True)
            rows = zip(cells, noisy.tolist(), strict=True)
            return {(0, cell, place): total for cell, row in rows for place, total in enumerate(row)}

        return Published(answer, tuple(noisy.ravel().tolist()), denominator, noisy_bins)

    def _check_limits(self, bins: int) -> None:
        own = self.statistic
        for limit, name in ((own.limit, "limit"), (own.most_bins if own.adaptive else None, "most_bins")):
            if limit is not None and bins > limit:
                raise InputError(
                    f"expected at most {limit:,} bins with records ({name}), got {bins:,}: narrow them with where=, or "
                    "declare the bins",
                    place=self.grant.place,
                )

    def error(self, deviations: F64, records: int) -> float:
        return float(deviations[-1]) * self._step

    def notes(self, records: int) -> tuple[str, ...]:
        """The threshold, the bound on all bins and rounds at once (remark on accuracy), and the paper's values."""
        own, releases = self.statistic, self.grant.releases
        if self.threshold is None:
            return ()
        if releases is None:
            looked = ", ".join(f"{float(self.threshold.at(r)):,.4g} in release {r:,}" for r in (1, 1023, 2**20 - 1))
            return (f"a bin is released when its noisy count reaches {looked}",)
        epsilon, delta = self.grant.budget
        paper = float(paper_form("PaperThreshold").of(epsilon, delta, releases).at(1))
        noisiest = self.process.outlook(1 if self.noise.share.kind == "pure" else 2, releases)
        judged = {1, releases, *([noisiest.worst] if noisiest else [])}
        worst = max(float(self.threshold.at(release)) for release in judged)
        bins = own.most_bins if own.most_bins and own.most_bins > 1 else max(1, records)
        together = self._simultaneous(releases, bins)
        height = max(1, (releases - 1).bit_length() + 1)
        theirs = 2 * height**2 / float(epsilon) * math.log(height * releases * bins / 0.05)
        every = "the only release" if releases == 1 else f"all {releases:,} releases"
        return (
            f"a bin is released when its noisy count reaches {worst:,.4g} (the paper's threshold: {paper:,.0f})",
            f"95 %: all noisy counts of {plural(bins, 'bin')} are within ±{together:,.4g} in {every} at once "
            f"(the paper's bound: ±{theirs:,.0f})",
        )

    def _simultaneous(self, releases: int, bins: int) -> float:
        rounds = np.arange(1, releases + 1) if releases <= 1 << 13 else np.linspace(1, releases, 1 << 13).astype(int)
        tail = self.noise.tail(int(rounds[int(np.argmax(self.noise.variances_of(0, rounds)))]), 0)
        chance = 0.05 / (releases * bins)
        if tail.gaussian:
            return math.sqrt(tail.variance) * tail_quantile(chance / 2)
        # With many bins and a long horizon, 1 - chance is 1 as a float.
        return tail.half_width(1 - chance) if chance > 1e-12 else tail.proven_reach(chance / 2)
