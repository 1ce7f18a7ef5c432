"""The lives of records over several rounds at once: in which round each begins to survive, and in which it ceases to.

A record with an id survives until the next round with an event on its id, or until its subject is erased. So the last
event of each round on an id decides, and one sort finds them all.

Copies of a record without an id are a walk that nothing takes below zero: c' = max(0, c + net) in every round with net
additions, since additions come first and a deletion that finds nothing has no effect. With the running sum S of all net
additions that is c = S - min(0, lowest S so far). *Proof*: by induction, with m the lowest of 0 and all S so far;
max(0, S - m + net) is S' - m where S' >= m, and 0 = S' - S' otherwise. An erasure sets c to 0 at the end of its round,
and a new walk begins there.

Rounds are counted from 0 here; what survives before them has begun in round -1.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ..arrays import I64, Mask, Words
from . import sorted_keys
from .erasures import Erasures
from .multiset import Multiset, MultisetEdit
from .registers import RegisterEdit, Registers
from .sorted_keys import take
from .subject_index import Owners


class SignedCopies(msgspec.Struct, frozen=True, eq=False):
    """Signed copies, each in a round."""

    records: Words
    weights: I64
    rounds: I64


def of_ids(
    registers: Registers,
    ids: Sequence[str | None],
    when: I64,
    rows: I64,
    records: Words,
    erasures: Erasures,
    owners: Owners,
) -> tuple[RegisterEdit, SignedCopies, I64]:
    """Event k, in round `when[k]`, puts record `rows[k]` under `ids[k]`, or empties it if that is -1; rounds ascend.
    Returns what all rounds do together, what each does, and the rounds of deletions that found nothing."""
    events, count = registers.find(ids), erasures.count
    order = by_number(events.slots)
    slot, begin, row = events.slots[order], when[order], rows[order]
    same_id = slot[1:] == slot[:-1]
    ends = np.append(~same_id | (begin[1:] != begin[:-1]), np.ones(min(1, len(slot)), dtype=np.bool_))
    last = np.flatnonzero(ends)
    first = _starts(slot)

    # records that survive from before, with an event or an erased subject
    met = slot[first & (slot < events.size)]
    theirs = np.zeros(0, dtype=np.int64) if erasures.erased is None else registers.belonging_to(erasures.erased)
    old_slots = np.concatenate([met, events.untouched(theirs)])
    old = take(registers.words, old_slots)
    old_until = erasures.first(old, np.zeros(len(old_slots), dtype=np.int64))
    old_until[: len(met)] = np.minimum(old_until[: len(met)], begin[first & (slot < events.size)])

    s, b, r = slot[last], begin[last], row[last]
    follows = s[1:] == s[:-1]
    until = b.copy()  # an event that deletes begins nothing
    placed = np.flatnonzero(r >= 0)
    until[placed] = np.append(np.where(follows, b[1:], count), count)[placed]
    own = take(records, r[placed])
    until[placed] = np.minimum(until[placed], erasures.first(own, b[placed]))

    # a record that is replaced by its equal neither goes nor comes
    gains, losses, old_losses = until > b, (until > b) & (until < count), old_until < count
    pairs = np.flatnonzero(follows & gains[:-1] & gains[1:] & (until[:-1] == b[1:]))
    pairs = pairs[~sorted_keys.differ(take(records, r[pairs]), take(records, r[pairs + 1]))]
    losses[pairs] = gains[pairs + 1] = False
    heads = np.flatnonzero(_starts(s) & (s < events.size))
    again = np.flatnonzero(gains[heads] & (old_until[: len(met)] == b[heads]))
    again = again[~sorted_keys.differ(take(old, again), take(records, r[heads[again]]))]
    old_losses[again] = gains[heads[again]] = False

    edges = np.append(~follows, np.ones(min(1, len(s)), dtype=np.bool_))
    left = np.where((until == count) & (until > b), r, -1)[edges]
    gone = old_slots[len(met) :]
    removed = np.concatenate([gone, s[edges][(left < 0) & (s[edges] < events.size)]])
    edit = registers.edit(events, order[last[edges]], left, removed, records, owners)
    moves = SignedCopies(
        sorted_keys.concatenate(take(records, r[gains]), take(old, old_losses), take(records, r[losses])),
        np.repeat(np.array([1, -1]), [int(gains.sum()), int(old_losses.sum()) + int(losses.sum())]),
        np.concatenate([b[gains], old_until[old_losses], until[losses]]),
    )
    held = np.full(events.limit, -1, dtype=np.int64)
    held[met] = old_until[: len(met)]
    return edit, moves, _ignored(slot, begin, row, first, np.cumsum(ends) - ends, until, held)


def _ignored(slot: I64, begin: I64, row: I64, first: Mask, number: I64, until: I64, held: I64) -> I64:
    """The rounds of deletions that found their id empty. `number` counts the rounds of each event's id, over all ids:
    up to the one before, which ended in `until`. `held`: when what an id held before is gone; -1 if it held nothing."""
    empties = np.flatnonzero(row < 0)
    before = empties - 1
    opens = first[empties]
    same = ~opens & (begin[empties] == begin[before])
    end = np.where(opens, held[slot[empties]], until[np.maximum(number[empties] - 1, 0)])
    was_empty = np.where(same, row[before] < 0, end < begin[empties])
    return begin[empties[was_empty]]


def of_copies(
    multiset: Multiset, added: tuple[Words, I64, I64], deleted: tuple[Words, I64], erasures: Erasures
) -> tuple[MultisetEdit, SignedCopies, I64]:
    """The same for records without id: additions with numbers of copies and rounds, and deletions with rounds.
    Returned last are the numbers of ignored deletions of every round."""
    count, ignored = erasures.count, np.zeros(erasures.count, dtype=np.int64)
    gone = np.zeros(0, dtype=np.int64)
    if erasures.erased is not None:
        gone = np.flatnonzero(erasures.erased(multiset.words))
    pool = sorted_keys.concatenate(added[0], deleted[0], take(multiset.words, gone))
    order = sorted_keys.order(pool)
    ordered = take(pool, order)
    starts = sorted_keys.starts(ordered)
    keys, number = take(ordered, starts), np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(starts) - 1
    at, found = sorted_keys.find(multiset.words, keys)
    before = np.zeros(len(found), dtype=np.int64)
    before[found] = multiset.counts[at[found]]

    # one row for each key and round, and one for what was there before
    which, resets = erasures.each(keys)
    plus, minus = len(added[1]), len(deleted[1])
    key = np.concatenate([np.arange(len(before)), number[: plus + minus], which])
    time = key * (count + 1)
    time[len(before) :] += np.concatenate([added[2], deleted[1], resets]) + 1
    net = np.concatenate([before, added[1], np.full(minus, -1), np.zeros(len(which), dtype=np.int64)])
    erased = np.zeros(len(key), dtype=np.bool_)
    erased[len(key) - len(which) :] = True
    ascending = np.argsort(time)
    begins = np.flatnonzero(_starts(time[ascending]))
    time, net = time[ascending][begins], np.add.reduceat(net[ascending], begins) if len(begins) else net
    erased = np.logical_or.reduceat(erased[ascending], begins) if len(begins) else erased
    key, when = time // (count + 1), time % (count + 1) - 1

    copies = _walked(key, net, erased)
    left = np.where(erased, 0, copies)
    previous = np.where(when < 0, 0, np.concatenate([[0], left])[:-1])
    np.add.at(ignored, when[when >= 0], (copies - previous - net)[when >= 0])
    moved = np.flatnonzero((when >= 0) & (left != previous))
    moves = SignedCopies(take(keys, key[moved]), (left - previous)[moved], when[moved])
    final = left[np.append(when[1:] < 0, np.ones(min(1, len(when)), dtype=np.bool_))]
    new, changed = ~found & (final > 0), found & (final != before)
    ahead = at[new]
    edit = MultisetEdit(
        take(keys, new), final[new], ahead[ahead < multiset.size], at[changed], final[changed], ignored=0
    )
    return edit, moves, ignored


def _walked(key: I64, net: I64, erased: Mask) -> I64:
    """The number of copies after each row, before an erasure in it."""
    opens = _starts(key)
    opens[1:] |= erased[:-1]
    walk = np.cumsum(opens) - 1
    total = np.cumsum(net)
    total -= (total - net)[opens][walk]
    # each walk is moved below the one before it, so that its lowest is not mistaken for another's
    reach = 2 * int(np.abs(total).max(initial=0)) + 2
    if reach * (len(walk) + 1) < 1 << 62:
        shift = walk * reach
        copies: I64 = total - np.minimum(np.minimum.accumulate(total - shift) + shift, 0)
        return copies
    shift = walk.astype(object) * reach
    lowest = np.minimum.accumulate(total.astype(object) - shift) + shift
    exact: I64 = (total - np.minimum(lowest, 0)).astype(np.int64)
    return exact


def by_number(slots: I64) -> I64:
    """The permutation that sorts by a small number, then by place: as one number, which is several times faster."""
    bits = max(1, len(slots).bit_length())
    if int(slots.max(initial=0)) >= 1 << (62 - bits):
        return np.argsort(slots, kind="stable")
    numbers = (slots << bits) | np.arange(len(slots))
    numbers.sort()
    return numbers & ((1 << bits) - 1)


def _starts(values: I64) -> Mask:
    """Where a run of equal values begins."""
    found = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
