"""Kinds from other packages, found through entry points and loaded when a specification names them.

A package declares a statistic in its `pyproject.toml`, under the kind by which specifications name it:

    [project.entry-points."retroact.statistics"]
    covariance = "measures:Covariance"

**Privacy.** Once named, the code of another package runs on the data, and nobody else vouches for its claims: a signed
report says who declared it. A kind that exists already is refused, so no package can stand in for another. The package
and the version that the class states are part of the digest that names coins, so two meanings of the same words never
share noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def load(group: str, kind: str, known: dict[str, type[Any]]) -> None:
    """Load the class that another package declares for a kind, if any; loading adds it to the known ones."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    points = entry_points(group=group)
    for point in points:
        own = known.get(point.name)
        if own is not None and (own.__module__, own.__qualname__) != (point.module, point.attr):
            raise InputError(
                f"expected new kinds from other packages, got {point.name!r} from {point.value}, which "
                f"{own.__module__} has already",
                place=group,
            )
    found = sorted({point.value: point for point in points if point.name == kind}.values(), key=lambda p: p.value)
    if len(found) > 1:
        several = " and ".join(point.value for point in found)
        raise InputError(f"expected one package with the kind {kind!r}, got {several}", place=group)
    if found:
        try:
            _load(found[0], known, group)
        except InputError:
            known.pop(kind, None)  # so that it is refused the next time too
            raise


def _load(point: EntryPoint, known: dict[str, type[Any]], group: str) -> None:
    place = f"{group}.{point.name}"
    try:
        loaded = point.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"expected {point.value} to load, got {reason}", place=place) from error
    if not isinstance(loaded, type) or getattr(loaded, "kind", None) != point.name:
        raise InputError(
            f"expected {point.value} to be a class with kind = {point.name!r}, got {loaded!r}", place=place
        )
    for needed in ("theorem", "version"):
        stated = vars(loaded).get(needed)
        if not isinstance(stated, str) or not stated:
            raise InputError(f"expected {point.value} to state its {needed}, got none", place=place)
    if known.get(point.name) is not loaded:
        raise InputError(f"expected {point.value} to be one of those that {group} is for, got another", place=place)
