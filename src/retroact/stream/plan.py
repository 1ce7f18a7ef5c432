"""The expected error of every statistic before anything is released, and the epsilon that wanted errors cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict

from ..checks import number as checked
from ..checks import positive_int
from ..errors import InputError
from ..messages import no_such, plural
from ..noise import Crossfade, Schauder
from ..noise.default_process import Law
from ..outputs.frames import Tabular
from ..outputs.table import Column, Table
from ..privacy import GaussianDP, Guarantee
from ..privacy.budget import LARGEST_EPSILON
from ..schema import Field, Schema
from ..statistics import Statistic
from ..statistics.answer_rows import Kind
from .choosing import LEVEL
from .specification import Specification

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "statistic", "kind", "half_width", "typical_half_width", "simultaneous", "standard_deviation", "typical_deviation",
    "noise", "budget",
)  # fmt: skip

# A horizon is slightly shorter from this part on, and noise clearly smaller up to this part.
NEARLY, CLEARLY = 0.9, 0.95


class Expected(msgspec.Struct, frozen=True):
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
    """95 % of streams stay below this in all rounds at once; None without a horizon."""
    notes: tuple[str, ...] = ()
    """More about it: thresholds, forms, and why they were chosen."""


class Other(msgspec.Struct, frozen=True):
    """The law that was not chosen, and its half-widths in the worst round."""

    law: Law
    half_widths: Mapping[str, float]

    def __str__(self) -> str:
        errors = ", ".join(f"{name} ±{number(width)}" for name, width in self.half_widths.items())
        return f"with {self.law} noise instead, at 95 % in the worst round: {errors}"


@dataclass(frozen=True)
class Plan(Tabular):
    """
    >>> import retroact as ra
    >>> plan = ra.Stream({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=1023).plan()
    >>> round(plan["n"].standard_deviation, 1)
    20.7
    """

    guarantee: Guarantee
    horizon: int | None
    records: int
    rows: tuple[Expected, ...]
    weights: Mapping[str, float]
    law: Law
    other: Other | None = None
    """The other law, if there was a choice."""

    def __getitem__(self, statistic: str) -> Expected:
        rows = {row.statistic: row for row in self.rows}
        if statistic not in rows:
            raise no_such(statistic, rows)
        return rows[statistic]

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
            "law": self.law,
            "other": None if self.other is None else {"law": self.other.law, "half_widths": self.other.half_widths},
            "statistics": [asdict(row) for row in self.rows],
        }

    def _table(self) -> Table:
        """A row for each statistic, with its expected errors."""
        kinds: dict[str, Kind] = dict.fromkeys(("statistic", "kind", "noise", "budget"), "text")
        columns = [Column(name, kinds.get(name, "number")) for name in COLUMNS]
        rows = [[getattr(row, name) for name in COLUMNS] for row in self.rows]
        # an unknown error is an empty cell
        return Table.of_rows(columns, [[None if cell != cell else cell for cell in row] for row in rows])

    def _repr_html_(self) -> str:
        from ..outputs.page import table_fragment

        return table_fragment("Expected errors, before anything is released", self._table(), self.remarks)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the ± 95 % half-width of every statistic, in the worst and in a typical round, with matplotlib."""
        from ..outputs.plots import errors_plotted

        rows = [(row.statistic, row.half_width, row.typical_half_width) for row in self.rows]
        return errors_plotted(rows, ax)

    @property
    def remarks(self) -> list[str]:
        """Notes on the statistics, the other law, and the guarantee."""
        notes = [f"{row.statistic}: {note}" for row in self.rows for note in row.notes]
        notes += [str(self.other)] if self.other and self.other.half_widths else []
        rounds = "no horizon" if self.horizon is None else plural(self.horizon, "round")
        return [*notes, f"{rounds}; means and variances for {plural(self.records, 'record')}", self.guarantee.text]

    def __str__(self) -> str:
        head = ("statistic", "± 95 % (worst)", "± 95 % (typical)", "sd", "± all rounds", "noise", "budget")
        table = [head] + [
            (
                row.statistic,
                number(row.half_width),
                number(row.typical_half_width),
                number(row.standard_deviation),
                number(row.simultaneous),
                row.noise,
                row.budget,
            )
            for row in self.rows
        ]
        widths = [max(len(line[i]) for line in table) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
        ]
        return "\n".join([*lines, *self.remarks])


def plan(specification: Specification, *, records: int | None = None) -> Plan:
    """The expected errors under a budget, and under the other law. Other ``records`` show other errors and choose
    nothing."""
    spec = copy(specification)
    spec.records = spec.records if records is None else positive_int(records, "records")
    rows = tuple(_expect(spec, name) for name in spec.statistics)
    return Plan(spec.guarantee, spec.horizon, spec.records, rows, spec.weights, spec.choice.law, _other(spec))


def _other(spec: Specification) -> Other | None:
    """The law that was not chosen, if it is possible too."""
    for law in spec.laws:
        if law != spec.choice.law:
            try:
                other = spec.replace(law=law)
            except InputError:
                return None
            widths = {name: _expect(other, name).half_width for name in other.statistics}
            return Other(law, {name: width for name, width in widths.items() if spec.statistics[name].interval})
    return None


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
    law: Law | None = None,
) -> Plan:
    """The smallest epsilon that reaches the wanted ``errors``: ± 95 % half-widths in the worst round, one for each
    statistic.

    Pass the plan's ``epsilon``, ``weights`` and ``law`` to the stream.

    >>> import retroact as ra
    >>> wanted = solve({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, errors={"n": 20}, delta=1e-6, horizon=1000)
    >>> round(wanted.epsilon, 1), wanted["n"].half_width <= 20, wanted.law
    (1.7, True, 'gaussian')
    """
    for name in statistics:
        if name not in errors:
            raise InputError("expected a wanted error for every statistic, got none", place=f"errors.{name}")
    for name, error in errors.items():
        if name not in statistics:
            raise InputError(f"expected one of {', '.join(statistics)}, got {name!r}", place="errors")
        checked(error, f"errors.{name}", "a number above 0", above=0, below=math.inf)
    shape: dict[str, Any] = {"delta": delta, "horizon": horizon, "window": window, "records": records, "law": law}
    shape |= {"weights": dict.fromkeys(statistics, 1.0), "late": late}
    spec = Specification(schema, statistics, epsilon=1.0, **shape)
    found = [_solved(spec.replace(law=one), errors) for one in ((law,) if law else spec.laws)]
    affordable = [one for one in found if isinstance(one, Specification)]
    if not affordable:
        cost = min(one for one in found if isinstance(one, float))
        raise InputError(
            f"expected larger errors: these would cost about epsilon = {cost:,.0f}, and at most {LARGEST_EPSILON:,} is "
            "possible",
            place="errors",
        )
    return plan(min(affordable, key=lambda spec: spec.epsilon))


def _solved(spec: Specification, errors: Mapping[str, float]) -> Specification | float:
    """Solve under one law; returns the epsilon that is needed if it is too large. Errors are inversely proportional to
    mu or epsilon, up to the lattice, so a few steps close the gap; if noise is coarse on its lattice, the cheapest step
    that reaches the errors is taken."""
    reached: list[Specification] = []
    for step in range(24):
        now = {name: _expect(spec, name).half_width for name in spec.statistics}
        for name, demand in spec.demands.items():
            if math.isnan(now[name]) or demand.fixed_cost is not None:
                raise InputError(
                    "expected a statistic whose error is known and grows less with its budget", place=f"errors.{name}"
                )
        ratios = {name: _ratio(spec, name, now[name], errors[name]) for name in errors}
        enough = max(ratios.values()) <= 1
        reached += [spec] if enough else []
        if reached and (step >= 8 or (enough and max(ratios.values()) >= 0.999 and min(ratios.values()) > 0.99)):
            break
        # an error that is 0 on its lattice says only that less will do
        epsilon, weights = _rescale(spec, {name: (ratio or 0.5) * 1.0005 for name, ratio in ratios.items()})
        if epsilon > LARGEST_EPSILON and spec.epsilon == LARGEST_EPSILON:
            return epsilon
        spec = spec.replace(epsilon=min(epsilon, LARGEST_EPSILON), weights=weights)
    return min(reached or [spec], key=lambda spec: spec.epsilon)


def _ratio(spec: Specification, name: str, half_width: float, wanted: float) -> float:
    """The factor by which the noise is too large; an error that is not noise stays, whatever the budget."""
    bias = spec.bounds[name].floor(spec.records_of(name))
    if wanted <= bias:
        raise InputError(
            f"expected more than {bias:.4g}, the part of the error that no budget makes smaller (see the plan), got "
            f"{wanted!r}",
            place=f"errors.{name}",
        )
    return (half_width - bias) / (wanted - bias)


def _rescale(spec: Specification, ratios: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The total epsilon, and the weights, that divide the error of each statistic by its ratio."""
    wanted = {
        name: float(share.amount) * ratios[name] ** (1 if share.kind == "pure" else 2)
        for name, share in spec.shares.items()
    }
    pure = math.fsum(amount for name, amount in wanted.items() if spec.shares[name].kind == "pure")
    square = math.fsum(amount for name, amount in wanted.items() if spec.shares[name].kind == "gaussian")
    gaussian = GaussianDP(math.sqrt(square)).epsilon(spec.delta - float(sum(spec.failures.values())))
    weights = {
        name: amount if spec.shares[name].kind == "pure" else amount / square * gaussian
        for name, amount in wanted.items()
    }
    return pure + gaussian, weights


def _expect(spec: Specification, name: str) -> Expected:
    bound, records, limit = spec.bounds[name], spec.records_of(name), spec.releases(name)
    worst, typical = bound.outlook.worst, bound.outlook.typical
    together = None if limit is None else bound.expected_error(worst, records, 1 - (1 - LEVEL) / limit)
    half_width, of_all = (bound.expected_error(worst, many, LEVEL) for many in (records, spec.records))
    share = f"errors for {plural(records, 'record')}: the share of a window, if they come evenly"
    return Expected(
        name,
        bound.statistic.kind,
        bound.method,
        str(spec.measure_of(name)),
        bound.expected_error(worst, records),
        bound.expected_error(typical, records),
        half_width,
        bound.expected_error(typical, records, LEVEL),
        None if together is None or math.isnan(together) else together,
        (*([share] if half_width > of_all else []), *bound.notes(records), *_shorter(spec, name)),
    )


def _shorter(spec: Specification, name: str) -> Iterator[str]:
    """A note if a slightly shorter horizon would err clearly less: at a power of two, noise has one level more."""
    process, releases, grant = spec.bounds[name].process, spec.releases(name), spec.grants[name]
    fewer = 0 if releases is None else (1 << releases.bit_length() - 1) - 1
    if releases is None or type(process) not in (Crossfade, Schauder) or fewer < NEARLY * releases:
        return
    rounds = fewer * grant.every  # one more would have another release
    found = spec.statistics[name].candidates(msgspec.structs.replace(grant, horizon=rounds)).values()
    now, *then = (one.outlook(2, last) for one, last in [(process, releases), *((one, fewer) for one in found)])
    least = min(one.deviation for one in then if one) / now.deviation if now else 1.0
    if grant.share.kind == "gaussian" and least <= CLEARLY:
        yield f"with a horizon of at most {plural(rounds, 'round')} its noise would be {1 - least:.0%} smaller"


def number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
