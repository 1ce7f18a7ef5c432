"""The twin check: under one key, two histories that have united get equal bytes as answers, or the past shows.

Equal bytes under every key mean equal laws. So this needs no statistics, and one difference is proof; but it cannot
look at every history there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ..coins import Key
from ..ledger.definition import Add, Delete, Update
from ..ledger.definition import Sequence as History
from ..testing import Pair
from ..testing.answers import numbers
from ..testing.check import Check, Finding
from ..testing.families import FAMILIES, draw, live_window
from ..testing.seeds import Seeds
from .result import Curve, Result, Verdict, curve, idle, report
from .shrink import as_code, shrink
from .target import RAISED, ROUNDS, Make, Target, answers, fewer
from .target import raised as raised_in

QUESTION = "Once two histories hold the same surviving records, do the published answers still tell which one it was?"
DELETIONS, EVER, ARRIVALS = (
    "the number of deletions so far",
    "all records that ever were",
    "what came when, and in which order",
)
# Every family of pairs in words, and what the control remembers.
WHAT = {
    "erased lifecycles": ("records came and were deleted, by value, id or subject, against none of them", DELETIONS),
    "no-op deletions": ("deletions named records that were not there, against no such deletions", DELETIONS),
    "exhausted multiplicities": ("copies of a record were deleted, at times once too often, against none", DELETIONS),
    "shuffled rounds": ("the updates within a round came in another order", ARRIVALS),
    "expiry": ("a record had left every window, deleted late or not at all, against none", EVER),
    "late data": ("a record came late against on time, or came late and was deleted against never", ARRIVALS),
    "flips": ("a value came and went again and again, against never having been there", DELETIONS),
    "amnesia": ("everything up to a round was replaced by the additions of what survives in it", DELETIONS),
    "moved": ("records that had gone were replaced by other records that had gone", EVER),
    "replaced ids": ("an id had held another record before, against its first use", EVER),
}
# The picture adds this many records that are erased later: as many as it takes to see them through the noise.
EXTRA = (8, 32, 128, 512)
LONGEST = 30
# At least this many pairs of a family, however long they are.
LEAST = 12
SHRINKING = 600


def twin(target: Target, seeds: Seeds, *, pairs: int = 240, keys: int = 2) -> list[Result]:
    """One result for each family of pairs, ``pairs`` of them in all, each under ``keys`` keys.

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=100)
    >>> results = twin(Target.stream(spec), Seeds(1), pairs=9, keys=1)
    >>> [(result.test, result.verdict, result.control.caught) for result in results[:1]]
    [('twin: erased lifecycles', 'passed', True)]
    """
    if not target.keyed:
        return [_incomparable("equal keys do not give equal answers here, so only their laws can be compared")]
    if target.retroactivity is not None:
        return [_incomparable("approximate retroactivity is claimed, which allows answers to differ a little")]
    window = live_window(target.specification)
    # Fewer of them if they are long, so that the test takes no longer.
    each = max(1, round(fewer(pairs, LEAST * len(FAMILIES), ROUNDS, target.shape.rounds) / len(FAMILIES)))
    results = []
    for family in FAMILIES:
        drawn = draw(family, target.shape, seeds.branch(family).random(), each, window=window)
        check = Twin(family, tuple(drawn), keys, window, seeds.branch("picture"))
        own = seeds.branch(family, "key")
        results.append(report(check, target, own, part="retroactivity", test=f"twin: {family}"))
    return results


class Compared(NamedTuple):
    """``answers``: how many are not empty. ``difference``: the first round from the uniting one on with different
    answers, and both. ``raised``: the type of an exception on both sides alike, after which there is no answer."""

    answers: int
    difference: tuple[int, bytes, bytes] | None = None
    raised: str | None = None


def compare(make: Make, pair: Pair, seeds: Seeds, keys: int) -> Compared:
    """Both histories of a pair under some keys, until they differ."""
    count, raised = 0, None
    for number in range(keys):
        one, other = (answers(make, seeds.key(number), side) for side in (pair.one, pair.other))
        for round in range(pair.unite, len(one) + 1):
            mine, theirs = one[round - 1], other[round - 1]
            count += bool(mine or theirs)
            if mine != theirs:
                return Compared(count, (round, mine, theirs))
            if mine.startswith(RAISED):
                raised = raised_in([mine])
                break
    return Compared(count, None, raised)


def raises(make: Make, pairs: Sequence[Pair], key: Key) -> str | None:
    """The type of the first exception on one of these histories, if there is one."""
    found = (raised_in(answers(make, key, side)[-1:]) for pair in pairs for side in (pair.one, pair.other))
    return next((name for name in found if name is not None), None)


@dataclass(frozen=True)
class Twin(Check[Target]):
    """One family of pairs, each under some keys."""

    family: str
    pairs: tuple[Pair, ...]
    keys: int
    window: int | None
    picture: Seeds
    question = QUESTION

    def not_applicable(self, target: Target) -> str | None:
        if self.pairs:
            return None
        reason = f"No pair was found among histories of this shape, of {target.shape.rounds} rounds, in which"
        return f"{reason} {WHAT[self.family][0]}."

    def planted(self, target: Target) -> list[list[tuple[str, Target]]]:
        name = WHAT[self.family][1]
        make = partial(Remembering, target.make, MEMORIES[name])
        return [[(f"the same algorithm, which adds to its answers {name}", replace(target, make=make))]]

    def run(self, target: Target, seeds: Seeds) -> Finding:
        """Up to the first pair with a difference."""
        seen: list[Compared] = []
        for pair in self.pairs:
            seen.append(compare(target.make, pair, seeds, self.keys))
            if seen[-1].difference is not None:
                break
        raised = [own.raised for own in seen if own.raised is not None]
        compared = sum(own.answers for own in seen)
        if not compared:
            reason = f"Nothing is published in the rounds that would be compared, of {target.shape.rounds}."
            return Finding(verdict="not applicable", found=reason)
        telling = sum(own.answers > 0 and own.raised is None for own in seen)
        below = 1 - 0.01 ** (1 / max(1, telling))
        difference, tried = seen[-1].difference, len(self.pairs)
        verdict: Verdict = "violation" if difference is not None else "inconclusive" if raised else "passed"
        if difference is not None:
            found = (
                f"Pair {len(seen)} of {tried} has other answers in round {difference[0]}, after the histories have "
                f"united in round {self.pairs[len(seen) - 1].unite}: something of the past is remembered."
            )
        elif raised:
            found = f"In {len(raised)} of {tried} pairs there was no answer to compare: {raised[0]} was raised."
        else:
            found = f"All {compared:,} answers that were published and compared are equal, byte for byte."
        live = FAMILIES[self.family].live
        return Finding(
            tried=f"{tried} random pairs of histories of up to {target.shape.rounds} rounds in which "
            f"{WHAT[self.family][0]}; each pair under {self.keys} key{'s' * (self.keys != 1)}, all answers compared "
            f"once the {'records within every window' if live else 'surviving records'} are the same.",
            runs=2 * self.keys * len(seen),
            verdict=verdict,
            found=found,
            detectable=f"A fault that shows in at least {below:.1%} of such pairs would have been seen with "
            "probability 0.99. A fault that shows in these pairs only under few keys, or only in other histories, "
            "would not.",
            measured={"pairs": str(tried), "answers": str(compared)},
            counterexample=lambda: self._shrunk(target, seeds, self.pairs[len(seen) - 1]),
            curves=_picture(target, self.picture) if self.family == "erased lifecycles" and not difference else {},
        )

    def _shrunk(self, target: Target, seeds: Seeds, pair: Pair) -> list[str]:
        """A minimal pair with a difference, and both answers."""

        def fails(smaller: Pair) -> bool:
            return compare(target.make, smaller, seeds, self.keys).difference is not None

        unite = partial(FAMILIES[self.family].unite, window=self.window)
        small = shrink(pair, fails, target.shape, unite=unite, tries=SHRINKING).pair
        difference = compare(target.make, small, seeds, self.keys).difference
        assert difference is not None
        round, one, other = difference
        return [*as_code(small), f"# answers of round {round}, under one key:", f"# {one!r}", f"# {other!r}"]


# The control: the target's own algorithm, with a memory --------------------------------------------------------


Memory = Callable[[Sequence[Sequence[Update]]], object]


class Remembering:
    """An algorithm that adds a memory of the past to every answer that is not empty."""

    def __init__(self, make: Make, memory: Memory, key: Key) -> None:
        self._inside, self._memory = make(key), memory
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


# The picture ------------------------------------------------------------------------------------------------------


def _picture(target: Target, seeds: Seeds) -> dict[str, Curve]:
    """Two histories side by side: many records that are erased in the middle, and none of them."""
    long = target.with_rounds(LONGEST) if target.specification is not None else target
    unite = -(-2 * long.shape.rounds // 3)
    if unite < 2:
        return {}
    found: dict[str, Curve] = {}
    for extra in EXTRA:
        one, other = _side_by_side(long, unite, extra)
        seen = (enumerate(answers(long.make, seeds.key(), side), 1) for side in (one, other))
        curves = [[(float(round), value) for round, answer in own for value in numbers(answer)[:1]] for own in seen]
        found = {"one": curve(curves[0]), "other": curve(curves[1]), "unite": curve([(unite, 0)])}
        gap = max((abs(a - b) for (_, a), (_, b) in zip(*curves, strict=False)), default=0.0)
        level = [value for _, value in curves[1]]
        if level and gap > (max(level) - min(level)) / 2:
            break
    return found


def _side_by_side(target: Target, unite: int, extra: int) -> tuple[History, History]:
    values, rounds = target.shape.values, target.shape.rounds
    base: History = tuple((Add(values[round % len(values)]),) for round in range(rounds))
    first = max(1, unite // 3)
    more: list[list[Update]] = [[] for _ in range(rounds)]
    for number in range(extra):
        value, round = values[number % len(values)], first + number % (unite - first)
        more[round - 1].append(Add(value))
        more[unite - 1].append(Delete(value, round))
    return tuple((*own, *new) for own, new in zip(base, more, strict=True)), base


def _incomparable(why: str) -> Result:
    return idle("retroactivity", "twin", QUESTION, f"Answers cannot be compared byte for byte: {why}.")
