"""The sensitivity of a process by trying all intervals."""

from fractions import Fraction

import numpy as np

from retroact.noise import difference


def brute_force(process, rounds, window=None):
    """The largest L1 and squared L2 over all intervals; checks L(shift(s) - shift(e)) = 1[s < round <= e] as well."""
    terms = process.weights_of(np.arange(1, rounds + 1))
    matrix = {}
    for row in range(rounds):
        one = terms.of(row)
        for level, index, weight in zip(one.levels.tolist(), one.indices.tolist(), one.weights.tolist(), strict=True):
            matrix.setdefault((level, index), np.zeros(rounds, dtype=object))[row] += weight
    shifts = [process.shift(s) for s in range(rounds + 1)]
    l1 = l2 = Fraction(0)
    at = np.arange(1, rounds + 1)
    for s in range(rounds):
        for e in range(s + 1, min(rounds, s + (window or rounds)) + 1):
            moved = difference(shifts[s], shifts[e])
            image = np.zeros(rounds, dtype=object)
            for node, value in moved.items():
                if node in matrix:
                    image += value * matrix[node]
            assert (image == np.where((s < at) & (at <= e), terms.denominator, 0)).all(), (process, s, e)
            l1 = max(l1, sum(abs(v) / process.spread(n[0], 1) for n, v in moved.items()))
            l2 = max(l2, sum(v * v / process.spread(n[0], 2) for n, v in moved.items()))
    return l1, l2
