"""What the release of a model has in common: plain data that predict elsewhere, without any record.

`to_dict` is what a release publishes as JSON; `load_model` reads it. It holds the declared fields, since records to
predict go through the same map as those that trained: clipped to the same bounds, to the same ball, to the same whole
numbers. A version says what the rest means; a version that is not known is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from ...errors import InputError
from ...messages import check_keys, hint, show
from ...schema import Schema
from .feature_map import MOST, USUAL_REACH, FeatureMap, checked_knots
from .plain_parts import number_of, texts_of

VERSION = 1


class Model(ABC):
    """A published model. ``records`` is about how many records it was made of; ``notes`` are warnings, derived from
    noisy numbers alone; ``error`` has the standard errors of its numbers, or is None. What it predicts of records that
    you bring is not published, and not private if they are."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Model]]] = {}
    reach: ClassVar[Fraction] = USUAL_REACH
    """The reach of its `FeatureMap`."""
    inputs: ClassVar[str] = "knots"
    """What else its map needs, besides the fields."""
    keys: ClassVar[tuple[str, ...]]
    """The keys of its plain form, apart from those that every model has."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            cls.kinds[cls.kind] = cls

    def __init__(self, features: Any, records: float, notes: tuple[str, ...] = (), error: Any = None) -> None:
        self.features, self.records, self.notes, self.error = features, float(records), tuple(notes), error

    def to_dict(self) -> dict[str, Any]:
        """The model in the types of JSON."""
        own = {key: _listed(part) for key, part in self._parts().items()}
        shared = {"records": self.records, "error": self.error, "notes": list(self.notes)}
        return {"model": self.kind, "version": VERSION, **self.features.to_plain(), **own, **shared}

    to_plain = to_dict

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """The parts that only this kind of model has, by its `keys`."""

    @classmethod
    @abstractmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: Any, shared: Mapping[str, Any]) -> Self: ...

    @classmethod
    def _mapped(cls, schema: Schema, options: Any) -> Any:
        """Its map of these fields; ``options`` are its `inputs`."""
        return FeatureMap.of(schema, (*schema.fields,), MOST, knots=checked_knots(options), reach=cls.reach)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.features.fields)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(self.features.names)

    def __repr__(self) -> str:
        inputs = ", ".join(self.columns)
        notes = "; ".join(("", *self.notes))
        return f"{type(self).__name__}(of {inputs}, about {self.records:,.0f} records{notes})"


def load_model(data: Any) -> Model:
    """A model from what a release published: its value, or the whole line, as a mapping, JSON text or bytes.

    >>> import retroact as ra
    >>> schema = {"miles": ra.Number(0, 50), "fare": ra.Number(0, 300)}
    >>> stream = ra.Stream(schema, {"fares": ra.Ridge("miles", "fare")}, epsilon=1.0, delta=1e-6, horizon=8,
    ...                    key=ra.Key.for_testing(1))
    >>> stream.add({"miles": [1, 20, 40] * 30_000, "fare": [8, 65, 125] * 30_000})
    1
    >>> line = stream.close_round()["fares"].to_dict()
    >>> ra.load_model(line).predict({"miles": [30]}).round(-1).tolist()
    [90.0]
    """
    if isinstance(data, str | bytes | bytearray):
        try:
            data = msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise InputError(f"expected a model as JSON: {error}", place="model") from None
    if isinstance(data, Mapping) and "model" not in data and isinstance(data.get("value"), Mapping):
        data = data["value"]
    kind = data.get("model") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in Model.kinds:
        known = sorted(Model.kinds)
        expected = f"expected what a release published, with one of {', '.join(known)} as its model"
        raise InputError(f"{expected}, got {show(data if kind is None else kind)}{hint(kind, known)}", place="model")
    if data.get("version") != VERSION:
        raise InputError(f"expected a model of version {VERSION}, got {show(data.get('version'))}", place="version")
    return _loaded(Model.kinds[kind], data)


def _loaded(cls: type[Model], data: Mapping[str, Any]) -> Model:
    needed = ("model", "version", "fields", cls.inputs, *cls.keys, "records", "error", "notes")
    check_keys(data, needed, "", needed)
    schema = Schema.from_spec(data["fields"], place="fields")
    records, notes = number_of(data["records"], "records"), texts_of(data["notes"], "notes")
    try:
        features = cls._mapped(schema, data[cls.inputs])
        return cls._of_parts(data, features, {"records": records, "notes": notes, "error": data["error"]})
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"expected the parts of a {cls.kind} model, got others: {error}", place="model") from None


def _listed(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.tolist()
    return part
