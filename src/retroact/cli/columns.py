"""`retroact columns`: which columns of a durable stream have a role, and how to change that."""

from __future__ import annotations

from typing import Annotated, Any

from ..errors import InputError
from ..messages import show
from .console import say
from .options import Roles, Secrets, StreamArgument, TestingKey, command, opened, option


@command
def columns(
    stream: StreamArgument,
    roles: Roles,
    secrets: Secrets,
    ignore: Annotated[
        list[str] | None, option("Ignore it; repeatable. '*' for all others, '' for none.", "COLUMN")
    ] = None,
    source: Annotated[str | None, option("Change this source only, such as the path of a file.", "NAME")] = None,
    testing_key: TestingKey = None,
) -> None:
    """Show which columns have which role in a stream, or assign roles to other columns from now on.

    Records already read stay as they are. Whether a stream has subjects cannot change.

    \b
    Examples:
      retroact columns orders
      retroact columns orders --subject buyer --ignore note --source new.csv
    """
    table: dict[str, Any] = dict(roles.table)
    if ignore:
        table["ignore"] = True if ignore == ["*"] else [column for column in ignore if column]
    if source is not None and not table:
        raise InputError("expected a role for a column of this source", place="--source")
    with opened(stream, secrets, testing_key) as open_stream:
        if table:
            open_stream.change_columns(table, source=source)
        spec = open_stream.specification
        for role, own in spec.columns.items():
            say(f"{role}: {own.column}{' (optional)' if own.optional else ''}")
        say(f"others: {_others(spec.columns.ignore)}")
        if spec.columns.na_values:
            say(f"missing in CSV: {', '.join(map(show, spec.columns.na_values))}")
        for name in spec.sources:
            own_columns = spec.columns_of(name)
            parts = [f"{role} {own.column}" for role, own in own_columns.items()]
            say(f"{name}: {', '.join([*parts, f'others {_others(own_columns.ignore)}'])}")


def _others(ignore: bool | tuple[str, ...]) -> str:
    if isinstance(ignore, bool):
        return "ignored" if ignore else "refused"
    return f"refused, except {', '.join(ignore)}"
