"""Where records are there is no key: a bound travels, gathers, and sums what many rounds do at once."""

from __future__ import annotations

import pickle
import warnings
from random import Random

import numpy as np

from ..coins import Coins
from ..errors import VerificationError
from ..schema import Rows
from ..statistics.bound import Bound
from ..stream import Specification
from .histories import values_of
from .records import Record, rows_of

ROUNDS = 5


def check_gathering(spec: Specification, random: Random, *, changes: int = 40) -> None:
    """What a bound gathers of many rounds at once is what it gathers of each; a bound that was pickled, with what was
    drawn and without the key, gathers the same; and what was added and taken off again leaves nothing."""
    values = list(values_of(spec.schema, random, whole=True))
    records = [
        Record(dict(zip(spec.schema.fields, random.choice(values), strict=True)), random.randint(1, ROUNDS), 1)  # type: ignore[call-overload]
        for _ in range(changes)
    ]
    rows, _ = rows_of(spec.schema, records)
    weights = np.array([random.choice([-1, 1, 2]) for _ in records], dtype=np.int64)
    rounds = np.array([random.randint(1, ROUNDS) for _ in records], dtype=np.int64)
    for name, bound in spec.bounds.items():
        drawn = bound.drawn(Coins(bytes(32)))
        _check_rounds(name, drawn, rows, weights, rounds)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of modules that pickle looks through for a function
                sent = pickle.dumps(drawn)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            continue  # a function of the user's own or of a C library that cannot travel
        if _shown(pickle.loads(sent), rows, weights) != _shown(drawn, rows, weights):
            raise VerificationError(f"gathering of {name}: a bound that was pickled gathers something else")


def _check_rounds(name: str, bound: Bound, rows: Rows, weights: np.ndarray, rounds: np.ndarray) -> None:
    found = bound.gather_by(rows, weights, rounds)
    if sorted(found) != sorted(set(rounds.tolist())):
        raise VerificationError(f"gathering of {name}: expected the rounds that change, got {sorted(found)}")
    for round, totals in found.items():
        where = np.flatnonzero(rounds == round)
        if bound.coordinates(totals) != _shown(bound, rows.take(where), weights[where]):
            raise VerificationError(f"gathering of {name}: round {round} is not what is gathered of it alone")
    whole = bound.gather(rows, weights)
    if bound.coordinates(whole - whole):
        raise VerificationError(f"gathering of {name}: what was added and taken off again leaves something")


def _shown(bound: Bound, rows: Rows, weights: np.ndarray) -> dict[object, int]:
    return dict(bound.coordinates(bound.gather(rows, weights)))
