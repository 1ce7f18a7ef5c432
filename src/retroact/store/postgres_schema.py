"""The schema of a stream in PostgreSQL: how it is made, what differs from that, and bytes in pages outside rows."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from .tables import SIDES, described, differences, statements

WORDS = {"bytes": "bytea", "text": 'text collate "C"', "clustered": "", "line": "convert_from(line, 'UTF8')"}
TABLES = {**described("data"), **described("journal")}
FORMAT = 5
PARTS = tuple(f"block_{number:02}" for number in range(64))
"""The parts of the table of blocks. A purge rewrites those that lost a row, so its cost does not follow the store."""
SMALL = tuple(table for table in described("data") if table != "block")
"""The other tables that hold data."""
# Not compressed, so that a value in the files can be found by its bytes.
PLAIN = {("block", "records"), ("inbox", "entry")}

Described = dict[tuple[str, str, str], str]
"""A definition by kind, table and name."""
RELATIONS = f"""
    with held as (select c.oid, c.relname, c.reltoastrelid from pg_class c
                  where c.oid in (select inhrelid from pg_inherits where inhparent = to_regclass('block'))
                  or c.oid in ({", ".join(f"to_regclass('{table}')" for table in SMALL)})),
         heap as (select oid, relname::text as name from held
                  union all select reltoastrelid, 'TOAST of ' || relname from held where reltoastrelid <> 0)
    select oid::bigint, name from heap
    union all select indexrelid::bigint, 'index of ' || name from heap join pg_index on indrelid = heap.oid
    order by 2"""

OBJECTS = """
    with own as (select c.* from pg_class c where c.relnamespace = to_regnamespace(?))
    select case relkind when 'r' then 'table' when 'p' then 'table' when 'v' then 'view' else 'relation' end,
        relname::text, relname::text, concat_ws(' ', relkind, relpersistence, relrowsecurity, relforcerowsecurity,
                  case relkind when 'v' then pg_get_viewdef(oid) when 'p' then pg_get_partkeydef(oid) end)
        from own where relkind not in ('i', 'I')
    union all select 'column', relname, attname, concat_ws(' ',
            format_type(atttypid, atttypmod), attnotnull, attstorage, coalesce(attstattarget::int, -1),
            nullif(attidentity, ''), nullif(attgenerated, ''),
            (select collname from pg_collation where pg_collation.oid = attcollation),
            (select pg_get_expr(adbin, adrelid) from pg_attrdef where (adrelid, adnum) = (own.oid, attnum)))
        from own join pg_attribute on attrelid = own.oid where relkind in ('r', 'p') and attnum > 0 and not attisdropped
    union all select 'constraint', relname, conname, pg_get_constraintdef(con.oid)
        from own join pg_constraint con on own.oid in (conrelid, confrelid) where contype <> 'n'
    union all select 'index', own.relname, i.relname, concat_ws(' ', indisprimary, indisvalid)
        from own join pg_index on indrelid = own.oid join pg_class i on i.oid = indexrelid
    union all select 'trigger', relname, tgname, '' from own join pg_trigger on tgrelid = own.oid
    union all select 'rule', relname, rulename, ''
        from own join pg_rewrite on ev_class = own.oid where relkind <> 'v' or rulename <> '_RETURN'
    union all select 'policy', relname, polname, '' from own join pg_policy on polrelid = own.oid
    union all select 'inheritance', own.relname, part.relname, coalesce(pg_get_expr(part.relpartbound, part.oid), '')
        from own join pg_inherits on own.oid in (inhparent, inhrelid) join pg_class part on part.oid = inhrelid
    union all select 'publication', tablename, pubname, '' from pg_publication_tables where schemaname = ?
    union all select 'statistics', relname, stxname, '' from own join pg_statistic_ext on stxrelid = own.oid
    union all select 'function', '', proname, '' from pg_proc where pronamespace = to_regnamespace(?)
        and not exists (select 1 from pg_depend where objid = pg_proc.oid and deptype = 'e')
    union all select 'operator', '', oprname, '' from pg_operator where oprnamespace = to_regnamespace(?)
        and not exists (select 1 from pg_depend where objid = pg_operator.oid and deptype = 'e')"""


def made() -> list[str]:
    """SQL that makes the tables in an empty schema."""
    whole = [statement for side in SIDES for statement in statements(side, WORDS)]
    made = [
        f"{each} partition by hash (stamp, mark)" if each.startswith("create table block(") else each for each in whole
    ]
    return [*made, *(change for table in described("data") for change in _settings(table, table)), *_parts()]


def divided() -> list[str]:
    """SQL that divides the table of blocks, which was one table in earlier formats."""
    old = "alter table block rename to whole; alter index block_pkey rename to whole_pkey"
    new = [statement for statement in made() if re.match(r"(create|alter) table block[_( ]", statement)]
    return [*old.split("; "), *new, "insert into block select * from whole", "drop table whole"]


def _parts() -> list[str]:
    made = []
    for number, part in enumerate(PARTS):
        values = f"with (modulus {len(PARTS)}, remainder {number})"
        made += [f"create table {part} partition of block for values {values}", *_settings("block", part)]
    return made


def _settings(table: str, name: str) -> list[str]:
    columns = TABLES[table][0]
    changes = [f"alter column {column} set storage external" for column in columns if (table, column) in PLAIN]
    changes += [f"alter column {column} set statistics 0" for column in columns]
    return [f"alter table {name} {', '.join(changes)}"]


def problems(run: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]], schema: str, format: int) -> list[str]:
    quoted = f'"{schema}"'
    rows = run(OBJECTS, [quoted, schema, quoted, quoted])
    return differences({(kind, table, name): _plain(found) for kind, table, name, found in rows}, _expected(format))


def _expected(format: int) -> Described:
    view = "v p f f select round, statistic, convert_from(line, 'utf8'::name) as release from release;"
    made: Described = {("view", "published", "published"): _plain(view)}
    tables = {**described("data", format), **described("journal", format)}
    if format == FORMAT:
        tables |= dict.fromkeys(PARTS, tables["block"])
        for number, part in enumerate(PARTS):
            bound = _plain(f"for values with (modulus {len(PARTS)}, remainder {number})")
            for name, end, own in ((part, "", bound), (f"{part}_pkey", "_pkey", "")):
                made["inheritance", f"block{end}", name] = made["inheritance", name, name] = own
    for table, (columns, key) in tables.items():
        made["table", table, table] = "rpff"
        data = table in described("data") or table in PARTS
        made["constraint", table, f"{table}_pkey"] = _plain(f"primary key ({', '.join(key)})")
        made["index", table, f"{table}_pkey"] = "tt"
        for column, kind in columns.items():
            word = kind.removesuffix("?")
            plain = (table, column) in PLAIN or (table in PARTS and column == "records")
            storage = "p" if word == "bigint" else "e" if plain else "x"
            parts = [WORDS.get(word, word).partition(" ")[0], "f" if kind.endswith("?") else "t", storage]
            parts += ["0" if data else "-1", "c" if word == "text" else ""]
            made["column", table, column] = "".join(parts)
    if format == FORMAT:
        made["table", "block", "block"] = "ppff" + _plain("hash (stamp, mark)")
    return made


def _plain(definition: str) -> str:
    """Remove differences between versions of the server."""
    return re.sub(r"release\.|[\s();]", "", definition.lower())


def unaccounted(page: bytes) -> int:
    """How many bytes that belong to no row are not zero: in the gap of a page, and between its rows."""
    lower, upper, special = struct.unpack_from("<HHH", page, 12)
    if not lower:
        return len(page) - page.count(0)
    # a new index page moves its pointers by one place, and leaves a copy of the last one
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
