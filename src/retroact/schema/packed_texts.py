"""Texts that still lie in the bytes they came in, as a CSV file or an Arrow buffer has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, U64, Mask
from ..texts import ABSENT, Texts, places_of
from .packed import Coded, EncodedColumn, Packed

if TYPE_CHECKING:
    from .field import Field

_LONGEST = 64
"""Longer texts are not looked up in a dictionary."""
PAD = _LONGEST + 8
"""How many bytes there are before the first text and after the last, so that words can be read across its ends."""
_FEW = 0.25
"""A dictionary pays if it has at most this share of distinct words."""
_TRIALS = 4
MASKS: U64 = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SEPARATORS = (b"\n", b"\0", b"\x1f")


class PackedTexts(Packed):
    """Text k has ``sizes[k]`` bytes of UTF-8 from ``starts[k]`` on; a missing one has none.

    >>> texts = PackedTexts.of(b"DEFRDE", np.array([0, 2, 4, 6]), np.array([True, True, True]))
    >>> texts.values(), texts.take([1, 2]).values()
    (['DE', 'FR', 'DE'], ['FR', 'DE'])
    """

    def __init__(self, data: NDArray[np.uint8], starts: I64, sizes: I64, present: Mask | None = None) -> None:
        self.data, self.starts, self.sizes = data, starts, sizes
        self.present = present
        """None if all are."""

    @classmethod
    def of(cls, content: Any, offsets: I64, present: Mask) -> PackedTexts:
        """Texts between neighbouring offsets into bytes; those under missing ones may be anything."""
        starts, sizes = offsets[:-1] + PAD, np.diff(offsets)
        if present.all():
            return cls(padded(content), starts, sizes)
        return cls(padded(content), starts, np.where(present, sizes, 0), present)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Any) -> Self:
        present = None if self.present is None else self.present[rows]
        present = None if present is None or present.all() else present
        return type(self)(self.data, self.starts[rows], self.sizes[rows], present)

    def where(self, present: Mask) -> Self:
        """Return the texts at these positions, with all others missing."""
        present = present if self.present is None else present & self.present
        if present.all():
            return self
        return type(self)(self.data, self.starts, np.where(present, self.sizes, 0), present)

    def own(self) -> Self:
        """Copy the texts into fresh bytes, one after another."""
        ends = np.cumsum(self.sizes)
        data = padded(self.data[places_of(self.starts, self.sizes)])
        return type(self)(data, ends - self.sizes + PAD, self.sizes, self.present)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        # few of many bytes, such as one column of a file, would carry all of them along
        parts = [part.own() if len(part.data) > 2 * (int(part.sizes.sum()) + PAD) else part for part in parts]
        begins = np.cumsum([0, *(len(part.data) for part in parts)]).tolist()
        starts = [part.starts + begin for part, begin in zip(parts, begins, strict=False)]
        whole = all(part.present is None for part in parts)
        present = None if whole else np.concatenate([part.there() for part in parts])
        data, sizes = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "sizes"))
        return cls(data, np.concatenate(starts), sizes, present)

    def there(self) -> Mask:
        return np.ones(len(self), np.bool_) if self.present is None else self.present

    def values(self) -> list[Any]:
        texts: list[Any] = self.strings()
        if self.present is not None:
            for row in np.flatnonzero(~self.present).tolist():
                texts[row] = None
        return texts

    def strings(self) -> list[str]:
        """All texts, an empty one in place of a missing one."""
        if not len(self):
            return []
        ends = np.cumsum(self.sizes + 1)
        places = np.repeat(self.starts - (ends - self.sizes - 1), self.sizes + 1)
        places += np.arange(int(ends[-1]))
        letters = self.data[places]
        # one split is much faster than text by text, with a separator that is none of the letters
        for separator in _SEPARATORS:
            letters[ends - 1] = separator[0]
            content = letters.tobytes()
            if content.count(separator) == len(self):
                texts: list[str] = content[:-1].decode().split(separator.decode())
                return texts
        bounds = zip((ends - self.sizes - 1).tolist(), (ends - 1).tolist(), strict=True)
        return [content[begin:end].decode() for begin, end in bounds]

    def texts(self) -> Texts:
        """Copy the texts into separate words, as names of records are kept."""
        lengths = self.sizes if self.present is None else np.where(self.present, self.sizes, ABSENT)
        return Texts.from_buffer(self.data, self.starts, lengths.astype(np.int32))

    def equal(self, word: bytes) -> Mask:
        """Which texts are this one."""
        same: Mask = self.sizes == len(word)
        if self.present is not None:
            same = same & self.present
        for place in range(0, len(word), 8):
            rows = np.flatnonzero(same)
            if not rows.size:
                break
            same[rows] = self.take(rows).word(place) == np.uint64(int.from_bytes(word[place : place + 8], "little"))
        return same

    def word(self, place: int) -> U64:
        """Eight bytes of each text, from this place on: the first is the lowest, zeros follow the last."""
        windows = np.ndarray((len(self.data) - 7,), "<u8", buffer=self.data, strides=(1,))
        kept = np.clip(self.sizes - place, 0, 8) if place else np.minimum(self.sizes, 8)
        # texts of one length are common
        alike = bool((kept == kept[:1]).all())
        masks: U64 = MASKS[kept[:1] if alike else kept]
        return windows[self.starts + place] & masks

    def coded(self) -> Coded | None:
        """The same as a dictionary column; None if that does not pay. Words are compared in full: which hashes meet
        decides nothing but the time it takes."""
        count, longest = len(self), int(self.sizes.max(initial=0))
        if not count or longest > _LONGEST:
            return None
        words = [self.word(place) for place in range(0, max(longest, 1), 8)]
        mark = self.sizes.astype(np.uint64)
        for word in words:
            mark = (mark ^ word) * _MULTIPLIER
            mark ^= mark >> np.uint64(32)
        most = max(256, int(_FEW * count))
        first = _first_alike([self.sizes, *words], mark, most)
        if first is None:
            return None
        own = first == np.arange(count)
        rows = np.flatnonzero(own)
        if len(rows) > most:
            return None
        codes = (np.cumsum(own) - 1)[first]
        found: list[Any] = self.take(rows).strings()
        if self.present is not None:
            found.append(None)
            codes[~self.present] = len(found) - 1
        return Coded(found, codes)

    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        if self.present is not None and field.missing != "skip" and not self.present.all():
            return None
        whole = self if self.present is None else self.take(self.present)
        encoded = field.encode_texts(whole)
        if encoded is not None:
            return field.scattered(encoded, self.there())
        coded = whole.coded()
        words = whole.strings() if coded is None else coded.words
        encoded = field.encode_cells(np.fromiter(words, object, len(words)))
        return field.scattered(encoded if coded is None else encoded[coded.codes], self.there())


def _first_alike(keys: Sequence[NDArray[Any]], mark: U64, most: int) -> I64 | None:
    """For each row, one that is equal in all keys, the same for all that are; None if too many differ."""
    count = len(mark)
    bits = max(10, min(20, (2 * count).bit_length()))
    table = np.empty(1 << bits, np.int64)
    first, left = np.arange(count), np.arange(count)
    for _ in range(_TRIALS):
        slots = (mark[left] * _MULTIPLIER >> np.uint64(64 - bits)).astype(np.int64)
        table[slots] = left
        found = table[slots]
        if np.count_nonzero(found == left) > most:
            return None
        same = np.ones(len(left), np.bool_)
        for key in keys:
            same &= key[found] == key[left]
        first[left[same]] = found[same]
        left = left[~same]
        if not left.size:
            return first
        mark = mark * _MULTIPLIER ^ mark >> np.uint64(29)
    return None


def padded(content: Any) -> NDArray[np.uint8]:
    """A copy of bytes, with room before and after."""
    data = np.zeros(len(content) + 2 * PAD, np.uint8)
    data[PAD:-PAD] = content if isinstance(content, np.ndarray) else np.frombuffer(content, np.uint8)
    return data
