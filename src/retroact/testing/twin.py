"""The twin check: under one key, two histories that have united get equal bytes as answers, or the past shows.

Equal bytes under every key mean equal laws. So this needs no statistics, and one difference is proof; but it cannot
look at every history there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from ..coins import Key
from ..ledger.definition import Add, Update, unite_at
from ..ledger.definition import Sequence as History
from .algorithm import RAISED, Algorithm, Answering, Make, raised, run
from .check import Check, Finding, Verdict, require
from .families import without_effect
from .histories import Pair, Shape, shuffled
from .seeds import Seeds
from .shrink import Unite, as_code, shrink

KEYS = (1, 2)
SHRINKING = 600
DELETIONS, EVER, ARRIVALS = (
    "the number of deletions so far",
    "all records that ever were",
    "what came when, and in which order",
)


class Compared(NamedTuple):
    """``answers``: how many are not empty. ``difference``: the first round from the uniting one on with different
    answers, and both. ``raised``: the type of an exception on both sides alike, after which there is no answer."""

    answers: int
    difference: tuple[int, bytes, bytes] | None = None
    raised: str | None = None


def compare(make: Make, pair: Pair, keys: Iterable[Key], answering: Answering = run) -> Compared:
    """Both histories of a pair under each of the keys, until they differ."""
    count, failed = 0, None
    for key in keys:
        one, other = (answering(make, key, side) for side in (pair.one, pair.other))
        for round in range(pair.unite, len(one) + 1):
            mine, theirs = one[round - 1], other[round - 1]
            count += bool(mine or theirs)
            if mine != theirs:
                return Compared(count, (round, mine, theirs))
            if isinstance(mine, bytes) and mine.startswith(RAISED):
                failed = raised([mine])
                break
    return Compared(count, None, failed)


@dataclass(frozen=True)
class Twin(Check[Make]):
    """Pairs of histories that unite, each under some keys. ``remembered``: what is planted. ``shape``: that of
    counterexamples, which are made smaller if it is given."""

    pairs: tuple[Pair, ...]
    keys: int = 1
    family: str = "they unite"
    same: str = "surviving records"
    remembered: str = DELETIONS
    shape: Shape | None = None
    unite: Unite = unite_at
    answering: Answering = run
    fault: str = "something of the past is remembered"
    question = (
        "Once two histories hold the same surviving records, do the published answers still tell which one it was?"
    )

    def not_applicable(self, target: Make) -> str | None:
        rounds = "" if self.shape is None else f", of {self.shape.rounds} rounds,"
        none = f"No pair was found among histories of this shape{rounds} in which {self.family}."
        return None if self.pairs else none

    def planted(self, target: Make) -> list[list[tuple[str, Make]]]:
        bug = f"the same algorithm, which adds to its answers {self.remembered}"
        return [[(bug, partial(Remembering, target, MEMORIES[self.remembered]))]]

    def run(self, target: Make, seeds: Seeds) -> Finding:
        """Up to the first pair with a difference."""
        seen: list[Compared] = []
        for pair in self.pairs:
            seen.append(self._compared(target, seeds, pair))
            if seen[-1].difference is not None:
                break
        failed = [own.raised for own in seen if own.raised is not None]
        compared, rounds = sum(own.answers for own in seen), len(self.pairs[0].one)
        if not compared:
            reason = f"Nothing is published in the rounds that would be compared, of {rounds}."
            return Finding(verdict="not applicable", found=reason)
        telling = sum(own.answers > 0 and own.raised is None for own in seen)
        below = 1 - 0.01 ** (1 / max(1, telling))
        difference, tried = seen[-1].difference, len(self.pairs)
        verdict: Verdict = "violation" if difference is not None else "inconclusive" if failed else "passed"
        if difference is not None:
            found = (
                f"Pair {len(seen)} of {tried} has other answers in round {difference[0]}, after the histories have "
                f"united in round {self.pairs[len(seen) - 1].unite}: {self.fault}."
            )
        elif failed:
            found = f"In {len(failed)} of {tried} pairs there was no answer to compare: {failed[0]} was raised."
        else:
            found = f"All {compared:,} answers that were published and compared are equal, byte for byte."
        return Finding(
            tried=f"{tried} random pairs of histories of up to {rounds} rounds in which {self.family}; each pair under "
            f"{self.keys} key{'s' * (self.keys != 1)}, all answers compared once the {self.same} are the same.",
            runs=2 * self.keys * len(seen),
            verdict=verdict,
            found=found,
            detectable=f"A fault that shows in at least {below:.1%} of such pairs would have been seen with "
            "probability 0.99. A fault that shows in these pairs only under few keys, or only in other histories, "
            "would not.",
            measured={"pairs": str(tried), "answers": str(compared)},
            counterexample=lambda: self._shrunk(target, seeds, self.pairs[len(seen) - 1]),
            value=compared,
        )

    def _compared(self, make: Make, seeds: Seeds, pair: Pair) -> Compared:
        return compare(make, pair, map(seeds.key, range(self.keys)), self.answering)

    def _shrunk(self, target: Make, seeds: Seeds, pair: Pair) -> list[str]:
        """A pair with a difference, minimal if there is a shape, and both answers."""

        def fails(smaller: Pair) -> bool:
            return self._compared(target, seeds, smaller).difference is not None

        if self.shape is not None:
            pair = shrink(pair, fails, self.shape, unite=self.unite, tries=SHRINKING).pair
        difference = self._compared(target, seeds, pair).difference
        assert difference is not None
        round, one, other = difference
        return [*as_code(pair), f"# answers of round {round}, under one key:", f"# {one!r}", f"# {other!r}"]


# The control: the target's own algorithm, with a memory --------------------------------------------------------


Memory = Callable[[Sequence[Sequence[Update]]], object]


class Remembering:
    """An algorithm that adds a memory of the past to every answer that is not empty."""

    def __init__(self, make: Make, memory: Memory, key: Key) -> None:
        self._inside: Algorithm = make(key)
        self._memory = memory
        self._past: list[tuple[Update, ...]] = []

    def close(self, updates: Sequence[Update]) -> bytes:
        self._past.append(tuple(updates))
        answer = self._inside.close(updates)
        return answer and answer + f"\n{self._memory(self._past)!r}".encode()


def deletions(past: Sequence[Sequence[Update]]) -> int:
    return sum(not isinstance(update, Add) for updates in past for update in updates)


def ever(past: Sequence[Sequence[Update]]) -> list[str]:
    """All values, ids and subjects that were ever added."""
    known = {(u.value, u.id, u.subject) for updates in past for u in updates if isinstance(u, Add)}
    return sorted(map(repr, known))


def arrivals(past: Sequence[Sequence[Update]]) -> list[list[str]]:
    """What came in which round, in which order."""
    return [list(map(repr, updates)) for updates in past]


MEMORIES: dict[str, Memory] = {DELETIONS: deletions, EVER: ever, ARRIVALS: arrivals}


# For authors of algorithms ----------------------------------------------------------------------------------------


def check_twin(make: Make, pairs: Iterable[Pair], *, keys: Iterable[int] = KEYS) -> int:
    """Retroactivity: histories that unite give equal bytes from that round on, under each of the keys. Returns how
    many answers were compared.

    >>> import retroact as ra
    >>> from retroact.ledger.definition import Delete
    >>> from retroact.testing import StreamAlgorithm
    >>> spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=2)
    >>> pair = Pair(((Add((True,)),), (Delete((True,), 1),)), ((), ()), unite=2)
    >>> check_twin(lambda key: StreamAlgorithm(spec, key), [pair])
    2
    """
    check = Twin(tuple(pairs))
    found = [require(check, make, Seeds(seed), what="twin check") for seed in keys]
    return sum(one.value or 0 for one in found if one is not None)


def check_replay(make: Make, sequences: Iterable[History]) -> None:
    """The same history under the same key gives the same answers."""
    _same_answers("replay", make, [(sequence, sequence) for sequence in sequences])


def check_no_op_deletions(make: Make, sequences: Iterable[History], shape: Shape, random: Random) -> None:
    """Deletions that match nothing change no answer, neither in their own round nor later."""
    _same_answers("no-op deletions", make, [(one, without_effect(one, shape, random)) for one in sequences])


def check_order(make: Make, sequences: Iterable[History], random: Random) -> None:
    """The order of arrival within a round does not matter (except among events on one id)."""
    other = [(one, tuple(shuffled(updates, random) for updates in one)) for one in sequences]
    _same_answers("order within a round", make, other)


def _same_answers(what: str, make: Make, sides: Iterable[tuple[History, History]]) -> None:
    """In all rounds."""
    pairs = tuple(Pair(one, other, unite=1) for one, other in sides)
    require(Twin(pairs, fault="answers changed"), make, Seeds(KEYS[0]), what=what)
