"""Single bytes of a store flipped: the same answers, a refusal with a sentence, or an older open round."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import retroact as ra
from support.tiers import in_full

SEED = 20261117
SPEC: dict[str, Any] = {
    "schema": {"country": ra.Text(), "amount": ra.Number(0, 500)},
    "statistics": {"orders": ra.Count(), "revenue": ra.Sum("amount")},
    "epsilon": 1.0,
    "delta": 1e-6,
    "horizon": 12,
}
STATES = ("whole", "asked")
FILES = ("data.sqlite", "data.sqlite-wal", "data.sqlite-shm", "journal.sqlite", "journal.sqlite-wal",
         "journal.sqlite-shm")  # fmt: skip


def open_stream(place: Path, **spec: Any) -> Any:
    return ra.Stream.open(place, key_file=place.with_name("orders.key"), **spec)


def answers(place: Path, *, verify_first: bool) -> list[Any]:
    """Everything that people ask a store for, in the order that they may ask it; the last is a refusal if one comes.

    What it refuses with anything else than a verification error, or without a sentence, is not caught.
    """
    told: list[Any] = []

    def ask(what: str, question: Callable[[], Any]) -> None:
        told.append((what, question()))

    def check(stream: Any) -> str:
        found = stream.verify()
        if not found.ok:
            raise ra.VerificationError(f"{place}: {found.problems[0]}")
        return "verified"

    def status(stream: Any) -> list[Any]:
        return [(each.name, each.content, each.state, each.round) for each in stream.requests()]

    try:
        with open_stream(place) as stream:
            ask("round", lambda: stream.round)
            ask("export", lambda: list(stream.releases()))
            ask("status", lambda: status(stream))
            if verify_first:
                ask("verify", lambda: check(stream))
            ask("close", lambda: stream.close_round().encode())
            ask("status after", lambda: status(stream))
            asked = stream.erase(subject="anna", request="r-1")
            ask("receipt", lambda: json.loads(asked.receipt())["receipt"] if asked.found else None)
            ask("verify", lambda: check(stream))
        with open_stream(place) as stream:
            ask("export again", lambda: list(stream.releases()))
    except ra.VerificationError as error:
        told.append(("refused", str(error)))
    return told


def without_times(told: list[Any]) -> list[Any]:
    known = {"received", "applied", "purged"}
    return [
        (what, {key: value for key, value in answer.items() if key not in known} if what == "receipt" else answer)
        for what, answer in told
        if what != "refused"
    ]


class Image:
    """A stream as a stopped process leaves it, put back before every flip. Of what it holds, more or less is in its
    logs: with ``settled`` all but the open round is in the main files."""

    def __init__(self, folder: Path, *, settled: bool) -> None:
        self.place, self.kept = folder / "orders", folder / "kept"
        with open_stream(self.place, **SPEC) as stream:
            self.round(stream, 200)
            self.round(stream, 12)
        with open_stream(self.place) as stream:
            stream.erase(subject="dora", request="r-0")
            self.round(stream, 12)
            if not settled:
                self.finish(stream)
        if settled:
            with open_stream(self.place) as stream:
                self.finish(stream)

    def round(self, stream: Any, records: int) -> None:
        numbers = range(records)
        stream.add(
            {"country": [f"c{number % 5}" for number in numbers], "amount": list(numbers)},
            id=[f"o-{stream.round}-{number}" for number in numbers],
            subject=[("anna", "ben", "carl", "dora")[number % 4] for number in numbers],
        )
        stream.close_round()

    def finish(self, stream: Any) -> None:
        """An open round: updates, how far a source was read, an acknowledged erasure, and another update."""
        stream.add({"country": "DE", "amount": 400}, subject="ben")
        stream.delete(id="o-1-1")
        with stream.receiving("events.jsonl", (7,)):
            stream.add({"country": "FR", "amount": 40}, id="o-9", subject="anna")
        stream.erase(subject="anna", request="r-1")
        self.keep("asked")
        stream.add({"country": "US", "amount": 300}, subject="carl")
        self.keep("whole")

    def keep(self, name: str) -> None:
        target = self.kept / name
        shutil.copytree(self.place, target / "orders")
        shutil.copy2(self.fence, target / "orders.fence")

    @property
    def fence(self) -> Path:
        return self.place.with_name("orders.fence")

    def restore(self, name: str = "whole") -> None:
        shutil.rmtree(self.place)
        shutil.copytree(self.kept / name / "orders", self.place)
        shutil.copy2(self.kept / name / "orders.fence", self.fence)

    @cached_property
    def expected(self) -> dict[tuple[str, bool], list[Any]]:
        return expected(self)

    def files(self) -> list[Path]:
        return [path for path in (*(self.place / name for name in FILES), self.fence) if path.stat().st_size]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    return [Image(tmp_path_factory.mktemp("flips"), settled=settled) for settled in (False, True)]


def expected(image: Image) -> dict[tuple[str, bool], list[Any]]:
    found = {}
    for name in STATES:
        for first in (False, True):
            image.restore(name)
            told = answers(image.place, verify_first=first)
            assert told[-1][0] == "export again", told[-1]
            found[name, first] = without_times(told)
    return found


def flip(path: Path, position: int, mask: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def flipped(images: list[Image], count: int) -> Counter[tuple[str, str]]:
    """The outcome of so many flips, by file."""
    references = [image.expected for image in images]
    rng = random.Random(SEED)
    outcomes: Counter[tuple[str, str]] = Counter()
    for number in range(count):
        image, reference = images[number % 2], references[number % 2]
        image.restore()
        files = image.files()
        path = files[number // 2 % len(files)]
        position, mask, first = rng.randrange(path.stat().st_size), rng.randrange(1, 256), rng.random() < 0.5
        flip(path, position, mask)
        outcomes[
            path.name, outcome(image, path, reference, verify_first=first, where=f"{path}, {position}, {mask}")
        ] += 1
    return outcomes


def outcome(image: Image, path: Path, reference: Any, *, verify_first: bool, where: str) -> str:
    try:
        told = answers(image.place, verify_first=verify_first)
    except Exception as error:
        raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
    compared = without_times(told)
    states = [name for name in STATES if reference[name, verify_first][: len(compared)] == compared]
    assert states, f"{where}: another answer: {told}"
    assert "whole" in states or path.name.endswith("-wal"), f"{where}: an older open round: {told}"
    if told[-1][0] != "refused":
        return "the same answers" if "whole" in states else "an older open round"
    assert str(image.place) in told[-1][1], f"{where}: which store, or which fence: {told[-1][1]}"
    return "refused" if len(told) == 1 else f"refused later, at: {reference['whole', verify_first][len(compared)][0]}"


@pytest.fixture(autouse=True)
def purges_that_fail_are_tried_again() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("count", [100, in_full(500)])
def test_flips(images: list[Image], count: int) -> None:
    outcomes = flipped(images, count)
    found: Counter[str] = Counter()
    for (_, kind), times in outcomes.items():
        found[kind.partition(",")[0]] += times
    assert found["refused"] > 0.3 * count
    assert found["the same answers"] > 0.3 * count
    assert outcomes["orders.fence", "refused"] > 0.1 * count


@pytest.mark.parametrize(("name", "step"), [("data.sqlite", 1), ("journal.sqlite", 3), in_full("journal.sqlite", 1)])
def test_every_byte_of_the_header(images: list[Image], name: str, step: int) -> None:
    """Of which SQLite takes some for a lack of rights, or for a file of a later version."""
    image = images[1]
    reference = image.expected
    for position in range(0, 100, step):
        image.restore()
        flip(image.place / name, position, 1 << position % 8)
        where = f"{name}, {position}"
        outcome(image, image.place / name, reference, verify_first=bool(position % 2), where=where)


@pytest.mark.parametrize("number", [0, 1])
def test_the_text_encoding_of_the_header(images: list[Image], number: int) -> None:
    """SQLite notices another one late, when the data are read together with the journal."""
    image = images[number]
    reference = image.expected
    for position, mask in ((56, 165), (59, 2), (59, 3), (59, 165)):
        image.restore()
        flip(image.place / "data.sqlite", position, mask)
        outcome(image, image.place / "data.sqlite", reference, verify_first=True, where=f"{position}, {mask}")


def damages(content: bytes) -> dict[str, bytes | None]:
    """A file that was cut, emptied, lost or replaced."""
    with closing(sqlite3.connect(":memory:")) as other:
        other.execute("create table state(name text primary key, value text)")
        database = other.serialize()
    return {
        "empty": b"",
        "cut to a page": content[: min(4096, len(content) // 3)], "cut to a half": content[: len(content) // 2],
        "cut by a byte": content[:-1], "cut to ten bytes": content[:10], "zeros": bytes(len(content)),
        "text": b"hello world\n" * 400, "another database": database, "turned around": content[::-1],
        "longer": content + bytes(4096), "gone": None,
    }  # fmt: skip


@pytest.mark.parametrize("name", [*FILES, "../orders.fence"])
def test_files_that_are_cut_emptied_lost_or_replaced(images: list[Image], name: str) -> None:
    for image in images:
        reference = image.expected
        image.restore()
        path = image.place / name
        for damage, content in damages(path.read_bytes()).items():
            image.restore()
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            found = outcome(image, path, reference, verify_first=True, where=f"{name}, {damage}")
            assert found.startswith("refused") or "-" in name or damage in ("longer", "cut by a byte"), (
                f"{name}, {damage}"
            )
        path.unlink(missing_ok=True)
        path.mkdir()
        with pytest.raises((ra.VerificationError, ra.InputError), match=path.name):
            open_stream(image.place)
        path.rmdir()


def test_data_and_journal_in_each_others_place(images: list[Image]) -> None:
    image = images[1]
    image.restore()
    data, journal = image.place / "data.sqlite", image.place / "journal.sqlite"
    content = data.read_bytes()
    data.write_bytes(journal.read_bytes())
    journal.write_bytes(content)
    with pytest.raises(ra.VerificationError, match="restore it from a backup"):
        open_stream(image.place)


def test_the_program_ends_with_exit_code_four(images: list[Image], capsys: pytest.CaptureFixture[str]) -> None:
    from retroact.cli import main

    image = images[1]
    for name in ("data.sqlite", "journal.sqlite"):
        for command in (["verify"], ["export"], ["erase", "--status"], ["columns"]):
            image.restore()
            (image.place / name).write_bytes(b"hello world\n" * 400)
            with pytest.raises(SystemExit) as ended:
                main([command[0], str(image.place), *command[1:]])
            told = capsys.readouterr().err
            assert ended.value.code == 4, told
            assert told.startswith(f"error: {image.place / name}: file is not a database. It was changed by something")


@pytest.mark.slow
def test_ten_thousand_flips(images: list[Image]) -> None:
    for (name, kind), count in sorted(flipped(images, 10_000).items()):
        print(f"| {name} | {kind} | {count:,} |")
