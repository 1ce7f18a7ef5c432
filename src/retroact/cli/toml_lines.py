"""In which line of a TOML file a key is, for errors about its value."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import InputError


def line_of(path: str, text: str) -> int | None:
    """Where the value of a path such as ``schema.amount.lower`` begins; of a key that is missing, where its table
    does. The parser gives no positions, so this is the first line with which the file has such a key.

    >>> text = '[schema]\\na = { lower = 0 }\\n\\n[rounds]\\nstart = 1\\nend = [\\n 2 ]'
    >>> [line_of(path, text) for path in ("schema.a.lower", "schema.b", "rounds.end", "epsilon")]
    [2, 1, 6, None]
    """
    keys = _keys(path, tomllib.loads(text))
    if not keys:
        return None
    lines, begins = text.splitlines(keepends=True), 1
    for number in range(1, len(lines) + 1):
        try:
            found = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:  # a value over several lines
            continue
        if _keys(path, found) == keys:
            return begins
        begins = number + 1
    return begins


def _keys(path: str, value: Any) -> list[str]:
    """The keys that a path leads through, as far as they are there; a key may have dots."""
    if not path or not isinstance(value, Mapping):
        return []
    found = [key for key in value if path == key or path.startswith((f"{key}.", f"{key}["))]
    if not found:
        return []
    key = max(found, key=len)
    return [key, *_keys(path[len(key) :].lstrip("."), value[key])]


@contextmanager
def naming_lines(text: str, source: str) -> Iterator[None]:
    """An error at a path is in its line of the file; an error at an option is not in the file."""
    try:
        yield
    except InputError as error:
        path = error.path or ""
        if path.startswith("--"):
            raise
        raise error.found_in(source, row=line_of(path, text), unit="line") from None
