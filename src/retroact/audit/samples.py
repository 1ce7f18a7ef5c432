"""The same law: for algorithms whose answers no key repeats (`testing.law`), with a classifier for all answers
together, which learns on one half of the runs and guesses on the other (exact binomial)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..arrays import F64
from ..errors import InputError
from ..testing import Pair
from ..testing.algorithm import answers
from ..testing.families import FAMILIES, draw, live_window
from ..testing.law import SameLaw
from ..testing.seeds import Seeds
from .result import Result, idle, report
from .target import ROUNDS, Target, fewer

# So that a tenth of both samples fills a cell.
FEWEST = 60
# At least this many pairs, however long they are.
LEAST = 3


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
        return idle("retroactivity", "same law", SameLaw.question, reason)
    if runs < FEWEST or not 0.5 < confidence < 1:
        raise InputError(f"expected at least {FEWEST} runs and a confidence in (0.5, 1), got {runs} and {confidence}")
    # Fewer of them if they are long, so that the test takes no longer.
    drawn = _drawn(target, seeds, fewer(pairs, LEAST, ROUNDS, target.shape.rounds))
    check = SameLaw(tuple(drawn), runs, 1 - confidence, classified, answers)
    return report(check, target.make, seeds, part="retroactivity", test="same law")


def _drawn(target: Target, seeds: Seeds, count: int) -> list[Pair]:
    """Pairs of every family in turn."""
    window = live_window(target.specification)
    each = -(-count // (len(FAMILIES) - 1))
    drawn = [draw(f, target.shape, seeds.branch("pairs", f).random(), each, window=window) for f in FAMILIES]
    turns = [own[turn] for turn in range(each) for own in drawn if turn < len(own)]
    if not turns:
        raise InputError("expected a shape with histories that unite, got none", place="shape")
    return turns[:count]


def classified(table: F64, seeds: Seeds) -> float:
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
