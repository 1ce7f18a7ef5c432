"""Principal components that forget, as scikit-learn users know them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin

from ..arrays import F64
from ..coins import Key
from ..statistics import Statistic
from ..statistics.models import PCA
from ..statistics.models.feature_map import DEFAULT_MOST
from ..stream import Release
from .base import NamesOut
from .model_base import ModelEstimator


class RetroactivePCA(NamesOut, TransformerMixin, ModelEstimator):  # type: ignore[misc]
    """Private principal components that forget: `retroact.PCA` for scikit-learn, of columns scaled from their
    ``bounds`` to [-1, 1] (or by a ``radius``).

    After a release: ``components_``, ``explained_variance_``, ``explained_variance_error_`` (of the privacy noise),
    ``mean_``, ``features_``. Otherwise as `RetroactiveRidge`. Transformed records change with every release: do not
    train another forgetting estimator on them.

    >>> random = np.random.default_rng(1)
    >>> X = random.normal(0, 1, (20_000, 1)) * [3, 1] + random.normal(0, 0.2, (20_000, 2))
    >>> model = RetroactivePCA(n_components=1, bounds=(-10, 10), key=1).fit(X)
    >>> model.components_.round(1).tolist()
    [[0.9, 0.3]]
    """

    def __init__(
        self,
        *,
        n_components: int = 2,
        bounds: Any = None,
        radius: Any = None,
        categories: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        most: int = DEFAULT_MOST,
        clip: bool = True,
        max_releases: int | None = 63,
        key: Key | int | None = None,
        store: str | Path | None = None,
    ) -> None:
        self._keep(locals())

    _called: ClassVar = {"horizon": "max_releases", "k": "n_components"}

    def transform(self, X: Any) -> F64:
        """The coordinates of rows along the components."""
        columns = self._published(X)
        found: F64 = self.model_.transform(columns)
        return found

    def _statistic(self, columns: tuple[str, ...]) -> Statistic:
        return PCA(columns, self.n_components, most=self.most)

    def _show(self, release: Release) -> None:
        super()._show(release)
        self.features_ = np.array(self.model_.feature_names, dtype=object)
        self.components_ = self.model_.components.copy()
        self.explained_variance_ = self.model_.variances.copy()
        self.explained_variance_error_ = np.array(self.model_.error["variances"])
        self.mean_ = self.model_.means.copy()

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
