"""`retroact verify`: whether a stream is what its surviving data give, or a receipt what the stream has signed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retroact.cli.console import say
from retroact.cli.notes import Notes, Progress
from retroact.cli.options import Secrets, command, opened
from retroact.errors import InputError, VerificationError
from retroact.store.receipt import Receipt, public_key
from retroact.store.receipt import verify as check


@command
def verify(
    target: Annotated[str, typer.Argument(metavar="STREAM|RECEIPT", help="A stream, or the file of a receipt.")],
    secrets: Secrets,
    stream: Annotated[
        str | None, typer.Option(help="The stream that a receipt must be of: it checks who signed it.")
    ] = None,
    subject: Annotated[
        list[str] | None, typer.Option(help="Whom a receipt must be about; needs --stream and --request.")
    ] = None,
    request: Annotated[str | None, typer.Option(help="The name the erasure was asked for under.")] = None,
) -> None:
    """Check a stream, or the receipt of an erasure; exit code 4 if anything differs.

    A stream is rebuilt from its surviving data under its key, and every release since the last deletion must be
    the same, byte for byte; the fence must agree; and its files must hold nothing that is not alive.

    \b
    Examples:
      retroact verify orders
      retroact verify receipt.json --stream orders --subject u17 --request ticket-881
    """
    if Path(target).is_file():
        _verify_receipt(Path(target), stream, subject or [], request, secrets)
        return
    if stream is not None or subject or request:
        raise InputError(f"{target}: expected the file of a receipt beside these options", place="--stream")
    with opened(target, secrets) as open_stream, Progress(Notes(quiet=False)) as progress:
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


def _verify_receipt(path: Path, stream: str | None, subjects: list[str], request: str | None, secrets: Secrets) -> None:
    named: dict[bytes, str] = {}
    if stream is None:
        if subjects or request:
            raise InputError("expected --stream: only its key tells whom a receipt is about", place="--subject")
        receipt = check(path.read_bytes(), place=str(path))
    else:
        with opened(stream, secrets) as open_stream:
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
