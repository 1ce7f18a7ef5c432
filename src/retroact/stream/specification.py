"""A stream before it has a key: schema, statistics, budget, horizon. All that can be checked is checked here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from ..coins import Coins
from ..compilers.specification import statistic_from_spec
from ..errors import InputError
from ..noise import Mechanism, Oblivious
from ..noise.process import check_horizon
from ..privacy import ApproximateDP, Guarantee, Kind, Measure, PureDP, Share, check_budget, compose, split
from ..privacy.budget import check_weight
from ..schema import Field, Schema
from ..schema.messages import meant
from ..statistics import Setting, Statistic
from ..statistics.statistic import reach_of
from .columns import Columns, sources_from_spec
from .grid import Grid
from .rounds import Rounds, declared_rounds

# Totals are 64-bit integers; a stream must have room for at least this many records.
FEWEST = 1 << 24
LARGEST_TOTAL = 1 << 62
# What thresholds take of delta where noise needs some of it too: the optimum is flat (docs/proofs.md, 7).
THRESHOLD_SHARE = Fraction(7, 20)

KEYS = (
    "epsilon",
    "delta",
    "horizon",
    "window",
    "late",
    "after_erasure",
    "columns",
    "rounds",
    "sources",
    "schema",
    "statistics",
)
TABLES = ("schema", "statistics", "columns", "rounds", "sources")


class Specification:
    """Checked and immutable: what the names of all coins begin with.

    >>> import retroact as ra
    >>> spec = Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=1000)
    >>> spec.processes["n"]
    Bridge(horizon=1000)
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
        weights: Mapping[str, float] | None = None,
        late: bool = True,
        after_erasure: str = "accept",
        columns: Columns | Mapping[str, Any] | None = None,
        rounds: Rounds | Grid | Mapping[str, Any] | int | None = None,
        sources: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)
        self.epsilon, self.delta = epsilon, delta
        whole, failure = check_budget(epsilon, delta)
        self.columns = Columns.usual() if columns is None else Columns.from_spec(columns)
        self.sources = sources_from_spec(sources or {}, self.columns)
        self.rounds, declared = declared_rounds(rounds)
        self.horizon = declared if horizon is None else check_horizon(horizon)
        if isinstance(rounds, int):
            self.check_rounds(rounds)
        self.window = None if window is None else check_horizon(window, "window")
        self.late = _flag(late, "late")
        if after_erasure not in ("accept", "reject"):
            raise InputError(f"expected accept or reject, got {after_erasure!r}", place="after_erasure")
        self.after_erasure = after_erasure
        self.source: Mapping[str, Any] | None = None
        """The tables of the file that this was read from, if it was."""
        self.given = self.statistics = _checked(statistics, self.schema)
        for name in weights or {}:
            if name not in self.statistics:
                raise InputError(f"expected one of {', '.join(self.statistics)}, got {name!r}", place="weights")
        self.weights = {name: s.weight for name, s in self.statistics.items()} | dict(weights or {})
        self.capacity = self._capacity()
        self.failures, self.shares = self._split(whole, failure)
        self.settings = {name: self._setting(name) for name in self.statistics}
        self.statistics = {name: s.settled(self.settings[name]) for name, s in self.given.items()}
        self.processes = {name: s.process(self.settings[name]) for name, s in self.statistics.items()}

    def replace(self, **changes: Any) -> Specification:
        """The same with other arguments."""
        own = {
            "schema": self.schema,
            "statistics": self.given,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "horizon": self.horizon,
            "window": self.window,
            "weights": self.weights,
            "late": self.late,
            "after_erasure": self.after_erasure,
            "columns": self.columns,
            "rounds": self.rounds,
            "sources": self.sources,
        }
        return Specification(**{**own, **changes})

    def following(self, before: int, *, epsilon: float, delta: float, horizon: int | None) -> Specification:
        """Of a stream that goes on after so many rounds: unless it has a horizon, what is left of the grid is one."""
        left = (self.rounds.count or 0) - before
        return self.replace(epsilon=epsilon, delta=delta, horizon=left if horizon is None and left > 0 else horizon)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "") -> Specification:
        """As a file has it: the tables [schema] and [statistics], and the budget beside them."""
        try:
            if not isinstance(data, Mapping):
                raise InputError(f"expected a table, got {type(data).__name__}")
            for key in data:
                if key not in KEYS:
                    raise InputError(f"expected only {', '.join(KEYS)}, got {key!r}{meant(key, KEYS)}", place=key)
            for key in ("schema", "statistics", "epsilon"):
                if key not in data:
                    raise InputError(f"expected {key}, which is missing", place=key)
            if not isinstance(data["statistics"], Mapping):
                raise InputError(f"expected a table, got {data['statistics']!r}", place="statistics")
            schema = Schema.from_spec(data["schema"])
            statistics = {
                name: statistic_from_spec(spec, f"statistics.{name}") for name, spec in data["statistics"].items()
            }
            spec = cls(
                schema,
                statistics,
                epsilon=data["epsilon"],
                delta=data.get("delta", 0.0),
                horizon=data.get("horizon"),
                window=data.get("window"),
                late=data.get("late", True),
                after_erasure=data.get("after_erasure", "accept"),
                columns=data.get("columns"),
                rounds=data.get("rounds"),
                sources=data.get("sources"),
            )
        except InputError as error:
            raise error.found_in(source) if source else error from None
        spec.source = data
        return spec

    @property
    def has_subjects(self) -> bool:
        """Whether records belong to subjects, and can be erased by them: decided here, never by what came in."""
        return self.columns.has_subjects

    def columns_of(self, source: str | None) -> Columns:
        """The roles of the columns of a source: its own where it has any, and those of the stream."""
        own = self.sources.get(source) if source is not None else None
        return self.columns if own is None else self.columns.updated(own["columns"])

    def check_rounds(self, wanted: int | None = None, *, before: int = 0) -> None:
        """That the horizon has room for so many rounds, or for those of the grid; some were published ``before``."""
        count = self.rounds.count if wanted is None else wanted
        if count is not None and self.horizon is not None and count > before + self.horizon:
            raise InputError(
                f"expected at most {before + self.horizon:,} rounds, as the horizon has it, got {count:,}: the noise "
                "is calibrated to so many and no more. Give a longer horizon, or none: then it is that many",
                place="horizon",
            )

    def releases(self, name: str) -> int | None:
        """How many releases of a statistic the horizon allows."""
        return None if self.horizon is None else -(-self.horizon // self.statistics[name].every)

    def window_of(self, name: str) -> int | None:
        own = self.statistics[name].window
        return own if own is not None else self.window

    def digest(self, name: str) -> bytes:
        """Of everything that the noise of a statistic must not be shared across."""
        share, process = self.shares[name], self.processes[name]
        content = {
            "retroact": 1,
            "schema": self.schema.spec(),
            "name": name,
            "statistic": self.statistics[name].spec(),
            "window": self.window_of(name),
            "budget": [float(self.epsilon), float(self.delta), share.kind, str(share.amount)],
            "horizon": self.horizon,
            "process": repr(process),
        }
        # Only what departs from the default, so that older digests stand.
        content |= {"late": False} if not self.late else {}
        geometry = self.statistics[name].geometry(self.schema)
        content |= {"geometry": geometry} if geometry else {}
        content |= {"failure": str(self.failures[name])} if self.failures[name] else {}
        return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=32).digest()

    @property
    def whole_digest(self) -> bytes:
        """Of everything: what a state is tied to. The order of the fields counts, since records are tuples."""
        parts = [msgspec.json.encode(list(self.schema.spec().items())), *map(self.digest, self.statistics)]
        return hashlib.blake2b(b"".join(parts), digest_size=32).digest()

    def mechanism(self, name: str, coins: Coins) -> Mechanism:
        """The calibrated noise of one statistic under these coins."""
        own = coins.branch(self.digest(name))
        return self.statistics[name].mechanism(self.settings[name], self.processes[name], own)

    @property
    def measure(self) -> Measure:
        """What all statistics spend together."""
        return compose(self.measure_of(name) for name in self.statistics)

    def measure_of(self, name: str) -> Measure:
        noise = self.statistics[name].noise
        if isinstance(noise, Oblivious):
            epsilon, delta = (float(part) for part in noise.cost(self._known_horizon(name)))
            return ApproximateDP(epsilon, delta) if delta else PureDP(epsilon)
        own, failure = self.shares[name].measure, self.failures[name]
        return compose([own, ApproximateDP(0.0, float(failure))]) if failure else own

    @property
    def guarantee(self) -> Guarantee:
        promises = [*(PROMISES if self.late else ()), *self._rejections()]
        for name, statistic in self.statistics.items():
            promises += [p for p in statistic.promises(self.settings[name]) if p not in promises]
        adaptive = all(statistic.adaptive(self.settings[name]) for name, statistic in self.statistics.items())
        return Guarantee(
            self.measure, float(self.epsilon), float(self.delta), adaptive=adaptive, promises=tuple(promises)
        )

    def _rejections(self) -> tuple[str, ...]:
        if self.after_erasure == "accept":
            return ()
        return (
            "the erasure of a subject also decides over its later records, which are rejected: it counts as one "
            "operation for each of them",
        )

    def _setting(self, name: str) -> Setting:
        weights = {other: check_weight(weight, other) for other, weight in self.weights.items()}
        part = weights[name] / sum(weights.values())
        return Setting(
            self.schema,
            self.shares[name],
            self.failures[name],
            self.horizon,
            self.statistics[name].every,
            self.window_of(name),
            self.late,
            f"statistics.{name}",
            (Fraction(self.epsilon) * part, Fraction(self.delta) * part),
        )

    def _split(self, whole: Fraction, failure: Fraction) -> tuple[dict[str, Fraction], dict[str, Share]]:
        """Laws and algorithms of the user's own cost what they declare, thresholds come off delta, the rest is divided
        by weight."""
        laws = {
            name: s.noise.cost(self._known_horizon(name))
            for name, s in self.statistics.items()
            if isinstance(s.noise, Oblivious)
        }
        kinds: dict[str, Kind] = {
            name: s.kind_of_share(self.delta) for name, s in self.statistics.items() if name not in laws
        }
        slack = failure - sum((d for _, d in laws.values()), Fraction(0))
        failures = self._thresholds(max(slack, Fraction(0)), "gaussian" in kinds.values())
        fixed = {name: epsilon for name, (epsilon, _) in laws.items()}
        for name, statistic in self.statistics.items():
            reach = reach_of(self.window_of(name), self.horizon, statistic.every)
            cost = statistic.declared(reach, failures[name], f"statistics.{name}")
            if cost is not None:
                fixed[name] = cost
                del kinds[name]
        left = whole - sum(fixed.values(), Fraction(0))
        if left < 0 or slack < 0 or (kinds and left == 0):
            costs = ", ".join(f"{name} {float(epsilon):.4g}" for name, epsilon in fixed.items())
            raise InputError(
                f"expected a budget above what is declared to cost over the horizon: {costs}", place="epsilon"
            )
        if "gaussian" in kinds.values() and slack == 0:
            raise InputError("expected a delta above what the declared laws cost", place="delta")
        slack -= sum(failures.values())
        shares = split(left, slack, kinds, self.weights) if kinds else {}
        return failures, {name: shares.get(name) or Share("pure", fixed[name]) for name in self.statistics}

    def _thresholds(self, slack: Fraction, gaussian: bool) -> dict[str, Fraction]:
        """The part of delta that each threshold may fail with."""
        weights = {
            name: check_weight(self.weights[name], name)
            for name, s in self.statistics.items()
            if s.spends_delta(self.schema)
        }
        needing = [name for name in weights if self.statistics[name].thresholded(self.schema)]
        if needing and slack == 0:
            raise InputError(
                "bins that are not declared can only be released with delta > 0: give a delta, or declare the bins "
                "(bins=[...], or a category field)",
                place=f"statistics.{needing[0]}",
            )
        whole = slack * THRESHOLD_SHARE if gaussian else slack
        return {
            name: whole * weights[name] / sum(weights.values()) if name in weights else Fraction(0)
            for name in self.statistics
        }

    def _known_horizon(self, name: str) -> int:
        releases = self.releases(name)
        if releases is None:
            raise InputError('a law of your own needs a horizon (Theorem "linear")', place=f"statistics.{name}.noise")
        return releases

    def _capacity(self) -> int:
        capacity = LARGEST_TOTAL
        for name, statistic in self.statistics.items():
            largest = statistic.layout(self.schema).largest
            capacity = min(capacity, LARGEST_TOTAL // largest)
            if capacity < FEWEST:
                raise InputError(
                    f"its totals would leave 64-bit integers after {capacity:,} records (one record adds up to "
                    f"{largest:,} steps); expected room for {FEWEST:,}: take a coarser step or narrower bounds",
                    place=f"statistics.{name}",
                )
        return capacity


PROMISES = ("no deleted record is added again with the same past stamp, or its life counts as two operations",)


def _checked(statistics: Mapping[str, Statistic], schema: Schema) -> dict[str, Statistic]:
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
        statistic.check(schema, f"statistics.{name}")
    return dict(statistics)


def _flag(value: bool, place: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"expected true or false, got {value!r}", place=place)
    return value
