"""Missing values: a record counts in a statistic exactly where it has what the statistic reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from random import Random
from typing import Any

import numpy as np

from ..coins import Coins
from ..errors import VerificationError
from ..schema import Rows, Schema
from ..statistics.bound import Bound
from ..stream import Specification
from .histories import values_of
from .sensitivity import check_sensitivity

# Of a schema with more fields, only some sets of them are taken to be missing.
FEW = 4


def may_lack(schema: Schema) -> Schema:
    """The same fields, each of which may be missing.

    >>> from retroact.schema import Integer
    >>> may_lack(Schema({"age": Integer(0, 120)}))
    Schema({'age': Integer(0, 120, missing='skip')})
    """
    return Schema({name: field.replace(missing="skip") for name, field in schema.fields.items()})


def check_missing(spec: Specification, random: Random, *, records: int = 4, pairs: int = 10) -> None:
    """What a record contributes, brute-forced over its missing fields: nothing where the statistic reads one of them or
    has a condition on it; otherwise what it would contribute with any values there. And one operation costs no more
    than it did (`check_sensitivity`, on histories with missing values)."""
    spec = spec.replace(schema=may_lack(spec.schema))
    values: list[Any] = list(values_of(spec.schema, random, records, whole=True))
    fields = list(spec.schema.fields)
    for name, bound in spec.bounds.items():
        reads, drawn = {*bound.reads, *bound.statistic.where}, bound.drawn(Coins(bytes(32)))
        for value, other in zip(values, values[1:] + values[:1], strict=True):
            full = _contributed(drawn, value, spec.schema)
            mixed = tuple(a if field in reads else b for field, a, b in zip(fields, value, other, strict=True))
            if _contributed(drawn, mixed, spec.schema) != full:
                raise VerificationError(f"missing values: {name} reads more than it says\n  {value}\n  {mixed}")
            for lost in _sets(fields):
                partial = tuple(None if field in lost else part for field, part in zip(fields, value, strict=True))
                told = "counts a record that lacks what it reads" if reads & lost else "leaves out a record it reads"
                if _contributed(drawn, partial, spec.schema) != ({} if reads & lost else full):
                    raise VerificationError(f"missing values: {name} {told}\n  {partial}")
    check_sensitivity(spec, random, pairs=pairs)


def _contributed(bound: Bound, value: Sequence[Any], schema: Schema) -> dict[Hashable, int]:
    record = schema.encode_record(dict(zip(schema.fields, value, strict=True)))
    rows = replace(Rows.from_tuples(schema, [record]), stamps=np.ones(1, dtype=np.int64))
    return bound.coordinates(bound.gather(rows, np.ones(1, dtype=np.int64)))


def _sets(fields: list[str]) -> Iterator[set[str]]:
    """Every set of fields that are not none; of many fields those of one, of two and of all."""
    sizes = range(1, len(fields) + 1) if len(fields) <= FEW else (1, 2, len(fields))
    return map(set, chain.from_iterable(combinations(fields, size) for size in sizes))
