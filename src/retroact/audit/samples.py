"""The same law: for algorithms whose answers no key repeats.

Two histories that have united are run many times each, and the two samples of answers from the uniting round on are
compared by two kinds of test, which share the allowed probability of a false alarm equally:

- every number, its change from the round before, and every text by how often they fall in which cell (Fisher, exact: as
  in `testing.law`);
- all together by what a classifier learns on one half of the runs and guesses on the other (exact binomial).

Within a kind, the tests of all pairs and places keep the level of the kind together (Holm 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from ..arrays import F64
from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Add, Update
from ..testing import Pair
from ..testing.answers import parts
from ..testing.check import Check, Finding
from ..testing.families import FAMILIES, draw, live_window
from ..testing.law import parts_of, seen_from
from ..testing.seeds import Seeds
from .result import Result, decimal, idle, report
from .shrink import as_code
from .target import ROUNDS, Make, Target, answers, fewer
from .twin import raises

QUESTION = (
    "Once two histories hold the same surviving records, are all possible answers as likely after the one as after the "
    "other?"
)
KINDS = ("cells of one number or text", "classifier")
# So that a tenth of both samples fills a cell.
FEWEST = 60
# At least this many pairs, however long they are.
LEAST = 3


class Comparison(NamedTuple):
    """One test: of which pair, where, and how likely what it saw is if the laws are equal."""

    kind: str
    pair: int
    place: str
    probability: float


def same_law(target: Target, seeds: Seeds, *, pairs: int = 12, runs: int = 200, confidence: float = 0.999) -> Result:
    """Answers after ``pairs`` uniting pairs of all families, ``runs`` runs on either history of each.

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=4)
    >>> result = same_law(Target.stream(spec).with_rounds(3), Seeds(1), pairs=2, runs=60, confidence=0.95)
    >>> result.verdict, result.control.caught
    ('passed', True)
    """
    if target.retroactivity is not None:
        reason = "Approximate retroactivity is claimed, which allows laws to differ a little."
        return idle("retroactivity", "same law", QUESTION, reason)
    if runs < FEWEST or not 0.5 < confidence < 1:
        raise InputError(f"expected at least {FEWEST} runs and a confidence in (0.5, 1), got {runs} and {confidence}")
    # Fewer of them if they are long, so that the test takes no longer.
    drawn = _drawn(target, seeds, fewer(pairs, LEAST, ROUNDS, target.shape.rounds))
    return report(SameLaw(tuple(drawn), runs, 1 - confidence), target, seeds, part="retroactivity", test="same law")


@dataclass(frozen=True)
class SameLaw(Check[Target]):
    """Some pairs, and the runs on either history of each; if laws are equal, any test fails with this probability at
    most."""

    pairs: tuple[Pair, ...]
    runs: int
    level: float
    question = QUESTION

    def planted(self, target: Target) -> list[list[tuple[str, Target]]]:
        bug = "the same algorithm, with another number in its answers, whose range doubles with every deletion"
        return [[(bug, replace(target, make=partial(Widening, target.make)))]]

    def run(self, target: Target, seeds: Seeds) -> Finding:
        runs, drawn = self.runs, self.pairs
        findings, skipped = compare_laws(target.make, drawn, seeds.branch("samples"), runs)
        if not findings and not skipped and silent(target.make, drawn, seeds.key()):
            reason = "Nothing is published in the rounds that would be compared."
            return Finding(verdict="not applicable", found=reason)
        wrong = rejected(findings, self.level)
        if wrong:
            found = (
                f"The answers have another law after one of the histories than after the other, by {len(wrong)} of "
                f"{len(findings):,} comparisons; the clearest is {_words(wrong[0])}, which equal laws would show with "
                f"probability {decimal(wrong[0].probability)}."
            )
        else:
            found = f"None of {len(findings):,} comparisons shows a difference."
        if skipped:
            found += f" {skipped} texts that hardly ever repeat could not be compared."
        raised = raises(target.make, drawn, seeds.key())
        if raised is not None:
            found += f" Not every history has an answer to compare: {raised} was raised."
        blind = raised is not None or (not findings and skipped)
        return Finding(
            tried=f"{len(drawn)} random pairs of histories that unite, {runs} runs with new randomness on either "
            "history, two kinds of statistical test; if all laws are equal, any of them fails with probability at "
            f"most {decimal(self.level)}.",
            runs=2 * runs * len(drawn),
            verdict="violation" if wrong else "inconclusive" if blind else "passed",
            found=found,
            detectable=f"A difference of {min(1.0, seen_from(runs)):.0%} in how often an answer, or one in a tenth of "
            "the range of its numbers, is given in one round of one of these pairs would have been seen with "
            "probability 0.99.",
            measured={
                "comparisons": str(len(findings)),
                "least probability": decimal(min((f.probability for f in findings), default=1.0)),
                "pairs": str(len(drawn)),
            },
            counterexample=lambda: [*as_code(drawn[wrong[0].pair]), f"# {_words(wrong[0])}"],
        )


def silent(make: Make, pairs: Sequence[Pair], key: Key) -> bool:
    """Whether there are only empty answers once the histories have united."""
    return not any(any(answers(make, key, side)[pair.unite - 1 :]) for pair in pairs for side in (pair.one, pair.other))


def compare_laws(make: Make, pairs: Sequence[Pair], seeds: Seeds, runs: int) -> tuple[list[Comparison], int]:
    """All tests on all pairs; and how many texts there were that cannot be compared."""
    findings: list[Comparison] = []
    skipped = 0
    for number, pair in enumerate(pairs):
        keys, sides = seeds.branch(number), enumerate((pair.one, pair.other))
        both = [answers(make, keys.key(2 * i + side), past) for side, past in sides for i in range(runs)]
        sample = parts_of([seen[pair.unite - 1 :] for seen in both], pair.unite)
        for part in sample:
            chance = part.chance()
            skipped += chance is None
            findings += [] if chance is None else [Comparison(KINDS[0], number, part.name, chance)]
        if sample:
            table = np.stack([part.values for part in sample], axis=1)
            by_guess = _classified(table, seeds.branch(number, "classifier"))
            findings.append(Comparison(KINDS[1], number, "all answers together", by_guess))
    return findings, skipped


def rejected(findings: Sequence[Comparison], level: float) -> list[Comparison]:
    """What is too unlikely under equal laws, all findings together; the least likely first."""
    out = []
    for kind in KINDS:
        own = sorted((f for f in findings if f.kind == kind), key=lambda f: f.probability)
        for rank, finding in enumerate(own):
            if finding.probability > level / len(KINDS) / (len(own) - rank):
                break
            out.append(finding)
    return sorted(out, key=lambda f: (f.probability, f.pair, f.place))


def _drawn(target: Target, seeds: Seeds, count: int) -> list[Pair]:
    """Pairs of every family in turn."""
    window = live_window(target.specification)
    each = -(-count // (len(FAMILIES) - 1))
    drawn = [draw(f, target.shape, seeds.branch("pairs", f).random(), each, window=window) for f in FAMILIES]
    turns = [own[turn] for turn in range(each) for own in drawn if turn < len(own)]
    if not turns:
        raise InputError("expected a shape with histories that unite, got none", place="shape")
    return turns[:count]


def _classified(table: F64, seeds: Seeds) -> float:
    """The probability of at least this many right guesses if the laws are equal. The classifier learns from every other
    run of both histories. Right guesses on the rest are a sum of independent events whose probabilities are 1/2 on
    average: at most as spread as the binomial (Hoeffding 1956)."""
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise InputError("the two-sample tests need scikit-learn: install retroact[audit]") from None
    runs = len(table) // 2
    labels = np.arange(len(table)) >= runs
    learning = np.arange(len(table)) % runs % 2 == 0
    model = RandomForestClassifier(n_estimators=40, max_features=None, random_state=seeds.number() % 2**32, n_jobs=1)
    model.fit(table[learning], labels[learning])
    right = int((model.predict(table[~learning]) == labels[~learning]).sum())
    guesses = int((~learning).sum())
    return float(Fraction(sum(math.comb(guesses, k) for k in range(right, guesses + 1)), 2**guesses))


def _words(finding: Comparison) -> str:
    return f"the {finding.kind} test on {finding.place}, in pair {finding.pair + 1}"


# The control --------------------------------------------------------------------------------------------------------


class Widening:
    """An algorithm that adds a number to its answers, where there are any; its range doubles with every deletion."""

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
