"""Kill -9 at steps of the protocol on PostgreSQL: the same promises as on SQLite, with a server that notices late."""

import signal

import psycopg
import pytest

from support import crashing

POINTS = [(method, when) for method in crashing.METHODS for when in ("before", "after")]


@pytest.fixture(scope="module")
def reference(postgres_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    url = f"{postgres_server.get_uri()}#t_{folder.name.replace('-', '_')}_crashes"
    assert crashing.run(url, folder) == 0
    yield (folder / "published").read_text(), data_of(url, folder)
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"set client_min_messages = error; drop schema {url.partition('#')[2]} cascade")


def data_of(where, folder):
    with crashing.opened(where, folder) as stream:
        assert stream.round == crashing.ROUNDS + 1
        store = stream.store
        # PostgreSQL overwrites nothing on the way
        assert store.purge(every=True)
        assert store.residue() == []
        requests = [(request.name, request.content, request.state, request.round) for request in store.requests()]
        return (
            store.blocks(),
            store.sources(),
            store.inbox(),
            requests,
            store.committed,
            stream._vault.guard.fence.read(),
        )


def test_the_reference_run_erased_and_purged(reference):
    assert reference[0].count("\n") == 3 * crashing.ROUNDS
    _, sources, inbox, requests, committed, mark = reference[1]
    assert (sources, inbox, committed, mark.round) == ({"feed": (5, 3)}, [], 5, 5)
    assert [request[2:] for request in requests] == [("purged", 3)]


def test_what_is_published_does_not_depend_on_the_store(reference, tmp_path):
    assert crashing.run(tmp_path / "orders", tmp_path) == 0
    assert (tmp_path / "published").read_text() == reference[0]
    with crashing.opened(tmp_path / "orders", tmp_path) as stream:
        assert stream.store.blocks() == reference[1][0]


@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step(postgres_url, tmp_path, reference, method, when):
    assert crashing.run(postgres_url, tmp_path, (method, when, 1)) == -signal.SIGKILL
    published = tmp_path / "published"
    assert reference[0].startswith(published.read_text() if published.exists() else "")
    assert crashing.run(postgres_url, tmp_path) == 0
    finished_well(postgres_url, tmp_path, reference)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("occurrence", [1, 2, 3, 4])
def test_killed_while_it_notes_which_parts_lose_rows(postgres_url, tmp_path, reference, when, occurrence):
    """Before the transaction of a seal, and within."""
    assert crashing.run(postgres_url, tmp_path, ("write_notes", when, occurrence)) == -signal.SIGKILL
    assert crashing.run(postgres_url, tmp_path) == 0
    finished_well(postgres_url, tmp_path, reference)


def test_killed_at_one_step_after_the_other(postgres_url, tmp_path, reference):
    """Also while it recovers from the kill before."""
    for method, when in POINTS:
        assert crashing.run(postgres_url, tmp_path, (method, when, 2)) in (0, -signal.SIGKILL)
    assert crashing.run(postgres_url, tmp_path) == 0
    finished_well(postgres_url, tmp_path, reference)


def finished_well(where, folder, reference):
    assert (folder / "published").read_text() == reference[0]
    assert data_of(where, folder) == reference[1]
    acknowledged = (folder / "acknowledged").read_text().splitlines()
    assert len(acknowledged) == len({*acknowledged})
