"""From noisy answers back to bits: a decoder, and how many bits privacy lets anybody get right.

One bit is one operation: the record is added or it is not. So the epsilon here is that of one operation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..arrays import F64, I64
from ..arrays import Mask as Bits
from ..errors import InputError
from ..testing.check import Verdict

# Beyond it no stream can be made, and nothing is promised.
LARGEST_EPSILON = 1000

__all__ = [
    "F64", "I64", "LARGEST_EPSILON", "Bits", "Guesses", "ceiling", "chance", "checked", "decode_lp", "fraction_right",
    "significant",
]  # fmt: skip


def decode_lp(queries: npt.ArrayLike, answers: npt.ArrayLike, *, shift: bool = True) -> F64:
    """The y in [0, 1]^n and the shift c with the smallest sum of |answers - queries y - c|, by linear programming.

    Robust: answers that are junk cost as much as others of the same size, so a fraction of them does little harm
    (Dwork, McSherry and Talwar; paper, Appendix D). The program of the paper has no shift (``shift=False``). A free one
    takes up an error that all answers share, here that of the first count: the attack is the stronger for it.

    >>> queries = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, -1], [-1, -1, 1], [1, -1, -1]])
    >>> decode_lp(queries, queries @ [1, 0, 1] + 10).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    try:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, eye_array, hstack, vstack
    except ImportError:
        raise InputError("expected scipy for the linear program, got none: install retroact[audit]") from None
    matrix, b = checked(queries, answers)
    k, n = matrix.shape
    own = hstack([csr_array(matrix), csr_array(np.ones((k, 1)))])
    slack = eye_array(k)
    both = vstack([hstack([own, -slack]), hstack([-own, -slack])])
    bounds = [(0.0, 1.0)] * n + [(None, None) if shift else (0.0, 0.0)] + [(0.0, None)] * k
    cost = np.concatenate([np.zeros(n + 1), np.ones(k)])
    found = linprog(cost, A_ub=both.tocsr(), b_ub=np.concatenate([b, -b]), bounds=bounds, method="highs")
    if found.x is None:
        raise InputError(f"expected a linear program with a solution, got {found.message}", place="answers")
    decoded: F64 = found.x[:n]
    return decoded


def fraction_right(decoded: F64, secret: Bits) -> float:
    """The fraction of bits that are right when the decoded numbers are rounded.

    >>> fraction_right(np.array([0.9, 0.2, 0.4]), np.array([True, False, True]))
    0.6666666666666666
    """
    return float(((decoded > 0.5) == secret).mean())


def ceiling(epsilon: float, delta: float = 0.0) -> float:
    """The largest expected fraction of fair bits that anybody gets right, where each bit is one operation.

    Proof of Lemma "reconstruction" (paper, Appendix D), for any epsilon: with p_b the probability of the guess 1 when
    the bit is b, p_1 <= e^eps p_0 + delta and 1 - p_0 <= e^eps (1 - p_1) + delta; add them up.

    >>> round(ceiling(1.0, 0.1), 4), ceiling(0.0)
    (0.758, 0.5)
    """
    if not epsilon >= 0 or not 0 <= delta <= 1:
        raise InputError(f"expected epsilon from 0 on and delta from 0 to 1, got {epsilon} and {delta}")
    odds = math.exp(-epsilon)
    return min(1.0, (1 + delta * odds) / (1 + odds))


def chance(right: int, bits: int, epsilon: float, delta: float = 0.0) -> float:
    """A bound on the probability of at least this many right guesses of independent fair bits, under privacy.

    Without delta: given what was published and the bits before it, each bit is still as likely as its opposite up to
    e^epsilon, so right guesses are at most binomial with e^eps / (1 + e^eps). With delta: Steinke, Nasr and Jagielski,
    "Privacy auditing with one (1) training run" (2023), Theorem 5.2. Bits of independent runs count together: one bit
    is an operation in one of them.

    >>> round(chance(90, 100, math.log(3)), 6), chance(75, 100, math.log(3)) > 0.5
    (0.000137, True)
    """
    if not 0 <= right <= bits:
        raise InputError(f"expected from 0 to {bits} right guesses, got {right}", place="right")
    from scipy.stats import binom

    mass = binom.pmf(np.arange(bits + 1), bits, ceiling(epsilon))
    beta = float(mass[right:].sum())
    if right == 0 or delta == 0:
        return min(1.0, beta)
    below = np.cumsum(mass[:right][::-1]) / np.arange(1, right + 1)
    return min(1.0, beta + 2 * bits * delta * float(below.max()))


def significant(bits: int, epsilon: float, delta: float, confidence: float) -> int:
    """The smallest number of right guesses that privacy makes less likely than 1 - confidence; bits + 1 if none is.

    >>> significant(256, 1.0, 1e-6, 0.999), significant(256, 20.0, 1e-6, 0.999)
    (209, 257)
    """
    low, high = 0, bits + 1
    while low < high:
        middle = (low + high) // 2
        if chance(middle, bits, epsilon, delta) <= 1 - confidence:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class Guesses:
    """Right guesses of fair bits, each one operation, against what a claim allows."""

    right: int
    bits: int
    epsilon: float
    delta: float
    confidence: float

    @cached_property
    def least(self) -> int:
        """The fewest right guesses that contradict the claim; more than there are if none do."""
        return significant(self.bits, self.epsilon, self.delta, self.confidence)

    @property
    def allowed(self) -> float:
        return ceiling(self.epsilon, self.delta)

    @property
    def verdict(self) -> Verdict:
        return "violation" if self.right >= self.least else "inconclusive" if self.least > self.bits else "passed"

    def found(self, what: str) -> str:
        said = {
            "passed": "That is within the promise.",
            "inconclusive": "With so few bits and so weak a promise, even all of them right would not contradict it.",
        }.get(self.verdict)
        if said is None:
            most = chance(self.right, self.bits, self.epsilon, self.delta)
            said = f"More than the promise allows: it gives this at most a probability of {most:.2g}."
        return (
            f"{self.right} of {self.bits} {what} were guessed right ({self.right / self.bits:.1%}); coin tossing gives "
            f"50 %, and ε = {self.epsilon:g} allows {self.allowed:.1%} on average. {said}"
        )

    @property
    def detectable(self) -> str:
        if self.least > self.bits:
            return f"Nothing: even all {self.bits} bits right would not contradict the promise."
        return (
            f"{self.least} of {self.bits} bits ({self.least / self.bits:.1%}) or more would have been called a "
            f"violation: the promise gives that a probability of at most {1 - self.confidence:.2g}."
        )


def checked(queries: npt.ArrayLike, answers: npt.ArrayLike) -> tuple[F64, F64]:
    """A matrix and an answer for each row, all finite."""
    matrix, b = np.asarray(queries, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    if matrix.ndim != 2 or b.shape != matrix.shape[:1] or not matrix.size:
        raise InputError(f"expected a matrix and an answer for each row, got {matrix.shape} and {b.shape}")
    if not (np.isfinite(matrix).all() and np.isfinite(b).all()):
        raise InputError("expected finite queries and answers", place="answers")
    return matrix, b
