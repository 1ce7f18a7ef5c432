"""Arrow tables of every kind, in several chunks, sliced and empty; pyarrow only makes them."""

import math
import subprocess
import sys
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from retroact.errors import InputError
from retroact.schema import Boolean, Bytes, Category, Date, Field, Integer, Number, Schema, Text, Timestamp, Vector
from retroact.schema.arrow import _text_views, _views, columns_of
from support.arrow_columns import BLOBS, COLUMNS, LISTS, PAIRS, D, plain


def layouts(kind: pa.DataType, values: list[Any]) -> list[tuple[str, Any, list[Any]]]:
    """The same values as one chunk, as several, sliced in the middle, and without any rows."""
    array = pa.array(values, kind)
    chunks = [array.slice(0, 1), array.slice(1, 0), array.slice(1)]
    batch = pa.record_batch({"x": array})
    return [
        ("one chunk", pa.table({"x": array}), values),
        ("several", pa.table({"x": pa.chunked_array(chunks, kind)}), values),
        ("sliced", pa.table({"x": array}).slice(1, len(values) - 1), values[1:]),
        ("repeated", pa.table({"x": pa.chunked_array([array.slice(1), array], kind)}), values[1:] + values),
        ("batch", batch.slice(1), values[1:]),
        ("no rows", pa.table({"x": array.slice(0, 0)}), []),
        ("no chunks", pa.table({"x": pa.chunked_array([], kind)}), []),
    ]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_survive(name: str) -> None:
    for layout, frame, expected in layouts(*COLUMNS[name]):
        column = columns_of(frame)["x"]
        assert plain(column) == expected, layout
        assert [type(value) for value in plain(column)] == [type(value) for value in expected], layout


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_numbers_without_nulls_become_arrays(kind: pa.DataType) -> None:
    values = np.array([1, 2, 3], kind.to_pandas_dtype())
    frame = pa.table({"x": pa.chunked_array([pa.array(values[:1]), pa.array(values[1:])])})
    column = columns_of(frame)["x"]
    assert isinstance(column, np.ndarray)
    assert column.dtype == values.dtype
    column[:] = 7  # a copy: the memory of the producer is not ours
    assert frame["x"].to_pylist() == [1, 2, 3]


def encode(field: Field, array: Any) -> list[Any]:
    """The values that are not missing; under a missing one lies the blank of the field."""
    rows, single = Schema({"x": field}).encode(pa.table({"x": array}))
    assert not single
    assert rows.count == len(array)
    missing = rows.missing.get("x", np.zeros(rows.count, bool))
    assert not missing.any() or (rows.columns["x"][missing] == np.array(field.blank)).all()
    result: list[Any] = rows.columns["x"][~missing].tolist()
    return result


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32()], ids=str)
def test_narrow_floats_keep_their_own_text(kind: pa.DataType) -> None:
    values = np.array([0.155, 0.135, 0.1], kind.to_pandas_dtype())
    field = Number(0, 1, step=0.01, missing="skip")
    expected = [field.encode(value, "x") for value in values]
    assert encode(field, pa.array(values)) == expected
    assert encode(field, pa.array([*values, None], kind)) == expected
    chunked = pa.chunked_array([pa.array(values[:1]), pa.array([None, *values[1:]], kind)])
    assert encode(field, chunked) == expected


def test_timestamps() -> None:
    field = Timestamp("1960-01-01T00:00:00Z", "2029-01-01T00:00:00Z", missing="skip")
    for unit, scale in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        for zone in ("UTC", "Europe/Berlin", "+02:00"):
            array = pa.array([0, -5 * scale, None, 1577836800 * scale], pa.timestamp(unit, zone))
            assert encode(field, array) == [0, -5, 1577836800]
            assert encode(field, array.drop_null()) == [0, -5, 1577836800]
            with pytest.raises(InputError, match="x, row 3"):
                encode(Timestamp("1960-01-01T00:00:00Z", "2029-01-01T00:00:00Z"), array)
        with pytest.raises(InputError, match=r"an offset from UTC.*row 2"):
            encode(field, pa.array([None, 0], pa.timestamp(unit)))
    # a nanosecond decides the tie
    assert encode(field, pa.array([5 * 10**8, 5 * 10**8 + 1], pa.timestamp("ns", "UTC"))) == [0, 1]
    assert columns_of(pa.table({"x": pa.array([None], pa.timestamp("us", "UTC"))})) == {"x": [None]}


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 2), pa.list_(pa.float32(), 2)],
    ids=str,
)
def test_lists_become_vectors(kind: pa.DataType) -> None:
    expected = [[1, 2], [3, 4], [5, 6]]
    field = Vector(2, radius=1, step=0.1, missing="skip")
    for _, frame, rows in layouts(kind, LISTS):
        encoded, _ = Schema({"x": field}).encode(frame)
        assert encoded.columns["x"].tolist() == [expected[LISTS.index(row)] for row in rows]
        assert encoded.columns["x"].shape == (len(rows), 2)
    assert encode(field, pa.array([None, *LISTS], kind)) == expected
    assert encode(field, pa.array([LISTS[0], [0.1, None]], kind)) == expected[:1]
    with pytest.raises(InputError, match="x, coordinate 2, row 2"):
        encode(Vector(2, radius=1, step=0.1), pa.array([LISTS[0], [0.1, None]], kind))
    assert isinstance(columns_of(pa.table({"x": pa.array(LISTS, kind)}))["x"], np.ndarray)


def test_ragged_lists_are_refused() -> None:
    with pytest.raises(InputError, match="expected 2 coordinates, got 3 - at x, row 2"):
        encode(Vector(2, radius=1, step=0.1), pa.array([[0.1, 0.2], [0.1, 0.2, 0.3]]))
    with pytest.raises(InputError, match="expected 2 coordinates, got 0 - at x, row 2"):
        encode(Vector(2, radius=1, step=0.1), pa.array([[0.1, 0.2], []]))


def test_other_fields() -> None:
    assert encode(Number(-5, 5, step=0.01), pa.array([D("1.505"), D("-2.255")])) == [150, -226]
    assert encode(Integer(0, 9), pa.array([1, 2], pa.uint8())) == [1, 2]
    assert encode(Boolean(), pa.array([True, False])) == [1, 0]
    assert encode(Category(["a", "b"]), pa.array(["b", "a", "b"]).dictionary_encode()) == [1, 0, 1]
    assert encode(Date("1960-01-01", "2029-01-01"), pa.array([date(1970, 1, 2)])) == [1]
    assert encode(Text(), pa.array(["a\0b", "👩"], pa.string_view())) == ["a\0b", "👩"]
    assert encode(Number(0, 1, missing="skip"), pa.array([None, 0.5, math.nan])) == [5000]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)], ids=str)
def test_bytes(kind: pa.DataType) -> None:
    values = PAIRS if kind == pa.binary(2) else BLOBS
    known = [value for value in values if value is not None]
    for field in (Bytes(), Bytes(missing="skip")):
        encoded = encode(field, pa.array(known, kind))
        assert [field.decode(text) for text in encoded] == known
        assert encoded == [field.encode(value, "x") for value in known]
    assert encode(Bytes(missing="skip"), pa.array(values, kind)) == encoded
    with pytest.raises(InputError, match=r"expected bytes, got None - at x, row 3"):
        encode(Bytes(), pa.array(values, kind))
    with pytest.raises(InputError, match=r"expected text, got b.* - at x, row 1"):
        encode(Text(), pa.array(known, kind))


def test_bytes_of_any_length() -> None:
    longest = b"\xff" * 2**20
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert encode(Bytes(), pa.array([b"", longest], kind)) == ["", longest.decode("latin-1")]
        with pytest.raises(InputError, match="expected at most 1048576 bytes, got 1048577 - at x, row 2"):
            encode(Bytes(), pa.array([b"", longest + b"a"], kind))
    assert encode(Bytes(), pa.array([longest], pa.binary(2**20))) == [longest.decode("latin-1")]
    with pytest.raises(InputError, match="got 1048577 - at x, row 1"):
        encode(Bytes(), pa.array([longest + b"a"], pa.binary(2**20 + 1)))
    assert encode(Bytes(), pa.array(["AP8=", ""])) == ["\0\xff", ""]


def test_integers_of_64_bits() -> None:
    ends = [-(2**63), 2**63 - 1]
    wide, clipped = Integer(*ends), Integer(*ends, clip=True, missing="skip")
    assert encode(wide, pa.array(ends, pa.int64())) == ends
    assert encode(clipped, pa.array([*ends, None], pa.int64())) == ends
    assert encode(wide, pa.array([0, 2**63 - 1], pa.uint64())) == [0, 2**63 - 1]
    assert encode(clipped, pa.array([2**63 - 1, 2**63, None, 2**64 - 1], pa.uint64())) == [2**63 - 1] * 3
    with pytest.raises(
        InputError, match=r"between -9223372036854775808 and 9223372036854775807, got .*8 - at x, row 2"
    ):
        encode(wide, pa.array([0, 2**63], pa.uint64()))
    for kind in (pa.decimal128(38, 2), pa.decimal256(60, 2)):
        assert encode(wide, pa.array(list(map(D, ends)), kind)) == ends
        beyond = pa.array([D(ends[0] - 1), D(ends[1] + 1), D(-(10**30)), D(10**30), None], kind)
        assert encode(clipped, beyond) == ends * 2
        for row in range(4):
            with pytest.raises(InputError, match=r"between .*, got Decimal.* - at x, row 1"):
                encode(wide, beyond.slice(row, 1))
    with pytest.raises(InputError, match="expected a whole number, got Decimal"):
        encode(wide, pa.array([D("9223372036854775806.5")]))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([1.0, 600.0]), "between 0 and 500, got 600.0 - at x, row 2"),
        (pa.array([1.0, None]), "expected a number, got None - at x, row 2"),
        (pa.array([1.0, math.nan]), "a finite number, got nan - at x, row 2"),
        (pa.array([True]), "expected a number, got True - at x, row 1"),
        (pa.array([1, 2**63 - 1]), "between 0 and 500, got 9223372036854775807 - at x, row 2"),
        (pa.array([b"1"]), "expected a number, got b'1' - at x, row 1"),
        (pa.array([b"1"], pa.binary(1)), "expected a number, got b'1' - at x, row 1"),
        (pa.array([{"a": 1}]), "expected numbers, text, bytes, dates, timestamps or lists, got Arrow type '+s' - at x"),
        (pa.array([1], pa.duration("s")), "got Arrow type 'tDs' - at x"),
        (pa.array([date(2020, 1, 1)]), "expected a number, got datetime.date(2020, 1, 1) - at x, row 1"),
    ],
)
def test_refused(array: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        encode(Number(0, 500), array)
    assert message in str(caught.value)


def test_tables_that_are_none() -> None:
    schema = Schema({"x": Integer(0, 9), "y": Text()})
    with pytest.raises(InputError, match="got no 'y' and an unknown field 'z'"):
        schema.encode(pa.table({"x": [1], "z": ["a"]}))
    with pytest.raises(InputError, match="distinct column names, got x, x"):
        schema.encode(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]))
    with pytest.raises(InputError, match="expected an Arrow table"):
        schema.encode(pa.chunked_array([[1, 2]]))
    with pytest.raises(InputError, match="got no 'x' and no 'y'"):
        schema.encode(pa.table({}))
    offsets = pa.py_buffer(np.array([0, 1], "i4"))
    broken = pa.table({"x": [1], "y": pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])})
    with pytest.raises(InputError, match=r"Invalid UTF8 sequence.* - at y"):
        schema.encode(broken)


def test_structs_with_an_offset_and_with_nulls() -> None:
    structs = pa.array([{"x": [0.1, 0.2], "y": "a"}, {"x": [0.3, 0.4], "y": None}, {"x": [0.5, 0.6], "y": "c"}])
    assert plain(columns_of(pa.chunked_array([structs.slice(1)]))["x"]) == LISTS[1:]
    assert columns_of(pa.chunked_array([structs.slice(1, 1), structs.slice(2)]))["y"] == [None, "c"]
    with pytest.raises(InputError, match="null rows"):
        columns_of(pa.chunked_array([pa.array([{"x": 1}, None])]))


def test_what_lies_under_a_null_is_not_read() -> None:
    validity, offsets = pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 1, 2], "i4"))
    texts = pa.Array.from_buffers(pa.string(), 2, [validity, offsets, pa.py_buffer(b"\xffb")])
    assert columns_of(pa.table({"x": texts})) == {"x": [None, "b"]}
    heads = pa.py_buffer(np.array([2**31 - 1, 0, 99, 7, 1, ord("b"), 0, 0], "i4"))
    assert _views(_View([b"", heads, b"", b""]), 0, 2, [False, True]) == [b"", b"b"]


@pytest.mark.parametrize("head", [(-1, 0, 0, 0), (13, 0, 0, 1), (13, 0, 1, 0), (13, 0, -1, 0), (13, 0, 0, -1)], ids=str)
def test_text_views_beyond_their_data_are_refused(head: tuple[int, ...]) -> None:
    good = _View([b"", pa.py_buffer(np.array([13, 0, 0, 0], "i4")), b"thirteen byte", b""])
    assert _text_views(good, 0, 1, np.array([True])) == ["thirteen byte"]
    bad = _View([b"", pa.py_buffer(np.array(head, "i4")), b"thirteen byte", b""])
    with pytest.raises(RuntimeError, match="a text beyond the data"):
        _text_views(bad, 0, 1, np.array([True]))
    assert _text_views(bad, 0, 1, np.array([False])) == [None]


class _Exported:
    """A frame of another library: its buffers are not validated by pyarrow first."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


BROKEN = {
    "a letter cut in two": (pa.string(), [None, np.array([0, 1, 2], "i4"), "é".encode()], "UTF-8"),
    "no letter": (pa.large_string(), [None, np.array([0, 1, 2], "i8"), b"a\xff"], "UTF-8"),
    "offsets that shrink": (pa.string(), [None, np.array([0, 2, 1], "i4"), b"ab"], "do not grow|cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_texts_of_any_library_are_refused(name: str) -> None:
    kind, (_, offsets, data), message = BROKEN[name]
    texts = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    with pytest.raises(InputError, match=message):
        Schema({"x": Text()}).encode(_Exported(pa.table({"x": texts})))


def test_broken_codes_of_any_library_are_refused() -> None:
    codes = pa.Array.from_buffers(pa.int8(), 2, [None, pa.py_buffer(b"\x00\x05")])
    table = pa.table({"x": pa.DictionaryArray.from_arrays(codes, ["a", "b"], safe=False)})
    with pytest.raises(InputError, match="a code that is none of a word"):
        Schema({"x": Text()}).encode(_Exported(table))


class _View:
    """As much of a view as the reader of views looks at: pyarrow will not make one with nonsense in it."""

    def __init__(self, buffers: list[Any]) -> None:
        self.buffers, self.n_buffers = buffers, len(buffers)

    def buffer(self, index: int) -> Any:
        return self.buffers[index]


def test_a_stream_that_can_be_read_once() -> None:
    batches = [pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    rows, _ = Schema({"x": Integer(0, 9)}).encode(reader)
    assert rows.columns["x"].tolist() == [1, 2, 3]


def test_arrow_and_python_agree() -> None:
    values = np.random.default_rng(1).uniform(0, 500, 5000).round(3)
    field = Number(0, 500, step=0.01)
    assert encode(field, pa.array(values)) == [field.encode(value, "x") for value in values.tolist()]


def test_moments_of_aware_objects_agree() -> None:
    moments = [
        datetime(2020, 5, 1, 12, 30, 15, 500000, tzinfo=UTC),
        datetime(1965, 5, 1, 12, 30, 14, 500000, tzinfo=UTC),
    ]
    field = Timestamp("1960-01-01T00:00:00Z", "2029-01-01T00:00:00Z")
    assert encode(field, pa.array(moments)) == [field.encode(moment, "x") for moment in moments]


def test_importing_the_schema_imports_no_arrow() -> None:
    code = "import sys, retroact.schema; sys.exit('nanoarrow' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("frame", "wrong"),
    [
        (pd.DataFrame({"x": [1.0, "two"]}), "Could not convert 'two' .* column x"),
        (pd.DataFrame({"x": ["a", 3]}), "got a 'int' object; .* column x"),
        (pd.DataFrame({"x": pd.arrays.SparseArray([1.0, 0.0])}), "Sparse pandas data"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "Duplicate column names"),
    ],
    ids=["mixed", "texts and numbers", "sparse", "names twice"],
)
def test_what_pandas_cannot_export_is_bad_input(frame: pd.DataFrame, wrong: str) -> None:
    with pytest.raises(InputError, match=rf"^expected an Arrow table, got one that cannot be read \(.*{wrong}"):
        columns_of(frame)
