"""Kill -9 after the last round on PostgreSQL: the same promises as on SQLite."""

import signal

import pytest

from support import crashing
from support import crashing_at_the_end as ending

POINTS = [(method, when) for method in ending.METHODS for when in ("before", "after")]
NEW = [point for point in POINTS if point[0] in ("receive", "prepare", "amend", "applied_without_round", "advance")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What is found in the end does not depend on the store."""
    folder = tmp_path_factory.mktemp("reference")
    ending.close_all(folder / "orders", folder)
    assert crashing.run(folder / "orders", folder, work=ending.work) == 0
    return ending.found(folder / "orders", folder)


@pytest.mark.parametrize(("method", "when"), NEW)
def test_killed_at_a_step(postgres_url, tmp_path, reference, method, when):
    ending.close_all(postgres_url, tmp_path)
    assert crashing.run(postgres_url, tmp_path, (method, when, 2), ending.work) == -signal.SIGKILL
    assert crashing.run(postgres_url, tmp_path, work=ending.work) == 0
    assert ending.found(postgres_url, tmp_path) == reference


def test_killed_at_one_step_after_the_other(postgres_url, tmp_path, reference):
    """Also while it recovers from the kill before."""
    ending.close_all(postgres_url, tmp_path)
    for method, when in POINTS:
        assert crashing.run(postgres_url, tmp_path, (method, when, 1), ending.work) in (0, -signal.SIGKILL)
    assert crashing.run(postgres_url, tmp_path, work=ending.work) == 0
    assert ending.found(postgres_url, tmp_path) == reference
