"""Back to a mark: what came after it never was, however it came and whatever was asked in between."""

import numpy as np
import pytest

from retroact.ledger import Ledger
from retroact.schema import Integer, Rows, Schema
from support.updates_by_hand import Updates

SCHEMA = Schema({"age": Integer(0, 120)})


def step(updates: Updates, random: np.random.Generator) -> None:
    """Something comes, or somebody looks."""
    kind, age = int(random.integers(8)), int(random.integers(5))
    rows, owners = Rows.from_tuples(SCHEMA, [(age,), (age + 1,)]), [f"u{age}", None]
    if kind == 0:
        updates.add_one((age,), 1, subject=f"u{age}")
    elif kind == 1:
        updates.add_one((age,), 1, f"id{age}", f"u{age}")
    elif kind == 2:
        updates.add(rows, 1, owners)
    elif kind == 3:
        updates.add(rows, 1, owners, [f"id{age}", "other"])
    elif kind == 4:
        updates.delete(rows, 1, f"u{age}")
    elif kind == 5:
        updates.delete_ids([f"id{age}"])
    elif kind == 6:
        updates.of_subjects([f"u{age}", "u0"])
    else:
        Ledger(SCHEMA).apply(1, updates)  # as a round that could not be closed


def outcome(updates: Updates):
    counted = updates.of_subjects([f"u{k}" for k in range(5)])
    ledger = Ledger(SCHEMA)
    ledger.apply(1, updates)
    return counted, ledger.state()


@pytest.mark.parametrize("seed", range(60))
def test_what_came_after_a_mark_never_was(seed):
    first, second = int(np.random.default_rng(seed).integers(12)), 8
    one, two = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 1])
    marked, never = Updates(SCHEMA), Updates(SCHEMA)
    for _ in range(first):
        step(marked, one)
        step(never, two)
    mark, length = marked.mark(), len(marked)
    for _ in range(second):
        step(marked, one)
    marked.go_back(mark)
    assert len(marked) == length
    for number in range(second):
        for updates in (marked, never):
            step(updates, np.random.default_rng([seed, 2, number]))
    assert outcome(marked) == outcome(never)
