"""The same law: for algorithms whose answers no key repeats, and as a second look at those whose answers one does.

Two histories that have united are run many times each, and the two samples of answers from the uniting round on are
compared by four kinds of test, each of which has an equal part of the allowed probability of a false alarm:

- every number, and its change from the round before, by its distribution function (Kolmogorov and Smirnov, exact);
- the same and all texts by how often they fall in which cell (chi-square, as in `testing.law`);
- all numbers and texts together by the energy distance (permutations; the largest over all pairs of histories);
- all together by what a classifier learns on one half of the runs and guesses on the other (exact binomial).

Within a kind the tests of all pairs and places are held to the level of the kind together (Holm 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import msgspec
import numpy as np

from ..arrays import F64, I64
from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Add, Update
from ..testing import Algorithm, CheckFailedError, Pair
from ..testing.law import difference, seen_from
from .answers import Columns, columns, parts
from .pairs import FAMILIES, draw, live_window
from .result import Control, Result, decimal, idle
from .seeds import Seeds
from .shrink import as_code
from .target import ROUNDS, Make, Target, answers, fewer
from .twin import raises

QUESTION = (
    "Once two histories hold the same surviving records, are all possible answers as likely after the one as after the "
    "other?"
)
KINDS = ("distribution of one number", "cells of one number or text", "energy distance", "classifier")
# So that a tenth of both samples is enough for a cell of its own.
FEWEST = 60
# The control has the pairs whose numbers of deletions differ most.
CONTROLS = 2
# Pairs, however long they are.
LEAST = 3


class Finding(NamedTuple):
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
    # Long histories are fewer, so that it takes no longer.
    drawn = _drawn(target, seeds, fewer(pairs, LEAST, ROUNDS, target.shape.rounds))
    level = 1 - confidence
    findings, skipped = compare_laws(target.make, drawn, seeds.branch("samples"), runs, level)
    if not findings and not skipped and silent(target.make, drawn, seeds.key()):
        return idle("retroactivity", "same law", QUESTION, "Nothing is published in the rounds that would be compared.")
    wrong = rejected(findings, level)
    code: list[str] = []
    if wrong:
        first = wrong[0]
        found = (
            f"The answers have another law after one of the histories than after the other, by {len(wrong)} of "
            f"{len(findings):,} comparisons; the clearest is {_words(first)}, which equal laws would show with "
            f"probability {decimal(first.probability)}."
        )
        code = [*as_code(drawn[first.pair]), f"# {_words(first)}"]
    else:
        found = f"None of {len(findings):,} comparisons shows a difference."
    if skipped:
        found += f" {skipped} texts that hardly ever repeat could not be compared."
    raised = raises(target.make, drawn, seeds.key())
    if raised is not None:
        found += f" Not every history has an answer to compare: {raised} was raised."
    blind = raised is not None or (not findings and skipped)
    return Result(
        part="retroactivity",
        test="same law",
        question=QUESTION,
        tried=f"{len(drawn)} random pairs of histories that unite, {runs} runs with new randomness on either history, "
        f"four kinds of statistical test; if all laws are equal, any of them fails with probability at most "
        f"{decimal(level)}.",
        runs=2 * runs * len(drawn),
        verdict="violation" if wrong else "inconclusive" if blind else "passed",
        found=found,
        detectable=f"A difference of {min(1.0, seen_from(runs)):.0%} in how often an answer, or one in a tenth of the "
        "range of its numbers, is given in one round of one of these pairs would have been seen with probability 0.99.",
        control=_control(target, drawn, seeds.branch("control"), runs, level),
        measured={
            "comparisons": str(len(findings)),
            "least probability": decimal(min((f.probability for f in findings), default=1.0)),
            "pairs": str(len(drawn)),
        },
        counterexample=code,
    )


def silent(make: Make, pairs: Sequence[Pair], key: Key) -> bool:
    """Whether there are only empty answers once the histories have united."""
    return not any(any(answers(make, key, side)[pair.unite - 1 :]) for pair in pairs for side in (pair.one, pair.other))


def compare_laws(make: Make, pairs: Sequence[Pair], seeds: Seeds, runs: int, level: float) -> tuple[list[Finding], int]:
    """All tests on all pairs; and how many texts there were that cannot be compared."""
    samples = [_sample(make, pair, seeds.branch(number), runs) for number, pair in enumerate(pairs)]
    findings: list[Finding] = []
    skipped = 0
    for number, sample in enumerate(samples):
        if not sample.names:
            continue
        findings += _distributions(sample, number)
        cells, dropped = _cells(sample, number)
        findings += cells
        skipped += dropped
        findings.append(_classifier(sample, number, seeds.branch(number, "classifier")))
    energy = _energy([sample for sample in samples if sample.names], seeds.branch("energy"), level)
    return findings + energy, skipped


def rejected(findings: Sequence[Finding], level: float) -> list[Finding]:
    """What is too unlikely under equal laws, all findings taken together; the least likely first."""
    out = []
    for kind in KINDS:
        own = sorted((f for f in findings if f.kind == kind), key=lambda f: f.probability)
        for rank, finding in enumerate(own):
            if finding.probability > level / len(KINDS) / (len(own) - rank):
                break
            out.append(finding)
    return sorted(out, key=lambda f: (f.probability, f.pair, f.place))


# The samples --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """Runs of the one history, then as many of the other, by everything that is compared."""

    names: tuple[str, ...]
    table: F64
    numeric: tuple[bool, ...]

    @property
    def runs(self) -> int:
        return len(self.table) // 2


def _drawn(target: Target, seeds: Seeds, count: int) -> list[Pair]:
    """Pairs of every family in turn."""
    window = live_window(target.specification)
    each = -(-count // (len(FAMILIES) - 1))
    drawn = [draw(f, target.shape, seeds.branch("pairs", f).random(), each, window=window) for f in FAMILIES]
    turns = [own[turn] for turn in range(each) for own in drawn if turn < len(own)]
    if not turns:
        raise InputError("expected a shape with histories that unite, got none", place="shape")
    return turns[:count]


def _sample(make: Make, pair: Pair, seeds: Seeds, runs: int) -> _Sample:
    given = [
        answers(make, seeds.key(2 * number + side), history)[pair.unite - 1 :]
        for side, history in enumerate((pair.one, pair.other))
        for number in range(runs)
    ]
    found = columns(given)
    named = [*_numbers(found, pair.unite), *((n, c.astype(np.float64), False) for n, c in _texts(found, pair.unite))]
    kept: dict[bytes, tuple[str, F64, bool]] = {}
    for name, column, numeric in named:
        # What orders the runs alike says the same twice.
        kept.setdefault(np.unique(column, return_inverse=True)[1].tobytes(), (name, column, numeric))
    columns_kept = list(kept.values())
    table = np.stack([c for _, c, _ in columns_kept], axis=1) if columns_kept else np.zeros((2 * runs, 0))
    return _Sample(tuple(n for n, _, _ in columns_kept), table, tuple(numeric for *_, numeric in columns_kept))


def _numbers(found: Columns, unite: int) -> list[tuple[str, F64, bool]]:
    out = []
    places = {(series, round): i for i, (series, round) in enumerate(zip(found.series, found.rounds, strict=True))}
    for (series, round), index in places.items():
        name = f"{series} in round {round + unite - 1}"
        out.append((name, found.numbers[:, index], True))
        if (series, round - 1) in places:
            change = found.numbers[:, index] - found.numbers[:, places[series, round - 1]]
            out.append((f"the change of {name}", change, True))
    return out


def _texts(found: Columns, unite: int) -> list[tuple[str, I64]]:
    names = (f"{name} (rounds counted from {unite})" for name in found.labels)
    return [(name, found.categories[:, index]) for index, name in enumerate(names)]


# The tests ----------------------------------------------------------------------------------------------------------


def _distributions(sample: _Sample, number: int) -> list[Finding]:
    out = []
    for name, column, numeric in zip(sample.names, sample.table.T, sample.numeric, strict=True):
        if numeric:
            both = np.sort(column)
            counts = (np.searchsorted(np.sort(c), both, side="right") for c in np.split(column, 2))
            apart = int(np.abs(next(counts) - next(counts)).max())
            out.append(Finding(KINDS[0], number, name, farther(apart, sample.runs)))
    return out


@lru_cache(maxsize=10_000)
def farther(apart: int, runs: int) -> float:
    """The probability that the counts of two samples of ``runs`` numbers each from one continuous law differ by
    ``apart`` or more somewhere (Gnedenko and Korolyuk 1951). With ties they differ less.

    >>> farther(0, 10), farther(10, 10) == 2 / math.comb(20, 10)
    (1.0, True)
    """
    if apart == 0:
        return 1.0
    terms = ((-1) ** (j - 1) * math.comb(2 * runs, runs - j * apart) for j in range(1, runs // apart + 1))
    return float(Fraction(2 * sum(terms), math.comb(2 * runs, runs)))


def _cells(sample: _Sample, number: int) -> tuple[list[Finding], int]:
    out, skipped = [], 0
    for name, column, numeric in zip(sample.names, sample.table.T, sample.numeric, strict=True):
        cells: list[object] = column.tolist() if numeric else [str(code) for code in column.tolist()]
        try:
            apart = difference(cells[: sample.runs], cells[sample.runs :])
        except CheckFailedError:
            skipped += 1
            continue
        out.append(Finding(KINDS[1], number, name, NormalDist().cdf(-apart)))
    return out, skipped


def _energy(samples: Sequence[_Sample], seeds: Seeds, level: float) -> list[Finding]:
    """The largest energy distance over all pairs, each in its own standard deviations, against relabelled runs."""
    if not samples:
        return []
    relabelled = math.ceil(len(KINDS) / level)
    largest = np.full(relabelled + 1, -np.inf)
    first = np.full(relabelled + 1, -1)
    for number, sample in enumerate(samples):
        distances = _energies(sample, relabelled, seeds.branch(number).numpy())
        deviation = float(distances.std())
        # Rounded, so that equal distances are equal whatever order their parts were added in.
        scores = np.round((distances - distances.mean()) / (deviation if deviation > 0 else 1.0), 9)
        first = np.where(scores > largest, number, first)
        largest = np.maximum(largest, scores)
    probability = float((largest >= largest[0]).mean())
    return [Finding(KINDS[2], int(first[0]), "all answers together", probability)]


def _energies(sample: _Sample, relabelled: int, random: np.random.Generator) -> F64:
    """Of the runs as they are, then of so many random relabellings: for signs s of equal number, minus s' D s."""
    count = len(sample.table)
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in sample.table.T], axis=1)
    table = ranks / np.maximum(1, ranks.max(axis=0))
    squares = (table**2).sum(axis=1)
    apart = np.sqrt(np.maximum(0.0, squares[:, None] + squares[None, :] - 2 * table @ table.T))
    signs = np.repeat([1.0, -1.0], count // 2)
    out = [np.array([-(signs @ apart @ signs)])]
    for start in range(0, relabelled, 1000):
        block = random.permuted(np.tile(signs, (min(1000, relabelled - start), 1)), axis=1)
        out.append(-((block @ apart) * block).sum(axis=1))
    return np.concatenate(out)


def _classifier(sample: _Sample, number: int, seeds: Seeds) -> Finding:
    """Learnt on every other run of both histories. Right guesses on the rest are a sum of independent events whose
    probabilities are 1/2 on average if the laws are equal: at most as spread as the binomial (Hoeffding 1956)."""
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise InputError("the two-sample tests need scikit-learn: install retroact[audit]") from None
    labels = np.arange(len(sample.table)) >= sample.runs
    learning = np.arange(len(sample.table)) % sample.runs % 2 == 0
    model = RandomForestClassifier(n_estimators=40, max_features=None, random_state=seeds.number() % 2**32, n_jobs=1)
    model.fit(sample.table[learning], labels[learning])
    right = int((model.predict(sample.table[~learning]) == labels[~learning]).sum())
    guesses = int((~learning).sum())
    probability = float(Fraction(sum(math.comb(guesses, k) for k in range(right, guesses + 1)), 2**guesses))
    return Finding(KINDS[3], number, "all answers together", probability)


def _words(finding: Finding) -> str:
    return f"the {finding.kind} test on {finding.place}, in pair {finding.pair + 1}"


# The control --------------------------------------------------------------------------------------------------------


class Widening:
    """An algorithm that adds a number to its answers, where there are any; its range doubles with every deletion that
    ever came."""

    def __init__(self, inside: Algorithm, key: Key) -> None:
        self._inside, self._coins = inside, key.coins("widening")
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


def _control(target: Target, pairs: list[Pair], seeds: Seeds, runs: int, level: float) -> Control:
    def widening(key: Key) -> Widening:
        return Widening(target.make(key), key)

    chosen = sorted(pairs, key=lambda pair: -abs(_deletions(pair.one, pair) - _deletions(pair.other, pair)))[:CONTROLS]
    wrong = rejected(compare_laws(widening, chosen, seeds, runs, level)[0], level)
    bug = "the same algorithm, with a number beside its answers whose range doubles with every deletion"
    how = f"{_words(wrong[0])}, with probability {decimal(wrong[0].probability)}" if wrong else "no test showed it"
    return Control(bug=bug, caught=bool(wrong), how=how)


def _deletions(history: Sequence[Sequence[Update]], pair: Pair) -> int:
    return sum(not isinstance(update, Add) for updates in history[: pair.unite] for update in updates)
