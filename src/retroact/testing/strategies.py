"""Hypothesis strategies for histories that unite and histories that are neighbours (extra: ``retroact[testing]``).

>>> from hypothesis import Phase, find, settings
>>> shape = Shape(values=("a", "b"), rounds=4)
>>> first = settings(database=None, derandomize=True, phases=[Phase.generate])
>>> pair = find(uniting_pairs(shape), lambda pair: pair.unite > 1, settings=first)
>>> unite_at(pair.one, pair.other) == pair.unite
True
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update, neighbouring, unite_at
from .families import FAMILIES
from .histories import Pair, Shape

__all__ = ["Pair", "Shape", "histories", "neighbouring_pairs", "unite_at", "uniting_pairs", "updates"]


def updates(shape: Shape, round: int) -> st.SearchStrategy[Update]:
    """One update of a round, of any kind, whether it finds anything or not."""
    values = st.sampled_from(shape.values)
    stamps = st.integers(1, shape.rounds)
    subjects = st.sampled_from([None, *(f"s{i}" for i in range(shape.subjects))])
    ids = st.sampled_from([None, None, *(f"id{i}" for i in range(shape.ids))])
    late = st.one_of(st.none(), st.integers(1, round + 1)) if shape.late else st.none()
    kinds: list[st.SearchStrategy[Update]] = [
        st.builds(Add, values, late, ids, subjects),
        st.builds(Delete, values, stamps, subjects),
    ]
    if shape.ids:
        kinds.append(st.builds(DeleteId, st.sampled_from([f"id{i}" for i in range(shape.ids)])))
    if shape.subjects:
        kinds.append(st.builds(Erase, st.sampled_from([f"s{i}" for i in range(shape.subjects)])))
    return st.one_of(kinds)


def histories(shape: Shape) -> st.SearchStrategy[Sequence]:
    return st.tuples(
        *(st.lists(updates(shape, round), max_size=shape.updates).map(tuple) for round in range(1, shape.rounds + 1))
    )


@st.composite
def uniting_pairs(draw: st.DrawFn, shape: Shape) -> Pair:
    """A history, and another one that a family makes from it, which leaves no other trace from some round on."""
    family = draw(st.sampled_from(list(FAMILIES.values())))
    base, other = family.change(draw(histories(shape)), shape, draw(st.randoms(use_true_random=False)))
    unite = unite_at(base, other)
    if unite is None:
        # Whatever does not unite by itself unites where both lose everything.
        wipe: tuple[Update, ...] = tuple(_everything(base, other))
        base, other = (*base[:-1], (*base[-1], *wipe)), (*other[:-1], (*other[-1], *wipe))
        unite = unite_at(base, other)
    if unite is None:
        return Pair(base, base, 1)
    return Pair(base, other, unite)


@st.composite
def neighbouring_pairs(draw: st.DrawFn, shape: Shape) -> tuple[Sequence, Sequence]:
    """A history, and the same with one addition or deletion by value inserted."""
    base = draw(histories(shape))
    round = draw(st.integers(1, shape.rounds))
    extra = draw(updates(replace(shape, ids=0, subjects=0), round))
    other = (*base[: round - 1], (*base[round - 1], extra), *base[round:])
    assert neighbouring(base, other)
    return base, other


def _everything(*sequences: Sequence) -> list[Update]:
    """Deletions of all that any of the histories could hold."""
    out: list[Update] = []
    for sequence in sequences:
        for round, given in enumerate(sequence, 1):
            for update in given:
                if isinstance(update, Add):
                    gone = Delete(update.value, update.stamp or round, update.subject)
                    out.append(gone if update.id is None else DeleteId(update.id))
    return out
