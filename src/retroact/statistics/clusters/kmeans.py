"""k-means and k-median under continual observation (Theorem "kmeans", corollary "kmedian")."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ...arrays import F64, I64
from ...checks import choice, flag, positive_int
from ...coins import Coins
from ...errors import InputError
from ...messages import exact_text
from ...noise import Mechanism, Oblivious
from ...noise.process import some_rounds
from ...paper_forms import paper_form
from ...schema import Rows, Schema
from ..answer import Answer, Published
from ..answer_rows import AnswerRows
from ..bound import At, Bound, Totals
from ..by_round import Pick
from ..grant import Grant, Layout
from ..statistic import Example, Statistic
from .ball import RADIUS, Ball
from .centres import CentreRows, Centres
from .grid import MOST_DIMENSIONS, GridRegions
from .hashed import Hashed
from .lloyd import Objective
from .regions import KEEP, Found, Reader, RegionScheme

Mode = Literal["grid", "hash", "theorem"]

LEVELS, EXPECTED = 3, 10_000
SAMPLED = 1 << 12
# With fewer records for each centre, centres are mostly noise.
FEW = 100


class KMeans(Statistic):
    """At most ``k`` centres with a small sum of squared distances to all surviving records.

    ``fields`` is the name of a vector, or a list of numbers. Points lie in the ball of ``radius`` around ``centre``,
    after each column is divided by its ``scale``. All noise is proportional to the radius: declare a tight one, and let
    ``clip=True`` move the few points outside to its surface (otherwise they are refused). All of these, and
    ``expected``, a guess of how many records will survive, are public: never take them from the data.

    **Privacy.** Property (P1): counters over regions that depend on the key alone, with oblivious noise (`regions`).
    This is a linear query, so one added or deleted record costs what Theorem "linear" says, pure or Gaussian.
    **Retroactivity.** Property (P2): a release is memoryless post-processing of the counters of its round, with coins
    that are the same in all rounds (Lemma "closure"); no start from earlier centres, no matching of labels.

    ``mode``: ``"grid"`` in up to three dimensions, ``"hash"`` above; ``"theorem"`` is the algorithm as the paper
    describes it, for reference. ``levels`` and ``bits`` set how fine the regions of a grid and of a hash are.

    >>> KMeans(["x", "y"], 5, 10)
    KMeans(['x', 'y'], 5, radius=10)
    """

    kind: ClassVar[str] = "kmeans"
    theorem: ClassVar[str] = 'Theorem "kmeans"'
    interval = False
    objective: ClassVar[Objective] = "means"

    def __init__(
        self,
        fields: str | Sequence[str],
        k: int,
        radius: object = None,
        *,
        centre: Sequence[object] | None = None,
        scale: Sequence[object] | None = None,
        clip: bool = False,
        expected: int = EXPECTED,
        mode: Mode | None = None,
        levels: int | None = None,
        bits: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.ball, self.k = Ball(fields, radius, centre, scale), positive_int(k, "k")
        self.clip, self.expected = flag(clip, "clip"), positive_int(expected, "expected")
        self.mode = None if mode is None else choice(mode, get_args(Mode), "mode")
        self.levels = None if levels is None else positive_int(levels, "levels")
        self.bits = None if bits is None else positive_int(bits, "bits")

    @classmethod
    def examples(cls) -> list[Example]:
        stream, checks = {"epsilon": 100.0, "horizon": 16}, {"epsilon": 100.0, "updates": 6}
        return [Example(f"{cls.objective} of clusters", cls("place", 2), stream, checks=checks)]

    def argument(self, name: str) -> Any:
        return self.ball.argument(name) if name in Ball.parameters() else super().argument(name)

    def regions(self, dimension: int, *, bits: int | None = None, instances: int = 1) -> RegionScheme:
        """Before the stream is known, the number of bits is provisional, and there is one instance."""
        mode = self.mode or ("grid" if dimension <= MOST_DIMENSIONS else "hash")
        for name, value, modes in (("levels", self.levels, ("grid", "theorem")), ("bits", self.bits, ("hash",))):
            if value is not None and mode not in modes:
                raise InputError(f"expected none in mode {mode!r}, got {value}", place=name)
        if mode == "hash":
            return Hashed(dimension, self.bits or bits)
        if mode == "theorem":
            arguments = dimension, self.k, instances, self.levels, self.expected, self.objective
            theirs: RegionScheme = paper_form("Theorem")(*arguments)
            return theirs
        return GridRegions(dimension, self.levels or LEVELS)

    def layout(self, schema: Schema) -> Layout:
        if isinstance(self.noise, Oblivious):
            raise InputError("a law of your own is for statistics with a list of coordinates", place="noise")
        return self.regions(self.ball.space(schema).dimension).layout

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.ball.fields

    def answer_rows(self, schema: Schema) -> AnswerRows:
        names, size = self.ball.fields, self.ball.space(schema).dimension
        return CentreRows(names if len(names) == size else [f"{names[0]}_{place}" for place in range(size)])

    def bind(self, grant: Grant) -> KMeansBound:
        return KMeansBound(self, grant)


class KMeansBound(Bound):
    """``family`` are its regions; geometry that depends on the key is there after `drawn`."""

    statistic: KMeans

    def __init__(self, statistic: KMeans, grant: Grant) -> None:
        self.space = statistic.ball.space(grant.schema)
        dimension, process = self.space.dimension, statistic.process(grant)
        family, resolved = statistic.regions(dimension), dict(grant.resolved)
        if isinstance(family, Hashed) and statistic.bits is None and not resolved:
            noise = family.layout.mechanism(process, grant.share)
            deviation = math.sqrt(float(noise.variances_of(noise.size - 1, _sampled(grant)).mean()))
            resolved = {"bits": Hashed.best_bits(dimension, statistic.k, statistic.expected, deviation)}
        instances = family.most_instances(grant.releases, statistic.objective)
        self.family = statistic.regions(dimension, instances=instances, **resolved)
        super().__init__(statistic, grant, layout=self.family.layout, process=process)
        self.refuses, self.resolved = not statistic.clip, resolved
        self.digest_extras = {
            **self.family.shape,
            "units": list(map(str, self.layout.units)),
            "norms": [str(self.layout.norm1), str(self.layout.norm2_squared)],
        }

    def drawn(self, coins: Coins) -> Self:
        mine = copy.copy(self)
        mine.family = self.family.drawn(coins)
        return mine

    def _refuse(self, rows: Rows) -> None:
        """Refuses points outside the ball."""
        outside = self.space.outside(rows)
        if outside.size:
            raise InputError(
                f"expected a point within {exact_text(self.space.radius)} of the centre, got one beyond it: declare a "
                "larger radius, or clip=True",
                place=", ".join(self.reads),
                row=int(outside[0]) + 1,
            )

    def _gather(self, rows: Rows, weights: I64) -> Totals:
        return self.family.gather(self.space.points(rows), weights)

    def _gather_by(self, rows: Rows, weights: I64, group: I64, count: int) -> Pick:
        return self.family.gather_by(self.space.points(rows), weights, group, count)

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        return self.family.coordinates(totals)

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        reader, own = Reader(noise, at.index), self.statistic
        value = self._value(self.family.cluster(totals[0], reader, own.k, own.objective))
        errors = {"cost": value.cost_error, "weights": value.weight_errors}
        return Published(
            Answer(value, errors, lambda level: None), tuple(reader.counts), reader.denominator, reader.noisy
        )

    def _value(self, found: Found) -> Centres:
        own, space = self.statistic, self.space
        unit = space.unit**2
        means = own.objective == "means"
        order = np.argsort(-found.weights, kind="stable")
        return Centres(
            space.decode(found.centres[order]),
            rounded(found.weights[order]),
            columns=own.ball.fields,
            weight_errors=rounded(found.weight_errors[order]),
            records=found.records,
            cost=float(rounded(found.cost * unit)) if means and found.cost is not None else None,
            cost_error=float(rounded(found.cost_error * unit)) if means and found.cost_error is not None else None,
            objective=own.objective,
            centre=np.array([float(part) for part in space.centre]),
            radius=float(space.radius),
            scale=np.array([float(part) for part in space.scale]),
            notes=tuple(self._warnings(found)),
        )

    def _warnings(self, found: Found) -> Iterator[str]:
        """Warnings, from private counters only, since they are published."""
        k, space, radius = self.statistic.k, self.space, float(self.space.radius)
        if found.length is not None and found.length < self.family.loose * RADIUS:
            near = max(found.length * space.unit, 1e-3 * radius)
            yield (
                f"the radius {radius:g} looks loose: the records are at most about {near:.3g} from the centre (root "
                "mean square), and noise grows with the radius; Distances finds a better one"
            )
        if found.records < FEW * k:
            yield f"about {max(found.records, 0.0):,.0f} records are few for {k} centres: they are mostly noise"
        if len(found.centres) < k:
            yield f"{len(found.centres)} of {k} centres stand out from the noise"

    def error(self, deviations: F64, records: int) -> float:
        """The error of one coordinate of a centre, from noise alone, with records spread evenly over k clusters."""
        k = self.statistic.k
        return self.family.error(deviations, k) / max(1.0, records / k) * self.space.unit

    def notes(self, records: int) -> tuple[str, ...]:
        family, own, noise = self.family, self.statistic, self.noise
        rounds = _sampled(self.grant)
        worst = int(rounds[int(np.argmax(noise.variances_of(family.counts, rounds)))])
        shown = KEEP * noise.deviation_of(family.counts, worst)
        return (
            f"{family.text}; errors: one coordinate of a centre, {records:,} records in {own.k} even clusters",
            f"a region stands out from about {shown:,.0f} records (noisiest release): smaller clusters are not found",
            *family.notes(own.objective),
        )


def _sampled(grant: Grant) -> I64:
    """The releases by which noise is judged."""
    return some_rounds(grant.releases or SAMPLED, SAMPLED)


def rounded(values: npt.ArrayLike) -> F64:
    """Round to nine digits, so that the order of a sum does not show.

    >>> rounded([1234.56789012345, 0.0]).tolist()
    [1234.56789, 0.0]
    """
    given = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.9g}") for value in given.ravel().tolist()]).reshape(given.shape)


class KMedian(KMeans):
    """At most ``k`` centres with a small sum of distances: `KMeans` with distances instead of their squares.

    The same counters, hence the same guarantees (corollary "kmedian"); no cost is published.

    >>> KMedian("place", 3)
    KMedian('place', 3)
    """

    kind: ClassVar[str] = "kmedian"
    theorem: ClassVar[str] = 'Corollary "k-median"'
    objective: ClassVar[Objective] = "medians"
