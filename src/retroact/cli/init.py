"""`retroact init`: a specification file from the names and types of the columns of a file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from ..errors import InputError
from ..feeds.header import FileHeader, Kind, header_of
from ..files import AtomicFile, is_pipe_or_device, os_errors
from ..messages import hint, plural, show
from ..store.targets import check_targets, identity, kind_of
from .console import say
from .draft import KEYS, draft
from .gaps import gaps_in
from .options import Roles, argument, command, flag, option
from .proposal import Proposal, proposed
from .questions import Questions
from .specification import DEFAULT_FILE

NUMBERS = "1234.5"
FORMS_OF_TIMES = "2026-12-31 or 2026-12-31T23:59:59Z"


@command
def init(
    file: Annotated[str, argument("CSV, JSON lines, Parquet or Arrow.", "FILE")],
    roles: Roles,
    publish: Annotated[list[str] | None, option("Publish a statistic of this column; repeatable.", "COLUMN")] = None,
    out: Annotated[Path, option("Where to write the specification.", "FILE")] = DEFAULT_FILE,
    overwrite: Annotated[bool, flag("Replace an existing file.")] = False,
    named: Annotated[
        bool, flag("The first line has names, though they look like values, such as years.", "--header")
    ] = False,
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
    if overwrite and kind_of(out) != "a specification":
        check_targets([("--out", out)], used={"file that is described": Path(file)})
    elif identity(out) == identity(Path(file)):
        raise InputError("expected another file than the one that is described", place="--out", source=str(out))
    replaceable = overwrite or is_pipe_or_device(out)
    if out.exists() and not replaceable:
        raise InputError("this file exists: expected --overwrite, or another name with --out", source=str(out))
    header = header_of(file, named=named)
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
    own = [] if out == DEFAULT_FILE else [str(out)]
    say(f"{out}: {gaps}. Then: {shlex.join(['retroact', 'check', *own, file])}", err=True)
    for name in [name for name, kind in header.columns.items() if _is_odd(name, kind, found, header)]:
        kind, form = ("numbers", NUMBERS) if header.columns[name] == "number" else ("times", FORMS_OF_TIMES)
        say(f"note: {show(name)} does not look like {form}: a run refuses {kind} in another form", err=True)


def _is_odd(name: str, kind: Kind, found: Proposal, header: FileHeader) -> bool:
    """Whether a column that is used has values in a form that a run refuses."""
    if found.roles.get("time") == name:
        return kind == "text" or name in header.odd
    return name in header.odd and name in found.fields


def _with_options(
    found: Proposal, header: FileHeader, roles: Mapping[str, object], publish: Sequence[str] | None
) -> Proposal:
    """Add the roles and columns that options name."""
    given = {role: own["column"] if isinstance(own, dict) else str(own) for role, own in roles.items()}
    named = [(f"--{role}", column) for role, column in given.items() if column]
    named += [("--publish", column) for column in publish or ()]
    for place, name in named:
        if name not in header.columns:
            listed = ", ".join(map(show, header.columns))
            raise InputError(f"expected one of {listed}, got {show(name)}{hint(name, header.columns)}", place=place)
        if place == "--publish" and header.columns[name] not in KEYS:
            raise InputError(
                f"expected a column of numbers, texts, dates or vectors, got other values in {show(name)}", place=place
            )
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
