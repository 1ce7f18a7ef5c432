"""Classifiers that forget, as scikit-learn users know them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..arrays import F64, AnyArray
from ..coins import Key
from ..errors import InputError
from ..schema import Category, Field
from ..statistics import Statistic
from ..statistics.models import CategoricalNB, Classifier, NearestMean
from ..statistics.models.feature_map import DEFAULT_MOST
from ..stream import Specification
from .model_base import TARGET, ModelEstimator


class _Classifier(ClassifierMixin, ModelEstimator):  # type: ignore[misc]
    classes: Any
    knots: Any
    _kept: ClassVar = ("n_features_in_", "feature_names_in_", "classes_")
    _called: ClassVar = {"horizon": "max_releases", "target": "classes"}

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, *, ids: Any = None, subjects: Any = None) -> Self:
        """As for every estimator; ``classes``, if given, must be those that were declared."""
        if classes is not None and _sorted(classes).tolist() != self._declared(y).tolist():
            raise InputError(f"expected the declared classes, got {classes!r}", place="classes")
        return super().partial_fit(X, y, ids=ids, subjects=subjects)

    def predict(self, X: Any) -> AnyArray:
        """The class of each row."""
        columns = self._published(X)
        return np.asarray(self.classes_[self.model_.scores(columns).argmax(axis=1)])

    def _targets(self) -> Mapping[str, Field]:
        return {TARGET: Category([str(label) for label in self.classes_.tolist()])}

    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, Any]:
        X, y = validate_data(self, X, y, dtype=self._kind, reset=reset)
        check_classification_targets(y)
        if reset:
            self.classes_ = self._declared(y)
            self._declare()
        return {**self._public.of(X), TARGET: [str(label) for label in self._known(y).tolist()]}

    def _declared(self, y: Any) -> AnyArray:
        """The declared classes, sorted; those of the records would reveal them."""
        if self.classes is None:
            text = "expected the classes, declared: those of the records would reveal them"
            raise InputError(text, place="classes")
        found = _sorted(self.classes)
        if len(found) < 2:
            raise InputError(f"expected at least two classes, got {self.classes!r}", place="classes")
        return found

    def _known(self, y: Any) -> AnyArray:
        """The labels as declared; others are refused."""
        places = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
        strange = np.flatnonzero(self.classes_[places] != y)
        if len(strange):
            label = y[strange[0]]
            raise InputError(
                f"expected one of the declared classes {', '.join(map(str, self.classes_))}, got {label}",
                place=TARGET,
                row=int(strange[0]) + 1,
            )
        return np.asarray(self.classes_[places])

    def _adopt(self, specification: Specification) -> None:
        self.classes_ = self._declared(None)
        super()._adopt(specification)


def _sorted(classes: Any) -> AnyArray:
    try:
        return np.unique(np.asarray([*classes] if isinstance(classes, Set) else classes))
    except TypeError:
        raise InputError(f"expected classes of one type, got {classes!r}", place="classes") from None


class _Probable(_Classifier):
    def predict_proba(self, X: Any) -> F64:
        """(rows, classes)."""
        columns = self._published(X)
        found: F64 = self.model_.predict_proba(columns)
        return found


class RetroactiveClassifier(_Probable):
    """Private linear classification that forgets: `retroact.Classifier` for scikit-learn.

    ``classes`` and ``bounds`` of the columns (or a ``radius``) are required and public: labels of records are private
    too, and labels that were not declared are refused. ``method`` is that of `retroact.Classifier`. Everything else is
    as in `RetroactiveRidge`: what publishes and what does not, ids and subjects, ``key``, ``store``, and that pickles
    hold the published model alone.

    >>> random = np.random.default_rng(1)
    >>> X = random.uniform(0, 10, (5000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "right", "left")
    >>> model = RetroactiveClassifier(classes=["left", "right"], bounds=(0, 10), key=1).fit(X, y)
    >>> model.predict([[9, 1], [1, 9]]).tolist()
    ['right', 'left']
    >>> model.forget(range(1000)).unknown
    []
    >>> never = RetroactiveClassifier(classes=["left", "right"], bounds=(0, 10), key=1).fit(X[1000:], y[1000:])
    >>> model.refresh().release_ == never.refresh().release_
    True
    """

    def __init__(
        self,
        *,
        classes: Any = None,
        bounds: Any = None,
        radius: Any = None,
        categories: Any = None,
        knots: int = 0,
        method: Any = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        most: int = DEFAULT_MOST,
        clip: bool = True,
        max_releases: int | None = 63,
        key: Key | int | None = None,
        store: str | Path | None = None,
    ) -> None:
        self._keep(locals())

    def _statistic(self, columns: tuple[str, ...]) -> Statistic:
        return Classifier(columns, TARGET, knots=self.knots, method=self.method, most=self.most)


class RetroactiveNearestMean(_Classifier):
    """Private classification by the nearest mean, for few records or many columns: `retroact.NearestMean` for
    scikit-learn. ``delta`` may be 0. Otherwise as `RetroactiveClassifier`.

    >>> X, y = np.repeat([[1.0, 2.0], [8.0, 3.0]], 500, axis=0), np.repeat([0, 1], 500)
    >>> RetroactiveNearestMean(classes=[0, 1], bounds=(0, 10), key=1).fit(X, y).predict([[2, 2], [7, 3]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        *,
        classes: Any = None,
        bounds: Any = None,
        radius: Any = None,
        categories: Any = None,
        knots: int = 0,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        most: int = DEFAULT_MOST,
        clip: bool = True,
        max_releases: int | None = 63,
        key: Key | int | None = None,
        store: str | Path | None = None,
    ) -> None:
        self._keep(locals())

    def _statistic(self, columns: tuple[str, ...]) -> Statistic:
        return NearestMean(columns, TARGET, knots=self.knots, most=self.most)


class RetroactiveCategoricalNB(_Probable):
    """Private naive Bayes over levels and bins: `retroact.CategoricalNB` for scikit-learn. ``categories`` maps columns
    to their levels; the others are numbers, which need ``bounds`` and fall into ``bins`` of equal width. ``delta`` may
    be 0. Otherwise as `RetroactiveClassifier`.

    >>> X, y = np.repeat([[1.0, 2.0], [8.0, 3.0]], 500, axis=0), np.repeat([0, 1], 500)
    >>> RetroactiveCategoricalNB(classes=[0, 1], bounds=(0, 10), key=1).fit(X, y).predict([[1, 2], [8, 3]]).tolist()
    [0, 1]
    """

    radius = None

    def __init__(
        self,
        *,
        classes: Any = None,
        bounds: Any = None,
        categories: Any = None,
        bins: int = 10,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        clip: bool = True,
        max_releases: int | None = 63,
        key: Key | int | None = None,
        store: str | Path | None = None,
    ) -> None:
        self._keep(locals())

    def _statistic(self, columns: tuple[str, ...]) -> Statistic:
        return CategoricalNB(columns, TARGET, bins=self.bins)
