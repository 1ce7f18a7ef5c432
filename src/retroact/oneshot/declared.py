"""Algorithms with a declared contract: your own, and those of other libraries, which draw their own randomness."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..checks import from_text, number
from ..coins import Coins
from ..errors import InputError
from ..messages import mismatch
from ..privacy.budget import check_epsilon
from ..schema import Boolean, Field, Integer, Number, Rows, Schema, Vector, field_names, field_of
from .base import ADD_REMOVE, Contract, OneShot, Relation

Column = npt.NDArray[Any] | list[Any]
Function = Callable[[dict[str, Column], Coins], Any]


class Declared(OneShot):
    """Its contract is declared by somebody else and taken on trust."""

    proven: ClassVar[bool] = False

    def __init__(self, contract: Contract, name: str) -> None:
        self._contract, self.name = contract, name
        self.epsilon = contract.epsilon

    @property
    def label(self) -> str:
        return self.name

    def promised(self, epsilon: Fraction) -> Contract:
        return self._contract

    def at(self, epsilon: Fraction) -> Self:
        if epsilon != self.epsilon:
            own = f"the epsilon that {self.name} spends, {float(self._contract.epsilon):g}"
            raise InputError(f"expected {own}, got {float(epsilon):g}", place="epsilon")
        return self


class Own(Declared):
    """Runs ``function(columns, coins)`` on decoded values by field, as arrays (numbers, booleans, vectors) or lists, in
    an order that only the values decide. The named coins are all the randomness it may use (`retroact.coins` has exact
    laws). It must answer for any records, and for none.

    **Privacy.** What you declare: epsilon and delta for one record more or less (or for ``relation``). Nothing here can
    check it. The declaration is for multisets: values come sorted, so one record in the place of another can shift all
    of them by one. ``name`` identifies the function in the specification. ``fields`` are those that it reads and is
    given; without them it reads all, and a record that lacks any is left out.

    >>> from retroact.coins import DiscreteLaplace
    >>> def size(columns, coins):
    ...     return len(columns["age"]) + int(DiscreteLaplace(2).sample(coins.words([0], [0]))[0, 0])
    >>> Own(size, epsilon=0.5)
    Own(epsilon=0.5, name='size')
    """

    kind: ClassVar[str] = "own"
    unwritten: ClassVar[tuple[str, ...]] = ("function",)

    def __init__(
        self,
        function: Function,
        *,
        epsilon: float | Fraction,
        delta: float | Fraction = Fraction(0),
        name: str | None = None,
        bounded_range: bool = False,
        relation: Relation = ADD_REMOVE,
        fields: Sequence[str] | None = None,
    ) -> None:
        if not callable(function):
            raise InputError(f"expected a function of columns and coins, got {function!r}", place="function")
        found = name if name is not None else getattr(function, "__name__", "")
        if not isinstance(found, str) or not found or found == "<lambda>":
            raise InputError("expected a name for a function without one, got none", place="name")
        self.function, self.fields = function, None if fields is None else field_names(fields)
        exact = Fraction(str(number(from_text(delta), "delta", "a number from 0 to below 1")))
        super().__init__(Contract(check_epsilon(from_text(epsilon)), exact, relation, bounded_range), found)

    def argument(self, name: str) -> Any:
        promised = name in ("delta", "relation", "bounded_range")
        return getattr(self.contract, name) if promised else super().argument(name)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return tuple(schema.fields) if self.fields is None else self.fields

    def check(self, schema: Schema, place: str) -> None:
        for name in self.fields or ():
            field_of(schema, name, place=f"{place}.fields")
        none = columns_of(Rows.empty(schema), schema, self.reads(schema))
        try:
            self.function(none, Coins(bytes(32)))
        except Exception as error:
            raise InputError(
                f"expected an algorithm that also answers for no records, got {type(error).__name__} from {self.name}",
                place=place,
            ) from error

    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        columns = columns_of(rows, schema, self.reads(schema))
        return guarded(self.name, lambda: self.function(columns, coins))


def guarded(name: str, run: Callable[[], Any]) -> Any:
    """The result of ``run``; an error is passed on without its text, which may reveal records."""
    try:
        return run()
    except Exception as error:
        kind = type(error).__name__
    raise InputError(f"expected an answer from {name} for any records, got {kind}", place=name)


class Unkeyed(Declared):
    """Algorithms that draw their own randomness.

    **Privacy.** The contract is the library's word. **Retroactivity.** In law: an answer has the law that it would have
    without the deleted records, but not the same bytes. So no answer is computed twice.
    """

    keyed: ClassVar[bool] = False

    @abstractmethod
    def answer(self, rows: Rows, schema: Schema) -> Any: ...

    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        if self.takes is not None and rows.count != self.takes:
            raise mismatch(f"{self.takes} records, the size of the domain", rows.count, self.name)
        return guarded(self.name, lambda: self.answer(rows, schema))


def canonical(rows: Rows, schema: Schema) -> Rows:
    """The rows sorted by their fields, in the order of the schema; texts by code points, as in UTF-8.

    >>> from retroact.schema import Text
    >>> schema = Schema({"name": Text(), "age": Integer(0, 120)})
    >>> canonical(Rows.from_tuples(schema, [("é", 3), ("b", 5), ("b", 4)]), schema).columns["age"].tolist()
    [4, 5, 3]
    """
    keys: list[I64] = []
    for name, field in schema.fields.items():
        if name not in rows.columns:
            continue
        column = rows.columns[name]
        if field.interned:
            place = {text: i for i, text in enumerate(sorted(set(column.tolist())))}
            keys.append(np.array([place[text] for text in column.tolist()], dtype=np.int64))
        else:
            keys += [column] if column.ndim == 1 else list(column.T)
    return rows.take(np.lexsort(keys[::-1]))


def decoded(column: npt.NDArray[Any], field: Field) -> Column:
    """An array for numbers, booleans and vectors (one row each), a list for everything else."""
    if isinstance(field, Vector):
        flat = decoded(column.reshape(-1), Number(field.lower * field.step, field.upper * field.step, step=field.step))
        return np.asarray(flat).reshape(column.shape)
    if field.interned:
        return [field.decode(text) for text in column.tolist()]
    codes, inverse = np.unique(column, return_inverse=True)
    values = [field.decode(code) for code in codes.tolist()]
    if isinstance(field, Number | Integer | Boolean):
        dtype = {Number: np.float64, Integer: np.int64, Boolean: np.bool_}[type(field)]
        found: npt.NDArray[Any] = np.array(values, dtype=dtype)[inverse]
        return found
    return [values[i] for i in inverse.tolist()]


def columns_of(rows: Rows, schema: Schema, names: Sequence[str] | None = None) -> dict[str, Column]:
    """Decoded columns in canonical order."""
    ordered = canonical(rows, schema)
    chosen = rows.columns if names is None else names
    return {name: decoded(ordered.columns[name], schema.fields[name]) for name in chosen}
