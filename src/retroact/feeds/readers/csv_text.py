"""The text of CSV files before it is cut into cells: blocks of UTF-8, and the delimiter."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator

from ...errors import InputError
from ..refusals import Refusals
from ..source import Source, line_ends, not_utf8

LARGE = 5 << 18
"""Bytes in a block: enough for words to repeat, and few enough for the cache."""
DELIMITERS = (",", ";", "\t", "|")


def valid_blocks(source: Source, refusals: Refusals | None) -> Iterator[bytes]:
    """Blocks of UTF-8. A line that is none is refused: noted, with a blank line in its place, or raised."""
    first = 1
    for content in _large_blocks(source):
        while True:
            try:
                content.isascii() or content.decode()
                yield content
                break
            except UnicodeDecodeError as error:
                good = content.rfind(b"\n", 0, error.start) + 1
                yield content[:good]
                line = first + line_ends(content[:good])
                wrong = source.refused(not_utf8(error, f"column {error.start - good + 1}"), line)
                if refusals is None:
                    raise wrong from None
                refusals.add(wrong)
                # a blank line in its place keeps the numbers of those after it
                end = content.find(b"\n", error.start)
                first, content = line, content[end:] if end >= 0 else b""
        first += line_ends(content)


def _large_blocks(source: Source) -> Iterator[bytes]:
    """Blocks of some size, unless somebody may wait for small ones: who follows a file, or writes to a pipe."""
    content, waits = b"", source.follow or source.path is None
    try:
        for block in source.blocks():
            content += block
            if waits or len(content) >= LARGE:
                yield content
                content = b""
    except InputError:
        # rows before the error are good, and may end rounds
        yield content
        raise
    if content:
        yield content


def delimiter_of(header: str, known: Collection[str]) -> str:
    """The delimiter that makes the most known columns of a header or, if several do, the most columns.

    >>> delimiter_of("amount (EUR, net);country", {"country"}), delimiter_of("id\\tamount", {"amount"})
    (';', '\\t')
    >>> delimiter_of("amount", {"amount"})
    ','
    """

    def columns(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return len({*known} & {*names}), len(names)

    return max(DELIMITERS, key=columns)


def is_open(error: csv.Error) -> bool:
    """Whether the text ended inside a quoted cell."""
    return "unexpected end" in str(error)
