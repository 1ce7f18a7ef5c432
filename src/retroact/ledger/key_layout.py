"""Records as keys: every column has its bits in one or more 64-bit words, so that keys sort as records do.

From the most significant bit of the first word down: the stamp, the fields in declared order, a flag for each optional
field, the subject. Texts and subjects are codes. A column may straddle two words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec
import numpy as np

from ..arrays import I64, U64, Mask, Words
from ..errors import InputError
from ..schema import Schema
from .sorted_keys import take

_WORD = 64
# widths grow by this many bits at a time, because every growth rewrites all keys
_STEP = 4
# rows handled at a time, so that temporary arrays stay in the cache
_BLOCK = 8192
STAMP, SUBJECT = 0, -1


class Widths(msgspec.Struct, frozen=True):
    """The bits of columns that grow with the data."""

    stamp: int
    texts: Mapping[str, int]
    subject: int

    def covering(self, other: Widths) -> Widths:
        """Widths, in whole steps, that are enough for both."""
        return Widths(
            _stepped(self.stamp, other.stamp),
            {name: _stepped(bits, other.texts[name]) for name, bits in self.texts.items()},
            _stepped(self.subject, other.subject),
        )


class _Piece(msgspec.Struct, frozen=True):
    """The part of a column that lies in one word; `below` counts its bits in the words that follow."""

    word: int
    shift: int
    bits: int
    below: int

    @property
    def mask(self) -> np.uint64:
        return np.uint64((1 << self.bits) - 1)


class _Column(msgspec.Struct, frozen=True):
    place: str
    lower: int
    span: int
    pieces: list[_Piece]


class KeyLayout:
    """Where each column lies in the words of a key."""

    def __init__(self, schema: Schema, widths: Widths) -> None:
        self.widths = widths
        self._shapes = {name: field.shape for name, field in schema.fields.items()}
        spans = [("stamp", 0, (1 << widths.stamp) - 1)]
        self._first: dict[str, int] = {}
        for name, field in schema.fields.items():
            self._first[name] = len(spans)
            if field.interned:
                spans.append((name, 0, (1 << widths.texts[name]) - 1))
            else:
                spans += [(name, field.lower, field.upper - field.lower)] * field.width
        self._flags = {name: len(spans) + place for place, name in enumerate(schema.optional)}
        spans += [(name, 0, 1) for name in schema.optional]
        spans.append(("subject", 0, (1 << widths.subject) - 1))
        bounds = list(accumulate((span.bit_length() for _, _, span in spans), initial=0))
        pieces = (_pieces(start, stop, bounds[-1]) for start, stop in pairwise(bounds))
        self._columns = [_Column(*span, own) for span, own in zip(spans, pieces, strict=True)]
        self.words = -(-bounds[-1] // _WORD)

    def pack(self, stamps: I64, values: Mapping[str, I64], subjects: I64, missing: Mapping[str, Mask]) -> Words:
        """The key of each record; `values` are lattice numbers, or codes for text; `missing` is as in `Rows`."""
        unexpected = [name for name in missing if name not in self._flags]
        if unexpected:
            raise InputError("expected a value in every record, got some without", place=unexpected[0])
        columns = [stamps]
        for name in self._first:
            column, expected = values[name], (len(stamps), *self._shapes[name])
            if column.dtype != np.int64 or column.shape != expected:
                found = f"{column.dtype} of shape {column.shape}"
                raise InputError(f"expected int64 of shape {expected}, got {found}", place=name)
            columns += [column] if column.ndim == 1 else list(column.T)
        for name in self._flags:
            columns.append(missing[name].astype(np.int64) if name in missing else np.zeros(len(stamps), dtype=np.int64))
        columns.append(subjects)
        return self._assembled(len(stamps), lambda index, block: _raw(self._columns[index], columns[index][block]))

    def stamps(self, *parts: Words) -> I64:
        return self._values(parts, STAMP)

    def subjects(self, *parts: Words) -> I64:
        return self._values(parts, SUBJECT)

    def field(self, name: str, *parts: Words) -> I64:
        """The lattice numbers of a field, shaped as in `Rows`; codes for text."""
        first = self._first[name]
        if not self._shapes[name]:
            return self._values(parts, first)
        return np.stack([self._values(parts, first + j) for j in range(*self._shapes[name])], axis=1)

    def missing(self, *parts: Words) -> dict[str, Mask]:
        """As in `Rows`."""
        masks = {name: self._values(parts, index).astype(np.bool_) for name, index in self._flags.items()}
        return {name: mask for name, mask in masks.items() if mask.any()}

    def stamp_range(self, first: int, last: int) -> tuple[np.uint64, np.uint64] | None:
        """The smallest and the largest first word of keys with these stamps; None if there are none."""
        column = self._columns[STAMP]
        first, last, shift = max(first, 1), min(last, column.span), column.pieces[0].shift
        if first > last:
            return None
        return np.uint64(first << shift), np.uint64((last << shift) | ((1 << shift) - 1))

    def repacked(self, words: Words, target: KeyLayout, texts: Mapping[str, I64], subjects: I64 | None = None) -> Words:
        """The same records in another layout, with codes replaced by their entries in `texts` and `subjects`.

        Sorted keys stay sorted if the replacement keeps the order of codes in use.
        """
        codes = {self._first[name]: replacement for name, replacement in texts.items()}
        if subjects is not None:
            codes[len(self._columns) - 1] = subjects

        def part(index: int, block: slice) -> U64:
            raw = np.zeros(len(words[0][block]), dtype=np.uint64)
            self._read(take(words, block), self._columns[index], raw)
            return codes[index][raw].view(np.uint64) if index in codes else raw

        return target._assembled(len(words[0]), part)

    def without_subjects(self, words: Words) -> Words:
        """The keys of the same records without subjects."""
        bare = list(words)
        for piece in self._columns[SUBJECT].pieces:
            bare[piece.word] = bare[piece.word] & ~(piece.mask << np.uint64(piece.shift))
        return tuple(bare)

    def _values(self, parts: Sequence[Words], index: int) -> I64:
        column = self._columns[index]
        values = np.zeros(sum(len(part[0]) for part in parts), dtype=np.uint64)
        start = 0
        for part in parts:
            stop = start + len(part[0])
            if start < stop:  # most rounds change little: most parts are empty
                self._read(part, column, values[start:stop])
            start = stop
        if column.lower:
            values += np.uint64(column.lower % (1 << _WORD))
        return values.view(np.int64)

    @staticmethod
    def _read(words: Words, column: _Column, out: U64) -> None:
        """Write the bits of a column to `out`, which is zero."""
        if len(column.pieces) == 1:
            piece = column.pieces[0]
            np.right_shift(words[piece.word], np.uint64(piece.shift), out=out)
            out &= piece.mask
        else:
            for piece in column.pieces:
                out |= ((words[piece.word] >> np.uint64(piece.shift)) & piece.mask) << np.uint64(piece.below)

    def _assembled(self, length: int, part: Callable[[int, slice], U64]) -> Words:
        """Keys from the bits of their columns, `part(column, block)`."""
        words = tuple(np.zeros(length, dtype=np.uint64) for _ in range(self.words))
        for start in range(0, length, _BLOCK):
            block = slice(start, start + _BLOCK)
            for index, column in enumerate(self._columns):
                raw = part(index, block)
                for piece in column.pieces:
                    bits = (raw >> np.uint64(piece.below)) & piece.mask if len(column.pieces) > 1 else raw
                    words[piece.word][block] |= bits << np.uint64(piece.shift)
        return words


def _raw(column: _Column, values: I64) -> U64:
    """Values minus the lower bound, checked to fit their bits."""
    raw = values.view(np.uint64)
    if column.lower:
        raw = raw - np.uint64(column.lower % (1 << _WORD))
    if int(raw.max()) > column.span:
        wrong, upper = int(values[np.argmax(raw)]), column.lower + column.span
        raise InputError(f"expected a number from {column.lower} to {upper}, got {wrong}", place=column.place)
    return raw


def _stepped(*bits: int) -> int:
    return min(_WORD, -(-max(bits) // _STEP) * _STEP)


def _pieces(start: int, stop: int, total: int) -> list[_Piece]:
    """Where a column with these bits lies. Every word is full but the last, which uses its lowest bits."""
    pieces = []
    while start < stop:
        word = start // _WORD
        limit = min((word + 1) * _WORD, total)
        end = min(stop, limit)
        pieces.append(_Piece(word, limit - end, end - start, stop - end))
        start = end
    return pieces
