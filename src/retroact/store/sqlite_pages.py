"""Parts of a page of an SQLite file: cells, varints, and what may stay behind in a gap."""

from __future__ import annotations

import struct
from typing import NamedTuple

INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = KINDS = 2, 5, 10, 13
INNER = (INDEX_INNER, TABLE_INNER)
TWO, FOUR = struct.Struct(">H"), struct.Struct(">I")


class Cell(NamedTuple):
    start: int
    end: int  # after its last byte
    child: int  # page to the left, or 0
    key: int  # rowid, in table trees
    key_at: int
    payload: int  # bytes of payload altogether, ...
    local: tuple[int, int]  # ... the place of those in the page ...
    overflow: int  # ... and the page where the rest begins, or 0


class PageCells:
    """Reads cells of pages with this many usable bytes."""

    def __init__(self, usable: int) -> None:
        self._usable = usable
        self._least = (usable - 12) * 32 // 255 - 23
        self._most_in_index = (usable - 12) * 64 // 255 - 23

    def read(self, content: bytes, kind: int, start: int) -> Cell:
        at, child, key, key_at = start, 0, 0, 0
        if kind in INNER:
            child = FOUR.unpack_from(content, at)[0]
            at += 4
        if kind == TABLE_INNER:
            key, end = varint(content, at)
            return Cell(start, end, child, key, at, 0, (end, end), 0)
        payload, at = varint(content, at)
        if kind == TABLE_LEAF:
            key_at = at
            key, at = varint(content, at)
        most = self._usable - 35 if kind == TABLE_LEAF else self._most_in_index
        if payload <= most:
            return Cell(start, at + payload, child, key, key_at, payload, (at, at + payload), 0)
        local = self._least + (payload - self._least) % (self._usable - 4)
        if local > most:
            local = self._least
        end = at + local
        return Cell(start, end + 4, child, key, key_at, payload, (at, end), FOUR.unpack_from(content, end)[0])


def root_page(row: bytes) -> int:
    """The root page in a row of sqlite_schema; 0 if it has none."""
    end, at = varint(row, 0)
    types = []
    while at < end:
        kind, at = varint(row, at)
        types.append(kind)
    sizes = [(0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind] if kind < 10 else (kind - 12) // 2 for kind in types]
    begin = end + sum(sizes[:3])
    return types[3] - 8 if types[3] in (8, 9) else int.from_bytes(row[begin : begin + sizes[3]], "big")


def varint(content: bytes, at: int) -> tuple[int, int]:
    """The number at this offset, and the offset after it."""
    value = content[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for place in range(at + 1, at + 8):
        byte = content[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | content[at + 8], at + 9


def only_offsets(content: bytes, start: int, end: int, usable: int) -> bool:
    """Whether a gap holds only stale cell pointers and stale headers of free blocks (see `sqlite_residue`)."""
    at = start
    while at + 2 <= end and at + 2 <= TWO.unpack_from(content, at)[0] <= usable - 4:
        at += 2
    reach = end
    while (first := end - len(content[at:end].lstrip(b"\0"))) < end:
        for place in range(first, max(first - 4, at - 1), -1):
            following, size = struct.unpack_from(">HH", content, place)
            fits = size >= 4 and place + size <= usable and reach >= min(place, end)
            ordered = following == 0 or place + size + 4 <= following <= usable - 4
            alone = place + 4 == end or (place + 4 < end and content[place + 4] == 0)
            if fits and ordered and alone:
                at, reach = place + 4, place + size
                break
        else:
            return False
    return reach >= end
