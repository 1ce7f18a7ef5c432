"""Samples by the guide are those of the definition, bit for bit: the number of k with F(k) <= u."""

from bisect import bisect_right
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from retroact.coins import Coins, DiscreteGaussian, DiscreteLaplace, gaussian, integer_cells, laplace
from retroact.coins import coins as coins_module
from retroact.coins.coins import _BlockCipher
from retroact.coins.exact_cdf import floors
from retroact.coins.inverse_cdf import GUIDE_BITS, Inverse

COINS = Coins(bytes(32)).branch("inverse")
SCALES = [Fraction(1, 3), Fraction(1), Fraction(22), Fraction(399, 2), Fraction(512)]
CDFS = {
    **{f"laplace {scale}": partial(laplace.magnitude_cdf, scale) for scale in SCALES},
    **{f"gaussian {scale}": partial(gaussian.magnitude_cdf, scale**2) for scale in SCALES},
    "zero": partial(laplace.zero_cdf, Fraction(10**6)),
    "digit of 4096": partial(laplace.digit_cdf, Fraction(10**6), 4096),
    "digit of 16": partial(laplace.digit_cdf, Fraction(1000), 16),
    "rest": partial(laplace.geometric_cdf, Fraction(10**6, 4096)),
}


class GivenDigits:
    """Names whose bits are given: the first words, and one extension for all, which repeats."""

    def __init__(self, first, extension=0):
        self.first, self._extension = np.array(first, dtype=np.uint64).reshape(1, -1), extension

    def block(self, stream):
        return self.first, np.zeros_like(self.first)

    def extension(self, position, stream):
        while True:
            yield self._extension


@pytest.mark.parametrize("cdf", CDFS.values(), ids=CDFS)
def test_samples_at_every_border_are_those_of_the_definition(cdf):
    """Just below and above every threshold, and at both ends of every cell of the guide."""
    table, cell = floors(cdf, 64), 1 << (64 - GUIDE_BITS)
    borders = [digit + step for digit in table for step in (-1, 1)]
    borders += [number * cell + step for number in range(1 << GUIDE_BITS) for step in (0, cell - 1)]
    known = set(table)
    borders = [digit for digit in borders if 0 <= digit < 1 << 64 and digit not in known]
    found = Inverse(cdf).sample(GivenDigits(borders), 0)[0]
    assert found.tolist() == [[bisect_right(table, digit) for digit in borders]]


@pytest.mark.parametrize("cdf", CDFS.values(), ids=CDFS)
def test_a_tie_is_decided_by_the_next_digits(cdf):
    table, longer = floors(cdf, 64), floors(cdf, 64 + 128)
    inverse = Inverse(cdf)
    for k in {0, len(table) // 2, len(table) - 1}:
        start = table[k] << 128
        for digits in {start, longer[k] - 1, longer[k] + 1, start + 2**128 - 1} - {*longer}:
            if digits >> 128 == table[k]:
                found = inverse.sample(GivenDigits([table[k]], digits - start), 0)[0]
                assert found.tolist() == [[bisect_right(longer, digits)]]


@pytest.mark.parametrize("bits", [1, 2, 8, 15, 16, 17, 20])
def test_short_words_agree_with_the_definition_for_every_word(bits):
    """Words as short as the guide, shorter and longer: every one of them where there are few."""
    cdf = partial(laplace.magnitude_cdf, Fraction(3))
    table, longer = floors(cdf, bits), floors(cdf, bits + 128)
    near = {digit + step for digit in table for step in (-1, 0, 1)} & set(range(1 << bits))
    digits = list(range(1 << bits)) if bits <= 16 else sorted(near)
    more = 0x5BD1E995_9E3779B9_85EBCA6B_C2B2AE35
    found = Inverse(cdf, bits=bits).sample(GivenDigits([digit << (64 - bits) for digit in digits], more), 0)[0]
    assert found.tolist() == [[bisect_right(longer, (digit << 128) + more) for digit in digits]]


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize(
    "law",
    [partial(DiscreteLaplace, 3), partial(DiscreteLaplace, 10**6), partial(DiscreteGaussian, 10**2)],
    ids=["one table", "digits", "gaussian"],
)
def test_names_drawn_together_in_parts_are_those_drawn_alone(law, bits, monkeypatch):
    """Also where a sample needs more digits: its place in the part is not that in the whole."""
    monkeypatch.setattr(coins_module, "PART", 8)
    law, cells = law(bits=bits), integer_cells(19)
    together = law.sample(COINS.words([0, 1, 2], [5, 7, 9], cells))
    for node in range(3):
        for cell in range(19):
            alone = COINS.words([node], [5 + 2 * node], cells[cell : cell + 1])
            assert law.sample(alone)[0, 0] == together[node, cell]
    monkeypatch.setattr(coins_module, "PART", 38)
    assert (law.sample(COINS.words([0, 1, 2], [5, 7, 9], cells)) == together).all()


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_blocks_are_enciphered_one_by_one(count):
    blocks = np.random.default_rng(count).integers(0, 2**64, (count, 2), dtype=np.uint64)
    encryptor = Cipher(algorithms.AES(bytes(range(32))), modes.ECB()).encryptor()
    expected = b"".join(encryptor.update(block.astype("<u8").tobytes()) for block in blocks)
    assert _BlockCipher(bytes(range(32)))(blocks).astype("<u8").tobytes() == expected
    assert COINS.words([0], [0], integer_cells(count)).block(0)[0].shape == (1, count)
