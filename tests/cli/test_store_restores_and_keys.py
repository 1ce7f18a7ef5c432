"""Stores put back from a backup, lost fences and keys, at the command line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.cli_program import CLOSE, Program, add, lines
from support.store_commands import NEW, PEOPLE, SIX, content, history, rounds_of

# Restores -------------------------------------------------------------------------------------------------------------


def test_an_old_backup_is_replayed_without_releases(program: Program, orders: Path) -> None:
    folder = orders.parent
    shutil.copytree(orders, folder / "backup")
    tail = lines(*history(10)).splitlines(keepends=True)
    tail = tail[[number for number, line in enumerate(tail, 1) if line == lines(CLOSE)][5] :]
    (folder / "events.jsonl").write_text(SIX + "".join(tail))
    straight = program("run", "events.jsonl", "--store", "orders", "-q")
    assert rounds_of(straight.out) == [7, 8, 9, 10]
    shutil.rmtree(orders)
    (folder / "backup").rename(orders)
    for command in (("run", "events.jsonl", "--store", "orders"), ("verify", "orders"), ("export", "orders")):
        refused = program(*command)
        assert refused.code == 4
        assert "round 10 was published: it is an old backup" in refused.err
        assert "--restored" in refused.err
    (folder / "events.jsonl").write_text(SIX + "".join(tail[:-3]))
    begun = program("run", "events.jsonl", "--store", "orders", "--restored")
    assert (begun.code, begun.out) == (0, "")
    assert "nothing is released until it is replayed" in begun.err
    (folder / "events.jsonl").write_text(SIX + "".join(tail) + lines(add("FR", 3), CLOSE))
    # once begun, it goes on by itself
    ended = program("run", "events.jsonl", "--store", "orders")
    assert (ended.code, rounds_of(ended.out)) == (0, [11])
    assert program("verify", "orders").code == 0


def test_without_its_fence_a_stream_goes_on_after_a_promised_round(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(lines(*[CLOSE] * 3))
    run = ("run", "events.jsonl", *NEW, "-q")
    assert program(*run).code == 0
    kept = (folder / "orders.fence").read_bytes()
    (folder / "orders.fence").unlink()
    before = content(folder)
    for command in (run, ("verify", "orders"), ("export", "orders"), ("erase", "orders", "--subject", "ben-c")):
        refused = program(*command)
        assert refused.code == 4
        assert "the fence is missing" in refused.err
        assert "--after N" in refused.err
    early = program(*run, "--after", 2)
    assert early.code == 2
    assert early.err.startswith("error: expected a round from 3 on")
    assert content(folder) == before
    (folder / "events.jsonl").write_text(lines(*[CLOSE] * 5))
    ended = program(*run, "--after", 4)
    assert (ended.code, ended.out) == (4, "")
    assert "erasures acknowledged after round 4 may be missing from this store" in ended.err
    ended = program(*run, "--erasures-asked")
    assert (ended.code, rounds_of(ended.out)) == (0, [5])
    (folder / "events.jsonl").write_text(lines(*[CLOSE] * 6))
    assert rounds_of(program(*run).out) == [6]
    there = program(*run, "--after", 6)
    assert there.code == 2
    assert "the fence is there and says round 6" in there.err
    (folder / "orders.fence").write_bytes(kept)
    assert program("verify", "orders").code == 0


# Keys -----------------------------------------------------------------------------------------------------------------


def test_a_wrong_key_is_refused(program: Program, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = orders.parent
    for name in ("other.key", "open.key"):
        (folder / name).write_text(os.urandom(32).hex())
        (folder / name).chmod(0o600)
    (folder / "open.key").chmod(0o644)
    (folder / "junk.key").write_text("junk")
    (folder / "junk.key").chmod(0o600)
    before = content(folder)
    for command in (("run", "events.jsonl", "--store", "orders"), ("verify", "orders"), ("export", "orders")):
        for key, message in {
            "other.key": "expected the key that this stream was made under, got another",
            "open.key": "open.key: expected a file for its owner alone (chmod 600), got mode 644",
            "junk.key": "junk.key: expected 32 bytes or 64 hexadecimal digits",
            "none.key": "none.key: no such file or directory",
        }.items():
            ended = program(*command, "--key-file", key)
            assert (ended.code, ended.out) == (2, "")
            assert message in ended.err
    monkeypatch.setenv("RETROACT_KEY", os.urandom(32).hex())
    assert "expected the key that" in program("verify", "orders").err
    assert content(folder) == before


def test_keys_that_lie_elsewhere(program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = os.urandom(32).hex()
    (folder / "events.jsonl").write_text(lines(*history(2)))
    monkeypatch.setenv("RETROACT_KEY", secret)
    made = program("run", "events.jsonl", *NEW, "--fence", "elsewhere.fence")
    assert made.code == 0, made.err
    assert not (folder / "orders.key").exists()
    assert not (folder / "orders.fence").exists()
    assert program("verify", "orders").code == 4
    assert program("verify", "orders", "--fence", "elsewhere.fence").code == 0
    monkeypatch.delenv("RETROACT_KEY")
    missing = program("verify", "orders", "--fence", "elsewhere.fence")
    assert missing.code == 2
    assert "orders.key: no such file" in missing.err
    (folder / "vault").write_text(secret + "\n")
    monkeypatch.setenv("RETROACT_KEY_COMMAND", "cat vault")
    assert program("verify", "orders", "--fence", "elsewhere.fence").code == 0
    for command, message in {
        "false": "got exit code 1",
        "echo ab": "64 hexadecimal",
        "no-such-program": "got ",
    }.items():
        monkeypatch.setenv("RETROACT_KEY_COMMAND", command)
        ended = program("verify", "orders", "--fence", "elsewhere.fence")
        assert ended.code == 2
        assert message in ended.err
        assert "RETROACT_KEY_COMMAND" in ended.err


def test_nothing_secret_is_shown(program: Program, orders: Path) -> None:
    """Neither the key nor a person or a count, in whatever leaves the house: releases and receipts."""
    folder = orders.parent
    (folder / "receipts").mkdir()
    (folder / "more.jsonl").write_text(lines(add("DE", 3, subject="dora-e"), CLOSE))
    ends = [
        program("run", "more.jsonl", "--store", "orders"),
        program("erase", "orders", "--subject", "ben-c", "--request", "ticket-17", "--close", "--receipt", "receipts"),
        program(
            "erase", "orders", "--subject", "nobody", "--request", "ticket-18", "--receipt", "r.json", "--allow-missing"
        ),
        program("erase", "orders", "--status"),
        program("verify", "orders"),
        program("export", "orders", "--format", "csv"),
        program("verify", "orders", "--key-file", "shop.toml"),
    ]
    assert [ended.code for ended in ends] == [0, 0, 0, 0, 0, 0, 2]
    secret = bytes.fromhex((folder / "orders.key").read_text())
    shown = "".join(ended.out + ended.err for ended in ends).encode()
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    del files["orders.key"]
    for trace in (secret, secret.hex().encode(), secret.hex().upper().encode()):
        assert trace not in shown
        assert not [name for name, data in files.items() if trace in data]
    published = [ends[0].out.encode(), ends[5].out.encode(), files["r.json"], files["out.jsonl"]]
    published += [data for name, data in files.items() if name.startswith("receipts/")]
    assert len(published) == 5
    for trace in (*PEOPLE, "nobody", "ticket", "o-1-", "records added", "surviving"):
        assert not [data for data in published if trace.encode() in data]
    # exact counts are on stderr, for the operator
    assert "2 records added" in ends[0].err
    assert all(
        set(release) == {"round", "statistic", "value", "standard_error", "interval95"} for release in ends[0].releases
    )
    assert {release["round"] for release in ends[0].releases} == {7}
