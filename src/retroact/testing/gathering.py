"""What a bound gathers: with missing values, for many rounds at once, and after pickling, without the key."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain, combinations
from random import Random
from typing import Any

import numpy as np

from ..arrays import I64
from ..coins import Coins
from ..errors import VerificationError
from ..schema import Rows, Schema
from ..statistics.bound import Bound
from ..stream import Specification
from .histories import values_of
from .records import Record, rows_of
from .sensitivity import check_sensitivity

# With more fields than this, only some sets of missing fields are tried.
FEW = 4
ROUNDS = 5


def may_lack(schema: Schema) -> Schema:
    """The same schema, in which every field may be missing.

    >>> from retroact.schema import Integer
    >>> may_lack(Schema({"age": Integer(0, 120)}))
    Schema({'age': Integer(0, 120, missing='skip')})
    """
    return Schema({name: field.replace(missing="skip") for name, field in schema.fields.items()})


def check_missing(spec: Specification, random: Random, *, records: int = 4, pairs: int = 10) -> None:
    """A record counts if and only if it has every field that the statistic reads or has a condition on, for every set
    of missing fields; the other fields make no difference. One operation costs no more than before
    (`check_sensitivity`, with missing values).

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"mean": ra.Mean("age")}, epsilon=1.0, horizon=8)
    >>> check_missing(spec, Random(1))
    """
    spec = spec.replace(schema=may_lack(spec.schema))
    fields = list(spec.schema.fields)
    values = [dict(zip(fields, value, strict=True)) for value in _values(spec, random, records)]
    for name, bound in spec.bounds.items():
        reads, drawn = {*bound.reads, *bound.statistic.where}, bound.drawn(Coins(bytes(32)))
        for value, other in zip(values, values[1:] + values[:1], strict=True):
            full = _contributed(drawn, value, spec.schema)
            mixed = {field: (value if field in reads else other)[field] for field in fields}
            if _contributed(drawn, mixed, spec.schema) != full:
                raise VerificationError(f"missing values: {name} reads more than it says\n  {value}\n  {mixed}")
            for lost in _sets(fields):
                partial = {field: None if field in lost else part for field, part in value.items()}
                expected, wrong = full, "leaves out a record it reads"
                if reads & lost:
                    expected, wrong = {}, "counts a record that lacks what it reads"
                if _contributed(drawn, partial, spec.schema) != expected:
                    raise VerificationError(f"missing values: {name} {wrong}\n  {partial}")
    check_sensitivity(spec, random, pairs=pairs)


def check_gathering(spec: Specification, random: Random, *, changes: int = 40) -> None:
    """Shows that a bound gathers of many rounds at once what it gathers of each; that a pickled bound, which has what
    was drawn and not the key, gathers the same; and that what was added and taken off again leaves nothing.

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"mean": ra.Mean("age")}, epsilon=1.0, horizon=8)
    >>> check_gathering(spec, Random(1))
    """
    values = _values(spec, random)
    records = [
        Record(dict(zip(spec.schema.fields, random.choice(values), strict=True)), random.randint(1, ROUNDS), 1)
        for _ in range(changes)
    ]
    rows, _ = rows_of(spec.schema, records)
    weights = np.array([random.choice([-1, 1, 2]) for _ in records], dtype=np.int64)
    rounds = np.array([random.randint(1, ROUNDS) for _ in records], dtype=np.int64)
    for name, bound in spec.bounds.items():
        drawn = bound.drawn(Coins(bytes(32)))
        _check_rounds(name, drawn, rows, weights, rounds)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # from modules in which pickle looks for a function
                sent = pickle.dumps(drawn)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            continue  # a user's function, or one of a C library, that cannot be pickled
        if _gathered(pickle.loads(sent), rows, weights) != _gathered(drawn, rows, weights):
            raise VerificationError(f"gathering of {name}: a pickled bound gathers something else")


def _values(spec: Specification, random: Random, *count: int) -> list[Any]:
    return list(values_of(spec.schema, random, *count, whole=True))


def _check_rounds(name: str, bound: Bound, rows: Rows, weights: I64, rounds: I64) -> None:
    found = bound.gather_by(rows, weights, rounds)
    if sorted(found) != sorted(set(rounds.tolist())):
        raise VerificationError(f"gathering of {name}: expected the rounds that change, got {sorted(found)}")
    for round, totals in found.items():
        where = np.flatnonzero(rounds == round)
        if bound.coordinates(totals) != _gathered(bound, rows.take(where), weights[where]):
            raise VerificationError(f"gathering of {name}: round {round} is not what is gathered of it alone")
    whole = bound.gather(rows, weights)
    if bound.coordinates(whole - whole):
        raise VerificationError(f"gathering of {name}: what was added and taken off again leaves something")


def _contributed(bound: Bound, value: Mapping[str, Any], schema: Schema) -> dict[Hashable, int]:
    return _gathered(bound, *rows_of(schema, [Record(value, 1, 1)]))


def _gathered(bound: Bound, rows: Rows, weights: I64) -> dict[Hashable, int]:
    return bound.coordinates(bound.gather(rows, weights))


def _sets(fields: list[str]) -> Iterator[set[str]]:
    """Every non-empty set of fields; with many fields, only sets of one, of two and of all."""
    sizes = range(1, len(fields) + 1) if len(fields) <= FEW else (1, 2, len(fields))
    return map(set, chain.from_iterable(combinations(fields, size) for size in sizes))
