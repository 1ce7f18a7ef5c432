"""Rolling back: the same noise on two sets of data reveals their difference, so no round may be published twice.

A stream that lasts is published, its folder is set back to an older copy, and it is tried to publish the rounds since
then again. The control is the rollback that nothing can notice (the mark of the last published round, which lies
outside the folder, is set back as well): there the noise is the same again, and guessing becomes certain.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..coins import Key
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Update
from ..stream import Specification, Stream
from ..stream.durable import Durable
from ..testing import Algorithm, Persistent, Shape, StreamAlgorithm
from ..testing.algorithm import without_sources
from ..testing.seeds import Seeds
from .adversaries import crowd, telling
from .games import Attacked, judged, verdict_of
from .result import Control, Result, Verdict, decimal, idle
from .target import Make, Target, answers, failure, raised
from .weaker import MakeCount, Weaker, base

# Two branches are published for so many rounds, or up to a release.
BRANCH = 4
TEST = "rollback"
QUESTION = "If the stream is set back to an older copy of itself, is any noise spent a second time, on other data?"
OF_A_STREAM = (
    "A stream that lasts is published for some rounds, its folder is copied, and it is published further. Then the "
    "older copy is put back and the rounds since are published again with one record more. Then the mark of the last "
    "published round, which lies outside the folder, is lost."
)
OF_AN_ALGORITHM = (
    "The state of the algorithm is taken after a round and given back twice; the two branches are published, and a "
    "coin decides whether the second one has one record more."
)


def rollback(target: Target, seeds: Seeds, *, runs: int = 300, confidence: float = 0.999) -> Result:
    """Key reuse after a rollback: of a stream that lasts, or of an algorithm whose state can be given back."""
    if target.shape.rounds < 3:
        return idle("privacy", TEST, QUESTION, "A history of fewer than three rounds has nothing to set back.")
    shape = telling(target.shape, Weaker.of(target).loudest(), seeds.branch("loud").key())
    target = replace(target, shape=shape)
    if target.specification is None:
        return _of_an_algorithm(target, Forked(shape), seeds, runs, confidence)
    spec, key = without_sources(target.specification), seeds.key()
    every = max(statistic.every for statistic in spec.statistics.values())
    play = Forked(shape, max(BRANCH, every))
    if not any(answers(target.make, key, ((),) * (2 * shape.rounds // 3))[shape.rounds // 3 :]):
        text = f"Nothing is published in the middle of {shape.rounds} rounds, so there is nothing to set back."
        return idle("privacy", TEST, QUESTION, text)
    problems = published_twice(spec, target.shape, key, fence_too=False)
    seen = published_twice(spec, target.shape, key, fence_too=True)
    problems += lost_fence(spec, target.shape, key)
    control = _control(target, play, seeds.branch("control"), runs, confidence, seen)
    found = (
        "The older copy was refused; opened as a restored one it published no round again, and went on with "
        "rounds that had not been published. Without the mark of the last published round it was not opened until a "
        "round was named after which nothing was published, and none before the last one was accepted."
    )
    return _result(
        "violation" if problems else "passed",
        " ".join(problems) if problems else found,
        "one round that is published twice, or one whose noise was used before (compared byte by byte)",
        runs=1,
        control=control,
        counterexample=problems,
    )


# The files of a stream -----------------------------------------------------------------------------------------------


def published_twice(spec: Specification, shape: Shape, key: Key, *, fence_too: bool) -> list[str]:
    """What goes wrong when a stream is published further, set back, and published again with a record more."""
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
            problems.append("A copy that is older than what was published was opened without a question.")
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
            return ["Without the mark of the last published round the stream was opened without a question."]
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
    branch: int = BRANCH

    def __call__(self, make: Make, world: int, key: Key) -> list[bytes]:
        more: list[Update] = [Add(self.shape.values[0])] if world else []
        rounds = min(self.branch, self.shape.rounds - 1)
        try:
            start = self._begun(make, key)
            state = start.state() if isinstance(start, Persistent) else None
            branches: list[list[bytes]] = []
            for updates in ((), more):
                # Without a state, the rounds before are run again: under one key that is the same.
                branch = (
                    start.resume(state)
                    if isinstance(start, Persistent) and state is not None
                    else self._begun(make, key)
                )
                branches.append([branch.close(updates if round == 0 else ()) for round in range(rounds)])
        except Exception as error:
            return [failure(error)] * (2 * rounds + 1)
        return [*branches[0], *branches[1], b"1" if branches[0] == branches[1] else b"0"]

    def _begun(self, make: Make, key: Key) -> Algorithm:
        algorithm = make(key)
        algorithm.close(crowd(self.shape))
        return algorithm


def _control(
    target: Target, play: Forked, seeds: Seeds, runs: int, confidence: float, seen: list[str] | None = None
) -> Control:
    """Both branches are published: from the difference of their answers the attack must find the record. Where few
    records show nothing, a counter stands in."""
    counter = MakeCount(base(target.claim), target.shape.rounds)
    for make in (target.make, counter) if target.keyed else (counter,):
        found = judged(play, make, target.claim, seeds, runs=runs, confidence=confidence)
        certain = found.attack.correct == found.attack.runs
        if found.violated or certain:
            break
    what = "the stream" if make is not counter and target.specification is not None else "the algorithm"
    bug = (
        f"{'a counter with the same claim' if make is counter else what} set back to an older state under the same key"
    )
    how = (
        f"{found.attack.correct} of {found.attack.guesses} guesses in {found.attack.runs} runs were right: epsilon is "
    )
    how += f"at least {decimal(found.attack.epsilon)}"
    caught = found.violated or certain
    if seen is not None:
        bug += "; and folder and mark set back together"
        how += f". {' '.join(seen)}" if seen else ". The files were set back and nothing was noticed"
    return Control(bug=bug, caught=caught and seen != [], how=how)


def _of_an_algorithm(target: Target, play: Forked, seeds: Seeds, runs: int, confidence: float) -> Result:
    try:
        made = target.make(seeds.key())
    except Exception as error:
        text = f"The algorithm could not be made: {type(error).__name__} was raised."
        return _result("inconclusive", text, "nothing", tried=OF_AN_ALGORITHM)
    if not isinstance(made, Persistent):
        text = "The algorithm has no state that could be given back, so there is nothing to set back."
        return idle("privacy", TEST, QUESTION, text)
    found = judged(play, target.make, target.claim, seeds.branch("judged"), runs=runs, confidence=confidence)
    control = _control(target, play, seeds.branch("control"), runs, confidence)
    failed = raised(play(target.make, 1, seeds.key()))
    share = f"{found.attack.correct} of {found.attack.guesses} guesses in {found.attack.runs} runs were right"
    if found.violated:
        text = (
            f"{share} when two branches of one state were published: epsilon is at least "
            f"{decimal(found.attack.epsilon)}. No claim is made for that: whoever runs the algorithm must never "
            "restore an older state."
        )
    else:
        text = f"{share} when two branches of one state were published."
        if failed is not None:
            text += f" Not every round has an answer to compare: {failed} was raised."
    return _result(
        "inconclusive" if found.violated or failed is not None else verdict_of(found)[0],
        text,
        _shown(found),
        tried=OF_AN_ALGORITHM,
        runs=runs,
        control=control,
        measured=found.measured(),
    )


def _shown(found: Attacked) -> str:
    """What guesses that are always right would have proved."""
    return f"an epsilon of up to {decimal(found.attack.most(found.claim.delta, found.confidence))}"


def _result(
    verdict: Verdict,
    found: str,
    detectable: str,
    *,
    tried: str = OF_A_STREAM,
    runs: int = 0,
    control: Control | None = None,
    measured: dict[str, str] | None = None,
    counterexample: Sequence[str] = (),
) -> Result:
    return Result(
        part="privacy",
        test=TEST,
        question=QUESTION,
        tried=tried,
        runs=runs,
        verdict=verdict,
        found=found,
        detectable=detectable,
        control=control,
        measured=measured or {},
        counterexample=list(counterexample),
    )
