"""Bytes of an SQLite file that do not belong to live content.

`residue` parses the file itself: every b-tree page, cell, free block, overflow chain and freelist page. Bytes that none
of them covers must be zero; others are reported.

Found by experiment with ``secure_delete=ON`` (SQLite 3.40, hundreds of random histories):

- Some bytes stay by design. They cannot hold a value, and only they are ignored, unless ``strict``: *stale cell
  pointers* directly after the pointer array, each an offset in the page above its own place; *stale headers of free
  blocks* in the gap, four bytes each (offset of the next block or 0, size), whose block fits in the page, ends before
  the next one and reaches the next stale header or the cells; and *stale page numbers* (2 to the last page) directly
  after the entries of a freelist trunk, or after the payload in an overflow page that was a trunk before, with only
  zeros after them. A region that holds anything else is reported whole. In pages above 8192 bytes an offset may look
  like printable text, so none is ignored there. The limit of this: a few deleted bytes, or a deleted run of small
  integers, that have exactly this shape are taken for offsets or page numbers.
- Some bytes stay that do hold content, and they are reported. When SQLite balances a tree it copies cells, and may
  leave the old copies in the gap of a page ("gap"), where values deleted later can still be read. A rowid table keeps
  the rowids of deleted rows as dividers in its inner pages ("stale key"); WITHOUT ROWID tables do not. A transaction
  that outgrew the page cache and was rolled back (rollback journal) leaves its data in free pages.

So ``secure_delete`` alone does not prove erasure. VACUUM (with ``secure_delete=ON``) and a checkpoint remove everything
that was deleted before; a gap may then still be reported for second copies of live rows. Payload that SQLite assigns to
a live row is live; records are not parsed.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from ..errors import InputError
from .sqlite_pages import FOUR, INNER, KINDS, TABLE_INNER, TABLE_LEAF, TWO, Cell, PageCells, only_offsets, root_page

MAGIC = b"SQLite format 3\0"
DEPTH = 20  # SQLite's own limit
LOCK_BYTE = 1 << 30  # the page at this offset is never used
TELLING = 1 << 25  # in a file of fewer pages, no page number begins with a byte of KINDS
DISTINCT = 8192  # up to this page size the first byte of an offset is no printable character


@dataclass(frozen=True, slots=True)
class Residue:
    """A region of a page (counted from 1) without live content, and how many of its bytes are not zero."""

    page: int
    offset: int
    length: int
    nonzero: int
    kind: str


def residue(
    path: Path, *, strict: bool = False, trees: bool = False, pages: Iterable[int] | None = None
) -> list[Residue]:
    """The regions of a database file without live content that are not zero, in file order.

    With ``trees`` only pages of b-trees are checked, which is fast if most of the file is long blobs; with ``pages``
    only those of b-trees among them. Nobody may write to the file meanwhile, and its log must be empty
    (``PRAGMA wal_checkpoint(TRUNCATE)``).

    >>> import sqlite3, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "store.sqlite"
    ...     connection = sqlite3.connect(path, isolation_level=None)
    ...     for statement in [
    ...         "pragma secure_delete=off", "create table note(t text primary key) without rowid",
    ...         "insert into note values('a secret')", "delete from note",
    ...     ]:
    ...         _ = connection.execute(statement)
    ...     connection.close()
    ...     [(found.page, found.kind) for found in residue(path)]
    [(2, 'gap')]
    """
    for suffix, what in (("-wal", "write-ahead log"), ("-journal", "rollback journal")):
        log = Path(f"{path}{suffix}")
        if log.exists() and (size := log.stat().st_size):
            raise InputError(f"expected an empty {what}, found one of {size} bytes", place=str(log))
    try:
        with path.open("rb") as file:
            if (size := os.fstat(file.fileno()).st_size) < 512:
                raise InputError(f"expected an SQLite 3 database, found a file of {size} bytes", place=str(path))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                scan = _Scan(data, str(path), strict, trees or pages is not None)
                if pages is None or scan.pages >= TELLING:
                    return scan.run()
                return scan.some(pages)
    except OSError as error:
        raise InputError(f"expected a database file that can be read: {error.strerror}", place=str(path)) from None


class _Scan:
    def __init__(self, data: mmap.mmap, name: str, strict: bool, trees: bool) -> None:
        self.data, self.name, self.trees = data, name, trees
        if data[:16] != MAGIC:
            self.bad(f"an SQLite 3 database begins with {MAGIC!r}", repr(data[:16]))
        size = TWO.unpack_from(data, 16)[0]
        self.size = size = 65536 if size == 1 else size
        if size < 512 or size & (size - 1):
            self.bad("a page size that is a power of two from 512 to 65536", str(size))
        self.usable = size - data[20]
        if self.usable < 480:
            self.bad("at least 480 usable bytes in a page", f"{self.usable}")
        if data[21:24] != b"\x40\x20\x20":
            self.bad("the payload fractions 64, 32, 32", str([*data[21:24]]))
        if data[52:56] != bytes(4):
            self.bad("a database without auto_vacuum", "one with it")
        counter, recorded = data[24:28], FOUR.unpack_from(data, 28)[0]
        self.pages = recorded if recorded and counter == data[92:96] else len(data) // size
        if self.pages < 1 or len(data) < self.pages * size:
            self.bad(f"{max(self.pages, 1)} pages of {size} bytes", f"a file of {len(data)} bytes")
        self.strict = strict
        self.cells = PageCells(self.usable)
        self.seen = bytearray(self.pages + 1)
        self.found: list[Residue] = []
        self.schema: list[bytes] | None = []

    def bad(self, expected: str, found: str, page: int | None = None) -> NoReturn:
        place = self.name if page is None else f"{self.name}, page {page}"
        raise InputError(f"expected {expected}, found {found}", place=place)

    def run(self) -> list[Residue]:
        self.bytes_between(1, 72, 92, "header")
        self.tree(1, 0)
        rows, self.schema = self.schema or [], None
        for row in rows:
            try:
                root = root_page(row)
            except IndexError:
                self.bad("a row of sqlite_schema of five columns", f"{len(row)} bytes that are none")
            if root:
                self.tree(root, 0)
        if self.trees:
            return self.found
        self.freelist()
        lock = LOCK_BYTE // self.size + 1
        at = 0
        while (at := self.seen.find(0, at + 1)) > 0:
            count = self.nonzero((at - 1) * self.size, at * self.size)
            if count or at != lock:
                self.found.append(Residue(at, 0, self.size, count, "unreferenced page"))
        if self.usable < self.size:
            for page in range(1, self.pages + 1):
                if self.seen[page]:
                    self.bytes_between(page, self.usable, self.size, "reserved")
        self.bytes_between(self.pages + 1, 0, len(self.data) - self.pages * self.size, "after the last page")
        return sorted(self.found, key=lambda found: (found.page, found.offset))

    def some(self, pages: Iterable[int]) -> list[Residue]:
        """Overflow pages and trunks begin with a page number, free pages with a zero."""
        for page in sorted(pages):
            if 1 <= page <= self.pages and (page == 1 or self.data[(page - 1) * self.size] in KINDS):
                self.node(page, self.data[(page - 1) * self.size : page * self.size])
        return self.found

    def take(self, page: int, what: str, source: int) -> int:
        """Mark a page as used; its offset in the file."""
        if not 1 <= page <= self.pages:
            self.bad(f"{what} among {self.pages} pages", f"page {page}", source)
        if self.seen[page]:
            self.bad(f"{what} that nothing else uses", f"page {page}", source)
        self.seen[page] = 1
        return (page - 1) * self.size

    def nonzero(self, start: int, end: int) -> int:
        return int(np.count_nonzero(np.frombuffer(self.data, np.uint8, end - start, start))) if end > start else 0

    def bytes_between(self, page: int, start: int, end: int, kind: str) -> None:
        base = (page - 1) * self.size
        if count := self.nonzero(base + start, base + end):
            self.found.append(Residue(page, start, end - start, count, kind))

    def behind(self, page: int, start: int, kind: str) -> None:
        """Report what follows the live part of a trunk, or of an overflow page that may have been a trunk before."""
        base = (page - 1) * self.size
        rest = self.data[base + start : base + self.usable].rstrip(b"\0")
        if not rest:
            return
        cut = start % 4  # bytes of the first number that are overwritten
        numbers = np.frombuffer(bytes(cut) + rest + bytes(-(cut + len(rest)) % 4), ">u4")
        whole = numbers[1:] if cut else numbers
        if self.strict or numbers.max() > self.pages or (whole < 2).any():
            self.bytes_between(page, start, self.usable, kind)

    def freelist(self) -> None:
        trunk, source, total = FOUR.unpack_from(self.data, 32)[0], 1, 0
        while trunk:
            at = self.take(trunk, "a freelist trunk", source)
            following, count = struct.unpack_from(">II", self.data, at)
            if count > self.usable // 4 - 2:
                self.bad(f"at most {self.usable // 4 - 2} entries in a freelist trunk", f"{count}", trunk)
            for leaf in struct.unpack_from(f">{count}I", self.data, at + 8):
                self.take(leaf, "a free page", trunk)
                self.bytes_between(leaf, 0, self.usable, "free page")
            self.behind(trunk, 8 + 4 * count, "free page")
            total += 1 + count
            trunk, source = following, trunk
        if total != (recorded := FOUR.unpack_from(self.data, 36)[0]):
            self.bad(f"{recorded} free pages, as the header says", f"{total}")

    def chain(self, first: int, left: int, source: int) -> list[tuple[int, int]]:
        """Follow the overflow pages of a payload; its pieces in the file."""
        pieces, page, room = [], first, self.usable - 4
        while left:
            at = self.take(page, "an overflow page", source)
            piece = min(left, room)
            pieces.append((at + 4, at + 4 + piece))
            left -= piece
            source, page = page, FOUR.unpack_from(self.data, at)[0]
        if page:
            self.bad("the end of an overflow chain", f"a pointer to page {page}", source)
        self.behind(source, 4 + piece, "overflow tail")
        return pieces

    def tree(self, page: int, source: int, depth: int = 0) -> int | None:
        """Go through a b-tree; its last rowid, if it is a table and not empty."""
        if depth > DEPTH:
            self.bad(f"a tree of at most {DEPTH} levels", "a deeper one", source)
        at = self.take(page, "a page of a b-tree", source)
        content = self.data[at : at + self.size]
        kind, cells = self.node(page, content)
        for cell in cells:
            left = cell.payload - (cell.local[1] - cell.local[0])
            if self.trees and self.schema is None:
                continue
            pieces = self.chain(cell.overflow, left, page) if left else []
            if self.schema is not None and kind == TABLE_LEAF:
                rest = b"".join(self.data[a:b] for a, b in pieces)
                self.schema.append(content[slice(*cell.local)] + rest)
        if kind not in INNER:
            return cells[-1].key if cells else None
        for cell in cells:
            last = self.tree(cell.child, page, depth + 1)
            if kind == TABLE_INNER and last != cell.key:
                key = content[cell.key_at : cell.end]
                self.found.append(Residue(page, cell.key_at, len(key), len(key) - key.count(0), "stale key"))
        return self.tree(FOUR.unpack_from(content, (100 if page == 1 else 0) + 8)[0], page, depth + 1)

    def node(self, page: int, content: bytes) -> tuple[int, list[Cell]]:
        """The kind and the cells of one page of a b-tree; what is between them is reported."""
        head = 100 if page == 1 else 0
        kind, block, count, start, fragments = struct.unpack_from(">BHHHB", content, head)
        if kind not in KINDS:
            self.bad("a b-tree page of type 2, 5, 10 or 13", f"type {kind}", page)
        start = start or 65536
        array = head + (12 if kind in INNER else 8)
        top = array + 2 * count
        if not top <= start <= self.usable:
            self.bad(f"cells that begin between {top} and {self.usable}", f"{start}", page)
        try:
            cells = [
                self.cells.read(content, kind, pointer) for pointer in struct.unpack_from(f">{count}H", content, array)
            ]
            blocks = self.blocks(content, block, page)
        except (IndexError, struct.error):
            self.bad("cells and free blocks inside the page", "one that runs over its end", page)
        self.gap(page, content, top, start)
        self.uncovered(page, content, start, cells, blocks, fragments)
        return kind, cells

    def blocks(self, content: bytes, block: int, page: int) -> list[tuple[int, int]]:
        blocks, end = [], 0
        while block:
            following, size = struct.unpack_from(">HH", content, block)
            if block < end or size < 4:
                self.bad("free blocks of at least 4 bytes in rising order", f"one of {size} at {block}", page)
            blocks.append((block, end := block + size))
            block = following
        return blocks

    def uncovered(
        self, page: int, content: bytes, start: int, cells: list[Cell], blocks: list[tuple[int, int]], fragments: int
    ) -> None:
        """Report what is between cells: free blocks after their headers, fragments, the padding of tiny cells."""
        regions = [(cell.start, cell.end, max(cell.end, cell.start + 4), "fragment") for cell in cells]
        regions += [(at, at + 4, end, "free block") for at, end in blocks]
        regions.sort()
        at, loose = start, 0
        for first, filled, end, kind in [*regions, (self.usable, self.usable, self.usable, "")]:
            if first < at:
                self.bad(f"cells and free blocks from {start} on that do not overlap", f"one at {first}", page)
            loose += first - at
            for a, b, what in ((at, first, "fragment"), (filled, end, kind)):
                if a < b <= self.usable and (nonzero := b - a - content.count(0, a, b)):
                    self.found.append(Residue(page, a, b - a, nonzero, what))
            at = end
        if at > self.usable:
            self.bad("cells and free blocks inside the page", "one that runs over its end", page)
        if loose != fragments:
            self.bad(f"{fragments} bytes in fragments, as the page says", f"{loose}", page)

    def gap(self, page: int, content: bytes, start: int, end: int) -> None:
        nonzero = end - start - content.count(0, start, end)
        strict = self.strict or self.size > DISTINCT
        if nonzero and (strict or not only_offsets(content, start, end, self.usable)):
            self.found.append(Residue(page, start, end - start, nonzero, "gap"))
