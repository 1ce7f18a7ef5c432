"""What several rounds do to the surviving data, planned at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import msgspec
import numpy as np

from ..arrays import I64
from ..schema import Rows
from . import sorted_keys
from .erasures import Erasures
from .lives import SignedCopies, by_number, of_copies, of_ids
from .multiset import Multiset, MultisetEdit
from .operations import Operations
from .record_keys import RecordKeys
from .registers import RegisterEdit, Registers


class RoundCounts(msgspec.Struct, frozen=True):
    """The counts of one round, as a `Change` has them."""

    added: int
    removed: int
    ignored_deletions: int
    ignored_additions: int
    revises: bool
    """Whether it changes what was known of earlier rounds."""
    survived: list[int]
    """How many records each subject that it erases had before."""


class RoundChanges(msgspec.Struct, frozen=True, eq=False):
    """Signed copies, each with its round; and what all rounds do together."""

    rows: Rows
    """The records with their stamps."""
    weights: I64
    rounds: I64
    counts: list[RoundCounts]
    plain: MultisetEdit
    held: RegisterEdit


def plan(
    keys: RecordKeys, multiset: Multiset, registers: Registers, first: int, whole: Sequence[Operations]
) -> RoundChanges:
    """The effect of the rounds from `first` on, by their operations."""
    count = len(whole)
    timely = [batch.until(first + k) for k, batch in enumerate(whole)]
    batch = Operations.concatenate(timely)

    def rounds(size: Callable[[Operations], int]) -> I64:
        return np.repeat(np.arange(count), [size(each) for each in timely])

    added, placed = keys.additions(batch.added), keys.additions(batch.placed)
    keys.widen(first + count - 1, multiset, registers)
    deleted, known = keys.deletions(batch.deleted)
    deleted_in = rounds(lambda each: each.deleted.rows.count)
    codes = keys.subjects.find([*batch.erased, *batch.digests])
    erased_in = np.concatenate([rounds(lambda each: len(each.erased)), rounds(lambda each: len(each.digests))])
    there = codes > 0
    erasures = Erasures(keys.of_codes(codes[there]), codes[there], erased_in[there], count)

    added_in = rounds(lambda each: each.added.rows.count)
    plain, copies, unfound = of_copies(
        multiset, (keys.pack(added), batch.added.counts, added_in), (deleted, deleted_in[known]), erasures
    )
    rows = np.full(len(batch.ids), -1, dtype=np.int64)
    rows[batch.places] = np.arange(batch.placed.rows.count)
    placed_in = rounds(lambda each: len(each.ids))
    records, owners = keys.pack(placed), keys.layout.subjects
    held, events, empty = of_ids(registers, batch.ids, placed_in, rows, records, erasures, owners)

    when = np.concatenate([events.rounds, copies.rounds])
    order = by_number(when)  # by round, so that nobody has to sort after this
    moves = SignedCopies(
        sorted_keys.take(sorted_keys.concatenate(events.records, copies.records), order),
        np.concatenate([events.weights, copies.weights])[order],
        when[order],
    )
    found = keys.rows(moves.records)
    assert found.stamps is not None
    revises = (moves.weights < 0) | (found.stamps < first + moves.rounds)
    ignored = unfound + _by_round(deleted_in[~known], count) + _by_round(empty, count)
    gained = _by_round(moves.rounds, count, np.maximum(moves.weights, 0)).tolist()
    lost = _by_round(moves.rounds, count, np.maximum(-moves.weights, 0)).tolist()
    revising = _by_round(moves.rounds[revises], count).tolist()
    survived = _survived(keys, multiset, registers, codes, erased_in, erasures, moves)
    by_name, by_digest = iter(survived), iter(survived[sum(len(each.erased) for each in whole) :])
    counts = [
        RoundCounts(
            added=gained[k],
            removed=lost[k],
            ignored_deletions=int(ignored[k]),
            ignored_additions=each.records - timely[k].records,
            revises=revising[k] > 0,
            survived=[*islice(by_name, len(each.erased)), *islice(by_digest, len(each.digests))],
        )
        for k, each in enumerate(whole)
    ]
    return RoundChanges(found, moves.weights, first + moves.rounds, counts, plain, held)


def _survived(
    keys: RecordKeys,
    multiset: Multiset,
    registers: Registers,
    codes: I64,
    rounds: I64,
    erasures: Erasures,
    moves: SignedCopies,
) -> list[int]:
    """How many records the subject of each erasure had before its round."""
    if not len(codes):
        return []
    before = np.zeros(keys.subjects.size + 1, dtype=np.int64)  # the last one, -1, is for unknown subjects
    if erasures.erased is not None:
        theirs = np.flatnonzero(erasures.erased(multiset.words))
        owned = sorted_keys.take(multiset.words, theirs)
        np.add.at(before, erasures.erased.owners(owned), multiset.counts[theirs])
        slots = registers.belonging_to(erasures.erased)
        np.add.at(before, erasures.erased.owners(sorted_keys.take(registers.words, slots)), 1)
    gained = erasures.held_before(codes, rounds, moves.records, moves.weights, moves.rounds)
    return [int(each) for each in before[codes] + gained]


def _by_round(rounds: I64, count: int, numbers: I64 | None = None) -> I64:
    """Sums by round: how many, or of these numbers."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, rounds, 1 if numbers is None else numbers)
    return sums
