"""Fields as tables of a specification: there and back, with errors that say what is allowed."""

import json
import tomllib
from datetime import date

import pytest

from retroact.errors import InputError
from retroact.schema import (
    Boolean,
    Bytes,
    Category,
    Date,
    Field,
    Integer,
    Number,
    Schema,
    Text,
    Timestamp,
    Vector,
)

FIELDS: list[Field] = [
    Number(0, 500),
    Number("-0.5", 1.5, step=0.25, clip=True, missing="skip"),
    Number(0, 10**6, step=10),
    Integer(-5, 120, clip=True),
    Boolean(missing="skip"),
    Category(["a", 1, "1", "é"]),
    Integer(-(2**63), 2**63 - 1, missing="skip"),
    Text(),
    Bytes(),
    Bytes(missing="skip"),
    Date("2020-01-01", "2020-12-31", missing="skip"),
    Timestamp("2020-01-01T01:00:00+01:00", "2020-12-31T00:00:00.25Z", step="0.25"),
    Vector(3, radius=1.5, step=0.001, clip=True),
]


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_there_and_back(field: Field) -> None:
    text = json.dumps(field.spec())
    again = Field.from_spec(json.loads(text), "schema.x")
    assert again == field
    assert hash(again) == hash(field)
    assert type(again) is type(field)
    assert again.spec() == field.spec()
    assert (again.lower, again.upper, again.step) == (field.lower, field.upper, field.step)
    assert eval(repr(field)) == field


def test_all_differ() -> None:
    assert len(set(FIELDS)) == len(FIELDS)
    assert Number(0, 1) != Integer(0, 1)
    assert Category([1]) != Category(["1"])
    assert Category(["a", "b"]) != Category(["b", "a"])


def test_the_canonical_form() -> None:
    number = {"type": "number", "lower": "0", "upper": "500", "step": "0.01"}
    assert Number(0, 500, step=0.01).spec() == number
    assert Number("0.0", 5e2, step="0.010").spec() == number
    moments = Timestamp("2020-01-01T01:00:00+01:00", "2021-01-01T00:00:00Z").spec()
    assert moments == {"type": "timestamp", "lower": "2020-01-01T00:00:00Z", "upper": "2021-01-01T00:00:00Z"}


def test_toml() -> None:
    tables = tomllib.loads("""
        country = { type = "text" }
        digest = { type = "bytes", missing = "skip" }
        amount = { type = "number", lower = 0, upper = 500, step = 0.01 }
        day = { type = "date", lower = 2020-01-01, upper = 2020-12-31 }
        at = { type = "timestamp", lower = 2020-01-01T00:00:00Z, upper = 2021-01-01T00:00:00Z, missing = "skip" }
        place = { type = "vector", dimension = 2, radius = 1.0, step = 0.1, clip = true }
        size = { type = "category", values = ["s", "l"] }
    """)
    schema = Schema.from_spec(tables)
    assert schema == Schema(
        {
            "country": Text(),
            "digest": Bytes(missing="skip"),
            "amount": Number(0, 500, step="0.01"),
            "day": Date(date(2020, 1, 1), date(2020, 12, 31)),
            "at": Timestamp("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", missing="skip"),
            "place": Vector(2, radius=1, step="0.1", clip=True),
            "size": Category(["s", "l"]),
        }
    )
    assert Schema.from_spec(schema.spec()) == schema
    json.dumps(schema.spec())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"type": "numbr"},
            "expected one of boolean, bytes, category, date, integer, number, text, timestamp, vector, got 'numbr' "
            "(did you mean 'number'?) - at schema.x.type",
        ),
        ({}, "got None - at schema.x.type"),
        ({"type": ["number"]}, "got ['number'] - at schema.x.type"),
        ("number", "expected a table with a type, got 'number' - at schema.x"),
        ({"type": "number", "lower": 0}, "expected upper, which is missing - at schema.x.upper"),
        ({"type": "text", "lower": 0}, "expected only type, missing, got 'lower' - at schema.x.lower"),
        ({"type": "bytes", "upper": 9}, "expected only type, missing, got 'upper' - at schema.x.upper"),
        ({"type": "vector", "dimension": 2, "radius": 1}, "expected step, which is missing - at schema.x.step"),
        ({"type": "number", "lower": 0, "upper": "x"}, "expected a number, got 'x' - at schema.x.upper"),
        ({"type": "number", "lower": 5, "upper": 0, "step": 1}, "at most upper, got 5 and 0 - at schema.x"),
        ({"type": "integer", "lower": 0, "upper": 5, "missing": "drop"}, "got 'drop' - at schema.x"),
        ({"type": "integer", "lower": 0, "upper": 5, "step": 1}, "got 'step' - at schema.x.step"),
        ({"type": "category", "values": []}, "at schema.x.values"),
    ],
)
def test_refused(table: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Schema.from_spec({"x": table})
    assert message in str(caught.value)


@pytest.mark.parametrize("mapping", [{}, [], None, "text"])
def test_no_schema(mapping: object) -> None:
    with pytest.raises(InputError, match="at schema"):
        Schema.from_spec(mapping)  # type: ignore[arg-type]
