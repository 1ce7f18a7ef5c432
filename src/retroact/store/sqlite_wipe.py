"""Wiping what SQLite leaves behind in pages: all of them, or those that changed since the log was last cut.

SQLite leaves second copies of rows in its pages whenever it balances a tree, whether or not anything was deleted. They
come into the file only with pages that were written, and all of those are in the log until it is cut. So a file that
held nothing but live content before is clean again once these pages are wiped.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from ..files import os_errors
from .sqlite_pages import FOUR, TWO
from .sqlite_residue import residue

KINDS = ("gap", "free block", "fragment", "free page", "overflow tail")
HEADER, FRAME = 32, 24
"""Bytes of a log before its first frame, and of a frame before its page, whose number comes first."""
SIZE = 8
"""Where the header of a log holds the size of pages."""
COOKIE = 40
"""Where the header of a database holds the version of its schema."""


def wipe(path: Path, pages: Iterable[int] | None = None) -> None:
    """Zero everything in the pages of b-trees that is not live content, offsets included; in these, or in all.

    Nobody may have the database open meanwhile. A crash does no harm: live content is not touched.
    """
    found = [region for region in residue(path, strict=True, trees=True, pages=pages) if region.kind in KINDS]
    if not found:
        return
    with path.open("r+b") as file:
        file.seek(16)
        size = TWO.unpack(file.read(2))[0]
        for region in found:
            file.seek((region.page - 1) * (65536 if size == 1 else size) + region.offset)
            file.write(bytes(region.length))
        file.flush()
        os.fsync(file.fileno())


def logged(log: Path) -> set[int]:
    """The pages in a write-ahead log."""
    with os_errors(log):
        if not log.exists() or log.stat().st_size <= HEADER:
            return set()
        with log.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            step = FRAME + FOUR.unpack_from(data, SIZE)[0]
            return {FOUR.unpack_from(data, at)[0] for at in range(HEADER, len(data) - FRAME, step)}


def set_version(path: Path, version: int) -> None:
    """Set the version of the schema. Nobody may have the database open meanwhile."""
    with os_errors(path), path.open("r+b") as file:
        file.seek(COOKIE)
        file.write(FOUR.pack(version))
        file.flush()
        os.fsync(file.fileno())
