"""Kinds of other packages: found by their entry points, and loaded when a specification names them.

A package declares a statistic in its own `pyproject.toml`, under the kind that files name it by:

    [project.entry-points."retroact.statistics"]
    covariance = "measures:Covariance"

**Privacy.** The code of another package runs with the data once it is named, and what it claims is its own word: a
signed report says who declared it. A kind that there is already is refused, so that no package can stand in for
another. The package and the version that the class states are in the digest that coins are named by, so that two
meanings of the same words never share noise.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .errors import InputError


def load(group: str, kind: str, known: dict[str, type[Any]]) -> None:
    """Load the class that another package declares for a kind, which then is among the known ones; if one does."""
    points = entry_points(group=group)
    for point in points:
        if point.name in known and not _is_from(known[point.name], point):
            raise InputError(
                f"expected new kinds from other packages, got {point.name!r} from {point.value}, which "
                f"{known[point.name].__module__} has already",
                place=group,
            )
    found = sorted({point.value: point for point in points if point.name == kind}.values(), key=lambda p: p.value)
    if len(found) > 1:
        several = " and ".join(point.value for point in found)
        raise InputError(f"expected one package with the kind {kind!r}, got {several}", place=group)
    if found:
        try:
            _check(_loaded(found[0], group), found[0], known, group)
        except InputError:
            known.pop(kind, None)  # it is refused the next time too
            raise


def _loaded(point: EntryPoint, group: str) -> Any:
    try:
        return point.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"expected {point.value} to load, got {reason}", place=f"{group}.{point.name}") from error


def _check(loaded: Any, point: EntryPoint, known: dict[str, type[Any]], group: str) -> None:
    place = f"{group}.{point.name}"
    if not isinstance(loaded, type) or getattr(loaded, "kind", None) != point.name:
        raise InputError(
            f"expected {point.value} to be a class with kind = {point.name!r}, got {loaded!r}", place=place
        )
    for needed in ("theorem", "version"):
        if not isinstance(vars(loaded).get(needed), str) or not vars(loaded)[needed]:
            raise InputError(f"expected {point.value} to state its {needed}, got none", place=place)
    if known.get(point.name) is not loaded:
        raise InputError(f"expected {point.value} to be one of those that {group} is for, got another", place=place)


def _is_from(known: type[Any], point: EntryPoint) -> bool:
    return (known.__module__, known.__qualname__) == (point.module, point.attr)
