"""What perfect retraining gives away: five attacks on releases that are computed anew, exactly, after every deletion.

Retraining after a deletion is perfectly retroactive and not private. What a deletion changes shows the deleted record;
and a deletion that triggers a new release helps to see everybody else. The same attacks are led against streams.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reconstruction import decode_squares
from retroact.audit import Seeds
from retroact.audit.counting_attack import random_bits
from retroact.audit.decoding import F64, Bits, fraction_right
from retroact.privacy import check_budget, largest_mu
from retroact.schema import Integer
from retroact.statistics import LinearQuery
from retroact.stream import HorizonWarning, Stream

Columns = Mapping[str, npt.NDArray[Any]]
Integers = npt.NDArray[np.int64]

BITS = 20
# Features and targets are whole numbers of this many to 1.
SCALE = 100
FEATURES = 8
RIDGE = 1.0


@dataclass(frozen=True)
class Differenced:
    """Deleted records of so many yes/no answers, worked out from the table of counts before and after each deletion:
    the fraction of answers that are right, and how many records are right in all of them."""

    deletions: int
    answers: int
    retrained: float
    retrained_records: int
    stream: float
    stream_records: int


def difference_counts(
    seeds: Seeds, *, records: int = 1000, deletions: int = 40, epsilon: float = 1.0, delta: float = 1e-6
) -> Differenced:
    """One record is deleted in every round; the table says for each question how many more said yes than no.

    >>> found = difference_counts(Seeds(1), records=200, deletions=10)
    >>> found.retrained, found.retrained_records, found.stream_records
    (1.0, 10, 0)
    """
    tables = count_tables(seeds, records=records, deletions=deletions, epsilon=epsilon, delta=delta)
    # A yes that goes lowers the count, a no raises it.
    right = [(np.diff(table, axis=0) < 0) == (tables.deleted > 0) for table in (tables.exact, tables.published)]
    return Differenced(
        deletions,
        BITS,
        float(right[0].mean()),
        int(right[0].all(axis=1).sum()),
        float(right[1].mean()),
        int(right[1].all(axis=1).sum()),
    )


class Tables(NamedTuple):
    """The deleted records (1 for yes, -1 for no), and the tables before and after each deletion: exact, and as a stream
    publishes them."""

    deleted: Integers
    exact: F64
    published: F64


def count_tables(seeds: Seeds, *, records: int, deletions: int, epsilon: float, delta: float) -> Tables:
    codes = seeds.branch("records").numpy().integers(0, 1 << BITS, records)
    size = math.isqrt(BITS - 1) + 1
    query = LinearQuery(_signs, size=BITS, norm1=BITS, norm2=size, name="yes less no")
    stream = Stream(
        {"code": Integer(0, (1 << BITS) - 1)},
        {"table": query},
        epsilon=epsilon,
        delta=delta,
        horizon=deletions + 1,
        key=seeds.key(),
    )
    published = _published(stream, {"code": codes}, [{"code": code} for code in codes[:deletions].tolist()])
    signs = _signs({"code": codes})
    exact = signs.sum(axis=0) - np.concatenate([np.zeros((1, BITS)), np.cumsum(signs[:deletions], axis=0)])
    return Tables(signs[:deletions], exact, published)


@dataclass(frozen=True)
class Inverted:
    """A record that was deleted from a linear model, worked out from the model before and after: averages over
    deletions of the cosine between the true and the found features (1: found, 0: nothing), and of how far the found
    target is off; and how far each model predicts off, which is what it is published for."""

    deletions: int
    cosine: float
    target_off: float
    stream_cosine: float
    stream_target_off: float
    model_error: float
    stream_model_error: float


def invert_ridge(
    seeds: Seeds, *, records: int = 10_000, deletions: int = 20, epsilon: float = 1.0, delta: float = 1e-6
) -> Inverted:
    """A'(w0 - w1) = x (y - x w0) for the weights w0 and w1 before and after the deletion of (x, y), where A' is
    X'ᵀX' + λ of what is left; a public sample stands in for it. The first feature is 1, so the rest follows.

    >>> found = invert_ridge(Seeds(1), records=2000, deletions=5)
    >>> found.cosine > 0.95, found.stream_cosine < 0.8
    (True, True)
    """
    true = seeds.branch("model").numpy().uniform(-0.5, 0.5, FEATURES)
    own, public, fresh = (_sample(records, true, seeds.branch("sample", i)) for i in range(3))
    names = [f"x{i}" for i in range(FEATURES)] + ["y"]
    size = (FEATURES + 2) * SCALE**2
    query = LinearQuery(
        _products, size=(FEATURES + 2) * (FEATURES + 3) // 2, norm2=size, name="products of features and target"
    )
    stream = Stream(
        dict.fromkeys(names, Integer(-SCALE, SCALE)),
        {"moments": query},
        epsilon=epsilon,
        delta=delta,
        horizon=deletions + 1,
        key=seeds.key(),
    )
    gone = [dict(zip(names, row, strict=True)) for row in own[:deletions].tolist()]
    published = [_weights(moments) for moments in _published(stream, dict(zip(names, own.T, strict=True)), gone)]
    exact = [_weights(_products(_named(own[count:])).sum(axis=0)) for count in range(deletions + 1)]
    found = [
        np.mean([_invert(models[i], models[i + 1], public, own[i]) for i in range(deletions)], axis=0)
        for models in (exact, published)
    ]
    errors = [_prediction_error(models[0], fresh) for models in (exact, published)]
    (cosine, off), (stream_cosine, stream_off) = (pair.tolist() for pair in found)
    return Inverted(deletions, cosine, off, stream_cosine, stream_off, errors[0], errors[1])


def read_by_median(seeds: Seeds, *, records: int = 101, own: int = 30) -> int:
    """How many undeleted values the exact medians show while the attacker deletes points of their own from one end.

    >>> read_by_median(Seeds(1))
    16
    """
    values = np.unique(seeds.numpy().integers(0, 10**9, 2 * records))[:records].astype(np.float64)
    shown = set()
    for left in range(own, -1, -1):
        data = np.concatenate([values, np.full(left, np.inf)])
        if len(data) % 2:
            shown.add(float(np.median(data)))
    return len(shown & set(values.tolist()))


@dataclass(frozen=True)
class Averaged:
    """After so many deletions of the attacker's own records: the fraction of the others' secret bits recovered when
    every release has fresh noise, when the first noise is kept, and from a stream."""

    deletions: int
    fresh: float
    kept: float
    stream: float


def average_releases(
    seeds: Seeds,
    *,
    n: int = 64,
    deletions: Sequence[int] = (0, 4, 16, 64, 128),
    epsilon: float = 1.0,
    delta: float = 1e-6,
    repeats: int = 1,
) -> list[Averaged]:
    """Every deletion triggers a release of 2n random queries on n secret bits; each release alone, and the stream as a
    whole, is (epsilon, delta)-private. The attacker averages.

    >>> [row.deletions for row in average_releases(Seeds(1), n=16, deletions=(0, 8))]
    [0, 8]
    """
    last = max(deletions)
    found = np.zeros((len(deletions), 3))
    for repeat in range(repeats):
        own = seeds.branch("average", repeat)
        queries = own.branch("queries").numpy().choice([-1, 1], (2 * n, n))
        secret = random_bits(n, own.branch("secret"))
        deviation = math.sqrt(2 * n) / float(largest_mu(*check_budget(epsilon, delta)))
        noise = own.branch("noise").numpy().normal(0, deviation, (last + 1, 2 * n))
        exact = queries @ secret
        ways = (
            exact + noise,
            np.tile(exact + noise[0], (last + 1, 1)),
            _streamed(queries, secret, last, own, epsilon, delta),
        )
        for row, count in enumerate(deletions):
            means = [releases[: count + 1].mean(axis=0) for releases in ways]
            found[row] += [fraction_right(decode_squares(queries, mean), secret) / repeats for mean in means]
    return [Averaged(count, *row) for count, row in zip(deletions, found.tolist(), strict=True)]


def choose_queries(
    seeds: Seeds, *, n: int = 100, deletions: Sequence[int] = (50, 100, 200, 400), epsilon: float = 1.0
) -> list[tuple[int, float]]:
    """The released model answers one query, and the number of the attacker's records that are left chooses which: every
    deletion asks another one. Each release alone is epsilon-private (Laplace noise).

    >>> choose_queries(Seeds(1), n=20, deletions=(200,))
    [(200, 1.0)]
    """
    random = seeds.numpy()
    secret = random_bits(n, seeds.branch("secret"))
    queries = random.choice([-1, 1], (max(deletions) + 1, n))
    answers = queries @ secret + random.laplace(scale=1 / epsilon, size=len(queries))
    return [
        (count, fraction_right(decode_squares(queries[: count + 1], answers[: count + 1]), secret))
        for count in deletions
    ]


def _signs(columns: Columns) -> Integers:
    """1 for yes and -1 for no, question by question."""
    codes: Integers = columns["code"][:, None]
    return 2 * (codes >> np.arange(BITS) & 1) - 1


def _named(sample: Integers) -> Columns:
    return {**{f"x{i}": sample[:, i] for i in range(FEATURES)}, "y": sample[:, -1]}


def _products(columns: Columns) -> Integers:
    """Of every two of the constant, the features and the target."""
    own = [columns[f"x{i}"] for i in range(FEATURES)]
    z = np.stack([np.full_like(columns["y"], SCALE), *own, columns["y"]], axis=1)
    a, b = np.triu_indices(FEATURES + 2)
    products: Integers = z[:, a] * z[:, b]
    return products


def _sample(records: int, true: F64, seeds: Seeds) -> Integers:
    random = seeds.numpy()
    x = random.uniform(-1, 1, (records, FEATURES))
    y = np.clip(x @ true + random.normal(0, 0.2, records), -1, 1)
    return np.rint(SCALE * np.column_stack([x, y])).astype(np.int64)


def _weights(products: npt.NDArray[Any]) -> F64:
    """Ridge regression from the sums of products."""
    square = np.zeros((FEATURES + 2, FEATURES + 2))
    square[np.triu_indices(FEATURES + 2)] = products / SCALE**2
    square += np.triu(square, 1).T
    return np.asarray(np.linalg.solve(square[:-1, :-1] + RIDGE * np.eye(FEATURES + 1), square[:-1, -1]))


def _with_constant(sample: npt.NDArray[Any]) -> F64:
    x: F64 = np.atleast_2d(sample)[:, :-1] / SCALE
    return np.column_stack([np.ones(len(x)), x])


def _invert(before: F64, after: F64, public: Integers, deleted: Integers) -> tuple[float, float]:
    """The cosine of the found features with the true ones, and how far the found target is off."""
    features = _with_constant(public)
    moved = (features.T @ features + RIDGE * np.eye(FEATURES + 1)) @ (before - after)
    x = moved / moved[0]
    y = moved[0] + x @ before
    true = _with_constant(deleted)[0]
    cosine = float(x[1:] @ true[1:] / (np.linalg.norm(x[1:]) * np.linalg.norm(true[1:])))
    return cosine, abs(float(y) - deleted[-1] / SCALE)


def _prediction_error(weights: F64, sample: Integers) -> float:
    return float(np.sqrt(np.mean((_with_constant(sample) @ weights - sample[:, -1] / SCALE) ** 2)))


def _streamed(queries: Integers, secret: Bits, last: int, seeds: Seeds, epsilon: float, delta: float) -> F64:
    """The same queries published by a stream in every round; the attacker's records, n and beyond, add nothing."""
    many, n = queries.shape
    matrix = np.concatenate([queries.T, np.zeros((1, many), dtype=np.int64)])

    def columns_of(columns: Columns) -> Integers:
        return matrix[np.minimum(columns["row"], n)]

    norm = math.isqrt(many - 1) + 1
    query = LinearQuery(columns_of, size=many, norm1=many, norm2=norm, name="random queries")
    stream = Stream(
        {"row": Integer(0, n + last)},
        {"answers": query},
        epsilon=epsilon,
        delta=delta,
        horizon=last + 1,
        key=seeds.key(),
    )
    rows = np.concatenate([np.flatnonzero(secret), np.arange(n, n + last)])
    return _published(stream, {"row": rows}, [{"row": row} for row in range(n, n + last)])


def _published(stream: Stream, records: Columns, gone: Sequence[Mapping[str, Any]]) -> F64:
    """What the one statistic of a stream says after the first round, and after each deletion, one a round."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HorizonWarning)
        stream.add(records)
        out = [*stream.close_round().values()]
        for record in gone:
            stream.delete(record, stamp=1)
            out += stream.close_round().values()
    return np.array([release.value for release in out])
