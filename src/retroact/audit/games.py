"""Privacy from outside: the same stream with and without one operation, told apart by what it publishes.

`neighbours` plays fixed pairs of histories, `adaptive` the game of Appendix B. A fair coin decides on the world of
every run, and every run has a throw-away key of its own, so right and wrong guesses bound epsilon (`bounds`). What is
found is a lower bound: a small one proves nothing. How small an error would have shown is measured every time, on the
same stream with noise that is too small.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

from ..coins import Key
from ..coins.laplace import DiscreteLaplace
from ..errors import InputError
from ..ledger.model import Add, Delete, Update
from ..ledger.model import Sequence as History
from ..privacy import GaussianDP, Guarantee
from ..stream import Specification
from ..testing import AdaptGame, Algorithm, Shape, run
from .adversaries import PLAYERS, Player, crowd, deletion_round
from .answers import columns, parts
from .bounds import game_bound, mu_bound
from .distinguish import SHARE, Attack, attack
from .result import Control, Result, Verdict, curve, decimal, idle
from .seeds import Seeds
from .target import Make, MakeStream, Target

# The noise of a control is for so many times the epsilon.
FACTORS = (4, 16, 64)
COARSE = FACTORS[-1:]
# Large claims take more runs to refute: up to so many times more are made.
MOST_TIMES = 4
ROUNDS = 5
# To choose a pair of histories, a part of the runs for each, and no fewer than these.
PILOT_SHARE, FEWEST = 20, 48
NEIGHBOURS = "Can somebody who reads everything that is published tell whether one operation took place?"
ADAPTIVE = "Can somebody who picks every update after seeing all answers before it find out about one operation?"
Play = Callable[[Make, int, Key], list[bytes]]
"""All that is seen of one run, under a make, in world 0 or 1, with a key."""


class NoisyCount:
    """The number of surviving records (without ids), with a noise of its own in every round. `blind`: a deletion counts
    even if what it names is not there."""

    def __init__(self, noise: Sequence[int], *, blind: bool) -> None:
        self._noise, self._blind = noise, blind
        self._there: Counter[tuple[int, Any]] = Counter()
        self._round, self._count = 0, 0

    def close(self, updates: Sequence[Update]) -> bytes:
        self._round += 1
        for update in updates:
            if isinstance(update, Add):
                self._there[update.stamp or self._round, update.value] += 1
                self._count += 1
        for update in updates:
            if isinstance(update, Delete) and (self._blind or self._there[update.stamp, update.value] > 0):
                self._there[update.stamp, update.value] -= 1
                self._count -= 1
        return str(self._count + self._noise[self._round - 1]).encode()


@dataclass(frozen=True)
class MakeCount:
    """Private for ``epsilon`` over so many rounds, if it is not `blind`."""

    epsilon: float
    rounds: int
    blind: bool = False

    def __call__(self, key: Key, /) -> Algorithm:
        words = key.coins("count").words([0] * self.rounds, range(self.rounds))
        noise = DiscreteLaplace(self.rounds / Fraction(self.epsilon)).sample(words)
        return NoisyCount(noise[:, 0].tolist(), blind=self.blind)


@dataclass(frozen=True)
class Weaker:
    """The target with noise that is too small by a factor: a stream itself, else a counter in its place."""

    target: Target
    blind: bool = False
    counter: bool = False

    @classmethod
    def of(cls, target: Target, *, blind: bool = False) -> Weaker:
        try:
            if target.specification is not None:
                _raised(target.specification, FACTORS[-1])
        except InputError:
            return cls(target, blind, counter=True)
        return cls(target, blind, counter=blind or target.specification is None)

    def make(self, factor: int) -> Make:
        spec = self.target.specification
        if spec is None or self.counter:
            return MakeCount(self.target.claim.epsilon * factor, self.target.shape.rounds, self.blind)
        return MakeStream(_raised(spec, factor))

    def loudest(self) -> Make:
        """With as little noise as there is, or the target itself: to see under one key what moves its answers."""
        return self.target.make if self.counter else self.make(FACTORS[-1])

    def words(self, factor: int) -> str:
        if self.blind:
            return f"a counter that counts a deletion of what is not there, with noise for {factor} times the epsilon"
        what = "a counter with the same claim" if self.counter else "the same stream"
        return f"{what}, with noise for {factor} times the epsilon that is claimed"


def _raised(spec: Specification, factor: int) -> Specification:
    return spec.replace(epsilon=float(spec.epsilon) * factor)


@dataclass(frozen=True)
class Finding:
    """An attack, held against a claim."""

    attack: Attack
    claim: Guarantee
    confidence: float

    @property
    def mu(self) -> float | None:
        """The bound on mu, for a claim in terms of it."""
        return self.attack.mu(self.confidence) if isinstance(self.claim.measure, GaussianDP) else None

    @property
    def violated(self) -> bool:
        measure = self.claim.measure
        too_large = self.mu is not None and isinstance(measure, GaussianDP) and self.mu > measure.mu
        return self.attack.epsilon > self.claim.epsilon or too_large

    @property
    def provable(self) -> bool:
        """Whether a guesser who is always right could violate the claim with so many runs."""
        always = replace(self.attack, forced_correct=self.attack.runs)
        always = replace(always, epsilon=self.attack.most(self.claim.delta, self.confidence))
        return self.violated or replace(self, attack=always).violated

    def measured(self) -> dict[str, str]:
        own = self.attack
        out = {"epsilon at least": decimal(own.epsilon), "epsilon claimed": decimal(self.claim.epsilon)}
        if self.claim.delta:
            out["delta claimed"] = decimal(self.claim.delta)
        if self.mu is not None and isinstance(self.claim.measure, GaussianDP):
            out |= {"mu at least": decimal(self.mu), "mu claimed": decimal(self.claim.measure.mu)}
        return out | {
            "distinguisher": own.distinguisher,
            "right guesses": decimal(own.correct),
            "guesses": decimal(own.guesses),
            "runs judged": decimal(own.runs),
        }


def judged(
    play: Play, make: Make, claim: Guarantee, seeds: Seeds, *, runs: int, confidence: float, learned: bool = True
) -> Finding:
    """So many runs, each of a world that a coin chose, and the best attack on them."""
    worlds = seeds.branch("worlds").numpy().integers(0, 2, runs)
    keys = seeds.branch("keys")
    views = columns([play(make, int(world), keys.key(index)) for index, world in enumerate(worlds)])
    # Both bounds of a Gaussian claim must hold together.
    each = (1 + confidence) / 2 if isinstance(claim.measure, GaussianDP) else confidence
    zero, one = (views.take(worlds == world) for world in (0, 1))
    own = seeds.branch("attack")
    return Finding(attack(zero, one, delta=claim.delta, confidence=each, seeds=own, learned=learned), claim, each)


def shortened(target: Target) -> Target:
    """Games of few rounds, so that there are many of them; more where releases or deletions are rare."""
    spec, rounds = target.specification, ROUNDS
    if spec is not None:
        rare = [statistic.every for statistic in spec.statistics.values()]
        rounds = max(rounds, 2 * max(rare), (spec.deletions_every or 0) + 2)
    return target.with_rounds(min(rounds, target.shape.rounds))


def enough(claim: Guarantee, runs: int, confidence: float) -> int | None:
    """At least so many runs: as many as an attacker who is nearly always right needs to refute the claim; None where
    that is too many.

    >>> from retroact.privacy import PureDP
    >>> [enough(Guarantee(PureDP(e), epsilon=e), 100, 0.999) for e in (1.0, 3.0, 9.0)]
    [100, 400, None]
    """
    for times in (1, 2, MOST_TIMES):
        judging = times * runs - 2 * int(times * runs * SHARE)
        right = judging - judging // 100 - 1
        epsilon = game_bound(right, judging, judging, claim.delta, confidence)
        mu = mu_bound(right, judging, confidence) if isinstance(claim.measure, GaussianDP) else 0.0
        if epsilon > claim.epsilon or (isinstance(claim.measure, GaussianDP) and mu > claim.measure.mu):
            return times * runs
    return None


def too_large(claim: Guarantee, runs: int) -> str:
    if claim.epsilon == math.inf:
        return "No privacy is claimed."
    return (
        f"Even {MOST_TIMES * runs:,} runs could not refute a claim of epsilon = {decimal(claim.epsilon)}, whatever is "
        "published: the tests from inside are what counts."
    )


def smallest(
    play: Play, weaker: Weaker, seeds: Seeds, factors: Sequence[int], *, runs: int, confidence: float
) -> tuple[Control, str]:
    """The control with the smallest factor that is caught; and what can be seen, in words."""
    claim = weaker.target.claim
    for factor in factors:
        make, own = weaker.make(factor), seeds.branch("factor", factor)
        found = judged(play, make, claim, own, runs=runs, confidence=confidence)
        if found.violated:
            control = Control(bug=weaker.words(factor), caught=True, how=verdict_of(found)[1])
            return control, f"{control.bug}: measured, with as many runs"
    if weaker.counter:
        how = f"not caught: {runs} runs are too few"
        return Control(bug=weaker.words(factors[-1]), caught=False, how=how), "nothing: the control was not caught"
    # What publishes nothing of few records shows nothing here, whatever its noise: then the method alone is tried.
    control, seen = smallest(
        play, replace(weaker, counter=True), seeds.branch("counter"), factors, runs=runs, confidence=confidence
    )
    return control, f"nothing of the stream itself, even with noise for {factors[-1]} times the epsilon; else {seen}"


def neighbours(target: Target, seeds: Seeds, *, runs: int = 1500, confidence: float = 0.999) -> Result:
    """Fixed pairs of histories that differ in one operation; the pair that promises most is chosen by other runs."""
    target, needed = shortened(target), enough(target.claim, runs, confidence)
    if needed is None:
        return idle("privacy", "neighbours", NEIGHBOURS, too_large(target.claim, runs))
    runs = needed
    weaker, pilot = Weaker.of(target), max(FEWEST, runs // PILOT_SHARE)
    loud, key = weaker.loudest(), seeds.branch("loud").key()
    pairs = fixed_pairs(telling(target.shape, loud, key))
    worth: list[tuple[float, ...]] = []
    for index, (_, one, other) in enumerate(pairs):
        own = seeds.branch("pilot", index)
        first = judged(fixed(one, other), target.make, target.claim, own, runs=pilot, confidence=0.9, learned=False)
        # Where a right stream shows nothing, the pair is taken that moves most of what one with little noise publishes.
        worth.append((first.attack.expected, *_moved(loud, key, one, other)))
    words, one, other = pairs[max(range(len(pairs)), key=lambda index: worth[index])]
    play = fixed(one, other)
    found = judged(play, target.make, target.claim, seeds.branch("judged"), runs=runs, confidence=confidence)
    control, detectable = smallest(play, weaker, seeds.branch("control"), FACTORS, runs=runs, confidence=confidence)
    verdict, text = verdict_of(found)
    return Result(
        part="privacy",
        test="neighbours",
        question=NEIGHBOURS,
        tried=f"{len(pairs)} pairs of histories that differ in one operation, of which {pilot} runs each chose one: "
        f"{words}. {_method(runs)}",
        runs=runs,
        verdict=verdict,
        found=text,
        detectable=detectable,
        control=control,
        measured=found.measured(),
        counterexample=[f"one = {written(one)}", f"other = {written(other)}"] if found.violated else [],
        curves={"measured": curve(found.attack.points)},
    )


def adaptive(
    target: Target,
    seeds: Seeds,
    *,
    runs: int = 400,
    confidence: float = 0.999,
    players: Sequence[Player] = PLAYERS,
) -> list[Result]:
    """The game of Appendix B, one adversary after the other."""
    target = shortened(target)
    shape = telling(target.shape, Weaker.of(target).loudest(), seeds.branch("loud").key())
    own = replace(target, shape=shape)
    return [_against(own, player, seeds.branch(player.name), runs, confidence) for player in players]


def _against(target: Target, player: Player, seeds: Seeds, runs: int, confidence: float) -> Result:
    play = _Game(player, target.shape)
    name = f"adaptive: {player.name}"
    needed = enough(target.claim, runs, confidence)
    if needed is None:
        return idle("privacy", name, ADAPTIVE, too_large(target.claim, runs))
    runs = needed
    if not play.challenges(target.make, seeds.key()):
        reason = "Within so few rounds no deletion is taken, so this adversary has nothing to do."
        return idle("privacy", name, ADAPTIVE, reason)
    found = judged(play, target.make, target.claim, seeds.branch("judged"), runs=runs, confidence=confidence)
    weaker = Weaker.of(target, blind=player.name == "no-op deletion")
    control, detectable = smallest(play, weaker, seeds.branch("control"), COARSE, runs=runs, confidence=confidence)
    verdict, text = verdict_of(found, adaptive=True)
    return Result(
        part="privacy",
        test=name,
        question=ADAPTIVE,
        tried=f"An adversary who {player.does}. {_method(runs)}",
        runs=runs,
        verdict=verdict,
        found=text,
        detectable=detectable,
        control=control,
        measured=found.measured(),
        counterexample=[f"retroact.audit.adversaries, {player.name}: {player.does}"] if found.violated else [],
        curves={"measured": curve(found.attack.points)},
    )


@dataclass(frozen=True)
class _Game:
    """What an adversary sees of one game: all answers, when it challenged, and the answer of that round."""

    player: Player
    shape: Shape

    def __call__(self, make: Make, world: int, key: Key) -> list[bytes]:
        view = AdaptGame(make, self.player.make(self.shape), self.shape.rounds).play(world, key)
        if not view.challenges:
            return [*view.answers, b"0", b""]
        round = view.challenges[0][0]
        return [*view.answers, str(round).encode(), view.answers[round - 1]]

    def challenges(self, make: Make, key: Key) -> bool:
        return self(make, 1, key)[-2] != b"0"


def fixed(one: History, other: History) -> Play:
    """World 0 is the one history, world 1 the other."""

    def play(make: Make, world: int, key: Key) -> list[bytes]:
        return run(make, key, other if world else one)

    return play


def fixed_pairs(shape: Shape) -> list[tuple[str, History, History]]:
    """Neighbouring histories: what they differ in, without it, with it.

    >>> [words for words, *_ in fixed_pairs(Shape(("a", "b"), rounds=4))][0]
    'one record, added in the first round'
    """
    nothing: History = ((),) * shape.rounds
    values = list(dict.fromkeys(shape.values))
    crowded = _with(nothing, 1, *crowd(shape))
    out = [("one record, added in the first round", nothing, _with(nothing, 1, Add(values[0])))]
    out.append(("one record among many, added in the first round", crowded, _with(crowded, 1, Add(values[0]))))
    first, middle = deletion_round(shape, 2), deletion_round(shape, shape.rounds // 2 + 1)
    if first is not None:
        base = _with(nothing, 1, Add(values[0]))
        out.append(("the deletion of a record", base, _with(base, first, Delete(values[0], 1))))
        many = _with(crowded, 1, Add(values[0]))
        out.append(("the deletion of one record among many", many, _with(many, first, Delete(values[0], 1))))
    if middle is not None:
        base = _with(nothing, middle, Delete(values[0], 1))
        words = "one record, added in the first round and deleted later; without it the deletion finds nothing"
        out.append((words, base, _with(base, 1, Add(values[0]))))
    return out


def telling(shape: Shape, make: Make, key: Key) -> Shape:
    """The shape with the value first that moves what is published most: a sum does not show a record of 0."""
    crowded = _with(((),) * shape.rounds, 1, *crowd(shape))
    values = list(dict.fromkeys(shape.values))
    moved = {value: _moved(make, key, crowded, _with(crowded, 1, Add(value))) for value in values}
    best = max(values, key=lambda value: moved[value])
    return replace(shape, values=(best, *(value for value in values if value != best)))


def _moved(make: Make, key: Key, one: History, other: History) -> tuple[int, float]:
    """How many places differ under one key, and by how much together."""
    places, distance = 0, 0.0
    for left, right in zip(*(map(parts, run(make, key, history)) for history in (one, other)), strict=True):
        for place in sorted(left.keys() | right.keys()):
            a, b = left.get(place), right.get(place)
            places += a != b
            if a is not None and b is not None and not isinstance(a, str) and not isinstance(b, str):
                distance += abs(float(a) - float(b))
    return places, distance


def _with(base: History, round: int, *updates: Update) -> History:
    return (*base[: round - 1], (*base[round - 1], *updates), *base[round:])


def written(history: History) -> str:
    """As code, with equal updates in a row counted.

    >>> written(((Add("a"),) * 3, ()))
    "((Add(value='a', stamp=None, id=None, subject=None),) * 3, ())"
    """
    rounds = []
    for updates in history:
        runs = [(update, len([*equal])) for update, equal in groupby(updates)]
        rounds.append(" + ".join(f"({update!r},)" + f" * {count}" * (count > 1) for update, count in runs) or "()")
    return f"({', '.join(rounds)},)" if len(rounds) == 1 else f"({', '.join(rounds)})"


def _method(runs: int) -> str:
    return (
        f"{runs} runs, each with a key of its own; a coin decided whether the operation took place. A quarter of the "
        "runs taught a dozen ways of telling the two cases apart, a quarter chose one of them, and the rest judged it."
    )


def verdict_of(found: Finding, *, adaptive: bool = False) -> tuple[Verdict, str]:
    """The verdict, and what was found in words. `adaptive`: whether the updates reacted to answers."""
    own, claim = found.attack, found.claim
    share = f"{own.correct} of {own.guesses} guesses in {own.runs} runs were right"
    sure = f"with confidence {found.confidence:.6g}"
    if found.violated:
        if own.epsilon > claim.epsilon:
            text = (
                f"{share}: epsilon is at least {decimal(own.epsilon)}, {sure}, and {decimal(claim.epsilon)} is claimed"
            )
        else:
            right = f"{own.forced_correct} of {own.runs} guesses were right"
            text = f"{right}: mu is at least {decimal(found.mu or 0.0)}, {sure}, more than is claimed"
        if adaptive and not claim.adaptive:
            return "inconclusive", f"{text}. The claim is for streams that do not react to answers, and this one did."
        return "violation", f"{text}."
    if not found.provable:
        return (
            "inconclusive",
            f"{share}. So few runs cannot show more than epsilon = {decimal(own.most(claim.delta, found.confidence))}, "
            f"and {decimal(claim.epsilon)} is claimed.",
        )
    text = f"{share}: epsilon is at least {decimal(own.epsilon)}, {sure}; {decimal(claim.epsilon)} is claimed."
    if adaptive and not claim.adaptive:
        text += " The claim is for streams that do not react to answers."
    return "passed", text
