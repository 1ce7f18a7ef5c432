"""For algorithms that draw their own randomness: histories that unite give answers of the same law.

Both histories are run many times. In every round from the uniting one on, the two samples of answers are compared part
by part (`features`): numbers by the deciles of both samples together, everything else by value. Changes from the round
before are compared too, which shows noise that is not renewed. An audit has a classifier guess from all of them
together, too; both kinds of test share the allowed probability of a false alarm equally, and within a kind the tests of
all pairs and places keep the level of the kind together (Holm 1979).

**Error rate.** If both histories have the same law, then given all answers together, each way to divide them between
the two histories is equally likely. The cells depend only on all answers together, so the number in a cell from the
first history is hypergeometric: the test is exact (Fisher), with ties and for any number of runs. Cells, cumulated
cells and parts are combined by the union bound. `seen_from` says what difference this many runs can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec
import numpy as np

from ..arrays import F64
from ..coins import Key
from ..ledger.definition import Add, Update
from .algorithm import Answering, Make, raises, run
from .answers import parts
from .check import Check, Finding, require
from .features import columns
from .histories import Pair
from .seeds import Seeds
from .shrink import as_code

KINDS = ("cells of one number or text", "classifier")
CELLS = KINDS[:1]
ERROR = 1e-7
# The difference that is needed for that, in standard deviations.
DEVIATIONS = 5.3
BINS = 10
# Answers that occur less often, in both samples together, share a cell.
RARE = 10


class Comparison(NamedTuple):
    """One test: of which pair, where, and how likely what it saw is if the laws are equal."""

    kind: str
    pair: int
    place: str
    probability: float


Classify = Callable[[F64, Seeds], float]
"""Of a table with a row for each run, half of them of either history: how likely what it tells apart is by chance."""


@dataclass(frozen=True)
class SameLaw(Check[Make]):
    """Some pairs, and the runs on either history of each; if laws are equal, any test fails with this probability at
    most. Without a classifier, nothing looks at texts that hardly ever repeat."""

    pairs: tuple[Pair, ...]
    runs: int
    level: float
    classify: Classify | None = None
    answering: Answering = run
    question = (
        "Once two histories hold the same surviving records, are all possible answers as likely after the one as after "
        "the other?"
    )

    def planted(self, target: Make) -> list[list[tuple[str, Make]]]:
        bug = "the same algorithm, with another number in its answers, whose range doubles with every deletion"
        return [[(bug, partial(Widening, target))]]

    def run(self, target: Make, seeds: Seeds) -> Finding:
        runs, drawn = self.runs, self.pairs
        findings, skipped = self.compare(target, seeds.branch("samples"))
        if not findings and not skipped and self._silent(target, seeds.key()):
            return Finding(verdict="not applicable", found="Nothing is published in the rounds that would be compared.")
        wrong = rejected(findings, self.level, CELLS if self.classify is None else KINDS)
        if wrong:
            found = (
                f"The answers have another law after one of the histories than after the other, by {len(wrong)} of "
                f"{len(findings):,} comparisons; the clearest is {_words(wrong[0])}, which equal laws would show with "
                f"probability {wrong[0].probability:.6g}."
            )
        else:
            found = f"None of {len(findings):,} comparisons shows a difference."
        if skipped:
            found += f" {skipped} texts that hardly ever repeat could not be compared."
        failed = raises(target, drawn, seeds.key(), self.answering)
        if failed is not None:
            found += f" Not every history has an answer to compare: {failed} was raised."
        blind = failed is not None or (skipped and (not findings or self.classify is None))
        least = min((f.probability for f in findings), default=1.0)
        return Finding(
            tried=f"{len(drawn)} random pairs of histories that unite, {runs} runs with new randomness on either "
            "history, two kinds of statistical test; if all laws are equal, any of them fails with probability at "
            f"most {self.level:.6g}.",
            runs=2 * runs * len(drawn),
            verdict="violation" if wrong else "inconclusive" if blind else "passed",
            found=found,
            detectable=f"A difference of {min(1.0, seen_from(runs)):.0%} in how often an answer, or one in a tenth of "
            "the range of its numbers, is given in one round of one of these pairs would have been seen with "
            "probability 0.99.",
            measured={
                "comparisons": str(len(findings)),
                "least probability": f"{least:.6g}",
                "pairs": str(len(drawn)),
            },
            counterexample=lambda: [*as_code(drawn[wrong[0].pair]), f"# {_words(wrong[0])}"] if wrong else [],
            value=len(findings),
        )

    def compare(self, make: Make, seeds: Seeds) -> tuple[list[Comparison], int]:
        """All tests on all pairs; and how many texts there were that cannot be compared."""
        findings, skipped = list[Comparison](), 0
        for number, pair in enumerate(self.pairs):
            keys, sides = seeds.branch(number), enumerate((pair.one, pair.other))
            both = [self.answering(make, keys.key(2 * i + s), past) for s, past in sides for i in range(self.runs)]
            sample = parts_of([seen[pair.unite - 1 :] for seen in both], pair.unite)
            for part in sample:
                chance = part.chance()
                skipped += chance is None
                findings += [] if chance is None else [Comparison(KINDS[0], number, part.name, chance)]
            if sample and self.classify is not None:
                table = np.stack([part.values for part in sample], axis=1)
                by_guess = self.classify(table, seeds.branch(number, "classifier"))
                findings.append(Comparison(KINDS[1], number, "all answers together", by_guess))
        return findings, skipped

    def _silent(self, make: Make, key: Key) -> bool:
        """Whether there are only empty answers once the histories have united."""
        sides = [(side, pair.unite) for pair in self.pairs for side in (pair.one, pair.other)]
        return not any(any(self.answering(make, key, side)[unite - 1 :]) for side, unite in sides)


def rejected(findings: Sequence[Comparison], level: float, kinds: Sequence[str] = KINDS) -> list[Comparison]:
    """What is too unlikely under equal laws, all findings together; the least likely first."""
    out = []
    for kind in kinds:
        own = sorted((f for f in findings if f.kind == kind), key=lambda f: f.probability)
        for rank, finding in enumerate(own):
            if finding.probability > level / len(kinds) / (len(own) - rank):
                break
            out.append(finding)
    return sorted(out, key=lambda f: (f.probability, f.pair, f.place))


def _words(finding: Comparison) -> str:
    return f"the {finding.kind} test on {finding.place}, in pair {finding.pair + 1}"


class Widening:
    """What is planted: an algorithm that adds a number to its answers, where there are any; its range doubles with
    every deletion."""

    def __init__(self, make: Make, key: Key) -> None:
        self._inside, self._coins = make(key), key.coins("widening")
        self._round = self._deletions = 0

    def close(self, updates: Sequence[Update]) -> bytes:
        self._round += 1
        self._deletions += sum(not isinstance(update, Add) for update in updates)
        word = int(self._coins.branch(self._round).words([0], [0]).block(0)[0][0, 0])
        added = (word % 2**32) * 2.0 ** (self._deletions - 32)
        answer = self._inside.close(updates)
        if not answer:
            return answer
        own = {place: str(part) for place, part in parts(answer).items()}
        return msgspec.json.encode(own | {"added": added})


def check_law(make: Make, pairs: Iterable[Pair], *, runs: int = 200, keys: Iterable[int] = (1,)) -> int:
    """Every answer from the uniting round on has the same law for both histories, under each of the keys. A correct
    algorithm fails with probability at most `ERROR` for each pair and key. Returns how many answers were compared."""
    drawn, compared = tuple(pairs), 0
    for seed in keys:
        found = require(
            SameLaw(drawn, runs, ERROR * len(drawn)),
            lambda _, seed=seed: make(Key.for_testing(seed)),  # type: ignore[misc]
            Seeds(seed),
            what="law",
        )
        compared += 0 if found is None else found.value or 0
    return compared


class Part(NamedTuple):
    """One number or text of the answers: its name, and its values in runs of one history, then in as many of the
    other. The values of a text are codes."""

    name: str
    values: F64
    numeric: bool

    def chance(self) -> float | None:
        """If both samples have the same law, a difference like this has at most this probability; None for texts that
        hardly ever repeat.

        >>> Part("n", np.array([1.0, 2.0] * 50 + [2.0, 1.0] * 50), numeric=True).chance()
        1.0
        >>> Part("n", np.array([1.0] * 50 + [2.0] * 50), numeric=True).chance() < ERROR
        True
        """
        runs, known = len(self.values) // 2, np.unique(self.values)
        binned = self.numeric and len(known) > BINS
        if binned:
            known = np.unique(np.quantile(self.values, np.arange(1, BINS) / BINS))
        codes = np.searchsorted(known, self.values, side="right")
        cells = np.stack([np.bincount(half, minlength=len(known) + 1) for half in (codes[:runs], codes[runs:])], axis=1)
        often = cells.sum(axis=1) >= RARE
        if not often.any() and (cells.sum(axis=1) > 0).sum() > 1:
            return None
        below = np.cumsum(cells, axis=0)[:-1] if binned else cells[:0]
        tests = np.concatenate([cells[often], cells[~often].sum(axis=0)[None], below]).tolist()
        return min(1.0, len(tests) * min(_tail(a, a + b, runs, runs) for a, b in tests))


def parts_of(answers: Sequence[Sequence[bytes]], first: int) -> list[Part]:
    """Everything that is compared in the answers of many runs, whose first round is ``first``; parts that order the
    runs alike are kept once."""
    kept: dict[bytes, Part] = {}
    for part in _every_part(answers, first):
        kept.setdefault(np.unique(part.values, return_inverse=True)[1].tobytes(), part)
    return list(kept.values())


def _every_part(answers: Sequence[Sequence[bytes]], first: int) -> Iterator[Part]:
    """Every number, its change from the round before, every text."""
    found = columns(answers)
    places = {where: i for i, where in enumerate(zip(found.series, found.rounds, strict=True))}
    for (series, round), index in places.items():
        name = f"{series} in round {round + first - 1}"
        yield Part(name, found.numbers[:, index], numeric=True)
        if (series, round - 1) in places:
            change = found.numbers[:, index] - found.numbers[:, places[series, round - 1]]
            yield Part(f"the change of {name}", change, numeric=True)
    for index, label in enumerate(found.labels):
        name = f"{label} (rounds counted from {first})"
        yield Part(name, found.categories[:, index].astype(np.float64), numeric=False)


def _tail(hits: int, drawn: int, n: int, m: int) -> float:
    """The probability that of ``drawn`` items among n + m, as few or as many are among the n: twice the smaller
    tail."""
    k = np.arange(max(0, drawn - m), min(n, drawn) + 1)
    masses = np.exp(_choices(n)[k] + _choices(m)[drawn - k] - _choices(n + m)[drawn])
    return min(1.0, 2 * float(min(masses[k <= hits].sum(), masses[k >= hits].sum())))


@lru_cache(maxsize=16)
def _choices(n: int) -> F64:
    """The logarithms of n choose 0 .. n."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    out: F64 = logs[-1] - logs - logs[::-1]
    return out


def seen_from(runs: int) -> float:
    """The difference in the probability of an answer that this many runs on each side show with probability 99 %:
    `DEVIATIONS` + 2.33 deviations of the difference of two frequencies.

    >>> round(seen_from(200), 2)
    0.38
    """
    return (DEVIATIONS + 2.33) * math.sqrt(0.5 / runs)
