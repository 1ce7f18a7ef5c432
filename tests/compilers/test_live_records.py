"""The live records of a window against a plain model: order, group laws, ranks that last."""

from collections import Counter
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins, Key
from retroact.compilers.live_records import Live, below, smallest
from retroact.schema import Category, Integer, Rows, Schema, Text, Vector

COINS = Key.for_testing(3).coins("live")
AGES = Schema({"age": Integer(-5, 120)})
WIDE = Schema({"who": Text(), "age": Integer(0, 9), "kind": Category(["a", "b"]), "place": Vector(2, radius=4, step=1)})


def live_of(records, *, schema=AGES, names=("age",), span=3, ranks=None, weight=1, coins=COINS):
    """Of (stamp, encoded tuple) pairs."""
    rows = Rows.from_tuples(schema, [value for _, value in records])
    rows = Rows(rows.columns, rows.count, stamps=np.array([stamp for stamp, _ in records], dtype=np.int64))
    return Live.of(rows, np.full(rows.count, weight, dtype=np.int64), names, schema, coins, span=span, ranks=ranks)


def contents(live):
    out = Counter()
    for block in live.blocks.values():
        assert len(block.tally)
        for key, amount in zip(zip(*block.tally.words, strict=True), block.tally.amounts[:, 0].tolist(), strict=True):
            assert amount > 0
            out[int(key[0]), int(key[1] ^ np.uint64(1 << 63)) - (1 << 64) * (int(key[1]) < 1 << 63)] += amount
    return out


def histories(random, steps=60):
    """Signed batches that never take what is not there, and what is there after each."""
    held = Counter()
    for step in range(1, steps + 1):
        added = [(step, (random.randint(-5, 3),)) for _ in range(random.randint(0, 5))]
        held.update(added)
        gone = random.sample(sorted(held.elements()), min(random.randint(0, 4), held.total()))
        held.subtract(gone)
        held = +held
        yield added, gone, held.copy()


@pytest.mark.parametrize("ranks", [None, COINS], ids=["unranked", "ranked"])
@pytest.mark.parametrize("span", [1, 3, 100])
def test_lives_add_up_and_depend_on_nothing_but_what_is_in_them(ranks, span):
    random = Random(span)
    live = live_of([], ranks=ranks, span=span)
    for added, gone, held in histories(random):
        live = live + live_of(added, ranks=ranks, span=span) - live_of(gone, ranks=ranks, span=span)
        if ranks is not None and random.random() < 0.5 and live.count:
            smallest(live, 2)  # from now on ranks are kept up
        shuffled = list(held.elements())
        random.shuffle(shuffled)
        anew = live_of(shuffled, ranks=ranks, span=span)
        assert contents(live) == {(stamp, value[0]): count for (stamp, value), count in held.items()} == contents(anew)
        assert live.count == anew.count == held.total()
        assert list(live.blocks) == list(anew.blocks) == sorted({stamp // span for stamp, _ in held})
        if live.count:
            places = np.array(sorted(random.sample(range(live.count), random.randint(0, live.count))), dtype=np.int64)
            expected = [value[0] for _, value in sorted(held.elements())]
            assert live.rows(places).columns["age"].tolist() == [expected[i] for i in places]
            assert sorted(live.all().columns["age"].tolist()) == sorted(expected)
        if ranks is not None and live.count:
            for size in (1, 3, 1000):
                assert values(smallest(live, size)) == values(smallest(anew, size)) == naive(held, size)
            assert values(below(live, 1 << 62)) == values(below(anew, 1 << 62)) == naive(held, bound=1 << 62)
            assert values(below(live, 1 << 64)) == sorted(expected)


def values(rows):
    return sorted(rows.columns["age"].tolist())


def cell_of(value):
    return np.array([[value + (1 << 63), 0]], dtype="<u8")


def naive(held, size=None, bound=None):
    """From the definition: the rank of copy j of (t, x), one at a time."""
    found = []
    for (stamp, value), count in held.items():
        for copy in range(count):
            high, low = COINS.words([copy], [stamp], cell_of(value[0])).block(0)
            found.append((int(high[0, 0]), int(low[0, 0]), value[0]))
    if bound is not None:
        return sorted(value for high, _, value in found if high < bound)
    return sorted(value for _, _, value in sorted(found)[:size])


def test_records_of_any_fields_are_told_apart_by_their_values():
    random = Random(5)
    names = tuple(WIDE.fields)
    records = [
        (
            random.randint(1, 4),
            (random.choice("äbc"), random.randint(0, 2), random.randint(0, 1), (random.randint(-1, 1), 0)),
        )
        for _ in range(200)
    ]
    live = live_of(records, schema=WIDE, names=names)
    expected = Counter(records)
    assert sum(len(block.tally) for block in live.blocks.values()) == len(expected)
    rows = live.all()
    found = Counter(
        zip(
            rows.columns["who"],
            rows.columns["age"],
            rows.columns["kind"],
            map(tuple, rows.columns["place"]),
            strict=True,
        )
    )
    assert found == Counter(value for _, value in records)
    random.shuffle(records)
    again = live_of(records, schema=WIDE, names=names).rows(np.arange(0, 200, 7))
    first = live.rows(np.arange(0, 200, 7))
    assert all((first.columns[name] == again.columns[name]).all() for name in names)
    # fewer fields: what agrees in them is the same
    some = live_of(records, schema=WIDE, names=("age",))
    ages = {(stamp, value[1]) for stamp, value in records}
    assert sum(len(block.tally) for block in some.blocks.values()) == len(ages)


def test_ranks_are_uniform_and_independent_of_each_other():
    live = live_of([(1, (v,)) for v in range(100)] * 40, ranks=COINS)
    (block,) = live.blocks.values()
    share = block.ranks.words[0].astype(np.float64) / 2.0**64
    assert len(share) == 4000
    counts = np.histogram(share, bins=20, range=(0, 1))[0]
    assert ((counts - 200) ** 2 / 200).sum() < 60  # chi-square with 19 degrees: beyond it with probability 4e-6
    other = live_of([(1, (v,)) for v in range(100)] * 40, ranks=Coins(bytes(32)))
    assert not np.intersect1d(block.ranks.words[0], other.blocks[0].ranks.words[0]).size


def test_a_deletion_takes_the_last_copy():
    three = live_of([(1, (7,))] * 3 + [(1, (8,))], ranks=COINS)
    smallest(three, 1)
    two = three - live_of([(1, (7,))], ranks=COINS)
    gone = set(three.blocks[0].ranks.words[0].tolist()) - set(two.blocks[0].ranks.words[0].tolist())
    assert gone == {int(COINS.words([2], [1], cell_of(7)).block(0)[0][0, 0])}


def test_nothing_of_an_erased_record_stays_in_memory():
    """No array of a window shares memory with one that held more than it does."""
    stream = ra.Stream(
        {"age": ra.Integer(0, 2**40)},
        {"it": ra.WindowSample(ra.oneshot.Median("age"), window=80, size=2, persistent=True)},
        epsilon=1.0,
        horizon=80,
        late=False,
    )
    stream.add([{"age": 123_456_789}] * 3 + [{"age": 7}], subject=["u17"] * 3 + [None])
    stream.close_round()
    for value in range(10):
        stream.add([{"age": value}])
        if value == 3:
            stream.erase(subject="u17")
        stream.close_round()
    for state in (stream, ra.Stream.from_state(stream.specification, stream.state(), key=ra.Key.for_testing(1))):
        (live,) = state._core.engine.running["it"].totals
        assert live.count == 11
        for block in live.blocks.values():
            arrays = [*block.tally.words, block.tally.amounts, *block.tally.labels]
            arrays += [*block.ranks.words, *block.ranks.labels]
            for array in [*arrays, *live.empty.columns.values()]:
                root = array if array.base is None else array.base
                assert root.nbytes <= max(array.nbytes, 16 * len(array))
                assert 123_456_789 not in np.asarray(root).view(np.int64).ravel().tolist()
