"""`retroact erase`: requests are taken whole, done once, and have a receipt."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import retroact as ra
from retroact.store.receipt import public_key
from retroact.store.receipt import verify as read_receipt
from retroact.stream.erasure import Hashes
from support.cli_program import CLOSE, Program, lines
from support.store_commands import bring_back, content, rounds_of, rows_of


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
