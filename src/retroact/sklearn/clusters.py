"""k-means and k-median as scikit-learn users know them, over a stream with one statistic.

**Privacy.** Each record is shifted and clipped by itself, with numbers declared in advance. Exact values about the
records (`labels_`, `inertia_`) are never kept; the rest is that of every estimator (`base.py`), and so is
**retroactivity.**
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from ..arrays import F64, I64
from ..coins import Key
from ..errors import InputError
from ..schema.numbers import exact_number
from ..statistics.clusters import Centres, KMeans, KMedian
from ..stream import Release, Specification
from .base import NamesOut, RetroactiveEstimator, Withheld
from .public_columns import ball


class ClusterWarning(UserWarning):
    """A doubtful release: a loose radius, few records, or too few centres. Judged from noisy counters."""


class _Clusterer(NamesOut, TransformerMixin, ClusterMixin, RetroactiveEstimator):  # type: ignore[misc]
    _statistic: ClassVar[type[KMeans]]
    _called: ClassVar = {"k": "n_clusters", "horizon": "max_releases"}
    _warning = ClusterWarning

    labels_ = Withheld("the labels of the records are not private; predict(X) labels points of your own")
    inertia_ = Withheld("the exact cost of the records is not private; cost_ is a private estimate, for k-means")
    fit_predict = Withheld("it is for the labels of the records, which are not private; fit, then predict")

    def __init__(
        self,
        *,
        n_clusters: int = 8,
        radius: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        center: Any = None,
        clip: bool = True,
        max_releases: int | None = 64,
        expected: int = 10_000,
        mode: Any = None,
        key: Key | int | None = None,
        store: str | Path | None = None,
    ) -> None:
        self._keep(locals())

    def predict(self, X: Any) -> I64:
        """The index of the nearest centre of each point."""
        found, points = self._around(X)
        return found.predict(points)

    def transform(self, X: Any) -> F64:
        """The distance from each point to each centre."""
        found, points = self._around(X)
        return found.transform(points)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the cost of the points: squared distances for k-means, distances for k-median."""
        found, points = self._around(X)
        return found.score(points)

    def _around(self, X: Any) -> tuple[Centres, F64]:
        """Centres and points relative to the first centre: far from zero, squares would lose digits."""
        self._require_published()
        points = validate_data(self, X, dtype=np.float64, reset=False)
        origin = self.cluster_centers_[0]
        centres = self.cluster_centers_ - origin
        found = Centres(centres, self.cluster_weights_, columns=("x",), objective=self._statistic.objective)
        return found, points - origin

    def _specification(self) -> Specification:
        if self.radius is None:
            raise InputError(
                "expected a radius, the ball that the points lie in: all noise is in proportion to it, and one taken "
                "from the data would reveal them. Declare it from what you know of the columns",
                place="radius",
            )
        field, points = self._field, ball(self.radius, self.n_features_in_, clip=self.clip)
        size = exact_number(self.radius, "radius")
        statistic = self._statistic(
            field, self.n_clusters, size, clip=self.clip, expected=self.expected, mode=self.mode
        )
        return Specification(
            {field: points}, {"clusters": statistic}, epsilon=self.epsilon, delta=self.delta,
            horizon=self.max_releases, late=False,
        )  # fmt: skip

    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, Any]:
        """Points relative to the centre. The difference is rounded the same way on every machine, by less than a step
        if the centre is within 2^36 radii."""
        points = validate_data(self, X, dtype=np.float64, reset=reset)
        if reset:
            self._origin = None if self.center is None else _centre(self.center, self.n_features_in_)
        return {self._field: points if self._origin is None else points - self._origin}

    def _adopt(self, specification: Specification) -> None:
        [field] = specification.schema.fields.values()
        self.n_features_in_ = getattr(field, "dimension", 0)
        self._origin = None if self.center is None else _centre(self.center, self.n_features_in_)

    @property
    def _field(self) -> str:
        """The name of the points, as errors show it."""
        return "x" if self._origin is None else "x - center"

    def _show(self, release: Release) -> None:
        """In the caller's coordinates."""
        if self._origin is not None:
            centres = release.value.centres + self._origin
            moved = replace(release.value, centres=centres, centre=self._origin, columns=("x",))
            self.release_ = release = replace(release, value=moved)
        found: Centres = release.value
        self.cluster_centers_ = found.centres.copy()
        self.cluster_weights_ = found.weights.copy()
        self.cost_, self.cost_error_ = found.cost, found.cost_error
        self.n_records_ = found.records

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


class RetroactiveKMeans(_Clusterer):
    """Private k-means that adds records and forgets them again: after `forget`, as if they had never been there.

    ``radius`` is required and public: points lie in a ball of this radius around ``center`` (zero if None); points
    outside are moved to its surface (``clip=True``) or refused. Bounds are never taken from the data. ``epsilon`` and
    ``delta`` are for one record and all ``max_releases`` releases of a stream together; each call of `fit`,
    `partial_fit`, `update` or `refresh` is one release, while `add` and `forget` publish nothing. Publish by a public
    clock, never because of what came in. Use ``max_releases=1`` for a single `fit`, and None if the number is unknown.
    ``expected`` is a public guess of the number of records; ``mode`` is that of `retroact.KMeans`. Changed parameters
    take effect with the next `fit`.

    ``key`` is the secret from which the noise is derived: None for a fresh one in every `fit`, or a `retroact.Key`,
    which drives one stream only. A whole number makes results repeatable, like a ``random_state``, and is **not
    private**: anybody can remove the noise.

    Records are identified by ``ids``, texts or whole numbers. Without ids they are numbered from 0 in the order of
    arrival, over all calls since the stream started; give ids in every call, or in none. A record with the id of an
    earlier one replaces it. ``subjects`` says whom each record belongs to, for `forget(subject=...)`.
    There is no ``sample_weight``: a weight would multiply the influence of one record.

    ``store``, a folder, makes the stream durable: an estimator with the same parameters and the same store continues it
    after a restart, and can forget what was added before. The key is then in a file next to the folder.

    After fitting: ``cluster_centers_`` (at most ``n_clusters``), ``cluster_weights_`` (the records of each, noisy),
    ``n_records_`` (noisy), ``cost_`` and ``cost_error_`` (a private estimate and its standard error; None if there is
    none, as for k-median), ``release_``, ``n_releases_``, ``guarantee_``, ``n_features_in_``. There are no
    ``labels_`` and no ``inertia_``: they would be exact about the records. `predict`, `transform` and `score` publish
    nothing, and what they return about private points is not private. `ClusterWarning` reports doubtful releases.

    Pickles and copies hold the published model only, never the key or the records: they predict, but cannot continue.

    >>> random = np.random.default_rng(1)
    >>> points = np.concatenate([random.normal([-5, 2], 1, (2000, 2)), random.normal([5, 2], 1, (2000, 2))])
    >>> model = RetroactiveKMeans(n_clusters=2, radius=8, epsilon=4, max_releases=4, key=1)
    >>> sorted(model.fit(points).cluster_centers_.round().tolist())
    [[-5.0, 2.0], [5.0, 2.0]]
    >>> model.cluster_centers_[model.predict([[6, 1]])].round().tolist()
    [[5.0, 2.0]]
    >>> model.forget(range(1000)).unknown
    []
    >>> never = RetroactiveKMeans(n_clusters=2, radius=8, epsilon=4, max_releases=4, key=1).fit(points[1000:])
    >>> model.refresh().release_ == never.refresh().release_
    True
    """

    _statistic = KMeans


class RetroactiveKMedian(_Clusterer):
    """Like `RetroactiveKMeans`, with distances instead of their squares: less affected by outliers.

    ``cost_`` and ``cost_error_`` are None: no cost is published.

    >>> random = np.random.default_rng(1)
    >>> model = RetroactiveKMedian(n_clusters=1, radius=8, epsilon=4, max_releases=1, key=1)
    >>> model.fit(random.normal([5, 2], 1, (2000, 2))).cluster_centers_.round().tolist()
    [[5.0, 2.0]]
    """

    _statistic = KMedian


def _centre(given: Any, dimension: int) -> F64:
    try:
        centre = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        centre = np.zeros(0)
    if centre.shape != (dimension,) or not np.isfinite(centre).all():
        raise InputError(f"expected {dimension} finite numbers, one for each column, got {given!r}", place="center")
    return centre
