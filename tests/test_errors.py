"""Where an error was found: fields that programs read, and one text made of them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from retroact.errors import InputError, KeyReusedError, Place
from retroact.feeds.play import play
from retroact.messages import mismatch

SCHEMA = {"amount": ra.Number(0, 500), "at": ra.Vector(2, radius=1, step=0.1)}


def stream() -> ra.Stream:
    return ra.Stream(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=3, key=ra.Key.for_testing(1))


def fields(error: InputError) -> tuple[str | None, str | None, int | None]:
    return error.source, error.path, error.row


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ({}, "wrong"),
        ({"place": "a.b"}, "wrong - at a.b"),
        ({"place": ""}, "wrong"),
        ({"row": 3}, "wrong - at row 3"),
        ({"place": "a", "row": 3}, "wrong - at a, row 3"),
        ({"place": Place("a", 3)}, "wrong - at a, row 3"),
        ({"place": Place("", 3)}, "wrong - at row 3"),
        ({"place": "a", "row": 3, "unit": "line"}, "wrong - at a, line 3"),
        ({"source": "f"}, "f: wrong"),
        ({"source": "f", "place": "a"}, "f: wrong - at a"),
        ({"source": "f", "place": "a", "row": 3}, "f: row 3: wrong - at a"),
        ({"source": "f", "place": "a", "row": 3, "unit": "line"}, "f:3: wrong - at a"),
    ],
)
def test_the_text_is_made_of_the_fields(made, text):
    error = InputError("wrong", **made)
    assert str(error) == text
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(twin), twin.message, fields(twin)) == (text, "wrong", fields(error))


def test_what_was_expected_and_found_are_fields_too():
    error = mismatch("a number", "x", Place("amount", 2)).at([17, 18, 19], "orders.csv", "line")
    for twin in (error, pickle.loads(pickle.dumps(error)), error.moved("amount"), error.under("")):
        assert (twin.expected, twin.found, *fields(twin)) == ("a number", "'x'", "orders.csv", "amount", 18)
        assert str(twin) == "orders.csv:18: expected a number, got 'x' - at amount"


def test_an_error_of_a_whole_batch_names_its_rows():
    error = InputError("expected less")
    assert str(error.at([17, 18, 21], "orders.csv", "line")) == "orders.csv: lines 17-21: expected less"
    assert str(error.at([17], "orders.csv", "line")) == "orders.csv:17: expected less"
    assert isinstance(KeyReusedError("wrong").at([1], "f"), KeyReusedError)


def test_an_error_moves_with_its_fields():
    error = InputError("wrong", place=Place("a", 3))
    assert fields(error.under("schema")) == (None, "schema.a", 3)
    assert fields(error.under("")) == (None, "a", 3)
    assert fields(error.found_in("f", row=9)) == ("f", "a", 9)
    assert fields(error.found_in("f")) == ("f", "a", None)
    assert str(error.found_in("f", during="rows 1-4")) == "f: rows 1-4: wrong - at a"
    assert fields(KeyReusedError("wrong", place="key")) == (None, "key", None)


EVENTS = [("1", "[0, 0]"), ("501", "[0, 0]"), ("1", '[0, "x"]')]


@pytest.mark.parametrize(("bad", "path"), [(1, "amount"), (2, "at, coordinate 2")])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_refused_record_names_source_path_and_row(suffix: str, bad: int, path: str, tmp_path: Path):
    file = tmp_path / f"events{suffix}"
    rows = [EVENTS[0], EVENTS[bad]]
    if suffix == ".csv":
        text = "".join(f'{amount},"{at.replace(chr(34), chr(34) * 2)}"\n' for amount, at in rows)
        file.write_text(f"amount,at\n{text}")
    elif suffix == ".jsonl":
        file.write_text("".join(f'{{"op": "add", "record": {{"amount": {a}, "at": {b}}}}}\n' for a, b in rows))
    else:
        at = [["0", "0"], ["0", "x" if bad == 2 else "0"]]
        pq.write_table(pa.table({"amount": [float(amount) for amount, _ in rows], "at": at}), file)
    with pytest.raises(InputError) as caught:
        play(stream(), file)
    assert fields(caught.value) == (str(file), path, 3 if suffix == ".csv" else 2)
    assert caught.value.unit == ("row" if suffix == ".parquet" else "line")


def test_a_specification_names_source_and_path():
    data = {"epsilon": 1, "schema": {"a": {"type": "integer", "lower": 0, "upper": "x"}}, "statistics": {}}
    with pytest.raises(InputError) as caught:
        ra.Specification.from_dict(data, "shop.toml")
    assert fields(caught.value) == ("shop.toml", "schema.a.upper", None)
