"""Statistics as options of the command line: texts such as ``age:0.25,0.5:0..120`` as tables of a specification."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..messages import exact_text, show
from ..schema import Field
from ..schema.numbers import exact_number

BOUNDED = "FIELD:LOW..HIGH[:STEP]"
Table = dict[str, Any]
_BOUNDS = re.compile(r"(?P<field>.+?):(?P<lower>[^:]+?)\.\.(?P<upper>[^:]+)(?::(?P<step>[^:]+))?", re.DOTALL)
_PROBABILITIES = re.compile(r"(?P<field>.+?):(?P<listed>[0-9.]+(?:,[0-9.]+)*):(?P<bounds>[^:]+\.\.[^:]+(?::[^:]+)?)")
_CONDITION = re.compile(r"(?P<field>.+?)\s*(?P<sign>[=<>!]+|\bin\b)\s*(?P<value>.+)", re.DOTALL)
_SIGNS = ("=", "in", "<", "<=", ">", ">=")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
UNEQUAL = "all but one category is a list of the others: 'country in DE, FR'"
# Every other value counts as "other".
REST = "*"


@dataclass
class Described:
    """The tables [schema] and [statistics] that a file would have, as options are read."""

    schema: dict[str, Table] = field(default_factory=dict)
    statistics: dict[str, Table] = field(default_factory=dict)
    clip: bool = False
    skip_missing: bool = False
    mentioned: list[str] = field(default_factory=list)

    def declare(self, name: str, table: Table, place: str) -> None:
        """A field may be named by several options, with the same bounds."""
        if self.skip_missing:
            table = {**table, "missing": "skip"}
        if self.clip and table["type"] in ("number", "date"):
            table = {**table, "clip": True}
        if self.schema.setdefault(name, table) != table:
            raise InputError(f"expected {name} with the same bounds everywhere, got other ones", place=place)
        Field.from_spec(table, place)

    def mention(self, name: str) -> None:
        """A field without bounds is text, unless another option declares it."""
        self.mentioned.append(name)

    def add(self, name: str, table: Table, place: str) -> None:
        if name in self.statistics:
            raise InputError(f"expected every statistic once, got {name} twice", place=place)
        self.statistics[name] = table

    def bounded(self, text: str, option: str) -> str:
        """Declares a number, or a date, by its bounds; returns its name."""
        name, table = bounded(text, option)
        self.declare(name, table, f"{option} {text}")
        return name


def bounded(text: str, option: str) -> tuple[str, Table]:
    """
    >>> bounded("amount:0..500:0.01", "--sum")
    ('amount', {'type': 'number', 'lower': '0', 'upper': '500', 'step': '0.01'})
    >>> bounded("day:2024-01-01..2024-12-31", "--quantiles")
    ('day', {'type': 'date', 'lower': '2024-01-01', 'upper': '2024-12-31'})
    """
    parts = _BOUNDS.fullmatch(text)
    if parts is None:
        raise InputError(f"expected a field with its bounds, such as amount:0..500, got {text!r}", place=option)
    given = {key: part.strip() for key, part in parts.groupdict().items() if part is not None and key != "field"}
    kind = "date" if _DAY.fullmatch(given["lower"]) else "number"
    return parts["field"], {"type": kind, **given}


def listed(text: str) -> list[str]:
    """The parts of a list in an option, without the spaces around them.

    >>> listed("Ann, Bob Lee,")
    ['Ann', 'Bob Lee', '']
    """
    return [part.strip() for part in text.split(",")]


def categories(text: str, place: str = "--by") -> tuple[str, Table]:
    """
    >>> categories("country=DE, FR,*")
    ('country', {'type': 'category', 'values': ['DE', 'FR'], 'other': 'other'})
    """
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise InputError(f"expected a field with its categories, such as country=DE,FR,US, got {text!r}", place=place)
    words = listed(values)
    rest = {"other": "other"} if words[-1] == REST else {}
    return name.strip(), {"type": "category", "values": words[: len(words) - len(rest)], **rest}


def conditions(texts: list[str], described: Described, option: str = "--where") -> Table:
    """The table ``where`` of conditions such as ``age >= 18``; all of them must hold. Errors name the ``option`` that
    has them.

    >>> conditions(["age:0..120:1 >= 18", "age < 65", "country in DE, FR"], Described())
    {'age': {'min': '18', 'max': '64'}, 'country': ['DE', 'FR']}
    """
    where: Table = {}
    for text in texts:
        name, condition = _condition(text, described, option)
        known = where.get(name)
        if isinstance(known, dict) and isinstance(condition, dict) and not known.keys() & condition.keys():
            condition = {**known, **condition}
        elif known is not None:
            raise InputError(f"expected one condition on {name!r}, got two", place=f"{option} {show(text)}")
        where[name] = condition
    return where


def _condition(text: str, described: Described, option: str) -> tuple[str, Any]:
    parts = _CONDITION.fullmatch(text.strip())
    if parts is None:
        expected = "a condition such as 'country = DE', 'age:0..120 >= 18' or 'country in DE, FR'"
        raise InputError(f"expected {expected}, got {text!r}", place=option)
    name, sign, value = parts["field"].strip(), parts["sign"], parts["value"].strip()
    if sign not in _SIGNS:
        expected = f"one of {', '.join(_SIGNS)} between a field and a value"
        advice = UNEQUAL if sign in ("!=", "<>") else None
        raise InputError(expected=expected, found=repr(sign), place=f"{option} {show(text)}", hint=advice)
    if _BOUNDS.fullmatch(name):
        name = described.bounded(name, option)
    if sign in ("<", "<=", ">", ">="):
        return name, _compared(name, sign, value, described, f"{option} {show(text)}")
    described.mention(name)
    return name, value if sign == "=" else listed(value)


def _compared(name: str, sign: str, value: str, described: Described, place: str) -> Table:
    """A bound on a number, moved inwards to the next lattice value that meets the condition."""
    table = described.schema.get(name)
    if table is None or table["type"] not in ("number", "date"):
        bounds = "2020-01-01..2030-12-31" if _DAY.fullmatch(value) else "0..100"
        expected = f"the bounds of {name}, such as '{name}:{bounds} {sign} {value}'"
        raise InputError(f"expected {expected}, got none", place=place)
    end = "max" if sign in ("<", "<=") else "min"
    if table["type"] == "date":
        if sign not in ("<=", ">="):
            raise InputError(f"expected <= or >= for a date, got {sign}", place=place)
        return {end: value}
    step = Field.from_spec(table, "").step
    steps: Fraction = exact_number(value, place) / step
    nearest = {"<=": math.floor(steps), "<": math.ceil(steps) - 1, ">=": math.ceil(steps), ">": math.floor(steps) + 1}
    return {end: exact_text(nearest[sign] * step)}


def quantiles(text: str, described: Described) -> tuple[str, Table]:
    """``FIELD:LOW..HIGH``, or ``FIELD:P,P:LOW..HIGH``."""
    parts = _PROBABILITIES.fullmatch(text)
    if parts is None:
        name = described.bounded(text, "--quantiles")
        return f"quantiles_{name}", {"type": "quantiles", "field": name}
    name = described.bounded(f"{parts['field']}:{parts['bounds']}", "--quantiles")
    probabilities = [float(p) for p in listed(parts["listed"])]
    return f"quantiles_{name}", {"type": "quantiles", "field": name, "probabilities": probabilities}


def of_texts(kind: str, text: str, described: Described) -> tuple[str, Table]:
    """A histogram or a distinct count of one or more fields."""
    names = listed(text)
    bounds = next((part for part in map(_BOUNDS.fullmatch, names) if part is not None), None)
    if bounds is not None:
        each = "counts each value by itself" if kind == "histogram" else "counts different values"
        raise InputError(
            f"expected the names of fields alone, since this {each}, got {text!r}",
            place=f"--{kind}",
            hint=f"how numbers spread: --quantiles {bounds[0]}; known categories: --by {bounds['field']}=A,B",
        )
    if not all(names):
        raise InputError(f"expected the names of one or more fields, such as city, got {text!r}", place=f"--{kind}")
    for name in names:
        described.mention(name)
    return f"{kind}_{'_'.join(names)}", {"type": kind, "field": names if len(names) > 1 else names[0]}


def clusters(text: str, described: Described) -> tuple[str, Table]:
    """``x:0..1,y:0..1:K``."""
    fields, _, k = text.rpartition(":")
    if not fields or not k.strip().isdigit():
        expected = "fields with their bounds and a number of clusters, such as x:0..1,y:0..1:5"
        raise InputError(f"expected {expected}, got {text!r}", place="--kmeans")
    names = [described.bounded(part, "--kmeans") for part in listed(fields)]
    return f"kmeans_{'_'.join(names)}", {"type": "kmeans", "fields": names, "k": int(k)}


def ratio(text: str, described: Described) -> tuple[str, Table]:
    """``A/B``: each is ``count``, a number with its bounds (its sum), or a condition (the records that meet it)."""
    parts = [part.strip() for part in text.split("/")]
    if len(parts) != 2 or not all(parts):
        expected = "two counts or sums, such as tip:0..100/fare:0..500 or 'status = late / count'"
        raise InputError(f"expected {expected}, got {text!r}", place="--ratio")
    (top, under), (bottom, over) = (_part_of_ratio(part, described) for part in parts)
    return f"ratio_{under}_{over}", {"type": "ratio", "top": top, "bottom": bottom}


def _part_of_ratio(text: str, described: Described) -> tuple[Table, str]:
    if text == "count":
        return {"type": "count"}, "count"
    if _BOUNDS.fullmatch(text) and not _CONDITION.fullmatch(text):
        name = described.bounded(text, "--ratio")
        return {"type": "sum", "field": name}, name
    if not _CONDITION.fullmatch(text):
        expected = "count, a number with its bounds such as tip:0..100, or a condition such as 'status = late'"
        raise InputError(f"expected {expected}, got {text!r}", place="--ratio")
    where = conditions([text], described, "--ratio")
    return {"type": "count", "where": where}, next(iter(where))


def grouped(name: str, table: Table, by: str) -> tuple[str, Table]:
    """The name and table of a statistic for every group."""
    if table["type"] == "kmeans":
        raise InputError("expected statistics that can be grouped: clusters cannot", place="--by")
    called = f"{name}_by_{by}"
    if table["type"] == "histogram":
        fields = table["field"] if isinstance(table["field"], list) else [table["field"]]
        return called, {**table, "field": [by, *fields]}
    return called, {**table, "by": by}


def described_by(options: Any) -> Described:
    """The tables that the options of a command describe."""
    found = Described(clip=options.clip, skip_missing=options.skip_missing)
    asked = list(_asked(options, found)) or [("count", {"type": "count"}, "--by")]
    groups = []
    for text in options.by or ():
        by, table = categories(text)
        found.declare(by, table, f"--by {text}")
        groups.append((by, f"--by {text}"))
    common: Table = {} if options.every is None else {"every": options.every}
    where = conditions(options.where or [], found)
    if where:
        common["where"] = where
    for name, table, place in asked:
        table = {**table, **common}
        shown = [(*grouped(name, table, by), at) for by, at in groups] or [(name, table, place)]
        for called, own, at in shown:
            found.add(called, own, at)
    for name in found.mentioned:
        if name not in found.schema:
            found.declare(name, {"type": "text"}, name)
    return found


def _asked(options: Any, found: Described) -> Iterator[tuple[str, Table, str]]:
    """The statistics by name, each with the option that asks for it."""
    if options.count:
        yield "count", {"type": "count"}, "--count"
    for kind in ("sum", "mean", "variance"):
        for text in getattr(options, kind) or ():
            name = found.bounded(text, f"--{kind}")
            yield f"{kind}_{name}", {"type": kind, "field": name}, f"--{kind} {text}"
    for text in options.quantiles or ():
        yield *quantiles(text, found), f"--quantiles {text}"
    for text in options.kmeans or ():
        yield *clusters(text, found), f"--kmeans {text}"
    from .model_options import models

    yield from models(options, found)
    for text in options.ratio or ():
        yield *ratio(text, found), f"--ratio {text}"
    for kind in ("histogram", "distinct"):
        for text in getattr(options, kind) or ():
            yield *of_texts(kind, text, found), f"--{kind} {text}"
