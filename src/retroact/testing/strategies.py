"""Hypothesis strategies for the histories and pairs of the seeded generators (extra: ``retroact[testing]``).

Hypothesis makes every random choice of the generator itself, so a failure shrinks to a short history.

>>> from hypothesis import Phase, find, settings
>>> from retroact.ledger.definition import unite_at
>>> shape = Shape(values=("a", "b"), rounds=4)
>>> first = settings(database=None, derandomize=True, phases=[Phase.generate])
>>> pair = find(uniting_pairs(shape), lambda pair: pair.unite > 1, settings=first)
>>> unite_at(pair.one, pair.other) == pair.unite
True
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hypothesis import strategies as st

from ..ledger.definition import Sequence
from . import families
from . import histories as generated
from .histories import Pair, Shape


def histories(shape: Shape) -> st.SearchStrategy[Sequence]:
    """Histories of any kind of update, whether it finds anything or not."""
    return st.randoms(use_true_random=False).map(partial(generated.history, shape))


def uniting_pairs(shape: Shape) -> st.SearchStrategy[Pair]:
    """Two histories with the same surviving data from some round on."""
    return st.randoms(use_true_random=False).map(lambda random: next(families.uniting_pairs(shape, random, 1)))


def neighbouring_pairs(shape: Shape) -> st.SearchStrategy[tuple[Sequence, Sequence]]:
    """A history without ids, and the same with one more addition or deletion: with ids, the simplest choice would be to
    replace a record, which is two operations."""
    bare = replace(shape, ids=0)
    return st.randoms(use_true_random=False).map(lambda random: next(generated.neighbouring_pairs(bare, random, 1)))
