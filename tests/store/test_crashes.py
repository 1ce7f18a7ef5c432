"""Kill -9 at every step of the protocol: nothing acknowledged is lost, nothing is published twice or differently."""

import os
import random
import signal
import time

import pytest

from support import crashing

POINTS = [(method, when) for method in crashing.METHODS for when in ("before", "after")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    assert crashing.run(folder / "orders", folder) == 0
    return (folder / "published").read_text(), data_of(folder / "orders", folder)


def data_of(where, folder):
    with crashing.opened(where, folder) as stream:
        assert stream.round == crashing.ROUNDS + 1
        requests = [
            (request.name, request.content, request.state, request.round, told(stream, request))
            for request in stream.store.requests()
        ]
        return stream.store.blocks(), stream.store.sources(), requests, stream.store.residue()


def told(stream, request):
    """What was found, by what is stored and by asking again."""
    asked = stream.erase(subject=["u1", "nobody"], request="ticket 1")
    return stream.hashes.unseal(request.content, request.outcome), [outcome.found for outcome in asked.outcomes]


def test_the_reference_run_erased_and_purged(reference):
    _, (blocks, sources, requests, residue) = reference
    assert blocks
    assert sources == {"feed": (5, 3)}
    assert [request[2:4] for request in requests] == [("purged", 3)]
    assert [(sorted(stored), asked) for *_, (stored, asked) in requests] == [([False, True], [True, False])]
    assert residue == []


@pytest.mark.parametrize("occurrence", [1, 3])
@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step(tmp_path, reference, method, when, occurrence):
    ended = crashing.run(tmp_path / "orders", tmp_path, (method, when, occurrence))
    if ended == 0:
        # a step that does not come so often
        assert (method, occurrence) in [("purge", 3), ("purged", 3)]
        return
    assert ended == -signal.SIGKILL
    before = (tmp_path / "published").read_text() if (tmp_path / "published").exists() else ""
    assert reference[0].startswith(before)
    assert crashing.run(tmp_path / "orders", tmp_path) == 0
    assert (tmp_path / "published").read_text() == reference[0]
    assert data_of(tmp_path / "orders", tmp_path) == reference[1]


def test_killed_again_and_again_while_it_works(tmp_path, reference):
    choose = random.Random(5)
    ended = -signal.SIGKILL
    for _ in range(60):
        child = os.fork()
        if child == 0:
            try:
                crashing.work(tmp_path / "orders", tmp_path)
            except BaseException:
                os._exit(1)
            os._exit(0)
        time.sleep(choose.uniform(0.005, 0.25))
        os.kill(child, signal.SIGKILL)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL)
        if ended == 0:
            break
    assert crashing.run(tmp_path / "orders", tmp_path) == 0
    assert (tmp_path / "published").read_text() == reference[0]
    assert data_of(tmp_path / "orders", tmp_path) == reference[1]
    # every batch that was acknowledged was acknowledged once, unless the word of it got lost with the process
    acknowledged = (tmp_path / "acknowledged").read_text().splitlines()
    assert len(acknowledged) == len(set(acknowledged))
