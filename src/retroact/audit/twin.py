"""Byte for byte: pairs of every family of histories that unite (`testing.twin`), with a picture of one."""

from __future__ import annotations

from functools import partial

import msgspec

from ..ledger.definition import Add, Delete, Update
from ..ledger.definition import Sequence as History
from ..testing.algorithm import answers
from ..testing.answers import numbers
from ..testing.families import FAMILIES, draw, live_window
from ..testing.seeds import Seeds
from ..testing.twin import ARRIVALS, DELETIONS, EVER, Twin
from .result import Curve, Result, curve, idle, report
from .target import ROUNDS, Target, fewer

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
    for name, family in FAMILIES.items():
        what, remembered = WHAT[name]
        check = Twin(
            tuple(draw(name, target.shape, seeds.branch(name).random(), each, window=window)),
            keys,
            family=what,
            same="records within every window" if family.live else "surviving records",
            remembered=remembered,
            shape=target.shape,
            unite=partial(family.unite, window=window),
            answering=answers,
        )
        own = seeds.branch(name, "key")
        results.append(report(check, target.make, own, part="retroactivity", test=f"twin: {name}"))
        if name == "erased lifecycles" and results[-1].verdict in ("passed", "inconclusive"):
            results[-1] = msgspec.structs.replace(results[-1], curves=_picture(target, seeds.branch("picture")))
    return results


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
    return idle("retroactivity", "twin", Twin.question, f"Answers cannot be compared byte for byte: {why}.")
