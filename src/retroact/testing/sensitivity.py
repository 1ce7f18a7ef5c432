"""Brute force: what one operation can do to the true totals, against the noise that is there to hide it."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Key
from ..errors import VerificationError
from ..ledger.model import Add, Delete, Point, Sequence, trajectory
from ..noise import Mechanism, Oblivious, difference
from ..schema import Rows
from ..stream import Specification
from .algorithm import StreamAlgorithm
from .histories import Shape, history, neighbouring_pairs, values_of


def true_totals(spec: Specification, name: str, sequence: Sequence) -> npt.NDArray[np.int64]:
    """The exact totals of every release, from the definitions alone: rounds by coordinates."""
    statistic, window = spec.statistics[name], spec.window_of(name)
    out = []
    for round, data in enumerate(trajectory(sequence), 1):
        if round % statistic.every:
            continue
        live: dict[Point, int] = {p: c for p, c in data.items() if window is None or round - p.stamp < window}
        records = [spec.schema.encode_record(dict(zip(spec.schema.fields, _tuple(p.value), strict=True))) for p in live]
        rows = Rows.from_tuples(spec.schema, [r for r in records if r is not None])
        out.append(statistic.totals(rows, np.array(list(live.values()), dtype=np.int64), spec.schema))
    return np.array(out, dtype=np.int64).reshape(len(out), statistic.layout(spec.schema).size)


def check_oblivious(spec: Specification, random: Random, *, pairs: int = 10) -> None:
    """Under one key all histories get the same noise: what is released minus what is true does not depend on data."""
    horizon = min(spec.horizon or 8, 8)
    shape = Shape(values_of(spec.schema, random), rounds=horizon)
    nothing: Sequence = ((),) * horizon
    expected = _noise(spec, nothing)
    for _ in range(pairs):
        sequence = history(shape, random)
        if _noise(spec, sequence) != expected:
            raise VerificationError(f"oblivious noise: it depends on the data\n  {sequence}")


def _noise(spec: Specification, sequence: Sequence) -> dict[str, list[list[int]]]:
    algorithm = StreamAlgorithm(spec, Key.for_testing(1))
    truth = {name: true_totals(spec, name, sequence).tolist() for name in spec.statistics}
    out: dict[str, list[list[int]]] = {name: [] for name in spec.statistics}
    for updates in sequence:
        for name, release in algorithm.release(updates).items():
            exact = truth[name][len(out[name])]
            out[name].append([n - t * release.denominator for n, t in zip(release.numerators, exact, strict=True)])
    return out


def check_sensitivity(spec: Specification, random: Random, *, pairs: int = 60) -> None:
    """For neighbouring histories the totals differ by one vector on one interval, and shifting the noise by it costs at
    most the share of the statistic (in the exact scales of its laws)."""
    for name, statistic in spec.statistics.items():
        if isinstance(statistic.noise, Oblivious):
            continue  # its cost is declared, not computed
        horizon = min(spec.horizon or 8, 8)
        shape = Shape(values_of(spec.schema, random), rounds=horizon)
        singles = [
            (((),) * horizon, _one(horizon, value, s, e))
            for value in shape.values
            for s in range(1, horizon + 1)
            for e in range(s + 1, horizon + 2)
        ]
        mechanism = spec.mechanism(name, Coins(bytes(32)))
        for one, other in [*singles, *neighbouring_pairs(shape, random, pairs)]:
            moved = true_totals(spec, name, other) - true_totals(spec, name, one)
            cost = _cost(mechanism, statistic.layout(spec.schema).units, moved, f"{name}\n  {one}\n  {other}")
            if cost > spec.shares[name].amount:
                raise VerificationError(
                    f"sensitivity of {name}: hiding one operation costs {float(cost):.6g}, the share is "
                    f"{float(spec.shares[name].amount):.6g}\n  {one}\n  {other}"
                )


def _cost(mechanism: Mechanism, units: tuple[int, ...], moved: npt.NDArray[np.int64], shown: str) -> Fraction:
    rounds = np.flatnonzero(moved.any(axis=1))
    if not rounds.size:
        return Fraction(0)
    first, last = int(rounds[0]), int(rounds[-1])
    vector = moved[first]
    if not (moved[first : last + 1] == vector).all():
        raise VerificationError(f"sensitivity: one operation changed more than one interval of {shown}")
    refinement = mechanism.refinement
    shift = difference(mechanism.process.shift(first), mechanism.process.shift(last + 1))
    cost = Fraction(0)
    for coordinate, amount in enumerate(vector.tolist()):
        if not amount:
            continue
        for (level, _), value in shift.items():
            law = mechanism.law(level, units[coordinate])
            if isinstance(law, DiscreteLaplace):
                cost += abs(amount * value) / law.scale
            elif isinstance(law, DiscreteGaussian):
                cost += Fraction(amount * value * refinement) ** 2 / law.parameter
    return cost


def _one(horizon: int, value: Any, start: int, end: int) -> Sequence:
    """One record from round ``start`` until before round ``end``."""
    rounds: list[tuple[Add | Delete, ...]] = [()] * horizon
    rounds[start - 1] = (Add(value),)
    if end <= horizon:
        rounds[end - 1] = (Delete(value, start),)
    return tuple(rounds)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value)
