"""Rounds in one pass, in a store: kill -9 at every step commits all of them or none; what came and went is nowhere."""

import signal

import pytest

import retroact as ra
from retroact.store.postgres import PostgresStore
from retroact.store.sqlite import SQLiteStore
from retroact.store.staging import waiting
from support import crashing
from support import crashing_in_a_pass as passing

STEPS = ("receive", "prepare", "seal", "edit_blocks", "scrub", "commit", "purge", "purged", "advance", "replace")
POINTS = [(method, when) for method in STEPS for when in ("before", "after")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    assert crashing.run(folder / "orders", folder, work=passing.begin) == 0
    assert crashing.run(folder / "orders", folder, work=passing.alone) == 0
    return (folder / "published").read_text(), data_of(folder / "orders", folder)


def data_of(where, folder):
    with crashing.opened(where, folder) as stream:
        store = stream.store
        assert stream.round == passing.LAST + 1
        assert store.purge()
        assert store.residue() == []
        requests = [
            (request.name, request.content, request.state, request.round, request.prepared, opened(stream, request))
            for request in store.requests()
        ]
        notes = {name: store.note(name) or "" for name in ("committed", "revised", "unscrubbed", "staged")}
        stored = [store.blocks(), store.sources(), store.delivered(), store.inbox(), requests, notes]
        return stored, stream._vault.guard.fence.read(), stream._core.ledger.state()


def opened(stream, request):
    return stream.hashes.unseal(request.content, request.outcome)


def finished_well(where, folder, reference):
    assert crashing.run(where, folder, work=passing.in_one_pass) == 0
    assert (folder / "published").read_text() == reference[0]
    assert data_of(where, folder) == reference[1]


def in_step(where) -> None:
    """Right after a crash: releases that are committed are those of the data that are there."""
    store = (PostgresStore if str(where).startswith("postgresql") else SQLiteStore)(where, create=False)
    try:
        staged = waiting(store)
        assert store.committed in (passing.FIRST - 1, passing.LAST)
        assert store.sealed == store.committed or (store.sealed, staged) == (passing.LAST, passing.LAST)
        rounds = {stored.round for stored in store.releases()}
        assert rounds <= {*range(1, max(store.committed, staged) + 1)}
    finally:
        store.close()


def nowhere(folder, marker: str) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 2
    for path in files:
        assert marker.encode() not in path.read_bytes(), path


def test_as_round_by_round(tmp_path, reference):
    assert crashing.run(tmp_path / "orders", tmp_path, work=passing.begin) == 0
    finished_well(tmp_path / "orders", tmp_path, reference)
    nowhere(tmp_path, passing.SECRET)


@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step(tmp_path, reference, method, when):
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    assert crashing.run(where, tmp_path, (method, when, 1), passing.in_one_pass) == -signal.SIGKILL
    in_step(where)
    nowhere(tmp_path, passing.SECRET)
    finished_well(where, tmp_path, reference)
    nowhere(tmp_path, passing.SECRET)


def test_killed_at_one_step_after_the_other(tmp_path, reference):
    """Also while it recovers from the kill before."""
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    for method, when in POINTS:
        assert crashing.run(where, tmp_path, (method, when, 1), passing.in_one_pass) in (0, -signal.SIGKILL)
        in_step(where)
    finished_well(where, tmp_path, reference)


@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step_on_postgres(postgres_url, tmp_path, reference, method, when):
    assert crashing.run(postgres_url, tmp_path, work=passing.begin) == 0
    assert crashing.run(postgres_url, tmp_path, (method, when, 1), passing.in_one_pass) == -signal.SIGKILL
    in_step(postgres_url)
    finished_well(postgres_url, tmp_path, reference)


def test_releases_that_waited_are_dropped_and_the_rounds_may_be_others(tmp_path):
    """The data were not sealed, so nothing was released on them."""
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    assert crashing.run(where, tmp_path, ("seal", "before", 1), passing.in_one_pass) == -signal.SIGKILL
    with crashing.opened(where, tmp_path) as stream:
        assert [stored.round for stored in stream.store.releases(2)] == []
        assert stream.store.residue() == []
        stream.add({"country": "FR", "amount": 3}, id="another")
        assert stream.close_round().number == 2
        assert stream.verify().ok


def test_an_error_inside_leaves_the_store_as_it_was(tmp_path):
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    with crashing.opened(where, tmp_path) as stream:
        before = as_it_is(stream)
        with pytest.raises(ra.InputError, match="amount"):
            fail_in_a_pass(stream)
        assert as_it_is(stream) == before
        assert stream.close_round().number == 2


def as_it_is(stream):
    stored = [*stream.store.inbox()], stream.store.content()
    return stored, stream.round, stream.position("feed"), stream.waiting


def fail_in_a_pass(stream):
    with stream.one_pass() as rounds:
        passing.take(stream, [(2, 2), (2, 3)])
        rounds.end_round()
        stream.add({"country": "DE", "amount": 501})
