"""The smoothing compiler: any accurate private algorithm, made marginally approximately retroactive.

Once two histories have united, the truth is the same for both, so a base algorithm that is within E of it gives answers
at most 2E apart. A randomised map with fresh coins in every round, wide enough to cover 2E, hides that difference: in
single answers, and less well in longer blocks of them (theorem "compiler", corollary "marginal").

**Privacy.** That of the base: published answers are a function of its answers and of independent coins. E plays no part
in it. **Retroactivity.** Approximate, and only as good as the statement that the base is within E with probability
1 - beta_0 on every history: see `ApproximateRetroactivity`, and `maps` for what a map must have. A base that knows its
error (`Stateful.error`) is taken at its word, and a smaller error is refused. For any other base, somebody else must
have proved an error. `FlippancyTracker` has none for streams in general: it is accurate where a round brings one
update, and can be off by any amount where rounds bring many.

Statistics that a stream can publish do not need this: a linear statistic is exactly retroactive, with less noise than
its base alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from ..checks import number
from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Update
from ..messages import mismatch
from ..noise.process import check_horizon
from ..params import words
from ..privacy import Guarantee
from ..stateful.base import NOT_RETROACTIVE, Stateful
from .closeness import MARGINALLY_RETROACTIVE, ApproximateRetroactivity, check_block, check_positive, check_probability
from .maps import Calibration, GaussianMap, Map, as_map

# Tolerance for the floats in which a measure is shown.
SHOWN = 1 + 1e-6


@dataclass(frozen=True)
class SmoothedAnswer:
    """The answer of one round, as the map returns it: a number, a tuple of numbers, a value of a domain."""

    round: int
    value: Any

    def encode(self) -> bytes:
        parts = self.value if isinstance(self.value, tuple) else (self.value,)
        return repr((self.round, *(str(part) for part in parts))).encode()


class Accuracy(NamedTuple):
    """With probability 1 - ``failure``, every answer is within ``error`` of the truth."""

    error: float
    failure: float


class Smoothed:
    """A stateful algorithm whose answers go through a map; made by `smooth`."""

    def __init__(self, base: Stateful, map: Map, retroactivity: ApproximateRetroactivity, key: Key) -> None:
        self.base, self.map, self.error, self.retroactivity = base, map, retroactivity.error, retroactivity
        self._coins = key.coins("smoothed", words(map.spec()))
        self._round = 0
        key.claim()  # last, so that what could not be made leaves its key free

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the base, with its retroactivity."""
        own = self.base.guarantee
        unit = own.unit.replace(NOT_RETROACTIVE, MARGINALLY_RETROACTIVE)
        if unit == own.unit:
            unit = f"{own.unit} ({MARGINALLY_RETROACTIVE})"
        chance = f" with probability 1 - {self.retroactivity.failure:.3g}" if self.retroactivity.failure else ""
        promise = (
            f"the base is within E = {float(self.error):.6g} of the truth{chance} (retroactivity needs it, not privacy)"
        )
        return replace(own, unit=unit, promises=(*own.promises, promise))

    def accuracy(self, horizon: int, beta: float = 1e-6) -> Accuracy:
        """E + E_K over ``horizon`` rounds, where the map of one round fails with probability beta: it holds with
        probability 1 - (beta_0 + horizon * beta)."""
        check_horizon(horizon)
        check_probability(beta, "beta")
        failure = self.retroactivity.failure + horizon * beta
        return Accuracy(float(self.error) + self.map.error(beta), min(1.0, failure))

    def close(self, updates: Sequence[Update]) -> SmoothedAnswer:
        """The answer of the next round. If the base raises, nothing advances; if the map cannot take its answer, the
        round is over, as it is for the base."""
        answer = self.base.close(updates)
        self._round += 1
        value = self.map.apply(getattr(answer, "value", answer), self._coins.branch("round", self._round))
        return SmoothedAnswer(self._round, value)

    def __repr__(self) -> str:
        return f"Smoothed({type(self.base).__name__}, {self.map!r})"


def smooth(
    stateful: Stateful,
    *,
    failure: float | Fraction,
    error: float | Fraction | None = None,
    alpha: float | Fraction = 1.0,
    beta: float | Fraction = 1e-6,
    map: Map | None = None,
    key: Key | None = None,
    block: int = 1,
    calibration: Calibration = "exact",
    dimension: int = 1,
) -> Smoothed:
    """``stateful``, made marginally approximately retroactive: after two histories have united, any ``block``
    consecutive answers are (alpha, beta + failure)-close.

    ``error`` is E: with probability 1 - ``failure`` every answer of the base is within E of the truth, on every
    history, in the metric of the map. Leave it out if the base knows it (``stateful.error(failure)``); you may give a
    larger one, but not a smaller one. If the base does not know it, E is a promise that nothing checks: if it is too
    small, privacy holds and retroactivity does not, and nothing will show it.

    ``map`` defaults to `GaussianMap(dimension)`. Its coins come from ``key``, by default a fresh one, which must not be
    the key of the base.

    >>> from retroact.compilers.maps import RankMap
    >>> from retroact.ledger.definition import Add
    >>> from retroact.stateful import MedianTracker
    >>> base = MedianTracker(0, 999, 3, epsilon=60, delta=1e-6, records=30_000, key=Key.for_testing(1))
    >>> smoothed = smooth(base, failure=1e-4, alpha=4.0, map=RankMap(0, 999), key=Key.for_testing(2))
    >>> smoothed.error == base.error(1e-4), round(base.error(1e-4))
    (True, 406)
    >>> answer = smoothed.close([Add(value % 1000) for value in range(30_000)])
    >>> answer.round, abs(answer.value - 500) < 200
    (1, True)
    >>> smoothed.retroactivity.alpha(1e-4) <= 4 < smoothed.retroactivity.alpha(1e-4, block=2)
    True
    >>> [round(x, 4) for x in smoothed.accuracy(3, 1e-6)]
    [8815.1827, 0.0001]
    >>> smoothed.guarantee.unit
    'one operation: one addition or one deletion of a record (private, marginally approximately retroactive)'
    """
    if not isinstance(stateful, Stateful):
        raise InputError(_not_stateful(stateful), place="stateful")
    exact_alpha = Fraction(number(alpha, "alpha", "a number above 0 and up to 1,000", above=0, most=1000))
    exact_beta = check_probability(beta, "beta")
    exact_failure = check_probability(failure, "failure", zero=True)
    exact_error, stated = _error(stateful, error, exact_failure)
    length = check_block(block)
    open_map = GaussianMap(dimension, calibration=calibration) if map is None else as_map(map)
    if map is not None and (dimension != 1 or calibration != "exact"):
        raise InputError("expected dimension and calibration as arguments of the map, not of smooth", place="map")
    settled = open_map.at(exact_error, exact_alpha, exact_beta, length)
    close = settled.closeness(2 * exact_error, length)
    if close.delta(float(exact_alpha) * SHOWN) > float(exact_beta) * SHOWN:
        raise InputError(
            f"{settled!r} hides 2E = {float(2 * exact_error):.6g} over {length} answers with alpha = "
            f"{close.epsilon(float(exact_beta)):.4g} at beta = {float(exact_beta):.3g}, more than {float(alpha):g}",
            place="map",
        )
    if key is not None and not isinstance(key, Key):
        raise InputError(f"expected a key, got {type(key).__name__}", place="key")
    drawn = Key.generate() if key is None else key
    promise = ApproximateRetroactivity(exact_error, settled, float(exact_failure), (float(exact_beta), length), stated)
    return Smoothed(stateful, settled, promise, drawn)


def _error(stateful: Stateful, error: float | Fraction | None, failure: Fraction) -> tuple[Fraction, str]:
    """E, and who states it: the base, or (empty) the caller."""
    name, known = type(stateful).__name__, stateful.error(float(failure))
    if known is None:
        if error is None:
            raise InputError(f"expected E, since {name} does not know its own error, got none", place="error")
        return check_positive(error, "error"), ""
    if not known < math.inf:
        raise InputError(
            f"expected a probability at which {name} is accurate, got {float(failure):g}: it promises nothing there",
            place="failure",
        )
    own = check_positive(known, "error")
    given = own if error is None else check_positive(error, "error")
    if given < own:
        least = f"at least {float(own):.6g}, the error of {name} with probability 1 - {float(failure):g}"
        raise mismatch(least, error, "error")
    return given, name


def _not_stateful(found: Any) -> str:
    if hasattr(found, "close_round") or getattr(found, "retroactive", False):
        return (
            f"expected a stateful algorithm, got {type(found).__name__}: it is already exactly retroactive, and "
            "smoothing would only add noise"
        )
    return f"expected a stateful algorithm, got {found if isinstance(found, type) else type(found).__name__}"
