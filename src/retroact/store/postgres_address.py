"""The URL of a store in PostgreSQL."""

from __future__ import annotations

import re
from typing import Any

from ..errors import InputError


def read(url: str) -> tuple[str, str, dict[str, Any]]:
    """The URL without its password, the schema, and the connection parameters. Errors quote no part of a URL that they
    do not understand, since it may be a password.

    >>> read("postgresql://ann:secret@db.example/shop#orders")[:2]
    ('postgresql://ann@db.example/shop#orders', 'orders')
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    wrong = InputError("expected postgresql://user:password@host/database#schema, with %40 for @ and %2F for / in them")
    base, _, schema = url.rpartition("#") if "#" in url else (url, "", "")
    scheme, _, rest = base.partition("://")
    names, at, others = rest.partition("@")
    if scheme not in ("postgresql", "postgres") or "@" in others or (at and "/" in names):
        raise wrong
    try:
        parameters = conninfo_to_dict(base)
    except ProgrammingError:
        raise wrong from None
    user, host, port, name = (str(parameters.get(part) or "") for part in ("user", "host", "port", "dbname"))
    if not re.fullmatch(r"[0-9,]*", port):
        raise wrong
    schema = schema or "retroact"
    if not re.fullmatch(r"[A-Za-z0-9_]{1,63}", schema):
        raise InputError("expected the name of a schema after #: at most 63 letters, digits and underscores")
    if schema == "information_schema" or schema.startswith("pg_"):
        raise InputError(f"expected a schema for this stream, got {schema}, which is the system's own")
    place = f"{user}@" * bool(user) + ("" if host.startswith("/") else host) + f":{port}" * bool(port)
    socket = f"?host={host}" if host.startswith("/") else ""
    return f"postgresql://{place}/{name}{socket}#{schema}", schema, dict(parameters)
