"""Examples of statistics, for every generic check, the audit of everything, and the docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..schema import Boolean, Category, Field, Integer, Number, Text, Vector

if TYPE_CHECKING:
    from .statistic import Statistic

SCHEMA: Mapping[str, Field] = {
    "amount": Number(-10, 100, step=0.5),
    "country": Category(["DE", "FR", "IT"]),
    "city": Text(),
    "age": Integer(0, 63),
    "member": Boolean(),
    "place": Vector(2, radius=1, step=0.125),
}


@dataclass(frozen=True)
class Example:
    """A statistic for a schema, in a stream with these options (epsilon, delta, horizon, late).

    ``checks`` are arguments of `testing.check_statistic`, where its defaults would show nothing of a few records.
    """

    name: str
    statistic: Statistic
    stream: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Field] = field(default_factory=lambda: SCHEMA)
    checks: Mapping[str, Any] = field(default_factory=dict)
