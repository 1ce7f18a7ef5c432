"""One-shot private algorithms: a multiset of records in, one private answer out. Compilers run them again and again.

**Privacy.** Each has a contract (epsilon, delta) for one record more or less (or, where it says so, one record in the
place of another), whatever the records are: also for none at all. **Retroactivity.** A one-shot algorithm has no past:
it is a function of the multiset of its records and of the coins that it is handed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from ..checks import number
from ..coins import Coins
from ..errors import InputError
from ..params import Parameters
from ..schema import Field, Rows, Schema

Relation = Literal["one record more or less", "one record in the place of another"]
ADD_REMOVE: Relation = "one record more or less"
SUBSTITUTION: Relation = "one record in the place of another"


class Bottom:
    """No answer: a value of its own, which a private algorithm gives when it finds too little data.

    >>> BOTTOM, bool(BOTTOM)
    (⊥, False)
    """

    def __repr__(self) -> str:
        return "⊥"

    def __bool__(self) -> bool:
        return False

    def to_plain(self) -> str:
        """As it is written in output."""
        return "⊥"


BOTTOM = Bottom()


@dataclass(frozen=True)
class Contract(Parameters):
    """What one run promises: P(A) <= e^epsilon Q(A) + delta for any two neighbouring multisets.

    ``bounded_range``: log P(y) / Q(y) lies, over all answers y, in an interval of length epsilon (what an exponential
    mechanism has, and pure privacy alone has not).
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

    ``epsilon`` is what one run spends; None leaves it to whoever runs the algorithm (`at`).
    """

    kinds: ClassVar[dict[str, type[Any]]] = {}
    keyed: ClassVar[bool] = True
    """Whether its answer is a function of the records and the coins. Otherwise it has randomness of its own: it is
    retroactive in law and not in bytes, and is never run twice for one answer."""

    proven: ClassVar[bool] = True
    """Whether the contract is proved here; otherwise it is what somebody declares."""

    epsilon: Fraction | None
    takes: int | None = None
    """How many records it takes, where that is fixed."""

    @property
    def label(self) -> str:
        """What people are told that it is."""
        return self.kind.replace("_", " ")

    @property
    def spent(self) -> Fraction:
        """What one run spends; raises where that is not settled yet."""
        if self.epsilon is None:
            raise InputError("expected an epsilon for one run, got none", place="epsilon")
        return self.epsilon

    @property
    def contract(self) -> Contract:
        return self.promised(self.spent)

    @abstractmethod
    def promised(self, epsilon: Fraction) -> Contract:
        """The contract of one run that spends so much."""

    def at(self, epsilon: Fraction) -> Self:
        """The same algorithm, with so much to spend in one run."""
        return self.replace(epsilon=epsilon)

    @abstractmethod
    def check(self, schema: Schema, place: str) -> None:
        """Raises where the schema does not fit."""

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """The fields it looks at: two records that agree in them are the same to it, and one that lacks any of them is
        not there for it."""
        return tuple(schema.fields)

    @abstractmethod
    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        """The answer for a multiset of records, which may be empty. The order of the rows must not matter."""

    def needed(self, schema: Schema, beta: float) -> int | None:
        """How many records it takes for an answer that lies within the data with probability 1 - beta; None where
        nobody knows. Asks for a settled epsilon."""
        return None

    def rank_error(self, schema: Schema, beta: float) -> float | None:
        """How many ranks the answer is off at most, with probability 1 - beta; None where nobody knows."""
        return None


def known_field(schema: Schema, name: str, place: str) -> Field:
    if name not in schema.fields:
        raise InputError(f"expected one of the fields {', '.join(schema.fields)}, got {name!r}", place=place)
    return schema.fields[name]
