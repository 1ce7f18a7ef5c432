"""A round that closes: what it took in, what that does to the data, and what is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ..ledger import Change, RoundCounts
from .open_round import OpenRound
from .outcome import Outcome, outcomes
from .release import Applied, Release

if TYPE_CHECKING:
    from .core import Core


class Closing(msgspec.Struct, frozen=True, eq=False):
    round: int
    opened: OpenRound
    releases: Mapping[str, Release]
    applied: Applied
    revises: bool
    """Whether it changes what was known of earlier rounds."""
    found: Sequence[Outcome]
    """What its requests found, in the order of subjects and digests."""
    survived: Mapping[str, int] = {}
    """How many records each subject that it erases had before; only where rounds wait for one another."""

    @classmethod
    def of(cls, core: Core, change: Change, releases: Mapping[str, Release]) -> Closing:
        """The open round alone."""
        revises = change.removed > 0 or bool((change.stamps[change.weights > 0] < core.round).any())
        applied = _applied(core.open, change)
        return cls(core.round, core.open, releases, applied, revises, core.outcomes(core.open.asked()))

    @classmethod
    def among(cls, round: int, opened: OpenRound, counts: RoundCounts, releases: Mapping[str, Release]) -> Closing:
        """One of several that close together."""
        who = opened.asked()
        found = outcomes(who, counts.survived, opened.updates.of_subjects(who)) if who else []
        survived = dict(zip(opened.updates.erased(), counts.survived, strict=False))
        return cls(round, opened, releases, _applied(opened, counts), counts.revises, found, survived)

    @property
    def leaves_traces(self) -> bool:
        """Unless all that came in survives, and nothing that was there is gone."""
        return self.applied.removed > 0 or self.applied.added != len(self.opened.updates)


def _applied(opened: OpenRound, of: Change | RoundCounts) -> Applied:
    return Applied(of.added, of.removed, of.ignored_deletions, of.ignored_additions, opened.rejected)
