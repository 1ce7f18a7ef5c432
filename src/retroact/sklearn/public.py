"""Transformers that learn nothing from records, and a pipeline that allows no others.

**Privacy.** Both are functions of one row and of public parameters; `fit` learns the number and names of columns.
**Retroactivity.** The numbers of a row depend on no other row and not on how rows are batched: all sums are over
integers that floats hold exactly, so an estimator that follows gets the same integers for the same record.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_any_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import F64, I64
from ..checks import integer
from ..errors import InputError
from .base import Forgotten, RetroactiveEstimator
from .public_columns import limits

STEPS, TURN, FINE = 12, 1 << 36, 1 << 12
"""A column has 2^12 steps on either side of its middle, a turn 2^36; the table of cosines divides it into 2^12."""
EXACT = 1 << 53
LARGEST_SEED = (1 << 64) - 1


class _Public(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    bounds: Any

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number and names of columns, and nothing else."""
        X = validate_data(self, X, dtype=np.float64)
        _limits(self.bounds, self.n_features_in_)
        return self

    def _scaled(self, X: Any) -> F64:
        """Rows with each column clipped to its bounds and moved to [-1, 1]."""
        check_is_fitted(self, "n_features_in_")
        points = validate_data(self, X, dtype=np.float64, reset=False)
        lower, upper = _limits(self.bounds, self.n_features_in_)
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        scaled: F64 = np.clip((np.clip(points, lower, upper) - middle) / half, -1.0, 1.0)
        return scaled


class PublicScaler(OneToOneFeatureMixin, _Public):  # type: ignore[misc]
    """Columns clipped to declared bounds and scaled to [-1, 1]. A scaler fitted on records leaks and remembers them.

    ``bounds`` are two numbers for all columns, or two lists with one number for each.

    >>> PublicScaler(bounds=([0, 10], [4, 30])).fit_transform([[1, 20], [9, 25]])
    array([[-0.5,  0. ],
           [ 1. ,  0.5]])
    """

    def __init__(self, bounds: Any = None) -> None:
        self.bounds = bounds

    def transform(self, X: Any) -> F64:
        return self._scaled(X)


class PublicFourier(ClassNamePrefixFeaturesOutMixin, _Public):  # type: ignore[misc]
    """Random Fourier features of a Gaussian kernel, drawn from a public seed: rows of length at most 1.

    Columns are scaled to [-1, 1] by their ``bounds`` first; ``gamma`` is that of scikit-learn's `RBFSampler` on these.
    There are ``n_components`` waves, with a cosine and a sine each. Use ``radius=1`` in the estimator that follows.

    >>> features = PublicFourier(bounds=(0, 1), n_components=50, seed=7).fit_transform([[0.1, 0.9], [0.2, 0.8]])
    >>> features.shape, bool((features**2).sum(axis=1).max() <= 1)
    ((2, 100), True)
    """

    def __init__(self, bounds: Any = None, *, n_components: int = 100, gamma: float = 1.0, seed: int = 0) -> None:
        self.bounds = bounds
        self.n_components = n_components
        self.gamma = gamma
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number and names of columns, and nothing else."""
        super().fit(X)
        count = integer(self.n_components, "n_components", least=1)
        seed = integer(self.seed, "seed", least=0, most=LARGEST_SEED)
        if not isinstance(self.gamma, int | float) or not 0 < self.gamma < math.inf:
            raise InputError(f"expected a positive number, got {self.gamma!r}", place="gamma")
        waves = _normal(seed, self.n_features_in_ * count).reshape(self.n_features_in_, count)
        self.waves_ = np.rint(waves * math.sqrt(2 * self.gamma) / (2 * math.pi) * (TURN >> STEPS))
        if np.abs(self.waves_).sum(axis=0).max() * (1 << STEPS) >= EXACT:
            raise InputError("expected fewer columns or a smaller number: sums would not be exact", place="gamma")
        return self

    def transform(self, X: Any) -> F64:
        # whole numbers below 2^53, whose products and sums floats hold exactly, in any order
        points = np.rint(self._scaled(X) * (1 << STEPS))
        phases: I64 = (points @ self.waves_).astype(np.int64) % TURN // (TURN // FINE)
        table = _cosines() / math.sqrt(self.n_components)
        return np.concatenate([table[phases], table[(phases - FINE // 4) % FINE]], axis=1)

    @property
    def _n_features_out(self) -> int:
        return 2 * int(self.n_components)


def _limits(bounds: Any, count: int) -> tuple[F64, F64]:
    try:
        lower, upper = np.array(limits(bounds, count), dtype=np.float64).T
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"expected numbers, got {bounds!r}", place="bounds") from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise InputError(f"expected finite lower bounds below the upper ones, got {bounds!r}", place="bounds")
    return lower, upper


def _normal(seed: int, count: int) -> F64:
    """Samples of the standard normal distribution that are the same with every version of NumPy."""
    stream = hashlib.shake_256(b"public Fourier features" + seed.to_bytes(8, "little")).digest(8 * count)
    uniform = ((np.frombuffer(stream, "<u8") >> np.uint64(11)).astype(np.float64) + 0.5) / EXACT
    return np.array([*map(NormalDist().inv_cdf, uniform.tolist())])


@lru_cache(1)
def _cosines() -> F64:
    """Of a turn in 2^12 parts, truncated to 30 bits, so that machines agree and no row is longer than 1."""
    return np.array([math.trunc(math.cos(2 * math.pi * k / FINE) * 2**30) / 2**30 for k in range(FINE)])


class PublicPipeline(Pipeline):  # type: ignore[misc]
    """A pipeline in which the last step alone is fitted on records, and can forget them. Steps may be changed; each
    call that takes records refuses those that learn from them."""

    def fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Start over with these records, and publish. Options are those of the last step's `fit`, such as ``ids``."""
        own = {name.removeprefix(f"{self.steps[-1][0]}__"): option for name, option in options.items()}
        with self._through(X, fresh=True) as rows:
            self[-1].fit(rows, y, **own)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        return self.fit(X, y, **options).transform(X)

    def partial_fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        with self._through(X) as rows:
            self[-1].partial_fit(rows, y, **options)
        return self

    def add(self, X: Any, y: Any = None, **options: Any) -> Self:
        with self._through(X) as rows:
            self[-1].add(rows, y, **options)
        return self

    def update(self, X: Any = None, y: Any = None, **options: Any) -> Self:
        with self._through(X) as rows:
            self[-1].update(rows, y, **options)
        return self

    def forget(self, ids: Any = None, *, subject: Any = None) -> Forgotten:
        forgotten: Forgotten = self[-1].forget(ids, subject=subject)
        return forgotten

    def refresh(self) -> Self:
        self[-1].refresh()
        return self

    def withdraw(self) -> Self:
        self[-1].withdraw()
        return self

    def close(self) -> None:
        self[-1].close()

    @contextmanager
    def _through(self, X: Any, *, fresh: bool = False) -> Iterator[Any]:
        """Rows for the last step. After an error the steps know as much of columns as before."""
        require_public([step for _, step in self.steps])
        steps = [step for _, step in self.steps[:-1] if step not in ("passthrough", None)]
        before = [dict(vars(step)) for step in steps]
        try:
            for step in steps if X is not None else ():
                known = hasattr(step, "n_features_in_") and not fresh
                X = step.transform(X) if known else step.fit_transform(X)
            yield X
        except BaseException:
            for step, state in zip(steps, before, strict=True):
                vars(step).clear()
                vars(step).update(state)
            raise


def make_pipeline(*steps: Any) -> PublicPipeline:
    """A pipeline for an estimator of `retroact.sklearn`. Each step before it must learn nothing from records:
    `PublicScaler`, `PublicFourier`, or one that scikit-learn marks as stateless. scikit-learn's own `Pipeline` does not
    check this.

    >>> from sklearn.preprocessing import StandardScaler
    >>> from retroact.sklearn import RetroactiveKMeans
    >>> make_pipeline(StandardScaler(), RetroactiveKMeans(radius=3))
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected steps that learn nothing from records, got StandardScaler - at steps[0]
    """
    require_public(steps)
    return PublicPipeline(make_any_pipeline(*steps).steps)


def require_public(steps: Sequence[Any]) -> None:
    """Refuse steps that learn from records, but for the last one, which forgets them."""
    if not steps or not isinstance(steps[-1], RetroactiveEstimator):
        last = f"{type(steps[-1]).__name__}" if steps else "no step"
        raise InputError(f"expected an estimator of retroact.sklearn at the end, got {last}", place="steps")
    for place, step in enumerate(steps[:-1]):
        if isinstance(step, _Public) or step in ("passthrough", None):
            continue
        if isinstance(step, RetroactiveEstimator) or get_tags(step).requires_fit:
            raise InputError(
                f"expected steps that learn nothing from records, got {type(step).__name__}",
                place=f"steps[{place}]",
                hint="what it learns is neither private nor forgotten; PublicScaler(bounds) scales by declared bounds",
            )
