"""Backups that lack an acknowledged erasure, and lost fences: refused, then opened on the operator's word; no round is
released before the erasures were asked for again."""

import json

import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from support.stores_by_hand import Folder, Schema

SPEC = ra.Specification(
    {"name": ra.Text(), "amount": ra.Integer(0, 1000)},
    {"people": ra.Count(), "total": ra.Sum("amount")},
    epsilon=1.0,
    horizon=20,
)
KEY = ra.Key.for_testing(21)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        yield Folder(tmp_path)
        return
    url = request.getfixturevalue("postgres_url")
    ra.Stream.open(url, specification=SPEC, key=KEY, fence=tmp_path / "orders.fence").close()
    place = Schema(tmp_path, url)
    yield place
    place.connection.close()


def opened(place, **more):
    return ra.Stream.open(place.where, specification=SPEC, key=KEY, fence=place.fence, **more)


def fill(stream, round):
    with stream.receiving("feed", (round,)):
        for k in range(20):
            stream.add({"name": f"n{k}", "amount": k + round}, id=f"{round}-{k}", subject=f"u{k % 10}")


def two_rounds(place):
    with opened(place) as stream:
        for round in (1, 2):
            fill(stream, round)
            stream.close_round()
        fill(stream, 3)
        stream.erase(subject="u1", request="t1")


@pytest.mark.parametrize("restored", [False, True])
def test_a_journal_that_is_older_than_its_data_is_refused(place, restored):
    """It does not know the requests of a round that was published, nor whom it bars."""
    with opened(place) as stream:
        fill(stream, 1)
        stream.close_round()
    place.take("one")
    with opened(place) as stream:
        stream.erase(subject="u1", request="t1")
        stream.close_round()
    place.take("two")
    place.put("one", ["journal"], fence=False)
    with pytest.raises(VerificationError, match=r"data are of round 2.*journal is of round 1: restore both from one"):
        opened(place, restored=restored)
    place.put("two")
    with opened(place) as stream:
        assert stream.verify().problems == []


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize("step", ["seal", "commit"])
def test_a_crash_at_a_close_is_recovered_from_and_verified(place, monkeypatch, step, replayed):
    """Also while a round is replayed, which lies behind the fence."""
    with opened(place) as stream:
        for round in (1, 2):
            fill(stream, round)
            stream.close_round()
    place.take("two")
    if replayed:
        with opened(place) as stream:
            fill(stream, 3)
            stream.delete(id="1-1")
            stream.close_round()
        place.put("two", fence=False)
    with opened(place, restored=replayed) as stream, monkeypatch.context() as patch:
        fill(stream, 3)
        stream.delete(id="1-1")
        patch.setattr(stream.store, step, lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stream.close_round()
    sealed = step == "commit"
    with opened(place) as stream:
        found = stream.verify()
        assert (found.problems, stream.round) == ([], 4 if sealed else 3)
        expected = (4, 3) if replayed and sealed else (3, 3) if sealed else (4, 2) if replayed else (1, 2)
        assert (found.first, found.last) == expected
        if not sealed:
            stream.close_round()
            assert stream.verify().problems == []


def straight(tmp_path, *gone):
    """What round 3 is where nothing was lost."""
    with ra.Stream.open(tmp_path / "straight", specification=SPEC, key=KEY, fence=tmp_path / "s.fence") as stream:
        for round in (1, 2, 3):
            fill(stream, round)
            if round == 3:
                stream.erase(subject=list(gone))
            last = stream.close_round()
        return last.encode()


def test_a_backup_of_the_same_round_that_lacks_requests(place, tmp_path):
    two_rounds(place)
    place.take("backup")
    with opened(place) as stream:
        stream.erase(subject="u2", request="t2")
        stream.erase(subject=["u3", "u4"], request="t3")
    before = json.loads(place.fence.read_bytes())
    assert before["erasures"] == 3
    place.put("backup", fence=False)
    for _ in range(2):
        with pytest.raises(VerificationError, match=r"2 erasures acknowledged after round 2 are missing.*--restored"):
            opened(place)
    with pytest.raises(InputError, match="the fence is there"):
        opened(place, after=2)
    with opened(place, restored=True) as stream:
        assert stream.missing_erasures == 2
        assert not stream.replaying
        with pytest.raises(VerificationError, match=r"2 erasures .* --erasures-asked"):
            stream.close_round()
        stream.erase(subject="u2", request="t2")
        # the one that is there does not count twice
        stream.erase(subject="u1", request="t1")
        assert stream.missing_erasures == 1
        with pytest.raises(VerificationError, match=r"1 erasure acknowledged after round 2 is missing"):
            stream.close_round()
    with opened(place) as stream:  # what was said once stays said
        assert stream.missing_erasures == 1
        assert "asked for again before round 3" in stream.guarantee.text
        stream.erase(subject=["u3", "u4"], request="t3")
        assert stream.missing_erasures == 0
        assert stream.verify().problems == []
    place.put("backup", fence=False)
    with pytest.raises(VerificationError, match=r"4 erasures acknowledged after round 2 are missing"):
        opened(place)
    with opened(place, restored=True, erasures_asked=True) as stream:
        assert stream.missing_erasures == 0
        stream.erase(subject=["u2", "u3", "u4"], request="t4")
        assert stream.close_round().encode() == straight(tmp_path, "u1", "u2", "u3", "u4")
        mark = json.loads(place.fence.read_bytes())
        assert (mark["round"], mark["erasures"]) == (3, 0)
        assert stream.store.note("owed") == ""
        assert "asked for again before round 3" in stream.guarantee.text
        assert stream.verify().problems == []
        stream.close_round()
    with pytest.raises(InputError, match="no erasures are missing"):
        opened(place, erasures_asked=True)


def test_a_backup_of_an_earlier_round_that_lacks_requests_of_the_open_one(place):
    with opened(place) as stream:
        fill(stream, 1)
        stream.close_round()
    place.take("backup")
    with opened(place) as stream:
        for round in (2, 3):
            fill(stream, round)
            stream.erase(subject=f"u{round}", request=f"t{round}")
            stream.close_round()
        fill(stream, 4)
        stream.erase(subject="u4", request="t4")
    place.put("backup", fence=False)
    with pytest.raises(VerificationError, match="round 3 was published: it is an old backup"):
        opened(place)
    stream = opened(place, restored=True)
    assert stream.missing_erasures == 1
    for round in (2, 3):
        assert stream.replaying
        fill(stream, round)
        stream.erase(subject=f"u{round}", request=f"t{round}")
        assert stream.missing_erasures == 1  # those of rounds that are replayed are others
        if round == 3:
            # a copy that is made on the way, and lacks what is acknowledged next
            stream.close()
            place.take("on the way")
            with opened(place) as stream:
                stream.erase(subject="u9", request="t9")
            place.put("on the way", fence=False)
            with pytest.raises(VerificationError, match="1 erasure acknowledged after round 3 is missing"):
                opened(place)
            stream = opened(place, restored=True)
            assert stream.missing_erasures == 2
            stream.erase(subject="u9", request="t9")
        assert len(stream.close_round()) == 0
        stream.close()
        stream = opened(place)
    fill(stream, 4)
    assert (stream.replaying, stream.missing_erasures) == (False, 2)
    with pytest.raises(VerificationError, match="2 erasures"):
        stream.close_round()
    stream.erase(subject="u4", request="t4")
    assert stream.missing_erasures == 1
    stream.close()
    with opened(place, erasures_asked=True) as stream:
        assert len(stream.close_round()) == 2
        assert "replayed up to round 3" in stream.guarantee.text
        assert "asked for again before round 4" in stream.guarantee.text
        assert stream.verify().problems == []
    with opened(place) as stream:
        stream.close_round()


def test_a_new_fence_waits_for_the_word_that_erasures_were_asked_for(place):
    two_rounds(place)
    place.fence.unlink()
    with pytest.raises(VerificationError, match="the fence is missing"):
        opened(place, erasures_asked=True)
    with opened(place, after=2) as stream:
        assert stream.missing_erasures is None
        for _ in range(3):
            stream.erase(subject="u5")
        with pytest.raises(VerificationError, match="may be missing"):
            stream.close_round()
    with opened(place) as stream:
        assert stream.missing_erasures is None
        assert json.loads(place.fence.read_bytes())["erasures"] == 4
    with opened(place, erasures_asked=True) as stream:
        assert stream.missing_erasures == 0
        assert len(stream.close_round()) == 2
        assert "nothing had been published after round 2" in stream.guarantee.text
        assert "asked for again before round 3" in stream.guarantee.text


PROMISED = ("nothing had been published after round 2", "asked for again before round 3")


def refuse_unless_asked(place):
    """A copy from before the fence was lost, put in place again: nothing that was said of the loss is in it."""
    place.put("backup", fence=False)
    with pytest.raises(VerificationError, match=r"erasures acknowledged after round 2 may be missing.*--restored"):
        opened(place)
    with pytest.raises(VerificationError, match="--restored"):
        opened(place, erasures_asked=True)
    stream = opened(place, restored=True)
    assert stream.missing_erasures is None
    assert all(promise in stream.guarantee.text for promise in PROMISED)
    for _ in range(3):
        stream.erase(subject="u6")
    with pytest.raises(VerificationError, match="may be missing"):
        stream.close_round()
    return stream


def test_a_backup_from_before_the_fence_was_lost_waits_for_the_same_word(place):
    two_rounds(place)
    place.take("backup")
    with opened(place) as stream:
        stream.erase(subject="u2", request="t2")
    place.put("backup", fence=False)
    place.fence.unlink()
    opened(place, after=2).close()
    for _ in range(2):
        refuse_unless_asked(place).close()
    with opened(place, erasures_asked=True) as stream:
        assert stream.missing_erasures == 0
    refuse_unless_asked(place).close()
    with opened(place, erasures_asked=True) as stream:
        assert len(stream.close_round()) == 2
        assert all(promise in stream.guarantee.text for promise in PROMISED)
        assert json.loads(place.fence.read_bytes())["lost"] == ""
        assert stream.verify().problems == []
    opened(place).close()


def test_each_loss_of_the_fence_waits_for_a_word_of_its_own(place):
    two_rounds(place)
    place.fence.unlink()
    opened(place, after=2, erasures_asked=True).close()
    place.take("backup")  # says that erasures were asked for
    with opened(place) as stream:
        stream.erase(subject="u2", request="t2")
    lost = place.fence.read_bytes()
    place.put("backup", fence=False)
    with pytest.raises(VerificationError, match="1 erasure acknowledged after round 2 is missing"):
        opened(place)
    place.fence.unlink()
    opened(place, after=2).close()
    refuse_unless_asked(place).close()
    assert json.loads(place.fence.read_bytes())["lost"] != json.loads(lost)["lost"]


def test_a_backup_of_an_earlier_round_than_that_of_a_lost_fence(place):
    with opened(place) as stream:
        fill(stream, 1)
        stream.close_round()
    place.take("backup")
    place.fence.unlink()
    opened(place, after=2).close()
    place.put("backup", fence=False)
    with opened(place, restored=True) as stream:
        assert stream.replaying
        fill(stream, 2)
        assert len(stream.close_round()) == 0
        assert stream.missing_erasures is None
        assert all(promise in stream.guarantee.text for promise in ("replayed up to round 2", *PROMISED))
        with pytest.raises(VerificationError, match="may be missing"):
            stream.close_round()
    with opened(place, erasures_asked=True) as stream:
        assert len(stream.close_round()) == 2


def test_a_lost_store_whose_fence_counts_erasures(tmp_path):
    place = Folder(tmp_path)
    with opened(place) as stream:
        stream.erase(subject="u1")
    (tmp_path / "orders").rename(tmp_path / "gone")
    with pytest.raises(VerificationError, match="1 erasure acknowledged after round 0 is missing"):
        opened(place)
    with opened(place, restored=True) as stream:
        assert stream.missing_erasures == 1
        with pytest.raises(VerificationError):
            stream.close_round()
    with opened(place) as stream:
        stream.erase(subject="u1")
        stream.close_round()


def test_the_data_are_lost_and_the_journal_is_not(tmp_path):
    place = Folder(tmp_path)
    two_rounds(place)
    for path in (tmp_path / "orders").glob("data*"):
        path.unlink()
    with pytest.raises(VerificationError):
        opened(place)
    stream = opened(place, restored=True)
    assert (stream.round, stream.missing_erasures) == (1, 1)
    for round in (1, 2):
        fill(stream, round)
        assert len(stream.close_round()) == 0
    fill(stream, 3)
    with pytest.raises(VerificationError, match="1 erasure"):
        stream.close_round()
    stream.erase(subject="u1", request="t1")
    assert stream.close_round().encode() == straight(tmp_path, "u1")
    assert stream.verify().problems == []
    stream.close()


def test_a_stream_that_is_over_and_lacks_an_erasure(place):
    with opened(place) as stream:
        fill(stream, 1)
        for _ in range(20):
            stream.close_round()
    place.take("backup")
    with opened(place) as stream:
        assert stream.erase(subject="u1", request="t1").state == "purged"
        assert json.loads(place.fence.read_bytes())["erasures"] == 1
    opened(place).close()
    place.put("backup", fence=False)
    with pytest.raises(VerificationError, match="1 erasure acknowledged after round 20 is missing"):
        opened(place)
    with opened(place, restored=True) as stream:
        assert stream.erase(subject="u1", request="t1").state == "purged"
        assert stream.verify().problems == []
    opened(place).close()


def succeed(stream, tmp_path):
    key = ra.Key.for_testing(22)
    return stream.successor(epsilon=1.0, horizon=5, where=tmp_path / "next", key=key, fence=tmp_path / "next.fence")


def test_a_successor_waits_for_lost_erasures_and_inherits_promises(place, tmp_path):
    two_rounds(place)
    place.take("backup")
    with opened(place) as stream:
        stream.erase(subject="u2", request="t2")
    place.put("backup", fence=False)
    with opened(place, restored=True) as stream:
        with pytest.raises(VerificationError, match=r"1 erasure acknowledged after round 2 is missing.*erasures-asked"):
            succeed(stream, tmp_path)
        assert not (tmp_path / "next").exists()
        stream.erase(subject="u2", request="t2")
        with succeed(stream, tmp_path) as following:
            assert "asked for again before round 3" in following.guarantee.text
            last = following.successor(epsilon=1.0, horizon=5, where=tmp_path / "last", key=ra.Key.for_testing(23))
            with last:
                assert last.promises == stream.promises
                assert "asked for again before round 3" in last.guarantee.text
    with ra.Stream.open(tmp_path / "next", key=ra.Key.for_testing(22), fence=tmp_path / "next.fence") as following:
        assert "u2" not in following._core.ledger.data().subjects
        assert following.promises == ["erasures that a restored store lacked were asked for again before round 3"]


def test_a_successor_waits_for_the_replay(place, tmp_path):
    with opened(place) as stream:
        fill(stream, 1)
        stream.close_round()
    place.take("backup")
    with opened(place) as stream:
        stream.delete(id="1-1")
        stream.close_round()
    place.put("backup", fence=False)
    with opened(place, restored=True) as stream:
        with pytest.raises(VerificationError, match="open at round 2, but round 2 was published: replay"):
            succeed(stream, tmp_path)
        stream.delete(id="1-1")
        stream.close_round()
        with succeed(stream, tmp_path) as following:
            assert following.records == 19
            assert "replayed up to round 2" in following.guarantee.text


def test_a_successor_of_a_stream_that_is_over_waits_for_the_word(place, tmp_path):
    with opened(place) as stream:
        fill(stream, 1)
        for _ in range(20):
            stream.close_round()
    place.fence.unlink()
    with opened(place, after=20) as stream:
        stream.erase(subject="u1")
        with pytest.raises(VerificationError, match="may be missing"):
            succeed(stream, tmp_path)
    with opened(place, erasures_asked=True) as stream, succeed(stream, tmp_path) as following:
        assert "nothing had been published after round 20" in following.guarantee.text


def test_a_successor_begins_with_its_own_fence(place, tmp_path):
    two_rounds(place)
    key, where = ra.Key.for_testing(22), tmp_path / "next"
    with opened(place) as stream:
        stream.successor(epsilon=1.0, horizon=5, where=where, key=key, fence=tmp_path / "next.fence").close()
    opened(place).close()
    with ra.Stream.open(where, key=key, fence=tmp_path / "next.fence") as following:
        following.close_round()
        assert following.verify().problems == []
