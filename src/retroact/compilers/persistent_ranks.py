"""Persistent secret ranks: each live copy has one for as long as it lives (Appendix C).

The rank of copy j of a value x with stamp t is 128 bits of the name (t, x, j). A deletion takes the copy with the
highest j, the last that came. So the ranks of the live copies are a function of the live multiset, and independent and
uniform over it.
"""

from __future__ import annotations

import numpy as np

from ..arrays import I64
from ..coins import Coins
from ..ledger import sorted_keys
from ..statistics.tally import Tally


def ranks_of(tally: Tally, first: I64, last: I64, coins: Coins) -> Tally:
    """The records of copies first .. last - 1 of each key of a tally, by rank: two words of 64 bits."""
    counts = last - first
    owner = np.repeat(np.arange(len(counts)), counts)
    copy = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
    stamp, *value = sorted_keys.take(tally.words, owner)
    cells = np.zeros((len(owner), 2), dtype="<u8")
    for place, word in enumerate(value):
        cells[:, place] = word
    words = coins.words(copy, stamp.view(np.int64), cells).each()
    order = sorted_keys.order(words)
    labels = tuple(label[owner[order]] for label in tally.labels)
    return Tally(sorted_keys.take(words, order), np.ones((len(order), 1), dtype=np.int64), labels)
