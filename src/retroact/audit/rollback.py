"""Rolling back: the same noise on two sets of data reveals their difference, so no round may be published twice.

A durable stream is published, its folder is set back to an older copy, and the rounds since then are published again if
it lets us. The control is the rollback that nothing can notice: the mark of the last published round, which lies
outside the folder, is set back as well. Of an algorithm whose state can be given back, two branches are attacked.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..coins import Key
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Update
from ..stream import Specification, Stream
from ..stream.durable import Durable
from ..testing import Algorithm, Persistent, Shape, StreamAlgorithm
from ..testing.algorithm import Make, answers, failure, raised, without_sources
from ..testing.check import Check, Finding
from ..testing.seeds import Seeds
from .adversaries import crowd, telling
from .games import judged, verdict_of
from .result import Result, decimal, idle, report
from .target import Target
from .weaker import MakeCount, Weaker, base

# Both branches are published for this many rounds.
BRANCH = 4
TEST = "rollback"
QUESTION = "If the stream is set back to an older copy of itself, is any noise spent a second time, on other data?"


def rollback(target: Target, seeds: Seeds, *, runs: int = 300, confidence: float = 0.999) -> Result:
    """Key reuse after a rollback: of a durable stream, or of an algorithm whose state can be given back."""
    if target.shape.rounds < 3:
        return idle("privacy", TEST, QUESTION, "A history of fewer than three rounds has nothing to set back.")
    shape = telling(target.shape, Weaker.of(target).loudest(), seeds.branch("loud").key())
    target = replace(target, shape=shape)
    if target.specification is None:
        return report(Branches(runs, confidence), target, seeds, part="privacy", test=TEST)
    check = SetBack(target, without_sources(target.specification), seeds.key())
    return report(check, False, seeds, part="privacy", test=TEST)


@dataclass(frozen=True)
class SetBack(Check[bool]):
    """A durable stream, set back to an older copy: with the mark of the last published round, or without."""

    target: Target
    specification: Specification
    key: Key
    question = QUESTION

    def not_applicable(self, target: bool) -> str | None:
        rounds = self.target.shape.rounds
        if any(answers(self.target.make, self.key, ((),) * (2 * rounds // 3))[rounds // 3 :]):
            return None
        return f"Nothing is published in the middle of {rounds} rounds, so there is nothing to set back."

    def planted(self, target: bool) -> list[list[tuple[str, bool]]]:
        return [[("folder and mark set back together", True)]]

    def run(self, target: bool, seeds: Seeds) -> Finding:
        spec, shape = self.specification, self.target.shape
        problems = published_twice(spec, shape, self.key, fence_too=target)
        problems += [] if target else lost_fence(spec, shape, self.key)
        held = (
            "The older copy was refused; opened as a restored one it published no round again, and went on with rounds "
            "that had not been published. Without the mark of the last published round it was not opened until a round "
            "was named after which nothing was published, and none before the last one was accepted."
        )
        return Finding(
            tried="A durable stream is published for some rounds, its folder is copied, and it is published further. "
            "Then the older copy is put back and the rounds since are published again with one record more. Then the "
            "mark of the last published round, which lies outside the folder, is lost.",
            runs=1,
            verdict="violation" if problems else "passed",
            found=" ".join(problems) or held,
            detectable="one round that is published twice, or one whose noise was used before (compared byte by byte)",
            counterexample=lambda: problems,
        )


# The files of a stream -----------------------------------------------------------------------------------------------


def published_twice(spec: Specification, shape: Shape, key: Key, *, fence_too: bool) -> list[str]:
    """What goes wrong when a stream is published further, set back, and published again with one record more."""
    first, last, problems = shape.rounds // 3, 2 * shape.rounds // 3, []
    with tempfile.TemporaryDirectory() as place:
        folder, copy, fence = Path(place) / "stream", Path(place) / "copy", Path(place) / "outside.fence"

        def opened(restored: bool = False) -> Durable:
            return Stream.open(folder, specification=spec, key=key, fence=fence, restored=restored)

        with opened() as stream:
            _publish(stream, spec, range(1, first + 1), crowd(shape))
        shutil.copytree(folder, copy)
        mark = fence.read_bytes()
        with opened() as stream:
            before = _publish(stream, spec, range(first + 1, last + 1), ())
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
        if fence_too:
            fence.write_bytes(mark)
        try:
            opened().close()
            problems.append("A copy older than what was published was opened without objection.")
        except VerificationError:
            pass
        with opened(restored=not fence_too) as stream:
            again = _publish(stream, spec, range(first + 1, last + 1), (Add(shape.values[0]),))
            _publish(stream, spec, range(last + 1, shape.rounds + 1), ())
            listed = [(line["round"], line["statistic"]) for line in stream.releases()]
        if len(listed) != len({*listed}):
            problems.append("The journal holds a round twice.")
    twice = [round for round, answer in again.items() if answer and before[round]]
    if twice:
        problems.append(f"Round {twice[0]} was published a second time, with another record in the data.")
    return problems


def lost_fence(spec: Specification, shape: Shape, key: Key) -> list[str]:
    """Where the mark is lost, a stream is opened only with a new one, at or after the last round it published."""
    last = shape.rounds // 2
    with tempfile.TemporaryDirectory() as place:
        folder, fence = Path(place) / "stream", Path(place) / "outside.fence"

        def opened(after: int | None = None) -> Durable:
            asked = after is not None  # there were none
            return Stream.open(folder, specification=spec, key=key, fence=fence, after=after, erasures_asked=asked)

        with opened() as stream:
            _publish(stream, spec, range(1, last + 1), crowd(shape))
        fence.unlink()
        try:
            opened().close()
            return ["Without the mark of the last published round the stream was opened without objection."]
        except VerificationError:
            pass
        try:
            opened(after=last - 1).close()
            return ["A new mark was set before a round that had been published."]
        except InputError:
            pass
        with opened(after=last) as stream:
            _publish(stream, spec, range(last + 1, shape.rounds + 1), ())
            listed = [(line["round"], line["statistic"]) for line in stream.releases()]
    return [] if len(listed) == len({*listed}) else ["With a new mark a round was published a second time."]


def _publish(stream: Stream, spec: Specification, rounds: range, updates: Sequence[Add]) -> dict[int, bytes]:
    """Closes these rounds, the first one with these updates."""
    algorithm = StreamAlgorithm(spec, Key.for_testing(0), chunk=1000, stream=stream)
    return {round: algorithm.close(updates if round == rounds[0] else ()) for round in rounds}


# Two branches of one state -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forked:
    """The answers of two branches of one state, under one key; in world 1 the second has one record more. And whether
    they are equal, byte for byte: where the noise is the same, that shows the record however much noise there is."""

    shape: Shape

    def __call__(self, make: Make, world: int, key: Key) -> list[bytes]:
        more: list[Update] = [Add(self.shape.values[0])] if world else []
        rounds = min(BRANCH, self.shape.rounds - 1)
        try:
            start = self._begun(make, key)
            state = start.state() if isinstance(start, Persistent) else b""
            branches: list[list[bytes]] = []
            for updates in ((), more):
                # Without a state, the rounds before are run again: under one key that is the same.
                branch = start.resume(state) if isinstance(start, Persistent) else self._begun(make, key)
                branches.append([branch.close(updates if round == 0 else ()) for round in range(rounds)])
        except Exception as error:
            return [failure(error)] * (2 * rounds + 1)
        return [*branches[0], *branches[1], b"1" if branches[0] == branches[1] else b"0"]

    def _begun(self, make: Make, key: Key) -> Algorithm:
        algorithm = make(key)
        algorithm.close(crowd(self.shape))
        return algorithm


@dataclass(frozen=True)
class Branches(Check[Target]):
    """Two branches of one state to distinguish. No claim covers that, so none is refuted."""

    runs: int
    confidence: float
    question = QUESTION

    def not_applicable(self, target: Target) -> str | None:
        try:
            made = target.make(Key.for_testing(0))
        except Exception:
            return None
        if isinstance(made, Persistent):
            return None
        return "The algorithm has no state that could be given back, so there is nothing to set back."

    def planted(self, target: Target) -> list[Iterator[tuple[str, Target]]]:
        bug = "{} set back to an older state under the same key"
        counter = replace(target, make=MakeCount(base(target.claim), target.shape.rounds))
        bad = {"the algorithm": target, "a counter with the same claim": counter}
        return [((bug.format(what), own) for what, own in bad.items() if target.keyed or own is counter)]

    def run(self, target: Target, seeds: Seeds) -> Finding:
        play = Forked(target.shape)
        own = seeds.branch("judged")
        found = judged(play, target.make, target.claim, own, runs=self.runs, confidence=self.confidence)
        verdict, _ = verdict_of(found)
        text = (
            f"{found.correct} of {found.guesses} guesses in {found.runs} runs were right when two branches of one "
            f"state were published: epsilon is at least {decimal(found.epsilon)}."
        )
        failed = raised(play(target.make, 1, seeds.key()))
        if found.violated:
            text += " No claim is made for that: whoever runs the algorithm must never restore an older state."
        elif failed is not None:
            text += f" Not every round has an answer to compare: {failed} was raised."
        return Finding(
            tried="The state of the algorithm is taken after a round and given back twice; the two branches are "
            "published, and a coin decides whether the second one has one record more.",
            runs=self.runs,
            verdict="inconclusive" if found.violated or failed is not None else verdict,
            found=text,
            detectable=f"an epsilon of up to {decimal(found.perfect.epsilon)}",
            measured=found.measured(),
            seen=found.violated or found.correct == found.runs,
        )
