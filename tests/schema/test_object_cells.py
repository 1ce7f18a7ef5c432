"""Columns of objects are encoded as they are cell by cell: the same integers, missing rows and errors."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.schema import (
    Boolean,
    Bytes,
    Category,
    Date,
    Field,
    Integer,
    Number,
    Text,
    Timestamp,
    Vector,
    field,
    object_cells,
)

FIELDS: list[Field] = [
    Number(-500, 500, step="0.01", missing="skip"),
    Number(-300, 300, step="0.3"),
    Number(0, 10**15, step=1, clip=True, missing="skip"),
    Integer(0, 2400, missing="skip"),
    Integer(-(2**63), 2**63 - 1, clip=True, missing="skip"),
    Category(["DE", "FR", 7, ""], missing="skip"),
    Category(["DE"], other="rest"),
    Text(missing="skip"),
    Text(),
    Bytes(missing="skip"),
    Boolean(missing="skip"),
    Date("2000-01-01", "2029-12-31", missing="skip"),
    Timestamp("1960-01-01T00:00:00Z", "2029-12-31T00:00:00Z", missing="skip"),
    Timestamp("1960-01-01T00:00:00Z", "2029-12-31T00:00:00Z", clip=True),
    Vector(2, radius=9, step=1, missing="skip"),
]
WHOLE = [0, 1, 7, -3, 2400, 2401, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30]
FLOATS = [0.0, -0.0, 1.0, 2.5, 0.155, 0.1 + 0.2, 1e300, 5e-324, 2.0**53, 2.0**63, 7.0]
TEXTS = ["DE", "FR", "", "7", "1.5", "nan", "AP8=", "é", "true", "\ud800", "2013-01-01", "2013-01-01T05:00:00Z"]
OTHERS = [math.nan, math.inf, True, False, Decimal("1.5"), np.float64(1.5), np.int64(3), np.str_("DE"), [1, 2]]
SECONDS = [f"2013-01-01T05:00:{second}Z" for second in range(10, 60)]
OTHERS += [b"DE", np.zeros(2)]
POOLS: list[list[Any]] = [
    [*WHOLE], [*WHOLE[:5], None], [*FLOATS], [*FLOATS[:6], None], [*WHOLE[:5], *FLOATS[:4]], [*WHOLE, *FLOATS, None],
    [*TEXTS], ["DE", None], [*TEXTS, None], [*TEXTS[-2:], None], [*WHOLE, *TEXTS, *OTHERS, *FLOATS, None], [None],
]  # fmt: skip
COLUMNS = st.sampled_from(POOLS).flatmap(lambda pool: st.lists(st.sampled_from(pool), min_size=1, max_size=12))


def outcome(of: Field, values: Any) -> tuple[Any, ...]:
    try:
        encoded, missing = of.encode_column(values, "x")
    except InputError as error:
        return str(error), error.row, error.hint
    return encoded.dtype, encoded.tolist(), None if missing is None else missing.tolist()


@settings(max_examples=600)
@given(COLUMNS, st.integers(1, 6), st.sampled_from(FIELDS))
def test_objects_are_encoded_as_they_are_cell_by_cell(values: list[Any], times: int, of: Field) -> None:
    column = values * times
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_cells, "MANY", 1)
        quick = outcome(of, column), outcome(of, np.fromiter(column, object, len(column)))
        patch.setattr(field, "encoded_objects", lambda *_: None)
        plain = outcome(of, column)
    assert quick == (plain, plain)


@pytest.mark.parametrize(("of", "values"), [
    (FIELDS[0], [1.5, None, 2]), (FIELDS[3], [1, None]), (FIELDS[5], ["DE", None]), (FIELDS[7], ["DE", None]),
    (FIELDS[12], [TEXTS[-1], None]), (FIELDS[12], [*SECONDS, None]), (FIELDS[13], [TEXTS[-1]]),
])  # fmt: skip
def test_usual_columns_are_quick(of: Field, values: list[Any]) -> None:
    cells = np.fromiter(values * object_cells.MANY, object)
    assert object_cells.encoded_objects(of, cells) is not None
