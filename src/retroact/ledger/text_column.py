"""Columns of text as bytes, without a Python object for each text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..arrays import U64, AnyArray, Mask
from ..schema.field import Coded

ABSENT = -1
SHORT = 64
"""A column whose texts have at most this many bytes is an array of fixed width; one with longer texts holds objects."""


class Texts(msgspec.Struct, frozen=True, eq=False):
    """UTF-8 bytes, padded with zeros, and their lengths; -1 where there is no text.

    >>> texts = Texts.of(["DE", None, "Zürich"])
    >>> texts.lengths, texts.content()
    (array([ 2, -1,  7], dtype=int32), b'DEZ\\xc3\\xbcrich')
    >>> Texts.from_content(texts.lengths, texts.content()).strings()
    ['DE', None, 'Zürich']
    """

    words: AnyArray
    """Of fixed width, a multiple of 8, or objects."""
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Texts:
        absent = None in texts
        present: Sequence[str] = [text or "" for text in texts] if absent else texts  # type: ignore[assignment]
        encoded: Sequence[Any] = present if "".join(present).isascii() else [text.encode() for text in present]
        lengths = np.fromiter(map(len, encoded), dtype=np.int32, count=len(texts))
        if absent:
            lengths[[text is None for text in texts]] = ABSENT
        longest = int(lengths.max(initial=0))
        if longest <= SHORT:
            return cls(np.array(encoded, dtype=_width(longest)), lengths)
        return cls(np.array([text.encode() for text in present], dtype=object), lengths)

    @classmethod
    def from_content(cls, lengths: NDArray[np.int32], content: bytes) -> Texts:
        sizes = np.maximum(lengths, 0)
        if int(sizes.sum()) != len(content) or int(lengths.min(initial=0)) < ABSENT:
            raise ValueError(f"expected {int(sizes.sum())} bytes of text, got {len(content)}")
        longest = int(sizes.max(initial=0))
        if longest > SHORT:
            bounds = np.concatenate([[0], np.cumsum(sizes)]).tolist()
            return cls(np.array([content[begin:end] for begin, end in pairwise(bounds)], dtype=object), lengths)
        words = np.zeros(len(lengths), dtype=_width(longest))
        matrix = words.view(np.uint8).reshape(len(lengths), words.dtype.itemsize)
        if content:
            matrix[_filled(sizes, matrix.shape[1])] = np.frombuffer(content, np.uint8)
        return cls(words, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, where: Any) -> Texts:
        return Texts(self.words[where], self.lengths[where])

    def followed_by(self, other: Texts) -> Texts:
        parts = [self.words, other.words]
        if any(part.dtype == object for part in parts):
            parts = [self._as_objects(), other._as_objects()]
        return Texts(np.concatenate(parts), np.concatenate([self.lengths, other.lengths]))

    def _as_objects(self) -> AnyArray:
        if self.words.dtype == object:
            return self.words
        width, data = self.words.dtype.itemsize, self.words.tobytes()
        sizes = np.maximum(self.lengths, 0).tolist()
        return np.array([data[place * width : place * width + size] for place, size in enumerate(sizes)], dtype=object)

    def content(self) -> bytes:
        """All texts, concatenated."""
        if self.words.dtype == object:
            return b"".join(self.words.tolist())
        matrix = self.words.view(np.uint8).reshape(len(self), self.words.dtype.itemsize)
        return matrix[_filled(self.lengths, matrix.shape[1])].tobytes()

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

    def distinct(self) -> Coded:
        """The same as a dictionary column, without repeated words if the texts are short."""
        if self.words.dtype != object:
            marks = mixed_in(np.zeros(len(self), dtype=np.uint64), self.words, self.lengths)
            _, first, codes = np.unique(marks, return_index=True, return_inverse=True)
            own = self[first]
            if (own.words[codes] == self.words).all() and (own.lengths[codes] == self.lengths).all():
                return Coded(own.strings(), codes.astype(np.int64))
        return Coded(self.strings(), np.arange(len(self)))

    def labels(self) -> list[tuple[int, bytes]]:
        """A sort key for each text."""
        return list(zip(self.lengths.tolist(), self.words.tolist(), strict=True))


def mixed(mark: U64, value: U64) -> U64:
    """One round of a 64-bit mixer: every bit of the value affects every bit of the mark."""
    mark = (mark ^ value) * np.uint64(0x9E3779B97F4A7C15)
    mark ^= mark >> np.uint64(29)
    mark *= np.uint64(0xBF58476D1CE4E5B9)
    mark ^= mark >> np.uint64(32)
    return mark


def mixed_in(mark: U64, words: AnyArray, lengths: NDArray[np.int32]) -> U64:
    """Texts of fixed width mixed into marks, independently of the width."""
    parts = words.view("<u8").reshape(len(words), words.dtype.itemsize // 8)
    for place, word in enumerate(parts.T):
        mark = np.where(lengths > 8 * place, mixed(mark, word.astype(np.uint64)), mark)
    return mark


def _width(longest: int) -> str:
    return f"S{max(8, -(-longest // 8) * 8)}"


def _filled(lengths: AnyArray, width: int) -> Mask:
    return np.arange(width, dtype=np.int32) < lengths[:, None]
