"""Means of noisy cells, each borrowing strength from the cells that lie near it.

A cell is a word of bits, one for each hyperplane. Its mean is modelled, coordinate by coordinate, as
  mean = sum over bits of b_i s_i + sum over pairs of bits of c_ij s_i s_j + own,    s_i = +-1,
with normal b, c and own of unknown variances: the bits that a cell shares with many others count first, then its own
sum as far as noise allows. A few steps of expectation maximisation estimate the variances, so with little noise nothing
is smoothed. All of it is post-processing of noisy counters.
"""

from __future__ import annotations

import numpy as np

from ...arrays import F64

STEPS = 4
TINY = 1e-12


def smoothed(sums: F64, counts: F64, variance: float, signs: F64) -> F64:
    """Means of cells (cells by coordinates) from noisy sums of this variance and noisy counts.

    >>> cells = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> exact = smoothed(100 * cells[:, :1], np.full(4, 100.0), 1e-6, cells)
    >>> np.round(exact.ravel(), 3).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    bits = signs.shape[1]
    first, second = np.triu_indices(bits, 1)
    features = np.hstack([signs, signs[:, first] * signs[:, second]])
    group = np.repeat([0, 1], [bits, len(first)])
    sizes = np.maximum(np.bincount(group, minlength=2), 1)
    means = sums / counts[:, None]
    noise = (variance / counts**2)[:, None]
    part = counts / counts.sum()
    # Start with moments: how much the means vary beyond their noise, in every coordinate.
    whole = np.maximum((part[:, None] * (means**2 - noise)).sum(axis=0), 0.0)
    floor = TINY * max(float((part[:, None] * means**2).sum()), TINY)
    own = whole / 2 + floor
    shared = np.maximum(whole / 4 / sizes[:, None], floor)
    for step in range(STEPS + 1):
        precision = 1 / (own + noise)
        inverse = np.einsum("mf,mq,mg->qfg", features, precision, features, optimize=True)
        inverse[:, np.arange(len(group)), np.arange(len(group))] += 1 / shared[group].T
        inverse = np.linalg.inv(inverse)
        coefficients = np.einsum("qfg,gq->fq", inverse, features.T @ (precision * means))
        model = features @ coefficients
        gain = own / (own + noise)
        if step == STEPS:
            break
        uncertain = np.einsum("qff->fq", inverse)
        squares = coefficients**2 + uncertain
        shared = np.stack([squares[group == g].sum(axis=0) / sizes[g] for g in (0, 1)]) + floor
        spread = np.einsum("mf,qfg,mg->mq", features, inverse, features, optimize=True)
        residual = gain**2 * ((means - model) ** 2 + spread) + gain * noise
        own = (part[:, None] * residual).sum(axis=0) + floor
    return np.asarray(model + gain * (means - model))
