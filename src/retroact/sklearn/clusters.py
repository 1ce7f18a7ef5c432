"""k-means and k-median as scikit-learn users know them, over a stream with one statistic.

**Privacy.** Nothing is drawn or decided here. Each record is shifted and clipped by itself, with numbers declared in
advance. Each call of `fit`, `partial_fit`, `forget` or `update` closes one round of the stream, and every fitted
attribute is part of that release. Exact values about the records (`labels_`, `inertia_`) are never kept.
**Retroactivity.** That of the stream: all attributes follow from the key, the number of the release and the surviving
records.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import F64, I64
from ..coins import Key
from ..errors import InputError
from ..statistics.clusters import Centres, KMeans, KMedian
from ..stream import Release
from ..stream.door import required
from .fitted_stream import FittedStream, batch_names

NONE = object()
"""No records at all; None as the records is a mistake."""


class ClusterWarning(UserWarning):
    """A doubtful release: a loose radius, few records, or too few centres. Judged from noisy counters."""


class _Withheld:
    """An attribute that scikit-learn's clusterers have and a private one must not."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name}: {self._reason}")


class _Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    _statistic: ClassVar[type[KMeans]]

    labels_ = _Withheld("the labels of the records are not private; predict(X) labels points of your own")
    inertia_ = _Withheld("the exact cost of the records is not private; cost_ is a private estimate, for k-means")
    fit_predict = _Withheld("it is for the labels of the records, which are not private; fit, then predict")

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
    ) -> None:
        self.n_clusters = n_clusters
        self.radius = radius
        self.epsilon = epsilon
        self.delta = delta
        self.center = center
        self.clip = clip
        self.max_releases = max_releases
        self.expected = expected
        self.mode = mode
        self.key = key

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Start over with these records, and publish. Each fit has its own budget: for the same people they add up."""
        return self._publish(X, ids, None, fresh=True)

    def partial_fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Add records, and publish. The first call starts the stream."""
        return self._publish(X, ids, None, fresh=False)

    def forget(self, ids: Any) -> Self:
        """Delete the records with these ids, and publish: as if they had never been there. Unknown ids are ignored."""
        return self._publish(NONE, None, ids, fresh=False)

    def update(self, X: Any = None, *, ids: Any = None, forget: Any = None) -> Self:
        """Add records and forget others in one release; an id in both is forgotten."""
        return self._publish(NONE if X is None else X, ids, forget, fresh=False)

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
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        origin = self.cluster_centers_[0]
        centres = self.cluster_centers_ - origin
        found = Centres(centres, self.cluster_weights_, columns=("x",), objective=self._statistic.objective)
        return found, points - origin

    def _publish(self, X: Any, ids: Any, forget: Any, *, fresh: bool) -> Self:
        """All or nothing. Warnings come last: one that is turned into an error interrupts nothing."""
        before = dict(self.__dict__)
        try:
            notes = self._advance(X, ids, forget, fresh)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        for note in notes:
            warnings.warn(note, stacklevel=3)
        return self

    def _advance(self, X: Any, ids: Any, forget: Any, fresh: bool) -> list[Warning]:
        source = None if fresh else self._current()
        forgotten = [] if forget is None else required(forget, "forget")
        if X is NONE:
            if ids is not None:
                raise InputError("expected the records of these ids, got none", place="X")
            if source is None:
                raise NotFittedError(f"this {type(self).__name__} has no records yet: fit or partial_fit come first")
            release, others = source.publish(None, [], forgotten)
        else:
            points = validate_data(self, X, dtype=np.float64, reset=source is None)
            names = batch_names(ids, len(points), source)
            source = self._started(points, named=ids is not None) if source is None else source
            release, others = source.publish(points, names, forgotten)
        self._source = source
        self._show(release, source.centre)
        return [*map(ClusterWarning, release.value.notes), *others]

    def _started(self, points: F64, *, named: bool) -> FittedStream:
        if self.radius is None:
            raise InputError(
                "expected a radius, the ball that the points lie in: all noise is in proportion to it, and one taken "
                "from the data would reveal them. Declare it from what you know of the columns",
                place="radius",
            )
        return FittedStream.begin(self._statistic, points, named=named, **self.get_params(deep=False))

    def _current(self) -> FittedStream | None:
        source: FittedStream | None = vars(self).get("_source")
        if source is not None:
            source.check_room()
        elif "cluster_centers_" in vars(self):
            raise InputError(
                "this is a copy, with the published model alone: records and key stay with the estimator that was "
                "fitted. Go on with that one, or call fit"
            )
        return source

    def _show(self, release: Release, centre: F64 | None) -> None:
        """The release as attributes, in the caller's coordinates."""
        if centre is not None:
            moved = replace(release.value, centres=release.value.centres + centre, centre=centre, columns=("x",))
            release = replace(release, value=moved)
        found: Centres = release.value
        self.release_ = release
        self.cluster_centers_ = found.centres.copy()
        self.cluster_weights_ = found.weights.copy()
        self.cost_, self.cost_error_ = found.cost, found.cost_error
        self.n_records_ = found.records
        self.n_releases_ = release.round
        self.guarantee_ = release.guarantee.text

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.key is None
        return tags

    def __sklearn_clone__(self) -> Any:
        # A key cannot be copied. It is shared, and refuses a second stream by itself.
        bare = copy.copy(self)
        bare.key = None
        return BaseEstimator.__sklearn_clone__(bare).set_params(key=self.key)

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and the published model, without the key, the stream and its records."""
        state = dict(super().__getstate__())
        state.pop("_source", None)
        if isinstance(state["key"], Key):
            state["key"] = None
        if "release_" in state:
            # The function that computes intervals may refer to anything.
            state["release_"] = replace(state["release_"], _interval=_no_interval)
        return state


class RetroactiveKMeans(_Estimator):
    """Private k-means that adds records and forgets them again: after `forget`, as if they had never been there.

    ``radius`` is required and public: points lie in a ball of this radius around ``center`` (zero if None); points
    outside are moved to its surface (``clip=True``) or refused. Bounds are never taken from the data. ``epsilon`` and
    ``delta`` are for one record and all ``max_releases`` releases of a stream together; each call of `fit`,
    `partial_fit`, `forget` or `update` is one release. Use ``max_releases=1`` for a single `fit`, and None if the
    number is unknown. ``expected`` is a public guess of the number of records; ``mode`` is that of `retroact.KMeans`.
    Changed parameters take effect with the next `fit`.

    ``key`` is the secret from which the noise is derived: None for a fresh one in every `fit`, or a `retroact.Key`,
    which drives one stream only. A whole number makes results repeatable, like a ``random_state``, and is **not
    private**: anybody can remove the noise.

    Records are identified by ``ids``, texts or whole numbers. Without ids they are numbered from 0 in the order of
    arrival, over all calls since the stream started; give ids in every call, or in none. A record with the id of an
    earlier one replaces it. There is no ``sample_weight``: a weight would multiply the influence of one record.

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
    >>> never = RetroactiveKMeans(n_clusters=2, radius=8, epsilon=4, max_releases=4, key=1).fit(points[1000:]).update()
    >>> model.forget(range(1000)).release_ == never.release_
    True
    """

    _statistic = KMeans


class RetroactiveKMedian(_Estimator):
    """Like `RetroactiveKMeans`, with distances instead of their squares: less affected by outliers.

    ``cost_`` and ``cost_error_`` are None: no cost is published.

    >>> random = np.random.default_rng(1)
    >>> model = RetroactiveKMedian(n_clusters=1, radius=8, epsilon=4, max_releases=1, key=1)
    >>> model.fit(random.normal([5, 2], 1, (2000, 2))).cluster_centers_.round().tolist()
    [[5.0, 2.0]]
    """

    _statistic = KMedian


def _no_interval(level: float) -> None:
    return None
