"""Streams that last: twins, replay, restores, erasure and residue, on both stores."""

import hashlib
import json
import shutil
import sqlite3

import numpy as np
import pytest

import retroact as ra
from retroact.errors import InputError, KeyReusedError, VerificationError
from retroact.store.fence import Fence, Mark
from retroact.store.receipt import public_key
from retroact.store.receipt import verify as verify_receipt

SCHEMA = {"name": ra.Text(), "amount": ra.Integer(0, 2 * 10**11)}
STATISTICS = {"people": ra.Count(), "total": ra.Sum("amount"), "recent": ra.Count(window=2, every=2)}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "horizon": 50}
KEY = ra.Key.for_testing(5)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "orders"


def opened(where, tmp_path, name="a", *, budget=BUDGET, statistics=STATISTICS, key=KEY, **more):
    return ra.Stream.open(where, SCHEMA, statistics, key=key, fence=tmp_path / f"{name}.fence", **{**budget, **more})


def fill(stream, round, *, without=()):
    random = np.random.default_rng(round)
    for k in range(60):
        subject, amount = f"person-{k % 20:02}", int(random.integers(10**11, 2 * 10**11))
        if subject not in without:
            record = {"name": f"name of {subject} {round}", "amount": amount}
            stream.add(record, id=f"id-{round}-{k}" if k % 2 else None, subject=subject)


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


@pytest.mark.parametrize("what", ["whole", "data"])
def test_an_old_backup_is_refused_and_can_be_replayed(folder, tmp_path, what):
    straight = opened(tmp_path / "straight", tmp_path, "straight")
    stream = opened(folder, tmp_path)
    lines = []
    for round in range(1, 8):
        for each in (straight, stream):
            with each.receiving("feed", (round,)):
                fill(each, round)
            if round == 4:
                each.erase(subject="person-03", request="ticket")
        lines.append(straight.close_round().encode())
        if round < 6:
            assert stream.close_round().encode() == lines[-1]
        if round == 2:
            stream.close()
            shutil.copytree(folder, tmp_path / "backup")
            stream = opened(folder, tmp_path)
        if round == 5:
            break
    stream.close()
    for name in ("data.sqlite", "journal.sqlite"):
        if what in ("whole", name.partition(".")[0]):
            shutil.copy(tmp_path / "backup" / name, folder / name)
    with pytest.raises(VerificationError, match="round 5 was published: it is an old backup"):
        opened(folder, tmp_path)
    stream = opened(folder, tmp_path, restored=True)
    assert stream.replaying
    assert stream.position("feed") == (2,)
    for round in range(stream.round, 6):
        with stream.receiving("feed", (round,)):
            fill(stream, round)
        if round == 4:
            assert stream.erase(subject="person-03", request="ticket").state == "received"
        assert len(stream.close_round()) == 0
        stream.close()
        stream = opened(folder, tmp_path)  # once begun, it goes on
    assert not stream.replaying
    for each in (straight, stream):
        fill(each, 6)
    assert stream.close_round().encode() == straight.close_round().encode()
    assert "replayed up to round 5" in stream.guarantee.text
    assert stream.verify().problems == []
    stream.close()
    straight.close()


def test_halves_of_different_backups_are_refused(folder, tmp_path):
    """Positions and requests of the one would not fit the data of the other."""
    with opened(folder, tmp_path) as stream:
        stream.close_round()
    shutil.copytree(folder, tmp_path / "backup")
    with opened(folder, tmp_path) as stream:
        for _ in range(3):
            stream.close_round()
    shutil.copy(tmp_path / "backup" / "journal.sqlite", folder / "journal.sqlite")
    with pytest.raises(VerificationError, match="restore both from one backup"):
        opened(folder, tmp_path, restored=True)


def test_a_copy_that_is_open_elsewhere_cannot_spend_the_same_noise(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        stream.close_round()
        shutil.copytree(folder, tmp_path / "copy")
        with pytest.raises(InputError, match="another process has a stream with this fence open"):
            opened(tmp_path / "copy", tmp_path)
        with pytest.raises(InputError, match="another process has this stream open"):
            opened(folder, tmp_path)
        # moved behind its back
        stream._vault.guard.fence.advance(Mark(stream.name, 2))
        with pytest.raises(VerificationError, match="another copy of this stream may have gone on"):
            stream.close_round()


def test_one_key_for_two_streams_gives_other_noise(tmp_path, monkeypatch):
    monkeypatch.setenv("RETROACT_KEY", "17" * 32)
    monkeypatch.setattr("retroact.coins.key._claimed", {})
    answers = []
    for name in ("one", "two", "one"):
        where = tmp_path / name
        if where.exists():
            shutil.rmtree(where)
            (tmp_path / f"{name}.fence").unlink()
        monkeypatch.setattr("retroact.coins.key._claimed", {})
        with ra.Stream.open(where, SCHEMA, STATISTICS, **BUDGET) as stream:
            answers.append(stream.close_round()["total"].value)
    assert len(set(answers)) == 3


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


@pytest.mark.parametrize("after", [2.5, "5", -1, True, 10**6])
def test_a_round_that_is_none_is_refused(folder, tmp_path, after):
    with opened(folder, tmp_path) as stream:
        stream.close_round()
    (tmp_path / "a.fence").unlink()
    with pytest.raises(InputError):
        opened(folder, tmp_path, after=after)
    opened(folder, tmp_path, after=1).close()


def test_a_lost_store_is_not_begun_anew_under_its_key(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        stream.close_round()
    shutil.rmtree(folder)
    with pytest.raises(VerificationError, match="round 1 was published"):
        opened(folder, tmp_path)
    with pytest.raises(VerificationError):
        opened(tmp_path / "another", tmp_path)
    with opened(folder, tmp_path, restored=True) as stream:
        assert len(stream.close_round()) == 0
        assert len(stream.close_round()) == 3


def test_without_its_fence_a_stream_goes_on_after_a_promised_round(place, tmp_path):
    where = place("s")
    with opened(where, tmp_path) as stream:
        for _ in range(3):
            stream.close_round()
    (tmp_path / "a.fence").unlink()
    with pytest.raises(VerificationError, match="the fence is missing"):
        opened(where, tmp_path)
    with pytest.raises(InputError, match="from 3 on"):
        opened(where, tmp_path, after=2)
    with opened(where, tmp_path, after=4) as stream:
        assert stream.replaying
        assert len(stream.close_round()) == 0
        with pytest.raises(VerificationError, match="erasures acknowledged after round 4 may be missing"):
            stream.close_round()
    with opened(where, tmp_path, erasures_asked=True) as stream:
        fifth = stream.close_round()
        assert len(fifth) == 2
        assert "nothing had been published after round 4" in stream.guarantee.text
    with opened(where, tmp_path) as stream:
        assert stream.round == 6
        assert "nothing had been published after round 4" in stream.guarantee.text
        stream.close_round()
        assert stream.verify().problems == []
    with opened(place("kept"), tmp_path, name="kept") as stream:
        kept = [stream.close_round() for _ in range(5)][-1]
    assert kept["people"].encode() == fifth["people"].encode()


def test_a_new_fence_is_asked_for_again_when_it_was_not_written(folder, tmp_path, monkeypatch):
    with opened(folder, tmp_path) as stream:
        stream.close_round()
    (tmp_path / "a.fence").unlink()

    def broken(self, mark):
        raise InputError("no space left on device", place="fence")

    with monkeypatch.context() as patched:
        patched.setattr(Fence, "advance", broken)
        with pytest.raises(InputError, match="no space"):
            opened(folder, tmp_path, after=1)
    with pytest.raises(VerificationError, match="the fence is missing"):
        opened(folder, tmp_path)
    opened(folder, tmp_path, after=1).close()


def test_a_fence_that_is_there_is_not_given_up(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        stream.close_round()
    with pytest.raises(InputError, match="says round 1"):
        opened(folder, tmp_path, after=1)
    (tmp_path / "a.fence").write_text('{"stream":"another","round":1,"mac":""}')
    with pytest.raises(VerificationError, match="that of another"):
        opened(folder, tmp_path)


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


def test_one_process_at_a_time(place, tmp_path):
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
    with pytest.raises(InputError, match="needs a stream that lasts"):
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


# Verification ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def made(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        for round in range(1, 6):
            fill(stream, round)
            if round == 2:
                stream.delete(id="id-1-1")
            stream.close_round()
    return folder


def change(path, sql, *parameters):
    with sqlite3.connect(path) as connection:
        assert connection.execute(sql, parameters).rowcount


def problems(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        return stream.verify().problems


def test_releases_since_the_last_deletion_are_worked_out_again(made, tmp_path):
    with opened(made, tmp_path) as stream:
        result = stream.verify()
    assert (result.first, result.last, result.compared, result.problems) == (2, 5, 10, [])


def test_a_changed_release_is_seen(made, tmp_path):
    """Also one that cannot be worked out again, and one that is gone."""
    for round in (1, 4):
        sql = "update release set line = ? where round = ? and statistic = 'total'"
        change(made / "journal.sqlite", sql, b"{}", round)
    expected = [f"table release: the row {round}, 'total' is not as it was written" for round in (1, 4)]
    expected += [f"round {round} of total: expected a release, got none" for round in (1, 4)]
    assert problems(made, tmp_path) == expected
    change(made / "journal.sqlite", "delete from release where round = 3 and statistic = 'total'")
    assert problems(made, tmp_path) == [*expected[:3], "round 3 of total: expected a release, got none", expected[3]]
    with opened(made, tmp_path) as stream, pytest.raises(VerificationError, match="table release: the row 1, 'total'"):
        list(stream.releases())


def test_a_changed_record_is_refused(made, tmp_path):
    with sqlite3.connect(made / "data.sqlite") as connection:
        stamp, mark, records = connection.execute("select stamp, mark, records from block limit 1").fetchone()
    other = records.replace(b"of person-12", b"of person-1X", 1)
    change(made / "data.sqlite", "update block set records = ? where stamp = ? and mark = ?", other, stamp, mark)
    with pytest.raises(VerificationError, match=f"table block: the row {stamp}, {mark} is not as it was written"):
        opened(made, tmp_path)


def test_a_late_release_is_seen(made, tmp_path):
    change(made / "journal.sqlite", "insert into release values (9, 'total', ?, ?, ?)", b"", b"", b"")
    assert problems(made, tmp_path) == ["table release: the row 9, 'total' is not as it was written"]


def test_residue_is_seen(made, tmp_path):
    with sqlite3.connect(made / "data.sqlite") as connection:
        connection.execute("pragma secure_delete = off")
        connection.execute("create table other(secret text)")
        connection.execute("insert into other values (?)", ["a secret " * 900])
    with sqlite3.connect(made / "data.sqlite") as connection:
        connection.execute("pragma secure_delete = off")
        connection.execute("drop table other")
    with sqlite3.connect(made / "data.sqlite") as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    assert any("free page" in problem for problem in problems(made, tmp_path))


def test_a_broken_file_is_refused(made, tmp_path):
    content = bytearray((made / "data.sqlite").read_bytes())
    content[:16] = b"not a database!!"
    (made / "data.sqlite").write_bytes(content)
    with pytest.raises(VerificationError, match="not a database"):
        opened(made, tmp_path)


def test_connections_leave_no_traces_and_wait_for_the_disk(made, tmp_path):
    with opened(made, tmp_path) as stream:
        for side in ("data", "journal"):
            for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("secure_delete", 1)):
                assert stream.store.run(side, f"pragma {pragma}") == [(value,)]
