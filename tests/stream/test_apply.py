"""One door: a batch of operations is what the calls would have done one after another, whole or not at all."""

import numpy as np
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.ledger import Entry, Operations
from retroact.stream.engine import Running

SCHEMA = {"name": ra.Text(), "amount": ra.Integer(0, 100)}
STATISTICS = {"people": ra.Count(), "names": ra.Histogram("name"), "total": ra.Sum("amount")}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "horizon": 10}


def records(*names):
    return {"name": list(names), "amount": [len(name) for name in names]}


def memory(**more):
    return ra.Stream(SCHEMA, STATISTICS, **BUDGET, key=ra.Key.for_testing(1), **more)


@pytest.fixture(params=["memory", "store"])
def stream(request, tmp_path):
    if request.param == "memory":
        yield memory()
    else:
        key = ra.Key.for_testing(1)
        with ra.Stream.open(tmp_path / "s", SCHEMA, STATISTICS, key=key, fence=tmp_path / "f", **BUDGET) as opened:
            yield opened


def batch(stream):
    """An id is filled, emptied and filled again; one copy is deleted; one of the subjects is erased."""
    return Operations(
        added=stream.stamped(records("ann", "ann", "bob"), subject=["u1", "u2", "u3"]),
        placed=stream.stamped(records("cleo", "dora"), subject=["u1", "u2"]),
        deleted=stream.stamped(records("ann"), stamp=[1], subject=["u2"]),
        ids=["a", "a", "a", "b"],
        emptied=[1, 3],
        erased=["u3"],
    )


def test_a_batch_is_what_the_calls_would_have_done(stream):
    accepted = stream.apply(Entry(batch(stream), "feed", (4,), [3, 4]), close=True)
    calls = memory()
    calls.add(records("ann", "ann", "bob"), subject=["u1", "u2", "u3"])
    calls.upsert(records("cleo", "dora"), id=["a", "a", "a", "b"], deleted=[False, True, False, True],
                 subject=["u1", "u2"])  # fmt: skip
    calls.delete(records("ann"), stamp=[1], subject=["u2"])
    erasure = calls.erase(subject="u3")
    assert accepted.round.encode() == calls.close_round().encode()
    assert [each.found for each in accepted.erasure.outcomes] == [each.found for each in erasure.outcomes] == [True]
    assert (stream.position("feed"), stream.settled("feed"), stream.delivered("feed", 3)) == ((4,), (4,), True)


def test_without_a_close_it_waits(stream):
    accepted = stream.apply(Entry(batch(stream), "feed", (4,)))
    assert (accepted.round, stream.waiting, stream.position("feed"), stream.settled("feed")) == (None, 9, (4,), None)


def test_a_batch_whose_round_cannot_close_never_came(stream, monkeypatch):
    stream.add(records("eve"), subject=["u9"])
    with monkeypatch.context() as patch:
        patch.setattr(Running, "advanced", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stream.apply(Entry(batch(stream), "feed", (4,), [4]), close=True)
    assert (stream.round, stream.waiting, stream.position("feed"), stream.delivered("feed", 4)) == (1, 1, None, False)
    again = stream.apply(Entry(batch(stream), "feed", (4,), [4]), close=True)
    assert again.round.number == 1


def test_in_a_store_a_batch_lasts_and_its_erasures_are_a_request(tmp_path):
    options = {"key": ra.Key.for_testing(1), "fence": tmp_path / "f"}
    with ra.Stream.open(tmp_path / "s", SCHEMA, STATISTICS, **options, **BUDGET) as stream:
        asked = stream.apply(Entry(batch(stream), "feed", (4,), [4])).erasure
        assert (asked.state, len(stream.requests())) == ("received", 1)
    with ra.Stream.open(tmp_path / "s", **options) as stream:
        assert (stream.waiting, stream.position("feed"), stream.delivered("feed", 4)) == (9, (4,), True)
        closed = stream.close_round()
        assert [each.state for each in stream.requests()] == ["purged"]
    twin = memory()
    assert closed.encode() == twin.apply(Entry(batch(twin)), close=True).round.encode()


def test_errors_name_rows_by_their_numbers():
    stream, numbers = memory(columns={"subject": "who"}, late=False), np.array([17, 19])
    with pytest.raises(InputError, match="- at amount, row 19"):
        stream.stamped({"name": ["a", "b"], "amount": [1, 101]}, numbers=numbers)
    with pytest.raises(InputError, match="- at subject, row 19"):
        stream.stamped(records("a", "b"), subject=["u", 1.5], numbers=numbers)
    unowned = stream.stamped(records("a", "b"), subject=["u", None], numbers=numbers)
    with pytest.raises(InputError, match=r"whom the record belongs to, got none.* - at subject, row 19"):
        stream.apply(Entry(Operations(added=unowned)))
    stream.close_round()
    late = stream.stamped(records("a", "b"), subject=["u", "u"], stamp=[2, 1], numbers=numbers)
    with pytest.raises(InputError, match=r"takes no late data.* - at stamp, row 19"):
        stream.apply(Entry(Operations(placed=late, ids=["a", "b"])))
    assert stream.waiting == 0


def test_a_batch_must_fit_together():
    stream = memory()
    for wrong in (
        {"ids": ["a"]},
        {"ids": "ab", "emptied": [0, 1]},
        {"placed": stream.stamped(records("a")), "ids": []},
        {"erased": [1]},
    ):
        with pytest.raises(InputError):
            Operations(**wrong)
    with pytest.raises(InputError, match="nobody can be erased"):
        memory(columns={}).apply(Entry(Operations(erased=["u1"])))
    with pytest.raises(InputError, match="one source at a time"), stream.receiving("one", (1,)):
        stream.apply(Entry(Operations(), "two", (1,)))
