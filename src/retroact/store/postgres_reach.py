"""What is left of deleted data where no purge of a stream reaches it, as far as a PostgreSQL server says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def out_of_reach(run: Callable[[str], list[tuple[Any, ...]]]) -> list[str]:
    names = ("max_wal_size", "wal_keep_size", "archive_mode", "log_statement", "log_min_duration_statement")
    (size, kept, archive, statements, slow), *_ = run(
        f"select {', '.join(f'current_setting({name!r})' for name in names)}"
    )
    (replicas, slots), *_ = run(
        "select (select count(*) from pg_stat_replication), (select count(*) from pg_replication_slots)"
    )
    beyond = [
        "the write-ahead log (pg_wal): segments written before the purge, until the server has overwritten or "
        f"removed them (max_wal_size {size}, wal_keep_size {kept})",
        "base backups, files of pg_dump and archives of the write-ahead log made before the purge",
    ]
    if archive != "off":
        beyond.append(f"this server archives its write-ahead log (archive_mode {archive})")
    if replicas or slots:
        beyond.append(f"replicas: {replicas} connected now, {slots} replication slots")
    if statements in ("all", "mod") or slow != "-1":
        beyond.append(
            f"the log of the server, which may hold what was received (log_statement {statements}, "
            f"log_min_duration_statement {slow})"
        )
    beyond += [
        "blocks of the file system that held earlier versions of these files (an encrypted volume covers them)",
        "the source that the records came from, and where releases went",
        "memory of running processes, that of the server among them",
    ]
    return beyond
