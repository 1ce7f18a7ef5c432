"""One law for the stream, then one process for each statistic: whichever errs least for the whole specification.

A law is judged by one number: the mean, by weight, of the logarithms of the statistics' 95 % half-widths, each in its
worst round and with the process that serves it best. Only statistics with an interval and with noise of the stream's
own have a say. Where a half-width depends on how many records there are, the specification's ``records`` stands for it.

**Privacy.** The number reads the specification and nothing else, so the choice costs nothing; what it chooses among is
private by itself (`noise.default_process`). **Retroactivity.** The choice is part of the specification from then on: it
is named in the digest and stored with the stream, and opening never chooses again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

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
    found: dict[Law, tuple[Decimal, Grants, dict[str, str]]] = {}
    reason: InputError | None = None
    for law in laws:
        try:
            grants = granted(law)
            judged = {
                # Sorted, so that the sum is the same whatever the order of the statistics.
                name: best(statistics[name], grants[name], records)
                for name in sorted(statistics)
                if len(laws) > 1 and _votes(statistics[name])
            }
        except InputError as error:
            reason = reason or error
            continue
        score = _mean({name: width for name, (_, width) in judged.items()}, weights)
        found[law] = score, grants, {name: process for name, (process, _) in judged.items()}
    if not found:
        assert reason is not None
        raise reason
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
    found: dict[str, float] = {}
    reason: InputError | None = None
    for name in statistic.candidates(grant):
        try:
            bound = statistic.bind(replace(grant, noise=name))
        except InputError as error:
            reason = reason or error  # noise that is too wide for its integers
            continue
        found[name] = rounded_up(bound.expected_error(bound.outlook.worst, records, LEVEL))
    if not found:
        assert reason is not None
        raise reason
    name = min(found, key=found.__getitem__)
    return name, found[name]


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
