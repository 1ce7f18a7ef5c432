"""Rounds in one pass, in a store: kill -9 at every step commits all of them or none. No release can be read before it
is committed, what came and went is nowhere, and nothing is taken twice."""

import base64
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

import retroact as ra
from retroact.ledger import Entry
from retroact.store import inbox, staging
from retroact.store.postgres import PostgresStore
from retroact.store.sqlite import SQLiteStore
from retroact.store.staging import waiting
from retroact.stream import passes
from retroact.stream.erasure import Hashes
from support import crashing, postgres_files
from support import crashing_in_a_pass as passing

STEPS = (
    *("receive", "prepare", "seal", "edit_blocks", "scrub", "commit", "forget_states", "purge", "purged"),
    *("advance", "replace"),
)
POINTS = [(method, when) for method in STEPS for when in ("before", "after")]
SURVIVES = "o-1-2-4"
"""The id of a record that stays."""


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
            for request in sorted(store.requests())  # by name, whenever they came
        ]
        notes = {name: store.note(name) or "" for name in ("committed", "revised", "unscrubbed")}
        waits = inbox.write(stream._core.schema, Entry(stream._core.open.updates.whole()))
        taken = {name: (position, repr(single)) for name, (position, single) in stream._core.open.reading.items()}
        stored = [store.blocks(), store.sources(), store.delivered(), waits, taken, requests, notes]
        assert store.states("") == {name: store.state(name) for name in ("format", "stream", "round")}
        return stored, stream._vault.guard.fence.read(), stream._core.ledger.state()


def opened(stream, request):
    return stream.hashes.unseal(request.content, request.outcome)


def finished_well(where, folder, reference):
    assert crashing.run(where, folder, work=passing.in_one_pass) == 0
    assert (folder / "published").read_text() == reference[0]
    assert data_of(where, folder) == reference[1]


def in_step(where, folder, reference) -> None:
    """Right after a crash: releases that are committed are those of the data that are there, and no others are seen, in
    any table, view or file."""
    postgres = str(where).startswith("postgresql")
    seen = shown_in_postgres(where) if postgres else shown_in_sqlite(where)
    content = [path.read_bytes() for path in (files_of(where) if postgres else files_in(folder))]
    store = (PostgresStore if postgres else SQLiteStore)(where, create=False)
    try:
        committed, staged = store.committed, waiting(store)
        assert committed in (passing.FIRST - 1, passing.LAST)
        whole = range(passing.FIRST, passing.LAST + 1)
        assert store.sealed == committed or (store.sealed, staged) == (passing.LAST, whole)
        assert seen == {stored.round for stored in store.releases()} == {*range(1, committed + 1)}
    finally:
        store.close()
    for line in reference[0].splitlines():
        round, name, exact, text = line.split()
        found = any(bytes.fromhex(exact) in each or bytes.fromhex(text) in each for each in content)
        assert found == (int(round) <= committed), (round, name)


def shown_in_sqlite(where) -> set[int]:
    with closing(sqlite3.connect(f"file:{where}/journal.sqlite?mode=ro", uri=True)) as connection:
        return {round for (round,) in connection.execute("select round from published")}


def shown_in_postgres(where) -> set[int]:
    url, _, schema = where.partition("#")
    with psycopg.connect(url, autocommit=True) as connection:
        return {round for (round,) in connection.execute(f'select round from "{schema}".published')}


def files_in(folder) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != "published"]
    assert len(found) > 2
    return found


def files_of(where):
    url, _, schema = where.partition("#")
    with psycopg.connect(url, autocommit=True) as connection:
        return postgres_files.files(SimpleNamespace(schema=schema), connection)


def nowhere(folder) -> None:
    """What came and went within the pass; what stayed is found."""
    content = [path.read_bytes() for path in files_in(folder)]
    for marker in (passing.SECRET, passing.SECRET_ID):
        assert not any(marker.encode() in each for each in content), marker
    assert any(SURVIVES.encode() in each for each in content)


def test_as_round_by_round(tmp_path, reference):
    assert crashing.run(tmp_path / "orders", tmp_path, work=passing.begin) == 0
    finished_well(tmp_path / "orders", tmp_path, reference)
    nowhere(tmp_path)


@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step(tmp_path, reference, method, when):
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    assert crashing.run(where, tmp_path, (method, when, 1), passing.in_one_pass) == -signal.SIGKILL
    nowhere(tmp_path)
    in_step(where, tmp_path, reference)
    finished_well(where, tmp_path, reference)
    nowhere(tmp_path)


def test_killed_at_one_step_after_the_other(tmp_path, reference):
    """Also while it recovers from the kill before."""
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    for method, when in POINTS:
        assert crashing.run(where, tmp_path, (method, when, 1), passing.in_one_pass) in (0, -signal.SIGKILL)
        in_step(where, tmp_path, reference)
    finished_well(where, tmp_path, reference)


def test_killed_after_writes(tmp_path, reference):
    """Within transactions, too, most of which have two writes."""
    begun = tmp_path / "begun"
    begun.mkdir()
    assert crashing.run(begun / "orders", begun, work=passing.begin) == 0
    number, ended = 0, -signal.SIGKILL
    while ended != 0:
        number += 2
        folder = tmp_path / str(number)
        shutil.copytree(begun, folder)
        ended = crashing.run(folder / "orders", folder, ("many", "after", number), passing.in_one_pass)
        nowhere(folder)
        in_step(folder / "orders", folder, reference)
        assert crashing.run(folder / "orders", folder, work=passing.in_one_pass) == 0
        assert (folder / "published").read_text() == reference[0]
    assert number > 20


@pytest.mark.parametrize("step", ["receive", "prepare", "seal", "commit", "forget_states"])
def test_killed_in_a_pass_that_is_settled_twice(tmp_path, reference, monkeypatch, step):
    """As large ones are, whose rounds do not fit into memory together."""
    monkeypatch.setattr(passes, "MOST", 80)
    for occurrence in (1, 2, 3):
        folder = tmp_path / str(occurrence)
        folder.mkdir()
        assert crashing.run(folder / "orders", folder, work=passing.begin) == 0
        ended = crashing.run(folder / "orders", folder, (step, "after", occurrence), passing.in_one_pass)
        if ended == 0:
            assert occurrence == (2 if step == "receive" else 3)
            return
        assert ended == -signal.SIGKILL
        finished_well(folder / "orders", folder, reference)
    raise AssertionError(f"{step} comes more often than expected")


@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step_on_postgres(postgres_server, postgres_url, tmp_path, reference, method, when):
    assert crashing.run(postgres_url, tmp_path, work=passing.begin) == 0
    assert crashing.run(postgres_url, tmp_path, (method, when, 1), passing.in_one_pass) == -signal.SIGKILL
    in_step(postgres_url, tmp_path, reference)
    nowhere(Path(postgres_server.pgdata))
    finished_well(postgres_url, tmp_path, reference)
    nowhere(Path(postgres_server.pgdata))


def test_releases_that_waited_are_dropped_and_the_rounds_may_be_others(tmp_path):
    """The data were not sealed, so nothing was released on them."""
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    assert crashing.run(where, tmp_path, ("seal", "before", 1), passing.in_one_pass) == -signal.SIGKILL
    with crashing.opened(where, tmp_path) as stream:
        assert [stored.round for stored in stream.store.releases(2)] == []
        assert stream.store.residue() == []
        assert stream.store.states("staged") == {}
        stream.add({"country": "FR", "amount": 3}, id="another")
        assert stream.close_round().number == 2
        assert stream.verify().ok


def test_what_waits_is_encrypted_and_in_its_place(tmp_path, reference):
    """What is not committed cannot be read, in whatever form it waits."""
    where = tmp_path / "orders"
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    assert crashing.run(where, tmp_path, ("commit", "before", 1), passing.in_one_pass) == -signal.SIGKILL
    store = SQLiteStore(where, create=False)
    try:
        found = store.states("staged ")
        plain = [bytes.fromhex(part) for line in reference[0].splitlines() for part in line.split()[2:]]
        assert len(found) == 3 * (passing.LAST - passing.FIRST + 1)
        assert not any(each in base64.b64decode(value) for value in found.values() for each in plain)
        hashes = Hashes(crashing.KEY)
        assert {each.exact for each in staging.releases(store, hashes.decrypted)} < {*plain}
        with pytest.raises(ra.VerificationError, match="staged 0"):
            staging.releases(store, Hashes(ra.Key.for_testing(12)).decrypted)
        store.states = lambda prefix: {"staged 0": found["staged 1"]}
        with pytest.raises(ra.VerificationError, match="staged 0"):
            staging.releases(store, hashes.decrypted)
    finally:
        store.close()


def test_what_waits_is_not_committed_beside_an_older_journal(tmp_path):
    """Rounds between would be missing."""
    where = tmp_path / "orders"
    with crashing.opened(where, tmp_path):
        pass
    old = (where / "journal.sqlite").read_bytes()
    assert crashing.run(where, tmp_path, work=passing.begin) == 0
    assert crashing.run(where, tmp_path, ("commit", "before", 1), passing.in_one_pass) == -signal.SIGKILL
    for name in ("journal.sqlite-wal", "journal.sqlite-shm"):
        (where / name).unlink(missing_ok=True)
    (where / "journal.sqlite").write_bytes(old)
    with pytest.raises(ra.VerificationError, match="round 5 and the journal is of round 0: restore both"):
        crashing.opened(where, tmp_path)


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
