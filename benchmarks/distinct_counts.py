"""Two retroactive distinct counts, over a whole history at once: fresh noise, and blocks.

**Privacy.** One operation changes the number of present values by at most 1, in any set of rounds (toggle another
record of the same value): `noise.AnyRounds` hides that. In blocks the count is of records with a stamp before the
block, so within a block a value can only go: `noise.StampedBlocks`. Both are mu-Gaussian private for one operation,
with late additions left out for blocks. **Retroactivity.** Noise by the round, added to a function of the round and the
surviving data.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lives import Lives
from retroact.coins import Key
from retroact.noise import AnyRounds, Mechanism, Process, StampedBlocks, best_block
from retroact.params import words
from retroact.privacy import Share, check_budget, largest_mu

Answers = npt.NDArray[np.float64]
# A retroactive form: the answers of all rounds of a history, for epsilon, delta and a key.
Form = Callable[[Lives, float, float, Key], Answers]


def seen(round: npt.ArrayLike, length: int) -> npt.NDArray[np.int64]:
    """The last stamp that counts in a round.

    >>> seen([1, 4, 5, 8], 4).tolist(), seen([1, 4, 5, 8], 0).tolist()
    ([0, 0, 4, 4], [1, 4, 5, 8])
    """
    rounds = np.asarray(round, dtype=np.int64)
    return length * ((rounds - 1) // length) if length else rounds


def fresh(lives: Lives, epsilon: float, delta: float, key: Key) -> Answers:
    """Common noise and fresh noise, on the distinct count of every round."""
    mechanism, _ = fresh_mechanism(lives.horizon, epsilon, delta, key)
    return lives.distinct() + _noise(mechanism, lives.horizon)


def blocks(lives: Lives, epsilon: float, delta: float, key: Key) -> Answers:
    """Values with a record from before the block, and half of the rounds since for those that are too new to count."""
    mechanism, length = block_mechanism(lives.horizon, epsilon, delta, key)
    counted = lives.seen_from(-(-lives.births // length) * length + 1)
    rounds = np.arange(1, lives.horizon + 1)
    return counted.distinct() + (rounds - seen(rounds, length)) / 2 + _noise(mechanism, lives.horizon)


FORMS: dict[str, Form] = {"retroactive, fresh": fresh, "retroactive, blocks": blocks}


def fresh_mechanism(horizon: int, epsilon: float, delta: float, key: Key) -> tuple[Mechanism, int]:
    """The noise, and the length 0: every record counts at once."""
    mu = largest_mu(*check_budget(epsilon, delta))
    return _mechanism(AnyRounds(horizon), mu, key), 0


def block_mechanism(horizon: int, epsilon: float, delta: float, key: Key) -> tuple[Mechanism, int]:
    """The noise, and the length of a block: the best for one addition a round."""
    mu = largest_mu(*check_budget(epsilon, delta))
    length = best_block(horizon, float(mu), 1.0)
    return _mechanism(StampedBlocks(length, horizon), mu, key), length


def _mechanism(process: Process, mu: Fraction, key: Key) -> Mechanism:
    share, one = Share("gaussian", mu**2), Fraction(1)
    coins = key.coins("experiment", words(process.spec()), str(mu))
    return Mechanism(process, share, units=(1,), norm1=one, norm2_squared=one).under(coins)


def _noise(mechanism: Mechanism, horizon: int) -> Answers:
    drawn = [mechanism.draw(round) for round in range(1, horizon + 1)]
    return np.array([int(numerators[0]) / denominator for numerators, denominator in drawn])
