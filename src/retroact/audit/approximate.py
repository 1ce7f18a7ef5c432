"""Approximate retroactivity, attacked: how far apart blocks of answers are once two histories have united.

The claim (alpha, beta) for a block of answers says P(F) <= e^alpha Q(F) + beta for whatever is seen in them, both ways:
the same inequality as privacy has, for histories that unite in place of neighbours. So it is audited in the same way,
by somebody who is shown a block and guesses which history it was. Where the answers are smoothed by Gaussian noise, the
claim is one on mu (`compilers.closeness`), and the accuracy of guesses without abstaining bounds that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..coins import Key
from ..compilers.maps import GaussianMap
from ..compilers.smooth import Smoothed
from ..errors import InputError
from ..ledger.definition import Add, Delete, Update, unite_at
from ..ledger.definition import Sequence as History
from ..privacy import ApproximateDP, GaussianDP, Guarantee, epsilon_of
from ..testing import Pair, Shape
from ..testing.algorithm import Make, answers, raises
from ..testing.check import Check, Finding
from ..testing.seeds import Seeds
from ..testing.shrink import as_code
from .distinguish import Attack
from .games import judged
from .result import Result, decimal, idle, report
from .target import Target

TEST = "approximate retroactivity"
# What is planted leaks this many times what is claimed; the first that is caught counts.
FACTORS = (2, 4, 8, 16, 32, 64)


def approximate(
    target: Target, seeds: Seeds, *, runs: int = 2000, block: int | None = None, confidence: float = 0.999
) -> Result:
    """A lower bound on alpha at the claimed beta, for ``block`` answers (by default as many as the claim is for, and
    no more) from the uniting round on, from 2 ``runs`` runs of each pair.

    >>> from retroact.audit import Approximate
    >>> from retroact.privacy import PureDP
    >>> class Deaf:
    ...     def __init__(self, key):
    ...         pass
    ...     def close(self, updates):
    ...         return b"0"
    >>> claim = Guarantee(PureDP(math.inf), math.inf)
    >>> target = Target("deaf", Deaf, Shape(values=("x",), rounds=4), claim, retroactivity=Approximate(1.0, 1e-3))
    >>> result = approximate(target, Seeds(1), runs=200)
    >>> result.verdict, result.control.caught
    ('passed', True)
    """
    claim = target.retroactivity
    if claim is None:
        reason = "Exact retroactivity is claimed: answers are compared byte for byte, or by their laws."
        return idle("retroactivity", TEST, Blocks.question, reason)
    if claim.alpha == math.inf:
        return idle("retroactivity", TEST, Blocks.question, "No retroactivity is claimed.")
    length = claim.block if block is None else block
    if not 1 <= length <= claim.block:
        raise InputError(f"expected a block of 1 to {claim.block} answers, as claimed, got {length}", place="block")
    pairs = {words: _pair(make, target.shape, length) for words, make in PASTS.items()}
    raised = raises(target.make, [*pairs.values()], seeds.key())
    gaussian = raised is None and smoothed_by_gaussian(target.make(seeds.key()))
    measure = GaussianDP(math.inf) if gaussian else ApproximateDP(claim.alpha, claim.beta)
    check = Blocks(pairs, length, runs, confidence, Guarantee(measure, claim.alpha, claim.beta), raised)
    return report(check, target, seeds, part="retroactivity", test=TEST)


@dataclass(frozen=True)
class Blocks(Check[Target]):
    """Pairs of histories to distinguish by blocks of answers; ``raised``: the type of exception the target raises."""

    pairs: dict[str, Pair]
    length: int
    runs: int
    confidence: float
    claim: Guarantee
    raised: str | None
    question = (
        "Once records have been deleted, how well can somebody who sees a few answers in a row still tell that they "
        "were ever there?"
    )

    def planted(self, target: Target) -> list[Iterator[tuple[str, Target]]]:
        bug = "an algorithm that says whether a deletion ever came, as a randomised response with {} times the alpha"
        alpha = max(self.claim.epsilon, 1e-3)
        traces = ((factor, partial(Trace, alpha * factor)) for factor in FACTORS)
        return [((bug.format(factor), replace(target, make=make)) for factor, make in traces)]

    def run(self, target: Target, seeds: Seeds) -> Finding:
        each, best = 1 - (1 - self.confidence) / len(self.pairs), (-1.0, "", 0.0, "")
        for number, (words, pair) in enumerate(self.pairs.items()):
            own = seeds.branch("runs", number)
            play = partial(_block, pair, self.length)
            found = judged(play, target.make, self.claim, own, runs=2 * self.runs, confidence=each)
            best = max(best, (*shown(found), words))
        alpha, how, most, words = best
        wrong, claim = alpha > self.claim.epsilon, self.claim
        text = "The guesser is not shown to do better than beta alone allows: alpha = 0 is not refuted."
        if alpha > 0:
            text = (
                f"The guesser shows that alpha is at least {decimal(alpha)} at beta = {decimal(claim.delta)} ({words}; "
                f"{how}), with confidence {decimal(self.confidence)}: {'more' if wrong else 'no more'} than is claimed."
            )
        if self.raised is not None:
            text += f" Not every history has an answer to compare: {self.raised} was raised."
        seen = "one answer" if self.length == 1 else f"{self.length} answers in a row"
        return Finding(
            tried=f"Two pairs of histories that unite ({'; '.join(self.pairs)}), each against a history without these "
            f"records; {2 * self.runs} runs of each pair, with a coin for the history, from which a guesser learns to "
            f"tell them apart by {seen} from the uniting round on. Claimed: alpha = {decimal(claim.epsilon)} at beta = "
            f"{decimal(claim.delta)}.",
            runs=2 * self.runs * len(self.pairs),
            verdict="violation" if wrong else "inconclusive" if self.raised is not None else "passed",
            found=text,
            measured={
                "alpha shown": decimal(alpha),
                "alpha claimed": decimal(claim.epsilon),
                "beta": decimal(claim.delta),
                "block": str(self.length),
                "largest alpha that can be shown": decimal(most),
            },
            counterexample=lambda: as_code(self.pairs[words]),
        )


def shown(found: Attack) -> tuple[float, str, float]:
    """The alpha shown at the claimed beta, how, and the largest that could be."""
    ways = [(found.epsilon, f"the {found.distinguisher} distinguisher")]
    if found.mu is not None:
        ways.append((_alpha(found), f"guesses in every run, as a bound on mu = {found.mu:.3g}"))
    return *max(ways), max(found.perfect.epsilon, _alpha(found.perfect))


def _alpha(found: Attack) -> float:
    """The alpha that follows from the bound on mu."""
    if not found.mu:
        return 0.0
    return epsilon_of(found.mu, found.claim.delta) if found.claim.delta else math.inf


def smoothed_by_gaussian(algorithm: object) -> bool:
    """Whether what is claimed of an algorithm, or of what it holds as ``inside``, is a claim on mu: Gaussian noise
    over a base that never fails."""
    inside = getattr(algorithm, "inside", algorithm)
    return isinstance(inside, Smoothed) and isinstance(inside.map, GaussianMap) and not inside.retroactivity.failure


class Trace:
    """What is planted: it says whether a deletion ever came, and lies with probability 1 / (1 + e^alpha), by one coin
    for all rounds: a block of its answers is (alpha, 0)-close, and no closer."""

    def __init__(self, alpha: float, key: Key) -> None:
        word = int(key.coins("trace").words([0], [0]).block(0)[0][0, 0])
        self._lies = word / 2**64 < 1 / (1 + math.exp(min(alpha, 700.0)))
        self._deleted = False

    def close(self, updates: Sequence[Update]) -> bytes:
        self._deleted |= any(not isinstance(update, Add) for update in updates)
        return b"1" if self._deleted != self._lies else b"0"


def _block(pair: Pair, length: int, make: Make, world: int, key: Key) -> list[bytes]:
    """The answers that are seen: in world 1 of the history that has a past."""
    history = pair.one if world else pair.other
    return answers(make, key, history[: pair.unite + length - 1])[pair.unite - 1 :]


# The pairs -------------------------------------------------------------------------------------------------------


def _churned(shape: Shape, unite: int) -> History:
    """All values come and go, as often as rounds allow it, and are gone by the uniting round."""
    rounds: list[list[Update]] = [[] for _ in range(unite)]
    for came in range(1, unite, 2):
        rounds[came - 1] += [Add(value) for value in shape.values]
        rounds[came] += [Delete(value, came) for value in shape.values]
    return tuple(map(tuple, rounds))


def _once(shape: Shape, unite: int) -> History:
    return ((Add(shape.values[0]),), *((),) * (unite - 2), (Delete(shape.values[0], 1),))


PASTS = {"every value came and went again and again": _churned, "one record came and went": _once}


def _pair(make: Callable[[Shape, int], History], shape: Shape, block: int) -> Pair:
    """Against nothing up to the uniting round; after it a record comes in every round, on both sides."""
    unite = shape.rounds - block + 1
    if unite < 2:
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
