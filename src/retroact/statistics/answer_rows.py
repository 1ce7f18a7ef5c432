"""How an answer becomes rows of a table: one row for each number, with the columns that say which number it is.

A statistic knows the form of its answers (`Statistic.answer_rows`). Rows are made from the JSON line of a release,
which is all that a store keeps; the schema gives keys their types back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

import msgspec

from ..checks import is_number
from ..schema import Boolean, Bytes, Category, Date, Field, Integer, Number, Schema, Timestamp

Kind = Literal["text", "integer", "number", "boolean", "date", "time", "bytes"]
KeyColumn = tuple[str, Kind]
Row = tuple[tuple[Any, ...], Any, Any, Any, Any]
"""Keys, value, standard error, and the ends of the 95 % interval."""


def _same(part: Any) -> Any:
    return part


def _truth(part: Any) -> bool:
    return part is True or part == "true"


READ: dict[Kind, Callable[[Any], Any]] = {
    "text": str,
    "integer": int,
    "number": float,
    "boolean": _truth,
    "date": date.fromisoformat,
    "time": datetime.fromisoformat,
    "bytes": b64decode,
}


class AnswerRows(ABC):
    """``keys`` are the columns that tell the numbers of an answer apart; ``values`` the kinds of its values: number,
    date, time or text."""

    keys: tuple[KeyColumn, ...] = ()
    values: tuple[Kind, ...] = ("number",)
    signed: bool = False
    """Whether a chart compares its numbers by their size, whatever their sign, without those named in parentheses."""

    @abstractmethod
    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        """The rows of an answer, from the parts of its JSON line."""


class OneValue(AnswerRows):
    """
    >>> list(OneValue("date").rows("2026-01-31", 1.5, ["2026-01-30", "2026-02-02"]))[0][1:3]
    (datetime.date(2026, 1, 31), 1.5)
    """

    def __init__(self, kind: Kind = "number") -> None:
        self.values = (kind,)
        self._read: Callable[[Any], Any] = _same if kind == "number" else READ[kind]

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        found, low, high = (None if part is None else self._read(part) for part in (value, *(interval or (None, None))))
        yield (), found, error, low, high


class ByKey(AnswerRows):
    """A dictionary of answers, by one key or by several together.

    >>> by = ByKey([("country", "text"), ("age", "integer")], OneValue())
    >>> list(by.rows({'["DE",31]': 5.0}, {'["DE",31]': 1.0}, {'["DE",31]': [3.0, 7.0]}))
    [(('DE', 31), 5.0, 1.0, 3.0, 7.0)]
    """

    def __init__(self, keys: Sequence[KeyColumn], of: AnswerRows) -> None:
        self.keys, self.values, self.signed = (*keys, *of.keys), of.values, of.signed
        self._own, self._of = [READ[kind] for _, kind in keys], of

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        for key, inner in value.items():
            parts = [key] if len(self._own) == 1 else msgspec.json.decode(key)
            own = tuple(read(part) for read, part in zip(self._own, parts, strict=True))
            for keys, *rest in self._of.rows(inner, part_of(error, key), part_of(interval, key)):
                yield (own + keys, *rest)


class ByPosition(AnswerRows):
    """A list of answers, numbered from 0."""

    def __init__(self, name: str, of: AnswerRows) -> None:
        self.keys, self.values, self._of = ((name, "integer"), *of.keys), of.values, of

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        for place, inner in enumerate(value):
            for keys, *rest in self._of.rows(inner, part_of(error, place), part_of(interval, place)):
                yield ((place, *keys), *rest)


class AnyRows(AnswerRows):
    """An answer of unknown form: numbers, and other values as text, each with its path.

    >>> [row[:2] for row in AnyRows().rows({"slope": [0.5, 2.0], "name": "line"}, None, None)]
    [(('slope/0',), 0.5), (('slope/1',), 2.0), (('name',), 'line')]
    """

    keys = (("key", "text"),)
    values = ("number", "text")

    def rows(self, value: Any, error: Any, interval: Any, path: str = "") -> Iterator[Row]:
        if isinstance(value, Mapping | list):
            for key in value if isinstance(value, Mapping) else range(len(value)):
                inner = f"{path}/{key}" if path else str(key)
                yield from self.rows(value[key], part_of(error, key), part_of(interval, key), inner)
            return
        pair = isinstance(interval, list) and len(interval) == 2 and all(is_number(end) for end in interval)
        low, high = interval if pair else (None, None)
        known = value is None or is_number(value)
        yield ((path or None,), value if known else str(value), error if is_number(error) else None, low, high)


def part_of(whole: Any, index: Any) -> Any:
    """The part of an error or an interval that belongs to a part of the value, if it has parts."""
    if isinstance(whole, Mapping):
        return whole.get(index)
    return whole[index] if isinstance(whole, list) and isinstance(index, int) and index < len(whole) else None


def kind_of(field: Field) -> Kind:
    """How the values of a field are written in a column.

    >>> kind_of(Category([1, 2, 3])), kind_of(Category(["a", 1])), kind_of(Date("2026-01-01", "2026-12-31"))
    ('integer', 'text', 'date')
    """
    if isinstance(field, Category):
        return "integer" if all(isinstance(value, int) for value in field.values) else "text"
    kinds: dict[type[Field], Kind] = {
        Boolean: "boolean", Bytes: "bytes", Date: "date", Integer: "integer", Number: "number", Timestamp: "time",
    }  # fmt: skip
    return next((kind for each, kind in kinds.items() if isinstance(field, each)), "text")


def by_fields(names: Sequence[str], schema: Schema, of: AnswerRows) -> AnswerRows:
    """Answers by the values of one field, or of several together; without fields, one answer."""
    return of if not names else ByKey([(name, kind_of(schema.fields[name])) for name in names], of)


NUMBER = OneValue()
