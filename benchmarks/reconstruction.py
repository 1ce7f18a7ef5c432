"""Appendix D against retraining, the flippancy tracker and retroactive distinct counts: who keeps the secret bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distinct_counts import block_mechanism, fresh_mechanism
from lives import Lives
from retroact.audit.counting_attack import Attack, Published
from retroact.audit.decoding import F64, I64, Bits
from retroact.audit.reconstruction import Plan
from retroact.errors import InputError
from retroact.noise import Mechanism
from retroact.stateful.tracker import coins_of
from retroact.stateful.tracker_design import TrackerDesign
from retroact.testing.seeds import Seeds
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
        design = TrackerDesign(attack.rounds, self.epsilon, self.delta, None, coins)
        found = track(design, Lives(attack.rounds, *attack.records(secret)).flips())
        return Published(found.numerators[attack.looks - 1] / found.denominator)


def exact(attack: Attack, secret: Bits, seeds: Seeds) -> Published:
    """Retraining: the count of the surviving data, computed again."""
    return Published(Lives(attack.rounds, *attack.records(secret)).distinct()[attack.looks - 1].astype(np.float64))


@dataclass(frozen=True)
class FreshLaplace:
    """Retraining, with Laplace noise of its own for every release: each alone is epsilon-private."""

    epsilon: float

    def __call__(self, attack: Attack, secret: Bits, seeds: Seeds) -> Published:
        noise = seeds.numpy().laplace(scale=1 / self.epsilon, size=attack.k + 1)
        return Published(attack.counts(secret) + noise)


@dataclass(frozen=True)
class FromNoise:
    """The answers of a stream without running it, from exact counts and the noise at the rounds that are looked at: for
    attacks that are too long to run."""

    plan: Plan

    def __call__(self, attack: Attack, secret: Bits, seeds: Seeds) -> Published:
        plan = self.plan
        mechanism = plan.specification.mechanism(plan.name, seeds.key().coins("stream"))
        return Published(attack.counts(secret, plan.block) + draws(mechanism, plan.places(attack)), plan.block)


def draws(mechanism: Mechanism, places: I64) -> F64:
    """The noise of the first coordinate at some places."""
    drawn = [mechanism.draw(place) for place in places.tolist()]
    return np.array([int(numerators[0]) / denominator for numerators, denominator in drawn])
