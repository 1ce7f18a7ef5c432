"""Counters over rounds that claim to be private and are not: one bug each, many runs at once.

Every counter claims to be the dyadic tree at epsilon = 1: independent discrete Laplace noise on every node, of scale
2 log2 T - 1. A function here gives the published numbers of many runs for given true counts; ``correct`` is as it
should be. They are what the tests of privacy are tried on: one that misses its bug would say "passed" for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from retroact.arrays import F64, I64, Mask
from retroact.coins import Coins, DiscreteLaplace, integer_cells
from retroact.noise import Tree
from retroact.testing.seeds import Seeds

Answers = I64 | F64
Counter = Callable[[I64, int, Seeds], Answers]
"""True counts of all rounds, how many runs, randomness; gives runs x rounds."""


def tree_noise(rounds: int, scale: Fraction, runs: int, coins: Coins, *, only: int | None = None) -> I64:
    """Runs x rounds of the noise of a tree whose nodes have this scale; or runs x 1, of one round."""
    terms = Tree(rounds).weights_of(np.arange(1, rounds + 1) if only is None else np.array([only]))
    nodes, where = np.unique(terms.levels << 40 | terms.indices, return_inverse=True)
    samples = DiscreteLaplace(scale).sample(coins.words(nodes >> 40, nodes & (1 << 40) - 1, integer_cells(runs)))
    parts = terms.weights[:, :, None] * samples[where.reshape(terms.weights.shape)]
    return np.ascontiguousarray(parts.sum(axis=1).T)


def exact_scale(rounds: int) -> Fraction:
    """What epsilon = 1 asks for: the number of nodes that one operation moves.

    >>> exact_scale(32)
    Fraction(9, 1)
    """
    return Tree(rounds).l1


def correct(truth: I64, runs: int, seeds: Seeds) -> Answers:
    return truth + tree_noise(len(truth), exact_scale(len(truth)), runs, seeds.coins())


def not_divided(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Every node is given the whole of epsilon."""
    return truth + tree_noise(len(truth), Fraction(1), runs, seeds.coins())


def divided_by_height(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Divided by the m levels of the tree, though an operation has two ends and moves 2m - 3 nodes."""
    return truth + tree_noise(len(truth), Fraction(Tree(len(truth)).height), runs, seeds.coins())


def renewed_rounds(rounds: int, runs: int, seeds: Seeds) -> Iterator[I64]:
    """Round after round of ``renewed``, runs x 1."""
    for r in range(rounds):
        yield tree_noise(rounds, exact_scale(rounds), runs, seeds.branch("round", r).coins(), only=r + 1)


def renewed(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Every round draws the noise of its nodes anew: the mean of many rounds has little of it."""
    return truth + np.concatenate(list(renewed_rounds(len(truth), runs, seeds)), axis=1)


def floating(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Laplace noise as floating-point numbers, whose last bits tell what was added to what."""
    rounds = len(truth)
    terms = Tree(rounds).weights_of(np.arange(1, rounds + 1))
    nodes, where = np.unique(terms.levels << 40 | terms.indices, return_inverse=True)
    samples = seeds.numpy().laplace(scale=float(exact_scale(rounds)), size=(len(nodes), runs))
    noise = np.zeros((rounds, runs))
    for column in range(terms.weights.shape[1]):
        places = where.reshape(terms.weights.shape)[:, column]
        noise += terms.weights[:, column, None] * samples[places]
    answers: F64 = (truth[:, None] + noise).T
    return answers


def keyed_by_data(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """The name of the noise has the count in it: other data, other noise."""
    out = np.empty((runs, len(truth)), dtype=np.int64)
    for count in np.unique(truth).tolist():
        noise = tree_noise(len(truth), exact_scale(len(truth)), runs, seeds.branch("count", count).coins())
        out[:, truth == count] = count + noise[:, truth == count]
    return out


def missing_at_powers(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Rounds that are powers of two have one node, and a slip in the loop leaves it out."""
    answers = correct(truth, runs, seeds)
    powers = [r - 1 for r in (1 << k for k in range(len(truth).bit_length())) if r <= len(truth)]
    answers[:, powers] = truth[powers]
    return answers


def scaled_by_count(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Relative noise: the more there is to count, the more of it."""
    return truth + (1 + truth) * tree_noise(len(truth), exact_scale(len(truth)), runs, seeds.coins())


def same_key_twice(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """Restored from a backup, the stream publishes again under the same key, while its first branch is known: here the
    first branch had none of the data."""
    return _branches(truth, runs, seeds, seeds)


def fresh_key(truth: I64, runs: int, seeds: Seeds) -> Answers:
    """As it should be after a restore."""
    return _branches(truth, runs, seeds, seeds.branch("restored"))


def _branches(truth: I64, runs: int, first: Seeds, second: Seeds) -> Answers:
    return np.concatenate([correct(np.zeros_like(truth), runs, first), correct(truth, runs, second)], axis=1)


LEAKING: dict[str, Counter] = {
    "epsilon not divided over the nodes": not_divided,
    "divided by m instead of 2m - 3": divided_by_height,
    "noise renewed in every round": renewed,
    "floating-point noise": floating,
    "noise keyed by the data": keyed_by_data,
    "the same key after a rollback": same_key_twice,
    "no noise at powers of two": missing_at_powers,
    "noise scaled by the count": scaled_by_count,
}
"""Every planted bug of a counter."""

SOUND: dict[str, Counter] = {"correct": correct, "a fresh key after a rollback": fresh_key}


def published(threshold: int, rounds: int, scale: Fraction, runs: int, seeds: Seeds, *, count: int) -> Mask:
    """Whether a key with so many records is ever published: its noisy count above the threshold in some round."""
    if not count:
        return np.zeros(runs, dtype=np.bool_)
    parts = []
    for start in range(0, runs, 1 << 16):
        noise = tree_noise(rounds, scale, min(1 << 16, runs - start), seeds.branch(start).coins())
        parts.append((count + noise > threshold).any(axis=1))
    return np.concatenate(parts)
