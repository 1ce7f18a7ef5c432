"""The forms of a distinct count: what each counts on, the noise that serves it, and how wide that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np

from ..noise import AnyRounds, BySize, FewChanges, Fresh, Mechanism, Process, StampedBlocks, best_block
from ..noise.by_size import MOST
from ..noise.process import some_rounds
from ..privacy import Share

Form = Literal["releases", "blocks", "flips"]
FORMS: tuple[Form, ...] = get_args(Form)
LEVEL = 0.95
BLOCKS = "blocks "
# A half-width at that level, in standard deviations of noise that is nearly normal.
REACH = 1.96
# Releases looked at for the worst one; all of them up to here.
LOOKED_AT = 1 << 17


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


def block_length(name: str) -> int | None:
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


def possible(case: Case) -> list[tuple[str, Design]]:
    """What forms would give that the stream does not allow as it is, with what they need."""
    if case.window is not None or case.horizon is None:
        return []
    additions, flips = case.additions or 1, case.flips or 2
    wanted: list[tuple[Form, str, Case]] = [
        ("blocks", f"late=False and additions={additions}", case._replace(late=False, additions=additions)),
        ("flips", f"flips={flips}", case._replace(flips=flips)),
    ]
    return [(need, best(form, other)) for form, need, other in wanted if refusal(form, case) is not None]
