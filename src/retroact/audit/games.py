"""Privacy from outside: the same stream with and without one operation, told apart by what it publishes.

`neighbours` plays fixed pairs of histories, `adaptive` the game of Appendix B. A fair coin decides on the world of
every run, and every run has a throw-away key of its own, so right and wrong guesses bound epsilon (`bounds`). What is
found is a lower bound: a small one proves nothing. How small an error would have shown is measured every time, on the
same stream with noise that is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Sequence as History
from ..privacy import GaussianDP, Guarantee
from ..stream import Specification
from ..testing import AdaptGame, Shape
from .adversaries import PLAYERS, Player, fixed_pairs, moved, telling, written
from .answers import columns
from .bounds import game_bound, mu_bound
from .distinguish import NOTHING, SHARE, Attack, attack
from .result import Control, Result, Verdict, curve, decimal, idle
from .seeds import Seeds
from .target import Guard, Make, MakeCount, MakeStream, Target, answers, fewer, raised

# The noise of a control is for so many times the epsilon; and the last control is for an epsilon of at least this.
FACTORS, LOUD = (4, 16, 64), 64
# Large claims take more runs to refute: up to so many times more are made.
MOST_TIMES = 4
ROUNDS = 5
# Runs, however long they are.
LEAST = 200
# To choose a pair of histories, a part of the runs for each, and no fewer than these.
PILOT_SHARE, FEWEST = 20, 48
NEIGHBOURS = "Can somebody who reads everything that is published tell whether one operation took place?"
ADAPTIVE = "Can somebody who picks every update after seeing all answers before it find out about one operation?"
Play = Callable[[Make, int, Key], list[bytes]]
"""All that is seen of one run, under a make, in world 0 or 1, with a key."""


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
                _raised(target.specification, factors(target)[-1])
        except InputError:
            return cls(target, blind, counter=True)
        return cls(target, blind, counter=blind or target.specification is None)

    def make(self, factor: int) -> Make:
        spec = self.target.specification
        if spec is None or self.counter:
            return MakeCount(base(self.target.claim) * factor, self.target.shape.rounds, self.blind)
        return MakeStream(_raised(spec, factor))

    def loudest(self) -> Make:
        """With as little noise as there is, or the target itself: to see under one key what moves its answers."""
        return self.target.make if self.counter else self.make(factors(self.target)[-1])

    def words(self, factor: int) -> str:
        much = f"{factor} times the epsilon" if self.target.claim.epsilon else f"epsilon = {factor}"
        if self.blind:
            return f"a counter that counts a deletion of what is not there, with noise for {much}"
        what = "a counter with the same claim" if self.counter else "the same stream"
        return f"{what}, with noise for {much} that is claimed" if self.target.claim.epsilon else f"{what}, for {much}"


def base(claim: Guarantee) -> float:
    """The epsilon of counters for a claim: nothing counts for 0."""
    return claim.epsilon or 1.0


def factors(target: Target) -> tuple[int, ...]:
    """The last one is large enough for the noise to be small, however small the epsilon."""
    last = math.ceil(LOUD / max(base(target.claim), 1e-300))
    return FACTORS if last <= FACTORS[-1] else (*FACTORS, last)


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
    """Games of few rounds, so that there are many of them; more where releases are rare, so that there are two."""
    spec, rounds = target.specification, ROUNDS
    every = 1 if spec is None else max(statistic.every for statistic in spec.statistics.values())
    return target.with_rounds(min(max(rounds, 2 * every), target.shape.rounds))


def enough(claim: Guarantee, runs: int, confidence: float) -> int | None:
    """At least so many runs: as many as an attacker who is nearly always right needs to refute the claim; None where
    that is too many.

    >>> from retroact.privacy import PureDP
    >>> [enough(Guarantee(PureDP(e), epsilon=e), 100, 0.999) for e in (1.0, 2.5, 9.0)]
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


class Smallest(NamedTuple):
    """The control with the smallest factor that is caught; what can be seen, in words; and whether a control of the
    target's own kind was caught, not only a counter in its place."""

    control: Control
    detectable: str
    own: bool = True


def smallest(
    play: Play, weaker: Weaker, seeds: Seeds, factors: Sequence[int], *, runs: int, confidence: float
) -> Smallest:
    claim = weaker.target.claim
    for factor in factors:
        make, own = weaker.make(factor), seeds.branch("factor", factor)
        found = judged(play, make, claim, own, runs=runs, confidence=confidence)
        if found.violated:
            control = Control(bug=weaker.words(factor), caught=True, how=verdict_of(found)[1])
            return Smallest(control, f"{control.bug}: measured, with as many runs")
    if weaker.counter:
        how = f"not caught: {runs} runs are too few"
        control = Control(bug=weaker.words(factors[-1]), caught=False, how=how)
        return Smallest(control, "nothing: the control was not caught")
    # What publishes nothing of few records shows nothing here, whatever its noise: then the method alone is tried.
    control, seen, _ = smallest(
        play, replace(weaker, counter=True), seeds.branch("counter"), factors, runs=runs, confidence=confidence
    )
    text = f"nothing of the stream itself, even with noise for {factors[-1]} times the epsilon; else {seen}"
    return Smallest(control, text, own=False)


def _judgement(found: Finding, shown: Smallest, failed: str | None, *, adaptive: bool = False) -> tuple[Verdict, str]:
    """The verdict, with regard to what could have been seen: what shows nothing has not passed."""
    verdict, text = verdict_of(found, adaptive=adaptive)
    if verdict == "passed" and failed is not None:
        return "inconclusive", f"{text} Not every round has an answer to compare: {failed} was raised."
    if verdict == "passed" and not shown.own:
        return "inconclusive", f"{text} But nothing of the stream itself would have shown, even with hardly any noise."
    return verdict, text


def _nothing(play: Play, target: Target, found: Finding, key: Key) -> str | None:
    """Why there was nothing to guess by, if so."""
    if found.attack.distinguisher != NOTHING or _failed(play, target.make, key) is not None:
        return None
    if any(any(play(target.make, world, key)[: target.shape.rounds]) for world in (0, 1)):
        return f"The same was published in all {found.attack.runs} runs that were judged: there is nothing to guess by."
    return f"Nothing is published in these {target.shape.rounds} rounds."


def _failed(play: Play, make: Make, key: Key) -> str | None:
    """The type of what the algorithm raises in one of the worlds, if it does."""
    names = [raised(play(make, world, key)) for world in (0, 1)]
    return names[0] or names[1]


def neighbours(target: Target, seeds: Seeds, *, runs: int = 1500, confidence: float = 0.999) -> Result:
    """Fixed pairs of histories that differ in one operation; the pair that promises most is chosen by other runs."""
    target = shortened(target)
    runs = fewer(runs, LEAST, ROUNDS, target.shape.rounds)
    needed = enough(target.claim, runs, confidence)
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
        worth.append((first.attack.expected, *moved(loud, key, one, other)))
    words, one, other = pairs[max(range(len(pairs)), key=lambda index: worth[index])]
    play = fixed(one, other)
    found = judged(play, target.make, target.claim, seeds.branch("judged"), runs=runs, confidence=confidence)
    reason = _nothing(play, target, found, key)
    if reason is not None:
        return idle("privacy", "neighbours", NEIGHBOURS, reason)
    shown = smallest(play, weaker, seeds.branch("control"), factors(target), runs=runs, confidence=confidence)
    verdict, text = _judgement(found, shown, _failed(play, target.make, key))
    return Result(
        part="privacy",
        test="neighbours",
        question=NEIGHBOURS,
        tried=f"{len(pairs)} pairs of histories that differ in one operation, of which {pilot} runs each chose one: "
        f"{words}. {_method(runs, target.shape.rounds)}",
        runs=runs,
        verdict=verdict,
        found=text,
        detectable=shown.detectable,
        control=shown.control,
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
    runs = fewer(runs, LEAST, ROUNDS, target.shape.rounds)
    needed = enough(target.claim, runs, confidence)
    if needed is None:
        return idle("privacy", name, ADAPTIVE, too_large(target.claim, runs))
    runs = needed
    if not play.challenges(target.make, seeds.key()):
        reason = "Within so few rounds no deletion is taken, so this adversary has nothing to do."
        return idle("privacy", name, ADAPTIVE, reason)
    found = judged(play, target.make, target.claim, seeds.branch("judged"), runs=runs, confidence=confidence)
    nothing = _nothing(play, target, found, seeds.key())
    if nothing is not None:
        return idle("privacy", name, ADAPTIVE, nothing)
    weaker = Weaker.of(target, blind=player.name == "no-op deletion")
    loudest = factors(target)[-1:]
    shown = smallest(play, weaker, seeds.branch("control"), loudest, runs=runs, confidence=confidence)
    verdict, text = _judgement(found, shown, _failed(play, target.make, seeds.key()), adaptive=True)
    return Result(
        part="privacy",
        test=name,
        question=ADAPTIVE,
        tried=f"An adversary who {player.does}. {_method(runs, target.shape.rounds)}",
        runs=runs,
        verdict=verdict,
        found=text,
        detectable=shown.detectable,
        control=shown.control,
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
        view = AdaptGame(Guard(make), partial(self.player.make, self.shape), self.shape.rounds).play(world, key)
        if not view.challenges:
            return [*view.answers, b"0", b""]
        round = view.challenges[0][0]
        return [*view.answers, str(round).encode(), view.answers[round - 1]]

    def challenges(self, make: Make, key: Key) -> bool:
        return self(make, 1, key)[-2] != b"0"


def fixed(one: History, other: History) -> Play:
    """World 0 is the one history, world 1 the other."""

    def play(make: Make, world: int, key: Key) -> list[bytes]:
        return answers(make, key, other if world else one)

    return play


def _method(runs: int, rounds: int) -> str:
    return (
        f"{runs} runs of {rounds} rounds, each with a key of its own; a coin decided whether the operation took place. "
        "A quarter of the runs taught a dozen ways of telling the two cases apart, a quarter chose one of them, and "
        "the rest judged it."
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
