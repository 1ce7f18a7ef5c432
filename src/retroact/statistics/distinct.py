"""How many different values there are, in three forms that rely on different assumptions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from ..arrays import I64
from ..checks import positive_int
from ..errors import InputError
from ..noise import Mechanism
from ..noise.default_process import Candidates
from ..schema import Schema
from ..schema.field import field_names, one_or_list
from .answer import Answer, Published, by_name
from .answer_rows import NUMBER, AnswerRows, by_fields
from .bound import At, Totals
from .declared_groups import DeclaredGroups
from .distinct_forms import FORMS, LEVEL, Case, Design, Form, best, block_length, designed, possible, refusal
from .grant import ONE_COUNT, Grant, Layout, StreamTerms, View
from .keys import KeyedBound, Keys
from .statistic import Example, Statistic, chosen


class Distinct(Statistic):
    """How many different values of a field (or tuples of several) the surviving records have; with ``by``, in every
    declared group of one or more fields.

    One operation adds or removes one record x for one interval of rounds, and so changes the count by 1 in those rounds
    of the interval in which no other record has the value of x. Other records come and go, so that can be any set of
    rounds: the count is not linear, and unless more is known, a private and retroactive answer has a polynomial error
    even on streams that only add (paper, Theorem "countdistinct"). What each ``form`` relies on:

    - ``"releases"``: nothing. Any set of releases is hidden (`noise.AnyRounds`, or `noise.BySize` for few); the
      standard deviation for R of them is at most (sqrt(R) + 1) / (2 mu).
    - ``"blocks"``: no late data. Rounds come in blocks of ``block``, and a value counts if it has a record from before
      the block. Such records can only go, so within a block a value goes once and never comes: one step in every block,
      and an interval in the one where x goes (`noise.StampedBlocks`). At most ``additions`` records a round are too new
      to count. Half of that bound is added to the answer, and ``interval`` is wider by the other half;
      ``standard_error`` is that of the noise alone. More additions make intervals too narrow, but cost no privacy.
    - ``"flips"``: a promise that no value comes and goes more than ``flips`` times (`noise.FewChanges`): with the two
      ends of the interval, flips + 2 changes. Nobody can check it: surviving data does not show the past.

    Without a form, the stream takes the allowed one with the smallest error: the 95 % half-width in the worst round,
    bias included.

    **Privacy.** As above: the noise of the form hides one operation in all releases together. Stamped blocks are for
    the model of section 2 only; with late additions (Appendix A) an old stamp can come and go in every round, so
    streams that take them are refused. **Retroactivity.** The count is a function of the round and the surviving data
    with its stamps, and the noise depends on the round alone; no answer is repeated in later rounds. A record is in one
    group, so it changes one of the counts, in a set of rounds as above: groups cost nothing.

    >>> import retroact as ra
    >>> users = {"users": Distinct("user")}
    >>> plan = ra.Stream({"user": ra.Text()}, users, epsilon=1.0, delta=1e-6, horizon=365).plan()
    >>> plan["users"].noise, round(plan["users"].standard_deviation, 1)
    ('any rounds gaussian', 42.6)
    """

    kind: ClassVar[str] = "distinct"
    theorem: ClassVar[str] = "docs/proofs.md, 8"

    def __init__(
        self,
        field: str | Sequence[str],
        *,
        form: Form | None = None,
        block: int | None = None,
        additions: int | None = None,
        flips: int | None = None,
        by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        if options.get("noise") is not None:
            raise InputError(
                f"expected no noise for a distinct count, got {options['noise']!r}: other processes hide a change in "
                "one interval of rounds, and a value can come and go in any; choose a form instead",
                place="noise",
            )
        super().__init__(**options)
        self.fields = field_names(field, "field")
        self.field = one_or_list(self.fields)
        self.by = () if by is None else field_names(by, "by")
        if form is not None and form not in FORMS:
            raise InputError(f"expected one of {', '.join(FORMS)}, got {form!r}", place="form")
        self.form = form
        self.block = None if block is None else positive_int(block, "block")
        self.additions = None if additions is None else positive_int(additions, "additions")
        self.flips = None if flips is None else positive_int(flips, "flips")
        if block is not None and form not in (None, "blocks"):
            raise InputError(f"expected a block with form 'blocks' only, got form {form!r}", place="block")
        if block is not None and block % self.every:
            raise InputError(f"expected a multiple of every ({self.every:,} rounds), got {block:,}", place="block")
        if additions is None and (form == "blocks" or block is not None):
            raise InputError("expected a bound on the records that are added in a round, got none", place="additions")
        if flips is None and form == "flips":
            raise InputError("expected a bound on how often a value comes and goes, got none", place="flips")

    @classmethod
    def examples(cls) -> list[Example]:
        stream, checks = {"epsilon": 4.0, "horizon": 64}, {"late": False, "horizons": (8,)}
        blocks, flips = cls("age", form="blocks", additions=4), cls("age", form="flips", flips=4)
        return [
            Example("distinct", cls("age"), stream),
            Example("distinct in blocks", blocks, {**stream, "late": False}),
            Example("distinct with few flips", flips, stream, checks=checks),
            Example("distinct by country", cls("age", by="country"), stream),
        ]

    def argument(self, name: str) -> Any:
        return (one_or_list(self.by) if self.by else None) if name == "by" else super().argument(name)

    def layout(self, schema: Schema) -> Layout:
        Keys(self.fields, schema)
        groups = len(DeclaredGroups(self.by, schema))
        return replace(ONE_COUNT, units=ONE_COUNT.units * groups)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.by, *self.fields)

    def designs(self, grant: Grant) -> dict[str, Design]:
        """The requested form, or all that the stream allows, by the name of their noise."""
        case = self.case(grant)
        reason = None if self.form is None else refusal(self.form, case)
        if reason is not None:
            raise InputError(reason, place=f"{grant.place}.form")
        forms = [form for form in FORMS if refusal(form, case) is None and self.form in (None, form)]
        found = [design for form in forms for design in designed(form, case)]
        return {design.name: design for design in found}

    def design(self, grant: Grant) -> Design:
        return chosen(self.designs(grant), grant)

    def candidates(self, grant: Grant) -> Candidates:
        return {name: design.process for name, design in self.designs(grant).items()}

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return by_fields(self.by, schema, NUMBER)

    def bind(self, grant: Grant) -> DistinctBound:
        return DistinctBound(self, grant)

    def case(self, grant: Grant) -> Case:
        stream = StreamTerms(grant.horizon, grant.every, grant.window, grant.late, grant.place)
        block = block_length(grant.noise) if self.block is None else self.block
        return Case(stream, grant.share, block, self.additions, self.flips)


class DistinctBound(KeyedBound):
    """``design`` is the form that was chosen, with its noise."""

    statistic: Distinct

    def __init__(self, statistic: Distinct, grant: Grant) -> None:
        self.design = statistic.design(grant)
        keys = Keys(statistic.reads(grant.schema), grant.schema)
        super().__init__(statistic, grant, keys, process=self.design.process)
        self.groups = DeclaredGroups(statistic.by, grant.schema)
        block = View(block=self.design.rounds)
        self.views = (block if self.design.form == "blocks" else View(window=grant.window),)

    def _counts(self, totals: Totals) -> I64:
        """The number of different values in every group."""
        if not self.groups.by:
            return np.array([len(totals)])
        labels = dict(zip(self.groups.by, totals.labels, strict=False))
        return np.bincount(self.groups.codes(labels), minlength=len(self.groups))

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        return {group: count for group, count in enumerate(self._counts(totals).tolist()) if count}

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        place = self.design.place(at.index, at.round, self.grant.every)
        drawn, denominator = noise.draw(place)
        fresh = 0
        if self.design.form == "blocks":
            fresh = (self.statistic.additions or 0) * (at.round - self.views[0].span(at.round)[1])
        # The denominator of `StampedBlocks` is even, so half of what is too new to count is exact.
        new = fresh * denominator // 2
        counted = zip(self._counts(totals[0]).tolist(), drawn.tolist(), strict=True)
        numerators = [count * denominator + noise_of + new for count, noise_of in counted]
        deviation = math.sqrt(float(noise.variances(place)[0]))

        def answer(value: float) -> Answer:
            def interval(level: float) -> tuple[float, float]:
                reach = noise.half_width(place, 0, level) + fresh / 2
                return value - reach, value + reach

            return Answer(value, deviation, interval)

        answers = [answer(numerator / denominator) for numerator in numerators]
        shown = by_name(dict(zip(self.groups.names, answers, strict=True))) if self.groups.by else answers[0]
        return Published(shown, tuple(numerators), denominator)

    def floor(self, records: int) -> float:
        return self.design.bias

    @property
    def promises(self) -> tuple[str, ...]:
        own = self.statistic
        if self.design.form != "flips":
            return ()
        among = " among the records that where= lets through" if own.where else ""
        each = f" within one group of {', '.join(own.by)}" if own.by else ""
        return (
            f"no value of {', '.join(own.fields)}{among}{each} appears or disappears more than {own.flips:,} times "
            "over the stream, whichever records are left out",
        )

    def notes(self, records: int) -> tuple[str, ...]:
        """The form and why it was taken, what the others would give, and what they would need."""
        case, taken = self.statistic.case(self.grant), self.design
        if not math.isfinite(taken.reach):
            looked = ", ".join(
                f"±{self.noise.half_width(r, 0, LEVEL):,.4g} in release {r:,}" for r in (1, 1024, 1 << 20)
            )
            return (f"form {taken.form!r}: {looked} at 95 %, since there is no horizon",)
        others = [best(form, case) for form in FORMS if form != taken.form and refusal(form, case) is None]
        why = "as asked for" if self.statistic.form else "the smallest that this stream allows"
        notes = [f"form {taken} at 95 % in the worst round, {why}", *(f"instead: form {other}" for other in others)]
        notes += [f"with {need}: form {better}" for need, better in possible(case) if better.reach < taken.reach]
        if taken.form == "blocks":
            notes.append(
                f"the bound on additions ({self.statistic.additions:,} a round) is for accuracy alone: more of them "
                "cost no privacy, but answers can be off by more than their intervals say"
            )
        return tuple(notes)
