"""Refusals of opening, as an operator meets them, and the way on from each: old backups, fences, other noise."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retroact.noise.process import Process
from retroact.params import Parameters
from support.cli_program import CLOSE, Program, add, lines

NEW = ("--spec", "shop.toml", "--store", "orders")
RUN = ("run", "events.jsonl", *NEW, "-q")
PEOPLE = [add(subject=who, id=f"1-{who}") for who in ("anna", "ben", "carl")]


@pytest.fixture
def orders(program: Program, folder: Path) -> Path:
    """One round of three people; a backup; then two requests that it lacks."""
    (folder / "events.jsonl").write_text(lines(*PEOPLE, CLOSE, add(subject="ben", id="2")))
    assert program(*RUN).code == 0
    shutil.copytree(folder / "orders", folder / "backup")
    for who in ("anna", "carl"):
        assert program("erase", "orders", "--subject", who, "--request", who).code == 0
    assert json.loads((folder / "orders.fence").read_bytes())["erasures"] == 2
    return folder / "orders"


def restore(orders: Path) -> None:
    shutil.rmtree(orders)
    shutil.copytree(orders.parent / "backup", orders)


def test_what_was_entered_is_told_though_its_round_stays_open(program: Program, orders: Path) -> None:
    restore(orders)
    ended = program("erase", "orders", "--subject", "anna", "--request", "anna", "--restored", "--close")
    assert (ended.code, ended.out) == (4, "anna: 1 surviving record; received; applied when round 2 closes (anna)\n")
    assert "1 erasure acknowledged after round 1 is missing" in ended.err


def test_a_backup_that_lacks_requests(program: Program, orders: Path) -> None:
    restore(orders)
    before = {path.name: path.read_bytes() for path in orders.iterdir()}
    erase = ("erase", "orders", "--subject", "anna", "--request", "anna")
    for command in (RUN, ("verify", "orders"), ("export", "orders"), erase, ("erase", "orders", "--status")):
        refused = program(*command)
        assert (refused.code, refused.out) == (4, "")
        assert "orders: 2 erasures acknowledged after round 1 are missing from this store" in refused.err
        assert "--restored" in refused.err
    assert {path.name: path.read_bytes() for path in orders.iterdir()} == before
    opened = program(*erase, "--restored")
    assert opened.code == 0
    assert "warning: orders: 1 erasure acknowledged after round 1 is missing from this store" in opened.err
    events = orders.parent / "events.jsonl"
    events.write_text(events.read_text() + lines(CLOSE))
    refused = program(*RUN)
    assert (refused.code, refused.out) == (4, "")
    assert "before it was asked for again, or the operator says so" in refused.err
    assert "--erasures-asked" in refused.err
    again = program("erase", "orders", "--subject", "carl", "--request", "carl")
    assert (again.code, again.err) == (0, "")
    ended = program(*RUN)
    assert {json.loads(line)["round"] for line in ended.out.splitlines()} == {2}
    assert program("verify", "orders").code == 0
    unneeded = program(*RUN, "--erasures-asked")
    assert unneeded.code == 2
    assert "no erasures are missing" in unneeded.err


@pytest.mark.parametrize("command", ["run", "erase"])
def test_the_operator_says_that_they_were_asked_for(program: Program, orders: Path, command: str) -> None:
    restore(orders)
    if command == "run":
        events = orders.parent / "events.jsonl"
        events.write_text(events.read_text() + lines(CLOSE))
        ended = program(*RUN, "--restored", "--erasures-asked")
    else:
        asked = ("--subject", "anna", "--request", "both", "--restored", "--erasures-asked", "--close")
        ended = program("erase", "orders", *asked)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads((orders.parent / "orders.fence").read_bytes())["round"] == 2
    events = orders.parent / "events.jsonl"
    events.write_text(events.read_text() + lines(add(subject="dora")))
    assert "asked for again before round 2" in program("run", "events.jsonl", *NEW).err


def test_a_lost_fence_on_the_command_line(program: Program, orders: Path) -> None:
    (orders.parent / "orders.fence").unlink()
    ask = ("erase", "orders", "--subject", "ben", "--request", "ben")
    refused = program(*ask, "--erasures-asked")
    assert refused.code == 4
    assert "the fence is missing" in refused.err
    asked = program(*ask, "--after", 1)
    assert asked.code == 0
    assert "erasures acknowledged after round 1 may be missing from this store" in asked.err
    closing = program(*ask, "--close")
    assert closing.code == 4
    assert program(*ask, "--close", "--erasures-asked").code == 0
    assert program("verify", "orders").code == 0


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda mark: {**mark, "erasures": 0}, 4, "edited or damaged"),
        (lambda mark: {**mark, "round": 0}, 4, "edited or damaged"),
        (lambda mark: {**mark, "stream": "0" * 32}, 4, "got that of another one"),
        (lambda mark: {"stream": mark["stream"], "round": 1, "salt": mark["salt"]}, 4, "edited or damaged"),
        (lambda mark: [], 4, "expected a fence, got something else"),
    ],
)
def test_a_fence_that_was_edited(program: Program, orders: Path, change, code, words) -> None:  # type: ignore[no-untyped-def]
    fence = orders.parent / "orders.fence"
    good = fence.read_bytes()
    fence.write_text(json.dumps(change(json.loads(good))))
    for command in (RUN, ("verify", "orders"), ("export", "orders"), ("erase", "orders", "--status")):
        refused = program(*command)
        assert (refused.code, refused.out) == (code, "")
        assert words in refused.err
    fence.write_bytes(good)
    assert program("verify", "orders").code == 0


def test_other_noise_is_refused_by_every_command(
    program: Program, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the kind of a process had been renamed."""
    events = orders.parent / "events.jsonl"
    events.write_text(events.read_text() + lines(CLOSE))
    before = {path: path.read_bytes() for path in (*orders.iterdir(), orders.parent / "orders.fence")}
    with monkeypatch.context() as patch:
        patch.setattr(Process, "spec", lambda self, **how: {**Parameters.spec(self, **how), "type": f"new {self.kind}"})
        close = ("erase", "orders", "--subject", "ben", "--close")
        by_path = ("run", "events.jsonl", "--store", "orders", "-q")
        for command in (RUN, by_path, close, ("verify", "orders"), ("export", "orders")):
            refused = program(*command)
            assert (refused.code, refused.out) == (4, "")
            assert "is not that of the rounds before" in refused.err
    assert {path: path.read_bytes() for path in before} == before
    (orders.parent / "other.toml").write_text(
        (orders.parent / "shop.toml").read_text().replace("epsilon = 1", "epsilon = 2")
    )
    other = program("run", "events.jsonl", "--spec", "other.toml", "--store", "orders")
    assert other.code == 2
    assert "epsilon" in other.err
    assert program(*RUN).code == 0


def test_a_store_whose_lock_files_were_removed_opens_once_only(program: Program, orders: Path) -> None:
    """A real process has it open."""
    folder = orders.parent
    command = [sys.executable, "-c", "from retroact.cli import main; main()", *RUN, "--follow", "--out", "out.jsonl"]
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            until = time.monotonic() + 60
            while not (folder / "out.jsonl").exists():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            for lock in [*folder.rglob("*lock")]:
                lock.unlink()
            refused = program("erase", "orders", "--status")
            assert (refused.code, refused.err) == (2, "error: orders: another process has this stream open\n")
            shutil.copytree(orders, folder / "copy")
            copy = ("--key-file", "orders.key", "--fence", "orders.fence")
            refused = program("erase", "copy", "--status", *copy)
            assert refused.code == 2
            assert "another process has a stream with this fence open" in refused.err
        finally:
            process.kill()
    assert program("erase", "orders", "--status").code == 0
