"""Models that tell classes apart by scores that are linear in the features, and the rows of their tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...arrays import F64, AnyArray
from ...schema import Boolean, Category, Field
from ..answer_rows import AnswerRows, Row
from .feature_map import LENGTH, FeatureMap
from .model import Model
from .plain_parts import list_of, target_of

PRIORS, OFFSETS = "(prior)", "(intercept)"


class ClassModel(Model):
    """It predicts one of ``classes``, the declared values of the field ``target``."""

    target: str
    target_field: Field

    @property
    def classes(self) -> tuple[Any, ...]:
        return classes_of(self.target_field)

    def predict(self, data: Any) -> AnyArray:
        """The class of each record of a frame, columns, records or an array with the columns in order."""
        kinds = {type(one) for one in self.classes}
        named = np.array(self.classes, dtype=None if len(kinds) == 1 else object)
        return np.asarray(named[self.scores(data).argmax(axis=1)])

    @abstractmethod
    def scores(self, data: Any) -> F64:
        """(records, classes): the largest is that of the class."""

    def _target_plain(self) -> dict[str, Any]:
        return {"target": {"name": self.target, "field": self.target_field.spec()}, "classes": list(self.classes)}


def classes_of(field: Field) -> tuple[Any, ...]:
    return field.values if isinstance(field, Category) else (False, True)


def classes_target(parts: Mapping[str, Any]) -> tuple[str, Field]:
    """The name and the field of the target, from the plain form of a model."""
    name, field = target_of(parts["target"], Category, Boolean)
    list_of(parts["classes"], classes_of(field), "classes")
    return name, field


def probabilities(scores: F64) -> F64:
    """Turn logarithms, known up to a constant, into probabilities.

    >>> probabilities(np.array([[0.0, 0.0], [1000.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def scaled(features: FeatureMap, data: Any) -> F64:
    """Value - middle for each feature of each record, after clipping."""
    return np.asarray(features.read(data) / (LENGTH * features.stretch) * features.scales)


def by_feature(features: FeatureMap, table: F64) -> dict[str, list[float]]:
    """(features, classes) by the names of the features."""
    return dict(zip(features.names, table.tolist(), strict=True))


class ClassRows(AnswerRows):
    """A row for each feature and class; before them one for each class alone.

    >>> value = {"classes": ["a", "b"], "counts": [10.0, 5.0], "means": {"x": [0.5, 1.0]}}
    >>> [row[:2] for row in ClassRows("counts", "(count)", "means").rows(value, None, None)]
    [(('(count)', 'a'), 10.0), (('(count)', 'b'), 5.0), (('x', 'a'), 0.5), (('x', 'b'), 1.0)]
    """

    keys = (("feature", "text"), ("class", "text"))
    signed = True

    def __init__(self, own: str, name: str, table: str) -> None:
        self._own, self._name, self._table = own, name, table

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        for name, numbers in ((self._name, value[self._own]), *value[self._table].items()):
            for one, number in zip(value["classes"], numbers, strict=True):
                yield (name, str(one)), number, None, None, None
