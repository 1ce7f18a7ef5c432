"""Columns of anything that exports the Arrow C stream: pyarrow, polars, pandas, DuckDB and others.

The buffers are read here, by the format letters of the Arrow C data interface, and nanoarrow only holds them: its own
conversions (0.9) lose the sign of decimals, widen float32 and corrupt memory when an array of text views is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError
from retroact.schema.messages import mismatch

Column = NDArray[Any] | list[Any]

_NUMBERS = dict(zip("cCsSiIlLefg", ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"), strict=True))
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def columns_of(frame: Any) -> dict[str, Column]:
    """The columns of a table by name: arrays where there is a fitting type and no null, lists with None otherwise.

    >>> import pyarrow
    >>> columns_of(pyarrow.table({"amount": [1.5, 2.5], "country": ["DE", None]}))
    {'amount': array([1.5, 2.5]), 'country': ['DE', None]}
    """
    batches = ArrowBatches(frame)
    parts: dict[str, list[Column]] = {name: [] for name in batches.names}
    for columns in batches.read(copied=False):
        for name, column in columns.items():
            parts[name].append(column)
    return {name: _join(chunks) for name, chunks in parts.items()}


class ArrowBatches:
    """The same, batch by batch, so that never more than one of them is in memory.

    >>> import pyarrow
    >>> batches = ArrowBatches(pyarrow.table({"amount": [1.5, 2.5], "country": ["DE", None]}))
    >>> batches.names, list(batches.read(["amount"]))
    (['amount', 'country'], [{'amount': array([1.5, 2.5])}])
    """

    def __init__(self, frame: Any) -> None:
        import nanoarrow  # type: ignore[import-untyped]

        self._stream = nanoarrow.c_array_stream(frame)
        schema = self._stream.get_schema()
        if schema.format != "+s":
            raise mismatch("an Arrow table", frame, None)
        self._fields = list(schema.children)
        self.names: list[str] = [field.name for field in self._fields]
        if len(set(self.names)) != len(self.names):
            raise InputError(f"expected distinct column names, got {', '.join(self.names)}")

    def read(self, names: Collection[str] | None = None, *, copied: bool = True) -> Iterator[dict[str, Column]]:
        """Columns as in `columns_of`; arrays that are not copied belong to the producer, until the next batch."""
        wanted = [index for index, name in enumerate(self.names) if names is None or name in names]
        with self._stream as stream:
            for chunk in stream:
                table = chunk.view()
                if table.null_count > 0:
                    raise InputError("expected rows that are present, got null rows in the Arrow table")
                columns = {self.names[index]: self._column(table, index) for index in wanted}
                yield {name: _join([column]) for name, column in columns.items()} if copied else columns

    def _column(self, table: Any, index: int) -> Column:
        try:
            return _read(table.child(index), self._fields[index], table.offset, table.length)
        except UnicodeDecodeError as error:
            raise mismatch("text in UTF-8", error.object, self.names[index]) from None


def _join(chunks: list[Column]) -> Column:
    arrays = [chunk for chunk in chunks if isinstance(chunk, np.ndarray)]
    if len(arrays) == len(chunks) and len({array.shape[1:] for array in arrays}) == 1:
        # also copies a lone chunk, whose memory belongs to the producer
        return np.concatenate(arrays)
    # list() keeps the type of numpy scalars, and with it the text that a float32 stands for
    return [value for chunk in chunks for value in chunk]


def _read(view: Any, schema: Any, start: int, length: int) -> Column:
    """Elements start to start + length of an array (before its own offset is added)."""
    letters: str = schema.format
    start += view.offset
    if letters == "n":
        return [None] * length
    present = _present(view, start, length)
    values: Column
    if schema.dictionary is not None:
        words = list(_read(view.dictionary, schema.dictionary, 0, view.dictionary.length))
        codes = _buffer(view, 1, _NUMBERS[letters])[start : start + length]
        return [words[code] if known else None for code, known in zip(codes.tolist(), present.tolist(), strict=True)]
    if letters in _NUMBERS:
        values = _buffer(view, 1, _NUMBERS[letters])[start : start + length]
    elif letters == "b":
        values = _bits(view, 1, start, length)
    elif letters in ("u", "U"):
        values = _texts(view, _offsets(view, "i4" if letters == "u" else "i8", start, length), present.tolist())
    elif letters in ("z", "Z"):
        values = _spans(view, _offsets(view, "i4" if letters == "z" else "i8", start, length))
    elif letters in ("vu", "vz"):
        contents = _views(view, start, length, present.tolist())
        values = contents if letters == "vz" else [content.decode() for content in contents]
    elif letters.startswith("w:"):
        values = _pieces(view, int(letters[2:]), start, length)
    elif letters in ("tdD", "tdm"):
        wide, unit = ("i4", "D") if letters == "tdD" else ("i8", "ms")
        days = _buffer(view, 1, wide)[start : start + length].astype(f"M8[{unit}]")
        values = days.astype("M8[D]").tolist()
    elif letters.startswith("ts"):
        moments = _buffer(view, 1, "i8")[start : start + length].view(f"M8[{_UNITS[letters[2]]}]")
        # without a time zone these are local times; as datetime objects they are seen to be, and refused
        values = moments if letters[4:] else moments.astype("M8[us]").tolist()
    elif letters.startswith("d:"):
        values = _decimals(view, letters, start, length)
    elif letters in ("+l", "+L") or letters.startswith("+w:"):
        values = _lists(view, schema, start, length)
    else:
        raise InputError(
            f"expected numbers, text, bytes, dates, timestamps or lists, got Arrow type {letters!r}",
            place=schema.name or None,
        )
    if present.all():
        return values
    return [value if known else None for value, known in zip(values, present.tolist(), strict=True)]


def _buffer(view: Any, index: int, dtype: str) -> NDArray[Any]:
    return np.frombuffer(memoryview(view.buffer(index)).cast("B"), np.uint8).view(dtype)


def _bits(view: Any, index: int, start: int, length: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(_buffer(view, index, "u1"), bitorder="little", count=start + length)
    return bits[start:].astype(np.bool_)


def _present(view: Any, start: int, length: int) -> NDArray[np.bool_]:
    if view.null_count == 0 or not _buffer(view, 0, "u1").size:
        return np.ones(length, np.bool_)
    return _bits(view, 0, start, length)


def _offsets(view: Any, dtype: str, start: int, length: int) -> list[int]:
    # an array of no elements may come without any offsets
    return _buffer(view, 1, dtype)[start : start + length + 1].tolist() if length else [0]


# What lies under a null is anybody's bytes, so it is not even decoded.


def _texts(view: Any, offsets: list[int], present: list[bool]) -> list[str]:
    base = offsets[0]
    data = _buffer(view, 2, "u1")[base : offsets[-1]].tobytes()
    if data.isascii():
        text = data.decode()
        if len(offsets) > 1 and "\n" not in text:
            return _split(data, np.array(offsets[1:-1], np.int64) - base)
        return [text[begin - base : end - base] for begin, end in pairwise(offsets)]
    spans = zip(pairwise(offsets), present, strict=True)
    return [data[begin - base : end - base].decode() if known else "" for (begin, end), known in spans]


def _split(data: bytes, cuts: NDArray[np.int64]) -> list[str]:
    """Text cut in pieces, by a line break in each place: much quicker than piece by piece.

    >>> _split(b"DEFR", np.array([2, 2]))
    ['DE', '', 'FR']
    """
    broken = np.insert(np.frombuffer(data, np.uint8), cuts, ord("\n"))
    return broken.tobytes().decode().split("\n")


def _spans(view: Any, offsets: list[int]) -> list[bytes]:
    base = offsets[0]
    data = _buffer(view, 2, "u1")[base : offsets[-1]].tobytes()
    return [data[begin - base : end - base] for begin, end in pairwise(offsets)]


def _pieces(view: Any, size: int, start: int, length: int) -> list[bytes]:
    data = _buffer(view, 1, "u1")[start * size : (start + length) * size].tobytes()
    return [data[index * size : (index + 1) * size] for index in range(length)]


def _views(view: Any, start: int, length: int, present: list[bool]) -> list[bytes]:
    heads = _buffer(view, 1, "u1").reshape(-1, 16)[start : start + length]
    numbers = heads.copy().view("i4").tolist()
    # the last buffer lists the sizes of those in between
    stores = [_buffer(view, index, "u1").tobytes() for index in range(2, view.n_buffers - 1)]
    contents = []
    for head, (size, _, store, offset), known in zip(heads, numbers, present, strict=True):
        if not known:
            contents.append(b"")
        elif size <= 12:
            contents.append(head[4 : 4 + size].tobytes())
        else:
            contents.append(stores[store][offset : offset + size])
    return contents


def _decimals(view: Any, letters: str, start: int, length: int) -> list[Decimal]:
    scale, bits = (int(part) for part in (*letters[2:].split(",")[1:], "128")[:2])
    size = bits // 8
    data = _buffer(view, 1, "u1")[start * size : (start + length) * size].tobytes()
    units = [int.from_bytes(data[at : at + size], "little", signed=True) for at in range(0, len(data), size)]
    # by text, since arithmetic would round to the precision of the caller's context
    return [Decimal(f"{unit}e{-scale}") for unit in units]


def _lists(view: Any, schema: Any, start: int, length: int) -> Column:
    child, inner = view.child(0), next(iter(schema.children))
    if schema.format.startswith("+w:"):
        size = int(schema.format[3:])
        offsets = [size * (start + index) for index in range(length + 1)]
    else:
        offsets = _offsets(view, "i4" if schema.format == "+l" else "i8", start, length)
    base = offsets[0]
    values = _read(child, inner, base, offsets[-1] - base)
    sizes = {end - begin for begin, end in pairwise(offsets)}
    if isinstance(values, np.ndarray) and len(sizes) == 1 and 0 not in sizes:
        return values.reshape(length, sizes.pop())
    return [values[begin - base : end - base] for begin, end in pairwise(offsets)]
