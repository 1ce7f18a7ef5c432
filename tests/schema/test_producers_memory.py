"""The memory of an Arrow producer is given back with each batch: no value may be read from it later."""

import gc
import weakref
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import retroact as ra
from retroact.schema.arrow import ArrowBatches, columns_of
from support.arrow_columns import COLUMNS, plain


class Lent(np.ndarray):
    """Memory that somebody watches."""


def _wipe(memory: np.ndarray) -> None:
    memory[:] = 0xEE


class Producer:
    """Overwrites the memory of a batch as soon as it is given back, as an allocator does."""

    def __init__(self, arrays: list[pa.Array]) -> None:
        self.batches = [pa.record_batch({"x": array}) for array in arrays]

    def _lent(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            memory = np.frombuffer(sink.getvalue(), np.uint8).copy()
            lent = memory.view(Lent)
            weakref.finalize(lent, _wipe, memory)
            reader = pa.ipc.open_stream(pa.py_buffer(lent))
            del lent
            yield from reader

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self.batches[0].schema, self._lent())
        return reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("times", [1, 3])
def test_columns_outlive_their_batches(name: str, times: int) -> None:
    kind, values = COLUMNS[name]
    array = pa.array(values, kind)
    column = columns_of(Producer([array] * times))["x"]
    gc.collect()
    assert plain(column) == values * times
    batches = [columns["x"] for columns in ArrowBatches(Producer([array] * times)).read()]
    gc.collect()
    assert [value for column in batches for value in plain(column)] == values * times


def test_names_outlive_their_batches() -> None:
    array = pa.array(["o-1", "order 22", "é"])
    column = columns_of(Producer([array, array]), ["x"])["x"]
    gc.collect()
    assert list(column) == ["o-1", "order 22", "é"] * 2


@pytest.mark.parametrize(
    "values", [[10, 20, 30, 40], [1.5, 2.5], [Decimal("5.73"), Decimal("5.25")], [True, False, True]], ids=str
)
def test_objects_in_a_data_frame_are_summed_as_they_are(values: list[Any]) -> None:
    """pandas exports such columns from memory that nobody else holds."""
    schema = {"a": ra.Number(0, 1000, step=0.01)} if not isinstance(values[0], bool) else {"a": ra.Boolean()}
    for _ in range(20):
        frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
        rows = ra.Schema(schema).encode(frame)[0]
        expected = ra.Schema(schema).encode({"a": values})[0]
        assert rows.columns["a"].tolist() == expected.columns["a"].tolist()


def test_a_query_of_duckdb_is_read_batch_by_batch() -> None:
    import duckdb

    schema = ra.Schema({"a": ra.Number(0, 200_000, step=0.5)})
    rows = schema.encode(duckdb.sql("select i::double / 2 as a from range(300000) r(i)"))[0]
    assert rows.columns["a"].tolist() == list(range(300_000))
