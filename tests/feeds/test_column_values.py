"""Columns of a batch are the lists of their values, whatever holds them."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retroact.feeds.batch import ColumnValues
from retroact.schema.packed_texts import PackedTexts

TEXTS = st.lists(st.sampled_from([None, "", "a", "é", "twelve bytes", "o-1"]), max_size=9)


def packed(texts: list[str | None]) -> ColumnValues:
    """Among the bytes of others, as a file has them."""
    pieces = [b"" if text is None else text.encode() for text in texts]
    content = b"," * 200 + b",".join(pieces)
    sizes = np.array([*map(len, pieces)], np.int64)
    starts = 200 + np.cumsum(sizes + 1) - sizes - 1
    present = np.array([text is not None for text in texts], np.bool_)
    whole = PackedTexts.of(content, np.array([0, len(content)]), np.ones(1, np.bool_))
    there = None if present.all() else present
    return ColumnValues(PackedTexts(whole.data, whole.starts[:1] + starts, sizes, there), there)


def plain(texts: list[str | None]) -> ColumnValues:
    return ColumnValues.of(list(texts))


def all_of(cells: ColumnValues) -> list[Any]:
    return [cells.listed(), list(cells.names()), list(cells.column()), cells.there().tolist(), len(cells)]


@given(TEXTS, TEXTS, st.sampled_from([packed, plain]), st.data())
def test_packed_columns_are_their_lists(
    texts: list[str | None], others: list[str | None], kind: Any, data: st.DataObject
) -> None:
    column = packed(texts)
    assert all_of(column) == all_of(plain(texts))
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=5)) if texts else []
    assert all_of(column.take(np.array(rows, np.int64))) == all_of(plain([texts[row] for row in rows]))
    assert all_of(ColumnValues.concatenate([column.take(slice(1, 4)), kind(others)])) == all_of(
        plain(texts[1:4] + others)
    )


def test_few_texts_of_many_do_not_carry_the_others_along() -> None:
    column = packed(["o-1", "x" * 10_000]).take([0]).values
    assert len(PackedTexts.concatenate([column, column]).data) < 400
