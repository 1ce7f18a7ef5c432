"""Regression that forgets, as scikit-learn users know it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from ..arrays import F64
from ..coins import Key
from ..errors import InputError
from ..schema import Field
from ..statistics import Statistic
from ..statistics.models import Ridge
from ..statistics.models.feature_map import DEFAULT_MOST
from ..stream import Release
from .model_base import TARGET, ModelEstimator
from .public_columns import interval


class RetroactiveRidge(RegressorMixin, ModelEstimator):  # type: ignore[misc]
    """Private linear regression that adds records and forgets them again: `retroact.Ridge` for scikit-learn.

    ``bounds`` of the columns (two numbers, or two lists) and ``target_bounds`` are required and public; ``radius``
    instead of bounds is the length that no row exceeds, such as 1 for unit vectors. ``categories`` maps a column, by
    name or position, to its declared levels. Values outside are clipped (``clip=True``) or refused; predictions clip.
    ``knots`` lets the effect of a number bend. ``most`` is the largest number of features, at most 1,024. ``epsilon``
    and ``delta`` are for one record and all ``max_releases`` releases of a stream together.

    `fit`, `partial_fit`, `update` and `refresh` publish a release each; `add` and `forget` publish nothing. Publish by
    a public clock: for chunks, `add` each and `refresh` once. Cross-validation fits a stream for every fold and every
    choice of parameters, and their budgets add up. ``key``: None for a fresh secret in every `fit`, or a `Key`, which
    drives one stream and refuses a second `fit`; a whole number is repeatable and **not private**. ``store``, a folder,
    makes the stream durable, so that people can be forgotten after a restart.

    After a release: ``coef_``, ``intercept_``, ``coef_error_`` (standard errors of the privacy noise only, neither
    shrinkage nor sampling), ``features_`` (what each coefficient belongs to), ``model_``, ``n_records_`` (noisy),
    ``release_``, ``n_releases_``, ``guarantee_``. Pickles and copies hold the published model alone: they predict, and
    cannot go on.

    >>> random = np.random.default_rng(1)
    >>> X = random.uniform(0, 10, (20_000, 2))
    >>> y = 3 * X[:, 0] - X[:, 1] + 20
    >>> model = RetroactiveRidge(bounds=(0, 10), target_bounds=(0, 60), key=1).fit(X, y)
    >>> model.coef_.round().tolist(), round(model.score(X, y), 1)
    ([3.0, -1.0], 1.0)
    >>> model.forget(range(1000)).unknown
    []
    >>> never = RetroactiveRidge(bounds=(0, 10), target_bounds=(0, 60), key=1).fit(X[1000:], y[1000:])
    >>> model.refresh().release_ == never.refresh().release_
    True
    """

    _called: ClassVar = {"horizon": "max_releases", f"{TARGET}": "target_bounds"}

    def __init__(
        self,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
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

    def predict(self, X: Any) -> F64:
        """Clipped to the bounds of the target."""
        columns = self._published(X)
        found: F64 = self.model_.predict(columns)
        return found

    def _statistic(self, columns: tuple[str, ...]) -> Statistic:
        return Ridge(columns, TARGET, knots=self.knots, most=self.most)

    def _targets(self) -> Mapping[str, Field]:
        if self.target_bounds is None:
            raise InputError(
                "expected declared bounds of the target: those of the records would reveal them", place="target_bounds"
            )
        try:
            lower, upper = self.target_bounds
        except (TypeError, ValueError):
            raise InputError(f"expected two numbers, got {self.target_bounds!r}", place="target_bounds") from None
        return {TARGET: interval(lower, upper, clip=self.clip, place="target_bounds")}

    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, Any]:
        X, y = validate_data(self, X, y, dtype=self._kind, reset=reset, y_numeric=True)
        if reset:
            self._declare()
        return {**self._public.of(X), TARGET: np.asarray(y, dtype=np.float64)}

    def _show(self, release: Release) -> None:
        super()._show(release)
        coefficients = self.model_.coefficients
        self.features_ = np.array([*coefficients], dtype=object)
        self.coef_ = np.array([*coefficients.values()])
        self.intercept_ = self.model_.intercept
        self.coef_error_ = np.array([*self.model_.error["coefficients"].values()])
