"""What is published, number by number: exact totals with the noise of their names added, and nothing else.

Histories are run through the stream, and releases are taken by random access, the last one included; each is compared
with exact totals that are computed record by record from the definition of the statistic (`definitions`) and with noise
that is drawn again, node by node. Then other records come with as much other noise: the answer must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import NamedTuple

from ..coins import Key
from ..errors import VerificationError
from ..ledger.definition import Add, Update
from ..ledger.definition import Sequence as History
from ..stream import Round, Specification
from .algorithm import StreamAlgorithm
from .altered import publishing
from .check import Check, Finding, require
from .histories import Shape, history, values_of
from .published import check_published
from .running import check_history
from .sampling import check_sample
from .seeds import Seeds


def check_oblivious(spec: Specification, random: Random, *, pairs: int = 10) -> None:
    """Checks that under one key every release is the exact totals plus the noise of their names, whatever the
    history."""
    shape = Shape(values_of(spec.schema, random), rounds=min(spec.horizon or 8, 8), late=spec.late)
    drawn = tuple(history(shape, random) for _ in range(pairs))
    require(ExactReleases(Seeds(1)), Publisher(spec, StreamAlgorithm, drawn, 0), Seeds(1), what="oblivious noise")


class Careless(StreamAlgorithm):
    """A stream that counts every record of a round twice, with the value of the one that ``choose`` picks."""

    def __init__(self, choose: Callable[..., Add], specification: Specification, key: Key) -> None:
        super().__init__(specification, key)
        self._choose = choose

    def release(self, updates: Sequence[Update]) -> Round:
        added = [update for update in updates if isinstance(update, Add)]
        if not added:
            return super().release(updates)
        value = self._choose(added, key=repr).value
        same = [replace(update, value=value) for update in added]
        return super().release([*(update for update in updates if not isinstance(update, Add)), *same, *same])


class Publisher(NamedTuple):
    """A stream, the histories that are run through it, and how many releases are taken by random access."""

    specification: Specification
    make: Callable[[Specification, Key], StreamAlgorithm]
    histories: tuple[History, ...]
    looks: int


@dataclass(frozen=True)
class ExactReleases(Check[Publisher]):
    """``seeds``: of the keys and of the releases, the same for planted bugs."""

    seeds: Seeds
    question = "Is what a running stream publishes exactly its totals with the noise that is accounted for?"

    def planted(self, target: Publisher) -> list[list[tuple[str, Publisher]]]:
        bug = "the same stream, which counts every record of a round twice and takes it for another one"
        short = target._replace(histories=target.histories[-1:], looks=0)
        rows = [[(bug, short._replace(make=partial(Careless, choose))) for choose in (min, max)]]
        spec = target.specification
        noisy = [name for name, bound in spec.bounds.items() if bound.additive]
        if noisy:
            thin = copy(spec)
            few = {name: publishing(spec.bounds[name], lambda drawn: drawn.numbers * 9 // 10) for name in noisy}
            thin.bounds = {**spec.bounds, **few}
            rows.append([("statistics that publish nine tenths of their noise", Publisher(thin, target.make, (), 1))])
        return rows

    def run(self, target: Publisher, seeds: Seeds) -> Finding:
        problem = _first_difference(target, self.seeds.key())
        compared, wrong = _by_access(target.specification, self.seeds, target.looks)
        said = (problem or wrong or "").splitlines()
        rounds = sum(map(len, target.histories))
        return Finding(
            tried=f"{len(target.histories)} histories of {rounds // max(1, len(target.histories))} rounds each, run "
            f"through the stream under one key, and {compared:,} numbers by random access under others, up to the last "
            "round; each was compared with exact totals, added up record by record from the definition of the "
            "statistic, and noise drawn again node by node. With other records and as much other noise, so that the "
            "noisy totals were the same, the answers had to be the same.",
            runs=rounds,
            verdict="violation" if said else "passed",
            found=f"A release is not what it should be: {said[0]}."
            if said
            else "Every number is what it should be, and the noise does not depend on the data.",
            detectable="Any difference in any number of these histories and releases.",
            counterexample=lambda: said,
        )


def _first_difference(running: Publisher, key: Key) -> str | None:
    """In whole histories."""
    try:
        for sequence in running.histories:
            check_history(running.specification, sequence, running.make, key)
    except VerificationError as error:
        return str(error)
    return None


def _by_access(spec: Specification, seeds: Seeds, looks: int) -> tuple[int, str | None]:
    """In releases by random access: how many numbers were compared, and what was wrong."""
    compared = 0
    try:
        for name, bound in spec.bounds.items() if looks else ():
            compared += check_published(spec, name, seeds.branch("access", name).random(), looks=looks)
            if bound.keyed:
                check_sample(spec, name, seeds.branch("samples", name).random())
    except VerificationError as error:
        return compared, str(error)
    return compared, None
