"""`retroact verify`: whether a stream is what its surviving data give, or a receipt what the stream has signed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ..errors import InputError, VerificationError
from ..messages import plural
from ..store.receipt import Receipt, public_key
from ..store.receipt import verify as check
from ..store.targets import POSTGRES
from .console import console_for, say
from .options import Secrets, TestingKey, argument, command, opened, option
from .progress import Progress


@dataclass(frozen=True)
class ReceiptOptions:
    """What a receipt is checked against."""

    stream: str | None = option("Check that this stream signed the receipt.", "STREAM")
    subject: list[str] | None = option("Check whom the receipt is about; needs --stream and --request.", "NAME")
    request: str | None = option("The name of the request.", "NAME")


@command
def verify(
    target: Annotated[str, argument("A stream, or the file of a receipt.", "STREAM|RECEIPT")],
    secrets: Secrets,
    order: ReceiptOptions,
    testing_key: TestingKey = None,
) -> None:
    """Check a stream, or the receipt of an erasure. The exit code is 4 if anything differs.

    A stream is rebuilt from its surviving data under its key: every release since the last deletion must be the same,
    byte for byte. The fence must agree, and the files must hold nothing but surviving data.

    \b
    Examples:
      retroact verify orders
      retroact verify receipt.json --stream orders --subject u17 --request ticket-881
    """
    if Path(target).is_file():
        _verify_receipt(Path(target), order, secrets, testing_key)
        return
    if order.stream is not None or order.subject or order.request:
        raise InputError(f"{target}: expected the file of a receipt with these options", place="--stream")
    if not (target.startswith(POSTGRES) or Path(target).exists()):
        raise InputError(f"{target}: expected a stream or the file of a receipt, got nothing of that name")
    with opened(target, secrets, testing_key) as open_stream, Progress(console_for("stderr")) as progress:
        where = open_stream.store.where
        result = open_stream.verify(
            lambda done, total: progress.update(done, f"{done:,} of {plural(total, 'round')}", total)
        )
    for problem in result.problems[:20]:
        say(f"differs: {problem}")
    if not result.ok:
        raise VerificationError(f"{where}: {plural(len(result.problems), 'difference')}")
    rounds = "no round since the last deletion"
    if result.last >= result.first:
        rounds = f"rounds {result.first:,} to {result.last:,}"
    say(f"{where}: {plural(result.compared, 'release')} reproduced ({rounds}); data, fence and files agree")
    if result.first > 1:
        say("note: what was published before those rounds is as it was kept; it cannot be computed again")
    for text in result.notes:
        say(f"note: {text}")
    for name in result.unkeyed:
        say(f"note: {name} has randomness without a key, and cannot be computed again")


def _verify_receipt(path: Path, order: ReceiptOptions, secrets: Secrets, testing_key: int | None) -> None:
    stream, subjects, request = order.stream, order.subject or [], order.request
    names: list[str] = []
    if stream is None:
        if subjects or request:
            raise InputError("expected --stream: only its key tells whom a receipt is about", place="--subject")
        receipt = check(path.read_bytes(), place=str(path))
    else:
        with opened(stream, secrets, testing_key) as open_stream:
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
                names = [name for _, name in sorted(dict(zip(asked.subjects, subjects, strict=True)).items())]
    signed = "whole (give --stream to check who signed it)" if stream is None else "signed by this stream"
    lines = [*_missing_in(receipt, names), f"{path}: {signed}; {receipt.state}, received {receipt.received}"]
    if receipt.round is not None:
        lines.append(f"answers are as if never there from round {receipt.round} on (applied {receipt.applied})")
    elif receipt.applied is not None:
        lines.append(f"nothing is published after it (applied {receipt.applied})")
    if receipt.version == 1 and receipt.applied is not None:
        lines.append("note: version 1 of receipts does not say whether records were found")
    lines += [f"purged {receipt.purged}: {text}" for text in receipt.what]
    lines += [f"may remain: {text}" for text in receipt.remains]
    for line in [*lines, f"later records of the subject: {receipt.later}"]:
        say(line)


def _missing_in(receipt: Receipt, names: list[str]) -> list[str]:
    """Those without any record; the names are in the order of the receipt, if they are known."""
    found = receipt.found if isinstance(receipt.found, list) else []
    if not receipt.missing:
        return []
    if receipt.missing == len(found):
        return ["no record was found"]
    if names:
        return [f"no record was found of {name}" for name, own in zip(names, found, strict=True) if not own]
    return [f"no record was found of {receipt.missing:,} of its {plural(len(found), 'subject')}"]
