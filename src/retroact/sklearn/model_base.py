"""What estimators of models share: declared columns, and the same way for records and for rows to predict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ..errors import InputError
from ..schema import Field, Vector
from ..statistics import Statistic
from ..stream import Release, Specification
from .base import RetroactiveEstimator
from .public_columns import PublicColumns

MODEL, TARGET = "model", "y"


class ModelWarning(UserWarning):
    """A doubtful model: too few records, or features that vary too little for the noise. Judged from noisy numbers."""


class ModelEstimator(RetroactiveEstimator):
    """Rows of X go through declared columns, and predictions through the same map as records."""

    bounds: Any
    radius: Any
    categories: Any
    _warning = ModelWarning

    @abstractmethod
    def _statistic(self, columns: tuple[str, ...]) -> Statistic: ...

    def _targets(self) -> Mapping[str, Field]:
        """The declared field of the target, if there is one."""
        return {}

    def _specification(self) -> Specification:
        return Specification(
            {**self._public.fields, **self._targets()}, {MODEL: self._statistic(tuple(self._public.fields))},
            epsilon=self.epsilon, delta=self.delta, horizon=self.max_releases,
        )  # fmt: skip

    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, Any]:
        rows = validate_data(self, X, dtype=self._kind, reset=reset)
        if reset:
            self._declare()
        return self._public.of(rows)

    @property
    def _kind(self) -> Any:
        """Of the entries of X."""
        return None if self.categories else np.float64

    def _declare(self) -> None:
        named = getattr(self, "feature_names_in_", None)
        names = [f"x{place}" for place in range(self.n_features_in_)] if named is None else named.tolist()
        self._public = PublicColumns(
            names, bounds=self.bounds, radius=self.radius, categories=self.categories, clip=self.clip
        )
        if TARGET in self._public.fields and self._targets():
            raise InputError(f"expected columns of other names: {TARGET} is the target", place="X")

    def _adopt(self, specification: Specification) -> None:
        fields = {name: field for name, field in specification.schema.fields.items() if name != TARGET}
        [first, *_] = fields.values()
        self.n_features_in_ = first.width if isinstance(first, Vector) else len(fields)
        if not isinstance(first, Vector) and [*fields] != [f"x{place}" for place in range(len(fields))]:
            self.feature_names_in_ = np.array([*fields], dtype=object)
        self._declare()

    def _published(self, X: Any) -> dict[str, Any]:
        """Rows to predict, as columns."""
        self._require_published()
        return self._public.of(validate_data(self, X, dtype=self._kind, reset=False))

    def _show(self, release: Release) -> None:
        self.model_ = release.value
        self.n_records_ = release.value.records
