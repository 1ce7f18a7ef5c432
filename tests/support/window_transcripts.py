"""Windows so small that all transcripts can be written down, with exact probabilities.

M reports the difference of records +1 and records -1, cut to -1, 0 or 1, by a truncated geometric mechanism with ratio
1/3: ln 3 for one record, and the worst that two records can do. With a failure f it also tells the truth outright.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product

EPSILON0 = math.nextafter(math.log(3), 2)


def score(values):
    return max(-1, min(1, sum(values)))


@lru_cache
def answers(state, failure=Fraction(0)):
    """The law of one answer, given the cut difference."""
    ratio = Fraction(1, 3)
    law = {-1: ratio ** (state + 1) / (1 + ratio), 1: ratio ** (1 - state) / (1 + ratio)}
    law[0] = (1 - ratio) / (1 + ratio) * ratio ** abs(state)
    told = {("told", state): failure} if failure else {}
    return {**{y: p * (1 - failure) for y, p in law.items()}, **told}


def transcripts(states, failure=Fraction(0)):
    """From the law of the sequence of states to the law of the sequence of answers."""
    law = Counter()
    for sequence, weight in states.items():
        for outcome in product(*(answers(s, failure).items() for s in sequence)):
            law[tuple(y for y, _ in outcome)] += weight * math.prod(p for _, p in outcome)
    return law


@lru_cache
def samples(stream, names, size):
    """How many orders of the names give each sequence of samples."""
    return Counter(
        tuple(tuple([n for n in order if n in live][:size]) for live in stream) for order in permutations(names)
    )


def divergence(p, q, epsilon):
    """sup over events of p(E) - e^epsilon q(E)."""
    return math.fsum(max(0.0, float(p[y]) - math.exp(epsilon) * float(q[y])) for y in p)
