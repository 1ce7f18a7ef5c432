"""The schema of a stream in PostgreSQL: how it is made, and whether anything in it is another or more than that."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .tables import SIDES, described, differences, statements

WORDS = {"bytes": "bytea", "text": 'text collate "C"', "clustered": "", "line": "convert_from(line, 'UTF8')"}
TABLES = {**described("data"), **described("journal")}
DATA = tuple(described("data"))
"""The tables that are written anew by a purge. The server keeps no samples of their values."""
# As they are: a value is found in the files by its bytes, or is not there.
PLAIN = {("block", "records"), ("inbox", "entry")}

Described = dict[tuple[str, str, str], str]
"""A definition by kind, table and name."""

OBJECTS = """
    with own as (select c.* from pg_class c where c.relnamespace = to_regnamespace(?))
    select case relkind when 'r' then 'table' when 'v' then 'view' else 'relation' end, relname::text, relname::text,
        concat_ws(' ', relkind, relpersistence, relrowsecurity, relforcerowsecurity,
                  case relkind when 'v' then pg_get_viewdef(oid) end)
        from own where relkind not in ('i', 'I')
    union all select 'column', relname, attname, concat_ws(' ',
            format_type(atttypid, atttypmod), attnotnull, attstorage, coalesce(attstattarget::int, -1),
            nullif(attidentity, ''), nullif(attgenerated, ''),
            (select collname from pg_collation where pg_collation.oid = attcollation),
            (select pg_get_expr(adbin, adrelid) from pg_attrdef where (adrelid, adnum) = (own.oid, attnum)))
        from own join pg_attribute on attrelid = own.oid where relkind = 'r' and attnum > 0 and not attisdropped
    union all select 'constraint', relname, conname, pg_get_constraintdef(con.oid)
        from own join pg_constraint con on own.oid in (conrelid, confrelid) where contype <> 'n'
    union all select 'index', own.relname, i.relname, concat_ws(' ', indisprimary, indisvalid)
        from own join pg_index on indrelid = own.oid join pg_class i on i.oid = indexrelid
    union all select 'trigger', relname, tgname, '' from own join pg_trigger on tgrelid = own.oid
    union all select 'rule', relname, rulename, ''
        from own join pg_rewrite on ev_class = own.oid where relkind <> 'v' or rulename <> '_RETURN'
    union all select 'policy', relname, polname, '' from own join pg_policy on polrelid = own.oid
    union all select 'inheritance', relname, inhrelid::regclass::text, ''
        from own join pg_inherits on own.oid in (inhparent, inhrelid)
    union all select 'publication', tablename, pubname, '' from pg_publication_tables where schemaname = ?
    union all select 'statistics', relname, stxname, '' from own join pg_statistic_ext on stxrelid = own.oid
    union all select 'function', '', proname, '' from pg_proc where pronamespace = to_regnamespace(?)
        and not exists (select 1 from pg_depend where objid = pg_proc.oid and deptype = 'e')
    union all select 'operator', '', oprname, '' from pg_operator where oprnamespace = to_regnamespace(?)
        and not exists (select 1 from pg_depend where objid = pg_operator.oid and deptype = 'e')"""


def made() -> list[str]:
    """The statements that make the tables of an empty schema."""
    made = [statement for side in SIDES for statement in statements(side, WORDS)]
    for table, (columns, _) in TABLES.items():
        changes = [f"alter column {column} set storage external" for column in columns if (table, column) in PLAIN]
        changes += [f"alter column {column} set statistics 0" for column in columns if table in DATA]
        if changes:
            made.append(f"alter table {table} {', '.join(changes)}")
    return made


def problems(run: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]], schema: str) -> list[str]:
    quoted = f'"{schema}"'
    rows = run(OBJECTS, [quoted, schema, quoted, quoted])
    return differences({(kind, table, name): _plain(found) for kind, table, name, found in rows}, _expected())


def _expected() -> Described:
    view = "v p f f select round, statistic, convert_from(line, 'utf8'::name) as release from release;"
    made: Described = {("view", "published", "published"): _plain(view)}
    for table, (columns, key) in TABLES.items():
        made["table", table, table] = "rpff"
        made["constraint", table, f"{table}_pkey"] = _plain(f"primary key ({', '.join(key)})")
        made["index", table, f"{table}_pkey"] = "tt"
        for column, kind in columns.items():
            word = kind.removesuffix("?")
            storage = "p" if word == "bigint" else "e" if (table, column) in PLAIN else "x"
            parts = [WORDS.get(word, word).partition(" ")[0], "f" if kind.endswith("?") else "t", storage]
            parts += ["0" if table in DATA else "-1", "c" if word == "text" else ""]
            made["column", table, column] = "".join(parts)
    return made


def _plain(definition: str) -> str:
    """Without what versions of the server write differently."""
    return re.sub(r"release\.|[\s();]", "", definition.lower())
