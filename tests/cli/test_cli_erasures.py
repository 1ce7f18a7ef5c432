"""Erasures that find nothing, as whoever runs a stream meets them: words, exit codes, receipts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from msgspec import UNSET

import retroact as ra
from retroact.store.receipt import verify as read_receipt
from support.cli_program import CLOSE, Program, add, lines

NEW = ("--spec", "shop.toml", "--store", "orders")
MISSED = "If that is right: --allow-missing\n"
V1 = Path(__file__).parent.parent / "store" / "receipt_v1.json"
"""A receipt of version 1, as version 0.1.0 of the program wrote it."""


@pytest.fixture
def orders(program: Program, folder: Path) -> Path:
    """A stream with a record of each of two people in round 1, and one of ben in round 2, which is open."""
    (folder / "events.jsonl").write_text(lines(add(subject="anna"), add(subject="ben"), CLOSE, add(subject="ben")))
    assert program("run", "events.jsonl", *NEW, "-q").code == 0
    return folder / "orders"


# The command ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["--subject", "--sha256", "--from"])
@pytest.mark.parametrize("close", [False, True])
def test_a_typo_is_no_success(program: Program, orders: Path, way: str, close: bool) -> None:
    folder, digest = orders.parent, hashlib.sha256(b"anan").hexdigest()
    (folder / "list.csv").write_text("subject,request\nanan,t\n")
    (folder / "receipts").mkdir()
    who = {"--subject": ("anan", "--request", "t"), "--sha256": (digest, "--request", "t"), "--from": ("list.csv",)}
    ended = program("erase", "orders", way, *who[way], "--receipt", "receipts", *(["--close"] if close else []))
    assert ended.code == 5
    name = digest if way == "--sha256" else "anan"
    state = "applied in round 2" if close else "received; applied when round 2 closes"
    assert ended.out == f"no record was found of {name}; entered all the same: {state} (t)\n"
    assert (
        ended.err == f"error: no record was found of a subject, and no receipt was written for that request. {MISSED}"
    )
    assert list((folder / "receipts").iterdir()) == []
    # it is entered
    assert len(program("erase", "orders", "--status").out.splitlines()) == 1


def test_a_receipt_of_nothing_says_so(program: Program, orders: Path) -> None:
    ask = ("erase", "orders", "--subject", "nobody", "--request", "t", "--receipt", "r.json", "--allow-missing")
    assert program(*ask).code == 0
    received = read_receipt((orders.parent / "r.json").read_bytes(), place="")
    assert (received.version, received.state, received.found) == (2, "received", UNSET)
    assert not program("verify", "r.json").out.startswith("no record")
    assert program(*ask, "--close").code == 0
    receipt = read_receipt((orders.parent / "r.json").read_bytes(), place="")
    assert (receipt.version, receipt.state, receipt.found) == (2, "purged", [False])
    for options in ((), ("--stream", "orders"), ("--stream", "orders", "--subject", "nobody", "--request", "t")):
        ended = program("verify", "r.json", *options)
        assert (ended.code, ended.out.splitlines()[0]) == (0, "no record was found")


def test_several_subjects_have_a_line_each(program: Program, orders: Path) -> None:
    ask = ("erase", "orders", "--subject", "anna", "--subject", "nobody", "--subject", "ben", "--request", "t")
    for more in (("--dry-run",), ()):
        ended = program(*ask, *more, "--receipt", "r.json")
        assert ended.code == 5
        assert [line.split(";")[0] for line in ended.out.splitlines()] == [
            "anna: 1 surviving record", "no record was found of nobody",
            "ben: 1 surviving record and 1 in the open round",
        ]  # fmt: skip
        assert not (orders.parent / "r.json").exists()
    ended = program(*ask, "--close", "--receipt", "r.json")
    assert ended.code == 5
    assert [line.split(";")[0] for line in ended.out.splitlines()] == [
        "anna: records were found when round 2 closed", "no record was found of nobody when round 2 closed",
        "ben: records were found when round 2 closed",
    ]  # fmt: skip
    assert program(*ask, "--receipt", "r.json", "--allow-missing").code == 0
    assert program("verify", "r.json").out.splitlines()[0] == "no record was found of 1 of its 3 subjects"
    named = program("verify", "r.json", "--stream", "orders", *ask[2:])
    assert (named.code, named.out.splitlines()[0]) == (0, "no record was found of nobody")


def test_what_comes_later_in_the_round_is_told_when_it_is_closed(program: Program, orders: Path) -> None:
    ask = ("erase", "orders", "--subject", "carl", "--request", "t")
    assert [program(*ask).code for _ in range(2)] == [5, 5]
    (orders.parent / "more.jsonl").write_text(lines(add(subject="carl"), CLOSE))
    assert program("run", "more.jsonl", "--store", "orders", "-q").code == 0
    ended = program(*ask, "--receipt", "r.json")
    assert ended.code == 0, ended.err
    told = "purged; answers are as if never there from round 2 on (t)"
    assert ended.out == f"carl: records were found when round 2 closed; {told}\n"
    assert read_receipt((orders.parent / "r.json").read_bytes(), place="").found == [True]


def test_a_request_that_is_refused_goes_before(program: Program, orders: Path) -> None:
    """Bad input is exit code 2, whatever was found."""
    (orders.parent / "list.csv").write_text("subject,request\nnobody,t\nanna,u\nanna,u\n")
    assert program("erase", "orders", "--subject", "ben", "--request", "u").code == 0
    assert program("erase", "orders", "--from", "list.csv").code == 2
    assert program("erase", "orders", "--subject", "nobody", "--receipt", "nowhere/r.json").code == 2
    assert len(program("erase", "orders", "--status").out.splitlines()) == 1


def test_a_receipt_of_the_first_version_is_still_good(program: Program, folder: Path) -> None:
    (folder / "r.json").write_bytes(V1.read_bytes())
    ended = program("verify", "r.json")
    assert ended.code == 0
    assert ended.out.startswith(
        "r.json: whole (give --stream to check who signed it); purged, received 2026-11-17T20:34"
    )
    assert "note: version 1 of receipts does not say whether records were found" in ended.out


def test_a_stream_without_subjects_refuses(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text("customer,amount\nu17,5\n")
    made = ("run", "orders.csv", "--count", "--sum", "amount:0..500", "--epsilon", "1", "--store", "orders", "-q")
    assert program(*made).code == 0
    for more in ((), ("--dry-run",), ("--allow-missing",)):
        ended = program("erase", "orders", "--subject", "u17", "--close", "--receipt", "r.json", *more)
        assert (ended.code, ended.out) == (2, "")
        assert "this stream has no subjects" in ended.err
        for way in ("retroact run --subject COLUMN", 'subject = "COLUMN" in [columns]', '"op": "delete", "id"'):
            assert way in ended.err
    assert not (folder / "r.json").exists()
    assert program("erase", "orders", "--status").out == ""


# The feed -------------------------------------------------------------------------------------------------------------

EVENTS = [
    add(subject="anna"),
    {"op": "erase", "subject": "nobody"},
    {"op": "erase", "subject": "anna"},
    {"op": "delete", "id": "none"},
    CLOSE,
    {"op": "erase", "subject": "anna"},
    add(subject="anna"),
    {"op": "erase", "subject": "anna"},
    CLOSE,
]
WORDS = "no record was found for 2 erasures"


def written(folder: Path, form: str) -> tuple[str, str]:
    """The events as a file, and where in it the two are that find nothing."""
    if form == "jsonl":
        (folder / "events.jsonl").write_text(lines(*EVENTS))
        return "events.jsonl", "lines 2, 6"
    rows = [{**event.get("record", {}), **event} for event in EVENTS]
    names = ("op", "id", "subject", "country", "amount")
    if form == "csv":
        text = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]
        (folder / "events.csv").write_text("\n".join(text) + "\n")
        return "events.csv", "lines 3, 7"
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), folder / "events.parquet")
    return "events.parquet", "rows 2, 6"


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("lasting", [False, True], ids=["memory", "store"])
def test_a_run_names_the_lines(program: Program, folder: Path, form: str, lasting: bool) -> None:
    file, where = written(folder, form)
    made = ("run", file, "--spec", "shop.toml", *(["--store", "orders"] if lasting else []))
    key = () if lasting else ("--testing-key", "1")
    ended = program(*made, *key, "--out", "out.jsonl")
    assert ended.code == 5
    assert ended.err.splitlines()[-1] == f"error: {file}: {WORDS} ({where}). {MISSED.strip()}"
    # apart from other deletions, and everything is published
    assert "1 deletion named nothing" in ended.err
    assert {json.loads(line)["round"] for line in (folder / "out.jsonl").read_text().splitlines()} == {1, 2}
    if lasting:
        # what was read before is not told again
        assert program(*made, "-q").code == 0
        with ra.Stream.open(folder / "orders") as stream:
            assert [request.state for request in stream.requests()] == ["purged"] * len(stream.requests())
        return
    quiet = program(*made, *key, "-q")
    assert (quiet.code, quiet.err) == (5, f"error: {file}: {WORDS} ({where}). {MISSED}")
    allowed = program(*made, *key, "--allow-missing")
    assert allowed.code == 0
    assert f"note: {file}: {WORDS} ({where})" in allowed.err
    assert (program(*made, *key, "--allow-missing", "-q").err, allowed.out) == ("", quiet.out)


def test_a_run_that_finds_everybody_is_fine(program: Program, folder: Path) -> None:
    events = [event for event in EVENTS if event.get("subject") != "nobody"]
    del events[4]
    (folder / "events.jsonl").write_text(lines(*events))
    ended = program("run", "events.jsonl", "--spec", "shop.toml")
    assert ended.code == 0
    assert "no record" not in ended.err


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_another_error_goes_before_and_the_lines_are_named_all_the_same(
    program: Program, folder: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds before it are kept, and will not be read again."""
    monkeypatch.setitem(EVENTS[6], "record", {"country": "DE", "amount": 10**6})
    file, where = written(folder, form)
    first = where.split(",")[0].replace("s ", " ")
    ended = program("run", file, *NEW, "-q")
    assert ended.code == 2
    told = ended.err.splitlines()
    assert told[0] == f"warning: {file}: no record was found for 1 erasure ({first})"
    assert told[1].startswith(f"error: {file}")
    assert program("run", file, *NEW, "-q").err.startswith("error: ")


def test_an_exhausted_horizon_goes_before(program: Program, folder: Path) -> None:
    (folder / "shop.toml").write_text((folder / "shop.toml").read_text().replace("horizon = 50", "horizon = 2"))
    (folder / "events.jsonl").write_text(lines(*EVENTS, CLOSE))
    ended = program("run", "events.jsonl", *NEW, "-q")
    assert ended.code == 3
    assert f"warning: events.jsonl: {WORDS} (lines 2, 6)" in ended.err


def test_half_a_line_goes_before(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(lines(*EVENTS) + '{"op": "erase", "subject": "an')
    ended = program("run", "events.jsonl", *NEW, "-q")
    assert ended.code == 2
    assert f"warning: events.jsonl: {WORDS} (lines 2, 6)" in ended.err


def test_only_the_first_few_are_named(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(lines(*({"op": "erase", "subject": f"u{k}"} for k in range(1500)), CLOSE))
    ended = program("run", "events.jsonl", "--spec", "shop.toml", "-q")
    assert ended.code == 5
    assert "no record was found for 1,500 erasures (lines 1, 2, 3, 4, 5 and 1,495 more). " in ended.err


def test_a_followed_feed_names_them_at_once(program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from retroact.feeds.source import Source

    (folder / "events.jsonl").write_text(lines(*EVENTS))
    monkeypatch.setattr(Source, "_wait", lambda source: source.stop.set())
    ended = program("run", "events.jsonl", "--spec", "shop.toml", "--follow", "-q")
    assert ended.code == 5
    assert ended.err.splitlines() == [
        f"warning: events.jsonl: {WORDS} (lines 2, 6)",
        f"error: events.jsonl: no record was found for erasures named before. {MISSED.strip()}",
    ]


def test_a_dry_run_changes_nothing(program: Program, orders: Path) -> None:
    ask = ("erase", "orders", "--subject", "anna", "--request", "t")
    assert program(*ask).code == 0
    before = program("export", "orders").out
    ended = program(*ask, "--dry-run", "--close")
    assert (ended.code, ended.out) == (
        0,
        "anna: records were found when it was asked for; received; applied when round 2 closes (t)\n",
    )
    assert program("export", "orders").out == before
    fence = (orders.parent / "orders.fence").read_bytes()
    (orders.parent / "orders.fence").unlink()
    for more in (("--after", "1"), ("--restored",), ("--erasures-asked",)):
        refused = program(*ask, "--dry-run", *more)
        assert (refused.code, "a dry run changes nothing" in refused.err) == (2, True)
    assert not (orders.parent / "orders.fence").exists()
    (orders.parent / "orders.fence").write_bytes(fence)
    assert program(*ask, "--close").code == 0
