"""What is published: the answer of a statistic in a round, with its error and its guarantee."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec
import numpy as np

from ..messages import Named, no_such
from ..outputs.shown import Shown
from ..outputs.table import Table, TableForm
from ..privacy import Guarantee
from ..statistics.answer import check_level


@dataclass(frozen=True)
class Release(Shown):
    """A published answer. Releases are equal if their `encode()` is, byte for byte."""

    statistic: str
    round: int
    value: Any
    standard_error: Any
    guarantee: Guarantee = field(repr=False)
    numerators: tuple[int, ...] = field(repr=False)
    denominator: int = field(repr=False)
    _interval: Callable[[float], Any] = field(repr=False)
    _form: TableForm = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("value", "standard_error"):
            object.__setattr__(self, name, _named(getattr(self, name)))

    def interval(self, level: float = 0.95) -> Any:
        """Contains the true value with probability ``level``, for this round alone and over the noise alone."""
        return _named(self._interval(check_level(level)))

    def to_dict(self) -> dict[str, Any]:
        """One line of output, in the types of JSON."""
        return {
            "round": self.round,
            "statistic": self.statistic,
            "value": plain(self.value),
            "standard_error": plain(self.standard_error),
            "interval95": plain(self.interval(0.95)),
        }

    def encode(self) -> bytes:
        """Everything that the noise decides, exactly: equal for equal key, round and surviving data."""
        common = math.gcd(self.denominator, *self.numerators)
        exact = [str(n // common) for n in self.numerators], str(self.denominator // common)
        return msgspec.json.encode([self.round, self.statistic, plain(self.value), plain(self.standard_error), exact])

    def _table(self) -> Table:
        return self._form.table([self.to_dict()])

    def _shown_form(self) -> TableForm:
        return self._form

    def _title(self) -> str:
        return f"{self.statistic}, round {self.round:,}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())


class Applied(msgspec.Struct, frozen=True):
    """What a round did to the surviving data. Exact, so for the operator and never published."""

    added: int
    removed: int
    ignored_deletions: int
    """Deletions, by value or id, that matched nothing."""
    ignored_additions: int
    rejected: int = 0
    """Records of erased subjects, if the stream rejects those."""


class Round(Shown, Mapping[str, Release]):
    """The releases of one round, by the name of the statistic."""

    def __init__(self, number: int, releases: Mapping[str, Release], applied: Applied, form: TableForm) -> None:
        self.number = number
        self.applied = applied
        self._releases, self._form = dict(releases), form

    def __getitem__(self, name: str) -> Release:
        if name not in self._releases:
            raise no_such(name, self._releases)
        return self._releases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._releases)

    def __len__(self) -> int:
        return len(self._releases)

    def _table(self) -> Table:
        return self._form.table(release.to_dict() for release in self._releases.values())

    def _shown_form(self) -> TableForm:
        return self._form

    def _title(self) -> str:
        return f"Round {self.number:,}"

    def encode(self) -> bytes:
        return b"\n".join(release.encode() for release in self._releases.values())

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={release.value!r}" for name, release in self._releases.items())
        return f"Round({self.number}: {inside})"


def _named(value: Any) -> Any:
    """Groups that say which there are."""
    return Named(value) if type(value) is dict else value


def plain(value: Any) -> Any:
    """Convert a value to the types of JSON: arrays become lists, keys become texts."""
    if hasattr(value, "to_plain"):
        return plain(value.to_plain())
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, date):
        return value.isoformat()
    return b64encode(value).decode() if isinstance(value, bytes) else repr(value)


def _key(key: Any) -> str:
    """A text stays, a date or bytes become the text of their value, a tuple becomes a JSON list."""
    if isinstance(key, str):
        return key
    return str(plain(key)) if isinstance(key, date | bytes) else msgspec.json.encode(key).decode()
