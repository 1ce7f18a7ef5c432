"""The flippancy tracker for distinct counts of Jain, Kalemaj, Raskhodnikova, Sivakumar and Smith (NeurIPS 2023), with
which section 6 of the paper compares retroactive algorithms.

A value flips when it appears or disappears. The tracker counts present values, freezes a value after w flips, and adds
noise whose size grows with sqrt(w); it begins with w = 1 and doubles w when the number of frozen values passes a noisy
threshold. So few flips mean little noise: an error of about (sqrt(w(S)) log T + log^3 T) / epsilon, with no bound on
w(S) known in advance (paper, section 6, equation for the tracker).

That error is for histories with *one update a round*, as in the published model; no bound holds for all others. If a
round may bring many updates, a repeated lazy answer misses everything since, and a noisy threshold is checked only once
for all of it. With ``flips`` given, the error is for histories in which no value flips more often: a value that does is
counted forever as it was. So `error` is None, and `smooth` needs an E that holds for the histories at hand; for streams
in general there is none.

**Privacy.** Item level, which is stronger than the level of one operation that streams have: any of the additions and
deletions of *one value* may be left out. Noise: `Continual`, with its sensitivity in `longest_shift`; doubling:
`AboveThreshold`; after the last level: `Lazy`; their composition: `TrackerDesign`. A round may hold many updates: a
value still flips at most once in it, and all that the proofs use of a round is that one value changes the count by at
most 1. The guarantee is for histories that do not depend on the answers. Rebuilt from the published outline with
different constants: a Schauder tree instead of the dyadic one, gates for one-sided counts, and levels only up to where
lazy releases win.
**Retroactivity.** None. Which values are frozen, how large w has grown and what a lazy release repeats may all come
from records deleted long ago; Theorem "countdistinct" says that no retroactive algorithm can have this error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..coins import Coins, Key
from ..errors import ExhaustedError
from ..ledger.definition import Update
from ..privacy import Guarantee, ZeroConcentratedDP, check_budget
from .base import NOT_RETROACTIVE, Stateful
from .presence import Presence
from .tracker_design import TrackerDesign
from .tracker_noise import Buffer


@dataclass(frozen=True)
class Estimate:
    """The answer of one round; ``limit`` is the number of flips after which a value is frozen, and None where the
    answer is a lazy release."""

    round: int
    value: Fraction
    limit: int | None

    def encode(self) -> bytes:
        return repr((self.round, str(self.value), self.limit)).encode()


class FlippancyTracker(Stateful):
    """The number of distinct values among surviving records, in every one of ``horizon`` rounds.

    With ``flips`` it freezes every value after that many; without, it finds the number itself. Its answers are private
    on every history. They are accurate on those with one update a round or, with ``flips``, on those in which no value
    flips more often; on others they may be off by any amount.

    >>> from retroact.ledger.definition import Add, Delete
    >>> tracker = FlippancyTracker(1000, epsilon=1.0, delta=1e-6, key=Key.for_testing(1))
    >>> answers = [tracker.close([Add(f"customer {round}")]) for round in range(1, 1001)]
    >>> abs(answers[-1].value - 1000) < 300, answers[-1].limit
    (True, 1)
    >>> print(tracker.guarantee)
    ε = 1, δ = 1e-06 for one value with all its additions and deletions (private, not retroactive), over the whole
    published sequence (oblivious streams only)
    """

    def __init__(
        self, horizon: int, *, epsilon: float | Fraction, delta: float | Fraction, flips: int | None = None, key: Key
    ) -> None:
        self.design = TrackerDesign(horizon, epsilon, delta, flips, coins_of(key, horizon, epsilon, delta, flips))
        self._budget = float(epsilon), float(delta)
        self._round = 0
        self._presence = Presence()
        self._flips: Counter[Hashable] = Counter()
        self._present = 0
        # For each level: the present values without what frozen ones did since, and how many are frozen.
        self._counts = [0] * len(self.design.limits)
        self._frozen = [0] * len(self.design.limits)
        self._level = 0
        self._held = 0
        self._noise = [Buffer(base.numerators, horizon) for base in self.design.bases]
        key.claim()  # last, so that a tracker that could not be made leaves its key free

    @property
    def guarantee(self) -> Guarantee:
        unit = f"one value with all its additions and deletions ({NOT_RETROACTIVE})"
        return Guarantee(ZeroConcentratedDP(float(self.design.rho)), *self._budget, unit=unit, adaptive=False)

    def close(self, updates: Sequence[Update]) -> Estimate:
        if self._round == self.design.horizon:
            raise ExhaustedError(f"all {self._round:,} promised rounds are released; the noise is calibrated to them")
        flips = self._presence.flips(updates, self._round + 1)
        self._round += 1
        for value, sign in flips:
            self._count(value, sign)
        lazy, gates = self.design.lazy, self.design.gates
        if lazy is not None and lazy.due(self._round):
            self._held = self._present + lazy.noise(self._round)
        while self._level < len(gates) and gates[self._level].exceeded(self._frozen[self._level], self._round):
            self._level += 1
        if self._level == len(self.design.limits):
            return Estimate(self._round, Fraction(self._held), None)
        noise = Fraction(self._noise[self._level].at(self._round), self.design.denominator)
        return Estimate(self._round, self._counts[self._level] + noise, self.design.limits[self._level])

    def _count(self, value: Hashable, sign: int) -> None:
        self._present += sign
        self._flips[value] += 1
        made = self._flips[value]
        for level, limit in enumerate(self.design.limits):
            if made <= limit:
                self._counts[level] += sign
            elif made == limit + 1:
                self._frozen[level] += 1


def coins_of(key: Key, horizon: int, epsilon: float | Fraction, delta: float | Fraction, flips: int | None) -> Coins:
    """No two trackers with different parameters share noise."""
    exact = check_budget(epsilon, delta)
    return key.coins("tracker", str(horizon), *(str(part) for part in exact), str(flips))
