"""What the journal keeps of rounds that close: releases, how far sources were read, and requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..store.tables import Prepared, Request, Stored
from .closing import Closing
from .erasure import Hashes
from .open_round import OpenRound
from .outcome import Outcome
from .release import Release


def stored(round: int, releases: Mapping[str, Release]) -> list[Stored]:
    return [
        Stored(round, name, msgspec.json.encode(release.to_dict()), release.encode())
        for name, release in releases.items()
    ]


def prepared(closing: Closing, hashes: Hashes, *, rejects: bool) -> Prepared:
    opened = closing.opened
    positions = {source: (position, taken.to_bytes()) for source, (position, taken) in opened.reading.items()}
    requests = decided(opened, closing.found, hashes)
    return Prepared(closing.round, positions, requests, subjects(opened, rejects=rejects))


def decided(opened: OpenRound, outcomes: Sequence[Outcome], hashes: Hashes) -> list[Request]:
    """The pending requests, each with what was found among all the records of this round."""
    pairs = zip(opened.asked(), outcomes, strict=True)
    found = {hashes.subject(each): outcome.found for each, outcome in pairs}
    return [made._replace(outcome=hashes.seal(made.content, found, asked)) for made, asked in opened.requests]


def subjects(opened: OpenRound, *, rejects: bool) -> list[bytes]:
    """Hashes of the subjects of pending erasures, if their later records are rejected."""
    return [subject for _, asked in opened.requests for subject in asked] if rejects else []
