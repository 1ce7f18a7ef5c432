"""Releases as one tidy table: a row for each published number, and columns that are the same for every format.

`round`, `start` and `end` (where rounds have times), `statistic`, key columns, then the number: `value`, or
`value_time` for dates and times and `value_text` for texts, where there are such values; `standard_error`, in the unit
of the value (days for dates, seconds for times); `low` and `high`, the ends of the 95 % interval (`low_time` and
`high_time` for dates and times). The columns follow from the specification, never from the data.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import msgspec

from ..errors import InputError
from ..statistics.answer_rows import AnswerRows, Kind

NOT_PRIVATE = "NOT PRIVATE: testing key"
FIXED = (
    "round", "start", "end", "statistic", "value", "value_time", "value_text", "standard_error", "low", "high",
    "low_time", "high_time", "testing_key",
)  # fmt: skip
Span = tuple[datetime, datetime]
Threshold = Callable[[str, int], float | None]
"""The noisy count from which a bin is published, by statistic and round."""


class Column(msgspec.Struct, frozen=True):
    """``zone`` is the time zone in which times are shown."""

    name: str
    kind: Kind
    zone: str = "UTC"


class Table(msgspec.Struct, frozen=True):
    """Columns of equal length, as lists; an empty cell is None."""

    columns: tuple[Column, ...]
    cells: tuple[list[Any], ...]

    def __len__(self) -> int:
        return len(self.cells[0]) if self.cells else 0

    def __getitem__(self, name: str) -> list[Any]:
        return self.cells[self.names.index(name)]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        from .arrow import c_stream

        return c_stream(self, requested_schema)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def texts(self) -> Iterable[tuple[str, ...]]:
        """The rows, as a file of text has them."""
        kinds = [column.kind for column in self.columns]
        return zip(*(map(_writer(kind), cells) for kind, cells in zip(kinds, self.cells, strict=True)), strict=True)

    @classmethod
    def of_rows(cls, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Table:
        cells: Any = list(zip(*rows, strict=True)) or [()] * len(columns)
        return cls(tuple(columns), tuple(map(list, cells)))


class TableForm:
    """The columns of a stream's releases, and how a JSON line becomes rows of them.

    >>> from retroact.statistics.answer_rows import ByKey, OneValue
    >>> form = TableForm({"orders": OneValue(), "countries": ByKey([("country", "text")], OneValue())})
    >>> form.names
    ['round', 'statistic', 'country', 'value', 'standard_error', 'low', 'high']
    >>> line = {"round": 1, "statistic": "countries", "value": {"DE": 5.0}, "standard_error": {"DE": 1.0},
    ...         "interval95": {"DE": [3.0, 7.0]}}
    >>> list(form.table([line]).texts())
    [('1', 'countries', 'DE', '5.0', '1.0', '3.0', '7.0')]
    """

    def __init__(
        self,
        statistics: Mapping[str, AnswerRows],
        *,
        span: Callable[[int], Span | None] | None = None,
        zone: str = "UTC",
        testing: bool = False,
        threshold: Threshold | None = None,
    ) -> None:
        self.threshold = threshold or _no_threshold
        self.testing = testing
        """Whether the releases are made with a testing key, and so not private."""
        self._statistics, self._span, self._zone = statistics, span, zone
        self._keys = {name: _own_names(rows) for name, rows in statistics.items()}
        self.keys: dict[str, Kind] = {}
        """The key columns of all statistics."""
        for name, rows in statistics.items():
            for own, (_, kind) in zip(self._keys[name], rows.keys, strict=True):
                self.keys[own] = _common(self.keys.get(own, kind), kind)
        values = {kind for rows in statistics.values() for kind in rows.values}
        self._time: Kind | None = "time" if "time" in values else "date" if "date" in values else None
        self._text = "text" in values
        self.columns = tuple(self._columns())

    def _columns(self) -> Iterable[Column]:
        yield Column("round", "integer")
        if self._span is not None:
            yield from (Column("start", "time", self._zone), Column("end", "time", self._zone))
        yield Column("statistic", "text")
        yield from (Column(name, kind) for name, kind in self.keys.items())
        yield Column("value", "number")
        yield from [Column("value_time", self._time)] if self._time else []
        yield from [Column("value_text", "text")] if self._text else []
        yield from (Column(name, "number") for name in ("standard_error", "low", "high"))
        yield from [Column("low_time", self._time), Column("high_time", self._time)] if self._time else []
        yield from [Column("testing_key", "text")] if self.testing else []

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def only(self, statistic: str) -> TableForm:
        """Restrict the form to the releases of one statistic."""
        own = {statistic: self._statistics[statistic]}
        return TableForm(own, span=self._span, zone=self._zone, testing=self.testing, threshold=self.threshold)

    @property
    def statistics(self) -> list[str]:
        return list(self._statistics)

    def keys_of(self, statistic: str) -> list[str]:
        """The key columns of one statistic."""
        return self._keys[statistic]

    def signed(self, statistic: str) -> bool:
        """Whether its numbers are compared by their size (`AnswerRows.signed`)."""
        return self._statistics[statistic].signed

    def check(self) -> None:
        """Refuse key columns that would need another name; for streams that are made now."""
        for statistic, rows in self._statistics.items():
            for own, (name, _) in zip(self._keys[statistic], rows.keys, strict=True):
                if own != name:
                    raise InputError(
                        f"expected key columns with names unlike those of each table of releases, got {name!r}: rename "
                        f"the field (taken: {', '.join(FIXED)}, and other keys of this statistic)",
                        place=f"statistics.{statistic}",
                    )

    def line(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """A release as a line of output: with the times of its round, and a mark if it is not private."""
        span = None if self._span is None else self._span(line["round"])
        times = {} if span is None else {"start": time_text(span[0]), "end": time_text(span[1])}
        mark = {"testing_key": True} if self.testing else {}
        return {"round": line["round"], **times, **{k: v for k, v in line.items() if k != "round"}, **mark}

    def table(self, lines: Iterable[Mapping[str, Any]]) -> Table:
        """The rows of these releases, as `Release.to_dict` has them."""
        return Table.of_rows(self.columns, (row for line in lines for row in self._rows(line)))

    def _rows(self, line: Mapping[str, Any]) -> Iterable[list[Any]]:
        name, round = line["statistic"], line["round"]
        form, names = self._statistics[name], self._keys[name]
        span = () if self._span is None else self._span(round) or (None, None)
        # for each key column, where this statistic has it, and how it is written there
        own = [
            (names.index(key), _cast(form.keys[names.index(key)][1], kind)) if key in names else None
            for key, kind in self.keys.items()
        ]
        mark = [NOT_PRIVATE] if self.testing else []
        for keys, *numbers in form.rows(line["value"], line["standard_error"], line["interval95"]):
            cells = (None if each is None or keys[each[0]] is None else each[1](keys[each[0]]) for each in own)
            yield [round, *span, name, *cells, *self._values(*numbers), *mark]

    def _values(self, value: Any, error: Any, low: Any, high: Any) -> Iterable[Any]:
        numbers = [None if isinstance(part, str | date) else part for part in (value, error, low, high)]
        times = [part if isinstance(part, date) else None for part in (value, low, high)]
        yield numbers[0]
        yield from times[:1] if self._time else []
        yield from [value if isinstance(value, str) else None] if self._text else []
        yield from numbers[1:]
        yield from times[1:] if self._time else []


def _no_threshold(statistic: str, round: int) -> None:
    return None


def _own_names(rows: AnswerRows) -> list[str]:
    """The names of its key columns; one that is taken gets an underscore."""
    found: list[str] = []
    for name, _ in rows.keys:
        while name in FIXED or name in found:
            name += "_"
        found.append(name)
    return found


def _common(one: Kind, other: Kind) -> Kind:
    """The kind of a column in which two statistics have their keys: text, if they are of different kinds."""
    if one == other:
        return one
    return "number" if {one, other} == {"integer", "number"} else "text"


def _cast(kind: Kind, wanted: Kind) -> Callable[[Any], Any]:
    return (lambda key: key) if wanted in (kind, "number") else _writer(kind)


def time_text(moment: date) -> str:
    """
    >>> time_text(datetime.fromisoformat("2026-01-01T00:00:00+00:00")), time_text(date(2026, 1, 1))
    ('2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z')
    """
    return moment.isoformat().replace("+00:00", "Z") if isinstance(moment, datetime) else f"{moment}T00:00:00Z"


def _writer(kind: Kind) -> Callable[[Any], str]:
    """How cells of a column are written as text; an empty cell is the empty text."""
    write: Callable[[Any], str] = {
        "time": time_text,
        "bytes": lambda cell: b64encode(cell).decode(),
        "boolean": lambda cell: "true" if cell else "false",
        "number": repr,
    }.get(kind, str)
    return lambda cell: "" if cell is None else write(cell)
