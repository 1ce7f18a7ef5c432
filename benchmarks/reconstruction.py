"""Appendix D against the flippancy tracker and against two retroactive distinct counts: who keeps the secret bits."""

from __future__ import annotations

from dataclasses import dataclass

from distinct_counts import block_mechanism, fresh_mechanism
from retroact.audit.counting_attack import Attack, Published, draws
from retroact.audit.decoding import Bits
from retroact.audit.seeds import Seeds
from retroact.errors import InputError
from retroact.stateful.tracker import coins_of
from retroact.stateful.tracker_design import TrackerDesign
from tracker_columns import track


@dataclass(frozen=True)
class Retroactive:
    """The two retroactive forms of `distinct_counts`; noise is drawn only where the attacker looks."""

    form: str
    epsilon: float
    delta: float

    def __call__(self, attack: Attack, secret: Bits, seeds: Seeds) -> Published:
        make = {"fresh": fresh_mechanism, "blocks": block_mechanism}.get(self.form)
        if make is None:
            raise InputError(f"expected fresh or blocks, got {self.form!r}", place="form")
        mechanism, block = make(attack.rounds, self.epsilon, self.delta, seeds.key())
        # What blocks add for records that are too new to count is public, and left out.
        return Published(attack.counts(secret, block) + draws(mechanism, attack.looks), block)


@dataclass(frozen=True)
class Tracker:
    """The flippancy tracker: private, not retroactive."""

    epsilon: float
    delta: float

    def __call__(self, attack: Attack, secret: Bits, seeds: Seeds) -> Published:
        coins = coins_of(seeds.key(), attack.rounds, self.epsilon, self.delta, None)
        found = track(TrackerDesign(attack.rounds, self.epsilon, self.delta, None, coins), attack.lives(secret).flips())
        return Published(found.numerators[attack.looks - 1] / found.denominator)
