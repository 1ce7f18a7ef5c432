"""Privacy from outside: the same stream with and without one operation, distinguished by what it publishes.

`neighbours` plays fixed pairs of histories, `adaptive` the game of Appendix B. A fair coin decides on the world of
every run, and every run has its own throw-away key, so right and wrong guesses bound epsilon (`bounds`). The bound is a
lower one: a small bound proves nothing. The smallest detectable error is measured every time, on the same stream with
noise that is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from ..arrays import I64
from ..coins import Key
from ..ledger.definition import Sequence as History
from ..privacy import GaussianDP, Guarantee
from ..testing import AdaptGame, Check, Finding, Shape
from ..testing.algorithm import Guarded, Make, answers, raised
from ..testing.features import columns
from ..testing.seeds import Seeds
from ..testing.shrink import both_written
from .adversaries import PLAYERS, Player, fixed_pairs, moved, telling
from .bounds import game_bound, mu_bound
from .distinguish import NOTHING, SHARE, Attack, attack
from .result import Result, Verdict, curve, decimal, idle, report
from .target import Target, fewer
from .weaker import Weaker, factors

# Large claims take more runs to refute: up to this many times as many are made.
MOST_TIMES = 4
ROUNDS = 5
# At least this many runs, however long they are.
LEAST = 200
# Runs to choose a pair of histories by: a part of all runs for each, and no fewer than these.
PILOT_SHARE, FEWEST = 20, 48
NEIGHBOURS = "Can somebody who reads everything that is published tell whether one operation took place?"
ADAPTIVE = "Can somebody who picks every update after seeing all answers before it find out about one operation?"
Play = Callable[[Make, int, Key], list[bytes]]
"""All that is seen of one run: of an algorithm, in world 0 or 1, under a key."""


def judged(
    play: Play, make: Make, claim: Guarantee, seeds: Seeds, *, runs: int, confidence: float, learned: bool = True
) -> Attack:
    """The best attack on many runs, each of a world that a coin chose."""
    seen, worlds = played(play, make, seeds, runs)
    own = seeds.branch("attack")
    return attack(columns(seen), worlds == 1, claim, confidence=confidence, seeds=own, learned=learned)


def played(play: Play, make: Make, seeds: Seeds, runs: int) -> tuple[list[list[bytes]], I64]:
    """What is seen of each run, and its world."""
    worlds, keys = seeds.branch("worlds").numpy().integers(0, 2, runs), seeds.branch("keys")
    return [play(make, int(world), keys.key(index)) for index, world in enumerate(worlds)], worlds


def shortened(target: Target) -> Target:
    """Games of few rounds, so that there can be many; of more where releases are rare, so that there are two."""
    spec = target.specification
    every = 1 if spec is None else max(statistic.every for statistic in spec.statistics.values())
    return target.with_rounds(min(max(ROUNDS, 2 * every), target.shape.rounds))


def enough(claim: Guarantee, runs: int, confidence: float) -> int | None:
    """The runs that an attacker who is nearly always right needs to refute the claim; None if that is too many.

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
        "published: only the tests that look inside can find a violation."
    )


@dataclass(frozen=True)
class ToldApart(Check[Target]):
    """Two worlds to distinguish by what is seen in many runs of a game."""

    play: Play
    tried: str
    pair: list[str]
    """What the worlds differ in, as code."""
    runs: int
    confidence: float
    weaker: Weaker
    factors: tuple[int, ...]
    adaptive: bool = False
    """Whether updates react to answers."""
    question: str = NEIGHBOURS

    def planted(self, target: Target) -> list[Iterator[tuple[str, Target]]]:
        """Noise that is too small, by larger and larger factors. A stream that publishes nothing of few records shows
        nothing, whatever its noise: then the method alone is tried, on a counter."""
        claim = replace(target.claim, adaptive=True)
        every = dict.fromkeys([self.weaker, replace(self.weaker, counter=True)])
        bugs = ((weaker, factor) for weaker in every for factor in self.factors)
        return [((w.words(factor), replace(target, make=w.make(factor), claim=claim)) for w, factor in bugs)]

    def run(self, target: Target, seeds: Seeds) -> Finding:
        own = seeds.branch("judged")
        found = judged(self.play, target.make, target.claim, own, runs=self.runs, confidence=self.confidence)
        failed = _failed(self.play, target.make, seeds.key())
        if found.distinguisher == NOTHING and failed is None:
            seen, _ = played(self.play, target.make, own, self.runs)
            if all(run == seen[0] for run in seen):
                return Finding(verdict="not applicable", found=_nothing(seen[0], target.shape.rounds, found.runs))
        verdict, text = verdict_of(found, adaptive=self.adaptive)
        if verdict == "passed" and failed is not None:
            verdict, text = "inconclusive", f"{text} Not every round has an answer to compare: {failed} was raised."
        return Finding(
            tried=f"{self.tried} {_method(self.runs, target.shape.rounds)}",
            runs=self.runs,
            verdict=verdict,
            found=text,
            measured=found.measured(),
            counterexample=lambda: self.pair,
            curves={"measured": curve(found.points)},
        )

    def result(self, target: Target, seeds: Seeds, test: str) -> Result:
        """A stream that would show nothing even with hardly any noise has not passed."""
        result = report(self, target, seeds, part="privacy", test=test)
        control = result.control
        if control is None or not control.caught or control.bug in map(self.weaker.words, self.factors):
            return result
        loudest = f"nothing of the stream itself, even with noise for {self.factors[-1]} times the epsilon"
        result = msgspec.structs.replace(result, detectable=f"{loudest}; else {result.detectable}")
        if result.verdict != "passed":
            return result
        text = f"{result.found} But nothing of the stream itself would have shown, even with hardly any noise."
        return msgspec.structs.replace(result, verdict="inconclusive", found=text)


def _nothing(seen: list[bytes], rounds: int, runs: int) -> str:
    """Why there is nothing to guess by, where this was seen in every run."""
    if any(seen[:rounds]):
        return f"The same was published in all {runs} runs that were judged: there is nothing to guess by."
    return f"Nothing is published in these {rounds} rounds."


def _failed(play: Play, make: Make, key: Key) -> str | None:
    """The type of an exception in one of the worlds, if there is one."""
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
        # Where a correct stream shows nothing: the pair that moves most of what one with little noise publishes.
        worth.append((first.expected, *moved(loud, key, one, other)))
    words, one, other = pairs[max(range(len(pairs)), key=lambda index: worth[index])]
    tried = (
        f"{len(pairs)} pairs of histories that differ in one operation, of which {pilot} runs each chose one: {words}."
    )
    code, play = both_written(one, other), fixed(one, other)
    check = ToldApart(play, tried, code, runs, confidence, weaker, factors(target))
    return check.result(target, seeds, "neighbours")


def adaptive(
    target: Target, seeds: Seeds, *, runs: int = 400, confidence: float = 0.999, players: Sequence[Player] = PLAYERS
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
    if target.shape.rounds < 2 and not play.challenges(target.make, seeds.key()):
        reason = "Within so few rounds no deletion is taken, so this adversary has nothing to do."
        return idle("privacy", name, ADAPTIVE, reason)
    weaker, last = Weaker.of(target, blind=player.name == "no-op deletion"), factors(target)[-1]
    tried, code = f"An adversary who {player.does}.", [f"retroact.audit.adversaries, {player.name}: {player.does}"]
    check = ToldApart(play, tried, code, runs, confidence, weaker, (last, 2 * last), True, ADAPTIVE)
    return check.result(target, seeds, name)


@dataclass(frozen=True)
class _Game:
    """What an adversary sees of one game: all answers, when it challenged, and the answer of that round."""

    player: Player
    shape: Shape

    def __call__(self, make: Make, world: int, key: Key) -> list[bytes]:
        game = AdaptGame(partial(Guarded, make), partial(self.player.make, self.shape), self.shape.rounds)
        view = game.play(world, key)
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
        f"{runs} runs of {rounds} rounds, each with its own key; a coin decided whether the operation took place. A "
        "quarter of the runs trained eight distinguishers, a quarter chose one of them, and the rest judged it."
    )


def verdict_of(found: Attack, *, adaptive: bool = False) -> tuple[Verdict, str]:
    """The verdict, and what was found in words. ``adaptive``: whether the updates reacted to answers."""
    claim, sure = found.claim, f"with confidence {found.confidence:.6g}"
    share = f"{found.correct} of {found.guesses} guesses in {found.runs} runs were right"
    fixed = adaptive and not claim.adaptive
    proven = f"{share}: epsilon is at least {decimal(found.epsilon)}, {sure}"
    if found.violated:
        text = f"{proven}, and {decimal(claim.epsilon)} is claimed"
        if found.epsilon <= claim.epsilon:
            right = f"{found.forced_correct} of {found.runs} guesses were right"
            text = f"{right}: mu is at least {decimal(found.mu or 0.0)}, {sure}, more than is claimed"
        if fixed:
            return "inconclusive", f"{text}. The claim is for streams that do not react to answers, and this one did."
        return "violation", f"{text}."
    if not found.perfect.violated:
        most = decimal(found.perfect.epsilon)
        few = f"So few runs cannot show more than epsilon = {most}, and {decimal(claim.epsilon)} is claimed."
        return "inconclusive", f"{share}. {few}"
    text = f"{proven}; {decimal(claim.epsilon)} is claimed."
    return "passed", f"{text} The claim is for streams that do not react to answers." if fixed else text
