"""The forms of a distinct count: what each relies on, its noise, and how wide that is."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from ..noise import AnyRounds, BySize, FewChanges, Fresh, Process, StampedBlocks, best_block
from ..noise.by_size import MOST
from ..noise.process import some_rounds
from ..privacy import Share
from .grant import ONE_COUNT, StreamTerms

Form = Literal["releases", "blocks", "flips"]
FORMS: tuple[Form, ...] = get_args(Form)
LEVEL = 0.95
BLOCKS = "blocks "
# A half-width at that level, in standard deviations of nearly normal noise.
REACH = 1.96
# At most this many releases are examined for the worst one.
LOOKED_AT = 1 << 17


class Case(NamedTuple):
    """What determines a design: the stream, its grant, and what the statistic declares."""

    stream: StreamTerms
    share: Share
    block: int | None
    additions: int | None
    flips: int | None

    @property
    def p(self) -> int:
        return 1 if self.share.kind == "pure" else 2


class Design(msgspec.Struct, frozen=True, dict=True):
    """A form with its noise."""

    form: Form
    process: Process
    rounds: int
    """The length of a block; 1 where there are none."""
    bias: float
    """Half of the most records that can be too new to count."""
    case: Case

    @property
    def name(self) -> str:
        """The name of its noise, stored with the stream so that the length of blocks is not chosen again."""
        if self.form == "releases":
            return self.process.name
        return f"{BLOCKS}{self.rounds}" if self.form == "blocks" else self.form

    @cached_property
    def reach(self) -> float:
        """The 95 % half-width in the worst round, bias included; infinite with neither horizon nor window."""
        if self.case.stream.reach is None:
            return math.inf
        return self.bias + _half_width(self.process, self.case)

    def place(self, index: int, round: int, every: int) -> int:
        """Which round of the noise a release uses. Blocks go by the rounds of the stream, and a successor stream may
        start within one: it skips the places of its first block that came before it."""
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
    """Why a stream does not allow a form, or None."""
    if form == "releases":
        return None
    if case.stream.window is not None:
        return f"expected no window with form {form!r}: records would expire in every round"
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
    """An allowed form with each process that can serve it."""
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
        # Room for a stream that starts within a block.
        process = StampedBlocks(length, stream.releases + length - 1)
    return (Design(form, process, rounds, bias, case),)


def block_length(name: str) -> int | None:
    """Read from the name of a design."""
    return int(name.removeprefix(BLOCKS)) if name.startswith(BLOCKS) else None


def _half_width(process: Process, case: Case) -> float:
    """The half-width in the worst release, or in the worst of a sample that visits every phase of blocks and trees."""
    looked = some_rounds(case.stream.releases or 1, LOOKED_AT)
    worst = int(looked[int(np.argmax(process.variances(looked, case.p)))])
    return ONE_COUNT.mechanism(process, case.share).half_width(worst, 0, LEVEL)


def possible(case: Case) -> list[tuple[str, Design]]:
    """The forms that this stream does not allow: what each needs, and what it would give."""
    if case.stream.window is not None or case.stream.horizon is None:
        return []
    additions, flips = case.additions or 1, case.flips or 2
    punctual = case._replace(stream=replace(case.stream, late=False), additions=additions)
    wanted: list[tuple[Form, str, Case]] = [
        ("blocks", f"late=False and additions={additions}", punctual),
        ("flips", f"flips={flips}", case._replace(flips=flips)),
    ]
    return [(need, best(form, other)) for form, need, other in wanted if refusal(form, case) is not None]
