"""Typed, bounded fields: every value is encoded as integers on a declared lattice when it arrives.

Bounds are declared, because a bound inferred from the data would reveal something about them. Values are integers,
because sums of floats depend on what was added and deleted again.
"""

from .field import Field, field_names
from .numbers import Integer, Number
from .rows import Rows
from .schema import Schema, field_of
from .text_fields import Boolean, Bytes, Category, Text
from .times import Date, Timestamp
from .vector import Vector

__all__ = [
    "Boolean",
    "Bytes",
    "Category",
    "Date",
    "Field",
    "Integer",
    "Number",
    "Rows",
    "Schema",
    "Text",
    "Timestamp",
    "Vector",
    "field_names",
    "field_of",
]
