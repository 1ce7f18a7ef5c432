"""Equal records of a batch are kept once, with their number, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import retroact as ra
from retroact.ledger import Ledger, Stamped
from retroact.ledger import updates as folding
from support.updates_by_hand import Updates

SCHEMA = ra.Schema(
    {
        "country": ra.Text(),
        "amount": ra.Integer(-(2**62), 2**62),
        "at": ra.Vector(2, radius=4, step=1),
        "age": ra.Integer(0, 120, missing="skip"),
    }
)
COUNT = 6000


def batch(different: int, seed: int):
    """Records, stamps and subjects of which few are different."""
    random = np.random.default_rng(seed)
    which = random.integers(0, different, COUNT)
    rows, _ = SCHEMA.encode(
        {
            "country": [f"c{k % 3}" for k in which],
            "amount": [(-1) ** int(k) * 2**62 for k in which],
            "at": [[k % 2, -1] for k in which],
            "age": [None if k % 5 == 0 else int(k % 5) for k in which],
        }
    )
    subjects = [None if k % 4 == 0 else f"s{k % 4}" for k in which]
    return rows, random.integers(1, 4, COUNT), subjects


def applied(*batches, deletions=()):
    ledger = Ledger(SCHEMA)
    updates = Updates(SCHEMA)
    for rows, stamps, subjects in batches:
        updates.add(rows, stamps, subjects)
    for rows, stamps, subjects in deletions:
        updates.delete(rows, stamps, subjects)
    operations, added = len(updates), updates.whole().added
    held = added.rows.count if added else 0
    change = ledger.apply(2, updates)
    return (operations, ledger.state(), change.added, change.removed, change.ignored_additions,
            change.ignored_deletions), held  # fmt: skip


@pytest.mark.parametrize("different", [1, 2, 5])
@pytest.mark.parametrize("owned", ["each", "one", "nobody"])
def test_folded_batches_give_the_ledger_of_whole_ones(different, owned, monkeypatch):
    batches = [
        (rows, stamps, subjects if owned == "each" else "u" if owned == "one" else None)
        for rows, stamps, subjects in (batch(different, seed) for seed in range(3))
    ]
    found, held = applied(*batches, deletions=batches[:1])
    assert held < COUNT / 10, "equal records are kept once"
    monkeypatch.setattr(folding, "_SMALLEST", 10**9)
    whole, all_of_them = applied(*batches, deletions=batches[:1])
    assert all_of_them == 3 * COUNT
    assert found == whole


def test_records_that_differ_are_left_as_they_are():
    rows, stamps, subjects = batch(5, 1)
    rows.columns["amount"][:] = np.arange(COUNT)
    assert folding.folded(Stamped(rows, stamps, subjects)).copies is None


def test_those_who_wait_are_counted_with_their_copies():
    updates = Updates(SCHEMA)
    rows, stamps, subjects = batch(2, 3)
    updates.add(rows, stamps, subjects)
    assert updates.of_subjects(["s1"]) == [sum(subject == "s1" for subject in subjects)]
    assert len(updates) == COUNT


def test_a_refused_batch_takes_back_what_was_folded():
    updates = Updates(SCHEMA)
    updates.add(*batch(2, 3))
    mark = updates.mark()
    updates.add(*batch(2, 4))
    updates.go_back(mark)
    assert len(updates) == COUNT
