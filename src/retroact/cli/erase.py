"""`retroact erase`: all records of a subject, with a signed receipt."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from ..errors import InputError, RetroactError, VerificationError
from ..feeds.source import read_text
from ..files import os_errors
from ..messages import plural
from ..store.receipt import verify
from ..store.targets import check_targets
from ..stream import Durable
from ..stream.erasure import Requested
from ..stream.outcome import Outcome
from .console import say
from .files import check_sources, put
from .files import opened as opened_files
from .notes import ALLOW, NotFoundError
from .options import (
    MISSING_HELP,
    Restoring,
    Secrets,
    StreamArgument,
    TestingKey,
    command,
    flag,
    opened,
    option,
    warn_of_debt,
)
from .progress import busy


@dataclass(frozen=True)
class EraseOptions:
    """Whom to erase, and how."""

    subject: list[str] | None = option("Whose records to erase; repeatable.", "NAME")
    sha256: list[str] | None = option("The same, by the SHA-256 of the subject; repeatable.", "HEX")
    requests: Path | None = option("Read requests from columns subject or sha256, and request.", "CSV", "--from")
    request: str | None = option("A name for the request; repeating it does nothing twice.", "NAME")
    dry_run: bool = flag("Show what would be found, and change nothing.")
    close: bool = flag("Close the open round now if a request waits for it.")
    receipt: Path | None = option("Write the signed receipt; a folder with --from.", "FILE")
    earlier: list[Path] | None = option("The receipt of the same request from a stream before this one.", "RECEIPT")
    allow_missing: bool = flag(MISSING_HELP)
    status: bool = flag("List all requests and their states.")


@command
def erase(
    stream: StreamArgument,
    secrets: Secrets,
    restoring: Restoring,
    order: EraseOptions,
    testing_key: TestingKey = None,
) -> None:
    """Erase all records of a subject. A request is received, applied when the round closes, and then purged.

    Repeated under the same --request, the command shows the state of the request and what it found, and writes the
    receipt again.

    A request that finds no record is entered all the same. But a typo looks just like that, so the exit code is 5 and
    no receipt is written, unless --allow-missing is given.

    After the last round an erasure is applied at once, and nothing is published after it. If the stream continues an
    earlier one, the command says where that is: it holds its own records.

    The output is exact, and meant for the operator of the stream.

    \b
    Examples:
      retroact erase orders --subject u17 --request ticket-881 --dry-run
      retroact erase orders --subject u17 --request ticket-881 --close --receipt receipt.json
    """
    receipt, dry_run = order.receipt, order.dry_run
    asked = _asked(order)
    if not asked and not order.status:
        raise InputError("expected --subject, --sha256, --from or --status", place="erase")
    if receipt is not None and order.requests is not None and not receipt.is_dir():
        raise InputError(f"{receipt}: expected a folder for the receipts of several requests", place="--receipt")
    if dry_run and restoring.given:
        raise InputError("a dry run changes nothing: expected no option for a restored store", place="--dry-run")
    before = EarlierReceipts(order.earlier or ())
    used = {"file of requests": order.requests, **before.used}
    protected: dict[str, Any] = {"used": used, "store": stream, **vars(secrets)}
    check_targets([("--receipt", receipt)], folders=True, **protected)
    with opened(stream, secrets, testing_key, restoring) as open_stream:
        if order.close and open_stream.specification.rounds.grid is not None and not open_stream.over:
            raise InputError(
                "expected no --close on a grid: its rounds end when their time is over, and an erasure must not move "
                "that. The request is applied when the round closes",
                place="--close",
            )
        # a look at all of them before the first is entered
        with busy("looking for records"):
            looked = [each.erase(open_stream, dry_run=True) for each in asked]
        before.check(looked)
        files = [("--receipt", _receipt_file(receipt, each)) for each in looked]
        check_targets(files, **protected)
        check_sources(files, open_stream)
        with busy("erasing"):
            erasures = [each.erase(open_stream, dry_run=dry_run) for each in asked]
        if order.close and not dry_run and any(erasure.state == "received" for erasure in erasures):
            with _shown_anyway(erasures, open_stream), busy("closing the round, and erasing"):
                open_stream.close_round()
        missed = 0
        for erasure in erasures:
            _show(erasure, open_stream.round)
            before.show(erasure)
            missed += sum(not outcome.found for outcome in erasure.outcomes)
            if not dry_run and (erasure.found or order.allow_missing):
                with opened_files((_receipt_file(receipt, erasure), "--receipt")) as outputs:
                    put(outputs, [erasure.receipt(before.of(erasure)) for _ in outputs])
        if order.status:
            _list(open_stream)
        warn_of_debt(open_stream)
    if missed and not order.allow_missing:
        many = plural(missed, "subject") if missed > 1 else "a subject"
        unwritten = "" if receipt is None or dry_run else ", and no receipt was written for that request"
        raise NotFoundError(f"no record was found of {many}{unwritten}. {ALLOW}")


@contextmanager
def _shown_anyway(erasures: Sequence[Requested], stream: Durable) -> Iterator[None]:
    """What was entered is shown even if the round does not close."""
    try:
        yield
    except RetroactError:
        for erasure in erasures:
            _show(erasure, stream.round)
        raise


def _receipt_file(receipt: Path | None, erasure: Requested) -> Path | None:
    if receipt is not None and receipt.is_dir():
        return receipt / f"{erasure.now.content.hex()}.json"
    return receipt


def _show(erasure: Requested, open_round: int) -> None:
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
    entered = "" if now.state == "dry run" else "entered all the same: "
    for outcome in erasure.outcomes:
        say(f"{_found(outcome, when)}; {found if outcome.found else entered + missed} ({erasure.name})")


def _found(outcome: Outcome, when: str) -> str:
    """What was found, in words; a repeated request has no counts."""
    who, surviving, waiting = outcome.identifier, outcome.surviving, outcome.waiting
    if not outcome.found:
        return f"no record was found of {who}" + (f" when {when}" if surviving is None else "")
    if surviving is None:
        return f"{who}: records were found when {when}"
    many = plural(surviving, "surviving record") if surviving else "no surviving record"
    return f"{who}: {many}" + (f" and {waiting:,} in the open round" if waiting else "")


def _list(stream: Durable) -> None:
    """All requests and their states."""
    for known in stream.requests():
        line = f"{known.content.hex()[:16]} {known.state}, received {known.received}"
        if known.applied is not None:
            line += ", applied " + ("after the last round" if known.round is None else f"in round {known.round}")
        say(line if known.purged is None else f"{line}, purged {known.purged}")


@dataclass
class ErasureRequest:
    request: str | None
    subjects: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)

    def erase(self, stream: Durable, *, dry_run: bool) -> Requested:
        return stream.erase(
            subject=self.subjects or None, sha256=self.digests or None, request=self.request, dry_run=dry_run
        )


def _asked(order: EraseOptions) -> list[ErasureRequest]:
    subjects, digests = order.subject or [], order.sha256 or []
    if order.requests is not None:
        if subjects or digests or order.request:
            raise InputError("expected either --from or single subjects", place="--from")
        return _from_file(order.requests)
    if not subjects and not digests:
        return []
    return [ErasureRequest(order.request, subjects, [_digest(text, "--sha256") for text in digests])]


def _from_file(path: Path) -> list[ErasureRequest]:
    """All of it is read before any of it is done."""
    rows = csv.DictReader(StringIO(read_text(path), newline=""), strict=True)
    found: dict[Any, ErasureRequest] = {}
    try:
        names = {*(rows.fieldnames or ())}
        if not {"subject", "sha256"} & names or names - {"subject", "sha256", "request"}:
            listed = ", ".join(rows.fieldnames or ())
            raise InputError(f"expected columns subject or sha256, and request, got {listed}")
        for row in rows:
            subject, digest = row.get("subject") or "", row.get("sha256") or ""
            if None in row or None in row.values() or bool(subject) == bool(digest):
                raise InputError("expected a subject or a sha256")
            name = row.get("request") or None
            own = found.setdefault(name or object(), ErasureRequest(name))
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


class EarlierReceipts:
    """The receipts of earlier streams that were handed in, by their requests."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.used = {f"receipt {path}": path for path in paths}
        self._found: dict[bytes, list[bytes]] = {}
        for path in paths:
            with os_errors(path, "--earlier"):
                content = path.read_bytes()
            request = verify(content, place=str(path)).request
            self._found.setdefault(bytes.fromhex(request), []).append(content)

    def check(self, erasures: Sequence[Requested]) -> None:
        """Check that all of them are for these requests, and from streams before this one."""
        if {*self._found} - {erasure.now.content for erasure in erasures}:
            raise VerificationError("--earlier: expected receipts of the same requests, got one of another")
        for erasure in erasures:
            erasure.unerased(self.of(erasure))

    def of(self, erasure: Requested) -> list[bytes]:
        return self._found.get(erasure.now.content, [])

    def show(self, erasure: Requested) -> None:
        """Print where records may still be."""
        for held in erasure.unerased(self.of(erasure)):
            say(
                f"note: this stream continues {held.where}, which still holds records: erase there too, under "
                "the same --request, then pass its receipt to --earlier"
            )
