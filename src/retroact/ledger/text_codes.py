"""Codes for texts: each distinct text has a small number as long as something refers to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import repeat

import numpy as np

from ..arrays import I64, AnyArray
from ..errors import InputError
from .references import References

# with fewer codes, unused ones are not worth renumbering
_SMALL = 256


class TextCodes:
    """Texts with their codes and reference counts.

    `intern` gives codes without references; `sweep` forgets texts that have none. Codes of forgotten texts are reused,
    and the ledger renumbers when three quarters of them are unused.
    """

    def __init__(self, *, place: str) -> None:
        self._place = place
        self._codes: dict[str, int] = {}
        self._texts: AnyArray = np.full(1, None, dtype=object)
        self._references = References()
        self._free: list[int] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def bits(self) -> int:
        """The width of the largest code."""
        return max(0, self.size - 1).bit_length()

    def intern(self, texts: Sequence[str]) -> I64:
        """The code of each text, which the next `sweep` forgets if it is new and `refer` is not called for it."""
        found = self.lookup(texts)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            strangers = [texts[place] for place in unknown.tolist()] if len(unknown) < len(texts) else texts
            self._assign(list(dict.fromkeys(strangers)))
            found[unknown] = self.lookup(strangers)
        return found

    def lookup(self, texts: Sequence[str]) -> I64:
        """The code of each text, or -1."""
        return np.fromiter(map(self._codes.get, texts, repeat(-1)), dtype=np.int64, count=len(texts))

    def texts(self, codes: I64) -> AnyArray:
        return self._texts[codes]

    def refer(self, gained: I64, lost: I64) -> None:
        """Count one reference more, or one less, for every code."""
        self._references.count(gained, lost)

    def sweep(self) -> None:
        """Forget every text without a reference."""
        forgotten = self._references.unused()
        for text in self._texts[forgotten].tolist():
            self._codes.pop(text, None)
        self._texts[forgotten] = None
        self._free.extend(forgotten.tolist())

    def ranks(self, codes: I64) -> I64:
        """For each of these codes, as an index, the rank of its text among them in UTF-8 order."""
        present = np.unique(codes)
        # code points and UTF-8 bytes sort alike
        ordered = sorted(zip(self._texts[present].tolist(), present.tolist(), strict=True))
        ranks = np.zeros(self.size, dtype=np.int64)
        ranks[[code for _, code in ordered]] = np.arange(len(ordered))
        return ranks

    @property
    def sparse(self) -> bool:
        return self.size > _SMALL and 4 * len(self._codes) < self.size

    def compacted(self) -> tuple[TextCodes, I64]:
        """The same texts with consecutive codes in the same order, and the new code of each old one."""
        dense = TextCodes(place=self._place)
        old = np.sort(np.fromiter(self._codes.values(), dtype=np.int64, count=len(self._codes)))
        dense.size = len(old)
        dense._texts = self._texts[old] if len(old) else dense._texts
        dense._references = References(self._references.counts[old])
        dense._codes = dict(zip(dense._texts[: len(old)].tolist(), range(len(old)), strict=True))
        new = np.zeros(self.size, dtype=np.int64)
        new[old] = np.arange(len(old))
        return dense, new

    def _assign(self, fresh: list[str]) -> None:
        require_utf8(fresh, place=self._place)
        reused = min(len(self._free), len(fresh))
        grown = self.size + len(fresh) - reused
        codes = self._free[len(self._free) - reused :] + list(range(self.size, grown))
        if grown > len(self._texts):
            capacity = max(2 * len(self._texts), grown)
            texts: AnyArray = np.full(capacity, None, dtype=object)
            texts[: self.size] = self._texts[: self.size]
            self._texts = texts
        numbers = np.array(codes, dtype=np.int64)
        self._references.begin(numbers)
        del self._free[len(self._free) - reused :]
        self.size = grown
        self._texts[numbers] = np.array(fresh, dtype=object)
        self._codes.update(zip(fresh, codes, strict=True))


def by_digest(who: Sequence[str | bytes], texts: Iterable[str | None]) -> dict[bytes, str]:
    """The texts of those that are SHA-256 digests, found by hashing all texts.

    >>> by_digest(["u1", sha256(b"u2").digest(), sha256(b"u3").digest()], ["u1", "u2", None]).values()
    dict_values(['u2'])
    """
    wanted = {each for each in who if isinstance(each, bytes)}
    if not wanted:
        return {}
    digests = ((sha256(text.encode()).digest(), text) for text in texts if text is not None)
    return {digest: text for digest, text in digests if digest in wanted}


def whose(who: Sequence[str | bytes], texts: Iterable[str | None]) -> set[str | bytes]:
    """These texts, and those of the ``texts`` that they are SHA-256 digests of."""
    return {*who, *by_digest(who, texts).values()}


def require_utf8(texts: Sequence[str], *, place: str) -> None:
    """Refuse text without a UTF-8 form, which could be neither ordered nor stored."""
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        for text in texts:
            if not isinstance(text, str) or any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(f"expected text that UTF-8 can write, got {text!r}", place=place) from None
