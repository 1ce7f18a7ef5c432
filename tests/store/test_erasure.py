"""What an erasure found: it changes words, exit codes and receipts, and nothing else; only the key tells it."""

import hashlib
from itertools import pairwise

import pytest
from msgspec import UNSET

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.store.receipt import public_key, verify
from retroact.store.sqlite import SQLiteStore
from retroact.stream.erasure import Hashes

SCHEMA = {"name": ra.Text(), "amount": ra.Integer(0, 1000)}
STATISTICS = {"people": ra.Count(), "total": ra.Sum("amount"), "recent": ra.Count(window=2)}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "horizon": 50}
KEY = ra.Key.for_testing(5)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def stream(request, tmp_path):
    if request.param == "memory":
        yield ra.Stream(SCHEMA, STATISTICS, **BUDGET, key=ra.Key.for_testing(6))
        return
    where = tmp_path / "s" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with opened(where, tmp_path) as made:
        yield made


def opened(where, tmp_path, name="a", **more):
    return ra.Stream.open(where, SCHEMA, STATISTICS, key=KEY, fence=tmp_path / f"{name}.fence", **{**BUDGET, **more})


def sha256(text):
    return hashlib.sha256(text.encode()).digest()


def add(stream, subject, amount=1, **more):
    stream.add({"name": "x", "amount": amount}, subject=subject, **more)


def told(erasure):
    return [(outcome.identifier, outcome.found) for outcome in erasure.outcomes]


# Nothing else changes -------------------------------------------------------------------------------------------------


def data_rows(stream):
    """All data tables as they are stored."""
    tables = {"block": "stamp, mark", "inbox": "number", "state": "name", "data_digest": "side"}
    return {
        table: stream.store.run("data", f"select * from {table} order by {order}") for table, order in tables.items()
    }


@pytest.mark.parametrize("after_erasure", ["accept", "reject"])
@pytest.mark.parametrize("again", [False, True], ids=["alone", "with an addition in the round"])
@pytest.mark.parametrize("digest", [False, True], ids=["name", "digest"])
def test_found_or_not_changes_no_later_round(place, tmp_path, after_erasure, again, digest):
    """The record is there in one history and never was in the other; the subject comes back in this round and later."""
    streams = [opened(place(name), tmp_path, name, after_erasure=after_erasure) for name in ("one", "other")]
    for stream in streams:
        add(stream, "somebody", 40)
        add(stream, "another", 2, id="i")
    add(streams[0], "u17", 7)
    first = [stream.close_round().encode() for stream in streams]
    assert first[0] != first[1]
    found = []
    for stream in streams:
        who = {"sha256": sha256("u17")} if digest else {"subject": "u17"}
        found.append(stream.erase(**who, request="ticket").found)
        if again:
            add(stream, "u17", 3)
            add(stream, "u17", 5, id="i")
    assert found == [True, False]
    rounds, rejected = [], []
    for number in range(2, 6):
        for stream in streams:
            if number > 2:
                add(stream, "u17", number)
                add(stream, "u17", number, id="later")
        closed = [stream.close_round() for stream in streams]
        rounds.append([each.encode() for each in closed])
        rejected.append([each.applied.rejected for each in closed])
    assert all(one == other for one, other in rounds)
    assert all(one == other for one, other in rejected)
    assert sum(one for one, _ in rejected) == (0 if after_erasure == "accept" else 6)
    one, other = streams
    assert one.store.blocks() == other.store.blocks()
    assert data_rows(one) == data_rows(other)
    assert one.store.erased() == other.store.erased()
    assert len(one.store.erased()) == (after_erasure == "reject")
    assert one.store.releases(2) == other.store.releases(2)
    if isinstance(one.store, SQLiteStore):
        for stream, name in zip(streams, ("one", "other"), strict=True):
            stream.store.run("data", "vacuum into ?", [str(tmp_path / f"{name}.copy")])
        assert (tmp_path / "one.copy").read_bytes() == (tmp_path / "other.copy").read_bytes()
    for stream in streams:
        assert stream.verify().problems == []
        receipt = verify(stream.erase(subject="u17", request="ticket").receipt(), place="")
        assert receipt.found == [again or stream is one]
        stream.close()


# What is told ---------------------------------------------------------------------------------------------------------


def test_what_is_returned_says_what_was_there(stream):
    assert not stream.erase(subject="nobody").found
    add(stream, "a", 1, id="i")
    add(stream, "a", 2)
    stream.close_round()
    add(stream, "a", 3)
    add(stream, "b", 4)
    for given in (
        {"subject": ["a", "b", "nobody"]},
        {"sha256": [sha256("a"), sha256("b"), sha256("nobody")]},
        {"subject": "a", "sha256": [sha256("b"), sha256("nobody")]},
    ):
        erasure = stream.erase(**given)
        assert [(o.surviving, o.waiting, o.found) for o in erasure.outcomes] == [
            (2, 1, True), (0, 1, True), (0, 0, False),
        ]  # fmt: skip
        assert not erasure.found
    assert stream.erase(subject=["a", "b"]).found
    assert stream.erase(sha256=sha256("a")).outcomes[0].identifier == sha256("a").hex()
    assert stream.close_round().applied.ignored_deletions == 0
    assert stream.records == 0
    assert not stream.erase(subject="a").found


def test_what_was_entered_and_taken_back_is_not_there(stream):
    def hand_in():
        with stream.receiving("feed", (1,)):
            add(stream, "a", 1)
            assert stream.erase(subject="a").found
            add(stream, "a", 10**6)

    with pytest.raises(InputError, match="amount"):
        hand_in()
    assert not stream.erase(subject="a").found
    add(stream, "a", 1)
    assert stream.erase(subject="a").found


def test_a_record_that_is_deleted_in_the_same_round_was_there(stream):
    add(stream, "a", 1, id="i")
    stream.delete(id="i")
    assert stream.erase(subject="a").found


def test_equal_records_of_a_large_batch_are_counted(stream):
    people = ["a", "b", None, "a"] * 2500
    stream.add({"name": ["x"] * 10_000, "amount": [1] * 10_000}, subject=people)
    assert [o.waiting for o in stream.erase(subject=["a", "b"]).outcomes] == [5000, 2500]
    stream.close_round()
    stream.add({"name": ["x"] * 10_000, "amount": [1] * 10_000}, subject=people)
    stream.close_round()
    assert [o.surviving for o in stream.erase(subject=["a", "b"]).outcomes] == [5000, 2500]


def test_a_repeated_request_has_the_later_outcome(place, tmp_path):
    where, ask = place("s"), {"subject": ["a", "b"], "request": "ticket"}
    with opened(where, tmp_path) as stream:
        add(stream, "a")
        assert told(stream.erase(**ask, dry_run=True)) == [("a", True), ("b", False)]
        first = stream.erase(**ask)
        assert told(first) == [("a", True), ("b", False)]
        add(stream, "b")
    with opened(where, tmp_path) as stream:
        # the round is still open: what was there when it was asked for
        for dry_run in (True, False):
            again = stream.erase(**ask, dry_run=dry_run)
            assert (again.state, again.repeated, told(again)) == ("received", True, [("a", True), ("b", False)])
            assert {(o.surviving, o.waiting) for o in again.outcomes} == {(None, None)}
        receipt = verify(again.receipt(), place="")
        assert (receipt.version, receipt.found) == (2, UNSET)
        stream.close_round()
        assert told(again) == [("a", True), ("b", True)]
    with opened(where, tmp_path) as stream:
        again = stream.erase(sha256=[sha256("b"), sha256("a")], request="ticket")
        assert (again.state, told(again)) == ("purged", [(sha256(who).hex(), True) for who in "ba"])
        receipt = verify(again.receipt(), place="", public_key=public_key(stream.hashes.signing))
        assert (receipt.version, receipt.found, receipt.missing) == (2, [True, True], 0)
        assert told(stream.erase(subject="b", request="another")) == [("b", False)]


def test_a_record_that_was_dropped_before_the_round_closed_was_not_there_in_the_end(place, tmp_path):
    with opened(place("s"), tmp_path) as stream:
        add(stream, "a")
        assert stream.erase(subject="a", request="ticket").found
        stream.discard()
        assert told(stream.erase(subject="a", request="ticket")) == [("a", True)]
        stream.close_round()
        again = stream.erase(subject="a", request="ticket")
        assert (again.state, told(again)) == ("purged", [("a", False)])
        assert verify(again.receipt(), place="").found == [False]


def test_a_receipt_says_it_of_each_subject_once(place, tmp_path):
    with opened(place("s"), tmp_path) as stream:
        add(stream, "a")
        add(stream, "c")
        asked = stream.erase(subject=["b", "a", "c", "a"], sha256=sha256("b"), request="ticket")
        stream.close_round()
        hashed = sorted("abc", key=stream.hashes.subject)
        receipt = verify(asked.receipt(), place="")
        assert receipt.found == [who != "b" for who in hashed]
        assert receipt.missing == 1
        assert told(stream.erase(subject=["a", "b", "c"], request="ticket")) == [(w, w != "b") for w in "abc"]


@pytest.mark.parametrize("found", [False, True])
def test_other_subjects_need_another_name(place, tmp_path, found):
    with opened(place("s"), tmp_path) as stream:
        if found:
            add(stream, "a")
        for _ in range(2):
            stream.erase(subject="a", request="ticket")
            for other in (["b"], ["a", "b"]):
                with pytest.raises(InputError, match="this name was given to another request"):
                    stream.erase(subject=other, request="ticket")
            stream.close_round()


# What is kept ---------------------------------------------------------------------------------------------------------


def test_the_outcome_is_sealed(place, tmp_path):
    """In the entry of the inbox and in the row of the request; equal in size, and different for equal outcomes."""
    with opened(place("s"), tmp_path) as stream:
        add(stream, "a")
        requests = {}
        for name, who in (("one", "a"), ("two", "nobody"), ("three", "nobody"), ("four", ["a", "nobody"])):
            stream.erase(subject=who, request=name)
        for _ in range(2):
            requests = stream.requests()
            sealed = [request.outcome for request in requests]
            assert len({*sealed}) == 4
            assert {len(each) for each in sealed} == {92}
            opened_again = [stream.hashes.unseal(request.content, request.outcome) for request in requests]
            assert sorted(map(sorted, opened_again)) == [[False], [False], [False, True], [True]]
            other = Hashes(ra.Key.for_testing(99))
            for request, another in pairwise(requests):
                for hashes, content, outcome in (
                    (other, request.content, request.outcome),
                    (stream.hashes, another.content, request.outcome),
                    (stream.hashes, request.content, request.outcome[:-1]),
                    (stream.hashes, request.content, None),
                ):
                    with pytest.raises(VerificationError):
                        hashes.unseal(content, outcome)
            stream.close_round()
        kept = b"".join(bytes(cell) for row in stream.store.run("journal", "select * from request") for cell in row
                        if isinstance(cell, bytes | memoryview))  # fmt: skip
        for flags in (b"\x00\x02\x02", b"\x01\x02\x02", b"nobody", b"one"):
            assert flags not in kept


def test_times_of_a_receipt_are_in_order_when_the_clock_goes_back(place, tmp_path, monkeypatch):
    from retroact.stream import vault

    hours = iter(range(23, 0, -1))

    def earlier():
        return f"2026-01-31T{next(hours):02}:00:00Z"

    monkeypatch.setattr(vault, "moment", earlier)
    with opened(place("s"), tmp_path) as stream:
        add(stream, "a")
        asked = stream.erase(subject="a", request="ticket")
        stream.close_round()
        receipt = verify(asked.receipt(), place="")
    assert receipt.received == receipt.applied == receipt.purged == "2026-01-31T23:00:00Z"


# Streams without subjects ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [{}, {"id": "id"}, {"ignore": True}])
def test_a_stream_without_subjects_refuses_and_says_what_to_do(place, tmp_path, columns):
    memory = ra.Stream(SCHEMA, STATISTICS, **BUDGET, columns=columns)
    memory.add({"name": "u17", "amount": 1})
    with opened(place("s"), tmp_path, columns=columns) as stream:
        stream.add({"name": "u17", "amount": 1})
        asked = [lambda: memory.erase(subject="u17"), lambda: memory.erase(sha256=sha256("u17"))]
        asked += [lambda: stream.erase(subject="u17"), lambda: stream.erase(subject="u17", dry_run=True)]
        for ask in asked:
            with pytest.raises(InputError, match=r"has no subjects.*new stream with subjects.*subject = .*by its id"):
                ask()
        assert stream.requests() == []


def test_a_stream_without_columns_has_subjects_before_any_record_has_one(stream):
    stream.add({"name": "x", "amount": 1})
    stream.close_round()
    assert not stream.erase(subject="u17").found
