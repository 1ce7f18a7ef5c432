"""What PostgreSQL keeps of the data: tables and indexes, and bytes of their pages that belong to no row."""

from __future__ import annotations

import struct

from .postgres_schema import DATA

RELATIONS = f"""
    with held as (select c.oid, c.relname, c.reltoastrelid from pg_class c
                  where c.oid in ({", ".join(f"to_regclass('{table}')" for table in DATA)})),
         heap as (select oid, relname::text as name from held
                  union all select reltoastrelid, 'TOAST of ' || relname from held where reltoastrelid <> 0)
    select oid::bigint, name from heap
    union all select indexrelid::bigint, 'index of ' || name from heap join pg_index on indrelid = heap.oid
    order by 2"""


def unaccounted(page: bytes) -> int:
    """How many bytes of a page are not zero although they belong to no row: the gap, and what is between rows."""
    lower, upper, special = struct.unpack_from("<HHH", page, 12)
    if not lower:
        return len(page) - page.count(0)
    # a new index page moves its pointers by one place, and leaves the last of them behind
    moved = 4 if page[lower : lower + 4] == page[lower - 4 : lower] else 0
    found = upper - lower - moved - page.count(0, lower + moved, upper)
    if upper == special:
        return int(found)
    rows = []
    for (item,) in struct.iter_unpack("<I", page[24:lower]):
        if item >> 15 & 3 == 1:
            start = item & 0x7FFF
            rows.append((start, start + (item >> 17)))
    at = upper
    for start, end in [*sorted(rows), (special, special)]:
        found += max(0, start - at - page.count(0, at, start))
        at = end
    return int(found)
