"""Compiled statistics as they are written in a file, beside all others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ..errors import InputError
from ..oneshot import BlockCDF, InteriorPoint, Median, OneShot, Quantile, QuantilePoints
from ..paper_forms import paper_form
from ..statistics import Statistic
from ..statistics.specification import OPTIONS, TYPES
from ..statistics.specification import statistic_from_spec as plain_statistic
from .gate import Gate
from .window_sample import WindowSample


def _paper(name: str, **arguments: Any) -> OneShot:
    made: OneShot = paper_form(name)(**arguments)
    return made


# For each one-shot algorithm: what makes it, what it must have beside its field, and what else it takes.
ALGORITHMS: dict[str, tuple[Callable[..., OneShot], tuple[str, ...], tuple[str, ...]]] = {
    InteriorPoint.kind: (InteriorPoint, (), ()),
    Median.kind: (Median, (), ()),
    Quantile.kind: (Quantile, ("probability",), ()),
    QuantilePoints.kind: (QuantilePoints, ("probabilities",), ()),
    "treelog": (partial(_paper, "TreeLog"), ("delta",), ("beta", "depth")),
    BlockCDF.kind: (BlockCDF, ("block",), ("delta",)),
}
SAMPLE = ("size", "rate", "persistent", "occupancy", "gate", "accounting")
GATE = ("records", "epsilon", "noise")


def statistic_from_spec(spec: Mapping[str, Any], place: str) -> Statistic:
    """
    >>> statistic_from_spec({"type": "window_sample", "of": {"type": "median", "field": "age"}, "window": 24}, "age")
    WindowSample(of={'type': 'median', 'field': 'age'}, window=24)
    """
    if not isinstance(spec, Mapping) or spec.get("type") != WindowSample.kind:
        if isinstance(spec, Mapping) and not _is_one_of(spec.get("type"), TYPES):
            expected = ", ".join([*TYPES, WindowSample.kind])
            raise InputError(f"expected one of {expected}, got {spec.get('type')!r}", place=f"{place}.type")
        return plain_statistic(spec, place)
    options = [name for name in OPTIONS if name != "noise"]
    _only(spec, ("type", "of", *SAMPLE, *options), place)
    given = {name: spec[name] for name in (*SAMPLE, *options) if name in spec}
    if isinstance(given.get("gate"), Mapping):
        _only(given["gate"], GATE, f"{place}.gate")
        _required(given["gate"], ("records",), f"{place}.gate")
    algorithm = _algorithm(spec.get("of"), f"{place}.of")
    try:
        if isinstance(given.get("gate"), Mapping):
            given["gate"] = Gate(**given["gate"])
        return WindowSample(algorithm, **given)
    except InputError as error:
        raise error.under(place) from None


def _algorithm(spec: Any, place: str) -> OneShot:
    if not isinstance(spec, Mapping) or not _is_one_of(spec.get("type"), ALGORITHMS):
        found = spec.get("type") if isinstance(spec, Mapping) else spec
        raise InputError(f"expected a table with one of the types {', '.join(ALGORITHMS)}, got {found!r}", place=place)
    make, needed, more = ALGORITHMS[spec["type"]]
    _only(spec, ("type", "field", *needed, *more, "epsilon"), place)
    _required(spec, ("field", *needed), place)
    try:
        return make(**{name: value for name, value in spec.items() if name != "type"})
    except InputError as error:
        raise error.under(place) from None


def _is_one_of(kind: Any, known: Collection[str]) -> bool:
    # a table or a list is no key of a dict
    return isinstance(kind, str) and kind in known


def _only(spec: Mapping[str, Any], allowed: tuple[str, ...], place: str) -> None:
    for name in spec:
        if name not in allowed:
            raise InputError(f"expected only {', '.join(allowed)}, got {name!r}", place=f"{place}.{name}")


def _required(spec: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    for name in names:
        if name not in spec:
            raise InputError(f"expected {name}, which is missing", place=f"{place}.{name}")
