"""Histories that unite, played into stores: the same releases, the same blocks, the same bytes on disk."""

import hashlib
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.ledger.definition import Add, Erase, unite_at
from retroact.store import canonical_blocks
from retroact.store.tables import tables
from retroact.testing import Shape, StreamAlgorithm, history, run, uniting_pairs
from retroact.testing.strategies import histories
from retroact.testing.strategies import uniting_pairs as drawn_pairs
from support.tiers import examples

KEY = ra.Key.for_testing(21)


def spread(columns, coins):
    """An algorithm of one's own: which records were sampled shows in its answer, noise and all."""
    ages = columns["age"]
    noise = int(DiscreteLaplace(2).sample(coins.words([0], [0]))[0, 0])
    return noise if len(ages) == 0 else int(ages.max()) - int(ages.min()) + noise


STATISTICS = {
    "people": ra.Count(),
    "recent": ra.Count(window=2, every=2),
    "total": ra.Sum("age", window=3),
    "average": ra.Mean("age", every=3),
    "countries": ra.Histogram("country"),
    "ages": ra.Quantiles("age", [0.25, 0.5, 0.75]),
    "spread": ra.WindowSample(ra.oneshot.Own(spread, epsilon=0.2, fields=["age"]), window=2, size=3),
}
SPEC = ra.Specification(
    {"country": ra.Text(missing="skip"), "age": ra.Integer(0, 120, missing="skip")},
    STATISTICS,
    epsilon=60.0,
    delta=1e-3,
    horizon=12,
)
VALUES = (("DE", 31), ("", 0), (None, None), ("a", None), (None, 0), ("long " * 9, 120))
"""Some are missing; of one record all are, and another has the values that lie under these."""
SHAPE = Shape(VALUES, rounds=5, updates=5)
CROWD = tuple(Add((country, age), subject="crowd") for country in ("DE", "FR") for age in range(20, 52, 4))
"""In every history: bins that are there, and blocks that nobody touches."""


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical_blocks, "SIZE", 8)
        yield


class Lasting(StreamAlgorithm):
    """A stream in a store. With ``breaks``, it is closed and opened again at random moments."""

    def __init__(self, where, fence, *, chunk=None, breaks=None):
        self._place, self._breaks = (where, fence), breaks
        super().__init__(SPEC, KEY, chunk=chunk, stream=self._opened())

    def release(self, updates):
        for part in self._parts(list(updates)):
            self._again(0.3)
            if self._chunk is None:
                for update in part:
                    self._feed(update)
            else:
                self._feed_batches(part, self._chunk)
        self._again(0.5)
        return self.stream.close_round()

    def _parts(self, updates):
        if self._breaks is None:
            return [updates]
        cuts = sorted(self._breaks.randint(0, len(updates)) for _ in range(2))
        return [updates[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(updates)], strict=True)]

    def _feed(self, update):
        if isinstance(update, Erase) and self._breaks is not None and self._breaks.random() < 0.5:
            self.stream.erase(sha256=hashlib.sha256(update.subject.encode()).digest())
        else:
            super()._feed(update)

    def _again(self, chance):
        if self._breaks is not None and self._breaks.random() < chance:
            self.stream.close()
            self.stream = self._opened()

    def _opened(self):
        where, fence = self._place
        return ra.Stream.open(where, specification=SPEC, key=KEY, fence=fence)


class Played:
    """Streams that are compared, in these places and then in folders; everything is closed and gone at the end."""

    def __init__(self, *places):
        self._places, self._stack = iter(places), ExitStack()

    def __enter__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="twins"))
        self._stack.callback(shutil.rmtree, self._folder)
        return self

    def __exit__(self, *error):
        self._stack.close()

    def __call__(self, base, **options):
        """What was released, and the stream."""
        number = len(list(self._folder.iterdir()))
        where = next(self._places, str(self._folder / f"{number}.stream"))
        algorithm = Lasting(where, self._folder / f"{number}.fence", **options)
        self._stack.callback(lambda: algorithm.stream.close())
        return [algorithm.close(updates) for updates in base], algorithm.stream

    def copy(self, stream):
        path = self._folder / "copy"
        stream.store.run("data", "vacuum into ?", [str(path)])
        content = path.read_bytes()
        path.unlink()
        return content


def data_tables(stream):
    """Every row with its hash, and the digest."""
    names = [*(table.name for table in tables("data")), "data_digest"]
    return {name: sorted(stream.store.run("data", f"select * from {name}")) for name in names}


def crowded(base):
    return ((*CROWD, *base[0]), *base[1:])


def check_twins(played, pair, seed, *, copies):
    one, other = crowded(pair.one), crowded(pair.other)
    assert unite_at(one, other) == pair.unite
    random = Random(seed)
    first, stream = played(one)
    second, twin = played(other, chunk=random.choice([None, 1, 2, 4]), breaks=random)
    assert first == run(lambda key: StreamAlgorithm(SPEC, key), KEY, one)
    assert first[pair.unite - 1 :] == second[pair.unite - 1 :]
    assert data_tables(stream) == data_tables(twin)
    assert len(stream.store.blocks()) > 1
    for each in (stream, twin):
        result = each.verify()
        assert result.problems == []
        assert {request.state for request in each.store.requests()} <= {"purged"}
        assert result.compared
    assert stream.store.releases(pair.unite) == twin.store.releases(pair.unite)
    if copies:
        assert played.copy(stream) == played.copy(twin)


def check_breaks(played, base, seed, chunk):
    base = crowded(base)
    straight, stream = played(base)
    broken, again = played(base, chunk=chunk, breaks=Random(seed))
    assert straight == broken
    assert stream.store.releases() == again.store.releases()
    assert stream.store.blocks() == again.store.blocks()
    assert again.verify().problems == []


def test_the_pairs_have_something_to_show():
    differing, full = 0, 0
    for pair in uniting_pairs(SHAPE, Random(2), 12):
        one, other = (
            run(lambda key: StreamAlgorithm(SPEC, key), KEY, crowded(each)) for each in (pair.one, pair.other)
        )
        differing += one[: pair.unite - 1] != other[: pair.unite - 1]
        full += b"DE" in one[-1]
    assert differing >= 4
    assert full == 12


@examples(25)
@given(drawn_pairs(SHAPE), st.integers(0, 1 << 30))
def test_twins_on_disk(pair, seed):
    with Played() as played:
        check_twins(played, pair, seed, copies=True)


@pytest.mark.parametrize("seed", range(6))
def test_twins_in_postgres(postgres_url, seed):
    (pair,) = uniting_pairs(SHAPE, Random(seed), 1)
    with Played(postgres_url, f"{postgres_url}_b") as played:
        check_twins(played, pair, seed, copies=False)


@examples(10)
@given(histories(SHAPE), st.integers(0, 1 << 30), st.sampled_from([None, 1, 3]))
def test_opened_again_and_again_on_disk(base, seed, chunk):
    with Played() as played:
        check_breaks(played, base, seed, chunk)


@pytest.mark.parametrize("seed", range(2))
def test_opened_again_and_again_in_postgres(postgres_url, seed):
    with Played(postgres_url, f"{postgres_url}_b") as played:
        check_breaks(played, history(SHAPE, Random(seed)), seed, 3)


@examples(8)
@given(histories(SHAPE), st.integers(2, 6))
def test_other_batches_are_the_same_stream(base, chunk):
    with Played() as played:
        one, stream = played(crowded(base))
        other, again = played(crowded(base), chunk=chunk)
        assert one == other
        assert stream.store.blocks() == again.store.blocks()
        assert played.copy(stream) == played.copy(again)


def test_both_stores_hold_the_same(postgres_url):
    base = crowded(history(SHAPE, Random(9)))
    with Played(postgres_url) as played:
        one, stream = played(base)
        other, again = played(base)
        assert one == other
        assert stream.store.blocks() == again.store.blocks()
        assert stream.store.releases() == again.store.releases()
