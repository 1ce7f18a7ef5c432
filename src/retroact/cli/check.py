"""`retroact check`: what a run would refuse or leave out, without running."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from ..errors import InputError, RetroactError, Unit
from ..feeds.options import Options
from ..feeds.play import open_feed
from ..feeds.refusals import Refusal, Refusals
from ..feeds.source import STDIN
from ..feeds.totals import Totals
from ..messages import plural
from ..stream import HorizonWarning, Specification, Stream
from ..stream.rehearsal import Rehearsal
from .console import Console, console_for, message, say
from .options import Roles, argument, command
from .progress import Progress
from .run import Cutting, new_stream, require_texts
from .specification import SpecOptions
from .table import Kind, table

EXACT = (
    "Exact counts, for the operator alone. Do not publish them, and do not set bounds, categories or times from them: "
    "those are public choices, and one record must not decide them."
)

NEEDS_STORE = "later records of erased subjects are rejected, which takes a store: a run needs --store"


@command
def check(
    first: Annotated[
        str | None, argument("A specification, if it is not retroact.toml or given by options.", "SPEC")
    ] = None,
    second: Annotated[str | None, argument("The file to check: CSV, JSON lines, Parquet or Arrow.", "FILE")] = None,
    *,
    asked: SpecOptions,
    roles: Roles,
    cutting: Cutting,
) -> None:
    """Read a file as a run would, and list what a run would refuse or leave out: bad and missing values, unknown
    columns and categories, times off the grid, ids that come twice, records without a subject, broken rows.

    Nothing is published, and no budget is spent: no key is made, and no store is touched. The counts are exact, so
    they are for the operator alone. The exit code is 2 if a run would refuse the file.

    \b
    Examples:
      retroact check orders.csv
      retroact check orders.toml orders.csv
      retroact check orders.csv --count --sum amount:0..500 --subject customer --epsilon 1
    """
    file = first if second is None else second
    if file is None or (second is None and Path(file).suffix == ".toml"):
        got = "none" if file is None else f"a specification alone, {file}"
        raise InputError(
            f"expected a file to check, got {got}", hint="retroact check FILE, or retroact check SPEC FILE"
        )
    if first is not None and second is not None:
        if asked.spec is not None:
            raise InputError("expected one specification, got SPEC and --spec", place="--spec")
        asked = replace(asked, spec=Path(first))
    source = cutting.source or (None if file == STDIN else file)
    if asked.unread is not None:
        say(asked.unread, err=True)
    spec, options = new_stream(asked, roles, cutting, source)
    show_findings(checked(file, spec, options, roles), console_for("stdout"))


@dataclass(frozen=True)
class InputProblems:
    """What a run would do with a file."""

    source: str
    refused: list[Refusal]
    stopped: RetroactError | None
    """The error at which a run would stop for good, so that nothing after it was checked."""
    others: list[tuple[str, str, str]]
    """What would be left out or replaced: where, how many, and what."""


def checked(source: str, spec: Specification, options: Options, roles: Roles, *, shown: bool = True) -> InputProblems:
    """Read everything as a run does; nothing is published."""
    refusals, totals = Refusals(), Totals()
    stopped: RetroactError | None = None
    others: list[tuple[str, str, str]] = []
    unit: Unit = "line"
    try:
        with open_feed(source, spec.schema, replace(options, refusals=refusals)) as feed, warnings.catch_warnings():
            warnings.simplefilter("ignore", HorizonWarning)
            unit = feed.reader.unit
            require_texts(roles, feed)
            feed.look()
            stream = Rehearsal(spec)
            with Progress(console_for("stderr"), feed.source.size, shown=shown) as progress:
                feed.play(stream, after=lambda: progress.update(*feed.source.progress()), totals=totals)
            accepted = [feed.delivery.held.again, *feed.delivery.moved.found] if feed.delivery else []
            others += [
                (kind.place, f"{kind.count:,}", f"{kind.what} ({_rows(kind, unit)})") for kind in accepted if kind.count
            ]
            if spec.after_erasure == "reject":
                others.append(("after_erasure", "", NEEDS_STORE))
            others += _left_out(stream)
    except RetroactError as error:
        stopped = error
    return InputProblems(source, refusals.kinds, stopped, [*others, *_skipped(totals)])


def show_findings(found: InputProblems, console: Console) -> None:
    """Print what was found; raises if a run would refuse the file."""
    message(console, EXACT)
    if found.refused:
        message(console, "A run refuses:")
        rows = [
            (kind.place or kind.unit, f"{kind.count:,}", _rows(kind, kind.unit), kind.what) for kind in found.refused
        ]
        _table(console, {"where": "left", "how many": "right", "first": "left", "what": "fold"}, rows)
        _hints(console, [kind.hint for kind in found.refused])
    if found.stopped is not None:
        message(console, f"A run stops here, and nothing after it was checked: {found.stopped}")
        _hints(console, [getattr(found.stopped, "hint", None)])
    if found.others:
        message(console, "A run accepts these, but leaves something out or replaces it:")
        _table(console, {"where": "left", "how many": "right", "what": "fold"}, found.others)
    if found.refused or found.stopped:
        count = sum(kind.count for kind in found.refused)
        what = f"a run would refuse this file ({plural(count, 'fault')} in it)" if count else "a run would refuse this"
        raise InputError(what, source=found.source)
    message(console, f"{found.source}: a run would accept this file")


def _table(console: Console, columns: Mapping[str, Kind], rows: Iterable[Iterable[str]]) -> None:
    console.lines(table(columns, rows, width=console.width))


def _hints(console: Console, hints: Iterable[str | None]) -> None:
    for advice in dict.fromkeys(hints):
        if advice:
            message(console, f"hint: {advice}")


def _rows(kind: Refusal, unit: Unit) -> str:
    more = ", …" if kind.count > len(kind.first) else ""
    return (
        f"{unit}{'s' * (len(kind.first) > 1)} {', '.join(f'{row}' for row in kind.first)}{more}" if kind.first else ""
    )


def _left_out(stream: Stream) -> list[tuple[str, str, str]]:
    missing = "surviving records without a value that it needs: it leaves them out"
    return [(name, f"{count:,}", missing) for name, count in stream.left_out().items() if count]


def _skipped(totals: Totals) -> list[tuple[str, str, str]]:
    first = {"late": totals.first_late, "absorbed": totals.first_absorbed}
    found = {
        "deletions": (totals.ignored_deletions, "name nothing that is there, and do nothing"),
        "additions": (totals.ignored_additions, "are for future rounds, and do nothing"),
        "late": (totals.late, f"additions of closed rounds are left out (first: {first['late']})"),
        "subject": (totals.rejected, "records of erased subjects are left out"),
        "positions": (totals.absorbed, f"events came before, and count once (first: {first['absorbed']})"),
        "erasures": (totals.missed.count, "find no record; a run ends with exit code 5 unless --allow-missing"),
        **{what: (count, "are skipped") for what, count in totals.skipped.items()},
    }
    rows = [(where, f"{count:,}", what) for where, (count, what) in found.items() if count]
    if totals.left_open:
        rows.append(("last round", "", "what comes after the last closed round is not published"))
    return rows
