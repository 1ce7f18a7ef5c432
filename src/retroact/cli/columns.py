"""`retroact columns`: which columns have a role in a stream that lasts, and how that changes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from retroact.cli.lasting import FenceOption, KeyFileOption, StoreArgument, opened
from retroact.errors import InputError


def _role(name: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar="COLUMN", help=f"{what}; '' for none.")


def columns(
    stream: StoreArgument,
    id: Annotated[str | None, _role("id", "The id of a record")] = None,
    subject: Annotated[str | None, _role("subject", "Whom a record belongs to")] = None,
    time: Annotated[str | None, _role("time", "When it happened")] = None,
    op: Annotated[str | None, _role("op", "What is done with it")] = None,
    position: Annotated[str | None, _role("position", "Where it stands in its source")] = None,
    stamp: Annotated[str | None, _role("stamp", "The round it counts from")] = None,
    round: Annotated[str | None, _role("round", "Its round")] = None,
    optional: Annotated[
        list[str] | None, typer.Option("--optional", metavar="ROLE", help="Records may lack it; repeatable.")
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="COLUMN", help="Passed over; repeatable; '*' for all others, '' for none."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="For this source alone, such as the path of a file.")
    ] = None,
    key_file: KeyFileOption = None,
    fence: FenceOption = None,
) -> None:
    """Show which columns have which role in a stream, or give roles to other columns from now on.

    What came in stays as it is. Whether a stream has subjects cannot change.

    Examples:

    retroact columns orders

    retroact columns orders --subject buyer --ignore note --source new.csv
    """
    from retroact.cli.declaring import Said

    given = {"id": id, "subject": subject, "time": time, "op": op, "position": position, "stamp": stamp, "round": round}
    table: dict[str, Any] = dict(Said.of(given, optional or [], {}).roles)
    if ignore is not None:
        table["ignore"] = True if ignore == ["*"] else [column for column in ignore if column]
    if source is not None and not table:
        raise InputError("expected a role for a column of this source", place="--source")
    with opened(stream, key_file, fence) as open_stream:
        if table:
            open_stream.change_columns(table, source=source)
        spec = open_stream.specification
        for role, own in spec.columns.items():
            typer.echo(f"{role}: {own.column}{' (optional)' if own.optional else ''}")
        typer.echo(f"others: {_others(spec.columns.ignore)}")
        for name in spec.sources:
            own_columns = spec.columns_of(name)
            parts = [f"{role} {own.column}" for role, own in own_columns.items()]
            typer.echo(f"{name}: {', '.join([*parts, f'others {_others(own_columns.ignore)}'])}")


def _others(ignore: bool | tuple[str, ...]) -> str:
    if isinstance(ignore, bool):
        return "ignored" if ignore else "refused"
    return f"refused, but for {', '.join(ignore)}"


def register(app: typer.Typer) -> None:
    app.command(short_help="Which columns of the sources of a stream have which role.")(columns)
