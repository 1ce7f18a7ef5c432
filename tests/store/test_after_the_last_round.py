"""Erasures and deletions by id after the last round: at once, without a round, and nothing is released again."""

import hashlib
import shutil

import pytest

import retroact as ra
from retroact.errors import ExhaustedError, InputError, VerificationError
from retroact.store.receipt import verify as verify_receipt
from retroact.stream.grid import Grid

SCHEMA = {"name": ra.Text(), "amount": ra.Integer(0, 2 * 10**11)}
STATISTICS = {"people": ra.Count(), "total": ra.Sum("amount")}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
KEY = ra.Key.for_testing(5)


def opened(where, tmp_path, name="a", *, key=KEY, horizon=2, **more):
    fence = tmp_path / f"{name}.fence"
    return ra.Stream.open(where, SCHEMA, STATISTICS, key=key, fence=fence, horizon=horizon, **{**BUDGET, **more})


def in_memory():
    return ra.Stream(SCHEMA, STATISTICS, key=KEY, horizon=2, **BUDGET)


def record(subject, round):
    return {"name": f"name of {subject}", "amount": 10**11 + round}


def fill(stream, *, without=(), rounds=2):
    for round in range(1, rounds + 1):
        for subject in ("anna", "ben", "cleo", "dora"):
            if subject not in without:
                stream.add(record(subject, round), id=f"{subject}-{round}", subject=subject)
                stream.add(record(subject, round), subject=subject)
        stream.close_round()


def wait(stream, *, without=()):
    """What the open round holds, with a source and positions."""
    for number, subject in enumerate(("anna", "ben", "cleo"), start=1):
        with stream.receiving("feed", (number,), delivered=[number]):
            if subject not in without:
                stream.add(record(subject, 3), id=f"{subject}-3", subject=subject)
                stream.delete(record(subject, 1), stamp=1, subject=subject)
            else:
                stream.add([], subject=[])


def contents(stream):
    data = stream._core.ledger.data()
    return sorted(zip(data.subjects, map(str, data.ids), data.stamps.tolist(), data.counts.tolist(), strict=True))


def ids(stream):
    return list(stream._core.open.updates.whole().ids)


# In memory ------------------------------------------------------------------------------------------------------------


def test_in_memory_it_is_done_at_once_and_the_round_does_not_move():
    stream, twin = in_memory(), in_memory()
    fill(stream)
    fill(twin, without=["anna"])
    assert stream.over
    assert stream.erase(subject="anna").found
    assert (stream.round, stream.records) == (3, 12)
    assert stream.state() == twin.state()
    stream.delete(id="ben-1")
    stream.upsert(None, id=["ben-2", "cleo-9"], deleted=[True, True])
    assert (stream.round, stream.records, len(stream._core.open.updates)) == (3, 10, 0)
    with pytest.raises(ExhaustedError, match="all 2 promised rounds are released"):
        stream.close_round()


def test_in_memory_what_waits_is_erased_too_and_a_source_gives_all_or_nothing():
    stream = in_memory()
    fill(stream)
    stream.add(record("anna", 3), id="dora-2", subject="anna")
    stream.add(record("ben", 3), id="ben-3", subject="ben")
    stream.erase(sha256=hashlib.sha256(b"anna").digest())
    # the last event on the id would have put a record there that is erased, so the id is empty
    assert ("dora", "dora-2", 2, 1) not in contents(stream)
    assert ids(stream) == ["ben-3"]

    def erase_and_fail():
        with stream.receiving("feed", (1,)):
            stream.erase(subject="ben")
            stream.add({"name": "x", "amount": -1})

    with pytest.raises(InputError, match="amount"):
        erase_and_fail()
    assert ids(stream) == ["ben-3"]
    assert stream.records == 11
    with stream.receiving("feed", (1,)):
        stream.erase(subject="ben")
    assert (stream.records, len(stream._core.open.updates)) == (7, 0)


def test_rounds_of_a_grid_that_is_over_are_all_that_there_are():
    week = Grid("2026-01-01", "1d", end="2026-01-03")
    stream = ra.Stream(SCHEMA, STATISTICS, key=KEY, rounds=week, horizon=9, **BUDGET)
    fill(stream)
    with pytest.raises(ExhaustedError, match="all 2 rounds of the grid are released"):
        stream.close_round()
    stream.erase(subject="anna")
    assert (stream.round, stream.records) == (3, 12)
    following = stream.successor(epsilon=1.0, horizon=3)
    assert not following.over
    following.close_round()


# In stores ------------------------------------------------------------------------------------------------------------


def test_in_a_store_it_is_done_at_once_and_nothing_is_released_again(place, tmp_path):
    where = place("s")
    with opened(where, tmp_path) as stream:
        fill(stream)
        published = list(stream.releases())
        asked = stream.erase(subject="anna", request="one")
        assert (asked.found, asked.state, asked.round, stream.round, stream.records) == (True, "purged", None, 3, 12)
        receipt = verify_receipt(asked.receipt(), place="receipt")
        assert (receipt.state, receipt.round, receipt.found) == ("purged", None, [True])
        assert receipt.received <= receipt.applied <= receipt.purged
        stream.delete(id="ben-1")
        assert stream.records == 11
        result = stream.verify()
        assert (result.problems, result.first, result.last, result.compared) == ([], 3, 2, 0)
    with opened(where, tmp_path) as stream:
        assert (stream.round, stream.records) == (3, 11)
        assert list(stream.releases()) == published
        assert stream.erase(subject="anna", request="one").state == "purged"
        assert not stream.erase(subject="anna", request="two").found
        assert stream.verify().problems == []
        assert list(stream.releases()) == published
        with pytest.raises(ExhaustedError):
            stream.close_round()


def test_an_erasure_that_finds_nothing_leaves_all_releases_to_be_worked_out(place, tmp_path):
    with opened(place("s"), tmp_path) as stream:
        fill(stream)
        asked = stream.erase(subject="nobody", request="one")
        assert (asked.found, asked.state) == (False, "purged")
        assert verify_receipt(asked.receipt(), place="receipt").found == [False]
        assert stream.verify().compared == 4


def test_what_waits_is_erased_too_and_its_source_goes_on_where_it_was(place, tmp_path):
    where = place("s")
    with opened(where, tmp_path) as stream:
        fill(stream)
        wait(stream)
        stream.add(record("anna", 3), id="dora-2", subject="anna")
        stream.erase(subject="anna", request="one")
    for position in (3, 4):
        with opened(where, tmp_path) as stream:
            assert [name for name, *_ in contents(stream)].count("dora") == 3
            assert ids(stream) == ["ben-3", "cleo-3"]
            assert (
                len(stream._core.open.updates.whole().deleted or ()),
                len(stream._core.open.updates),
            ) == (2, 4)
            assert stream.position("feed") == (position,)
            assert [n for n in range(9) if stream.delivered("feed", n)] == [*range(1, position + 1)]
            with stream.receiving("feed", (position + 1,), delivered=[position + 1]):
                stream.erase(subject="nobody")


@pytest.mark.parametrize("later", ["accept", "reject"])
def test_later_records_of_the_subject_are_as_the_stream_has_it(place, tmp_path, later):
    where = place("s")
    with opened(where, tmp_path, after_erasure=later) as stream:
        fill(stream)
        stream.erase(subject="anna", request="one")
    with opened(where, tmp_path, after_erasure=later) as stream:
        stream.add(record("anna", 3), subject="anna")
        assert len(stream._core.open.updates) == (later == "accept")
        key = ra.Key.for_testing(6)
        with stream.successor(
            epsilon=1.0, delta=1e-6, horizon=3, where=place("t"), key=key, fence=tmp_path / "b.fence"
        ) as following:
            following.add(record("anna", 3), subject="anna")
            assert len(following._core.open.updates) == 2 * (later == "accept")


# What is left ---------------------------------------------------------------------------------------------------------


def test_the_data_are_those_of_a_twin_that_never_had_the_records(place, tmp_path):
    with opened(place("one"), tmp_path, "one") as one, opened(place("twin"), tmp_path, "twin") as twin:
        fill(one)
        fill(twin, without=["anna"])
        wait(one)
        wait(twin, without=["anna"])
        one.erase(subject="anna", request="one")
        assert one.store.blocks() == twin.store.blocks()


def test_a_compact_copy_is_byte_for_byte_that_of_the_twin(tmp_path):
    copies = []
    for name, without in (("one", []), ("twin", ["anna"])):
        with opened(tmp_path / name, tmp_path, name) as stream:
            fill(stream, without=without)
            stream.add(record("ben", 3), subject="ben")
            if not without:
                stream.erase(subject="anna", request="one")
            copies.append(tmp_path / f"{name}.copy")
            stream.store.run("data", "vacuum into ?", [str(copies[-1])])
    assert copies[0].read_bytes() == copies[1].read_bytes()


def test_no_file_holds_a_byte_of_what_was_erased(tmp_path):
    with opened(tmp_path / "s", tmp_path) as stream:
        fill(stream)
        wait(stream)
        stream.add(record("anna", 3), id="dora-2", subject="anna")
        held = b"".join(path.read_bytes() for path in (tmp_path / "s").iterdir())
        assert b"name of anna" in held
        assert b"anna-3" in held
        stream.erase(subject="anna", request="one")
        stream.delete(id=["ben-3", "cleo-2"])
        assert stream.store.residue() == []
        files = [*(tmp_path / "s").iterdir(), tmp_path / "a.fence"]
        held = b"".join(path.read_bytes() for path in files)
        for text in ("anna", "anna-3", "dora-2", "ben-3", "cleo-2", "one"):
            assert text.encode() not in held
        assert stream.hashes.subject("anna") not in b"".join(
            path.read_bytes() for path in files if "journal" not in path.name
        )


DELETIONS = {
    "by subject": lambda stream: stream.erase(subject="anna", request="one"),
    "by id": lambda stream: stream.delete(id="anna-1"),
    "in the open round": lambda stream: stream.erase(subject="eve", request="one"),
    "discarded": lambda stream: stream.discard(),
}


@pytest.mark.parametrize("how", DELETIONS)
def test_data_that_were_put_back_are_refused(tmp_path, how):
    folder = tmp_path / "s"
    with opened(folder, tmp_path) as stream:
        fill(stream)
        stream.add(record("eve", 3), id="eve-3", subject="eve")
    old = (folder / "data.sqlite").read_bytes()
    with opened(folder, tmp_path) as stream:
        DELETIONS[how](stream)
        assert stream.store.erased() == set()
    now = (folder / "data.sqlite").read_bytes()
    for restored in (False, True):
        (folder / "data.sqlite").write_bytes(old)
        with pytest.raises(VerificationError, match=r"the data are older than the journal.*from one backup"):
            opened(folder, tmp_path, restored=restored)
    (folder / "data.sqlite").write_bytes(now)
    with opened(folder, tmp_path) as stream:
        assert stream.verify().problems == []


@pytest.mark.parametrize("how", DELETIONS)
def test_what_comes_after_a_deletion_waits_and_is_opened_again(place, tmp_path, how):
    with opened(place("s"), tmp_path) as stream:
        fill(stream)
        wait(stream)
        DELETIONS[how](stream)
    for number in (1, 2, 3):
        with opened(place("s"), tmp_path) as stream:
            before = stream.waiting
            stream.add(record("fay", 3), id=f"fay-{number}", subject="fay")
            with stream.receiving("more", (number,)):
                stream.add(record("gil", 3), subject="gil")
            waiting = stream.waiting
            assert waiting == before + 2
            if number == 2:
                stream.erase(subject="gil", request="two")
                waiting -= 2
        with opened(place("s"), tmp_path) as stream:
            assert (stream.waiting, stream.position("more")) == (waiting, (number,))
            assert stream.verify().problems == []


def test_only_the_last_hash_of_the_data_is_kept(tmp_path):
    folder, notes = tmp_path / "s", set()
    with opened(folder, tmp_path) as stream:
        fill(stream)
        for name in ("anna", "ben", "cleo"):
            wait(stream, without=("anna", "ben"))
            notes.update((stream.store.note("amended") or "").split())
            stream.erase(subject=name, request=name)
            (now,) = stream.store.note("amended").split()
            text = b"".join(path.read_bytes() for path in folder.iterdir())
            assert [each for each in notes if each.encode() in text] == []
            assert now.encode() in text


@pytest.mark.parametrize("step", ["write_notes", "replace_inbox", "scrub"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_discard_after_a_deletion_that_was_interrupted(place, tmp_path, step, when):
    with opened(place("s"), tmp_path) as stream:
        fill(stream)
        wait(stream)
        stream.erase(subject="anna", request="one")
        own = getattr(stream.store, step)

        def killed(*given):
            if when == "after":
                own(*given)
            raise OSError("killed")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stream.store, step, killed)
            with pytest.raises(OSError, match="killed"):
                stream.discard()
    with opened(place("s"), tmp_path) as stream:
        stream.discard()
    with opened(place("s"), tmp_path) as stream:
        assert (stream.waiting, stream.requests()[0].state, stream.verify().problems) == (0, "purged", [])


def test_data_in_which_the_request_still_waits_are_refused_once_it_was_applied(tmp_path):
    """Others may have been applied after it."""
    folder = tmp_path / "s"
    with opened(folder, tmp_path) as stream:
        fill(stream)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stream._vault, "remove", lambda *_: None)
            stream.erase(subject="anna", request="one")
    old = (folder / "data.sqlite").read_bytes()
    with opened(folder, tmp_path) as stream:
        assert (stream.records, stream.requests()[0].state) == (12, "purged")
        stream.erase(subject="ben", request="two")
    (folder / "data.sqlite").write_bytes(old)
    for _ in range(2):
        with pytest.raises(VerificationError, match="the data are older than the journal"):
            opened(folder, tmp_path)


def test_data_of_an_earlier_round_lack_what_was_erased_after_the_last_one(tmp_path):
    folder = tmp_path / "s"
    with opened(folder, tmp_path) as stream:
        fill(stream, rounds=1)
    old = (folder / "data.sqlite").read_bytes()
    with opened(folder, tmp_path) as stream:
        stream.close_round()
        stream.erase(subject="anna", request="one")
        left = stream.store.blocks()
    (folder / "data.sqlite").write_bytes(old)
    with opened(folder, tmp_path, restored=True) as stream:
        assert (stream.missing_erasures, stream.requests()) == (1, [])
        assert stream.verify().problems == []
        stream.close_round()
        assert (stream.over, stream.missing_erasures) == (True, 1)
    with opened(folder, tmp_path) as stream:
        assert stream.missing_erasures == 1
        again = stream.erase(subject="anna", request="one")
        assert (again.repeated, again.found, again.state) == (False, True, "purged")
        assert (stream.missing_erasures, stream.store.blocks()) == (0, left)
    with opened(folder, tmp_path) as stream:
        assert (stream.missing_erasures, stream.verify().problems) == (0, [])


@pytest.mark.parametrize("delete", ["subject", "id"])
def test_an_older_copy_of_the_whole_store_is_refused(tmp_path, delete):
    folder = tmp_path / "s"
    with opened(folder, tmp_path) as stream:
        fill(stream)
    shutil.copytree(folder, tmp_path / "backup")

    def again(stream):
        if delete == "subject":
            stream.erase(subject="anna", request="one")
        else:
            stream.delete(id=["anna-1", "ben-2"])

    with opened(folder, tmp_path) as stream:
        again(stream)
        left = stream.store.blocks()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    with pytest.raises(VerificationError, match="1 erasure acknowledged after round 2 is missing from this store"):
        opened(folder, tmp_path)
    with opened(folder, tmp_path, restored=True) as stream:
        assert stream.missing_erasures == 1
        again(stream)
        assert (stream.missing_erasures, stream.debt, stream.store.blocks()) == (0, "", left)
    with opened(folder, tmp_path) as stream:
        assert (stream.missing_erasures, stream.verify().problems) == (0, [])
        with pytest.raises(ExhaustedError):
            stream.close_round()


# A successor ----------------------------------------------------------------------------------------------------------


def follow(stream, where, tmp_path, name="b", seed=6):
    key = ra.Key.for_testing(seed)
    return stream.successor(epsilon=1.0, delta=1e-6, horizon=3, where=where, key=key, fence=tmp_path / f"{name}.fence")


def test_a_successor_in_memory_begins_without_those_who_are_erased():
    stream = ra.Stream(SCHEMA, STATISTICS, key=KEY, horizon=9, **BUDGET)
    fill(stream)
    stream.add([record("anna", 3), record("ben", 3)], subject=["anna", "ben"])
    stream.erase(subject="anna")
    stream.delete(id="ben-1")
    following = stream.successor(epsilon=1.0, delta=1e-6, horizon=3, key=ra.Key.for_testing(6))
    assert (stream.records, following.records, len(stream._core.open.updates), len(following._core.open.updates)) == (
        11,
        11,
        0,
        1,
    )
    with pytest.raises(ExhaustedError, match="has a successor"):
        stream.close_round()
    with pytest.raises(InputError, match="successor"):
        stream.add(record("ben", 3), subject="ben")
    with pytest.raises(InputError, match="successor already"):
        stream.successor(epsilon=1.0, horizon=3)
    stream.erase(subject="ben")
    assert (stream.records, following.records) == (8, 11)
    assert following.close_round().applied.added == 1


def test_a_successor_begins_without_those_who_are_erased(place, tmp_path):
    where = place("s")
    with opened(where, tmp_path, horizon=9) as stream:
        fill(stream)
        wait(stream)
        stream.erase(subject="anna", request="one")
        stream.delete(id="ben-1")
        with follow(stream, place("t"), tmp_path) as following:
            assert (stream.records, following.records) == (11, 11)
            assert ids(following) == ["ben-3", "cleo-3"]
            assert following.position("feed") == (3,)
            assert following.delivered("feed", 1)
            assert following.requests() == []
        old = stream.requests()
        assert [(request.state, request.round) for request in old] == [("purged", None)]
        published = list(stream.releases())
    with opened(where, tmp_path, horizon=9) as stream:
        assert (stream.over, len(stream._core.open.updates), stream.round) == (True, 0, 3)
        with pytest.raises(ExhaustedError, match="this stream has a successor, and publishes nothing more"):
            stream.close_round()
        with pytest.raises(InputError, match="takes records from now on"):
            stream.add(record("ben", 3), subject="ben")
        with pytest.raises(InputError, match="successor already"):
            follow(stream, place("u"), tmp_path, "c")
        stream.erase(subject="ben", request="two")
        assert stream.records == 8
        assert stream.verify().problems == []
        assert list(stream.releases()) == published


def test_a_successor_is_made_in_a_place_of_its_own(place, tmp_path):
    """Whatever is refused, the old stream goes on."""
    with (
        opened(place("s"), tmp_path, horizon=9) as stream,
        opened(place("t"), tmp_path, "b", key=ra.Key.for_testing(6)),
    ):
        fill(stream)
        stream.erase(subject="anna", request="one")
    with opened(place("s"), tmp_path, horizon=9) as stream:
        with pytest.raises(InputError):
            follow(stream, place("t"), tmp_path)
        assert not stream.over
        assert stream.requests()[0].state == "received"
        stream.close_round()


def fail(*_):
    raise OSError("gone")


def test_a_successor_that_was_interrupted_is_taken_up_again(place, tmp_path):
    where, second = place("s"), place("t")
    with opened(where, tmp_path, horizon=9) as stream:
        fill(stream)
        wait(stream)
        stream.erase(subject="anna", request="one")
        stream._vault.amend = fail
        with pytest.raises(OSError, match="gone"):
            follow(stream, second, tmp_path)
    with opened(where, tmp_path, horizon=9) as stream:
        # nothing of the old one has changed
        assert (stream.over, stream.records, stream.requests()[0].state) == (False, 16, "received")
        with follow(stream, second, tmp_path) as following:
            assert (stream.records, following.records, ids(following)) == (12, 12, ["ben-3", "cleo-3"])
        assert (stream.over, stream.requests()[0].state, len(stream._core.open.updates)) == (True, "purged", 0)


def test_a_successor_is_not_taken_up_when_the_old_stream_went_on(place, tmp_path):
    where, second = place("s"), place("t")
    with opened(where, tmp_path, horizon=9) as stream:
        fill(stream)
        stream._vault.amend = fail
        with pytest.raises(OSError, match="gone"):
            follow(stream, second, tmp_path)
    with opened(where, tmp_path, horizon=9) as stream:
        stream.add(record("ben", 3), subject="ben")
        with pytest.raises(InputError, match="expected a place for a new stream, got another stream"):
            follow(stream, second, tmp_path)
        stream.close_round()
        with follow(stream, place("u"), tmp_path, "c", 7) as following:
            assert (following.round, following.records) == (4, 17)


@pytest.mark.parametrize("who", ["nobody", "ben"])
def test_a_successor_is_not_taken_up_without_an_erasure_that_came_meanwhile(place, tmp_path, who):
    where, second = place("s"), place("t")
    with opened(where, tmp_path, horizon=9, after_erasure="reject") as stream:
        fill(stream)
        stream._vault.amend = fail
        with pytest.raises(OSError, match="gone"):
            follow(stream, second, tmp_path)
    with opened(where, tmp_path, horizon=9, after_erasure="reject") as stream:
        assert stream.erase(subject=who, request="one").found == (who == "ben")
        with pytest.raises(InputError, match="expected a place for a new stream, got another stream"):
            follow(stream, second, tmp_path)
        with follow(stream, place("u"), tmp_path, "c", 7) as following:
            following.add(record(who, 3), id="again", subject=who)
            following.close_round()
            assert who not in following._core.ledger.data().subjects


def test_a_successor_that_was_taken_up_has_what_sources_gave(place, tmp_path):
    where, second = place("s"), place("t")
    with opened(where, tmp_path, horizon=9) as stream:
        wait(stream)
        stream.close_round()
        with stream.receiving("other", (1, 2)):
            stream.add(record("dora", 2), subject="dora")
        stream.close_round()
        stream._vault.amend = fail
        with pytest.raises(OSError, match="gone"):
            follow(stream, second, tmp_path)
    with opened(where, tmp_path, horizon=9) as stream, follow(stream, second, tmp_path) as following:
        assert (following.position("feed"), following.position("other")) == ((3,), (1, 2))


@pytest.mark.parametrize("rounds", [0, 2])
def test_a_successor_has_the_specification_that_it_was_made_with(place, tmp_path, rounds):
    where, second = place("s"), place("t")
    with opened(where, tmp_path, horizon=9) as stream:
        fill(stream, rounds=rounds)
        follow(stream, second, tmp_path).close()
    more = {"key": ra.Key.for_testing(6), "fence": tmp_path / "b.fence"}
    columns = {"id": "id"}
    for schema, statistics, budget in (
        ({"other": ra.Text()}, {"people": ra.Count()}, {**BUDGET, "horizon": 3}),
        (SCHEMA, STATISTICS, {**BUDGET, "horizon": 3, "epsilon": 9.0}),
        (SCHEMA, STATISTICS, {**BUDGET, "horizon": 3, "columns": columns}),
    ):
        with pytest.raises(InputError, match="that this stream"):
            ra.Stream.open(second, schema, statistics, **budget, **more)
    with ra.Stream.open(second, **more) as following:
        with pytest.raises(InputError, match="this stream has subjects"):
            following.change_columns({"subject": ""})
        assert following.erase(subject="ben").found == bool(rounds)


def test_an_earlier_receipt_is_refused_where_records_could_come_after_it(place, tmp_path):
    with opened(place("s"), tmp_path, horizon=9) as stream:
        fill(stream, rounds=1)
        stream.erase(subject="ben", request="one")
        stream.close_round()
        old = stream.erase(subject="ben", request="one").receipt()
        stream.add(record("ben", 3), id="again", subject="ben")
        stream.close_round()
        with follow(stream, place("t"), tmp_path) as following:
            asked = following.erase(subject="ben", request="one")
            following.close_round()
            with pytest.raises(InputError, match=r"got one of round 2.* again under a new request name"):
                asked.receipt(earlier=old)
            assert len(asked.unerased()) == 1
            new = stream.erase(subject="ben", request="two")
            asked = following.erase(subject="ben", request="two")
            following.close_round()
            assert asked.unerased(new.receipt()) == []
            remains = verify_receipt(asked.receipt(earlier=new.receipt()), place="receipt").remains
            assert not any("predecessor" in text for text in remains)


def test_an_earlier_receipt_holds_where_later_records_are_rejected(place, tmp_path):
    with opened(place("s"), tmp_path, horizon=9, after_erasure="reject") as stream:
        fill(stream, rounds=1)
        asked = stream.erase(subject="ben", request="one")
        stream.close_round()
        with follow(stream, place("t"), tmp_path) as following:
            assert following.erase(subject="ben", request="one").unerased(asked.receipt()) == []
