"""Decimal texts as whole numbers, many at once: eight digits in one word of 64 bits, added up in pairs."""

from __future__ import annotations

import numpy as np

from ..arrays import I64, U64, Mask
from .packed_texts import MASKS, PackedTexts

LONGEST = 24
"""Longer texts are left to others, as are those of more than DIGITS digits, with exponents, or with a plus."""
DIGITS = 18
_ZEROS, _POINTS, _ABOVE = (np.uint64(int(byte * 8, 16)) for byte in ("30", "1e", "76"))
"""A zero; a point less a zero; and what makes eight bits of all that is above nine."""
_ONES, _TOPS = (np.uint64(int(byte * 8, 16)) for byte in ("01", "80"))
_LATER = ~MASKS
_PAIRS, _FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


def decimals(texts: PackedTexts, *, points: bool = True) -> tuple[I64, I64, Mask]:
    """Units and places, so that a text is ``units / 10^places``; and for which texts this holds. Without ``points``, it
    does not hold for those that have one.

    >>> import numpy as np
    >>> texts = PackedTexts.of(b"12.50-3.5e0", np.array([0, 5, 7, 9, 11]), np.ones(4, bool))
    >>> units, places, clear = decimals(texts)
    >>> units[clear], places[clear], clear
    (array([1250,   -3,    5]), array([2, 0, 1]), array([ True,  True,  True, False]))
    """
    count = len(texts)
    negative = (texts.data[texts.starts] == ord("-")) & (texts.sizes > 0)
    sizes = texts.sizes - negative if negative.any() else texts.sizes
    longest = int(sizes.max(initial=0))
    clear: Mask = (sizes > 0) & (sizes <= LONGEST)
    ends = texts.starts + texts.sizes
    windows = np.ndarray((len(texts.data) - 7,), "<u8", buffer=texts.data, strides=(1,))
    words: list[U64] = []
    for after in range(8, min(longest, LONGEST) + 8, 8):
        # the values of the last eight digits and so on; what is before a text becomes zeros
        rest = after - sizes
        words.append((windows[ends - after] ^ _ZEROS) & _LATER[rest if longest <= 8 else np.clip(rest, 0, 8)])
    odd = [_are_no_digits(word) for word in words]
    places = np.zeros(count, np.int64)
    if points and any(some.any() for some in odd):
        fixed = _without_fixed_points(words[0]) if len(words) == 1 else None
        if fixed is not None:
            words, places, sizes = [fixed[0]], np.full(count, fixed[1]), sizes - 1
        else:
            places, pointed = _without_points(words)
            sizes = sizes - pointed
        clear &= sizes > 0
        odd = [_are_no_digits(word) for word in words]
    clear &= sizes <= DIGITS
    units = np.zeros(count, np.int64)
    for place, (word, wrong) in enumerate(zip(words, odd, strict=True)):
        clear &= wrong == 0
        # digits beyond the eighteenth are zeros in clear texts: what wraps around is in others
        units = units + _of_eight(word) * np.int64(10 ** (8 * place)) if place else _of_eight(word)
    return np.where(negative, -units, units) if negative.any() else units, places, clear


def _are_no_digits(word: U64) -> U64:
    return (word | word + _ABOVE) & _TOPS


def _without_fixed_points(word: U64) -> tuple[U64, int] | None:
    """The same if each text has its last point at one place of its only word; and after it nothing, if that is all
    zeros, as when whole numbers were written as floats."""
    first = int(word[0]).to_bytes(8, "little")
    place = first.rfind(b"\x1e")
    if place < 0 or ((word >> np.uint64(8 * place) & np.uint64(255)) != np.uint64(0x1E)).any():
        return None
    whole = word & MASKS[place]
    after = word & ~MASKS[place + 1]
    if not after.any():
        # two steps, since a shift by all bits is none
        return whole << np.uint64(8 * (7 - place)) << np.uint64(8), 0
    return after | whole << np.uint64(8), 7 - place


def _without_points(words: list[U64]) -> tuple[I64, Mask]:
    """Remove the last point of each text from its words, which come last first. Returns how many digits follow it, and
    whether there is one; a second point is no digit, and is found as such."""
    places, found = np.zeros(len(words[0]), np.int64), np.zeros(len(words[0]), np.bool_)
    for index, word in enumerate(words):
        point = (word ^ _POINTS) - _ONES & ~(word ^ _POINTS) & _TOPS
        here = (point != 0) & ~found
        # the lowest bit alone is sure: those above it may come from a borrow
        first = point & (~point + np.uint64(1))
        below = np.where(here, (first >> np.uint64(7)) - np.uint64(1), np.where(found, ~np.uint64(0), np.uint64(0)))
        above = np.where(here, ~(first | first - np.uint64(1)), np.where(found, np.uint64(0), ~np.uint64(0)))
        before = words[index + 1] >> np.uint64(56) if index + 1 < len(words) else np.uint64(0)
        moved = (word & below) << np.uint64(8) | before
        words[index] = np.where(here | found, word & above | moved, word)
        places += np.where(here, 8 * index + 7 - (np.bitwise_count(first - np.uint64(1)) >> 3).astype(np.int64), 0)
        found |= here
    return places, found


def _of_eight(word: U64) -> I64:
    """The number of eight digits, of which the first is the lowest byte."""
    pairs = word * np.uint64(10) + (word >> np.uint64(8)) & _PAIRS
    fours = pairs * np.uint64(100) + (pairs >> np.uint64(16)) & _FOURS
    eight = fours * np.uint64(10000) + (fours >> np.uint64(32)) & np.uint64(0xFFFFFFFF)
    return eight.view(np.int64)
