"""PostgreSQL: an erasure rewrites the parts of the table that lost rows, and no others."""

import random

import psycopg
import pytest

import retroact as ra
from retroact.store import postgres_schema
from retroact.store.canonical_blocks import Edit
from retroact.store.postgres import EVERY, HIT, PostgresStore
from support.postgres_files import files

pytestmark = pytest.mark.usefixtures("all_parts")


@pytest.fixture
def admin(postgres_server):
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def store(postgres_url):
    store = PostgresStore(postgres_url, create=True)
    store.unlock(bytes(32), "5eed")
    yield store
    store.close()


def block(at):
    return (1, at), f"<content of {at}>".encode() * 40


def written(store):
    """The file of each part: another one once it is rewritten."""
    own = "relnamespace = to_regnamespace(?) and starts_with(relname, 'block_')"
    return dict(
        store.run("data", f"select relname::text, relfilenode::bigint from pg_class where {own}", [store.schema])
    )


def rewritten(before, after):
    return {part for part in postgres_schema.PARTS if before[part] != after[part]}


def holding(store, ats):
    return {store.run("data", "select tableoid::regclass::text from block where mark = ?", [at])[0][0] for at in ats}


def found(store, admin, ats):
    contents = [path.read_bytes() for path in files(store, admin)]
    return {at for at in ats if any(block(at)[1][:20] in content for content in contents)}


def test_a_purge_rewrites_what_lost_rows(store, admin):
    store.seal(1, Edit([], [block(at) for at in range(2000)]))
    assert store.purge()
    gone = [3, 77, 1500]
    hit, before = holding(store, gone), written(store)
    store.seal(2, Edit([block(at)[0] for at in gone], []))
    assert set(store.note(HIT).split()) == hit
    assert found(store, admin, gone)
    assert store.purge()
    assert not found(store, admin, gone)
    assert len(found(store, admin, range(100, 300))) == 200
    assert rewritten(before, written(store)) == hit
    assert store.note(HIT) == ""
    assert store.residue() == []


def test_parts_hit_by_several_rounds_wait_together(store, admin):
    store.seal(1, Edit([], [block(at) for at in range(300)]))
    assert store.purge()
    hit, before = holding(store, [5, 6]), written(store)
    store.seal(2, Edit([block(5)[0]], []))
    store.amend(Edit([block(6)[0]], [block(400)]), [])
    assert set(store.note(HIT).split()) == hit
    assert store.purge()
    assert rewritten(before, written(store)) == hit
    assert not found(store, admin, [5, 6])


@pytest.mark.parametrize("step", ["seal", "amend"])
def test_what_a_transaction_leaves_that_is_broken_off_is_purged_too(store, postgres_url, admin, monkeypatch, step):
    """Its new rows are in parts that lost none."""
    store.seal(1, Edit([], [block(at) for at in range(100)]))
    assert store.purge()
    usual = PostgresStore._fill_inbox if step == "amend" else PostgresStore.replace

    def fail(self, *arguments):
        if step == "amend" or arguments[0].name == "state":
            raise RuntimeError
        return usual(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_fill_inbox" if step == "amend" else "replace", fail)
        with pytest.raises(RuntimeError):
            store.seal(2, Edit([], [block(7777)])) if step == "seal" else store.amend(Edit([], [block(7777)]), [])
    store.close()
    again = PostgresStore(postgres_url)
    again.unlock(bytes(32), "5eed")
    assert len(again.places()) == 100
    assert again.note(HIT) == EVERY
    assert found(again, admin, [7777])
    assert again.purge()
    assert not found(again, admin, [7777])
    assert (again.note(HIT), again.residue()) == ("", [])
    again.close()


def test_an_erasure_leaves_nothing_of_the_subject_in_any_file(postgres_url, tmp_path, admin):
    """Nor of what was there before an update, or in an open round."""
    key, chance = ra.Key.for_testing(1), random.Random(1)
    fields, statistics = {"name": ra.Text()}, {"n": ra.Count()}
    with ra.Stream.open(postgres_url, fields, statistics, epsilon=1.0, key=key, fence=tmp_path / "fence") as stream:
        for round in range(6):
            for number in range(200):
                owner = f"secret person {number % 10}" if number < 20 else f"person {number % 50}"
                stream.add(
                    {"name": f"name of {owner} {round}"}, id=f"i{chance.randrange(900)} of {owner}", subject=owner
                )
            stream.close_round()
        stream.erase(subject="secret person 3", request="one")
        stream.close_round()
        contents = [path.read_bytes() for path in files(stream.store, admin)]
        assert not any(b"secret person 3" in content for content in contents)
        assert any(b"secret person 4" in content for content in contents)
        assert stream.verify().problems == []
