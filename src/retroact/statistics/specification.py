"""Statistics as they are written in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from .count import Count
from .group import GroupBy
from .linear import Linear
from .mean import Mean
from .sum import Sum
from .variance import Variance

TYPES: dict[str, type[Linear]] = {kind.kind: kind for kind in (Count, Sum, Mean, Variance)}
OPTIONS = ("where", "window", "every", "noise", "weight", "by")


def statistic_from_spec(spec: Mapping[str, Any], place: str) -> Linear:
    """
    >>> statistic_from_spec({"type": "sum", "field": "amount", "by": "country"}, "revenue")
    GroupBy(by='country', of={'type': 'sum', 'field': 'amount', 'every': 1})
    """
    if not isinstance(spec, Mapping):
        raise InputError(f'expected a table such as {{ type = "count" }}, got {spec!r}', place=place)
    kind = spec.get("type")
    if kind not in TYPES:
        raise InputError(f"expected one of {', '.join(TYPES)}, got {kind!r}", place=f"{place}.type")
    needs_field = kind != "count"
    allowed = ("type", *(("field",) if needs_field else ()), *OPTIONS)
    unknown = [key for key in spec if key not in allowed]
    if unknown:
        raise InputError(f"expected only {', '.join(allowed)}, got {unknown[0]!r}", place=f"{place}.{unknown[0]}")
    if needs_field and not isinstance(spec.get("field"), str):
        raise InputError(f"expected the name of a field, got {spec.get('field')!r}", place=f"{place}.field")
    options = {key: spec[key] for key in OPTIONS if key in spec and key != "by"}
    if "where" in options and not isinstance(options["where"], Mapping):
        raise InputError(f"expected a table of conditions, got {options['where']!r}", place=f"{place}.where")
    try:
        arguments = (spec["field"],) if needs_field else ()
        statistic = TYPES[kind](*arguments, **options)
        return GroupBy(spec["by"], statistic) if "by" in spec else statistic
    except InputError as error:
        raise InputError(error.message, place=f"{place}.{error.place}" if error.place else place) from None
