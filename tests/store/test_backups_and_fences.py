"""Old backups, copies and lost fences: no noise is spent twice."""

import shutil

import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.store.fence import Fence, Mark
from support.durable_streams import BUDGET, SCHEMA, STATISTICS, fill, opened


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
