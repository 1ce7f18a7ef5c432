"""A tally is a dictionary from keys to integers that has forgotten every key whose total is zero."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.statistics.tally import Tally

COORDINATES = (1, 2, 3)
WORDS = (1, 2, 3)
# Few different words, the extremes among them, so that keys meet, tie in their first word, and cancel.
WORD = st.sampled_from([0, 1, 7, 2**63 - 1, 2**63, 2**64 - 1])
AMOUNT = st.integers(-2, 2)


def label_of(key):
    """Labels follow from the key, as the text of a bin follows from its cell."""
    return "".join(f"<{word}>" for word in key), sum(key) % 1009


def tally_of(entries, words, coordinates):
    """From (key, amounts) in any order, the same key several times."""
    keys = [key for key, _ in entries]
    columns = tuple(np.array([key[i] for key in keys], dtype=np.uint64) for i in range(words))
    amounts = np.array([amounts for _, amounts in entries], dtype=np.int64).reshape(len(entries), coordinates)
    texts = np.empty(len(keys), dtype=object)
    texts[:] = [label_of(key)[0] for key in keys]
    numbers = np.array([label_of(key)[1] for key in keys], dtype=np.int64)
    return Tally.of(columns, amounts, (texts, numbers))


def model_of(entries, coordinates, sign=1, start=None):
    """The same, by the definition."""
    out = dict(start or {})
    for key, amounts in entries:
        before = out.get(key, (0,) * coordinates)
        out[key] = tuple(b + sign * a for b, a in zip(before, amounts, strict=True))
    return {key: amounts for key, amounts in out.items() if any(amounts)}


def assert_holds(tally, model):
    keys = list(zip(*(word.tolist() for word in tally.words), strict=True))
    assert keys == sorted(model), "keys in order, each once, none without a total"
    assert tally.amounts.tolist() == [list(model[key]) for key in keys]
    assert [label.tolist() for label in tally.labels] == [[label_of(key)[i] for key in keys] for i in (0, 1)]
    assert len(tally) == len(model)
    assert tally.amounts.dtype == np.int64
    assert all(word.dtype == np.uint64 for word in tally.words)


@st.composite
def histories(draw):
    """How many words and coordinates, and a list of (sign, entries)."""
    words, coordinates = draw(st.sampled_from(WORDS)), draw(st.sampled_from(COORDINATES))
    entry = st.tuples(st.tuples(*[WORD] * words), st.tuples(*[AMOUNT] * coordinates))
    steps = st.lists(st.tuples(st.sampled_from([1, -1]), st.lists(entry, max_size=8)), min_size=1, max_size=6)
    return words, coordinates, draw(steps)


@given(histories())
def test_a_tally_is_its_dictionary(history):
    words, coordinates, steps = history
    tally, model = tally_of([], words, coordinates), {}
    for sign, entries in steps:
        part = tally_of(entries, words, coordinates)
        assert_holds(part, model_of(entries, coordinates))
        before = tally, dict(model)
        tally = tally + part if sign == 1 else tally - part
        model = model_of(entries, coordinates, sign, model)
        assert_holds(tally, model)
        assert_holds(*before)


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_entries_and_of_steps_does_not_matter(history, random):
    words, coordinates, steps = history
    signed = [(key, tuple(sign * a for a in amounts)) for sign, entries in steps for key, amounts in entries]
    whole = tally_of(signed, words, coordinates)
    random.shuffle(signed)
    one_by_one = tally_of([], words, coordinates)
    for entry in signed:
        one_by_one = one_by_one + tally_of([entry], words, coordinates)
    assert_holds(one_by_one, model_of(signed, coordinates))
    for one, other in zip((*whole.words, whole.amounts), (*one_by_one.words, one_by_one.amounts), strict=True):
        assert one.tobytes() == other.tobytes(), "equal tallies have equal bytes, whatever their past"


@given(histories())
def test_taking_everything_off_again_leaves_nothing(history):
    words, coordinates, steps = history
    parts = [tally_of(entries, words, coordinates) for _, entries in steps]
    tally = tally_of([], words, coordinates)
    for part in parts:
        tally = tally + part
    for part in parts[::-1]:
        tally = tally - part
    assert_holds(tally, {})
    assert [len(column) for column in (*tally.words, tally.amounts, *tally.labels)] == [0] * (words + 3)


@given(histories())
def test_amounts_of_some_keys_and_running_sums(history):
    words, coordinates, steps = history
    entries = [entry for _, entries in steps for entry in entries]
    tally, model = tally_of(entries, words, coordinates), model_of(entries, coordinates)
    wanted = sorted({key for key, _ in entries} | {(7,) * words, (5,) * words})
    columns = tuple(np.array([key[i] for key in wanted], dtype=np.uint64) for i in range(words))
    assert tally.find(columns).tolist() == [list(model.get(key, (0,) * coordinates)) for key in wanted]
    firsts = [model[key][0] for key in sorted(model)]
    assert tally.below.tolist() == [sum(firsts[:i]) for i in range(len(firsts) + 1)]


def test_tallies_of_many_keys():
    """100,000 keys in, in two ways, and all but every hundredth out again."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, (2, 100_000), dtype=np.uint64)
    amounts = rng.integers(1, 9, (100_000, 2))
    whole = Tally.of(tuple(words), amounts)
    parts = Tally.of(tuple(words[:, :30_000]), amounts[:30_000]) + Tally.of(tuple(words[:, 30_000:]), amounts[30_000:])
    assert all((a == b).all() for a, b in zip(whole.words, parts.words, strict=True))
    assert (whole.amounts == parts.amounts).all()
    gone = np.arange(100_000) % 100 != 0
    left = parts - Tally.of(tuple(words[:, gone]), amounts[gone])
    kept = Tally.of(tuple(words[:, ~gone]), amounts[~gone])
    assert len(left) == 1000
    assert all((a == b).all() for a, b in zip(left.words, kept.words, strict=True))
    assert (left.amounts == kept.amounts).all()


def test_a_tally_that_keeps_emptied_keys_is_caught(monkeypatch):
    right = Tally.__add__

    def keeping(self, other):
        out = right(self, other)
        lost = ~np.isin(self.words[0], out.words[0])
        words = tuple(np.concatenate([a, b[lost]]) for a, b in zip(out.words, self.words, strict=True))
        order = np.argsort(words[0])
        amounts = np.concatenate([out.amounts, 0 * self.amounts[lost]])[order]
        labels = tuple(np.concatenate([a, b[lost]])[order] for a, b in zip(out.labels, self.labels, strict=True))
        return Tally(tuple(word[order] for word in words), amounts, labels)

    monkeypatch.setattr(Tally, "__add__", keeping)
    one = tally_of([((3,), (2,))], 1, 1)
    with pytest.raises(AssertionError, match="none without a total"):
        assert_holds(one - one, {})
