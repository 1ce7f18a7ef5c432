"""One-shot private algorithms: a multiset of records in, one private answer out. Compilers run them repeatedly.

**Privacy.** Each has a contract (epsilon, delta) for one record more or less (or, where it says so, one record in the
place of another), whatever the records, also for none. **Retroactivity.** A one-shot algorithm has no past: it is a
function of the multiset of its records and of the coins that it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from ..checks import number
from ..coins import Coins
from ..errors import InputError
from ..noise import Mechanism
from ..params import Parameters
from ..schema import Rows, Schema

Relation = Literal["one record more or less", "one record in the place of another"]
ADD_REMOVE: Relation = "one record more or less"
SUBSTITUTION: Relation = "one record in the place of another"


class Bottom:
    """No answer: what a private algorithm returns when it finds too little data.

    >>> BOTTOM, bool(BOTTOM)
    (⊥, False)
    """

    def __repr__(self) -> str:
        return "⊥"

    def __bool__(self) -> bool:
        return False

    def to_plain(self) -> str:
        """For output."""
        return "⊥"


BOTTOM = Bottom()


@dataclass(frozen=True)
class Contract(Parameters):
    """What one run promises: P(A) <= e^epsilon Q(A) + delta for any two neighbouring multisets.

    ``bounded_range``: log P(y) / Q(y) lies, over all answers y, in an interval of length epsilon (as for an exponential
    mechanism; pure privacy alone does not imply it).
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    relation: Relation = ADD_REMOVE
    bounded_range: bool = False

    def __post_init__(self) -> None:
        number(float(self.epsilon), "epsilon", "a number above 0 and up to 1,000", above=0, most=1000)
        number(float(self.delta), "delta", "a number from 0 to below 1", least=0, below=1)


class OneShot(Parameters, ABC):
    """A private algorithm for one multiset of records.

    ``epsilon`` is what one run spends; None leaves it to the caller (`at`).
    """

    kinds: ClassVar[dict[str, type[Any]]] = {}
    keyed: ClassVar[bool] = True
    """Whether its answer is a function of the records and the coins. Otherwise it draws its own randomness: it is
    retroactive in law but not in bytes, and is never run twice for one answer."""

    proven: ClassVar[bool] = True
    """Whether its contract is proved here; otherwise it is declared by somebody else."""

    epsilon: Fraction | None
    takes: int | None = None
    """How many records it takes, if that is fixed."""

    @property
    def label(self) -> str:
        """A readable name."""
        return self.kind.replace("_", " ")

    @property
    def spent(self) -> Fraction:
        """What one run spends; raises if that is not set yet."""
        if self.epsilon is None:
            raise InputError("expected an epsilon for one run, got none", place="epsilon")
        return self.epsilon

    @property
    def contract(self) -> Contract:
        return self.promised(self.spent)

    @abstractmethod
    def promised(self, epsilon: Fraction) -> Contract:
        """The contract of one run with this epsilon."""

    def at(self, epsilon: Fraction) -> Self:
        """The same algorithm, with this epsilon for one run."""
        return self.replace(epsilon=epsilon)

    @abstractmethod
    def check(self, schema: Schema, place: str) -> None:
        """Raises if the schema does not fit."""

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """The fields it looks at: records that agree in them are the same to it, and it ignores records that lack
        any."""
        return tuple(schema.fields)

    @abstractmethod
    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        """The answer for a multiset of records, which may be empty. The order of the rows must not matter."""

    def in_release(self, rows: Rows, schema: Schema, noise: Mechanism, index: int, round: int) -> Any:
        """The answer for release number ``index``, in this round; ``noise`` is that of the statistic."""
        return self.run(rows, schema, noise.coins.branch("answer", round))

    def needed(self, schema: Schema, beta: float) -> int | None:
        """How many records it takes for an answer within the data with probability 1 - beta; None if unknown. Needs an
        epsilon."""
        return None

    def rank_error(self, schema: Schema, beta: float) -> float | None:
        """How many ranks the answer is off at most, with probability 1 - beta; None if unknown."""
        return None
