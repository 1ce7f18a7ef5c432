"""What a stream can publish: a function of the key, the round and the surviving data, and of nothing else.

A statistic turns records into totals, an Abelian group with an exact zero, and noisy totals into an answer. It never
sees an earlier answer: `release` gets the totals of one round (Lemma "closure").

Missing values. A record that lacks a field which a statistic `reads`, or has a condition on, is left out of that
statistic and of no other. **Privacy.** Whether a record lacks a field is part of the record, as its values are. So its
contribution is still a data-independent function of the record, either the old contribution or none, and every bound on
it holds as before. A sample is drawn from the remaining records, of which one operation adds or removes at most one.
**Retroactivity.** Whether a record is left out is a function of the record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from ..checks import positive_int
from ..errors import InputError
from ..noise import Oblivious, Process
from ..noise.default_process import Candidates, Choice, candidates, named
from ..params import Parameters
from ..schema import Boolean, Category, Field, Integer, Number, Schema, Text, Vector
from . import where as conditions
from .answer_rows import AnswerRows, AnyRows
from .grant import Demand, Grant, Layout, StreamTerms

if TYPE_CHECKING:
    from .bound import Bound
    from .mapped import Mapped

Chosen = TypeVar("Chosen")


EXAMPLE_SCHEMA: Mapping[str, Field] = {
    "amount": Number(-10, 100, step=0.5),
    "country": Category(["DE", "FR", "IT"]),
    "city": Text(),
    "age": Integer(0, 63),
    "member": Boolean(),
    "place": Vector(2, radius=1, step=0.125),
}


class Example(msgspec.Struct, frozen=True):
    """A statistic for a schema, in a stream with these options (epsilon, delta, horizon, late).

    ``checks`` are arguments of `testing.check_statistic`, where its defaults would show nothing of a few records.
    """

    name: str
    statistic: Statistic
    stream: Mapping[str, Any] = msgspec.field(default_factory=dict)
    schema: Mapping[str, Field] = msgspec.field(default_factory=lambda: EXAMPLE_SCHEMA)
    checks: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Statistic(Parameters, ABC):
    """Options that every statistic takes:

    - ``where``: only records for which a declared condition holds,
    - ``window``: only records stamped within the last ``window`` rounds,
    - ``every``: released in rounds every, 2 * every, ... and absent in between,
    - ``noise``: the noise process, instead of the default,
    - ``weight``: its share of the budget, relative to the others.
    """

    kinds: ClassVar[dict[str, type[Any]]] = {}
    group: ClassVar[str] = "retroact.statistics"
    undigested: ClassVar[tuple[str, ...]] = ("weight",)
    outer: ClassVar[tuple[str, ...]] = ()
    """The arguments of a wrapper that files may write into the table of the inner statistic."""
    theorem: ClassVar[str] = ""
    """The theorem behind its promises, as signed reports name it. Every class declares its own; none is inherited."""
    version: ClassVar[str] = ""
    """For statistics of other packages: to be changed when the same arguments come to mean something else."""
    restatable: ClassVar[bool] = True
    """Whether its privacy cost over the revised past is known."""
    own_noise: ClassVar[tuple[str, ...]] = ()
    """Names for ``noise`` that only it knows: other ways to answer. They have no restated series."""
    interval: bool = True
    """Whether its answers have an interval: only such statistics decide on the law of the stream."""

    def __init__(
        self,
        *,
        where: conditions.Where | None = None,
        window: int | None = None,
        every: int = 1,
        noise: Choice = None,
        weight: float = 1,
    ) -> None:
        self.where = conditions.plain({} if where is None else where)
        self.window = positive_int(window, "window") if window is not None else None
        self.every = positive_int(every, "every")
        self.noise = named(noise, "noise", self.own_noise)
        self.weight = weight

    def statement(self) -> str:
        """The theorem that it declares, and the package that declares it."""
        own = vars(type(self)).get("theorem") or f"no theorem, as {type(self).__name__} declares none"
        by = self.declared_by()
        return f"{own} (declared by {by})" if by else own

    def declared_by(self) -> str:
        """The other package that it comes from, with its version; empty for statistics of this package."""
        package = type(self).__module__.partition(".")[0]
        return f"{package} {self.version}" if self.version and package != __name__.partition(".")[0] else ""

    @abstractmethod
    def layout(self, schema: Schema) -> Layout:
        """Coordinates, units and norms; raises where the schema does not fit."""

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """The fields that determine a record's contribution, apart from conditions; by default all of them."""
        return tuple(schema.fields)

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        """What it asks of the stream; raises where the schema does not fit."""
        conditions.check(self.where, schema, f"{stream.place}.where")
        try:
            largest = self.layout(schema).largest
        except InputError as error:
            raise error.under(stream.place) from None
        if isinstance(self.noise, Oblivious):
            return Demand(largest, "pure", fixed_cost=partial(_declared_cost, self.noise, stream))
        # The paper's own form is for Laplace noise, even in a Gaussian stream.
        return Demand(largest, "pure" if self.noise == "paper" else None)

    def candidates(self, grant: Grant) -> Candidates:
        """The processes that hide every change one operation can make to it, by name; none relies on a promise that
        was not made. Of two equally good ones the first is taken."""
        return candidates(self.noise, grant.releases, grant.live, f"{grant.place}.noise", grant.share.kind)

    def preferred(self, grant: Grant) -> str | None:
        """The name of the process to take without comparing candidates."""
        return None

    def process(self, grant: Grant) -> Process:
        return chosen(self.candidates(grant), grant) if grant.process is None else grant.process

    def answer_rows(self, schema: Schema) -> AnswerRows:
        """How an answer becomes rows of a table."""
        return AnyRows()

    @abstractmethod
    def bind(self, grant: Grant) -> Bound:
        """Bind to the schema and to what the stream grants; this settles every open choice."""

    def map(self, function: Callable[..., Any], *, name: str | None = None, coins: bool = False) -> Mapped:
        """The statistic with ``function`` applied to every answer: f(value), or f(value, shared, fresh) with coins.

        Lemma "closure": the function is memoryless, ``shared`` coins are the same in all rounds, ``fresh`` ones are
        new in each. Nested maps, and the lags of a restated statistic, have separate coins. ``name`` identifies the
        function in the specification; the default is its own name.
        """
        from .mapped import Mapped

        return Mapped(self, function, name=name, coins=coins)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Used by every generic check, the audit of everything, and the docs."""
        return ()

    @classmethod
    def from_spec(cls, table: Any, place: str, extra: Collection[str] = ()) -> Any:
        """The statistic that a table describes. The table may also hold the arguments of a wrapper: groups (``by``),
        or the restated past (``lags``, ``across``).

        >>> Statistic.from_spec({"type": "sum", "field": "amount", "by": "country"}, "revenue")
        GroupBy('country', Sum('amount'))
        >>> Statistic.from_spec({"type": "histogram", "field": ["country", "age"], "lags": [7]}, "past")
        Restated(Histogram(['country', 'age']), [7])
        """
        wrappers = sorted((one for one in cls.kinds.values() if one.outer), key=lambda one: str(one.kind))
        if isinstance(table, Mapping) and table.get("type") in [one.kind for one in wrappers]:
            return super().from_spec(table, place)
        found = super().from_spec(table, place, [name for one in wrappers for name in one.outer])
        for one in wrappers:
            own = {name: table[name] for name in one.outer if name in table and name not in found.parameters()}
            if own:
                try:
                    found = one.from_table({**own, "of": found}, place)
                except InputError as error:
                    at = f"{place}.{next(iter(own))}"
                    raise error.moved(at) if error.path == f"{place}.of" else error from None
        return found

    def argument(self, name: str) -> Any:
        return (self.where or None) if name == "where" else super().argument(name)

    def options(self) -> dict[str, Any]:
        return {name: self.argument(name) for name in Statistic.parameters()}


def chosen(found: Mapping[str, Chosen], grant: Grant) -> Chosen:
    """The candidate that the grant names."""
    if grant.noise not in found:
        raise InputError(f"expected one of {', '.join(found)}, got {grant.noise!r}", place=f"{grant.place}.noise")
    return found[grant.noise]


def _declared_cost(law: Oblivious, stream: StreamTerms, granted: Fraction) -> tuple[Fraction, Fraction]:
    """The cost of a law of the user's own over the horizon."""
    if stream.releases is None:
        raise InputError('a law of your own needs a horizon (Theorem "linear")', place=f"{stream.place}.noise")
    return law.cost(stream.releases)
