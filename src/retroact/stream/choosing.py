"""One law for the stream, then one process for each statistic: whichever errs least for the whole specification.

A law is judged by one number: the mean, by weight, of the logarithms of the statistics' 95 % half-widths, each in its
worst round and with the process that serves it best. Only statistics with an interval and with noise of the stream's
own have a say. Where a half-width depends on how many records there are, the specification's ``records`` stands for it.

**Privacy.** The number reads the specification and nothing else, so the choice costs nothing; what it chooses among is
private by itself (`noise.default_process`). **Retroactivity.** The choice is part of the specification from then on: it
is named in the digest and stored with the stream, and opening never chooses again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeVar

from ..errors import InputError
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


@dataclass(frozen=True)
class Choice:
    """The law of a stream, and the process of each of its statistics by name."""

    law: Law
    noise: Mapping[str, str]

    @classmethod
    def from_dict(cls, data: Any) -> Choice:
        """As a store has it."""
        if not isinstance(data, Mapping) or set(data) != {"law", "noise"} or not isinstance(data["noise"], Mapping):
            raise InputError(f"expected a law and the noise of every statistic, got {data!r}", place="choice")
        return cls(check_law(data["law"], "choice.law"), dict(data["noise"]))


def check_law(law: Any, place: str = "law") -> Law:
    if law not in LAWS:
        raise InputError(f"expected {' or '.join(LAWS)}, got {law!r}", place=place)
    return law  # type: ignore[no-any-return]


def choose(
    statistics: Mapping[str, Statistic],
    weights: Mapping[str, Fraction],
    granted: Callable[[Law], Grants],
    laws: Sequence[Law],
    records: int,
) -> Choice:
    """``granted`` says what every statistic is given under a law. A law under which some statistic cannot be had is
    left out; if that is all of them, the reason is raised."""

    def judged(law: Law) -> tuple[Decimal, Grants, dict[str, str]]:
        # Sorted, so that the sum is the same whatever the order of the statistics.
        voting = [name for name in sorted(statistics) if len(laws) > 1 and _votes(statistics[name])]
        grants = granted(law)
        chosen = {name: best(statistics[name], grants[name], records) for name in voting}
        score = _mean({name: width for name, (_, width) in chosen.items()}, weights)
        return score, grants, {name: process for name, (process, _) in chosen.items()}

    found = _possible(laws, judged)
    law = min(found, key=lambda law: (found[law][0], LAWS.index(law)))
    _, grants, noise = found[law]
    return Choice(
        law,
        {
            name: noise[name] if name in noise else best(statistic, grants[name], records)[0]
            for name, statistic in statistics.items()
        },
    )


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
    """Without those that are refused; if that is all of them, the first reason is raised."""
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


def _votes(statistic: Statistic) -> bool:
    return statistic.interval and not isinstance(statistic.noise, Oblivious)


def _mean(widths: Mapping[str, float], weights: Mapping[str, Fraction]) -> Decimal:
    """Of the logarithms, by weight."""
    total, score = sum(weights.values(), Fraction(0)), Decimal(0)
    for name, width in widths.items():
        share = weights[name] / total
        part = EXACT.divide(Decimal(share.numerator), Decimal(share.denominator))
        score = EXACT.fma(part, EXACT.ln(Decimal(repr(max(width, LEAST)))), score)
    return score
