"""`retroact run --store`, `erase`, `verify` and `export`: streams that last, as whoever runs them meets them."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_program import CLOSE, SPEC, Program, add, lines

import retroact as ra
from retroact.store.receipt import public_key, sign
from retroact.store.receipt import verify as read_receipt
from retroact.stream.erasure import Hashes

PEOPLE = ("anna-b", "ben-c", "carl-d", "dora-e")
NEW = ("--spec", "shop.toml", "--store", "orders")
Row = dict[str, Any]


def history(rounds: int, *, records: int = 1) -> list[Row]:
    """Records of four people with ids, one of nobody, a late one; what anna-b had in the round before is deleted."""
    events: list[Row] = []
    for round in range(1, rounds + 1):
        for number, who in enumerate(PEOPLE * records):
            events.append(add(("DE", "FR")[number % 2], 7 * number + round, id=f"o-{round}-{number}", subject=who))
        events.append(add("US", 400 + round))
        if round > 1:
            events.append({"op": "delete", "id": f"o-{round - 1}-0"})
            events.append({"op": "delete", "stamp": round - 1, "record": {"country": "US", "amount": 399 + round}})
            events.append(add("US", 5, stamp=round - 1))
        events.append(CLOSE)
    return events


SIX = lines(*history(6), add("DE", 1, subject="ben-c"))
"""Six rounds, and a record in the open one."""


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETROACT_KEY_COMMAND", raising=False)


@pytest.fixture(scope="session")
def six_rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream after six rounds, with its key, its fence, its events and what it published; and a copy beside it."""
    from retroact.cli import main

    place = tmp_path_factory.mktemp("six") / "rounds"
    place.mkdir()
    (place / "shop.toml").write_text(SPEC)
    (place / "events.jsonl").write_text(SIX)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.delenv("RETROACT_KEY", raising=False)
        patch.delenv("RETROACT_KEY_COMMAND", raising=False)
        with pytest.raises(SystemExit) as ended:
            main(["run", "events.jsonl", *NEW, "--out", "out.jsonl", "-q"])
    assert ended.value.code == 0
    shutil.copytree(place, place.with_name("kept"))
    return place


@pytest.fixture
def orders(six_rounds: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of this stream, in the working folder. Always in the same place: its key is for that one alone."""
    bring_back(six_rounds)
    monkeypatch.chdir(six_rounds)
    return six_rounds / "orders"


def bring_back(place: Path) -> None:
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(place.with_name("kept"), place, dirs_exist_ok=True)


def content(folder: Path) -> dict[str, object]:
    """Everything there is, but locks: the rows of databases, and the bytes of other files."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock"))
    return {
        str(path.relative_to(folder)): rows_of(path) if path.suffix == ".sqlite" else path.read_bytes()
        for path in found
    }


def rows_of(path: Path) -> list[str]:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def rounds_of(text: str) -> list[int]:
    return sorted({json.loads(line)["round"] for line in text.splitlines()})


# Running --------------------------------------------------------------------------------------------------------------


def test_a_store_is_made_and_gone_on_with(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(SIX)
    first = program("run", "events.jsonl", *NEW)
    assert first.code == 0, first.err
    assert rounds_of(first.out) == [1, 2, 3, 4, 5, 6]
    assert "note: round 1 of orders is open" in first.err
    assert {path.name for path in (folder / "orders").iterdir()} == {"data.sqlite", "journal.sqlite"}
    assert not list(folder.glob("**/*-wal"))
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in ("orders", "orders.key", "orders.fence")}
    assert (modes["orders"], modes["orders.key"]) == (0o700, 0o600)
    assert json.loads((folder / "orders.fence").read_bytes())["round"] == 6
    before = content(folder)
    again = program("run", "events.jsonl", *NEW)
    assert (again.code, again.out) == (0, "")
    assert "0 rounds; 0 records added" in again.err
    assert content(folder) == before
    with (folder / "events.jsonl").open("a") as file:
        file.write(lines(CLOSE, add("FR", 2), CLOSE))
    later = program("run", "events.jsonl", *NEW)
    assert (later.code, rounds_of(later.out)) == (0, [7, 8])
    assert "2 rounds; 2 records added" in later.err
    assert program("export", "orders").out == first.out + later.out


def test_the_stored_specification_is_used(program: Program, orders: Path) -> None:
    (orders.parent / "shop.toml").unlink()
    (orders.parent / "more.jsonl").write_text(lines(add("FR", 2), CLOSE))
    ended = program("run", "more.jsonl", "--store", "orders")
    assert ended.code == 0, ended.err
    assert [release["statistic"] for release in ended.releases] == ["orders", "revenue", "countries"]
    assert "note: round 7 of orders is open" in ended.err
    nowhere = program("run", "more.jsonl", "--store", "nowhere")
    assert (nowhere.code, nowhere.err) == (2, "error: nowhere: expected the folder of a stream, got none\n")
    assert not (orders.parent / "nowhere").exists()


def test_a_changed_specification_is_refused(program: Program, orders: Path) -> None:
    before = content(orders.parent)
    for old, new, shown in (
        ("epsilon = 1.0", "epsilon = 2.0", "epsilon: 1.0 in the store, 2.0 given"),
        ('orders = { type = "count" }', "", "statistics.orders: "),
        ("upper = 500", "upper = 501", "schema.amount: "),
    ):
        (orders.parent / "shop.toml").write_text(SPEC.replace(old, new))
        ended = program("run", "events.jsonl", *NEW, "-q")
        assert ended.code == 2
        assert shown in ended.err
        assert ended.err.count("\n") == 1
    (orders.parent / "shop.toml").write_text(SPEC)
    assert content(orders.parent) == before


@pytest.mark.parametrize(
    "name", ["nowhere.jsonl", "empty.jsonl", "bad.jsonl", "utf16.jsonl", "bad.csv", "bad.parquet", "bad.toml", "."]
)
def test_bad_events_leave_no_store_behind(program: Program, folder: Path, name: str) -> None:
    (folder / "empty.jsonl").write_text("\n")
    (folder / "bad.jsonl").write_text('{"op": "shut"}\n')
    (folder / "utf16.jsonl").write_text('{"op": "close"}', encoding="utf-16")
    (folder / "bad.csv").write_text("country,cost\nDE,1\n")
    (folder / "bad.parquet").write_text("country,amount\nDE,1\n")
    (folder / "bad.toml").write_text("epsilon = = 1\n")
    (folder / "good.jsonl").write_text(SIX)
    before = content(folder)
    spec, events = ("bad.toml", "good.jsonl") if name == "bad.toml" else ("shop.toml", name)
    ended = program("run", events, "--spec", spec, "--store", "orders", "--out", "out")
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert content(folder) == before
    assert not (folder / "orders").exists()


def test_options_that_are_about_a_store(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(SIX)
    for option in (("--fence", "f"), ("--restored",), ("--after", 3), ("--erasures-asked",)):
        ended = program("run", "events.jsonl", "--spec", "shop.toml", *option)
        assert (ended.code, ended.err) == (
            2,
            f"error: expected --store: this is about a stream that lasts - at {option[0]}\n",
        )


def test_a_store_made_by_options_goes_on_without_them(program: Program, folder: Path) -> None:
    (folder / "shop.toml").unlink()
    records = [add("DE", 1), CLOSE]
    (folder / "events.jsonl").write_text(lines(*records))
    assert program("run", "events.jsonl", "--count", "--epsilon", 1, "--store", "orders", "-q").code == 0
    (folder / "events.jsonl").write_text(lines(*records, *records))
    ended = program("run", "events.jsonl", "--store", "orders", "-q")
    assert (ended.code, ended.err) == (0, "")
    assert rounds_of(ended.out) == [2]


# Stopped and gone on with ---------------------------------------------------------------------------------------------


def reference(program: Program, events: Path, out: str, *options: object) -> Path:
    """What one uninterrupted run writes."""
    path = events.parent / f"reference-{out}"
    store = ("--spec", "shop.toml", "--store", "reference", "--testing-key", 5)
    ended = program("run", events, *store, *options, "--out", path, "-q")
    assert ended.code == 0, ended.err
    return path


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
def test_stopped_within_rounds_and_gone_on(program: Program, folder: Path, out: str) -> None:
    events, whole = folder / "events.jsonl", lines(*history(9))
    events.write_text(whole)
    expected = reference(program, events, out).read_bytes()
    every = whole.splitlines(keepends=True)
    for until in (9, 20, 21, 22, 45, len(every)):
        events.write_text("".join(every[:until]))
        ended = program("run", events, *NEW, "--testing-key", 5, "--out", out, "-q")
        assert ended.code == 0, ended.err
        assert out == "out.parquet" or expected.startswith((folder / out).read_bytes())
    assert (folder / out).read_bytes() == expected
    same_as_reference()


def same_as_reference() -> None:
    key = ra.Key.for_testing(5)
    with ra.Stream.open("orders", key=key) as stream, ra.Stream.open("reference", key=key) as other:
        assert stream.store.blocks() == other.store.blocks()
        assert stream.store.releases() == other.store.releases()
        assert stream.verify().problems == []


def as_jsonl(path: Path, rounds: int) -> tuple[object, ...]:
    events = history(rounds, records=8)
    where = [position for position, event in enumerate(events) if event is CLOSE]
    events.insert(where[rounds // 2], {"op": "erase", "subject": "carl-d"})
    path.write_text(lines(*events))
    return ()


def as_csv(path: Path, rounds: int) -> tuple[object, ...]:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["op", "id", "subject", "stamp", "country", "amount"])
        for event in history(rounds, records=8):
            record = event.get("record", {})
            names = [event.get(name, "") for name in ("id", "subject", "stamp")]
            rows.writerow([event["op"], *names, record.get("country", ""), record.get("amount", "")])
    return ()


NUMBERED = ("--id", "order", "--subject", "who", "--round", "day", "--rounds")


def numbered(rounds: int) -> list[Row]:
    rows = [(round, number) for round in range(1, rounds + 1) for number in range(40)]
    return [
        {"country": ("DE", "FR")[number % 2], "amount": float(number), "who": PEOPLE[number % 4],
         "order": str(number + 7 * round), "day": round}
        for round, number in rows
    ]  # fmt: skip


def as_numbered_csv(path: Path, rounds: int) -> tuple[object, ...]:
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, list(numbered(1)[0]))
        rows.writeheader()
        rows.writerows(numbered(rounds))
    return (*NUMBERED, rounds)


def as_parquet(path: Path, rounds: int) -> tuple[object, ...]:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(numbered(rounds)), path, row_group_size=333)
    return (*NUMBERED, rounds)


def run_and_kill(arguments: list[str], at: int, fence: Path, delay: float) -> int:
    """Run the program in a process of its own, and kill it when its fence is at a round; how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            from retroact.cli import main

            with Path("stderr").open("w") as sys.stderr:
                main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            os._exit(code)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if fence.exists() and fence.stat().st_size and json.loads(fence.read_bytes())["round"] >= at:
            break
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("write", "name", "out"),
    [
        (as_jsonl, "events.jsonl", "out.jsonl"),
        (as_numbered_csv, "events.csv", "out.csv"),
        (as_csv, "events.csv", "out.jsonl"),
        (as_parquet, "events.parquet", "out.csv"),
    ],
)
def test_killed_again_and_again(program: Program, folder: Path, write: Any, name: str, out: str) -> None:
    if write is as_parquet:
        pytest.importorskip("pyarrow")
    rounds, choose, ended = 24, random.Random(name + out), []
    options = write(folder / name, rounds)
    expected = reference(program, folder / name, out, *options).read_bytes()
    command = ["run", name, *NEW, "--testing-key", "5", *map(str, options), "--out", out, "-q"]
    # the first time as soon as there is a fence
    for at in (0, 5, 11, 17, rounds + 1):
        ended.append(run_and_kill(command, at, folder / "orders.fence", choose.uniform(0, 0.01)))
        assert ended[-1] in (0, -signal.SIGKILL), (folder / "stderr").read_text()
        written = (folder / out).read_bytes() if (folder / out).exists() else b""
        assert expected.startswith(written)
    assert ended.count(-signal.SIGKILL) >= 3
    assert ended[-1] == 0
    assert written == expected
    assert program(*command).code == 0
    assert (folder / out).read_bytes() == expected
    same_as_reference()


def test_the_installed_program_killed_while_it_follows(program: Program, folder: Path) -> None:
    """A real process on a file that grows, killed in the middle of a round."""
    events = folder / "events.jsonl"
    whole = lines(*history(6))
    events.write_text(whole)
    expected = reference(program, events, "out.jsonl").read_bytes()
    events.write_text("".join(whole.splitlines(keepends=True)[:28]))
    command = [sys.executable, "-c", "from retroact.cli import main; main()", "run", "events.jsonl", *NEW]
    process = subprocess.Popen([*command, "--testing-key", "5", "--out", "out.jsonl", "-q", "--follow"])
    try:
        until = time.monotonic() + 60
        while not (folder / "out.jsonl").exists() or b'"round":3' not in (folder / "out.jsonl").read_bytes():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert expected.startswith((folder / "out.jsonl").read_bytes())
    events.write_text(whole)
    assert program("run", "events.jsonl", *NEW, "--testing-key", 5, "--out", "out.jsonl", "-q").code == 0
    assert (folder / "out.jsonl").read_bytes() == expected


COUNT = ("--count", "--epsilon", 1, "--horizon", 9, "--store", "counted", "--id", "order")


def test_what_is_sent_again_is_taken_once(program: Program, folder: Path) -> None:
    events = [{"order": 1, "lsn": 1}, {"order": 2, "lsn": 2}, {"op": "close", "lsn": 3}]
    later = [{"order": 3, "lsn": 5}, {"order": 1, "lsn": 4}, {"op": "close", "lsn": 6}]
    run = ("run", "events.jsonl", *COUNT, "--position", "lsn")
    (folder / "events.jsonl").write_text(lines(*events))
    assert rounds_of(program(*run).out) == [1]
    assert program(*run).out == ""
    (folder / "events.jsonl").write_text(lines(*events[1:], *later, *events))
    ended = program(*run)
    assert (ended.code, rounds_of(ended.out)) == (0, [2])
    assert "absorbed 5 events that came before (first: events.jsonl:1)" in ended.err


def test_one_at_a_time(program: Program, orders: Path) -> None:
    with ra.Stream.open("orders"):
        for command in (("run", "events.jsonl", "--store", "orders"), ("verify", "orders"), ("export", "orders")):
            ended = program(*command)
            assert (ended.code, ended.err) == (2, "error: orders: another process has this stream open\n")


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


# Erasure --------------------------------------------------------------------------------------------------------------


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_dry_run_changes_nothing(program: Program, orders: Path) -> None:
    before = content(orders.parent)
    who = ("--subject", "ben-c", "--subject", "nobody", "--sha256", sha256("carl-d"), "--request", "t")
    ended = program("erase", "orders", *who, "--dry-run", "--close", "--receipt", "r.json")
    assert ended.code == 5, ended.err
    assert ended.err == "error: no record was found of a subject. If that is right: --allow-missing\n"
    assert ended.out.splitlines() == [
        "ben-c: 6 surviving records and 1 in the open round; dry run (t)",
        "no record was found of nobody; dry run (t)",
        f"{sha256('carl-d')}: 6 surviving records; dry run (t)",
    ]
    assert content(orders.parent) == before
    assert program("erase", "orders", *who, "--dry-run", "--allow-missing").code == 0
    assert program("erase", "orders", "--status").out == ""


def test_a_request_is_done_once(program: Program, orders: Path) -> None:
    ask = ("erase", "orders", "--subject", "dora-e", "--subject", "nobody", "--request", "t")
    received = program(*ask, "--receipt", "r.json", "--allow-missing")
    assert received.code == 0
    assert received.out.splitlines() == [
        "dora-e: 6 surviving records; received; applied when round 7 closes (t)",
        "no record was found of nobody; entered all the same: received; applied when round 7 closes (t)",
    ]
    assert read_receipt((orders.parent / "r.json").read_bytes(), place="").state == "received"
    before = content(orders)
    again = program(*ask)
    assert again.code == 5
    assert again.out.splitlines() == [
        "dora-e: records were found when it was asked for; received; applied when round 7 closes (t)",
        "no record was found of nobody when it was asked for; entered all the same: received; applied when round 7 "
        "closes (t)",
    ]
    assert content(orders) == before
    other = program("erase", "orders", "--subject", "ben-c", "--request", "t")
    assert (other.code, other.err) == (2, "error: this name was given to another request - at request\n")
    (orders.parent / "close.jsonl").write_text(lines(CLOSE))
    assert program("run", "close.jsonl", "--store", "orders", "-q").code == 0
    told = "purged; answers are as if never there from round 7 on (t)"
    again = program(*ask, "--receipt", "r.json", "--allow-missing")
    assert again.out.splitlines() == [
        f"dora-e: records were found when round 7 closed; {told}",
        "no record was found of nobody when round 7 closed; entered all the same: applied in round 7 (t)",
    ]
    receipt = read_receipt((orders.parent / "r.json").read_bytes(), place="")
    assert (receipt.state, receipt.round, sorted(receipt.found)) == ("purged", 7, [False, True])
    (line,) = program("erase", "orders", "--status").out.splitlines()
    assert line.startswith(f"{receipt.request[:16]} purged, received ")
    assert "applied in round 7, purged " in line
    for path in orders.iterdir():
        assert b"dora-e" not in path.read_bytes()


def test_status_lists_requests_that_wait(program: Program, orders: Path) -> None:
    assert program("erase", "orders", "--subject", "ben-c", "--request", "t").code == 0
    (line,) = program("erase", "orders", "--status").out.splitlines()
    assert " received, received " in line


def test_asked_again_with_close_spends_no_round(program: Program, orders: Path) -> None:
    ask = ("erase", "orders", "--subject", "ben-c", "--request", "t", "--close")
    assert program(*ask).code == program(*ask).code == 0
    assert rounds_of(program("export", "orders", "--first", 7).out) == [7]


def test_a_receipt_that_cannot_be_written(program: Program, orders: Path) -> None:
    ended = program("erase", "orders", "--subject", "ben-c", "--close", "--receipt", "nowhere/r.json")
    assert ended.code == 2


def test_a_list_with_a_refused_request_is_refused_whole(program: Program, orders: Path) -> None:
    assert program("erase", "orders", "--subject", "ben-c", "--request", "t", "--close").code == 0
    (orders.parent / "list.csv").write_text("subject,request\nanna-b,u\ncarl-d,t\n")
    before = content(orders)
    assert program("erase", "orders", "--from", "list.csv").code == 2
    assert content(orders) == before


def test_by_name_and_by_digest_are_the_same(program: Program, orders: Path) -> None:
    results = []
    for who in (("--subject", "ben-c"), ("--sha256", sha256("ben-c").upper())):
        bring_back(orders.parent)
        told = program("erase", "orders", *who, "--request", "t", "--close").out.replace(sha256("ben-c"), "ben-c")
        assert "ben-c: 6 surviving records and 1 in the open round; purged" in told
        assert b"ben-c" not in (orders / "data.sqlite").read_bytes()
        results.append((told, program("export", "orders").out, rows_of(orders / "data.sqlite")))
    assert results[0] == results[1]
    assert rounds_of(results[0][1]) == [1, 2, 3, 4, 5, 6, 7]


def test_requests_from_a_file(program: Program, orders: Path) -> None:
    folder = orders.parent
    (folder / "receipts").mkdir()
    rows = ["subject,sha256,request", "ben-c,,t-1", '"no,body",,t-2', f",{sha256('carl-d')},t-1", "dora-e,,", ""]
    (folder / "list.csv").write_text("\r\n".join(rows))
    ended = program("erase", "orders", "--from", "list.csv", "--close", "--receipt", "receipts")
    assert ended.code == 5
    assert ended.err == (
        "error: no record was found of a subject, and no receipt was written for that request. If that is right: "
        "--allow-missing\n"
    )
    told = "purged; answers are as if never there from round 7 on"
    names = [line.rpartition(" (")[2] for line in ended.out.splitlines()]
    assert [line.rpartition(" (")[0] for line in ended.out.splitlines()] == [
        f"ben-c: 6 surviving records and 1 in the open round; {told}",
        f"{sha256('carl-d')}: 6 surviving records; {told}",
        "no record was found of no,body; entered all the same: applied in round 7",
        f"dora-e: 6 surviving records; {told}",
    ]
    assert names[:3] == ["t-1)", "t-1)", "t-2)"]
    assert names[3].startswith("request-")
    receipts = list((folder / "receipts").iterdir())
    hashes = Hashes(ra.Key(bytes.fromhex((folder / "orders.key").read_text())))
    for path in receipts:
        receipt = read_receipt(path.read_bytes(), place="", public_key=public_key(hashes.signing))
        assert (receipt.state, receipt.round, f"{receipt.request}.json") == ("purged", 7, path.name)
    asked = hashes.request("t-1", ["ben-c", "carl-d"], [])
    assert len(receipts) == 2
    assert f"{asked.content.hex()}.json" in {path.name for path in receipts}
    assert len(program("erase", "orders", "--status").out.splitlines()) == 3
    # nothing of it twice
    again = program("erase", "orders", "--sha256", sha256("ben-c"), "--subject", "carl-d", "--request", "t-1")
    assert "purged" in again.out


GOOD = f"subject,sha256,request\nben-c,,t-1\n,{'0f' * 32},t-2\n"
LISTS = {
    "both": (f"{GOOD}carl-d,{'0f' * 32},t-3\n", "list.csv:4: expected a subject or a sha256"),
    "neither": (f"{GOOD},,t-3\n", "list.csv:4: expected a subject or a sha256"),
    "digest": (f"{GOOD},0f,t-3\n", "list.csv:4: expected 64 hexadecimal digits, got '0f' - at sha256"),
    "too many cells": (f"{GOOD}carl-d,,t-3,more\n", "list.csv:4: expected a subject or a sha256"),
    "too few cells": (f"{GOOD}carl-d\n", "list.csv:4: expected a subject or a sha256"),
    "quotes": (f'{GOOD}"carl-d"x,,t-3\n', "list.csv:4: expected CSV, got "),
    "unknown column": ("subject,reason\nben-c,x\n", "list.csv:1: expected columns subject or sha256, and request, got"),
    "no column": ("request\nt-1\n", "list.csv:1: expected columns subject or sha256"),
    "nothing": ("subject,request\n", "list.csv: no requests in it"),
    "empty": ("", "list.csv:1: expected columns subject or sha256"),
}


@pytest.mark.parametrize("name", LISTS)
def test_of_a_bad_list_nothing_is_received(program: Program, orders: Path, name: str) -> None:
    text, message = LISTS[name]
    (orders.parent / "list.csv").write_text(text)
    before = content(orders.parent)
    ended = program("erase", "orders", "--from", "list.csv", "--close")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1
    assert content(orders.parent) == before


def test_requests_that_are_refused(program: Program, orders: Path) -> None:
    (orders.parent / "list.csv").write_text(GOOD)
    before = content(orders.parent)
    for options, message in {
        (): "expected --subject, --sha256, --from or --status - at erase",
        ("--from", "list.csv", "--subject", "ben-c"): "expected either --from or single subjects - at --from",
        ("--from", "nowhere.csv"): "nowhere.csv: no such file",
        ("--from", "list.csv", "--receipt", "r.json"): "r.json: expected a folder for the receipts of several requests",
        ("--sha256", "xyz"): "expected 64 hexadecimal digits, got 'xyz' - at --sha256",
        ("--subject", ""): "subject",
        ("--subject", "ben-c", "--request", ""): "got '' - at request",
    }.items():
        ended = program("erase", "orders", *options)
        assert (ended.code, ended.out) == (2, ""), options
        assert message in ended.err
    assert content(orders.parent) == before


# Verification ---------------------------------------------------------------------------------------------------------


def test_a_stream_that_is_as_it_should_be(program: Program, orders: Path) -> None:
    ended = program("verify", "orders")
    assert (ended.code, ended.err) == (0, "")
    told = "orders: 4 releases come out the same (rounds 6 to 6); data, fence and files agree\n"
    assert ended.out.startswith(told)


def change(path: Path, sql: str, *parameters: object) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute(sql, parameters).rowcount
    connection.close()


def test_what_was_tampered_with_is_found(program: Program, orders: Path) -> None:
    path = orders / "journal.sqlite"
    change(path, "update release set line = ? where round = 6 and statistic = 'orders'", b"{}")
    ended = program("verify", "orders")
    assert ended.code == 4
    assert "differs: table release: the row 6, 'orders' is not as it was written\n" in ended.out
    assert re.fullmatch(r"error: orders: \d+ differences\n", ended.err)
    change(path, "delete from release where round = 6 and statistic = 'revenue'")
    assert "round 6 of revenue: expected a release, got none" in program("verify", "orders").out
    # also what cannot be worked out again
    change(path, "update release set line = ? where round = 2 and statistic = 'countries'", b"{}")
    assert "differs: table release: the row 2, 'countries' " in program("verify", "orders").out
    shutil.copy(orders.parent / "orders.fence", "kept")
    (orders.parent / "orders.fence").unlink()
    ended = program("verify", "orders")
    assert (ended.code, ended.out) == (4, "")
    assert "orders.fence: the fence is missing" in ended.err
    (orders.parent / "orders.fence").write_text('{"stream":"00ff","round":6}\n')
    assert "got that of another one" in program("verify", "orders").err
    (orders.parent / "orders.fence").write_text("junk")
    assert program("verify", "orders").code == 4


def test_other_things_than_a_stream(program: Program, orders: Path) -> None:
    (orders.parent / "things").mkdir()
    for target in ("things", "nowhere"):
        ended = program("verify", target)
        assert (ended.code, ended.err) == (2, f"error: {target}: expected the folder of a stream, got none\n")
    assert not list((orders.parent / "things").iterdir())
    ended = program("verify", "orders", "--subject", "ben-c")
    assert ended.code == 2
    assert "expected the file of a receipt" in ended.err


@pytest.fixture
def receipt(program: Program, orders: Path) -> bytes:
    ask = ("--subject", "ben-c", "--request", "t-1", "--close", "--receipt", "r.json")
    assert program("erase", "orders", *ask).code == 0
    return (orders.parent / "r.json").read_bytes()


def test_a_receipt(program: Program, orders: Path, receipt: bytes) -> None:
    alone = program("verify", "r.json")
    assert alone.code == 0
    assert alone.out.startswith("r.json: whole (give --stream to check who signed it); purged, received ")
    for options in ((), ("--subject", "ben-c", "--request", "t-1")):
        ended = program("verify", "r.json", "--stream", "orders", *options)
        assert ended.code == 0, ended.err
        assert ended.out.startswith("r.json: signed by this stream; purged, received ")
    for part in ("from round 7 on", "data.sqlite: rows", "may remain: backups", "later records of the subject: accept"):
        assert part in ended.out
    for options in (("--subject", "carl-d", "--request", "t-1"), ("--subject", "ben-c", "--request", "t-2")):
        ended = program("verify", "r.json", "--stream", "orders", *options)
        assert (ended.code, ended.out) == (4, "")
    for options in (("--subject", "ben-c"), ("--stream", "orders", "--subject", "ben-c")):
        assert program("verify", "r.json", *options).code == 2


def test_receipts_that_are_not_good(program: Program, orders: Path, receipt: bytes) -> None:
    signed = json.loads(receipt)
    texts = {
        "round": (receipt.replace(b'"round":7', b'"round":6'), 4),
        "signature": (receipt.replace(signed["signature"].encode(), signed["signature"][::-1].encode()), 4),
        "remains": (receipt.replace(b"memory of running processes", b"nothing"), 4),
        "spaces": (json.dumps(signed).encode(), 2),
        "cut": (receipt[:-20], 2),
        "empty": (b"", 2),
        "other": (b"{}\n", 2),
        "bytes": (b"\xff\x00", 2),
        "long": (b" " * 70_000, 2),
    }
    for name, (text, code) in texts.items():
        (orders.parent / name).write_bytes(text)
        for options in ((), ("--stream", "orders")):
            ended = program("verify", name, *options)
            assert (ended.code, ended.out) == (code, ""), name
            assert name in ended.err
            assert ended.err.count("\n") == 1
    own = read_receipt(receipt, place="")
    (orders.parent / "forged").write_bytes(sign(own, ra.Key.generate().derive("receipts")))
    assert program("verify", "forged").code == 0
    assert program("verify", "forged", "--stream", "orders").code == 4


def test_a_receipt_of_another_stream(program: Program, orders: Path, receipt: bytes) -> None:
    assert program("run", "events.jsonl", "--spec", "shop.toml", "--store", "second", "-q").code == 0
    ended = program("verify", "r.json", "--stream", "second")
    assert (ended.code, ended.out) == (4, "")
    # of which one learns nothing about the numbers of records
    (orders.parent / "none").mkdir()
    assert program("erase", "orders", "--subject", "nobody", "--close", "--receipt", "none").code == 5
    assert not list((orders.parent / "none").iterdir())
    ask = ("erase", "orders", "--subject", "nobody", "--close", "--receipt", "none", "--allow-missing")
    assert program(*ask).code == 0
    (other,) = (orders.parent / "none").iterdir()
    one, two = json.loads(receipt)["receipt"], json.loads(other.read_bytes())["receipt"]
    differing = {name for name in one if one[name] != two[name]}
    assert differing <= {"request", "round", "received", "applied", "purged", "found"}
    assert (one["found"], two["found"]) == ([True], [False])
    assert {name for name, value in one.items() if isinstance(value, int | float)} == {"round", "version"}


# Export ---------------------------------------------------------------------------------------------------------------


def test_export_in_all_formats(program: Program, orders: Path) -> None:
    folder = orders.parent
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        assert program("export", "orders", "--out", name).code == 0
    assert (folder / "a.jsonl").read_bytes() == (folder / "out.jsonl").read_bytes()
    assert program("export", "orders").out.encode() == (folder / "a.jsonl").read_bytes()
    assert program("export", "orders", "--format", "csv").out.encode() == (folder / "a.csv").read_bytes()
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(folder / "a.parquet").to_pylist()
    with (folder / "a.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    numbers = ("value", "standard_error", "low95", "high95")
    assert len(rows) == len(table) > 30
    for row, line in zip(rows, table, strict=True):
        assert [str(row["round"]), row["statistic"], row["group"]] == [line["round"], line["statistic"], line["group"]]
        assert [row[name] for name in numbers] == [float(line[name]) if line[name] else None for name in numbers]


def test_export_of_some_rounds(program: Program, orders: Path) -> None:
    whole = (orders.parent / "out.jsonl").read_text().splitlines()
    for options, wanted in {
        ("--first", 3): {3, 4, 5, 6},
        ("--last", 2): {1, 2},
        ("--first", 4, "--last", 5): {4, 5},
        ("--first", 5, "--last", 4): set(),
        ("--first", 9): set(),
    }.items():
        ended = program("export", "orders", *options)
        assert ended.code == 0
        assert ended.out.splitlines() == [line for line in whole if json.loads(line)["round"] in wanted]
    assert program("export", "orders", "--first", 0).code == 2
    ended = program("export", "orders", "--out", "nowhere/out.csv")
    assert (ended.code, ended.err) == (
        2,
        "error: nowhere/out.csv: expected a file in a folder that exists - at --out\n",
    )


# The end --------------------------------------------------------------------------------------------------------------


def test_an_exhausted_horizon_leaves_the_store_as_it_was(program: Program, folder: Path) -> None:
    (folder / "shop.toml").write_text(SPEC.replace("horizon = 50", "horizon = 3"))
    (folder / "events.jsonl").write_text(lines(*history(5)))
    ended = program("run", "events.jsonl", *NEW, "--out", "out.jsonl", "-q")
    assert ended.code == 3
    assert "all 3 promised rounds are released" in ended.err
    text = (folder / "out.jsonl").read_text()
    assert rounds_of(text) == [1, 2, 3]
    before = content(folder / "orders")
    again = program("run", "events.jsonl", *NEW, "-q")
    assert (again.code, again.out) == (3, "")
    assert content(folder / "orders") == before
    assert program("export", "orders").out == text
    assert program("verify", "orders").code == 0
    assert "3 surviving records; dry run" in program("erase", "orders", "--subject", "ben-c", "--dry-run").out
    ended = program("erase", "orders", "--subject", "ben-c", "--request", "t", "--close")
    assert (ended.code, ended.out) == (0, "ben-c: 3 surviving records; purged; nothing is published after it (t)\n")
    assert program("export", "orders").out == text
    assert program("verify", "orders").code == 0
