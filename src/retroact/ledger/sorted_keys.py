"""Sorted arrays of keys of one or more 64-bit words, most significant first; and edits of sorted arrays."""

from __future__ import annotations

import numpy as np

from ..arrays import I64, U64, AnyArray, Mask, Words

_WORD = 64
# up to this many keys are searched one by one
_FEW = 8
# an array is rewritten in slices if there is at most one edit for this many entries
_FEW_EDITS = 256


def take(words: Words, where: I64 | Mask | slice) -> Words:
    return tuple(word[where] for word in words)


def concatenate(*parts: Words) -> Words:
    filled = [part for part in parts if len(part[0])] or list(parts[:1])
    return filled[0] if len(filled) == 1 else tuple(np.concatenate(word) for word in zip(*filled, strict=True))


def order(words: Words) -> I64:
    """The permutation that sorts the keys; equal keys in any order.

    As many words as fit are squeezed into one, and only keys that it leaves tied are compared further: one unstable
    argsort of 64-bit integers, which numpy vectorises, is several times faster than the stable sorts of `np.lexsort`.
    """
    key, bits = _squeezed(words[0])
    rest = words[1:]
    while rest:
        low, low_bits = _squeezed(rest[0])
        if bits + low_bits > _WORD:
            break
        key, bits, rest = (key << np.uint64(low_bits)) | low, bits + low_bits, rest[1:]
    ascending = np.argsort(key)
    if rest:
        run, where = ties((key[ascending],))
        if len(where):
            members = ascending[where]
            ranks, rank_bits = _ranks(rest[0][members])
            # a run has at least two keys, and ranks are below the number of keys: 2^32 keys fit
            if int(run[-1]).bit_length() + rank_bits > _WORD:
                raise OverflowError(f"expected at most 2^32 keys, got {len(ascending):,}")
            refined = (run.view(np.uint64) << np.uint64(rank_bits)) | ranks
            ascending[where] = members[order((refined, *take(rest[1:], members)))]
    return ascending


def ties(ordered: Words) -> tuple[I64, I64]:
    """The positions of sorted keys with an equal neighbour; before them, the number of the run that each is in."""
    begins = starts(ordered)
    tied = ~begins
    tied[:-1] |= tied[1:]
    where = np.flatnonzero(tied)
    return np.cumsum(begins[where], dtype=np.int64), where


def starts(ordered: Words) -> Mask:
    """Where a run of equal sorted keys begins."""
    begins = np.ones(len(ordered[0]), dtype=np.bool_)
    if len(begins):
        np.not_equal(ordered[0][1:], ordered[0][:-1], out=begins[1:])
        for word in ordered[1:]:
            begins[1:] |= word[1:] != word[:-1]
    return begins


def differ(one: Words, other: Words) -> Mask:
    """Which keys differ from those at the same places."""
    found = np.zeros(len(one[0]), dtype=np.bool_)
    for word, others in zip(one, other, strict=True):
        found |= word != others
    return found


def unique(words: Words, copies: I64 | None = None) -> tuple[Words, I64]:
    """The distinct keys in order, and how often each occurs. Keys of one word are sorted in place."""
    if copies is not None:
        ascending = order(words)
        words = take(words, ascending)
        begins = starts(words)
        return take(words, begins), np.add.reduceat(copies[ascending], np.flatnonzero(begins))
    if len(words) == 1:
        words[0].sort()
    else:
        words = take(words, order(words))
    begins = starts(words)
    repeats = np.flatnonzero(~begins)
    counts = np.ones(len(begins) - len(repeats), dtype=np.int64)
    if len(repeats):
        words = take(words, begins)
        # up to the k-th repeat there are k of them, and it belongs to the key that began last
        np.add.at(counts, repeats - np.arange(1, len(repeats) + 1), 1)
    return words, counts


def find(keys: Words, wanted: Words) -> tuple[I64, Mask]:
    """The position of the first key that is not below each wanted key, and whether it is equal. Both are sorted."""
    length, count = len(keys[0]), len(wanted[0])
    at, found = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    if length == 0 or count == 0:
        return at, found
    # most rounds add after all keys, or delete among them: usually one of the two ends is everything
    start = _search(wanted, take(keys, slice(1)))[0]
    stop = _search(wanted, take(keys, slice(length - 1, length)), right=True)[0]
    at[stop:] = length
    inside = take(wanted, slice(start, stop))
    at[start:stop] = _search(keys, inside)
    found[start:stop] = True
    for word, target in zip(keys, inside, strict=True):
        found[start:stop] &= word[at[start:stop]] == target
    return at, found


def not_above(keys: Words, limit: Words) -> int:
    """How many of the sorted keys are at most the limit; 0 if there is none."""
    return int(_search(keys, limit, right=True)[0]) if len(limit[0]) else 0


def edited(old: AnyArray, gone: I64, at: I64, new: AnyArray) -> AnyArray:
    """`old` without the positions `gone`, and with `new` in front of the sorted positions `at`.

    >>> edited(np.array([1, 3, 4, 7]), np.array([2]), np.array([1, 4]), np.array([2, 9])).tolist()
    [1, 2, 3, 7, 9]
    """
    if not len(gone) and not len(at):
        return old
    out = np.empty((len(old) - len(gone) + len(new), *old.shape[1:]), dtype=old.dtype)
    write_edited(old, gone, at, new, out)
    return out


def write_edited(old: AnyArray, gone: I64, at: I64, new: AnyArray, out: AnyArray) -> None:
    """The same written to `out`; the rest of `new` goes to the end."""
    if _FEW_EDITS * (len(gone) + len(at)) < len(old):
        np.concatenate(_pieces(old, gone, at, new), out=out)
        return
    kept = np.ones(len(old), dtype=np.bool_)
    kept[gone] = False
    old = old[kept]
    inner = out[: len(old) + len(at)]
    if len(at):
        places = at - np.searchsorted(gone, at) + np.arange(len(at))
        free = np.ones(len(inner), dtype=np.bool_)
        free[places] = False
        inner[free] = old
        inner[places] = new[: len(at)]
    else:
        inner[:] = old
    out[len(inner) :] = new[len(at) :]


def _search(keys: Words, wanted: Words, *, right: bool = False) -> I64:
    """`np.searchsorted` for keys of several words."""
    if len(keys) == 1:
        return np.searchsorted(keys[0], wanted[0], side="right" if right else "left")
    if len(wanted[0]) <= _FEW:
        return np.array([_place(keys, key, right) for key in zip(*wanted, strict=True)], dtype=np.int64)
    low, high = np.searchsorted(keys[0], wanted[0]), np.searchsorted(keys[0], wanted[0], side="right")
    for word, target in zip(keys[1:-1], wanted[1:-1], strict=True):
        low, high = _bisect(word, target, low, high), _bisect(word, target, low, high, right=True)
    return _bisect(keys[-1], wanted[-1], low, high, right=right)


def _place(keys: Words, key: tuple[np.uint64, ...], right: bool) -> int:
    low, high = 0, len(keys[0])
    for word, target in zip(keys[:-1], key[:-1], strict=True):
        part = word[low:high]
        low, high = low + int(part.searchsorted(target)), low + int(part.searchsorted(target, side="right"))
    return low + int(keys[-1][low:high].searchsorted(key[-1], side="right" if right else "left"))


def _bisect(word: U64, target: U64, low: I64, high: I64, *, right: bool = False) -> I64:
    """`searchsorted` with a separate range for each target."""
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        seen, sought = word[middle], target[open_]
        above = seen <= sought if right else seen < sought
        low[open_[above]] = middle[above] + 1
        high[open_[~above]] = middle[~above]
        open_ = open_[low[open_] < high[open_]]
    return low


def _squeezed(word: U64) -> tuple[U64, int]:
    """The word minus its minimum, and the bits that takes."""
    if len(word) == 0:
        return word, 0
    lowest = word.min()
    return word - lowest, int(word.max() - lowest).bit_length()


def _ranks(word: U64) -> tuple[U64, int]:
    """The dense ranks of the values, and the bits they take."""
    ascending = np.argsort(word)
    rank = np.cumsum(starts((word[ascending],)), dtype=np.uint64) - np.uint64(1)
    ranks = np.empty_like(word)
    ranks[ascending] = rank
    return ranks, int(rank[-1]).bit_length()


def _pieces(old: AnyArray, gone: I64, at: I64, new: AnyArray) -> list[AnyArray]:
    """The edited array in slices, which are cheaper than masks if there are few."""
    pieces: list[AnyArray] = []
    start = 0
    # at the same position, insertions come first
    edits = [(position, 0, k) for k, position in enumerate(at.tolist())]
    edits += [(position, 1, 0) for position in gone.tolist()]
    for position, removes, k in sorted(edits):
        pieces.append(old[start:position])
        if not removes:
            pieces.append(new[k : k + 1])
        start = position + removes
    pieces += [old[start:], new[len(at) :]]
    return pieces
