"""Tables as feeds: their rows are changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from retroact.errors import InputError, Unit
from retroact.feeds.batch import Changes
from retroact.feeds.options import Options
from retroact.feeds.readers.arrow import ColumnarSource
from retroact.feeds.row_reader import RowReader
from retroact.schema import Schema


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
        """From the last row that was read before, which shows that it is still there."""
        found, table = self._found, self.source
        table.done = 0
        for batch in table.batches(found.needed, skip=max(0, self.begin_after - 1), words=found.words):
            table.done = int(batch.numbers[-1])
            yield from self.read(batch)

    def times(self) -> Iterator[tuple[Any, Any]]:
        """All rows and their times, batch by batch."""
        time, self.source.done = self._found.time or "", 0
        for batch in self.source.batches({time}):
            self.source.done = int(batch.numbers[-1])
            yield batch.numbers, batch.columns[time].column()

    def count(self) -> int:
        """How many rows there are, when all were read."""
        return self.source.done

    def unfinished(self) -> None:
        """A table ends with a whole row."""
