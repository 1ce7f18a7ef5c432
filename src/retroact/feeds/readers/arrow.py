"""Tables as feeds: Parquet and Arrow files by pyarrow, and any frame that exports an Arrow stream.

Files are read in batches, never whole, and only the columns that are needed. Nothing in them is trusted: offsets,
lengths, dictionary codes and UTF-8 are checked in every batch before a value of it is read, and what the Arrow library
cannot read is an input error that names the row group or the record batch.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, Unit
from ...files import os_errors
from ...schema import Schema
from ...schema.arrow import ArrowBatches
from ..batch import Batch, Changes, ColumnValues
from ..options import Options
from ..row_reader import RowReader
from ..source import open_file
from .arrow_cells import Words, name_cells

ROWS = 1 << 16
SUFFIXES = {".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}
LONGEST_REASON = 300
_FILE_MAGIC, _OLD_MAGIC = b"ARROW1", b"FEA1"


def is_table(source: Any) -> bool:
    """Whether rows come in columns: a frame, or a file that holds one.

    >>> is_table("orders.parquet"), is_table("orders.jsonl")
    (True, False)
    """
    if hasattr(source, "__arrow_c_stream__"):
        return True
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"expected a path, - for standard input, or an Arrow-capable frame, got {type(source).__name__}"
        )
    return Path(source).suffix.lower() in SUFFIXES


class ColumnarSource:
    """Rows in columns, which can be read from any row on."""

    name: str
    format: str
    names: list[str]
    """The names of the columns."""
    types: list[str]
    """The types in the schema of a file; only files have these."""
    size: int | None
    """How many rows there are, if known in advance."""
    count: int = 0
    """How many were read so far."""
    path: str | None = None
    follow = holds = False
    compressed: str | None = None
    is_table = rereadable = True

    def progress(self) -> tuple[int, str]:
        """How much of the size was read, as a number and in words."""
        return self.count, f"{self.count:,} rows"

    def again(self) -> None:
        """Nothing to do: batches begin at any row."""

    def require_whole_lines(self) -> None:
        """Tables have no lines."""

    def batches(self, names: Collection[str], *, skip: int = 0, words: Collection[str] = ()) -> Iterator[Batch]:
        """The rows after the first ``skip`` ones; texts of the columns in ``words`` are likely to repeat."""
        raise NotImplementedError


class TableReader(RowReader):
    """Reads only the columns that are needed, and only rows that were not read before."""

    unit: Unit = "row"

    def __init__(self, table: ColumnarSource, schema: Schema, options: Options) -> None:
        if options.follow:
            raise InputError("expected JSON lines or CSV to follow: a table is complete", place="follow")
        if options.cut.close_by == "progress":
            raise InputError(
                "expected rounds that close by lines, by a grid or at the end of a table", place="close_by"
            )
        super().__init__(table.name, schema, options)
        self.source = table
        self._found = self.begin(table.names)

    def __iter__(self) -> Iterator[Changes]:
        """Start at the last row that was read before, to show that it is still there."""
        found, table = self._found, self.source
        table.count = 0
        for batch in table.batches(found.needed, skip=max(0, self.begin_after - 1), words=found.words):
            table.count = int(batch.numbers[-1])
            yield from self.read(batch)

    def times(self) -> Iterator[tuple[Any, Any]]:
        """All rows and their times, batch by batch."""
        time, self.source.count = self._found.roles["time"], 0
        for batch in self.source.batches({time}):
            self.source.count = int(batch.numbers[-1])
            yield batch.numbers, batch.columns[time].column()

    def unfinished(self) -> None:
        """A table ends with a whole row."""


def open_table(source: Any) -> ColumnarSource:
    if not isinstance(source, str | os.PathLike):
        return _Frame(source)
    path, suffix = str(source), Path(source).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"expected a name that ends with {', '.join(SUFFIXES)}", source=path)
    if _pyarrow() is None:
        raise InputError("Parquet and Arrow files need pyarrow: pip install 'retroact[parquet]'", source=path)
    with open_file(path) as file, os_errors(path):
        start = file.read(8)
    if SUFFIXES[suffix] == "Parquet":
        return _Parquet(path)
    if start.startswith(_OLD_MAGIC):
        raise InputError("expected Feather of version 2, got version 1", source=path)
    return _ArrowFile(path, streamed=not start.startswith(_FILE_MAGIC))


def _pyarrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        return None
    return pyarrow


@contextmanager
def arrow_errors(name: str, expected: str, where: Callable[[], str | None] | None = None) -> Iterator[None]:
    """Errors of the Arrow library become input errors that name the source, and ``where`` in it."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    # with broken metadata the library also raises exceptions of Python
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError, TypeError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(error.strerror.lower(), source=name) from None
        reason = (str(error) or type(error).__name__).split("\n")[0].rstrip(".")[:LONGEST_REASON]
        place = None if where is None else where()
        raise InputError(
            f"expected {expected}, got one that cannot be read ({reason})", place=place, source=name
        ) from None


class _Parquet(ColumnarSource):
    format = "Parquet"

    def __init__(self, path: str) -> None:
        self.name = self.path = path
        with self._file() as file:
            self.names, self.types = list(file.schema_arrow.names), list(map(str, file.schema_arrow.types))
            self._groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            kinds = zip(self.names, file.schema_arrow.types, strict=True)
            self._texts = {name for name, kind in kinds if str(kind) in ("string", "large_string")}
            self._require_rows(file.metadata.num_rows, sum(self._groups))
        self.size = sum(self._groups)

    @contextmanager
    def _file(self, words: Collection[str] = ()) -> Iterator[Any]:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        with arrow_errors(self.name, "a Parquet file"):
            # checksums are optional, but must be right
            options: dict[str, Any] = {"read_dictionary": list(words), "page_checksum_verification": True}
            with pq.ParquetFile(self.name, **options) as file:
                yield file

    def batches(self, names: Collection[str], *, skip: int = 0, words: Collection[str] = ()) -> Iterator[Batch]:
        first, row = 0, 0
        while first < len(self._groups) and row + self._groups[first] <= skip:
            row += self._groups[first]
            first += 1
        groups = range(first, len(self._groups))
        wanted = [name for name in self.names if name in names]
        # rows are counted in a column: what the metadata say may be wrong
        read = wanted or self.names[:1]
        if not read:
            raise InputError("expected a Parquet file with columns, got none", source=self.name)
        with self._file([name for name in words if name in self._texts]) as file:

            def found(groups: Sequence[int]) -> Iterator[Any]:
                return _checked(file.iter_batches(batch_size=ROWS, row_groups=groups, columns=read))

            def where() -> str | None:
                """The first group that cannot be read."""
                for group in groups:
                    try:
                        deque(found([group]), 0)
                    except Exception:
                        return f"row group {group + 1} of {len(self._groups)}"
                return None

            with arrow_errors(self.name, "a Parquet file", where):
                last = max(row, skip)
                for batch in _batches(found(groups), wanted, row, skip, words, self.name):
                    last = int(batch.numbers[-1])
                    yield batch
            self._require_rows(last, max(skip, sum(self._groups)))

    def _require_rows(self, got: int, rows: int) -> None:
        if got != rows or min(self._groups, default=0) < 0:
            wrong = f"expected {rows:,} rows, as its row groups say, got {got:,}"
            raise InputError(f"expected a Parquet file, got one that cannot be read ({wrong})", source=self.name)


class _ArrowFile(ColumnarSource):
    """A file of record batches, which can be counted in advance, or a stream of them in a file."""

    def __init__(self, path: str, *, streamed: bool) -> None:
        self.name = self.path = path
        self.format = "Arrow stream" if streamed else "Arrow"
        self._streamed = streamed
        with self._reader() as reader:
            self.names, self.types = list(reader.schema.names), list(map(str, reader.schema.types))
            self.size = reader.count_rows() if hasattr(reader, "count_rows") else None

    @contextmanager
    def _reader(self, names: Collection[str] | None = None) -> Iterator[Any]:
        import pyarrow as pa

        chosen = None if names is None else [place for place, name in enumerate(self.names) if name in names]
        with arrow_errors(self.name, "an Arrow file"), pa.memory_map(self.name) as file:
            options = pa.ipc.IpcReadOptions(included_fields=chosen) if chosen else pa.ipc.IpcReadOptions()
            yield (pa.ipc.open_stream if self._streamed else pa.ipc.open_file)(file, options=options)

    def batches(self, names: Collection[str], *, skip: int = 0, words: Collection[str] = ()) -> Iterator[Batch]:
        begun = 0

        def chunks(reader: Any) -> Iterator[Any]:
            nonlocal begun
            every = iter(reader) if self._streamed else map(reader.get_batch, range(reader.num_record_batches))
            begun = 1
            for chunk in _checked(every):
                yield chunk
                begun += 1

        with self._reader(names) as reader, arrow_errors(self.name, "an Arrow file", lambda: f"record batch {begun}"):
            yield from _batches(chunks(reader), [n for n in self.names if n in names], 0, skip, words, self.name)


class _Frame(ColumnarSource):
    """Read by pyarrow if it is installed, which is faster, and by nanoarrow otherwise."""

    format = "Arrow table"

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "__arrow_c_stream__"):
            raise InputError(f"expected a frame that exports an Arrow stream, got {type(frame).__name__}")
        self.name = "the frame"
        self._frame = frame
        self._opened: Any = self._open()
        if _pyarrow() is None:
            self.names = list(self._opened.names)
        else:
            with arrow_errors(self.name, "an Arrow table"):
                self.names = list(self._opened.schema.names)
        self.size = frame.num_rows if isinstance(getattr(frame, "num_rows", None), int) else None

    def _open(self) -> Any:
        pa = _pyarrow()
        if pa is None:
            return ArrowBatches(self._frame)
        frame = self._frame
        with arrow_errors(self.name, "an Arrow table"):
            # the C interface loses the sizes of buffers, without which they cannot be checked
            if isinstance(frame, pa.RecordBatch):
                frame = pa.Table.from_batches([frame])
            if isinstance(frame, pa.Table):
                return frame.to_reader()
            return frame if isinstance(frame, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(frame)

    def batches(self, names: Collection[str], *, skip: int = 0, words: Collection[str] = ()) -> Iterator[Batch]:
        reader, self._opened = self._opened or self._open(), None
        wanted = [name for name in self.names if name in names]
        if _pyarrow() is not None:
            with arrow_errors(self.name, "an Arrow table"):
                chunks = (chunk.select(wanted) for chunk in reader)
                yield from _batches(_checked(chunks), wanted, 0, skip, words, self.name)
            return
        row = 0
        for columns in reader.read(None):
            count = len(next(iter(columns.values()), ()))
            for start in range(max(0, skip - row), count, ROWS):
                end = min(start + ROWS, count)
                parts = {name: ColumnValues.of(columns[name][start:end]) for name in wanted}
                yield Batch(np.arange(row + start + 1, row + end + 1), parts)
            row += count


def _checked(found: Iterator[Any]) -> Iterator[Any]:
    """Record batches whose offsets, lengths, codes and texts are valid: a buffer may hold any bytes."""
    for chunk in found:
        chunk.validate(full=True)
        yield chunk


def _batches(
    found: Iterator[Any], names: list[str], row: int, skip: int, words: Collection[str], source: str
) -> Iterator[Batch]:
    """Record batches of pyarrow, the first of which begins after row ``row``, as batches of at most ROWS rows."""
    readers: dict[str, Callable[[Any], ColumnValues]] = {
        name: Words() if name in words else name_cells for name in names
    }
    for chunk in found:
        count = chunk.num_rows
        for start in range(max(0, skip - row), count, ROWS):
            part = chunk.slice(start, ROWS)
            try:
                columns = {name: readers[name](part.column(name)) for name in names}
            except InputError as error:
                raise error.found_in(source) from None
            yield Batch(np.arange(row + start + 1, row + start + part.num_rows + 1), columns)
        row += count
