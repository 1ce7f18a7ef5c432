"""`retroact init`: a specification file from the names and types of the columns of a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from ..errors import InputError
from ..feeds.header import FileHeader, header_of
from ..files import AtomicFile, is_pipe_or_device, os_errors
from ..messages import hint, show
from .console import plural, say
from .draft import draft
from .gaps import gaps_in
from .options import Roles, argument, command, flag, option
from .proposal import Proposal, proposed
from .questions import Questions
from .specification import DEFAULT_FILE

FORMS_OF_TIMES = "2026-12-31 or 2026-12-31T23:59:59Z"


@command
def init(
    file: Annotated[str, argument("CSV, JSON lines, Parquet or Arrow.", "FILE")],
    roles: Roles,
    publish: Annotated[list[str] | None, option("Publish a statistic of this column; repeatable.", "COLUMN")] = None,
    out: Annotated[Path, option("Where to write the specification.", "FILE")] = DEFAULT_FILE,
    overwrite: Annotated[bool, flag("Replace an existing file.")] = False,
    no_questions: Annotated[bool, flag("Leave all choices open, also on a terminal.")] = False,
) -> None:
    """Write a specification for a file: which columns are id, subject and time, and what could be published.

    Only names and types of columns are used. Public choices, such as bounds, categories, the grid of time and the
    budget, are never taken from the data: you are asked for them on a terminal, and otherwise each is left as a gap,
    "FILL IN". `retroact run`, `plan` and `check` list the gaps that are left.

    \b
    Examples:
      retroact init orders.csv
      retroact init orders.parquet --subject customer --publish amount --out orders.toml
    """
    replaceable = overwrite or is_pipe_or_device(out)
    if out.exists() and not replaceable:
        raise InputError("this file exists: expected --overwrite, or another name with --out", source=str(out))
    header = header_of(file)
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not no_questions
    found = _with_options(proposed(header), header, roles.table, publish)
    questions = Questions(input)
    if asks:
        found = questions.proposal(found, header.columns, roles=not header.events)
        questions.choose(found)
    text = draft(found, questions.choices, declared=header.declared, events=header.events)
    _write(text, out, replaceable)
    left = len(gaps_in(text))
    gaps = f"{plural(left, 'gap')} to fill in (search for FILL IN)" if left else "nothing left to fill in"
    own = "" if out == DEFAULT_FILE else f"{out} "
    say(f"{out}: {gaps}. Then: retroact check {own}{file}", err=True)
    timed = found.roles.get("time")
    if timed and header.columns.get(timed) == "text":
        say(f"note: {show(timed)} does not look like {FORMS_OF_TIMES}: a run refuses times in another form", err=True)


def _with_options(
    found: Proposal, header: FileHeader, roles: Mapping[str, object], publish: Sequence[str] | None
) -> Proposal:
    """With the roles and columns that options name."""
    given = {role: own["column"] if isinstance(own, dict) else str(own) for role, own in roles.items()}
    named = [(f"--{role}", column) for role, column in given.items() if column]
    named += [("--publish", column) for column in publish or ()]
    for place, name in named:
        if name not in header.columns:
            listed = ", ".join(map(show, header.columns))
            raise InputError(f"expected one of {listed}, got {show(name)}{hint(name, header.columns)}", place=place)
    if given:
        kept = {role: column for role, column in found.roles.items() if column not in given.values()}
        found = found.with_roles({role: column for role, column in {**kept, **given}.items() if column})
    if publish:
        found = found.publishing(publish, header.columns)
    return found


def _write(text: str, out: Path, replaceable: bool) -> None:
    with os_errors(out, "--out"):
        if is_pipe_or_device(out):
            out.write_text(text)
            return
        with AtomicFile(out) as part:
            part.file.write(text.encode())
            if replaceable:
                part.put()
            elif not part.put_new():
                raise InputError("this file exists: expected --overwrite, or another name with --out", source=str(out))
