"""Commands on a stream that lasts: erase, verify, export."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retroact.cli.console import say
from retroact.cli.earlier import EarlierOption, EarlierReceipts
from retroact.cli.not_found import ALLOW, NotFoundError
from retroact.cli.options import AllowMissingOption
from retroact.cli.output import OutputFormat
from retroact.cli.places import check_sources, put
from retroact.cli.places import opened as places
from retroact.cli.restoring import AfterOption, AskedOption, RestoredOption, Restoring, warn
from retroact.errors import InputError, RetroactError, VerificationError
from retroact.store.targets import check_targets

if TYPE_CHECKING:
    from retroact.store.receipt import Receipt
    from retroact.stream import Durable
    from retroact.stream.erasure import Outcome, Requested

StoreArgument = Annotated[
    str, typer.Argument(metavar="STREAM", help="The folder of a stream, or postgresql://...#name.")
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option("--key-file", metavar="FILE", help="The secret; beside the stream, or RETROACT_KEY, if absent."),
]
FenceOption = Annotated[
    Path | None, typer.Option("--fence", metavar="FILE", help="The fence; beside the key if absent.")
]


@contextmanager
def opened(
    where: str, key_file: Path | None, fence: Path | None, restoring: Restoring | None = None
) -> Iterator[Durable]:
    from retroact.stream import Stream

    said = {} if restoring is None else restoring.given
    with Stream.open(where, key_file=key_file, fence=fence, **said) as stream:
        yield stream


def erase(
    stream: StoreArgument,
    subject: Annotated[list[str] | None, typer.Option("--subject", help="Whose records; may be repeated.")] = None,
    sha256: Annotated[
        list[str] | None, typer.Option("--sha256", metavar="HEX", help="The same by the SHA-256 of the subject.")
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option("--from", metavar="CSV", help="Columns subject or sha256, and request if there is one."),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option("--request", metavar="NAME", help="Idempotency key: nothing is done twice."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be found, and change nothing.")] = False,
    close: Annotated[
        bool, typer.Option("--close", help="Also close the open round now, if a request waits for it.")
    ] = False,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="Write the signed receipt; a folder for --from."),
    ] = None,
    earlier: EarlierOption = None,
    allow_missing: AllowMissingOption = False,
    status: Annotated[bool, typer.Option("--status", help="List all requests and how far they are.")] = False,
    key_file: KeyFileOption = None,
    fence: FenceOption = None,
    restored: RestoredOption = False,
    after: AfterOption = None,
    erasures_asked: AskedOption = False,
) -> None:
    """Erase all records of a subject: received, applied when the round closes, purged.

    Asked again under the same --request, the command tells how far it is and what it found, and writes the receipt
    anew.

    A subject of which no record is found is entered all the same, but a typo looks like that: the exit code is 5, and
    no receipt is written, unless --allow-missing is given.

    After the last round, nothing waits: the erasure is applied at once, and nothing is published after it. A stream
    that goes on from another one says where that is: it holds records of its own.

    What is printed here is exact: it is for whoever runs the stream.

    Examples:

    retroact erase orders --subject u17 --request ticket-881 --dry-run

    retroact erase orders --subject u17 --request ticket-881 --close --receipt receipt.json
    """
    asked = _asked(subject or [], sha256 or [], requests, request)
    if not asked and not status:
        raise InputError("expected --subject, --sha256, --from or --status", place="erase")
    if receipt is not None and requests is not None and not receipt.is_dir():
        raise InputError(f"{receipt}: expected a folder for the receipts of several requests", place="--receipt")
    restoring = Restoring(restored, after, erasures_asked)
    restoring.check(dry_run=dry_run)
    before = EarlierReceipts(earlier)
    used = {"file of requests": requests, **before.used}
    check_targets([("--receipt", receipt)], used=used, store=stream, key_file=key_file, fence=fence, folders=True)
    with opened(stream, key_file, fence, restoring) as open_stream:
        if close and open_stream.specification.rounds.grid is not None:
            raise InputError(
                "expected no --close on a grid: its rounds end when their time is over, and an erasure must not move "
                "that. The request is applied when the round closes",
                place="--close",
            )
        # all of them are looked at before the first is taken
        looked = [each.erase(open_stream, dry_run=True) for each in asked]
        before.check(looked)
        files = [("--receipt", _receipt_file(receipt, each)) for each in looked]
        check_targets(files, used=used, store=stream, key_file=key_file, fence=fence)
        check_sources(files, open_stream)
        erasures = [each.erase(open_stream, dry_run=dry_run) for each in asked]
        if close and not dry_run and any(erasure.state == "received" for erasure in erasures):
            with _told(erasures, open_stream):
                open_stream.close_round()
        missed = 0
        for erasure in erasures:
            _tell(erasure, open_stream.round)
            before.tell(erasure)
            missed += sum(not outcome.found for outcome in erasure.outcomes)
            if not dry_run and (erasure.found or allow_missing):
                with places((_receipt_file(receipt, erasure), "--receipt")) as outputs:
                    put(outputs, [erasure.receipt(before.of(erasure)) for _ in outputs])
        if status:
            for known in open_stream.requests():
                line = f"{known.content.hex()[:16]} {known.state}, received {known.received}"
                when = "after the last round" if known.round is None else f"in round {known.round}"
                line += "" if known.applied is None else f", applied {when}"
                say(line if known.purged is None else f"{line}, purged {known.purged}")
        warn(open_stream)
    if missed and not allow_missing:
        many = f"{missed:,} subjects" if missed > 1 else "a subject"
        unwritten = "" if receipt is None or dry_run else ", and no receipt was written for that request"
        raise NotFoundError(f"no record was found of {many}{unwritten}. {ALLOW}")


@contextmanager
def _told(erasures: Sequence[Requested], stream: Durable) -> Iterator[None]:
    """What was entered is told, also when the round is not closed."""
    try:
        yield
    except RetroactError:
        for erasure in erasures:
            _tell(erasure, stream.round)
        raise


def _receipt_file(receipt: Path | None, erasure: Requested) -> Path | None:
    if receipt is not None and receipt.is_dir():
        return receipt / f"{erasure.now.content.hex()}.json"
    return receipt


def _tell(erasure: Requested, open_round: int) -> None:
    now = erasure.now
    if now.state == "received":
        found = missed = f"received; applied when round {open_round} closes"
    elif now.state == "dry run":
        found = missed = "dry run"
    elif now.round is None:
        found, missed = f"{now.state}; nothing is published after it", "applied; nothing is published after it"
    else:
        found = f"{now.state}; answers are as if never there from round {now.round} on"
        missed = f"applied in round {now.round}"
    applied = "it was applied" if now.round is None else f"round {now.round} closed"
    when = applied if now.applied is not None else "it was asked for"
    for outcome in erasure.outcomes:
        entered = "" if now.state == "dry run" else "entered all the same: "
        say(f"{_found(outcome, when)}; {found if outcome.found else entered + missed} ({erasure.name})")


def _found(outcome: Outcome, when: str) -> str:
    """In words; what was found before is known without counts."""
    who = outcome.identifier
    if not outcome.found:
        return f"no record was found of {who}" + (f" when {when}" if outcome.surviving is None else "")
    if outcome.surviving is None:
        return f"{who}: records were found when {when}"
    surviving, waiting = outcome.surviving, outcome.waiting
    many = f"{surviving:,} surviving record{'s' * (surviving != 1)}" if surviving else "no surviving record"
    return f"{who}: {many}" + (f" and {waiting:,} in the open round" if waiting else "")


@dataclass
class Asked:
    """One request."""

    request: str | None
    subjects: list[str]
    digests: list[bytes]

    def erase(self, stream: Durable, *, dry_run: bool) -> Requested:
        return stream.erase(
            subject=self.subjects or None, sha256=self.digests or None, request=self.request, dry_run=dry_run
        )


def _asked(subjects: Sequence[str], digests: Sequence[str], file: Path | None, request: str | None) -> list[Asked]:
    if file is not None:
        if subjects or digests or request:
            raise InputError("expected either --from or single subjects", place="--from")
        return _from_file(file)
    if not subjects and not digests:
        return []
    return [Asked(request, list(subjects), [_digest(text, "--sha256") for text in digests])]


def _from_file(path: Path) -> list[Asked]:
    """All of it is read before any of it is done."""
    from retroact.feeds.source import read_text

    rows = csv.DictReader(StringIO(read_text(path), newline=""), strict=True)
    found: dict[Any, Asked] = {}
    try:
        names = rows.fieldnames or []
        known = ("subject", "sha256", "request")
        if not {"subject", "sha256"} & {*names} or {*names} - {*known}:
            raise InputError(f"expected columns subject or sha256, and request, got {', '.join(names)}")
        for row in rows:
            subject, digest = row.get("subject") or "", row.get("sha256") or ""
            if None in row or None in row.values() or bool(subject) == bool(digest):
                raise InputError("expected a subject or a sha256")
            name = row.get("request") or None
            own = found.setdefault(name or object(), Asked(name, [], []))
            if subject:
                own.subjects.append(subject)
            else:
                own.digests.append(_digest(digest, "sha256"))
    except InputError as error:
        raise error.found_in(str(path), row=max(1, rows.line_num), unit="line") from None
    except csv.Error as error:
        line = rows.reader.line_num
        raise InputError(f"expected CSV, got {error}", source=str(path), row=line, unit="line") from None
    if not found:
        raise InputError("no requests in it", source=str(path))
    return list(found.values())


def _digest(text: str, place: str) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise InputError(f"expected 64 hexadecimal digits, got {text!r}", place=place)
    return digest


def verify(
    target: Annotated[str, typer.Argument(metavar="STREAM|RECEIPT", help="A stream, or the file of a receipt.")],
    stream: Annotated[
        str | None, typer.Option("--stream", help="The stream that a receipt must be of: it checks who signed it.")
    ] = None,
    subject: Annotated[
        list[str] | None, typer.Option("--subject", help="Whom a receipt must be about; needs --stream and --request.")
    ] = None,
    request: Annotated[str | None, typer.Option("--request", help="The name the erasure was asked for under.")] = None,
    key_file: KeyFileOption = None,
    fence: FenceOption = None,
) -> None:
    """Check a stream, or the receipt of an erasure; exit code 4 if anything differs.

    A stream is rebuilt from its surviving data under its key, and every release since the last deletion must come out
    the same, byte for byte; the fence must agree; and its files must hold nothing that is not alive.

    Examples:

    retroact verify orders

    retroact verify receipt.json --stream orders --subject u17 --request ticket-881
    """
    if Path(target).is_file():
        _verify_receipt(Path(target), stream, subject or [], request, key_file, fence)
        return
    if stream is not None or subject or request:
        raise InputError(f"{target}: expected the file of a receipt beside these options", place="--stream")
    from retroact.cli.report import Progress, Report

    with opened(target, key_file, fence) as open_stream, Progress(Report(quiet=False)) as progress:
        where = open_stream.store.where
        result = open_stream.verify(lambda done, total: progress.update(done, f"{done:,} of {total:,} rounds", total))
    for problem in result.problems[:20]:
        say(f"differs: {problem}")
    if not result.ok:
        raise VerificationError(f"{where}: {len(result.problems):,} difference{'s' * (len(result.problems) != 1)}")
    rounds = "no round since the last deletion"
    if result.last >= result.first:
        rounds = f"rounds {result.first:,} to {result.last:,}"
    same = "1 release comes" if result.compared == 1 else f"{result.compared:,} releases come"
    say(f"{where}: {same} out the same ({rounds}); data, fence and files agree")
    if result.first > 1:
        say("note: what was published before those rounds is as it was kept; it cannot be worked out again")
    for name in result.unkeyed:
        say(f"note: {name} has randomness of its own and cannot be worked out again")


def _verify_receipt(
    path: Path, stream: str | None, subjects: list[str], request: str | None, key_file: Path | None, fence: Path | None
) -> None:
    from retroact.store.receipt import public_key
    from retroact.store.receipt import verify as check

    named: dict[bytes, str] = {}
    if stream is None:
        if subjects or request:
            raise InputError("expected --stream: only its key tells whom a receipt is about", place="--subject")
        receipt = check(path.read_bytes(), place=str(path))
    else:
        with opened(stream, key_file, fence) as open_stream:
            hashes = open_stream.hashes
            receipt = check(path.read_bytes(), place=str(path), public_key=public_key(hashes.signing))
            if receipt.stream != open_stream.name:
                raise VerificationError(f"{path}: expected a receipt of this stream, got one of another")
            if subjects or request:
                if not subjects or request is None:
                    raise InputError("expected --subject and --request together", place="--request")
                asked = hashes.request(request, subjects, [])
                if asked.content.hex() != receipt.request:
                    raise VerificationError(f"{path}: expected a receipt of this request, got one of another")
                named = dict(zip(asked.subjects, subjects, strict=True))
    for line in _missing_in(receipt, [named[subject] for subject in sorted(named)]):
        say(line)
    signed = "signed by this stream" if stream is not None else "whole (give --stream to check who signed it)"
    say(f"{path}: {signed}; {receipt.state}, received {receipt.received}")
    if receipt.round is not None:
        say(f"answers are as if never there from round {receipt.round} on (applied {receipt.applied})")
    elif receipt.applied is not None:
        say(f"nothing is published after it (applied {receipt.applied})")
    if receipt.version == 1 and receipt.applied is not None:
        say("note: version 1 of receipts does not say whether records were found")
    for text in receipt.what:
        say(f"purged {receipt.purged}: {text}")
    for text in receipt.remains:
        say(f"may remain: {text}")
    say(f"later records of the subject: {receipt.later}")


def _missing_in(receipt: Receipt, names: list[str]) -> list[str]:
    """Whom no record was found of; the names are in the order of the receipt, if they are known."""
    found = receipt.found if isinstance(receipt.found, list) else []
    if not receipt.missing:
        return []
    if receipt.missing == len(found):
        return ["no record was found"]
    if names:
        return [f"no record was found of {name}" for name, own in zip(names, found, strict=True) if not own]
    return [f"no record was found of {receipt.missing:,} of its {len(found):,} subjects"]


def export(
    stream: StoreArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Appears whole or not at all; stdout if absent.")
    ] = None,
    format: Annotated[OutputFormat | None, typer.Option("--format", help="By the name of the file if absent.")] = None,
    first: Annotated[int, typer.Option("--first", min=1, help="From this round on.")] = 1,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Up to this round.")] = None,
    key_file: KeyFileOption = None,
    fence: FenceOption = None,
) -> None:
    """Write what a stream has published: JSON lines, CSV or Parquet.

    Examples:

    retroact export orders --out releases.parquet

    retroact export orders --format csv --first 100
    """
    from retroact.cli.output import format_of, open_output

    check_targets([("--out", out)], store=stream, key_file=key_file, fence=fence)
    with opened(stream, key_file, fence) as open_stream:
        check_sources([("--out", out)], open_stream)
        with open_output(out, format_of(out, format)) as output:
            for line in open_stream.releases(first, last):
                output.write_line(line)


def register(app: typer.Typer) -> None:
    app.command(short_help="Erase a subject from a stream, with a receipt.")(erase)
    app.command(short_help="Check a stream against its surviving data, or a receipt.")(verify)
    app.command(short_help="Write what a stream has published to a file.")(export)
