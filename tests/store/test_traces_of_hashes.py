"""Hashes and digests of erased rows are gone from every file when the rows are; and twins have the same ones."""

from pathlib import Path

import psycopg
import pytest

import retroact as ra
from retroact.store import canonical_blocks
from retroact.store.seals import Seals
from retroact.store.tables import tables
from support.postgres_files import files

SCHEMA = {"name": ra.Text(), "amount": ra.Integer(0, 10**6)}
STATISTICS = {"people": ra.Count(), "total": ra.Sum("amount")}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(canonical_blocks, "SIZE", 8)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "orders")


def opened(url, tmp_path, name="a", seed=3):
    return ra.Stream.open(
        url, SCHEMA, STATISTICS, epsilon=1.0, horizon=20, key=ra.Key.for_testing(seed), fence=tmp_path / f"{name}.fence"
    )


def fill(stream, round, *, without=None):
    for k in range(60):
        subject = f"u{k % 12}"
        if subject != without:
            stream.add(
                {"name": f"{subject} {round} {k}", "amount": 1000 * k + round}, id=f"{round}-{k}", subject=subject
            )


@pytest.fixture
def made(monkeypatch):
    """All hashes of rows of the data, what they add to digests, and all digests of the data, as they are made."""
    seen = set()

    def mac(seals, table, row):
        found = own_mac(seals, table, row)
        if table.side == "data":
            seen.update([found, own_sum(seals, [found]).to_bytes(32, "big")])
        return found

    def sealed(seals, side, digest):
        found = own_sealed(seals, side, digest)
        if side == "data":
            sums = (digest.sums[table.name] for table in tables("data"))
            seen.update([found[:32], found[-32:], *(each.to_bytes(32, "big") for each in sums if each)])
        return found

    own_mac, own_sum, own_sealed = Seals.mac, Seals.sum, Seals.sealed
    monkeypatch.setattr(Seals, "mac", mac)
    monkeypatch.setattr(Seals, "sealed", sealed)
    return seen


def contents(stream, tmp_path):
    """Of every file of the stream: data, journal, their logs, locks and fence; in PostgreSQL of all its tables."""
    if stream.store.overwrites:
        paths = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {"data.sqlite", "journal.sqlite", "journal.sqlite-wal"} <= {path.name for path in paths}
    else:
        with psycopg.connect(stream.store._connection.info.dsn, autocommit=True) as admin:
            paths = [*files(stream.store, admin), *tmp_path.glob("*.fence*")]
    return b"\0\0".join(Path(path).read_bytes() for path in paths)


def alive(stream):
    """What the data hold now."""
    store = stream.store
    macs = {row[0] for table in tables("data") for row in store.run("data", f"select mac from {table.name}")}
    ((sealed,),) = store.run("data", "select sealed from data_digest")
    return {*map(bytes, macs), bytes(sealed)[:32], bytes(sealed)[-32:]}


def test_an_erasure_leaves_no_hash_behind(url, tmp_path, made):
    with opened(url, tmp_path) as stream:
        for round in (1, 2, 3):
            fill(stream, round)
            stream.close_round()
        before = alive(stream)
        text = contents(stream, tmp_path)
        assert all(each in text for each in before)
        fill(stream, 4)
        stream.erase(subject="u3", request="r")
        stream.delete(id="2-1")
        waiting = alive(stream)
        stream.close_round()
        assert {each.state for each in stream.store.requests()} == {"purged"}
        now = alive(stream)
        text = contents(stream, tmp_path)
        assert all(each in text for each in now)
        gone = made - now
        assert len(before - now) > 5
        assert len(waiting - now) > 5
        assert gone > (before | waiting) - now
        assert [each.hex() for each in gone if each in text] == []
        assert stream.verify().problems == []
    with opened(url, tmp_path) as stream:
        assert alive(stream) == now


def rows(stream):
    store = stream.store
    found = {table.name: sorted(store.run("data", f"select * from {table.name}")) for table in tables("data")}
    return found | {"data_digest": store.run("data", "select * from data_digest")}


def test_twins_have_the_same_hashes_and_digests(url, tmp_path):
    """One of them never knew who was erased from the other, and got its records in batches."""
    other = f"{url}_b"
    with opened(url, tmp_path, "one") as one, opened(other, tmp_path, "two") as two:
        for round in (1, 2, 3):
            fill(one, round)
            with two.receiving("feed", (round,)):
                fill(two, round, without="u3")
            if round == 3:
                assert rows(one) != rows(two)
                one.erase(subject="u3")
            one.close_round()
            two.close_round()
        assert rows(one) == rows(two)
        assert len(rows(one)["block"]) > 5
    with opened(url, tmp_path, "one") as one, opened(other, tmp_path, "two") as two:
        assert rows(one) == rows(two)
        with opened(f"{url}_c", tmp_path, "three", seed=4) as three:
            for round in (1, 2, 3):
                fill(three, round, without="u3")
                three.close_round()
            mine, theirs = ({row[-1] for table in rows(each).values() for row in table} for each in (one, three))
            assert not mine & theirs
