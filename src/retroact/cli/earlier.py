"""Erasures on a stream that goes on from others: those hold records of their own, and have receipts of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retroact.cli.console import say
from retroact.errors import VerificationError
from retroact.files import os_errors

if TYPE_CHECKING:
    from retroact.stream.erasure import Requested

EarlierOption = Annotated[
    list[Path] | None,
    typer.Option("--earlier", metavar="RECEIPT", help="Of the same request, by a stream that this one goes on from."),
]


class EarlierReceipts:
    """The receipts of other streams that were handed in, by the request that they are of."""

    def __init__(self, paths: Sequence[Path] | None) -> None:
        from retroact.store.receipt import verify

        self.used = {f"receipt {path}": path for path in paths or ()}
        self._found: dict[bytes, list[bytes]] = {}
        for path in paths or ():
            with os_errors(path, "--earlier"):
                content = path.read_bytes()
            request = verify(content, place=str(path)).request
            self._found.setdefault(bytes.fromhex(request), []).append(content)

    def check(self, erasures: Sequence[Requested]) -> None:
        """That all of them are of these requests and of streams before this one."""
        if {*self._found} - {erasure.now.content for erasure in erasures}:
            raise VerificationError("--earlier: expected receipts of the same requests, got one of another")
        for erasure in erasures:
            erasure.unerased(self.of(erasure))

    def of(self, erasure: Requested) -> list[bytes]:
        return self._found.get(erasure.now.content, [])

    def tell(self, erasure: Requested) -> None:
        """Where records may still be."""
        for held in erasure.unerased(self.of(erasure)):
            say(
                f"note: this stream goes on from {held.where}, which holds records of its own: erase there too, under "
                "the same --request, and hand its receipt in (--earlier)"
            )
