"""One law for the stream, then one process for each statistic: those with the smallest error over the specification.

A law is scored by one number: the weighted mean of the logarithms of the statistics' 95 % half-widths, each in its
worst round and with its best process. Only statistics that have an interval, and noise of the stream's choosing, count.
If a half-width depends on the number of records, the specification's ``records`` is used.

**Privacy.** The score is computed from the specification alone, so the choice costs nothing; each option is private by
itself (`noise.default_process`). **Retroactivity.** Once made, the choice is part of the specification: it is in the
digest and stored with the stream, and opening a stream never chooses again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from ..errors import InputError
from ..messages import mismatch
from ..noise import Oblivious
from ..noise.default_process import LAWS, Law
from ..noise.tails import rounded_up
from ..statistics import Grant, Statistic

LEVEL = 0.95
# Noise that is 0 with that probability has no logarithm.
LEAST = 1e-300
# Decimals have the same digits on every machine.
EXACT = Context(prec=50)

Grants = Mapping[str, Grant]
Option = TypeVar("Option", bound=str)
Judged = TypeVar("Judged")


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The law of a stream, and the process of each of its statistics by name."""

    law: Law
    noise: dict[str, str]

    @classmethod
    def from_dict(cls, data: Any) -> Choice:
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError:
            raise mismatch("a law and the noise of every statistic", data, "choice") from None


def choose(
    statistics: Mapping[str, Statistic],
    weights: Mapping[str, Fraction],
    granted: Callable[[Law], Grants],
    laws: Sequence[Law],
    records: int,
) -> Choice:
    """``granted`` gives the grants under a law. A law under which a statistic is impossible is left out; if every law
    is, the first reason is raised."""
    # Sorted, so that the score does not depend on the order of the statistics.
    voting = [
        name
        for name in sorted(statistics)
        if len(laws) > 1 and statistics[name].interval and not isinstance(statistics[name].noise, Oblivious)
    ]

    def judged(law: Law) -> tuple[Decimal, Grants, dict[str, str]]:
        grants = granted(law)
        chosen = {name: best(statistics[name], grants[name], records) for name in voting}
        score = _mean({name: width for name, (_, width) in chosen.items()}, weights)
        return score, grants, {name: process for name, (process, _) in chosen.items()}

    found = _possible(laws, judged)
    law = min(found, key=lambda law: (found[law][0], LAWS.index(law)))
    _, grants, noise = found[law]
    rest = {name: best(statistics[name], grants[name], records)[0] for name in statistics if name not in noise}
    return Choice(law, {name: noise.get(name) or rest[name] for name in statistics})


def best(statistic: Statistic, grant: Grant, records: int) -> tuple[str, float]:
    """The process with the smallest half-width in its worst release, by name, and that half-width to 6 digits."""
    preferred = statistic.preferred(grant)
    if preferred is not None:
        return preferred, 0.0

    def width(name: str) -> float:
        bound = statistic.bind(replace(grant, noise=name))  # refuses noise that is too wide for its integers
        return rounded_up(bound.expected_error(bound.outlook.worst, records, LEVEL))

    found = _possible(statistic.candidates(grant), width)
    name = min(found, key=found.__getitem__)
    return name, found[name]


def _possible(options: Iterable[Option], judge: Callable[[Option], Judged]) -> dict[Option, Judged]:
    """The options that are not refused; if all are, the first reason is raised."""
    found: dict[Option, Judged] = {}
    reason: InputError | None = None
    for option in options:
        try:
            found[option] = judge(option)
        except InputError as error:
            reason = reason or error
    if reason is not None and not found:
        raise reason
    return found


def _mean(widths: Mapping[str, float], weights: Mapping[str, Fraction]) -> Decimal:
    """The weighted mean of the logarithms."""
    total, score = sum(weights.values(), Fraction(0)), Decimal(0)
    for name, width in widths.items():
        share = weights[name] / total
        part = EXACT.divide(Decimal(share.numerator), Decimal(share.denominator))
        score = EXACT.fma(part, EXACT.ln(Decimal(repr(max(width, LEAST)))), score)
    return score
