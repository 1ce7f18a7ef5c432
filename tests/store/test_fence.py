"""The fence: one file under whatever name, for its owner alone, that nobody can edit, and that moves with every erasure
before it is acknowledged."""

import json
import os
import shutil
import socket
import stat
from contextlib import suppress

import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.feeds import play
from retroact.store.fence import Fence, Mark

SCHEMA, STATISTICS = {"amount": ra.Integer(0, 100)}, {"n": ra.Count(), "total": ra.Sum("amount")}
KEY = ra.Key.for_testing(9)
SECRET = b"secret"


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    return str(tmp_path / "orders") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def opened(where, fence, **more):
    return ra.Stream.open(where, SCHEMA, STATISTICS, epsilon=1.0, horizon=20, key=KEY, fence=fence, **more)


def mark_of(path):
    return json.loads(path.read_bytes())


def fill(stream, round=1):
    for k in range(6):
        stream.add({"amount": 10 * round + k}, id=f"{round}-{k}", subject=f"u{k}")


# What it is -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277, 0o777])
def test_it_is_for_its_owner_alone_whatever_the_umask(tmp_path, umask):
    fence, before = Fence(tmp_path / "f", "s", SECRET), os.umask(umask)
    try:
        for round in (1, 2):
            fence.advance(Mark("s", round))
            assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    finally:
        os.umask(before)
        fence.close()


def test_a_wider_mode_is_narrowed(tmp_path):
    with opened(tmp_path / "orders", tmp_path / "f") as stream:
        stream.close_round()
    (tmp_path / "f").chmod(0o664)
    with opened(tmp_path / "orders", tmp_path / "f"):
        assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600


def test_every_part_of_it_is_under_the_mac(tmp_path):
    path = tmp_path / "f"
    with opened(tmp_path / "orders", path) as stream:
        fill(stream)
        stream.close_round()
        stream.erase(subject="u1")
    good = mark_of(path)
    assert {name: good[name] for name in ("round", "erasures")} == {"round": 1, "erasures": 1}
    edits = [{"round": 0}, {"round": 2}, {"erasures": 0}, {"erasures": 7}, {"salt": "00"}, {"mac": ""}]
    edits += [{"mac": good["mac"][:-1]}, {"mac": good["mac"].upper()}, {"mac": "\u00e9"}]
    for edit in edits:
        path.write_text(json.dumps({**good, **edit}))
        with pytest.raises(VerificationError, match="edited or damaged"):
            opened(tmp_path / "orders", path)
    for content in (
        b"junk",
        b"[]",
        b"{}",
        b'{"stream":"\xff"}',
        b"\x00" * 100,
        b"9" * 100_000,
        b'{"stream":"x","round":1}',
    ):
        path.write_bytes(content)
        with pytest.raises(VerificationError):
            opened(tmp_path / "orders", path)
    path.write_text(json.dumps(good))
    opened(tmp_path / "orders", path).close()


def test_single_bytes_of_it(tmp_path):
    path = tmp_path / "f"
    with opened(tmp_path / "orders", path) as stream:
        stream.close_round()
    good, mark = path.read_bytes(), Fence(path, stream.name, KEY.derive("fence")).read()
    for place in range(len(good)):
        for bit in range(8):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :])
            with suppress(VerificationError):
                assert Fence(path, stream.name, KEY.derive("fence")).read() == mark


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device", "hard link"])
def test_what_is_not_a_regular_file_of_one_name_is_refused(tmp_path, kind):
    path = tmp_path / "f"
    with opened(tmp_path / "orders", path) as stream:
        stream.close_round()
    if kind == "hard link":
        os.link(path, tmp_path / "g")
    else:
        path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/null")
    with pytest.raises(InputError):
        opened(tmp_path / "orders", path)
    if kind != "device":
        assert path.exists()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_it_holds_no_name_and_no_lifetime_count(tmp_path, where):
    path = tmp_path / "f"
    with opened(where, path) as stream:
        for round in range(1, 4):
            fill(stream, round)
            stream.erase(subject=[f"u{round}"], request=f"ticket {round}")
            assert set(mark_of(path)) == {"stream", "round", "salt", "erasures", "lost", "mac"}
            assert mark_of(path)["erasures"] == 1
            name = stream.requests()[-1]
            content = path.read_bytes()
            assert name.name.hex().encode() not in content
            assert name.content.hex().encode() not in content
            stream.close_round()
            assert mark_of(path)["erasures"] == 0


# Links ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["link", "link to nothing yet", "link in a linked folder", "chain"])
def test_links_are_resolved_and_stay(tmp_path, how):
    real = tmp_path / "safe" / "orders.fence"
    real.parent.mkdir()
    link = tmp_path / "orders.fence"
    if how == "link in a linked folder":
        (tmp_path / "also").symlink_to(real.parent)
        link = tmp_path / "also" / "orders.fence"
    elif how == "chain":
        (tmp_path / "between").symlink_to(real)
        link.symlink_to(tmp_path / "between")
    else:
        link.symlink_to(real)
    if how == "link":
        with opened(tmp_path / "orders", real) as stream:
            stream.close_round()
    for _ in range(2):
        with opened(tmp_path / "orders", link) as stream:
            stream.close_round()
            with pytest.raises(InputError, match="another process has a stream with this fence open"):
                opened(tmp_path / "copy", real)
    assert mark_of(real)["round"] == stream.round - 1
    assert link.is_symlink() or how == "link in a linked folder"
    assert not real.is_symlink()
    assert sorted(path.name for path in real.parent.iterdir()) == ["orders.fence"]


def test_two_copies_behind_a_linked_fence_do_not_release_a_round_twice(tmp_path):
    """The noise of a round that two copies release cancels."""
    real = tmp_path / "safe.fence"
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "orders.fence").symlink_to(real)
    with opened(folders[0] / "orders", folders[0] / "orders.fence") as stream:
        fill(stream)
        stream.close_round()
    shutil.copytree(folders[0] / "orders", folders[1] / "orders")
    released = []
    with opened(folders[0] / "orders", folders[0] / "orders.fence") as stream:
        with pytest.raises(InputError, match="another process has a stream with this fence open"):
            opened(folders[1] / "orders", folders[1] / "orders.fence")
        released += stream.close_round().values()
    with pytest.raises(VerificationError, match="round 2 was published: it is an old backup"):
        opened(folders[1] / "orders", folders[1] / "orders.fence")
    assert [release.round for release in released] == [2, 2]


# Locks ----------------------------------------------------------------------------------------------------------------


def test_a_store_whose_lock_files_were_removed_opens_once_only(tmp_path):
    path = tmp_path / "orders"
    with opened(path, tmp_path / "f") as stream:
        stream.close_round()
        for lock in [*tmp_path.rglob("*lock*")]:
            lock.unlink()
        with pytest.raises(InputError, match="another process has this stream open"):
            opened(path, tmp_path / "f")
        with pytest.raises(InputError, match="another process has this stream open"):
            opened(path, tmp_path / "another fence")
        shutil.copytree(path, tmp_path / "copy")
        with pytest.raises(InputError, match="another process has a stream with this fence open"):
            opened(tmp_path / "copy", tmp_path / "f")
        stream.close_round()
        with pytest.raises(InputError, match="another process has a stream with this fence open"):
            opened(tmp_path / "copy", tmp_path / "f")


@pytest.mark.parametrize("how", ["removed", "made anew", "put back"])
def test_a_fence_that_was_taken_from_an_open_stream_stops_it(tmp_path, how):
    path, folder = tmp_path / "f", tmp_path / "orders"
    stream = opened(folder, path)
    fill(stream)
    stream.close_round()
    shutil.copytree(folder, tmp_path / "copy")
    content = path.read_bytes()
    path.unlink()
    if how == "made anew":
        with opened(tmp_path / "copy", path, after=1, erasures_asked=True) as other:
            assert len(other.close_round()) == 2
    elif how == "put back":
        path.write_bytes(content)
        with opened(tmp_path / "copy", path) as other:
            assert len(other.close_round()) == 2
    with pytest.raises(VerificationError, match="another copy of"):
        stream.close_round()
    with pytest.raises(VerificationError, match="another copy of"):
        stream.erase(subject="u1")
    stream.close()


# It moves with every erasure ------------------------------------------------------------------------------------------


def test_it_moves_before_an_erasure_is_acknowledged(tmp_path, where):
    path = tmp_path / "f"
    with opened(where, path) as stream:
        fill(stream)
        assert mark_of(path)["erasures"] == 0
        for number, who in enumerate((["u1"], ["u2", "u3"], ["nobody"]), start=1):
            stream.erase(subject=who)
            assert mark_of(path)["erasures"] == number
        # asked again, and a dry run: nothing happens
        stream.erase(subject="u4", request="t")
        stream.erase(subject="u4", request="t")
        stream.erase(subject="u5", request="s", dry_run=True)
        assert mark_of(path)["erasures"] == 4
        with stream.receiving("feed", (1,)):
            stream.erase(subject="u1", request="a")
            stream.erase(subject="u2", request="b")
            stream.add({"amount": 1}, id="later")
            assert mark_of(path)["erasures"] == 4
        assert mark_of(path)["erasures"] == 6
        with suppress(InputError), stream.receiving("feed", (2,)):
            stream.erase(subject="u3", request="c")
            stream.add({"amount": -1})
            raise AssertionError("expected a refusal")
        assert mark_of(path)["erasures"] == 6
        stream.discard()
        assert mark_of(path)["erasures"] == 6
    with opened(where, path) as stream:
        assert mark_of(path)["erasures"] == 6
        with stream.receiving("feed", (1,)):
            stream.erase(subject="u5", request="d")
            stream.close_round()
        assert (mark_of(path)["round"], mark_of(path)["erasures"]) == (1, 0)


def test_it_moves_with_erasures_of_a_feed(tmp_path, where):
    path, events = tmp_path / "f", tmp_path / "events.jsonl"
    adding = {"op": "add", "record": {"amount": 1}, "id": "a", "subject": "u1"}
    lines = [adding, {"op": "close"}, adding, {"op": "erase", "subject": "u1"}]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with opened(where, path) as stream:
        play(stream, events)
        assert mark_of(path)["erasures"] == 1


def test_an_erasure_whose_fence_could_not_move_is_not_acknowledged(tmp_path, where, monkeypatch):
    path = tmp_path / "f"
    with opened(where, path) as stream:
        fill(stream)
        with monkeypatch.context() as patch:
            patch.setattr(Fence, "advance", lambda *_: (_ for _ in ()).throw(InputError("no space left on device")))
            with pytest.raises(InputError, match="no space"):
                stream.erase(subject="u1", request="t")
        with pytest.raises(InputError, match="open it again"):
            stream.close_round()
    # the store is ahead of its fence
    assert mark_of(path)["erasures"] == 0
    with opened(where, path) as stream:
        assert mark_of(path)["erasures"] == 1
        assert stream.erase(subject="u1", request="t").state == "received"
        assert mark_of(path)["erasures"] == 1
        stream.close_round()
        assert stream.records == 5
