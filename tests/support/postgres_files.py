"""The files in which PostgreSQL keeps a store."""

from pathlib import Path


def files(store, admin):
    """The files of the tables of a schema, of their TOAST tables and of their indexes, with all that is in memory."""
    admin.execute("checkpoint")
    rows = admin.execute(
        "with own as (select oid, reltoastrelid from pg_class where relnamespace = %s::regnamespace), "
        "heap as (select oid from own union select reltoastrelid from own where reltoastrelid <> 0) "
        "select pg_relation_filepath(oid) from heap union select pg_relation_filepath(indexrelid) from pg_index "
        "join heap on indrelid = oid",
        [store.schema],
    ).fetchall()
    folder = Path(admin.execute("show data_directory").fetchone()[0])
    found = [path for (name,) in rows if name for path in (folder / name).parent.glob(f"{Path(name).name}*")]
    assert len(found) > 12
    return found
