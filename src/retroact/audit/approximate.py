"""Approximate retroactivity, attacked: how far apart blocks of answers are once two histories have united.

The claim (alpha, beta) for a block of answers says P(F) <= e^alpha Q(F) + beta for whatever is seen in them, both ways:
the same inequality as privacy has, for histories that unite in place of neighbours. So it is audited in the same way,
by somebody who is shown a block and guesses which history it was. Where the answers are smoothed by Gaussian noise, the
claim is one on mu (`compilers.closeness`), and the accuracy of guesses without abstaining bounds that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..coins import Key, integer_cells
from ..compilers.maps import GaussianMap
from ..compilers.smooth import Smoothed, smooth
from ..errors import InputError
from ..ledger.definition import Add, Delete, Update, unite_at
from ..ledger.definition import Sequence as History
from ..privacy import Guarantee, PureDP, epsilon_of
from ..stateful.base import NOT_RETROACTIVE, Stateful
from ..testing import Pair, Shape
from ..testing.seeds import Seeds
from .distinguish import Attack, World, attack
from .features import Columns, columns
from .result import Control, Result, decimal, idle
from .shrink import as_code
from .target import Approximate, Target, answers
from .twin import raises

QUESTION = (
    "Once records have been deleted, how well can somebody who sees a few answers in a row still tell that they were "
    "ever there?"
)
# The control errs by so many times what it is said to; the first of these that is caught counts.
UNDERSTATED = (2, 4, 8, 16, 32, 64)


class Answering(Protocol):
    """A stateful algorithm, smoothed or not: what it answers can be encoded."""

    def close(self, updates: Sequence[Update], /) -> Any: ...


class Encoded:
    """Such an algorithm as the audit wants it: an answer is bytes."""

    def __init__(self, inside: Answering) -> None:
        self.inside = inside

    def close(self, updates: Sequence[Update]) -> bytes:
        answer = self.inside.close(updates)
        encoded: bytes = answer.encode() if hasattr(answer, "encode") else str(answer).encode()
        return encoded


@dataclass(frozen=True)
class Encode:
    """Makes an `Encoded` algorithm of a function that makes one under a key and a second key for smoothing it.

    >>> from retroact.compilers.maps import RankMap
    >>> from retroact.stateful import MedianTracker
    >>> def median(key, own):
    ...     base = MedianTracker(0, 9, 3, epsilon=60, delta=1e-6, records=100, key=key)
    ...     return smooth(base, failure=1e-4, map=RankMap(0, 9), key=own)
    >>> Encode(median)(Key.for_testing(1)).close([Add(5)])[:4]
    b'(1, '
    """

    make: Callable[[Key, Key], Answering]

    def __call__(self, key: Key, /) -> Encoded:
        return Encoded(self.make(key, Key(key.derive("smoothing"), testing=key.testing)))


class Grudge(Stateful):
    """Counts additions less deletions, plus E if a deletion ever came and minus E otherwise. It promises nothing about
    privacy; it is within E of the truth on histories whose deletions all find a record. It does not say so itself, so
    that it can be smoothed for less.

    >>> grudge = Grudge(Fraction(5))
    >>> grudge.close([Add("x")]), grudge.close([Delete("x", 1)])
    (Fraction(-4, 1), Fraction(5, 1))
    """

    def __init__(self, error: Fraction) -> None:
        self._off = error
        self._count, self._forgave = 0, True

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(PureDP(math.inf), math.inf, unit=f"one operation ({NOT_RETROACTIVE})", adaptive=False)

    def close(self, updates: Sequence[Update]) -> Fraction:
        for update in updates:
            self._count += 1 if isinstance(update, Add) else -1
            self._forgave &= isinstance(update, Add)
        return self._count + (-self._off if self._forgave else self._off)


def united(rounds: int) -> tuple[History, History]:
    """A record that comes and goes, and nothing at all: nothing survives either from round 2 on."""
    nothing: tuple[tuple[Update, ...], ...] = ((),) * rounds
    return ((Add("x"),), (Delete("x", 1),), *nothing), ((), (), *nothing)


class Shown(NamedTuple):
    """The largest alpha that was shown, by what, on which pair, and the largest that so many runs can show."""

    alpha: float
    how: str
    pair: int
    most: float


def approximate(
    target: Target, seeds: Seeds, *, runs: int = 2000, block: int | None = None, confidence: float = 0.999
) -> Result:
    """A lower bound on alpha at the claimed beta, for ``block`` answers (at most as many as the claim is for, and as
    many where nothing is said) from the uniting round on, from ``runs`` runs on either history of each pair.

    >>> from retroact.privacy import Guarantee, PureDP
    >>> claim = Guarantee(PureDP(math.inf), math.inf)
    >>> def grudge(key, own):
    ...     return smooth(Grudge(Fraction(1)), error=1, failure=0, alpha=1.0, beta=1e-3, key=own)
    >>> shape = Shape(values=("x",), rounds=4)
    >>> target = Target("grudge", Encode(grudge), shape, claim, retroactivity=Approximate(1.0, 1e-3))
    >>> result = approximate(target, Seeds(1), runs=200)
    >>> result.verdict, result.control.caught
    ('passed', True)
    """
    claim = target.retroactivity
    if claim is None:
        reason = "Exact retroactivity is claimed: answers are compared byte for byte, or by their laws."
        return idle("retroactivity", "approximate retroactivity", QUESTION, reason)
    if claim.alpha == math.inf:
        return idle("retroactivity", "approximate retroactivity", QUESTION, "No retroactivity is claimed.")
    length = claim.block if block is None else block
    if not 1 <= length <= claim.block:
        raise InputError(f"expected a block of 1 to {claim.block} answers, as claimed, got {length}", place="block")
    pairs = [_pair(make, target.shape, length) for make in (_churned, _once)]
    each = 1 - (1 - confidence) / len(pairs)
    raised = raises(target.make, pairs, seeds.key())
    gaussian = raised is None and smoothed_by_gaussian(target.make(seeds.key()))
    shown: list[Shown] = []
    for number, pair in enumerate(pairs):
        worlds = _worlds(target, pair, length, seeds.branch("runs", number), runs)
        alpha, how, most = judged(*worlds, claim.beta, each, seeds.branch("attack", number), gaussian=gaussian)
        shown.append(Shown(alpha, how, number, most))
    best = max(shown, key=lambda own: own.alpha)
    wrong = best.alpha > claim.alpha
    control, factor = _control(claim, length, seeds.branch("control"), runs, each)
    missing = "" if raised is None else f" Not every history has an answer to compare: {raised} was raised."
    seen = "one answer" if length == 1 else f"{length} answers in a row"
    caught = (
        f" The control says that errors {factor} times as large as promised would have been seen." if factor else ""
    )
    return Result(
        part="retroactivity",
        test="approximate retroactivity",
        question=QUESTION,
        tried=f"Two pairs of histories that unite ({NAMES[0]}; {NAMES[1]}), each against a history without these "
        f"records; {runs} runs on either side, from which a guesser learns to tell them apart by {seen} from the "
        f"uniting round on. Claimed: alpha = {decimal(claim.alpha)} at beta = {decimal(claim.beta)}.",
        runs=2 * runs * len(pairs),
        verdict="violation" if wrong else "inconclusive" if missing else "passed",
        found=_found(best, claim, confidence) + missing,
        detectable=f"With so many runs a guesser who is always right shows alpha = {decimal(best.most)}.{caught}",
        control=control,
        measured={
            "alpha shown": decimal(best.alpha),
            "alpha claimed": decimal(claim.alpha),
            "beta": decimal(claim.beta),
            "block": str(length),
            "largest alpha that can be shown": decimal(best.most),
        },
        counterexample=as_code(pairs[best.pair]) if wrong else [],
    )


def _found(best: Shown, claim: Approximate, confidence: float) -> str:
    if best.alpha <= 0:
        return "The guesser is not shown to do better than beta alone allows: alpha = 0 is not refuted."
    return (
        f"The guesser shows that alpha is at least {decimal(best.alpha)} at beta = {decimal(claim.beta)} "
        f"({NAMES[best.pair]}; {best.how}), with confidence {decimal(confidence)}: "
        f"{'more' if best.alpha > claim.alpha else 'no more'} than is claimed."
    )


def judged(
    world0: World,
    world1: World,
    beta: float,
    confidence: float,
    seeds: Seeds,
    *,
    gaussian: bool,
    learned: bool = True,
) -> tuple[float, str, float]:
    """The alpha shown at ``beta``, how, and the largest that could be. For Gaussian claims there are two bounds, at
    half of the risk each.

    >>> ones = np.repeat([[0.0], [1.0]], 400, axis=0)
    >>> shown, _, most = judged(ones[:400], ones[400:], 0.0, 0.99, Seeds(1), gaussian=False)
    >>> 3 < shown <= most
    True
    """
    risk = (1 - confidence) / (2 if gaussian else 1)
    found = attack(world0, world1, delta=beta, confidence=1 - risk, seeds=seeds, learned=learned)
    ways = [(found.epsilon, f"the {found.distinguisher} distinguisher", found.most(beta, 1 - risk))]
    if gaussian:
        mu, most = found.mu(1 - risk), _perfect(found, 1 - risk)
        ways.append(
            (_alpha(mu, beta), f"the {found.forced} distinguisher, as a bound on mu = {mu:.3g}", _alpha(most, beta))
        )
    alpha, how, _ = max(ways, key=lambda way: way[0])
    return alpha, how, max(way[2] for way in ways)


def smoothed_by_gaussian(algorithm: object) -> bool:
    """Whether what is claimed of an algorithm is a claim on mu: Gaussian noise over a base that never fails."""
    inside = getattr(algorithm, "inside", algorithm)
    return isinstance(inside, Smoothed) and isinstance(inside.map, GaussianMap) and not inside.retroactivity.failure


def _alpha(mu: float, beta: float) -> float:
    if mu <= 0:
        return 0.0
    return epsilon_of(mu, beta) if beta > 0 else math.inf


def _perfect(found: Attack, confidence: float) -> float:
    return replace(found, forced_correct=found.runs).mu(confidence)


# The pairs -------------------------------------------------------------------------------------------------------


NAMES = ("every value came and went again and again", "one record came and went")


def _churned(shape: Shape, unite: int) -> History:
    """All values come and go, as often as rounds allow it, and are gone by the uniting round."""
    rounds: list[list[Update]] = [[] for _ in range(unite)]
    came: int | None = None
    for round in range(1, unite + 1):
        if came is None and round < unite:
            rounds[round - 1] += [Add(value) for value in shape.values]
            came = round
        elif came is not None:
            rounds[round - 1] += [Delete(value, came) for value in shape.values]
            came = None
    return tuple(map(tuple, rounds))


def _once(shape: Shape, unite: int) -> History:
    gone = Delete(shape.values[0], 1)
    return ((Add(shape.values[0]),), *((),) * (unite - 2), (gone,))


def _pair(make: Callable[[Shape, int], History], shape: Shape, block: int) -> Pair:
    """Against nothing up to the uniting round; after it a record comes in every round, on both sides."""
    unite = shape.rounds - block + 1
    if block < 1 or unite < 2:
        raise InputError(
            f"expected histories with more than one round before a block of {block} answers, got {shape.rounds} rounds",
            place="block",
        )
    tail = tuple((Add(shape.values[round % len(shape.values)]),) for round in range(shape.rounds - unite))
    one, other = (*make(shape, unite), *tail), (*((),) * unite, *tail)
    computed = unite_at(one, other)
    assert computed is not None
    assert computed <= unite
    return Pair(one, other, computed)


def _worlds(target: Target, pair: Pair, block: int, seeds: Seeds, runs: int) -> tuple[Columns, Columns]:
    sides = [pair.other[: pair.unite + block - 1], pair.one[: pair.unite + block - 1]]
    given = [
        answers(target.make, seeds.key(2 * number + side), history)[pair.unite - 1 :]
        for side, history in enumerate(sides)
        for number in range(runs)
    ]
    found = columns(given)
    return found.take(slice(0, runs)), found.take(slice(runs, None))


# The control -----------------------------------------------------------------------------------------------------


def _control(claim: Approximate, block: int, seeds: Seeds, runs: int, confidence: float) -> tuple[Control, int | None]:
    """An algorithm that holds a grudge, smoothed for a smaller error than it makes; the same claim, the same attack."""
    alpha, beta = min(max(claim.alpha, 1e-3), 1000.0), max(claim.beta, 1e-9)
    bug = "a count that errs upwards after a deletion and downwards before, smoothed for less error than it makes"
    for factor in UNDERSTATED:
        worlds = _grudges(alpha, beta, block, factor, seeds.branch(factor), runs)
        # A shift of Gaussian noise is seen best by simple means.
        chance = seeds.branch(factor, "attack")
        shown, how, _ = judged(*worlds, beta, confidence, chance, gaussian=True, learned=False)
        if shown > claim.alpha:
            how = f"errors {factor} times as large as promised: alpha is at least {decimal(shown)} ({how})"
            return Control(bug=bug, caught=True, how=how), factor
    how = f"not even errors {UNDERSTATED[-1]} times as large as promised were seen"
    return Control(bug=bug, caught=False, how=how), None


def _grudges(alpha: float, beta: float, block: int, factor: int, seeds: Seeds, runs: int) -> tuple[World, World]:
    """All runs at once: what the base answers does not depend on its randomness, for it has none."""
    worlds: list[World] = []
    for side, history in enumerate(reversed(united(block))):
        base = Grudge(Fraction(factor))
        map = smooth(base, error=1, failure=0, alpha=alpha, beta=beta, block=block, key=seeds.key()).map
        assert isinstance(map, GaussianMap)
        exact = [base.close(updates) for updates in history][2:]
        steps = np.array([round(answer / map.spacing) for answer in exact], dtype=np.int64)
        words = seeds.branch(side).coins().words(np.zeros(block), np.arange(1, block + 1), integer_cells(runs))
        worlds.append((map.law.sample(words) + steps[:, None]).T.astype(np.float64))
    return worlds[0], worlds[1]
