"""Streams that last: twins, replay, erasure and residue, on both stores."""

import hashlib
import json
import sqlite3

import numpy as np
import pytest

import retroact as ra
from retroact.errors import InputError, KeyReusedError, VerificationError
from retroact.store.receipt import public_key
from retroact.store.receipt import verify as verify_receipt
from support.durable_streams import BUDGET, KEY, SCHEMA, STATISTICS, fill, opened


def test_a_twin_without_the_erased_gives_the_same_bytes(place, tmp_path):
    gone = ("person-03", "person-07")
    one, twin = opened(place("one"), tmp_path, "one"), opened(place("twin"), tmp_path, "twin")
    differ = []
    for round in range(1, 7):
        fill(one, round)
        fill(twin, round, without=gone)
        if round == 4:
            one.erase(subject=gone[0])
            one.erase(sha256=hashlib.sha256(gone[1].encode()).digest())
        if round > 4:
            for subject in gone:
                one.erase(subject=subject)
        differ.append(one.close_round().encode() != twin.close_round().encode())
    assert differ == [True] * 3 + [False] * 3
    assert one.store.blocks() == twin.store.blocks()
    one.close()
    twin.close()


def test_a_stream_goes_on_where_it_was(place, tmp_path):
    straight, where = opened(place("straight"), tmp_path, "straight"), place("often")
    for round in range(1, 6):
        fill(straight, round)
        expected = straight.close_round()
        with opened(where, tmp_path, "often") as stream:
            fill(stream, round)
        with ra.Stream.open(where, key=KEY, fence=tmp_path / "often.fence") as stream:
            assert stream.round == round
            assert stream.close_round().encode() == expected.encode()
            assert stream.verify().problems == []
    straight.close()


def test_what_is_stored_is_in_memory_the_same_stream(place, tmp_path):
    stream, memory = opened(place("s"), tmp_path), ra.Stream(SCHEMA, STATISTICS, key=KEY, **BUDGET)
    for round in range(1, 5):
        fill(stream, round)
        fill(memory, round)
        for each in (stream, memory):
            each.delete(id=f"id-{round}-3")
            each.upsert({"name": ["x"], "amount": [1]}, id=["id-1-1", "id-1-5"], deleted=[True, False])
        assert stream.close_round().encode() == memory.close_round().encode()
    assert stream.records == memory.records
    stream.close()


def test_not_a_byte_of_the_erased_is_left(folder, tmp_path):
    stream, twin = opened(folder, tmp_path), opened(tmp_path / "twin", tmp_path, "twin")
    for round in range(1, 5):
        fill(stream, round)
        fill(twin, round, without=["person-11"])
        if round == 2:
            # in the open round, and gone before it closes
            stream.add({"name": "a passing visitor", "amount": 123456789012}, id="id-visitor", subject="somebody")
            stream.delete(id="id-visitor")
        if round == 4:
            random = np.random.default_rng(3)
            amounts = [int(random.integers(10**11, 2 * 10**11)) for _ in range(60)][11::20]
            stream.erase(subject="person-11", request="ticket-person-11")
        stream.close_round()
        twin.close_round()
    erased = [b"person-11", b"name of person-11", b"id-3-11", b"visitor", b"somebody", b"ticket-person"]
    erased += [amount.to_bytes(8, "little") for amount in [*amounts, 123456789012]]
    erased += [hashlib.sha256(b"person-11").digest(), hashlib.sha256(b"person-11").hexdigest().encode()]
    for path in [*folder.iterdir(), tmp_path / "a.fence"]:
        content = path.read_bytes()
        for trace in erased:
            assert trace not in content, (path.name, trace)
    # the search finds what is there
    assert b"person-12" in (folder / "data.sqlite").read_bytes()
    assert stream.store.residue() == []
    for one, name in ((stream, "copy"), (twin, "twin copy")):
        one.store.run("data", "vacuum into ?", [str(tmp_path / name)])
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "twin copy").read_bytes()
    stream.close()
    twin.close()


def test_the_journal_holds_no_subject_value_or_id(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        fill(stream, 1)
        stream.close_round()
        stream.erase(subject=["person-01", "person-02"], request="ticket")
        stream.close_round()
    content = (folder / "journal.sqlite").read_bytes()
    for trace in (b"person-", b"id-1-", b"name of"):
        assert trace not in content
    for k in range(20):
        digest = hashlib.sha256(f"person-{k:02}".encode())
        assert digest.digest() not in content
        assert digest.hexdigest().encode() not in content


def test_what_a_reader_bars_is_purged_later(folder, tmp_path):
    stream = opened(folder, tmp_path)
    fill(stream, 1)
    stream.close_round()
    reader = sqlite3.connect(folder / "data.sqlite")
    reader.execute("begin")
    reader.execute("select count(*) from block").fetchone()
    asked = stream.erase(subject="person-01", request="r")
    stream.close_round()
    assert asked.state == "applied"
    assert verify_receipt(asked.receipt(), place="").what == []
    reader.close()
    fill(stream, 3)
    stream.close_round()
    assert asked.state == "purged"
    assert b"name of person-01 1" not in (folder / "data.sqlite").read_bytes()
    stream.close()


def test_what_was_acknowledged_before_a_refused_batch_stays(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        fill(stream, 1)
        with pytest.raises(InputError):
            stream.add({"name": "x", "amount": -1})
        assert stream.close_round().applied.added == 60


def test_an_interrupt_after_the_first_byte_was_written_closes_the_stream(folder, tmp_path, monkeypatch):
    from retroact.ledger.multiset import Multiset

    def interrupted(*_):
        raise KeyboardInterrupt

    stream = opened(folder, tmp_path)
    stream.add({"name": "x", "amount": 1})
    with monkeypatch.context() as patch:
        patch.setattr(Multiset, "apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.close_round()
    with pytest.raises(InputError, match="close this stream and open it again"):
        stream.close_round()
    stream.close()
    with opened(folder, tmp_path) as stream:
        assert (stream.round, stream.records) == (2, 1)


def test_two_requests_of_one_batch_and_positions_out_of_order(folder, tmp_path):
    stream = opened(folder, tmp_path, after_erasure="reject")
    with stream.receiving("feed", (5,), delivered=[5]):
        stream.erase(subject="a", request="one")
        stream.erase(subject="b", request="two")
    with stream.receiving("feed", (3,), delivered=[3]):
        stream.add({"name": "x", "amount": 1})
    stream.close()
    with opened(folder, tmp_path, after_erasure="reject") as stream:
        assert stream.position("feed") == (5,)
        assert [request.state for request in stream.requests()] == ["received", "received"]
        stream.close_round()
        assert [stream.erase(subject=who, request=name).state for who, name in (("a", "one"), ("b", "two"))] == [
            "purged", "purged",
        ]  # fmt: skip
        stream.add({"name": ["x", "y"], "amount": [1, 1]}, subject=["a", "b"])
        assert stream.close_round().applied.rejected == 2


@pytest.mark.parametrize(
    "arguments", [("feed", (1.5,)), ("feed", (1,), ["x"]), (7, (1,)), ("", (1,)), ("feed", (1 << 70,)), ("feed", 3)]
)
def test_a_source_that_is_none_is_refused_at_the_door(folder, tmp_path, arguments):
    with opened(folder, tmp_path) as stream:
        with pytest.raises((InputError, TypeError)):
            stream.receiving(*arguments).__enter__()
        stream.add({"name": "x", "amount": 1})
    with opened(folder, tmp_path) as stream:
        assert stream.close_round().applied.added == 1


def test_one_source_at_a_time(folder, tmp_path):
    with opened(folder, tmp_path) as stream, stream.receiving("a", (1,)):
        with pytest.raises(InputError, match="one source at a time"):
            stream.receiving("b", (1,)).__enter__()
        stream.add({"name": "x", "amount": 1})


def erase_and_fail(stream):
    with stream.receiving("feed", (np.int64(1),), delivered=[np.int64(1)]):
        stream.erase(subject="person-01", request="one")
        stream.add({"name": "bad", "amount": -1})


def test_a_request_of_a_refused_batch_was_never_made(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        fill(stream, 1)
        with pytest.raises(InputError):
            erase_and_fail(stream)
        assert stream.requests() == []
        stream.close_round()
        assert stream.requests() == []
        with stream.receiving("feed", (np.int64(1),), delivered=[np.int64(1)]):
            stream.erase(subject="person-01", request="one")
        assert stream.close_round().applied.removed == 3
        assert [request.state for request in stream.requests()] == ["purged"]


def test_what_is_discarded_does_not_take_an_erasure_with_it(place, tmp_path):
    where = place("s")
    with opened(where, tmp_path) as stream:
        fill(stream, 1)
        stream.close_round()
        fill(stream, 2)
        with stream.receiving("feed", (7,), delivered=[7]):
            stream.erase(subject="person-01", request="one")
            stream.add({"name": "new", "amount": 1}, id="id-1-1", subject="person-02")
        stream.erase(sha256=hashlib.sha256(b"person-03").digest(), request="two")
        assert stream.discard() == 61
        assert (stream.discard(), stream.position("feed"), len(stream.requests())) == (0, None, 2)
    with opened(where, tmp_path) as stream:
        assert [request.state for request in stream.requests()] == ["received", "received"]
        assert stream.close_round().applied.removed == 6
        assert [request.round for request in stream.requests()] == [2, 2]
        assert stream.erase(subject="person-01", request="one").repeated
        assert stream.records == 54


def test_what_a_reader_barred_is_scrubbed_later(folder, tmp_path):
    stream = opened(folder, tmp_path)
    fill(stream, 1)
    stream.close_round()
    reader = sqlite3.connect(folder / "data.sqlite")
    reader.execute("begin")
    reader.execute("select count(*) from block").fetchone()
    stream.delete(id="id-1-3")
    stream.close_round()
    reader.close()
    stream.close()
    with opened(folder, tmp_path) as stream:
        for path in folder.iterdir():
            assert b"id-1-3\x00" not in path.read_bytes() + b"\x00"
            assert b"name of person-03 1" in path.read_bytes() or path.name != "data.sqlite"
        assert stream.store.residue() == []


def test_a_changed_specification_is_refused_with_the_difference(place, tmp_path):
    where = place("s")
    opened(where, tmp_path).close()
    # nothing came in yet
    with opened(where, tmp_path, budget={**BUDGET, "epsilon": 2.0}) as stream:
        assert stream.guarantee.epsilon == 2.0
        stream.add({"name": "a", "amount": 1})
    with pytest.raises(InputError, match=r"epsilon: 2.0 in the store, 1.0 given"):
        opened(where, tmp_path)
    with pytest.raises(InputError, match=r"statistics.total: .* in the store, nothing given"):
        opened(where, tmp_path, statistics={"people": ra.Count()}, budget={**BUDGET, "epsilon": 2.0})
    with ra.Stream.open(where, key=KEY, fence=tmp_path / "a.fence") as stream:
        assert stream.close_round().applied.added == 1


def test_the_key_lies_beside_the_folder_for_its_owner_alone(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("RETROACT_KEY", raising=False)
    ra.Stream.open(folder, SCHEMA, STATISTICS, **BUDGET).close()
    key = tmp_path / "orders.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "orders.fence").exists()
    for path in folder.iterdir():
        content = path.read_bytes()
        assert key.read_bytes().strip() not in content
        assert bytes.fromhex(key.read_text()) not in content
    ra.Stream.open(folder).close()
    # the same key for another stream: its fence is in the way as soon as something was released
    with ra.Stream.open(folder) as stream:
        stream.close_round()
    with pytest.raises(VerificationError, match="round 1 was published"):
        ra.Stream.open(tmp_path / "second", SCHEMA, STATISTICS, key_file=key, **BUDGET)
    key.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"orders\.key: no such file"):
        ra.Stream.open(folder)
    monkeypatch.setenv("RETROACT_KEY_COMMAND", f"cat {tmp_path / 'elsewhere'}")
    with pytest.raises(InputError, match="expected the key that"):
        ra.Stream.open(folder, key=ra.Key.generate())
    ra.Stream.open(folder).close()
    monkeypatch.setenv("RETROACT_KEY_COMMAND", "false")
    with pytest.raises(InputError, match="exit code 1"):
        ra.Stream.open(folder)


def test_a_key_of_a_store_drives_nothing_else_in_this_process(folder):
    key = ra.Key.generate()
    ra.Stream.open(folder, SCHEMA, STATISTICS, key=key, **BUDGET).close()
    ra.Stream.open(folder, key=key).close()
    with pytest.raises(KeyReusedError):
        ra.Stream(SCHEMA, STATISTICS, key=key, **BUDGET)


def test_releases_can_be_queried(place, tmp_path):
    with opened(place("s"), tmp_path) as stream:
        first = stream.close_round()
        rows = stream.store.run("journal", "select statistic, release from published where round = ?", [1])
        assert {name: json.loads(line) for name, line in rows} == {n: r.to_dict() for n, r in first.items()}
        assert list(stream.releases()) == [release.to_dict() for release in first.values()]


def test_one_process_at_a_time(place, tmp_path, impatient):
    where = place("s")
    with opened(where, tmp_path), pytest.raises(InputError, match="another process has this stream open"):
        opened(where, tmp_path)
    opened(where, tmp_path).close()


def good_and_bad(stream):
    with stream.receiving("feed", (9,)):
        stream.add({"name": "good", "amount": 1}, id="g")
        stream.add({"name": "bad", "amount": -1})


def test_a_batch_is_taken_whole_or_not_at_all(place, tmp_path):
    where = place("s")
    stream = opened(where, tmp_path)
    fill(stream, 1)
    waiting = len(stream._core.open.updates)
    with pytest.raises(InputError, match="between 0 and"):
        good_and_bad(stream)
    assert len(stream._core.open.updates) == waiting
    assert stream.position("feed") is None
    with stream.receiving("feed", (9,), delivered=[8, 9]):
        stream.add({"name": "good", "amount": 1}, id="g")
    stream.close()
    with opened(where, tmp_path) as stream:
        assert len(stream._core.open.updates) == waiting + 1
        assert stream.position("feed") == (9,)
        assert stream.delivered("feed", 8)
        assert not stream.delivered("feed", 7)
        stream.close_round()
        # one far position does not swallow the ones before it
        assert stream.delivered("feed", 8)
        assert not stream.delivered("feed", 7)
        assert stream.discard() == 0
    with opened(where, tmp_path) as stream:
        assert stream.delivered("feed", 8)
        assert not stream.delivered("feed", 7)
    with pytest.raises(InputError, match="this stream is closed"):
        stream.add({"name": "late", "amount": 1})


def test_a_request_is_done_once_and_has_a_receipt(place, tmp_path):
    with opened(place("s"), tmp_path) as stream:
        fill(stream, 1)
        stream.close_round()
        fill(stream, 2)
        tried = stream.erase(subject=["person-01", "nobody"], request="ticket", dry_run=True)
        assert [(o.identifier, o.surviving, o.waiting, o.found) for o in tried.outcomes] == [
            ("person-01", 3, 3, True), ("nobody", 0, 0, False),
        ]  # fmt: skip
        assert len(stream.store.requests()) == 0
        asked = stream.erase(subject=["person-01", "nobody"], request="ticket")
        assert asked.state == "received"
        assert verify_receipt(asked.receipt(), place="").round is None
        waiting = len(stream._core.open.updates)
        assert stream.erase(subject=["nobody", "person-01"], request="ticket").state == "received"
        assert len(stream._core.open.updates) == waiting
        with pytest.raises(InputError, match="another request"):
            stream.erase(subject="person-02", request="ticket")
        assert stream.close_round().applied.removed == 3
        again = stream.erase(subject=["person-01", "nobody"], request="ticket")
        assert (again.state, again.round) == ("purged", 2)
        receipt = verify_receipt(again.receipt(), place="", public_key=public_key(stream.hashes.signing))
        assert (receipt.round, receipt.state, receipt.later) == (2, "purged", "accept")
        assert receipt.what
        assert receipt.remains
        assert b"person" not in again.receipt()
        # accepted by default
        stream.add({"name": "back", "amount": 1}, subject="person-01")
        assert stream.close_round().applied.added == 1


def test_later_records_of_an_erased_subject_are_rejected_where_that_is_chosen(place, tmp_path):
    where = place("s")
    with opened(where, tmp_path, after_erasure="reject") as stream:
        assert "decides over its later records" in stream.guarantee.text
        fill(stream, 1)
        stream.erase(subject="person-01")
        stream.erase(sha256=hashlib.sha256(b"person-02").digest())
        stream.close_round()
    with opened(where, tmp_path, after_erasure="reject") as stream:
        stream.add({"name": "back", "amount": 1}, subject="person-01")
        stream.add({"name": ["back", "new"], "amount": [1, 2]}, subject=["person-02", "person-99"])
        stream.add({"name": "first", "amount": 1}, id="i", subject="person-99")
        stream.upsert({"name": ["other"], "amount": [1]}, id=["i"], deleted=[False], subject=["person-01"])
        applied = stream.close_round().applied
        assert (applied.added, applied.rejected) == (1, 3)
        assert stream.store.erased() == {stream.hashes.subject("person-01"), stream.hashes.subject("person-02")}
    with pytest.raises(InputError, match="needs a durable stream"):
        ra.Stream.from_specification(ra.Specification(SCHEMA, STATISTICS, after_erasure="reject", **BUDGET), key=KEY)


def test_a_successor_lasts_too(place, tmp_path):
    with opened(place("s"), tmp_path, budget={**BUDGET, "horizon": 2}) as stream:
        fill(stream, 1)
        stream.close_round()
        stream.close_round()
        with pytest.raises(ra.ExhaustedError):
            stream.close_round()
        second, key = place("next"), ra.Key.for_testing(6)
        stream.erase(subject="person-01", request="waits")
        with stream.successor(
            epsilon=0.5, horizon=9, where=second, key=key, fence=tmp_path / "next.fence"
        ) as following:
            assert following.records == 57
            assert following.round == 3
            following.close_round()
    with ra.Stream.open(second, key=key, fence=tmp_path / "next.fence") as following:
        assert following.round == 4
        assert "together with the streams before it" in following.guarantee.text
        following.close_round()
        assert following.verify().problems == []
        assert following.verify().compared == 5
