"""Columns of anything that exports an Arrow C stream: pyarrow, polars, pandas, DuckDB and others.

The buffers are read here, by the format letters of the Arrow C data interface. nanoarrow only holds them: its own
conversions (0.9) lose the sign of decimals, widen float32 and corrupt memory when an array of text views is copied.

Nothing in a buffer is trusted: offsets must grow and stay inside, codes must name words, texts must be UTF-8. But the
interface does not give the sizes of buffers, so the length of an array and its last offset have to be believed. pyarrow
knows them, so its tables are validated by pyarrow first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..errors import InputError
from ..messages import mismatch
from ..texts import Texts
from .arrow_checks import refusing, require, unreadable, validated
from .packed import Coded, Days, Decimals, Masked, Packed, decimal_of
from .packed_texts import PAD, PackedTexts

Column = NDArray[Any] | list[Any] | Packed | Texts

_NUMBERS = dict(zip("cCsSiIlLefg", ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"), strict=True))
_NARROW = ("u", "z", "+l")
"""Formats with offsets of 32 bits; the others have 64."""
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def columns_of(frame: Any, names: Collection[str] = ()) -> dict[str, Column]:
    """The columns of a table by name: arrays where a type fits and nothing is null, otherwise packed, or lists, with
    None for a null. Columns of `names` are `Texts` if they are text and nothing is null.

    >>> import pyarrow
    >>> columns_of(pyarrow.table({"amount": [1.5, 2.5], "country": ["DE", None]}))
    {'amount': array([1.5, 2.5]), 'country': PackedTexts(['DE', None])}
    """
    batches = ArrowBatches(frame, names)
    parts: dict[str, list[Column]] = {name: [] for name in batches.names}
    for columns in batches.read():
        for name, column in columns.items():
            parts[name].append(column)
    return {name: chunks[0] if len(chunks) == 1 else _join(chunks) for name, chunks in parts.items()}


class ArrowBatches:
    """The same batch by batch, with one batch in memory at a time.

    >>> import pyarrow
    >>> batches = ArrowBatches(pyarrow.table({"amount": [1.5, 2.5], "country": ["DE", None]}))
    >>> batches.names, list(batches.read(["amount"]))
    (['amount', 'country'], [{'amount': array([1.5, 2.5])}])
    """

    def __init__(self, frame: Any, texts: Collection[str] = ()) -> None:
        import nanoarrow  # type: ignore[import-untyped]

        self._texts = texts
        with refusing():
            self._stream = nanoarrow.c_array_stream(validated(frame))
            schema = self._stream.get_schema()
            self._fields = list(schema.children) if schema.format == "+s" else []
            self.names: list[str] = [field.name for field in self._fields]
        if schema.format != "+s":
            raise mismatch("an Arrow table", frame, None)
        if len(set(self.names)) != len(self.names):
            raise InputError(f"expected distinct column names, got {', '.join(self.names)}")

    def read(self, names: Collection[str] | None = None) -> Iterator[dict[str, Column]]:
        """Columns as in `columns_of`, copied: the producer's memory is given back with its batch."""
        wanted = [index for index, name in enumerate(self.names) if names is None or name in names]
        with self._stream as stream:
            chunks = iter(stream)
            while True:
                with refusing():
                    chunk = next(chunks, None)
                    if chunk is None:
                        return
                    table = chunk.view()
                    if table.null_count > 0:
                        raise InputError("expected rows that are present, got null rows in the Arrow table")
                    columns = {self.names[index]: _join([self._column(table, index)]) for index in wanted}
                yield columns

    def _column(self, table: Any, index: int) -> Column:
        view, schema = table.child(index), self._fields[index]
        try:
            if self.names[index] in self._texts and schema.format in ("u", "U") and not view.null_count:
                return _whole_texts(view, schema.format, table.offset, table.length)
            return _read(view, schema, table.offset, table.length)
        except UnicodeDecodeError as error:
            raise mismatch("text in UTF-8", error.object, self.names[index]) from None
        except RuntimeError as error:
            raise unreadable(error).moved(self.names[index]) from None


def _join(chunks: list[Column]) -> Column:
    arrays = [chunk for chunk in chunks if isinstance(chunk, np.ndarray)]
    if len(arrays) == len(chunks) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)  # copies a single chunk too, since its memory belongs to the producer
    packed = [chunk for chunk in chunks if isinstance(chunk, Packed)]
    if packed and len(packed) == len(chunks) and len({*map(type, packed)}) == 1:
        return type(packed[0]).concatenate(packed)
    texts = [chunk for chunk in chunks if isinstance(chunk, Texts)]
    if texts and len(texts) == len(chunks):
        return Texts.concatenate(texts)
    # numpy scalars keep their type, and with it the text that a float32 stands for
    return [value for chunk in chunks for value in chunk]


def _read(view: Any, schema: Any, start: int, length: int) -> Column:
    """Elements start to start + length of an array, not counting its own offset."""
    letters: str = schema.format
    start = _start(view, start, length)
    if letters == "n":
        return [None] * length
    present = _present(view, start, length)
    values: Column
    if schema.dictionary is not None:
        words = list(_read(view.dictionary, schema.dictionary, 0, view.dictionary.length))
        codes = _fixed(view, _NUMBERS[letters], start, length)
        used = codes[present]
        require(not len(used) or (used.min() >= 0 and used.max() < len(words)), "a code that is none of a word")
        return Coded([*words, None], np.where(present, codes, len(words)).astype(np.int64))
    if letters in _NUMBERS:
        values = _fixed(view, _NUMBERS[letters], start, length)
    elif letters == "b":
        values = _bits(view, 1, start, length)
    elif letters in ("u", "U"):
        return _texts(view, _offsets(view, letters, start, length), present)
    elif letters in ("z", "Z"):
        bounds = _offsets(view, letters, start, length)
        values = _cut(_data(view, bounds).tobytes(), bounds.tolist())
    elif letters == "vu":
        return _checked(_text_views(view, start, length, present))
    elif letters == "vz":
        values = _views(view, start, length, present.tolist())
    elif letters.startswith("w:"):
        values = _pieces(view, int(letters[2:]), start, length)
    elif letters in ("tdD", "tdm"):
        wide, unit = ("i4", "D") if letters == "tdD" else ("i8", "ms")
        days = _fixed(view, wide, start, length).astype(f"M8[{unit}]")
        return Days(days.astype("M8[D]"), present)
    elif letters.startswith("ts"):
        moments = _fixed(view, "i8", start, length).view(f"M8[{_UNITS[letters[2]]}]")
        # without a time zone these are local times: as naive datetime objects they are refused
        values = moments if letters[4:] else moments.astype("M8[us]").tolist()
    elif letters.startswith("d:"):
        return _decimals(view, letters, start, length, present)
    elif letters in ("+l", "+L") or letters.startswith("+w:"):
        values = _lists(view, schema, start, length)
    else:
        raise InputError(
            f"expected numbers, text, bytes, dates, timestamps or lists, got Arrow type {letters!r}",
            place=schema.name or None,
        )
    if present.all():
        return values
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return Masked(values, present)
    return [value if known else None for value, known in zip(values, present.tolist(), strict=True)]


def _start(view: Any, start: int, length: int) -> int:
    require(start >= 0 and length >= 0 and start + length <= view.length, "an array shorter than what refers to it")
    return start + int(view.offset)


def _whole_texts(view: Any, letters: str, start: int, length: int) -> Texts:
    """A column of text without nulls, copied."""
    offsets = _offsets(view, letters, _start(view, start, length), length)
    data, begins = _data(view, offsets), offsets[:-1] - offsets[0]
    if int(data.max(initial=0)) >= 0x80:
        content = data.tobytes()
        content.decode()
        # valid as a whole, and cut in front of whole letters
        cuts = begins[begins < len(data)]
        within = cuts[data[cuts] & 0xC0 == 0x80]
        if len(within):
            raise UnicodeDecodeError("utf-8", content, int(within[0]), int(within[0]) + 1, "a letter that is cut")
    return Texts.from_buffer(data, begins, np.diff(offsets).astype(np.int32))


def _buffer(view: Any, index: int, dtype: str) -> NDArray[Any]:
    return np.frombuffer(memoryview(view.buffer(index)).cast("B"), np.uint8).view(dtype)


def _fixed(view: Any, dtype: str, start: int, length: int) -> NDArray[Any]:
    values = _buffer(view, 1, dtype)[start : start + length]
    require(len(values) == length, "a buffer shorter than its array")
    return values


def _bits(view: Any, index: int, start: int, length: int) -> Mask:
    packed = _buffer(view, index, "u1")
    require(8 * len(packed) >= start + length, "a buffer shorter than its array")
    bits = np.unpackbits(packed, bitorder="little", count=start + length)
    return bits[start:].astype(np.bool_)


def _present(view: Any, start: int, length: int) -> Mask:
    if view.null_count == 0 or not _buffer(view, 0, "u1").size:
        return np.ones(length, np.bool_)
    return _bits(view, 0, start, length)


def _offsets(view: Any, letters: str, start: int, length: int) -> I64:
    if not length:
        return np.zeros(1, np.int64)  # an array without elements may have no offsets
    offsets = _buffer(view, 1, "i4" if letters in _NARROW else "i8")[start : start + length + 1]
    require(len(offsets) == length + 1, "a buffer shorter than its array")
    require(offsets[0] >= 0 and (offsets[1:] >= offsets[:-1]).all(), "offsets that do not grow")
    return offsets.astype(np.int64)


def _data(view: Any, offsets: I64) -> NDArray[np.uint8]:
    """The bytes between the first offset and the last."""
    data = _buffer(view, 2, "u1")
    require(offsets[-1] <= len(data), "an offset beyond the data")
    return data[offsets[0] : offsets[-1]]


def _texts(view: Any, offsets: I64, present: Mask) -> PackedTexts:
    return _checked(PackedTexts.of(_data(view, offsets), offsets - offsets[0], present))


def _checked(texts: PackedTexts) -> PackedTexts:
    """Texts, all of which can be decoded; what lies under a null may be anything."""
    if int(texts.data.max(initial=0)) >= 0x80:
        texts.strings()
    return texts


def _cut(data: Any, offsets: list[int]) -> list[Any]:
    """The pieces between neighbouring offsets, of data that begin at the first one."""
    base = offsets[0]
    return [data[begin - base : end - base] for begin, end in pairwise(offsets)]


def _pieces(view: Any, size: int, start: int, length: int) -> list[bytes]:
    data = _fixed(view, "u1", start * size, length * size).tobytes()
    return _cut(data, [size * index for index in range(length + 1)])


def _views(view: Any, start: int, length: int, present: list[bool]) -> list[bytes]:
    heads = _fixed(view, "u1", 16 * start, 16 * length).reshape(-1, 16)
    numbers = heads.copy().view("i4").tolist()
    # the last buffer lists the sizes of those in between
    stores = [_buffer(view, index, "u1").tobytes() for index in range(2, view.n_buffers - 1)]
    contents = []
    for head, (size, _, store, offset), known in zip(heads, numbers, present, strict=True):
        if not known:
            contents.append(b"")
        elif 0 <= size <= 12:
            contents.append(head[4 : 4 + size].tobytes())
        else:
            inside = 0 <= store < len(stores) and 0 <= offset <= offset + size <= len(stores[store])
            require(size > 0 and inside, "a text beyond the data")
            contents.append(stores[store][offset : offset + size])
    return contents


def _text_views(view: Any, start: int, length: int, present: Mask) -> PackedTexts:
    heads = _fixed(view, "u1", 16 * start, 16 * length)
    sizes, _, store, offset = heads.copy().view("i4").reshape(-1, 4).T.astype(np.int64)
    sizes = np.where(present, sizes, 0)
    require((sizes >= 0).all(), "a text beyond the data")
    # the last buffer lists the sizes of those in between
    stores = [_buffer(view, index, "u1") for index in range(2, view.n_buffers - 1)]
    starts = PAD + 16 * np.arange(length) + 4
    long = np.flatnonzero(sizes > 12)
    if long.size:
        ends, store, offset = np.array([0, *map(len, stores)]), store[long], offset[long]
        require(((store >= 0) & (store < len(stores))).all(), "a text beyond the data")
        inside = (offset >= 0) & (offset + sizes[long] <= ends[store + 1])
        require(inside.all(), "a text beyond the data")
        starts[long] = PAD + 16 * length + np.cumsum(ends)[store] + offset
    room = np.zeros(PAD, np.uint8)
    data = np.concatenate([room, heads, *(stores if long.size else ()), room])
    return PackedTexts(data, starts, sizes, None if present.all() else present)


def _decimals(view: Any, letters: str, start: int, length: int, present: Mask) -> Column:
    scale, bits = (int(part) for part in (*letters[2:].split(",")[1:], "128")[:2])
    if bits == 128:
        low, high = _fixed(view, "i8", 2 * start, 2 * length).reshape(-1, 2).T
        # 64 bits are enough where the others repeat the sign
        if (present <= (high == low >> 63)).all():
            return Decimals(low, scale, present)
    units = [int.from_bytes(piece, "little", signed=True) for piece in _pieces(view, bits // 8, start, length)]
    return [decimal_of(unit, scale) if known else None for unit, known in zip(units, present.tolist(), strict=True)]


def _lists(view: Any, schema: Any, start: int, length: int) -> Column:
    child, inner = view.child(0), next(iter(schema.children))
    if schema.format.startswith("+w:"):
        size = int(schema.format[3:])
        offsets = [size * (start + index) for index in range(length + 1)]
    else:
        offsets = _offsets(view, schema.format, start, length).tolist()
    values = _read(child, inner, offsets[0], offsets[-1] - offsets[0])
    if isinstance(values, Packed):
        values = values.values()
    elif isinstance(values, np.ndarray):
        values = values.copy()  # its parts are taken as they are
    sizes = {end - begin for begin, end in pairwise(offsets)}
    if isinstance(values, np.ndarray) and len(sizes) == 1 and 0 not in sizes:
        return values.reshape(length, sizes.pop())
    return _cut(values, offsets)
