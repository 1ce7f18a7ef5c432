"""Kill -9 at every step of an erasure and of a restore: store first, fence second, acknowledgement last."""

import json
import signal

import pytest

import retroact as ra
from support import crashing
from support.stores_by_hand import Folder, Schema
from support.tiers import in_full

STEPS = [(method, when) for method in ("receive", "advance", "replace") for when in ("before", "after")]


def opened(where, folder, **more):
    return ra.Stream.open(
        where,
        {"amount": ra.Integer(0, 100)},
        {"n": ra.Count(), "total": ra.Sum("amount")},
        epsilon=1.0,
        horizon=9,
        key=crashing.KEY,
        fence=folder / "orders.fence",
        **more,
    )


def begun(where, folder):
    """One round that is published, and an open one."""
    with opened(where, folder) as stream:
        for k in range(30):
            stream.add({"amount": k}, id=f"o-{k}", subject=f"u{k % 6}")
        stream.close_round()
        for k in range(10):
            stream.add({"amount": k}, id=f"p-{k}", subject=f"u{k % 6}")


def erasing(where, folder, **more):
    """Three acknowledgements of four requests, and the round that applies them."""
    with opened(where, folder, **more) as stream:
        if stream.round == 2:
            stream.erase(subject="u1", request="t1")
            acknowledge(folder, 1)
            if stream.position("feed") is None:
                with stream.receiving("feed", (1,)):
                    stream.erase(subject="u2", request="t2")
                    stream.erase(subject="u3", request="t3")
            acknowledge(folder, 3)
            stream.erase(subject=["u4", "u5"], request="t4")
            acknowledge(folder, 4)
            stream.close_round()
        lines = [f"{stored.round} {stored.statistic} {stored.exact.hex()}" for stored in stream.store.releases(2)]
    (folder / "published").write_text("\n".join(lines))


def restoring(where, folder):
    erasing(where, folder, restored=True)


def acknowledge(folder, many):
    (folder / "acknowledged").write_text(str(many))


def acknowledged(folder):
    path = folder / "acknowledged"
    return int(path.read_text()) if path.exists() else 0


def places(occurrences):
    """The steps are the same on both databases: PostgreSQL takes the first occurrence by default."""
    later = [in_full("postgres", occurrence) for occurrence in range(2, occurrences + 1)]
    cases = [*(("sqlite", occurrence) for occurrence in range(1, occurrences + 1)), ("postgres", 1), *later]
    return pytest.mark.parametrize(("place", "occurrence"), cases, indirect=["place"])


@pytest.fixture
def place(request, tmp_path):
    if request.param == "sqlite":
        begun(tmp_path / "orders", tmp_path)
        yield Folder(tmp_path)
        return
    url = request.getfixturevalue("postgres_url")
    begun(url, tmp_path)
    place = Schema(tmp_path, url)
    yield place
    place.connection.close()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    begun(folder / "orders", folder)
    erasing(folder / "orders", folder)
    return (folder / "published").read_text()


def finished_well(place, reference):
    assert (place.path / "published").read_text() == reference
    with opened(place.where, place.path) as stream:
        assert [request.state for request in stream.requests()] == ["purged"] * 4
        assert stream.records == 7
        assert stream.verify().problems == []
    mark = json.loads(place.fence.read_bytes())
    assert (mark["round"], mark["erasures"]) == (2, 0)


@places(3)
@pytest.mark.parametrize(("method", "when"), STEPS)
def test_killed_while_an_erasure_is_acknowledged(place, reference, method, when, occurrence):
    place.take("backup")
    assert crashing.run(place.where, place.path, (method, when, occurrence), erasing) == -signal.SIGKILL
    told, mark = acknowledged(place.path), json.loads(place.fence.read_bytes())
    # the fence knows of all that was acknowledged, so that no older copy is taken for the latest
    assert mark["round"] == 1
    assert told <= mark["erasures"] <= 4
    if told:
        place.take("killed")
        place.put("backup", fence=False)
        with pytest.raises(ra.VerificationError, match="missing from this store"):
            opened(place.where, place.path)
        place.put("killed", fence=False)
    with opened(place.where, place.path) as stream:
        # the store is never behind, and its fence is brought up to it
        assert len(stream.requests()) == json.loads(place.fence.read_bytes())["erasures"] >= mark["erasures"]
    assert crashing.run(place.where, place.path, None, erasing) == 0
    finished_well(place, reference)


RESTORE = [*STEPS, ("write_notes", "before"), ("write_notes", "after")]


@places(2)
@pytest.mark.parametrize(("method", "when"), RESTORE)
def test_killed_while_a_restored_store_catches_up(place, reference, method, when, occurrence):
    place.take("backup")
    with opened(place.where, place.path) as stream:
        for number in (1, 2):
            stream.erase(subject=f"u{number}", request=f"t{number}")
    place.put("backup", fence=False)
    assert crashing.run(place.where, place.path, (method, when, occurrence), restoring) == -signal.SIGKILL
    mark = json.loads(place.fence.read_bytes())
    assert mark["erasures"] >= 2 or mark["round"] == 2
    assert crashing.run(place.where, place.path, None, restoring) == 0
    finished_well(place, reference)
