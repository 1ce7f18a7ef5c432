"""Erasure receipts: signed statements of what was erased, since when, and what may remain elsewhere.

A receipt says whether there were records, but not how many, and holds the request as a keyed hash.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal

import msgspec

from ..errors import InputError
from .signed_statement import HEX, Signed

LIMIT = 1 << 20
_TIMES = ("received", "applied", "purged")
_LATER = ("applied", "purged", "round", "found", "afterwards")
_time = re.compile(r"(?a)\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z")


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of one request for erasure. Times are RFC 3339 texts in UTC, such as 2026-01-31T12:00:00Z.

    From ``round`` on, answers are as if the records had never existed; a request after the last round has none, and
    states in ``afterwards`` that nothing is published after it. Once the request is applied, ``found`` says for each
    different subject, in the order of their keyed hashes, whether there were records. Version 1 had neither. ``what``
    was purged; ``remains`` lists what cannot be reached and may remain elsewhere; ``later`` says what happens to later
    records of the subjects.

    >>> receipt = Receipt(stream="a1", request="0f", state="received", received="2026-01-31T12:00:00Z", later="reject")
    >>> verify(sign(receipt, bytes(32)), place="receipt.json") == receipt
    True
    """

    format: Literal["retroact erasure receipt"] = "retroact erasure receipt"
    version: Literal[1, 2] = 2
    stream: str
    request: str
    state: Literal["received", "applied", "purged"]
    received: str
    round: int | None = None
    applied: str | None = None
    purged: str | None = None
    found: list[bool] | msgspec.UnsetType = msgspec.UNSET
    afterwards: Literal["nothing is published"] | msgspec.UnsetType = msgspec.UNSET
    what: list[str] = []
    remains: list[str] = []
    later: Literal["accept", "reject"]

    @property
    def missing(self) -> int:
        """The number of subjects without a record."""
        return self.found.count(False) if isinstance(self.found, list) else 0


RECEIPTS = Signed("receipt", Receipt, LIMIT)


def public_key(secret: bytes) -> str:
    """The public key, in hexadecimal, that verifies the receipts of a stream.

    >>> len(public_key(bytes(32)))
    64
    """
    return RECEIPTS.public_key(secret)


def sign(receipt: Receipt, secret: bytes) -> bytes:
    """The receipt as one line of canonical JSON with its public key and signature."""
    _check(receipt, "receipt")
    return RECEIPTS.sign(receipt, secret)


def verify(content: bytes, *, place: str, public_key: str | None = None) -> Receipt:
    """The receipt in ``content``, if it is well formed and its signature is valid.

    With the ``public_key`` of the stream, obtained elsewhere, this proves that the holder of the stream's secret made
    it. Without, it shows only that the receipt is intact: anyone can sign with their own key.
    """
    _check(RECEIPTS.read(content, place=place).receipt, place)
    return RECEIPTS.verify(content, place=place, public_key=public_key)


def _check(receipt: Receipt, place: str) -> None:
    """What types cannot express: hexadecimal identities, times, and the fields that belong to each state."""
    for name in ("stream", "request", *_TIMES):
        text, time = getattr(receipt, name), name in _TIMES
        if text is not None and not (_is_time(text) if time else HEX.fullmatch(text)):
            what = "a UTC time like 2026-01-31T12:00:00Z" if time else "hexadecimal digits in lower case"
            raise InputError(f"expected {what}, found {text[:80]!r}", place=f"{place}, {name}")
    if receipt.round is not None and receipt.round < 1:
        raise InputError(f"expected a round from 1 on, found {receipt.round}", place=f"{place}, round")
    steps, first = _TIMES.index(receipt.state), receipt.version == 1
    over = not first and steps > 0 and receipt.round is None
    there = {name for name in _LATER if getattr(receipt, name) not in (None, msgspec.UNSET)}
    expected = {*_TIMES[1 : steps + 1]}
    if steps:
        expected |= {"round"} if first else {"found", "afterwards" if over else "round"}
    elif first:
        expected |= there & {"round"}  # version 1 did not care
    for name in _LATER:
        if (name in expected) != (name in there) or getattr(receipt, name) == []:
            wanted, found = ("a value", "none") if name in expected else ("none", "one")
            raise InputError(
                f"expected {wanted} in the state {receipt.state!r} of version {receipt.version}, found {found}",
                place=f"{place}, {name}",
            )
    if first:
        return
    times = [(name, datetime.fromisoformat(time)) for name in _TIMES if (time := getattr(receipt, name)) is not None]
    for (before, earlier), (name, later) in pairwise(times):
        if later < earlier:
            raise InputError(f"expected a time after it was {before}, found an earlier one", place=f"{place}, {name}")


def _is_time(text: str) -> bool:
    try:
        return bool(_time.fullmatch(text)) and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def moment() -> str:
    """Now, to the second, as in receipts and requests."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
