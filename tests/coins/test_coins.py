"""Names give bits: the same for the same name, on every machine, whatever else is asked for."""

import math
import pickle
from collections import Counter

import numpy as np
import pytest

from retroact.coins import Coins, Key, below, distinct, integer, integer_cells, name_bytes, permutation
from retroact.errors import InputError, KeyReusedError


def test_golden_bits_never_change():
    """A change here changes every published number of every stream: these are the bits of format 1."""
    coins = Key.for_testing(0).coins("stream").branch("count", 7, b"\x01")
    first, second = coins.words([3, 0], [5, 2**40], integer_cells(2)).block(0)
    assert [hex(int(x)) for x in first.ravel()] == GOLDEN_FIRST
    assert hex(int(second[1, 1])) == GOLDEN_SECOND
    assert [hex(x) for _, x in zip(range(2), coins.words([3], [5]).extension(0, 0), strict=False)] == GOLDEN_EXTENSION


def test_bits_do_not_depend_on_what_else_is_asked():
    coins = Coins(bytes(32)).branch("a")
    levels, indices = np.arange(20) % 4, np.arange(20) * 3
    whole = coins.words(levels, indices, integer_cells(5)).block(2)
    for node in (0, 7, 19):
        for cell in (0, 4):
            alone = coins.words([levels[node]], [indices[node]], integer_cells(5)[cell : cell + 1]).block(2)
            assert alone[0][0, 0] == whole[0][node, cell]
            assert alone[1][0, 0] == whole[1][node, cell]


def test_every_part_of_a_name_matters():
    coins = Coins(bytes(32))
    seen = set()
    for branch in ("a", "b"):
        for level in (0, 1):
            for index in (0, 1, 2**50):
                for cell in (0, 1):
                    for stream in (0, 1, 1 << 16):
                        words = coins.branch(branch).words([level], [index], integer_cells(2)[cell : cell + 1])
                        seen.add(int(words.block(stream)[0][0, 0]))
    assert len(seen) == 2 * 2 * 3 * 2 * 3


def test_names_are_injective():
    names = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc",),
        ("a", b"bc"),
        (1,),
        ("1",),
        (b"1",),
        ("", "a"),
        ("a", ""),
        (12,),
        (1, 2),
    ]
    assert len({name_bytes(*name) for name in names}) == len(names)
    with pytest.raises(TypeError):
        name_bytes(True)
    with pytest.raises(TypeError):
        name_bytes(1.0)  # type: ignore[arg-type]


def test_keys_share_nothing():
    bits = {int(Key.for_testing(k).coins("x").words([0], [0]).block(0)[0][0, 0]) for k in (1, 2, 3)}
    assert len(bits) == 3


def test_a_key_drives_one_stream():
    key = Key.generate()
    key.claim()
    with pytest.raises(KeyReusedError, match="already drives a stream"):
        key.claim()
    copy = Key(key._secret)
    with pytest.raises(KeyReusedError):
        copy.claim()
    testing = Key.for_testing(3)
    testing.claim()
    testing.claim()


def test_a_secret_shows_nowhere():
    key = Key.generate()
    secret = key._secret
    for thing in (key, key.coins("a")):
        for text in (repr(thing), str(thing), f"{thing}"):
            assert secret.hex() not in text
            assert repr(secret) not in text
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    with pytest.raises(InputError) as caught:
        Key(secret[:31])
    assert secret[:31].hex() not in str(caught.value)
    assert repr(secret[:31]) not in str(caught.value)


def test_generated_keys_differ():
    assert len({Key.generate()._secret for _ in range(100)}) == 100


@pytest.mark.parametrize("bad", [b"", bytes(31), "x" * 32, None])
def test_bad_keys(bad):
    with pytest.raises(InputError, match="32 bytes"):
        Key(bad)


@pytest.mark.parametrize("bad", ["1", 1.0, True, None])
def test_bad_seeds(bad):
    with pytest.raises(InputError, match=r"expected a whole number, got .+ - at seed"):
        Key.for_testing(bad)


def test_uniform_integers_are_uniform():
    draws = below(Coins(bytes(32)).branch("uniform"), 7, 70_000)
    counts = np.bincount(draws, minlength=7)
    assert counts.size == 7
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 33  # chi-square, 6 degrees of freedom: 1e-5
    assert set(below(Coins(bytes(32)), 1, 5).tolist()) == {0}


def test_permutations_are_uniform():
    coins = Coins(bytes(32))
    seen = [tuple(permutation(coins.branch(i), 3).tolist()) for i in range(6000)]
    counts = np.array([seen.count(order) for order in set(seen)])
    assert counts.size == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 31  # 5 degrees of freedom: 1e-5


GOLDEN_FIRST = ["0x5cd1a758fac22279", "0x58c9708d1bf72843", "0x8db137ea293d0bed", "0x48c5cccf6f3f7dab"]
GOLDEN_SECOND = "0xdaecb7dae6d2a250"
GOLDEN_EXTENSION = ["0xff3ca02e17cbee9c8d61312b7d69f8b5", "0x927186699e02921dd917e6c5d5fab9d4"]


def test_uniform_integers_of_any_size():
    coins = Key.for_testing(8).coins("uniform")
    for bound in (1, 2, 3, 255, 1 << 64, (1 << 200) + 1):
        drawn = [integer(coins.branch(bound.bit_length(), i), bound) for i in range(400)]
        assert min(drawn) >= 0
        assert max(drawn) < bound
        if bound > 2:
            assert abs(sum(d / bound for d in drawn) / 400 - 0.5 * (1 - 1 / bound)) < 5 * 0.29 / 20
    counts = Counter(integer(coins.branch("die", i), 6) for i in range(6000))
    assert sum((counts[face] - 1000) ** 2 / 1000 for face in range(6)) < 40


def test_distinct_places_are_uniform_sets():
    coins = Key.for_testing(8).coins("distinct")
    for size in range(6):
        drawn = Counter(tuple(distinct(coins.branch(size, i), 5, size).tolist()) for i in range(2000))
        sets = math.comb(5, size)
        assert all(len(set(places)) == size and list(places) == sorted(places) for places in drawn)
        assert len(drawn) == sets
        assert sum((count - 2000 / sets) ** 2 / (2000 / sets) for count in drawn.values()) < 45
    many = distinct(coins, 10**6, 10**4)
    assert len(np.unique(many)) == 10**4
    assert 0 <= many[0] < many[-1] < 10**6
    with pytest.raises(ValueError, match="count up to the bound"):
        distinct(coins, 3, 4)
