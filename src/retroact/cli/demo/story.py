"""What the demo found out: all that its page and its printed lines show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...messages import plural
from ...privacy import Guarantee
from ...stream import Plan


@dataclass(frozen=True)
class Line:
    """One published number of the last round, with the truth that only made-up data may show."""

    label: str
    prefix: str
    digits: int
    value: float | None
    low: float
    high: float
    true: float

    def show(self, value: float | None) -> str:
        return amount(value, self.digits, self.prefix)

    @property
    def interval(self) -> str:
        return f"{self.show(self.low)} to {self.show(self.high)}"

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of a row in a table: label, published, interval, true."""
        return self.label, self.show(self.value), self.interval, self.show(self.true)


@dataclass(frozen=True)
class PublishedCount:
    """The count of orders in one round: published, its 95 % interval, the truth, and what the twin published."""

    round: int
    released: float
    low: float
    high: float
    true: int
    twin: float


@dataclass(frozen=True)
class Story:
    rounds: int
    customer: int
    erased_at: int
    erased: int
    placed: int
    """Orders that the customer ever placed: those erased, and those cancelled earlier."""
    first_order: int
    identical: int
    differing: int
    """Rounds before the erasure in which the twin published something else."""
    points: tuple[PublishedCount, ...]
    close_up: tuple[PublishedCount, ...]
    differences: tuple[tuple[int, float], ...]
    """(round, published count minus that of the twin), wherever it changes."""
    lines: tuple[Line, ...]
    countries: tuple[Line, ...]
    names: Mapping[str, tuple[str, str, int]]
    """How each statistic is written: label, unit before the number, digits after the point."""
    plan: Plan
    guarantee: Guarantee
    subject_guarantee: Guarantee
    version: str

    @property
    def later(self) -> int:
        return self.rounds - self.erased_at + 1

    @property
    def earlier(self) -> int:
        return self.erased_at - 1

    @property
    def cancelled(self) -> int:
        return self.placed - self.erased


def amount(value: float | None, digits: int = 0, prefix: str = "") -> str:
    """
    >>> amount(-1234.5, 1, "€"), amount(-0.2), amount(None)
    ('−€1,234.5', '0', '–')
    """
    if value is None:
        return "–"
    size = f"{abs(value):,.{digits}f}"
    negative = value < 0 and any(digit not in "0,." for digit in size)
    return f"{'−' * negative}{prefix}{size}"


def orders(count: int) -> str:
    return plural(count, "order")


def tiny(value: float) -> str:
    """
    >>> tiny(1e-6), tiny(0.05)
    ('1e-6', '0.05')
    """
    return f"{value:g}".replace("e-0", "e-")
