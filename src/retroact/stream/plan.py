"""Errors before epsilon: what to expect of every statistic before anything is released, and what wanted errors cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..coins import Coins
from ..compilers import WindowSample, sample_in
from ..compilers.outlook import rank_error, sampling_error
from ..errors import InputError
from ..noise import Mechanism
from ..noise.process import some_rounds
from ..privacy import GaussianDP, Guarantee
from ..schema import Field, Schema
from ..statistics import Statistic
from .specification import Specification

# Rounds times nodes looked at for the worst and the typical error.
LOOKED_AT = 1 << 21
FIRST = 4096


@dataclass(frozen=True)
class Expected:
    """The error of one statistic, in its own unit, from noise alone."""

    statistic: str
    kind: str
    noise: str
    budget: str
    standard_deviation: float
    typical_deviation: float
    half_width: float
    typical_half_width: float
    simultaneous: float | None
    """95 % of streams stay below this in all rounds at once (None without a horizon)."""
    notes: tuple[str, ...] = ()
    """What else is to be known of it: thresholds, forms and why they were chosen."""


@dataclass(frozen=True)
class Plan:
    """
    >>> import retroact as ra
    >>> plan = ra.Stream({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=1023).plan()
    >>> round(plan["n"].standard_deviation, 1)
    22.4
    """

    guarantee: Guarantee
    horizon: int | None
    records: int
    rows: tuple[Expected, ...]
    weights: Mapping[str, float]

    def __getitem__(self, statistic: str) -> Expected:
        return next(row for row in self.rows if row.statistic == statistic)

    @property
    def epsilon(self) -> float:
        return self.guarantee.epsilon

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "horizon": self.horizon,
            "records": self.records,
            "weights": dict(self.weights),
            "statistics": [vars(row) for row in self.rows],
        }

    def __str__(self) -> str:
        head = ("statistic", "± 95 % (worst)", "± 95 % (typical)", "sd", "± all rounds", "noise", "budget")
        table = [head] + [
            (
                row.statistic,
                _number(row.half_width),
                _number(row.typical_half_width),
                _number(row.standard_deviation),
                "–" if row.simultaneous is None else _number(row.simultaneous),
                row.noise,
                row.budget,
            )
            for row in self.rows
        ]
        widths = [max(len(line[i]) for line in table) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
        ]
        rounds = "no horizon" if self.horizon is None else f"{self.horizon:,} rounds"
        notes = [f"{row.statistic}: {note}" for row in self.rows for note in row.notes]
        return "\n".join(
            [*lines, *notes, f"{rounds}; means and variances for {self.records:,} records", f"{self.guarantee.text}"]
        )


def plan(specification: Specification, records: int = 10_000) -> Plan:
    """The expected errors under a budget."""
    rows = tuple(_expect(specification, name, records) for name in specification.statistics)
    return Plan(specification.guarantee, specification.horizon, records, rows, specification.weights)


def solve(
    schema: Mapping[str, Field] | Schema,
    statistics: Mapping[str, Statistic],
    *,
    errors: Mapping[str, float],
    delta: float = 0.0,
    horizon: int | None = None,
    window: int | None = None,
    late: bool = True,
    records: int = 10_000,
) -> Plan:
    """The smallest epsilon that reaches wanted errors: ± 95 % half-widths in the worst round, for every statistic.

    Give the plan's ``epsilon`` and ``weights`` to the stream.

    >>> import retroact as ra
    >>> wanted = solve({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, errors={"n": 20}, delta=1e-6, horizon=1000)
    >>> round(wanted.epsilon, 1), wanted["n"].half_width <= 20
    (2.3, True)
    """
    for name in statistics:
        if name not in errors:
            raise InputError("expected a wanted error for every statistic, got none", place=f"errors.{name}")
    for name, error in errors.items():
        if name not in statistics:
            raise InputError(f"expected one of {', '.join(statistics)}, got {name!r}", place="errors")
        if isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < math.inf:
            raise InputError(f"expected a number above 0, got {error!r}", place=f"errors.{name}")
    spec = Specification(
        schema,
        statistics,
        epsilon=1.0,
        delta=delta,
        horizon=horizon,
        window=window,
        weights=dict.fromkeys(statistics, 1.0),
        late=late,
    )
    # Errors are inversely proportional to mu, or epsilon, up to the lattice: a few steps close the gap.
    for _ in range(8):
        now = plan(spec, records)
        for name, statistic in spec.given.items():
            sample = sample_in(statistic)
            if math.isnan(now[name].half_width) or (sample is not None and sample.of.epsilon is not None):
                raise InputError(
                    "expected a statistic whose error is known and grows less with its budget", place=f"errors.{name}"
                )
        ratios = {name: _ratio(spec, name, now[name].half_width, errors[name], records) for name in statistics}
        if 0.999 <= max(ratios.values()) <= 1 and min(ratios.values()) > 0.99:
            break
        epsilon, weights = _rescale(spec, {name: ratio * 1.0005 for name, ratio in ratios.items()}, delta)
        spec = spec.replace(epsilon=epsilon, weights=weights)
    return now


def _ratio(spec: Specification, name: str, half_width: float, wanted: float, records: int) -> float:
    """By how much the noise is too large; what is not noise stays whatever the budget."""
    bias, sample = spec.statistics[name].bias(spec.settings[name]), sample_in(spec.statistics[name])
    bias += 0.0 if sample is None else sampling_error(sample, records, 0.05)
    if wanted <= bias:
        raise InputError(
            f"expected more than {bias:.4g}, which no budget takes off (see the plan), got {wanted!r}",
            place=f"errors.{name}",
        )
    return (half_width - bias) / (wanted - bias)


def _rescale(spec: Specification, ratios: Mapping[str, float], delta: float) -> tuple[float, dict[str, float]]:
    """What divides the error of every statistic by its ratio: the epsilon of all together, and their weights."""
    wanted = {
        name: float(share.amount) * ratios[name] ** (1 if share.kind == "pure" else 2)
        for name, share in spec.shares.items()
    }
    pure = math.fsum(amount for name, amount in wanted.items() if spec.shares[name].kind == "pure")
    square = math.fsum(amount for name, amount in wanted.items() if spec.shares[name].kind == "gaussian")
    gaussian = GaussianDP(math.sqrt(square)).epsilon(delta - float(sum(spec.failures.values())))
    weights = {
        name: amount if spec.shares[name].kind == "pure" else amount / square * gaussian
        for name, amount in wanted.items()
    }
    return pure + gaussian, weights


def _expect(spec: Specification, name: str, records: int) -> Expected:
    statistic = spec.statistics[name]
    mechanism = spec.mechanism(name, Coins(bytes(32)))
    sample = sample_in(statistic)
    if sample is not None:
        return _sampled(spec, name, sample, mechanism, records)
    rounds = _rounds(spec.releases(name), mechanism.process.terms(np.array([1])).levels.size)
    p = 1 if mechanism.share.kind == "pure" else 2
    variances = mechanism.process.variances(rounds, p)
    # Releases without noise are those that never happen (a lag that reaches back too far).
    rounds, variances = rounds[variances > 0], variances[variances > 0]
    if not rounds.size:
        raise InputError("its lags reach back beyond the horizon: nothing would ever be released", place=name)
    worst = int(rounds[int(np.argmax(variances))])
    typical = int(rounds[int(np.argmin(np.abs(variances - variances.mean())))])
    limit = spec.releases(name)
    return Expected(
        name,
        statistic.kind,
        f"{mechanism.process.name} {'laplace' if p == 1 else 'gaussian'}",
        str(spec.measure_of(name)),
        _error(spec, name, mechanism, worst, records, None),
        _error(spec, name, mechanism, typical, records, None),
        _error(spec, name, mechanism, worst, records, 0.95),
        _error(spec, name, mechanism, typical, records, 0.95),
        None if limit is None else _error(spec, name, mechanism, worst, records, 1 - 0.05 / limit),
        statistic.notes(spec.settings[name], mechanism, records),
    )


def _sampled(spec: Specification, name: str, sample: WindowSample, noise: Mechanism, records: int) -> Expected:
    """In ranks; a sample has no deviation, and the rank error of one run is all there is to say."""
    unknown, reach = math.nan, rank_error(sample, spec.schema, records, 0.05)
    releases = spec.releases(name)
    every = unknown if releases is None else rank_error(sample, spec.schema, records, 0.05 / releases)
    return Expected(
        name,
        spec.statistics[name].kind,
        f"{sample.form} {sample.of.label}",
        str(spec.measure_of(name)),
        unknown,
        unknown,
        reach,
        reach,
        None if math.isnan(every) else every,
        spec.statistics[name].notes(spec.settings[name], noise, records),
    )


def _error(
    spec: Specification, name: str, mechanism: Mechanism, round: int, records: int, level: float | None
) -> float:
    """A standard deviation, or the half-width at a level: the tail of the noisiest coordinate, in the same unit."""
    deviations = np.sqrt(mechanism.variances(round))
    statistic = spec.statistics[name]
    error = statistic.error(deviations, spec.schema, records)
    if level is None:
        return error
    last = mechanism.size - 1
    reach = error * mechanism.half_width(round, last, level) / float(deviations[last])
    return reach + statistic.bias(spec.settings[name])


def _rounds(releases: int | None, nodes: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """All of them, or a sample where they are too many (without a horizon: the first ones)."""
    most = LOOKED_AT // nodes
    return some_rounds(releases or min(most, FIRST), most)


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
