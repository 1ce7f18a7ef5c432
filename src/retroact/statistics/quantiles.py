"""Quantiles, the distribution function and range counts of a field, all from one private tree over its values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import F64, I64, U64
from ..errors import InputError
from ..noise import Fresh, Mechanism, Oblivious
from ..noise.default_process import Candidates
from ..schema import Date, Field, Integer, Number, Rows, Schema, Timestamp, field_of
from ..schema.field import field_name, field_names, one_or_list
from ..schema.lattice import offsets
from .answer import Answer, NoisyTotals, Published, by_name
from .answer_rows import AnswerRows, by_fields, kind_of
from .bound import At, Bound, Totals
from .by_round import Pick
from .declared_groups import DeclaredGroups
from .grant import Grant, Layout
from .quantile_answer import QuantileRows, QuantileTable, Ranks
from .statistic import Example, Statistic
from .tally import Tally
from .value_bounds import value_bounds
from .value_tree import NUMBERS, ValueTree, nodes_of

# Half the width of an interval at this level is a standard error.
ONE_DEVIATION = 0.683
# Intervals are computed with the release at these levels; other levels get the next higher one.
LEVELS = (0.5, ONE_DEVIATION, 0.8, 0.9, 0.95, 0.99, 0.999)
EXPONENTIAL = "exponential"
# A stream that runs more mechanisms than this on one record takes the tree without comparing.
MOST = 4096


class Quantiles(Statistic):
    """Quantiles of a field over all surviving records, and at no further cost its distribution function at given points
    (``cdf``) and the number of records in given ranges (``counts``, both ends included). ``by`` gives all of this for
    every declared group of one or more fields.

    **Privacy.** A linear query over the value domain: the number of records, and for every dyadic interval of values
    those in its left half minus those in its right half (Haar). A record with one of 2^b values moves b + 1 of these by
    one each: norm1 = norm2_squared = b + 1, times the noise over rounds. Everything published is post-processing.
    With ``by`` there is a tree for every declared group; a record is in one of them, so the norms are the same.
    **Retroactivity.** Theorem "linear": noise is drawn by the name of the interval when a descent reaches it, and never
    stored.

    Values are monotone in the probability. Intervals hold for one quantile in one round (`value_bounds`); the standard
    error is half the width of the one at 68.3 %, in the unit of the field: days for a date, seconds for a timestamp.

    >>> Quantiles("age", [0.5])
    Quantiles('age', probabilities=[0.5])
    """

    kind: ClassVar[str] = "quantiles"
    theorem: ClassVar[str] = 'Theorem "linear"; docs/proofs.md, 9'
    own_noise: ClassVar[tuple[str, ...]] = (EXPONENTIAL,)

    def __init__(
        self,
        field: str,
        probabilities: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        cdf: Sequence[Any] = (),
        counts: Sequence[Sequence[Any]] = (),
        by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.field = field_name(field)
        self.by = () if by is None else field_names(by, "by")
        self.probabilities, self.cdf = _listed(probabilities, "probabilities"), _listed(cdf, "cdf")
        self.counts = tuple(_listed(ends, "counts") for ends in _listed(counts, "counts"))
        for p in self.probabilities:
            if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
                raise InputError(f"expected probabilities between 0 and 1, got {p!r}", place="probabilities")
        if len(set(self.probabilities)) != len(self.probabilities):
            raise InputError("expected every probability once", place="probabilities")
        if not (self.probabilities or self.cdf or self.counts):
            raise InputError("expected at least one probability, point or range, got none", place="probabilities")
        for ends in self.counts:
            if len(ends) != 2:
                raise InputError(f"expected ranges of two ends each, got {ends!r}", place="counts")

    @classmethod
    def examples(cls) -> list[Example]:
        stream, checks = {"epsilon": 4.0}, {"epsilon": 70.0}
        return [
            Example("quantiles", cls("age", [0.25, 0.5], cdf=[40], counts=[(18, 50)]), stream, checks=checks),
            Example(
                "quantiles drawn afresh",
                cls("age", [0.25, 0.5], noise=EXPONENTIAL),
                {"horizon": 4},
                checks={"horizons": (8,), "pairs": 10},
            ),
            Example("quantiles by member", cls("age", [0.5], by="member"), stream, checks={"epsilon": 40.0}),
        ]

    def argument(self, name: str) -> Any:
        return (one_or_list(self.by) if self.by else None) if name == "by" else super().argument(name)

    def domain(self, schema: Schema) -> Field:
        return field_of(schema, self.field, Number, Integer, Date, Timestamp)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.by, self.field)

    def offsets(self, rows: Rows, schema: Schema) -> U64:
        """The value of each record, counted from the lowest."""
        return offsets(rows.columns[self.field], schema.fields[self.field].lower)

    def layout(self, schema: Schema) -> Layout:
        field = self.domain(schema)
        DeclaredGroups(self.by, schema)
        if isinstance(self.noise, Oblivious):
            raise InputError("a law of your own is for statistics with a list of coordinates", place="noise")
        for point in self.cdf:
            field.encode(point, "cdf")
        for first, last in self.counts:
            if field.encode(first, "counts") > field.encode(last, "counts"):  # type: ignore[operator]
                raise InputError(f"expected a first end up to the last, got {first!r} and {last!r}", place="counts")
        touched = Fraction(_bits(field) + 1)
        return Layout((1,), touched, touched, 1)

    def answer_rows(self, schema: Schema) -> AnswerRows:
        own = QuantileRows(kind_of(self.domain(schema)), cdf=bool(self.cdf), counts=bool(self.counts))
        return by_fields(self.by, schema, own)

    def candidates(self, grant: Grant) -> Candidates:
        """The processes of the tree, and the exponential mechanism, which is fresh in every release."""
        if self.noise == EXPONENTIAL:
            if self.cdf or self.counts or not self.probabilities or grant.reach is None:
                raise InputError(
                    "noise 'exponential' is for probabilities alone, without cdf and counts, and needs a horizon or a "
                    "window",
                    place=f"{grant.place}.noise",
                )
            return {EXPONENTIAL: Fresh(grant.reach)}
        found = super().candidates(grant)
        if self.noise is not None or EXPONENTIAL not in self.own_noise or self.cdf or self.counts:
            return found
        if grant.reach is None or grant.reach * len(self.probabilities) > MOST:
            return found
        return {**found, EXPONENTIAL: Fresh(grant.reach)}

    def bind(self, grant: Grant) -> QuantilesBound:
        if grant.noise == EXPONENTIAL and grant.process is None:
            from .exponential_quantiles import ExponentialBound

            return ExponentialBound(self, grant)
        return QuantilesBound(self, grant)


class QuantilesBound(Bound):
    """Totals are counts by value, or by group and value; a node of a tree is drawn when a descent reaches it."""

    statistic: Quantiles

    def __init__(self, statistic: Quantiles, grant: Grant) -> None:
        super().__init__(statistic, grant)
        self.field = statistic.domain(grant.schema)
        self.bits = _bits(self.field)
        self.groups = DeclaredGroups(statistic.by, grant.schema)

    def _gather(self, rows: Rows, weights: I64) -> Tally:
        return Tally.of(self._words(rows), weights[:, None])

    def _gather_by(self, rows: Rows, weights: I64, group: I64, count: int) -> Pick:
        return Tally.of((group.astype(np.uint64), *self._words(rows)), weights[:, None]).each(count)

    def _words(self, rows: Rows) -> tuple[U64, ...]:
        group = (self.groups.codes(rows.columns).astype(np.uint64),) if self.groups.by else ()
        return (*group, self.statistic.offsets(rows, self.schema))

    def _by_group(self, totals: Tally) -> list[tuple[int, Tally]]:
        """The counts by value in every group, each with the number of the first node of its tree."""
        if not self.groups.by:
            return [(0, totals)]
        part = totals.each(len(self.groups))
        return [(NUMBERS * group, part(group)) for group in range(len(self.groups))]

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        parts = [nodes_of(part, self.bits, first) for first, part in self._by_group(totals)]
        return {node: amount for part in parts for node, amount in part.items()}

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        trees = [ValueTree(part, self.bits, noise, at.index, first) for first, part in self._by_group(totals[0])]
        found = [self._published(tree) for tree in trees]
        if not self.groups.by:
            return found[0]
        answer = by_name({name: one.answer for name, one in zip(self.groups.names, found, strict=True)})
        numerators = tuple(number for one in found for number in one.numerators)
        return Published(answer, numerators, trees[0].denominator, lambda: _joined(tree.noisy() for tree in trees))

    def _published(self, tree: ValueTree) -> Published:
        own, field = self.statistic, self.field
        unknown = not tree.above_zero
        found = [] if unknown else tree.descend([tree.rank(p) for p in own.probabilities])
        last = field.upper - field.lower
        ends = {
            level: [(min(low, at), min(max(high, at), last)) for at, (low, high) in zip(found, pairs, strict=True)]
            for level, pairs in ({} if unknown else value_bounds(tree, own.probabilities, LEVELS)).items()
        }
        widest = [(0, last)] * len(own.probabilities)

        def value(offset: int) -> Any:
            return field.decode(field.lower + min(offset, last))

        values = [None] * len(widest) if unknown else [value(offset) for offset in found]
        ranks = self._ranks(tree, dict(zip(own.probabilities, values, strict=True)), unknown)

        def interval(level: float) -> QuantileTable:
            known = next((ends[at] for at in LEVELS if at >= level and not unknown), widest)
            pairs = [(value(low), value(high)) for low, high in known]
            return ranks.intervals(dict(zip(own.probabilities, pairs, strict=True)), level)

        errors = [None] * len(widest) if unknown else [float((b - a) * field.step / 2) for a, b in ends[ONE_DEVIATION]]
        answer = Answer(ranks, ranks.errors(dict(zip(own.probabilities, errors, strict=True))), interval)
        return Published(answer, (*found, tree.total), tree.denominator, tree.noisy)

    def _ranks(self, tree: ValueTree, values: Mapping[float, Any], unknown: bool) -> Ranks:
        field = self.field

        def offset(value: Any) -> int:
            return int(field.encode(value, "")) - field.lower  # type: ignore[arg-type]

        points = {point: offset(point) for point in self.statistic.cdf}
        spans = {(first, last): (offset(first), offset(last)) for first, last in self.statistic.counts}
        return tree.ranks(values, points, spans, unknown)

    def error(self, deviations: F64, records: int) -> float:
        """The error in ranks, for the median. Below the depth where ``records`` evenly spread records make intervals of
        no more than noise, a descent would move by less than a record."""
        deviation = float(deviations[0])
        depth = min(self.bits, math.log2(max(1.0, records / len(self.groups) / deviation))) if deviation else self.bits
        return deviation * math.sqrt(ValueTree.worst_of(depth, 0.5))

    def notes(self, records: int) -> tuple[str, ...]:
        among = f" in each of {len(self.groups):,} groups" if self.groups.by else ""
        return (f"errors are in ranks (records), over {2**self.bits:,} values{among}",)


def _joined(parts: Iterable[NoisyTotals]) -> NoisyTotals:
    return {where: total for part in parts for where, total in part.items()}


def _listed(values: Sequence[Any], place: str) -> tuple[Any, ...]:
    """Convert to plain Python values, which have one spelling each."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InputError(f"expected a list, got {values!r}", place=place)
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)


def _bits(field: Field) -> int:
    return (field.upper - field.lower).bit_length()
