"""Kill -9 at every step after the last round: nothing acknowledged is lost, no round is released again."""

import shutil
import signal

import pytest

from support import crashing
from support import crashing_at_the_end as ending
from support.tiers import in_full, in_turns

# After one step is before the next: by default both are tried only of the steps that others rely on.
RELIED_ON = ("applied_without_round", "purge", "advance", "seal")
POINTS = in_turns(ending.METHODS, ("before", "after"), always=RELIED_ON)
OFTEN = {"receive": 5, "prepare": 6, "amend": 5, "scrub": 8, "applied_without_round": 5, "write_notes": 7, "purge": 4}
OFTEN |= {"purged": 4, "advance": 5, "replace": 5}
"""How often a step comes, at least."""


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    ending.close_all(folder / "orders", folder)
    return folder


@pytest.fixture(scope="module")
def reference(closed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    shutil.copytree(closed, folder, dirs_exist_ok=True)
    assert crashing.run(folder / "orders", folder, work=ending.work) == 0
    return ending.found(folder / "orders", folder)


def test_the_reference_run_erased_and_went_on(reference):
    round, _, inbox, _, requests, named, released, fence, over, residue = reference[:10]
    assert (round, inbox, fence, over, residue) == (3, [], 2, True, [])
    assert {request[:2] for request in requests} == {("purged", None)}
    assert named == [(f"after {k}", "purged", None) for k in (1, 2, 3)]
    assert len(released) == 6
    round, _, inbox, _, requests, _, released, fence, over, residue = reference[10:]
    assert (round, len(inbox), requests, released, fence, over, residue) == (3, 3, [], [], 2, False, [])


# Of the others every second time that they come is tried, and no second kill while it recovers.
@pytest.mark.parametrize("again", [RELIED_ON, in_full(ending.METHODS)], ids=["some twice", "all twice"])
@pytest.mark.parametrize(("method", "when"), POINTS)
def test_killed_at_a_step(tmp_path, closed, reference, method, when, again):
    for occurrence in range(1, 20, 1 if method in again else 2):
        folder = tmp_path / str(occurrence)
        shutil.copytree(closed, folder)
        ended = crashing.run(folder / "orders", folder, (method, when, occurrence), ending.work)
        assert ended in (0, -signal.SIGKILL)
        if ended:
            if method in again:
                crashing.run(folder / "orders", folder, (method, when, 1), ending.work)
            assert crashing.run(folder / "orders", folder, work=ending.work) == 0
        assert ending.found(folder / "orders", folder) == reference
        if not ended:
            assert occurrence > OFTEN.get(method, 1)
            return
