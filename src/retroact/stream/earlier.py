"""The streams that a successor goes on from: they hold records of their own, until their own receipts say otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import InputError, VerificationError
from ..store.receipt import verify
from ..store.store import Store

PLACE = "earlier receipt"


class Earlier(msgspec.Struct, frozen=True):
    """A stream that another one goes on from: its keyed name, the public key of its receipts, and where it was."""

    stream: str
    key: str
    where: str

    @property
    def text(self) -> str:
        return f"{self.where}, the stream that this one goes on from, which holds records of its own"


def earlier_streams(store: Store) -> list[Earlier]:
    """The first one first."""
    return msgspec.json.decode(store.note("earlier") or "[]", type=list[Earlier])


def unerased(store: Store, request: bytes, receipts: Sequence[bytes] = ()) -> list[Earlier]:
    """The earlier streams that may still hold what a request is about: all but those that signed that it is purged,
    and that nothing of it came later."""
    streams = earlier_streams(store)
    done = set()
    for content in receipts:
        named = verify(content, place=PLACE).stream
        own = next((each for each in streams if each.stream == named), None)
        if own is None:
            raise VerificationError(f"{PLACE}: expected one of a stream that this one goes on from, got another")
        receipt = verify(content, place=PLACE, public_key=own.key)
        if receipt.request != request.hex():
            raise VerificationError(f"{PLACE}: expected one of this request, got one of another")
        if receipt.state != "purged":
            raise InputError(
                f"expected a receipt that says purged, got {receipt.state!r}: ask {own.where} again later", place=PLACE
            )
        if receipt.later != "reject" and receipt.afterwards is msgspec.UNSET:
            raise InputError(
                f"expected a receipt that holds for good, got one of round {receipt.round}: records of the same "
                f"subjects may have come after it. Ask {own.where} again under a new request name, and this stream "
                "under the same",
                place=PLACE,
            )
        done.add(own.stream)
    return [each for each in streams if each.stream not in done]
