"""Columns of text as bytes, without a Python object for each text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import I64, U64, Mask
from .errors import InputError

ABSENT = -1
SHORT = 64
"""Up to this many bytes, texts are hashed and compared in columns; longer ones are handled one by one."""
_WORD = 8
# by the number of bytes of a word that belong to the text
_KEPT = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
# texts compared at a time, so that words read for one place are still in the cache for the next
_BLOCK = 16384
Lengths = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str | None]):
    """UTF-8 bytes in words of 64 bits, padded with zeros, and their lengths; -1 where there is no text.

    Every text has a word at least. Parts of a column share its words.

    >>> texts = Texts.of(["DE", None, "Zürich"])
    >>> texts.lengths, texts.content()
    (array([ 2, -1,  7], dtype=int32), b'DEZ\\xc3\\xbcrich')
    >>> Texts.from_content(texts.lengths, texts.content()).strings(), texts[2]
    (['DE', None, 'Zürich'], 'Zürich')
    """

    words: U64
    starts: I64
    """The first word of each text."""
    lengths: Lengths

    @classmethod
    def of(cls, texts: Sequence[str | None], *, place: str | None = None) -> Texts:
        """Lone surrogates, which UTF-8 cannot write, become bytes that no other text has (`require_utf8`)."""
        if isinstance(texts, Texts):
            return texts
        present: Sequence[Any] = texts
        absent = None in texts
        if absent:
            present = ["" if text is None else text for text in texts]
        try:
            joined = "".join(present)
        except TypeError:
            wrong = next(text for text in present if not isinstance(text, str))
            raise InputError(f"expected a text, got {wrong!r}", place=place) from None
        if joined.isascii():
            content = joined.encode()
        else:
            present = [text.encode(errors="surrogatepass") for text in present]
            content = b"".join(present)
        lengths = np.fromiter(map(len, present), dtype=np.int32, count=len(texts))
        if absent:
            lengths[[text is None for text in texts]] = ABSENT
        return cls.from_content(lengths, content)

    @classmethod
    def from_content(cls, lengths: Lengths, content: bytes) -> Texts:
        """From the bytes of all texts, one after the other."""
        sizes = np.maximum(lengths, 0).astype(np.int64)
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        if total != len(content) or int(lengths.min(initial=0)) < ABSENT:
            raise ValueError(f"expected {total} bytes of text, got {len(content)}")
        return cls.from_buffer(np.frombuffer(content, np.uint8), ends - sizes, lengths)

    @classmethod
    def from_buffer(cls, data: NDArray[np.uint8], begins: I64, lengths: Lengths) -> Texts:
        """From the places in a buffer where texts begin. The buffer is copied."""
        size = int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else 0
        if size > 0 and len(data) == len(lengths) * size and (begins == np.arange(0, len(data), size)).all():
            # all of one length, as ids often are
            wide = -(-size // _WORD)
            whole = np.zeros((len(lengths), _WORD * wide), dtype=np.uint8)
            whole[:, :size] = data.reshape(len(lengths), size)
            own = whole.reshape(-1).view("<u8").astype(np.uint64, copy=False)
            return cls(own, np.arange(0, len(own), wide), lengths)
        padded = np.zeros(len(data) + _WORD, dtype=np.uint8)
        padded[: len(data)] = data
        at = np.ndarray((len(data) + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
        counts = _counts(lengths)
        starts = _starts(counts)
        words = at[places_of(begins, counts, _WORD)].astype(np.uint64, copy=False)
        last = starts + (counts - 1)
        words[last] &= _KEPT[np.maximum(lengths, 0) - _WORD * (counts - 1)]
        return cls(words, starts, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, where: Any) -> Any:
        """A text, or some of them as a column."""
        if isinstance(where, int):
            return self[np.array([where])].strings()[0]
        return Texts(self.words, self.starts[where], self.lengths[where])

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.strings())

    def followed_by(self, *others: Texts) -> Texts:
        return Texts.concatenate([self, *others])

    @classmethod
    def concatenate(cls, parts: Sequence[Texts]) -> Texts:
        if len(parts) == 1:
            return parts[0]
        words, lengths = (
            np.concatenate([part.packed for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )
        return cls(words, _starts(_counts(lengths)), lengths)

    def without(self, gone: Mask) -> Texts:
        """With no text at some places."""
        lengths = self.lengths.copy()
        lengths[gone] = ABSENT
        return Texts(self.words, self.starts, lengths)

    def copied(self) -> Texts:
        """The same texts, with no word of any other."""
        packed = self.packed
        own = packed.copy() if np.may_share_memory(packed, self.words) else packed
        return Texts(own, _starts(self.counts), self.lengths.copy())

    @property
    def packed(self) -> U64:
        """The words of all texts, one text after the other: a part of `words` if they lie there in this way."""
        counts = self.counts
        if not len(counts):
            return np.zeros(0, dtype=np.uint64)
        if (np.diff(self.starts) == counts[:-1]).all():
            return self.words[self.starts[0] : self.starts[-1] + counts[-1]]
        return self.words[places_of(self.starts, counts)]

    @property
    def counts(self) -> I64:
        """The number of words of each."""
        return _counts(self.lengths)

    @property
    def complete(self) -> bool:
        """Whether no text is absent."""
        return int(self.lengths.min(initial=0)) != ABSENT

    @property
    def ascii(self) -> bool:
        """Whether all words are ASCII, those of other texts in the same memory included."""
        return not (self.words & np.uint64(0x8080808080808080)).any()

    def content(self) -> bytes:
        """All texts, concatenated."""
        counts, sizes = self.counts, np.maximum(self.lengths, 0)
        data = self.packed.astype("<u8", copy=False).view(np.uint8)
        wide = _WORD * int(counts.max(initial=1))
        if len(data) == wide * len(self):
            # as many words each, as ids often have
            table, shortest = data.reshape(-1, wide), int(sizes.min(initial=wide))
            if shortest == int(sizes.max(initial=0)):
                return table[:, :shortest].tobytes()
            return table[np.arange(wide) < sizes[:, None]].tobytes()
        unused = _WORD * counts - sizes
        if not unused.any():
            return data.tobytes()
        ends = np.cumsum(_WORD * counts)
        kept = np.ones(len(data), dtype=np.bool_)
        kept[places_of(ends - unused, unused)] = False
        return data[kept].tobytes()

    def strings(self) -> list[str | None]:
        if int(self.lengths.max(initial=ABSENT)) == ABSENT:
            return [None] * len(self)
        content, sizes = self.content(), np.maximum(self.lengths, 0)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        texts: list[str | None]
        if content.isascii():
            data = content.decode()
            texts = [data[begin:end] for begin, end in pairwise(bounds)]
        else:
            texts = [content[begin:end].decode() for begin, end in pairwise(bounds)]
        for place in np.flatnonzero(self.lengths < 0).tolist():
            texts[place] = None
        return texts

    def labels(self) -> list[tuple[int, bytes]]:
        """A sort key for each text."""
        return list(zip(self.lengths.tolist(), map(self._bytes, range(len(self))), strict=True))

    def equal(self, other: Texts) -> Mask:
        """Whether each text is the one of the other column at the same place."""
        if len(self) > 2 * _BLOCK:
            blocks = (slice(start, start + _BLOCK) for start in range(0, len(self), _BLOCK))
            return np.concatenate([self[block].equal(other[block]) for block in blocks])
        same: Mask = self.lengths == other.lengths
        rows: I64 | slice = slice(None)
        longest = int(self.lengths.max(initial=0))
        for place in range(-(-min(longest, SHORT) // _WORD)):
            if place or not (self.lengths > 0).all():
                rows = np.flatnonzero(same & (self.lengths > _WORD * place))
                rows = slice(None) if len(rows) == len(same) else rows
            own, theirs = self.words[self.starts[rows] + place], other.words[other.starts[rows] + place]
            same[rows] &= own == theirs
        if longest > SHORT:
            for row in np.flatnonzero(same & (self.lengths > SHORT)).tolist():
                same[row] = self._bytes(row) == other._bytes(row)
        return same

    def mixed_into(self, mark: U64, digest: Callable[[bytes], bytes]) -> U64:
        """Every text mixed into its mark, a long one by its digest of 64 bytes."""
        texts, sizes = self, self.lengths
        long = np.flatnonzero(sizes > SHORT).tolist()
        if long:
            digests = np.frombuffer(b"".join(digest(self._bytes(row)) for row in long), "<u8").astype(np.uint64)
            starts = self.starts.copy()
            starts[long] = len(self.words) + np.arange(0, len(digests), SHORT // _WORD)
            texts = Texts(np.concatenate([self.words, digests]), starts, sizes)
        for place in range(-(-min(int(sizes.max(initial=0)), SHORT) // _WORD)):
            rows = np.flatnonzero(sizes > _WORD * place)
            if len(rows) == len(mark):
                mark = mixed(mark, texts.words[texts.starts + place])
            else:
                mark = mark.copy()
                mark[rows] = mixed(mark[rows], texts.words[texts.starts[rows] + place])
        return mark

    def require_utf8(self, *, place: str) -> None:
        """Refuse text without a UTF-8 form, which could be neither ordered nor stored."""
        if self.ascii or self.content().isascii():
            return
        for row in range(len(self)):
            content = self._bytes(row)
            try:
                content.decode()
            except UnicodeDecodeError:
                shown = content.decode(errors="surrogatepass")
                raise InputError(f"expected text that UTF-8 can write, got {shown!r}", place=place) from None

    def _bytes(self, row: int) -> bytes:
        start, length = int(self.starts[row]), max(0, int(self.lengths[row]))
        return self.words[start : start - (-length // _WORD)].astype("<u8", copy=False).tobytes()[:length]


def lacks_some(texts: Sequence[Any]) -> bool:
    """Whether one of the texts is absent."""
    return not texts.complete if isinstance(texts, Texts) else None in texts


def chosen(texts: Sequence[Any], where: I64) -> Sequence[Any]:
    """The texts at these places, of a column or a list."""
    return texts[where] if isinstance(texts, Texts) else [texts[place] for place in where.tolist()]


def joined(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The texts of all parts in turn: a column if one of them is one."""
    if any(isinstance(part, Texts) for part in parts):
        return Texts.concatenate([Texts.of(part) for part in parts])
    return [text for part in parts for text in part]


def mixed(mark: U64, value: U64) -> U64:
    """One round of a 64-bit mixer: every bit of the value affects every bit of the mark."""
    mark = (mark ^ value) * np.uint64(0x9E3779B97F4A7C15)
    mark ^= mark >> np.uint64(29)
    mark *= np.uint64(0xBF58476D1CE4E5B9)
    mark ^= mark >> np.uint64(32)
    return mark


def _starts(counts: I64) -> I64:
    starts: I64 = np.cumsum(counts) - counts
    return starts


def _counts(lengths: Lengths) -> I64:
    counts: I64 = np.maximum((lengths + (_WORD - 1)) >> 3, 1).astype(np.int64)
    return counts


def places_of(starts: I64, counts: I64, step: int = 1) -> I64:
    """``counts[k]`` places from ``starts[k]`` on, for every k."""
    if not len(counts):
        return np.zeros(0, dtype=np.int64)
    wide = int(counts[0])
    if (counts == wide).all():
        return (starts[:, None] + np.arange(0, step * wide, step)).ravel() if wide > 1 else starts[: len(starts) * wide]
    ends = np.cumsum(counts)
    places = np.arange(int(ends[-1]))
    return np.repeat(starts - step * (ends - counts), counts) + (places * step if step > 1 else places)
