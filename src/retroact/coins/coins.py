"""All randomness, by name.

A name is a path of branches (stream, statistic, purpose), a node (level, index), a cell (a coordinate or a bin) and
the number of a stream of bits. The bits are a pseudo-random function of the name: nothing is drawn "next", so they
depend neither on the order of requests nor on the machine.

A branch is derived with keyed BLAKE2b. Below it, the block of (node, cell) is AES(k2, AES(k1, node) xor cell): the
two-block CBC-MAC, a pseudo-random function on inputs of fixed length. The inner block is the key of one node, derived
once for all its cells; the outer call runs over all cells in bulk. A worker that holds inner blocks and k2 can compute
the noise of those nodes and no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..arrays import U64
from ..checks import is_int

# Streams of a name: the low 16 bits number the draw, the bits above them its extensions.
EXTENSION = 1 << 16
# Names whose bits are computed at once: as many as fit the cache.
PART = 1 << 16


def name_bytes(*parts: str | int | bytes) -> bytes:
    """Length-prefixed and type-tagged, so no two names have the same bytes.

    >>> name_bytes("a", "bc") == name_bytes("ab", "c")
    False
    >>> name_bytes(1) == name_bytes("1")
    False
    """
    out = bytearray()
    for part in parts:
        if isinstance(part, str):
            tag, raw = b"s", part.encode()
        elif isinstance(part, bytes):
            tag, raw = b"b", part
        elif is_int(part):
            tag, raw = b"i", str(part).encode()
        else:
            raise TypeError(f"a name is made of text, integers and bytes, not {type(part).__name__}")
        out += tag + len(raw).to_bytes(8, "little") + raw
    return bytes(out)


def integer_cells(count: int) -> U64:
    """The cells 0 .. count-1 of a statistic whose coordinates are declared."""
    cells = np.zeros((count, 2), dtype="<u8")
    cells[:, 0] = np.arange(count, dtype=np.uint64)
    return cells


class Coins:
    """A branch of the tree of names.

    >>> coins = Coins(bytes(32)).branch("count", 3)
    >>> bool((coins.words([0, 1], [5, 9]).block(0)[0] == coins.words([1], [9]).block(0)[0][0]).any())
    True
    """

    __slots__ = ("_ciphers", "_secret")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._ciphers: tuple[_BlockCipher, _BlockCipher] | None = None

    def branch(self, *name: str | int | bytes) -> Coins:
        return Coins(self._derive(b"branch", name_bytes(*name)))

    def words(self, levels: npt.ArrayLike, indices: npt.ArrayLike, cells: U64 | None = None) -> RandomWords:
        """The bits of every (node, cell): nodes along the first axis, cells along the second."""
        if self._ciphers is None:
            self._ciphers = _BlockCipher(self._derive(b"nodes")), _BlockCipher(self._derive(b"cells"))
        nodes = np.zeros((np.size(levels), 2), dtype="<u8")
        nodes[:, 0] = np.asarray(indices, dtype=np.int64).view(np.uint64)
        nodes[:, 1] = np.asarray(levels, dtype=np.uint64)
        return RandomWords(*self._ciphers, nodes, integer_cells(1) if cells is None else cells)

    def cells(self, names: Iterable[bytes]) -> U64:
        """A cell for each name: 128 bits that only the key holder can compute or make collide.

        >>> Coins(bytes(32)).cells([b"DE", b"FR"]).shape
        (2, 2)
        """
        key, person = self._secret, b"cell".ljust(16, b"\0")
        out = b"".join(hashlib.blake2b(name, key=key, digest_size=16, person=person).digest() for name in names)
        return np.frombuffer(out, dtype="<u8").reshape(-1, 2)

    def _derive(self, purpose: bytes, message: bytes = b"") -> bytes:
        return hashlib.blake2b(message, key=self._secret, digest_size=32, person=purpose.ljust(16, b"\0")).digest()

    def __repr__(self) -> str:
        return "Coins(secret)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("coins are not pickled: they hold a secret")


class RandomWords:
    """The random bits of an array of names, as many as needed."""

    __slots__ = ("_cells", "_inner", "_nodes", "_outer")

    def __init__(self, inner: _BlockCipher, outer: _BlockCipher, nodes: U64, cells: U64) -> None:
        self._inner, self._outer, self._nodes, self._cells = inner, outer, nodes, cells

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._nodes), len(self._cells)

    def parts(self) -> Iterator[tuple[tuple[slice, slice], RandomWords]]:
        """The same names, as many at a time as fit the cache, with their place in the whole.

        >>> [part.shape for _, part in Coins(bytes(32)).words([0, 0], [1, 2], integer_cells(80_000)).parts()]
        [(1, 65536), (1, 14464), (1, 65536), (1, 14464)]
        """
        nodes, cells = self.shape
        step = max(1, PART // max(1, cells))
        for above in range(0, nodes, step):
            for left in range(0, cells, PART):
                rows, columns = slice(above, above + step), slice(left, left + PART)
                yield (rows, columns), RandomWords(self._inner, self._outer, self._nodes[rows], self._cells[columns])

    def block(self, stream: int) -> tuple[U64, U64]:
        """128 bits per name, as two arrays of 64-bit words."""
        return self._block(stream, self._nodes, self._cells)

    def each(self) -> tuple[U64, U64]:
        """128 bits for the first node with the first cell, the second with the second, and so on.

        >>> coins, cells = Coins(bytes(32)), integer_cells(2)
        >>> bool(coins.words([3, 3], [5, 9], cells).each()[0][1] == coins.words([3], [9], cells).block(0)[0][0, 1])
        True
        """
        out = self._outer(self._inner(self._nodes) ^ self._cells)
        return out[:, 0], out[:, 1]

    def extension(self, position: int, stream: int) -> Iterator[int]:
        """More bits of one name (a flat position), 128 at a time, after the first word of ``stream``."""
        node, cell = divmod(position, len(self._cells))
        part = 0
        while True:
            part += 1
            high, low = self._block(
                stream + part * EXTENSION, self._nodes[node : node + 1], self._cells[cell : cell + 1]
            )
            yield int(high[0, 0]) << 64 | int(low[0, 0])

    def _block(self, stream: int, nodes: U64, cells: U64) -> tuple[U64, U64]:
        tagged = nodes.copy()
        # Levels and streams share a word: a larger level would collide with another name.
        if int(nodes[:, 1].max(initial=0)) >> 32:
            raise ValueError(f"expected levels below 2^32, got {int(nodes[:, 1].max())}")
        tagged[:, 1] |= np.uint64(stream << 32)
        keys, mixed = self._inner(tagged), np.empty((len(nodes), len(cells), 2), dtype="<u8")
        for word in (0, 1):  # a loop over an axis of length 2 inside NumPy would be slow
            np.bitwise_xor(keys[:, None, word], cells[None, :, word], out=mixed[:, :, word])
        out = self._outer(mixed).reshape(mixed.shape)
        return out[:, :, 0], out[:, :, 1]


class _BlockCipher:
    """AES-256 on an array of 16-byte blocks (little-endian words, whatever the machine)."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        # loaded with the first coin that is drawn: describing and planning a stream needs none
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._cipher = Cipher(algorithms.AES(key), modes.ECB())

    def __call__(self, blocks: U64) -> U64:
        source = np.ascontiguousarray(blocks, dtype="<u8").reshape(-1)
        # Some versions want room for one more block.
        out = np.empty(source.size + 2, dtype="<u8")
        # A fresh encryptor for each call: a shared one would not be thread-safe.
        self._cipher.encryptor().update_into(source.view(np.uint8).data, out.view(np.uint8).data)
        return out[: source.size].reshape(-1, 2)
