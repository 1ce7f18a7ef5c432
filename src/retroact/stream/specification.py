"""A stream before it has a key: schema, statistics, budget, horizon. Whatever can be checked is checked here."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from ..checks import choice as one_of
from ..checks import flag, positive_int
from ..coins import Coins
from ..errors import InputError
from ..messages import Named, check_keys, mismatch, plural
from ..noise import Mechanism, Oblivious
from ..noise.default_process import LAWS, Law
from ..noise.process import check_horizon
from ..params import words
from ..privacy import ApproximateDP, Guarantee, Measure, PureDP, check_budget, compose
from ..privacy.budget import check_weight
from ..schema import Field, Schema
from ..statistics import Statistic
from ..statistics.grant import StreamTerms
from .choosing import Choice, choose, granted
from .columns import Columns, sources_from_spec
from .grid import Grid
from .rounds import Rounds, declared_rounds

# Totals are 64-bit integers, with room for at least this many records.
FEWEST = 1 << 24
LARGEST_TOTAL = 1 << 62
RECORDS = 10_000
# The version of the digests that coin names start with.
DIGEST = 2


class Specification:
    """Checked and immutable; the names of all coins start with its digests.

    >>> import retroact as ra
    >>> spec = Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=10_000)
    >>> spec.choice.law, spec.processes["n"]
    ('gaussian', Crossfade(10000))

    ``records`` is about how many records there will be, for errors that depend on it (a window holds its share of
    them); it is public, and never read from the data.
    ``law`` fixes the law of the noise (laplace or gaussian), which is otherwise the better one; ``choice`` is that of a
    stored stream, so that nothing is chosen again.
    """

    def __init__(
        self,
        schema: Mapping[str, Field] | Schema,
        statistics: Mapping[str, Statistic],
        *,
        epsilon: float,
        delta: float = 0.0,
        horizon: int | None = None,
        window: int | None = None,
        records: int = RECORDS,
        weights: Mapping[str, float] | None = None,
        law: Law | None = None,
        choice: Choice | None = None,
        late: bool = True,
        after_erasure: str = "accept",
        columns: Columns | Mapping[str, Any] | None = None,
        rounds: Rounds | Grid | Mapping[str, Any] | int | None = None,
        sources: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)
        self.epsilon, self.delta = epsilon, delta
        check_budget(epsilon, delta)
        self.columns = Columns.usual() if columns is None else Columns.from_spec(columns)
        self.sources = sources_from_spec(sources or {}, self.columns)
        self.rounds, declared = declared_rounds(rounds)
        self.horizon = declared if horizon is None else check_horizon(horizon)
        if isinstance(rounds, int):
            self.check_rounds(rounds)
        self.window = None if window is None else check_horizon(window, "window")
        self.records = positive_int(records, "records")
        self.law: Law | None = None if law is None else one_of(law, LAWS, "law")
        self.late = flag(late, "late")
        self.after_erasure: str = one_of(after_erasure, ("accept", "reject"), "after_erasure")
        self.statistics = _checked(statistics, self.horizon)
        self.demands = {name: s.demand(self.schema, self.terms(name)) for name, s in self.statistics.items()}
        given = dict(weights or {})
        for name in given:
            if name not in self.statistics:
                raise InputError(f"expected one of {', '.join(self.statistics)}, got {name!r}", place="weights")
        self.weights = {name: s.weight for name, s in self.statistics.items()} | given
        self.exact_weights = {
            name: check_weight(weight, f"weights.{name}" if name in given else f"statistics.{name}.weight")
            for name, weight in self.weights.items()
        }
        self.capacity = self._capacity()
        self.choice = self._choose() if choice is None else self._checked_choice(choice)
        self.grants = granted(self, self.choice.law, self.choice.noise)
        self.shares = {name: grant.share for name, grant in self.grants.items()}
        self.failures = {name: grant.failure for name, grant in self.grants.items()}
        self.bounds = {name: s.bind(self.grants[name]) for name, s in self.statistics.items()}
        self.processes = {name: bound.process for name, bound in self.bounds.items()}

    def replace(self, **changes: Any) -> Specification:
        """Return a copy with other arguments; law and processes are chosen again if they could change."""
        own = {name: getattr(self, name) for name in ARGUMENTS}
        own["choice"] = self.choice if changes.keys() <= {"columns", "sources"} else None
        return Specification(**{**own, **changes})

    def keeping(self, boundaries: Sequence[int]) -> Specification:
        """Return a copy whose grid has the boundaries that were used."""
        twin, grid = copy(self), self.rounds.grid
        if grid is not None:
            twin.rounds = dataclasses.replace(self.rounds, grid=grid.keeping(boundaries))
        return twin

    def following(self, before: int, *, epsilon: float, delta: float, horizon: int | None) -> Specification:
        """Describe a successor after ``before`` rounds; the horizon is by default what is left of the grid."""
        left = (self.rounds.count or 0) - before
        return self.replace(epsilon=epsilon, delta=delta, horizon=left if horizon is None and left > 0 else horizon)

    def running_under(self, choice: Choice) -> Specification:
        """Return a copy with a stored choice; unchanged if that is the choice of another specification."""
        if choice == self.choice:
            return self
        try:
            return self.replace(choice=choice)
        except InputError:
            return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "") -> Specification:
        """Read what a file holds: the tables [schema] and [statistics], and the budget."""
        try:
            if not isinstance(data, Mapping):
                raise mismatch("a table", data, None)
            check_keys(data, KEYS, "", ("schema", "statistics", "epsilon"))
            if not isinstance(data["statistics"], Mapping):
                raise mismatch("a table", data["statistics"], "statistics")
            read: dict[str, Any] = {
                "schema": Schema.from_spec(data["schema"]),
                "statistics": {
                    name: Statistic.from_spec(spec, f"statistics.{name}") for name, spec in data["statistics"].items()
                },
            }
            if "choice" in data:
                read["choice"] = Choice.from_dict(data["choice"])
            return cls(**{**data, **read})
        except InputError as error:
            raise error.found_in(source) if source else error from None

    @property
    def has_subjects(self) -> bool:
        """Whether records belong to subjects, and can be erased by them; never decided by the data."""
        return self.columns.has_subjects

    def columns_of(self, source: str | None) -> Columns:
        """The roles of columns in a source: those of the stream, replaced by its own if it has any."""
        own = self.sources.get(source) if source is not None else None
        return self.columns if own is None else self.columns.updated(own["columns"])

    def check_rounds(self, wanted: int | None = None, *, before: int = 0) -> None:
        """Refuse if the horizon is too short for the ``wanted`` rounds, or the grid, after those ``before``."""
        count = self.rounds.count if wanted is None else wanted
        if count is not None and self.horizon is not None and count > before + self.horizon:
            raise InputError(
                f"expected at most {plural(before + self.horizon, 'round')}, the horizon, got {count:,}: the noise is "
                "calibrated to that many and no more. Give a longer horizon, or none to take this number",
                place="horizon",
            )

    def releases(self, name: str) -> int | None:
        """How many releases of a statistic fit into the horizon."""
        return None if self.horizon is None else -(-self.horizon // self.statistics[name].every)

    def terms(self, name: str) -> StreamTerms:
        """What a statistic knows about the stream before the budget is divided."""
        every, place = self.statistics[name].every, f"statistics.{name}"
        return StreamTerms(self.horizon, every, self.window_of(name), self.late, place)

    def window_of(self, name: str) -> int | None:
        own = self.statistics[name].window
        return own if own is not None else self.window

    def records_of(self, name: str) -> int:
        """How many of the ``records`` count at once in a statistic, if they come evenly over the rounds."""
        window = self.window_of(name)
        if window is None or self.horizon is None or window >= self.horizon:
            return self.records
        return max(1, self.records * window // self.horizon)

    def digest(self, name: str) -> bytes:
        """A digest of everything that changes the noise of a statistic: equal digests share coins."""
        share, law = self.shares[name], self.statistics[name].noise
        content = {
            "retroact": DIGEST,
            "schema": self.schema.spec(),
            "name": name,
            "statistic": self.statistics[name].spec(digest=True),
            "budget": [float(self.epsilon), float(self.delta), share.kind, str(share.amount), str(self.failures[name])],
            "horizon": self.horizon,
            # What follows from the above is included too, and so is a choice that is the default.
            "law": self.choice.law,
            "noise": self.choice.noise[name],
            "process": self.processes[name].spec(),
            "calibration": "declared" if isinstance(law, Oblivious) else "paper" if law == "paper" else "exact",
            "method": self.bounds[name].digest_extras,
        }
        own = {
            "window": (self.window_of(name), None),
            "records": (self.records, RECORDS),
            "late": (self.late, True),
            "declared by": (self.statistics[name].declared_by(), ""),
        }
        content |= {key: value for key, (value, default) in own.items() if value != default}
        return hashlib.blake2b(words(content).encode(), digest_size=32).digest()

    @property
    def whole_digest(self) -> bytes:
        """A digest of everything a state depends on. The order of the fields counts, since records are tuples."""
        parts = [words(list(self.schema.spec().items())).encode(), *map(self.digest, self.statistics)]
        return hashlib.blake2b(b"".join(parts), digest_size=32).digest()

    def mechanism(self, name: str, coins: Coins) -> Mechanism:
        """The calibrated noise of one statistic under these coins."""
        return self.bounds[name].noise.under(coins.branch(self.digest(name)))

    @property
    def measure(self) -> Measure:
        """What all statistics spend together."""
        return compose(self.measure_of(name) for name in self.statistics)

    def measure_of(self, name: str) -> Measure:
        own, failure, fixed = self.shares[name].measure, self.failures[name], self.demands[name].fixed_cost
        if fixed is not None:
            failure += fixed(failure)[1]
        failure += self.bounds[name].spends
        return compose([own, ApproximateDP(0.0, float(failure))]) if failure else own

    @property
    def guarantee(self) -> Guarantee:
        promises = [STAMPED_ONCE] if self.late else []
        promises += [REJECTED] if self.after_erasure == "reject" else []
        for bound in self.bounds.values():
            promises += [promise for promise in bound.promises if promise not in promises]
        adaptive = all(bound.adaptive for bound in self.bounds.values())
        measure = self.measure
        # A delta that is given need not be spent.
        delta = 0.0 if isinstance(measure, PureDP) else float(self.delta)
        return Guarantee(measure, float(self.epsilon), delta, adaptive=adaptive, promises=tuple(promises))

    @property
    def laws(self) -> tuple[Law, ...]:
        """The possible laws: Gaussian noise needs a delta, and a statistic that leaves the law open."""
        free = any(demand.kind is None for demand in self.demands.values())
        return LAWS if self.delta and free else ("laplace",)

    def _choose(self) -> Choice:
        if self.law == "gaussian" and not self.delta:
            raise InputError("expected a delta above 0 with Gaussian noise", place="law")
        return choose(self, (self.law,) if self.law else self.laws)

    def _checked_choice(self, choice: Choice) -> Choice:
        if set(choice.noise) != set(self.statistics) or (self.law or choice.law) != choice.law:
            raise InputError("expected the choice of a stream with the same statistics and law", place="choice")
        return Choice(choice.law, {name: choice.noise[name] for name in self.statistics})

    def _capacity(self) -> int:
        """How many records fit into 64-bit totals."""
        for name, demand in self.demands.items():
            if (room := LARGEST_TOTAL // demand.largest) < FEWEST:
                raise InputError(
                    f"its totals would leave 64-bit integers after {room:,} records (one record adds up to "
                    f"{demand.largest:,} steps); expected room for {FEWEST:,}: take a coarser step or narrower bounds",
                    place=f"statistics.{name}",
                )
        return LARGEST_TOTAL // max(1, *(demand.largest for demand in self.demands.values()))


ARGUMENTS = tuple(inspect.signature(Specification).parameters)
TABLES = ("schema", "statistics", "columns", "rounds", "sources")
LIMITS = tuple(name for name in ARGUMENTS if name not in (*TABLES, "weights"))
# The keys of a file; weights are keys of the statistics.
KEYS = (*LIMITS, "columns", "rounds", "sources", "schema", "statistics")

# What the operator promises if late data are accepted, and if later records of erased subjects are rejected.
STAMPED_ONCE = "no deleted record is added again with the same past stamp, or its life counts as two operations"
REJECTED = (
    "the erasure of a subject also decides over its later records, which are rejected: it counts as one operation for "
    "each of them"
)


def _checked(statistics: Mapping[str, Statistic], horizon: int | None) -> dict[str, Statistic]:
    if not isinstance(statistics, Mapping) or not statistics:
        raise InputError("expected at least one statistic, by name", place="statistics")
    for name, statistic in statistics.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"expected a name for every statistic, got {name!r}", place="statistics")
        if not isinstance(statistic, Statistic):
            raise InputError(
                f"expected a statistic such as Count(), got {statistic!r}: only retroactive statistics go in a stream",
                place=f"statistics.{name}",
            )
        if horizon is not None and statistic.every > horizon:
            raise InputError(
                f"expected at most the horizon, {horizon:,}, got {statistic.every:,}: it would never be released",
                place=f"statistics.{name}.every",
            )
    return Named(statistics)
