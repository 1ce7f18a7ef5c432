"""What two published models say of a deletion between them.

If a linear model is retrained exactly, its change gives the deleted record away: with A the sums of z z' over the
records that stay, and r the residual of the deleted z, the coefficients change by A^-1 z r. In the norm of A the score
of that change is r times the change of the prediction for the deleted record: so this is what the attacker reads, who
knows all records, and waits to see which are deleted.

**Error rate.** A fair coin decides on every deletion, and a deletion is one operation. So whatever the attacker knows
and does, `decoding.chance` bounds how likely a number of right guesses is, under the promise and exactly.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import F64, Mask
from ..compilers import LinearModel, WindowSample
from ..ledger.definition import Add, Delete
from ..privacy import epsilon_of
from ..statistics import Classifier, Ridge
from ..statistics.models.classifier import ClassifierModel
from ..stream import HorizonWarning, Specification
from ..testing import StreamAlgorithm, in_memory, values_of
from ..testing.altered import understated
from ..testing.check import Check, Finding
from ..testing.seeds import Seeds
from .decoding import LARGEST_EPSILON, Guesses, significant
from .result import NOT_A_STREAM, Result, decimal, idle, report
from .target import Target, make_stream

TEST = "deletions from models"
# Records that stay, and the most whose deletion is decided in one run.
STAYING, MOST = 60, 16
# The guarantees, as mu, of models that are nearly exact; the attacker computes with the last.
NEARLY_EXACT = 64, 256
# The share of right guesses that must be a violation, and the multiples of the bits that are tried to show it.
CLEAR, TIMES = 0.95, (1, 2, 4, 8)


def model_deletions(target: Target, seeds: Seeds, *, bits: int = 128, confidence: float = 0.999) -> list[Result]:
    """About ``bits`` deletions from each linear model of a stream, guessed from the models before and after.

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120), "pay": ra.Integer(0, 9)}, {"m": ra.Ridge("age", "pay")},
    ...     epsilon=1.0, delta=1e-6, horizon=16)
    >>> [(one.verdict, one.control.caught) for one in model_deletions(Target.stream(spec), Seeds(1), bits=60)]
    [('passed', True)]
    """
    epsilon, delta = target.claim.epsilon, target.claim.delta
    if not 0 < epsilon <= LARGEST_EPSILON:
        return [_idle(f"No ε above 0 and up to {LARGEST_EPSILON:,} is claimed.")]
    if target.specification is None or not isinstance(target.make(Seeds(0).key()), StreamAlgorithm):
        return [_idle(f"It does not apply: {NOT_A_STREAM}.")]
    each = [one for name in target.specification.statistics if (one := Attacked(target, name)).open]
    if not each:
        return [_idle("It publishes no linear model of all records over two releases or more.")]
    tried = [bits * times for times in TIMES]
    bits = next((n for n in tried if significant(n, epsilon, delta, confidence) <= CLEAR * n), bits)
    check = ModelDeletions(bits, confidence)
    return [report(check, one, seeds.branch(one.name), part="reconstruction", test=one.title) for one in each]


def _idle(reason: str) -> Result:
    return idle("reconstruction", TEST, ModelDeletions.question, reason)


@dataclass(frozen=True)
class Attacked:
    """A stream, and the statistic whose models are read."""

    target: Target
    name: str

    @property
    def title(self) -> str:
        return f"{TEST}: {self.name}"

    @property
    def specification(self) -> Specification:
        assert self.target.specification is not None
        return self.target.specification

    @property
    def open(self) -> bool:
        """Whether this statistic publishes linear models of all records, before and after a deletion."""
        one = self.specification.statistics[self.name]
        whole = one.of if isinstance(one, WindowSample) and one.gate is None and one.form == "whole" else None
        if not isinstance(one, Ridge | Classifier) and not isinstance(whole, LinearModel):
            return False
        return not getattr(one, "where", None) and not getattr(one, "by", None) and self.deletions > 0

    @property
    def deletions(self) -> int:
        """As many as there are releases after the first, while the records of the first round are in the window."""
        room = min(self.specification.horizon or math.inf, self.specification.window_of(self.name) or math.inf)
        return int(min(room // self.specification.statistics[self.name].every - 1, MOST))

    def nearly_exact(self, mu: int) -> Attacked:
        """The same stream, with noise for this mu instead of that of its claim."""
        spec = in_memory(self.specification)
        granted = math.sqrt(spec.bounds[self.name].noise.share.amount)
        planted = understated(spec, self.name, Fraction(granted / mu).limit_denominator(10**6))
        sample = planted.bounds[self.name].statistic
        if isinstance(sample, WindowSample) and sample.of.epsilon is not None:  # every run pays for itself
            own: Any = copy(sample.of)
            own.epsilon = Fraction(min(epsilon_of(mu, float(own.delta)), LARGEST_EPSILON))
            planted.bounds[self.name].statistic = sample = copy(sample)
            sample.of = own
        return replace(self, target=replace(self.target, make=make_stream(planted)))

    def changes(self, records: Sequence[Hashable], deleted: Mask, seeds: Seeds) -> list[F64]:
        """What models say of a record after the round in which it may be deleted, less what they said before."""
        algorithm, fields = self.target.make(seeds.key()), self.specification.schema.fields
        assert isinstance(algorithm, StreamAlgorithm)
        models = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HorizonWarning)
            for index in range(-1, len(deleted)):
                first = [Add(record) for record in records] if index < 0 else []
                gone = [Delete(records[index], 1)] if index >= 0 and deleted[index] else []
                for step in range(self.specification.statistics[self.name].every):
                    release = algorithm.release([] if step else [*first, *gone])
                models.append(release[self.name].value)
        out = []
        for before, after, record in zip(models, models[1:], records, strict=False):
            row = [dict(zip(fields, record, strict=True))]  # type: ignore[call-overload]
            said = [m.predict_proba(row) if isinstance(m, ClassifierModel) else m.predict(row) for m in (before, after)]
            out.append(np.ravel(said[1] - said[0]))
        return out


@dataclass(frozen=True)
class ModelDeletions(Check[Attacked]):
    """Guesses about ``bits`` deletions, compared with what ε and δ allow."""

    bits: int
    confidence: float
    question = "Does a deletion show in the difference of two published models, to somebody who knows the record?"

    def planted(self, target: Attacked) -> list[list[tuple[str, Attacked]]]:
        words = "the same stream, with models that are nearly exact"
        return [[(f"{words} (μ = {mu})", target.nearly_exact(mu)) for mu in NEARLY_EXACT]]

    def run(self, target: Attacked, seeds: Seeds) -> Finding:
        each, claim = target.deletions, target.target.claim
        runs = -(-self.bits // each)
        right = sum(self._right(target, each, seeds.branch(run)) for run in range(runs))
        guesses = Guesses(right, runs * each, claim.epsilon, claim.delta, self.confidence)
        return Finding(
            tried=f"{runs} run{'s' * (runs != 1)} of the stream with {STAYING + each} records. A fair coin decided for "
            f"each of {each} of them, between one release and the next, whether it was deleted. Somebody who knows all "
            "records compared how the prediction for it changed with how it changes in a model that is nearly exact.",
            runs=runs,
            verdict=guesses.verdict,
            found=guesses.found("coins"),
            detectable=guesses.detectable,
            measured={
                "fraction guessed": decimal(right / guesses.bits),
                "fraction allowed on average": decimal(guesses.allowed),
            },
            seen=right >= CLEAR * guesses.bits,
        )

    def _right(self, target: Attacked, each: int, seeds: Seeds) -> int:
        """Guesses of one run that are right."""
        records = values_of(target.specification.schema, seeds.random(), STAYING + each, whole=True)
        deleted = seeds.branch("coins").numpy().integers(0, 2, each) == 1
        known = target.nearly_exact(NEARLY_EXACT[-1]).changes(records, np.ones(each, dtype=bool), seeds.branch("known"))
        seen = target.changes(records, deleted, seeds.branch("stream"))
        guesses = [2 * float(new @ full) > float(full @ full) for new, full in zip(seen, known, strict=True)]
        return int((np.array(guesses) == deleted).sum())
