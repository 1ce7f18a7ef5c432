"""diffprivlib estimators as one-shot algorithms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..schema import Boolean, Integer, Number, Rows, Schema, Vector
from .base import SUBSTITUTION, Contract
from .columns import columns_of, known_field
from .unkeyed import Unkeyed, optional

Read = Sequence[str] | Callable[[Any], Any]
# Estimators that are not known to spend more than they say.
KEEPING = ("StandardScaler", "PCA", "LogisticRegression")
# Enough for any estimator to be fitted when it is checked.
TRIAL = 40


class Diffprivlib(Unkeyed):
    """A diffprivlib estimator, cloned and fitted to the records: ``fields`` are the columns of its input, ``target``
    the labels. ``read`` names the fitted attributes to publish (a dict), or is a function of the fitted estimator.

    **Privacy.** The estimator's epsilon (and delta), for one record in the place of another: diffprivlib takes the
    number of records as public, so samples must have a fixed size. It also takes as public which labels there are. The
    contract covers what it perturbs, such as ``mean_`` or ``coef_``, and not all that it keeps, such as ``n_iter_``.
    Bounds that it would take from the data are an error. So is a ``random_state``, which would draw the same noise in
    every run. Version 0.6.6 spends over its epsilon in most estimators when one record takes the place of another, so
    only `KEEPING` are taken: in ``KMeans``, ``DecisionTreeClassifier`` and ``GaussianNB`` such a record changes two
    clusters, leaves or classes, of which one is paid for; ``RandomForestClassifier`` deals records out by position,
    and they come sorted; ``LinearRegression`` forgets the upper bounds.
    """

    kind: ClassVar[str] = "diffprivlib"

    def __init__(self, estimator: Any, fields: Sequence[str], *, read: Read, target: str | None = None) -> None:
        optional("diffprivlib", "diffprivlib")
        name = type(estimator).__name__
        if not type(estimator).__module__.startswith("diffprivlib."):
            raise InputError(f"expected a diffprivlib estimator, got {name}", place="estimator")
        if name not in KEEPING:
            known = ", ".join(KEEPING)
            raise InputError(
                f"expected an estimator that keeps to its epsilon ({known}), got {name}", place="estimator"
            )
        if isinstance(fields, str) or not fields or not all(isinstance(field, str) for field in fields):
            raise InputError(f"expected a list of fields, got {fields!r}", place="fields")
        if isinstance(read, str) or not (callable(read) or (read and all(isinstance(each, str) for each in read))):
            raise InputError(f"expected names of fitted attributes or a function, got {read!r}", place="read")
        parameters = estimator.get_params()
        if parameters.get("random_state") is not None:
            raise InputError(
                "expected no random_state, got one: every run would draw the same noise", place="estimator"
            )
        self.estimator, self.fields, self.target = estimator, tuple(fields), target
        self.read: Read = read if callable(read) else tuple(read)
        epsilon, delta = float(parameters["epsilon"]), float(parameters.get("delta") or 0.0)
        if not 0 < epsilon <= 1000:
            raise InputError(
                f"expected an estimator of epsilon above 0 and up to 1,000, got {epsilon!r}", place="epsilon"
            )
        super().__init__(Contract(Fraction(epsilon), Fraction(delta), SUBSTITUTION), name)

    def arguments(self) -> dict[str, Any]:
        read = getattr(self.read, "__name__", "read") if callable(self.read) else list(self.read)
        told = {"name": self.name, "fields": list(self.fields), "read": read}
        rest = {
            key: repr(value)
            for key, value in sorted(self.estimator.get_params().items())
            if key not in ("accountant", "epsilon", "random_state")
        }
        return {**told, **({"target": self.target} if self.target is not None else {}), "parameters": rest}

    def check(self, schema: Schema, place: str) -> None:
        for name in self.fields:
            field = known_field(schema, name, f"{place}.fields")
            if not isinstance(field, Number | Integer | Boolean | Vector):
                raise InputError(f"expected fields of numbers, got {field}", place=f"{place}.fields")
        if self.target is not None:
            known_field(schema, self.target, f"{place}.target")
        # Fitted to made-up records: what is wrong with the estimator shows before there are any real ones.
        try:
            self._fit(*self._made_up(schema))
        except Exception as error:
            raise InputError(
                f"expected an estimator that can be fitted, got {type(error).__name__}: {error}", place=place
            ) from error

    def reads(self, schema: Schema) -> tuple[str, ...]:
        wanted = {*self.fields, *([] if self.target is None else [self.target])}
        return tuple(name for name in schema.fields if name in wanted)

    def ready(self, rows: Rows) -> None:
        if not rows.count:
            raise InputError("expected at least one record, got none", place=self.name)

    def answer(self, rows: Rows, schema: Schema) -> Any:
        columns = columns_of(rows, schema)
        labels = None if self.target is None else columns[self.target]
        return self._fit(self._matrix([columns[name] for name in self.fields], rows.count), labels)

    def _matrix(self, columns: Sequence[Any], count: int) -> npt.NDArray[np.float64]:
        return np.concatenate([np.asarray(c, dtype=np.float64).reshape(count, -1) for c in columns], axis=1)

    def _made_up(self, schema: Schema) -> tuple[npt.NDArray[np.float64], Any]:
        share = np.linspace(0, 1, TRIAL)
        columns = []
        for turn, name in enumerate(self.fields):
            field = schema.fields[name]
            width = field.width if isinstance(field, Vector) else 1
            reach = float(field.step) / np.sqrt(width)
            columns.append(
                np.roll(field.lower + share * (field.upper - field.lower), turn)[:, None] * reach + np.zeros(width)
            )
        if self.target is None:
            return self._matrix(columns, TRIAL), None
        field = schema.fields[self.target]
        if field.interned:
            return self._matrix(columns, TRIAL), np.array(["a", "b"] * (TRIAL // 2))
        ends = field.decode(field.lower), field.decode(field.upper)
        return self._matrix(columns, TRIAL), np.array([ends[i % 2] for i in range(TRIAL)])

    def _fit(self, inputs: npt.NDArray[np.float64], labels: Any) -> Any:
        clone = optional("sklearn.base", "diffprivlib").clone
        leak = optional("diffprivlib.utils", "diffprivlib").PrivacyLeakWarning
        fitted = clone(self.estimator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", leak)
            if labels is None:
                fitted.fit(inputs)
            else:
                fitted.fit(inputs, np.asarray(labels))
        if callable(self.read):
            return self.read(fitted)
        return {name: _plain(getattr(fitted, name)) for name in self.read}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
