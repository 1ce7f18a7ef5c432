"""Typed, bounded fields: every value is encoded as integers on a declared lattice when it arrives.

Bounds are declared, because a bound inferred from the data would reveal something about them. Values are integers,
because sums of floats depend on what was added and deleted again.
"""

from retroact.schema.arrow import columns_of
from retroact.schema.field import Field, field_names
from retroact.schema.lattice import column_to_lattice, to_lattice
from retroact.schema.numbers import Integer, Number
from retroact.schema.rows import Rows
from retroact.schema.schema import Schema, field_of
from retroact.schema.text_fields import Boolean, Bytes, Category, Text
from retroact.schema.times import Date, Timestamp
from retroact.schema.vector import Vector

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
    "column_to_lattice",
    "columns_of",
    "field_names",
    "field_of",
    "to_lattice",
]
