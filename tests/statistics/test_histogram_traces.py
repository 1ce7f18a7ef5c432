"""Histograms: no trace of emptied bins, noise by the name of its bin; planted bugs are caught."""

import gc
import os
import subprocess
import sys
import types
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import integer_cells
from retroact.ledger.definition import Add, Delete
from retroact.noise import Mechanism
from retroact.statistics.histogram import HistogramBound
from retroact.statistics.keys import Keys
from retroact.statistics.tally import Tally
from retroact.testing import (
    CheckFailedError,
    Pair,
    Shape,
    StreamAlgorithm,
    check_twin,
    uniting_pairs,
)
from support.histogram_streams import pages, specification, stream_of, totals


def bins_in_memory(stream):
    return dict(
        zip(Keys(["page"], stream.schema).decode(totals(stream).labels), totals(stream).amounts[:, 0], strict=True)
    )


def texts_within(thing):
    """All texts that can be reached from an object, but for code and classes."""
    stop = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.FrameType)
    known, waiting, out = {id(thing)}, [thing], set()
    while waiting:
        for other in gc.get_referents(waiting.pop()):
            if isinstance(other, str):
                out.add(other)
            elif id(other) not in known and not isinstance(other, stop):
                known.add(id(other))
                waiting.append(other)
                if isinstance(other, np.ndarray) and other.dtype == object:
                    out |= {text for text in other.tolist() if isinstance(text, str)}
    return out


# No trace -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"sum": "amount"}, {"window": 5}, {"every": 2}], ids=str)
def test_an_emptied_bin_leaves_no_trace(options):
    """Filled well above the threshold, shown, emptied: answers, state and memory are those of its twin."""
    filled, never = (stream_of(ra.Histogram("page", **options), horizon=12) for _ in range(2))
    for stream in (filled, never):
        stream.add(pages("stays", "stays", "stays"))
    filled.add(pages(*["the secret page"] * 50, amount=-7.5), subject=["u1"] * 50)
    shown = []
    for round in range(1, 13):
        if round == 4:
            assert "the secret page" in texts_within(filled)
            filled.erase(subject="u1")
        answers = filled.close_round(), never.close_round()
        shown += [round for release in answers[0].values() if "the secret page" in release.value]
        if round >= 4:
            assert answers[0].encode() == answers[1].encode()
            assert filled.state() == never.state()
            assert len(totals(filled)) == len(totals(never))
    assert shown
    assert max(shown) < 4
    assert "the secret page" not in texts_within(filled)


def test_memory_holds_only_bins_with_records():
    """100 bins come in every round and go two rounds later."""
    stream = stream_of(ra.Histogram("page", sum="amount"), horizon=40)
    for round in range(1, 41):
        names = [f"{round}/{i}" for i in range(100)]
        stream.add(pages(*names))
        if round > 2:
            stream.delete(pages(*(f"{round - 2}/{i}" for i in range(100))), stamp=round - 2)
        stream.close_round()
        assert bins_in_memory(stream) == {f"{r}/{i}": 1 for r in (round - 1, round) if r for i in range(100)}
    assert [len(part) for part in (*totals(stream).words, totals(stream).amounts, *totals(stream).labels)] == [200] * 4


def test_thousands_of_bins_unite_to_the_byte():
    """3,000 bins that survive; in one history among 9,000 others, one by one batch after another, in another order."""
    rng = np.random.default_rng(1)
    names = [f"page {i}" for i in range(12_000)]
    survivors = names[:3000]
    one, other = (stream_of(ra.Histogram("page"), horizon=6) for _ in range(2))
    shuffled = [names[i] for i in rng.permutation(12_000)]
    for start in range(0, 12_000, 1700):
        one.add(pages(*shuffled[start : start + 1700]))
    one.add(pages(*survivors[::-1]))
    other.add(pages(*survivors))
    other.add(pages(*survivors))
    first = [stream.close_round() for stream in (one, other)]
    assert first[0].encode() != first[1].encode()
    one.delete(pages(*(names[i] for i in 3000 + rng.permutation(9000))), stamp=1)
    for _ in range(3):
        released = [stream.close_round()["h"] for stream in (one, other)]
        assert released[0].encode() == released[1].encode()
        assert len(released[0].value) > 2500
        assert one.state() == other.state()
        assert [part.tobytes() for part in totals(one).words] == [part.tobytes() for part in totals(other).words]


def assert_noise_has_the_name_of_its_bin():
    """The same bin has the same noise alone, among a hundred bins with records, and in any order."""
    alone, among = (stream_of(ra.Histogram("page"), epsilon=2.0, delta=0.3) for _ in range(2))
    alone.add(pages(*["here"] * 40))
    among.add(pages(*(f"p{i}" for i in range(100))))
    among.add(pages(*["here"] * 40, *["there"] * 40))
    for _ in range(6):
        one, other = alone.close_round()["h"].value, among.close_round()["h"].value
        assert one["here"] == other["here"]
        assert other["here"] != other["there"]


def test_noise_has_the_name_of_its_bin():
    assert_noise_has_the_name_of_its_bin()


SCRIPT = """
import hashlib, warnings
import retroact as ra
warnings.simplefilter("ignore")
stream = ra.Stream(
    {"page": ra.Text(), "digest": ra.Bytes(), "age": ra.Integer(0, 120)},
    {"one": ra.Histogram("page"), "some": ra.Histogram(["age", "digest", "page"], sum="age", window=3)},
    epsilon=100.0, delta=0.3, horizon=8, key=ra.Key.for_testing(1))
digest = hashlib.sha256()
for round in range(1, 9):
    for page in {f"page {i * i % 97}" for i in range(round, round + 60)}:
        stream.add([{"page": page, "digest": page.encode(), "age": len(page)}] * 2, subject=[page, page])
    stream.erase(subject=f"page {round * round % 97}")
    for release in stream.close_round().values():
        assert len(release.value) > 20
        digest.update(release.encode())
        digest.update(repr(release.to_dict()).encode())
digest.update(stream.state())
print(digest.hexdigest())
"""


def test_hash_seeds_do_not_show():
    """The pages come out of a set: in another order under every hash seed."""
    digests = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def pairs(count=25, updates=8):
    shape = Shape(tuple((page, 1.0) for page in "abcdef"), updates=updates)
    return uniting_pairs(shape, Random(3), count)


def check(pairs, **budget):
    spec = specification(ra.Histogram("page"), **budget)
    return check_twin(lambda key: StreamAlgorithm(spec, key), pairs, keys=(1,))


# Planted bugs ---------------------------------------------------------------------------------------------------------


def test_what_the_planted_bugs_are_planted_in_is_right():
    assert check(pairs()) > 50


def test_noise_by_slot_is_caught(monkeypatch):
    """By the place among the bins that are there: the twin check passes, since equal data have equal slots. But one
    record more moves the noise of all bins behind it."""
    right = Mechanism.sample
    monkeypatch.setattr(Mechanism, "sample", lambda self, round, cells: right(self, round, integer_cells(len(cells))))
    check(pairs())
    with pytest.raises(AssertionError):
        assert_noise_has_the_name_of_its_bin()


def test_noise_by_first_arrival_is_caught(monkeypatch):
    right = Mechanism.sample

    def sample(self, round, cells):
        slots = self.__dict__.setdefault("slots", {})
        rows = [slots.setdefault(tuple(cell), len(slots)) for cell in cells.tolist()]
        return right(self, round, integer_cells(len(slots))[rows])

    monkeypatch.setattr(Mechanism, "sample", sample)
    with pytest.raises(CheckFailedError, match="twin"):
        check(pairs())


def test_hysteresis_is_caught(monkeypatch):
    """The threshold is applied when a bin first appears; what was shown once is shown as long as it has records."""
    right = HistogramBound.release

    class Open:
        def at(self, release):
            return 0

    def release(self, totals, noise, at):
        found = right(self, totals, noise, at)
        shown = noise.__dict__.setdefault("shown", set())
        shown |= set(found.answer.value)
        threshold, self.threshold = self.threshold, Open()
        everything = right(self, totals, noise, at)
        self.threshold = threshold
        value = {name: v for name, v in everything.answer.value.items() if name in shown}
        return type(found)(type(found.answer)(value, None, found.answer.interval), (), 1)

    monkeypatch.setattr(HistogramBound, "release", release)
    with pytest.raises(CheckFailedError, match="twin"):
        check(pairs(100))


def test_order_of_arrival_in_the_output_is_caught(monkeypatch):
    """The same bins and values, but listed as they came in."""
    right = HistogramBound.release

    def release(self, totals, noise, at):
        found = right(self, totals, noise, at)
        known = noise.__dict__.setdefault("known", {})
        for name in self.keys.decode(totals[0].labels):
            known.setdefault(name, len(known))
        value = dict(sorted(found.answer.value.items(), key=lambda item: known[item[0]]))
        return type(found)(type(found.answer)(value, None, found.answer.interval), (), 1)

    monkeypatch.setattr(HistogramBound, "release", release)
    with pytest.raises(CheckFailedError, match="twin"):
        check(pairs(100))


def test_emptied_candidates_are_caught(monkeypatch):
    """Bins without records stay candidates: with 5,000 of them some pass the threshold by noise alone."""
    right = Tally.__add__

    def keeping(self, other):
        out = right(self, other)
        lost = ~np.isin(self.words[0], out.words[0])
        if not lost.any():
            return out
        words = tuple(np.concatenate([a, b[lost]]) for a, b in zip(out.words, self.words, strict=True))
        order = np.argsort(words[0])
        amounts = np.concatenate([out.amounts, 0 * self.amounts[lost]])[order]
        labels = tuple(np.concatenate([a, b[lost]])[order] for a, b in zip(out.labels, self.labels, strict=True))
        return Tally(tuple(word[order] for word in words), amounts, labels)

    gone = [(f"p{i}", 1.0) for i in range(5000)]
    come, go = tuple(map(Add, gone)), tuple(Delete(value, 1) for value in gone)
    pair = Pair((come, go, ()), ((), (), ()), 2)
    check([pair], epsilon=1.0)
    monkeypatch.setattr(Tally, "__add__", keeping)
    with pytest.raises(CheckFailedError, match="twin"):
        check([pair], epsilon=1.0)
