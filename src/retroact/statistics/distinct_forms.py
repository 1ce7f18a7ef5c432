"""The forms of a distinct count: what each counts on, the noise that serves it, and how wide that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np

from ..noise import AnyRounds, BySize, FewChanges, Fresh, Process, StampedBlocks, best_block
from ..noise.by_size import MOST
from ..noise.process import some_rounds
from ..privacy import Share
from .grant import Layout, StreamTerms

Form = Literal["releases", "blocks", "flips"]
FORMS: tuple[Form, ...] = get_args(Form)
LEVEL = 0.95
# A record moves the count by one.
ONE_COUNT = Layout((1,), Fraction(1), Fraction(1), 1)
BLOCKS = "blocks "
# A half-width at that level, in standard deviations of noise that is nearly normal.
REACH = 1.96
# Releases looked at for the worst one; all of them up to here.
LOOKED_AT = 1 << 17


class Case(NamedTuple):
    """All that a design follows from: the stream, what it grants, and what the statistic declares."""

    stream: StreamTerms
    share: Share
    block: int | None
    additions: int | None
    flips: int | None

    @property
    def p(self) -> int:
        return 1 if self.share.kind == "pure" else 2


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
        if self.case.stream.reach is None:
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
    if case.stream.window is not None:
        return f"expected no window with form {form!r}: records would go by themselves in every round"
    if case.stream.horizon is None:
        return f"expected a horizon with form {form!r}: its noise is shared by all rounds"
    if form == "blocks" and case.stream.late:
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
    stream, rounds, bias = case.stream, 1, 0.0
    process: Process
    if form == "releases" or stream.releases is None:
        found: list[Process] = [AnyRounds(stream.releases, window=stream.live)]
        if stream.reach is not None:
            found.append(Fresh(stream.reach))
        if stream.releases is not None and stream.releases <= MOST[case.p]:
            found.append(BySize(stream.releases, p=case.p))
        return tuple(Design(form, process, rounds, bias, case) for process in found)
    if form == "flips":
        # No more changes than there are boundaries.
        process = FewChanges(stream.releases, min((case.flips or 0) + 2, max(2, stream.releases + 1)))
    else:
        additions = case.additions or 0
        amount = float(case.share.amount)
        mu = amount if case.p == 1 else math.sqrt(amount)
        assert stream.horizon is not None
        rounds = case.block or best_block(stream.horizon, mu / REACH, additions, stream.every, p=case.p)
        bias = additions * rounds / 2
        length = rounds // stream.every
        # Room for a stream that begins within a block.
        process = StampedBlocks(length, stream.releases + length - 1)
    return (Design(form, process, rounds, bias, case),)


def block_length(name: str) -> int | None:
    """Of the blocks in the name of a design."""
    return int(name.removeprefix(BLOCKS)) if name.startswith(BLOCKS) else None


def _half_width(process: Process, case: Case) -> float:
    """In the worst of all releases, or of a sample of them that visits every phase of blocks and trees."""
    looked = some_rounds(case.stream.releases or 1, LOOKED_AT)
    worst = int(looked[int(np.argmax(process.variances(looked, case.p)))])
    return ONE_COUNT.mechanism(process, case.share).half_width(worst, 0, LEVEL)


def possible(case: Case) -> list[tuple[str, Design]]:
    """What forms would give that the stream does not allow as it is, with what they need."""
    if case.stream.window is not None or case.stream.horizon is None:
        return []
    additions, flips = case.additions or 1, case.flips or 2
    punctual = case._replace(stream=replace(case.stream, late=False), additions=additions)
    wanted: list[tuple[Form, str, Case]] = [
        ("blocks", f"late=False and additions={additions}", punctual),
        ("flips", f"flips={flips}", case._replace(flips=flips)),
    ]
    return [(need, best(form, other)) for form, need, other in wanted if refusal(form, case) is not None]
