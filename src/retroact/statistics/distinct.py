"""How many different values there are, in four forms that differ in what they count on."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..checks import positive_int
from ..coins import Coins
from ..errors import InputError
from ..noise import AnyRounds, BySize, FewChanges, Fresh, Mechanism, Process, StampedBlocks, best_block
from ..noise.by_size import MOST
from ..noise.default_process import Candidates
from ..noise.process import some_rounds
from ..privacy import Share
from ..schema import Rows, Schema
from ..schema.field import field_names, one_or_list
from .answer import Answer, Published
from .keys import Keys
from .statistic import Layout, Setting, Statistic, Totals, View
from .tally import Tally

Form = Literal["releases", "blocks", "flips"]
FORMS: tuple[Form, ...] = get_args(Form)
LEVEL = 0.95
BLOCKS = "blocks "
# A half-width at that level, in standard deviations of noise that is nearly normal.
REACH = 1.96
# Releases looked at for the worst one; all of them up to here.
LOOKED_AT = 1 << 17


class Distinct(Statistic):
    """How many different values of a field (or tuples of several) the surviving records have.

    One operation adds or removes one record x for one interval of rounds, and so changes the count by 1 in those rounds
    of the interval in which no other record has the value of x. Other records can come and go, so that may be any set
    of rounds: the count is not linear, and an answer that is private and retroactive has a polynomial error even on
    streams that only add (paper, Theorem "countdistinct"), unless something is known. What ``form`` counts on:

    - ``"releases"``: nothing. Any set of releases is hidden (`noise.AnyRounds`, or `noise.BySize` for few); the
      standard deviation for R of them is at most (sqrt(R) + 1) / (2 mu).
    - ``"blocks"``: no late data. In blocks of ``block`` rounds, counted are values with a record from before the block.
      Their records only go, so within a block a value goes once and never comes: one step in every block, and an
      interval in the one where x goes (`noise.StampedBlocks`). At most ``additions`` records a round are too new to
      count; half of that bound is added to the answer, and ``interval`` is wider by the other half, while
      ``standard_error`` is of the noise alone. More additions than that make intervals too narrow; privacy does not
      rest on it.
    - ``"flips"``: a promise that no value comes and goes more than ``flips`` times (`noise.FewChanges`): with the two
      ends of the interval, flips + 2 changes. Nobody can check it: the surviving data shows nothing of the past.

    Without a form, the one with the smallest error is taken among those that the stream allows: the 95 % half-width in
    the worst round, bias and all.

    **Privacy.** As above: with the noise of its form one operation is hidden in all releases together. Stamped blocks
    are in the model of section 2 only; with late additions (Appendix A) an old stamp can come and go in every round,
    and a stream that takes them is refused. **Retroactivity.** The count is a function of the round and the surviving
    data with its stamps, and the noise of the round alone; no answer is repeated in later rounds.

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
        **options: Any,
    ) -> None:
        if options.get("noise") is not None:
            raise InputError(
                f"expected no noise for a distinct count, got {options['noise']!r}: other processes hide a change in "
                "one interval of rounds, and a value can come and go in any; choose a form instead",
                place="noise",
            )
        super().__init__(**options)
        self.by = field_names(field, "field")
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

    def argument(self, name: str) -> Any:
        return one_or_list(self.by) if name == "field" else super().argument(name)

    def layout(self, schema: Schema) -> Layout:
        Keys(self.by, schema)
        return Layout((1,), Fraction(1), Fraction(1), 1)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.by

    def validate(self, rows: Rows, schema: Schema) -> None:
        Keys(self.by, schema).validate(rows, schema)

    def gather(self, rows: Rows, weights: I64, schema: Schema, coins: Coins) -> Tally:
        rows, weights = self.chosen(rows, weights, schema)
        return Keys(self.by, schema).tally(rows, weights[:, None], coins)

    def coordinates(self, totals: Totals, schema: Schema) -> dict[Hashable, int]:
        return {0: len(totals)} if len(totals) else {}

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        return float(deviations[0])

    def designs(self, setting: Setting) -> dict[str, Design]:
        """The form that was asked for, or all that the stream allows, by the name of their noise."""
        case = self._case(setting)
        reason = None if self.form is None else refusal(self.form, case)
        if reason is not None:
            raise InputError(reason, place=f"{setting.place}.form")
        forms = [form for form in FORMS if refusal(form, case) is None and self.form in (None, form)]
        found = [design for form in forms for design in designed(form, case)]
        return {design.name: design for design in found}

    def design(self, setting: Setting) -> Design:
        """The one that was chosen."""
        found = self.designs(setting)
        if setting.noise not in found:
            expected = ", ".join(found)
            raise InputError(f"expected one of {expected}, got {setting.noise!r}", place=f"{setting.place}.noise")
        return found[setting.noise]

    def views(self, setting: Setting) -> tuple[View, ...]:
        design = self.design(setting)
        return (View(block=design.rounds) if design.form == "blocks" else View(window=setting.window),)

    def candidates(self, setting: Setting) -> Candidates:
        return {name: design.process for name, design in self.designs(setting).items()}

    def bias(self, setting: Setting) -> float:
        return self.design(setting).bias

    def promises(self, setting: Setting) -> tuple[str, ...]:
        if self.design(setting).form != "flips":
            return ()
        among = " among the records that where= lets through" if self.where else ""
        return (
            f"no value of {', '.join(self.by)}{among} appears or disappears more than {self.flips:,} times over the "
            "stream, whichever records are left out",
        )

    def release(
        self, totals: Sequence[Totals], noise: Mechanism, index: int, round: int, setting: Setting
    ) -> Published:
        design = self.design(setting)
        place = design.place(index, round, self.every)
        drawn, denominator = noise.draw(place)
        fresh = 0
        if design.form == "blocks":
            fresh = (self.additions or 0) * (round - View(block=design.rounds).span(round)[1])
        # The denominator of `StampedBlocks` is even: half of what is too new to count is exact.
        numerator = len(totals[0]) * denominator + int(drawn[0]) + fresh * denominator // 2
        value = numerator / denominator

        def interval(level: float) -> tuple[float, float]:
            reach = noise.half_width(place, 0, level) + fresh / 2
            return value - reach, value + reach

        answer = Answer(value, math.sqrt(float(noise.variances(place)[0])), interval)
        return Published(answer, (numerator,), denominator)

    def notes(self, setting: Setting, noise: Mechanism, records: int) -> tuple[str, ...]:
        """The form with its reason, what others would give, and what they would need."""
        case, chosen = self._case(setting), self.design(setting)
        if not math.isfinite(chosen.reach):
            looked = ", ".join(f"±{noise.half_width(r, 0, LEVEL):,.4g} in release {r:,}" for r in (1, 1024, 1 << 20))
            return (f"form {chosen.form!r}: {looked} at 95 %, since there is no horizon",)
        others = [best(form, case) for form in FORMS if form != chosen.form and refusal(form, case) is None]
        why = "as asked for" if self.form else "the smallest that this stream allows"
        notes = [f"form {chosen} at 95 % in the worst round, {why}", *(f"instead: form {other}" for other in others)]
        notes += [f"with {need}: form {better}" for need, better in _possible(case) if better.reach < chosen.reach]
        if chosen.form == "blocks":
            notes.append(
                f"the bound on additions ({self.additions:,} a round) is for accuracy alone: more of them cost no "
                "privacy, but answers can be off by more than their intervals say"
            )
        return tuple(notes)

    def _case(self, setting: Setting) -> Case:
        return Case(
            setting.share,
            setting.horizon,
            setting.every,
            setting.window,
            setting.late,
            self.block if self.block is not None else _length(setting.noise),
            self.additions,
            self.flips,
        )


class Case(NamedTuple):
    """All that a design follows from: what the stream grants, and what the statistic declares."""

    share: Share
    horizon: int | None
    every: int
    window: int | None
    late: bool
    block: int | None
    additions: int | None
    flips: int | None

    def releases(self, rounds: int) -> int:
        return -(-rounds // self.every)


@dataclass(frozen=True)
class Design:
    """A form with its noise."""

    form: Form
    process: Process
    rounds: int
    """Of a block; 1 where there are none."""
    bias: float
    """How far half of what is too new to count can be off."""
    case: Case

    @property
    def name(self) -> str:
        """Of its noise; stored with a stream, so that its length is not chosen again."""
        if self.form == "releases":
            return self.process.name
        return f"{BLOCKS}{self.rounds}" if self.form == "blocks" else self.form

    @cached_property
    def reach(self) -> float:
        """The 95 % half-width in the worst round with the bias; infinite without a horizon and a window."""
        if self.case.horizon is self.case.window is None:
            return math.inf
        return self.bias + _half_width(self.process, self.case)

    def place(self, index: int, round: int, every: int) -> int:
        """Where in the noise a release is. Blocks go by the rounds of the stream, and a stream that follows another
        begins anywhere in one: it leaves out as many places of its first block as came before it."""
        origin = round - index * every
        if self.form == "blocks":
            # Round r is in block (r - 1) // rounds and there in place (r - 1) % rounds // every, from 0.
            return index + -(-origin // every) % (self.rounds // every)
        return index

    def __str__(self) -> str:
        of = f" of {self.rounds:,} rounds" if self.rounds > 1 else ""
        off = f" ({self.bias:,.4g} of it for what is too new to count)" if self.bias else ""
        return f"'{self.form}'{of}: ±{self.reach:,.4g}{off}"


def refusal(form: Form, case: Case) -> str | None:
    """Why a stream does not allow a form."""
    if form == "releases":
        return None
    if case.window is not None:
        return f"expected no window with form {form!r}: records would go by themselves in every round"
    if case.horizon is None:
        return f"expected a horizon with form {form!r}: its noise is shared by all rounds"
    if form == "blocks" and case.late:
        return (
            "expected a stream with late=False: with late data an old stamp can come and go every round, and form "
            "'blocks' hides that values from before a block go once"
        )
    if form == "blocks" and case.additions is None:
        return "expected additions, a bound on the records that are added in a round, with form 'blocks'"
    if form == "flips" and case.flips is None:
        return "expected flips, a bound on how often a value comes and goes, with form 'flips'"
    return None


def best(form: Form, case: Case) -> Design:
    return min(designed(form, case), key=lambda design: design.reach)


@lru_cache(maxsize=256)
def designed(form: Form, case: Case) -> tuple[Design, ...]:
    """A form that is not refused, with the processes that serve it."""
    p = 1 if case.share.kind == "pure" else 2
    horizon, rounds, bias = case.horizon, 1, 0.0
    process: Process
    if form == "releases" or horizon is None:
        releases = None if horizon is None else case.releases(horizon)
        window = None if case.window is None else case.releases(case.window)
        reach = min((n for n in (releases, window) if n is not None), default=None)
        found: list[Process] = [AnyRounds(releases, window=window)]
        if reach is not None:
            found.append(Fresh(reach))
        if releases is not None and releases <= MOST[p]:
            found.append(BySize(releases, p=p))
        return tuple(Design(form, process, rounds, bias, case) for process in found)
    if form == "flips":
        # No more changes than there are boundaries.
        process = FewChanges(case.releases(horizon), min((case.flips or 0) + 2, max(2, case.releases(horizon) + 1)))
    else:
        additions = case.additions or 0
        amount = float(case.share.amount)
        mu = amount if p == 1 else math.sqrt(amount)
        rounds = case.block or best_block(horizon, mu / REACH, additions, case.every, p=p)
        bias = additions * rounds / 2
        length = rounds // case.every
        # Room for a stream that begins within a block.
        process = StampedBlocks(length, case.releases(horizon) + length - 1)
    return (Design(form, process, rounds, bias, case),)


def _length(name: str) -> int | None:
    """Of the blocks in the name of a design."""
    return int(name.removeprefix(BLOCKS)) if name.startswith(BLOCKS) else None


def _half_width(process: Process, case: Case) -> float:
    """In the worst of all releases, or of a sample of them that visits every phase of blocks and trees."""
    p = 1 if case.share.kind == "pure" else 2
    last = 1 if case.horizon is None else case.releases(case.horizon)
    looked = some_rounds(last, LOOKED_AT)
    worst = int(looked[int(np.argmax(process.variances(looked, p)))])
    one = Fraction(1)
    noise = Mechanism(process, case.share, units=(1,), norm1=one, norm2_squared=one)
    return noise.half_width(worst, 0, LEVEL)


def _possible(case: Case) -> list[tuple[str, Design]]:
    """What forms would give that the stream does not allow as it is, with what they need."""
    if case.window is not None or case.horizon is None:
        return []
    additions, flips = case.additions or 1, case.flips or 2
    wanted: list[tuple[Form, str, Case]] = [
        ("blocks", f"late=False and additions={additions}", case._replace(late=False, additions=additions)),
        ("flips", f"flips={flips}", case._replace(flips=flips)),
    ]
    return [(need, best(form, other)) for form, need, other in wanted if refusal(form, case) is not None]
