"""A specification as a store keeps it: as a file has it, to open it again, and in words, to compare it with another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..errors import InputError
from .specification import LIMITS, Specification


def written(spec: Specification) -> dict[str, Any] | None:
    """What `Specification.from_dict` makes the same of, but for the columns, which are kept apart; None where a
    statistic is not one that files know."""
    statistics = {name: statistic.spec() for name, statistic in spec.statistics.items()}
    for name, weight in spec.weights.items():
        if weight != spec.statistics[name].weight:
            statistics[name]["weight"] = weight
    data = {**_limits(spec), "schema": spec.schema.spec(), "statistics": statistics}
    data |= {"rounds": spec.rounds.spec()} if spec.rounds.spec() else {}
    return _plain(data) if _same(spec, data) else None


def columns_tables(spec: Specification) -> dict[str, dict[str, Any]]:
    """The tables of columns by name: that of the stream, and those of its sources."""
    return {"columns": spec.columns.spec(), **{f"sources.{name}": own["columns"] for name, own in spec.sources.items()}}


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(data))
    return plain


def _same(spec: Specification, data: Mapping[str, Any]) -> bool:
    """Whether the tables make the same specification after a journey through JSON."""
    try:
        other = Specification.from_dict(_plain(data))
    except (InputError, TypeError, NotImplementedError):
        return False
    same = other.whole_digest == spec.whole_digest and other.shares == spec.shares
    return same and other.rounds == spec.rounds


def _limits(spec: Specification) -> dict[str, Any]:
    return {key: value for key in LIMITS if (value := getattr(spec, key)) is not None}


def columns_written(spec: Specification) -> dict[str, Any]:
    """The roles of columns as a store keeps them: apart, since they may change; nothing where nothing was said."""
    columns = {"columns": spec.columns.spec()} if spec.columns.given else {}
    return columns | ({"sources": dict(spec.sources)} if spec.sources else {})


def described(spec: Specification) -> dict[str, Any]:
    """Everything that may not change, by name; equal for equal specifications."""
    parts = _limits(spec)
    parts |= {f"rounds.{name}": value for name, value in spec.rounds.spec().items()}
    parts |= {f"schema.{name}": field for name, field in spec.schema.spec().items()}
    parts |= {"schema": list(spec.schema.fields), "statistics": list(spec.statistics)}
    parts |= {f"statistics.{name}": statistic.spec(digest=True) for name, statistic in spec.statistics.items()}
    parts |= {f"weight of {name}": float(weight) for name, weight in spec.weights.items()}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parts, order="deterministic", enc_hook=str))
    return plain


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "in the store") -> Iterator[str]:
    """What is not the same, in words, one line for each.

    >>> list(differences({"epsilon": 1.0}, {"epsilon": 2.0, "window": 7}))
    ['epsilon: 1.0 in the store, 2.0 given', 'window: nothing in the store, 7 given']
    """
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name, 'nothing')} {where}, {new.get(name, 'nothing')} given"
