"""Large stores: erased bytes are gone in the close that erases them, and the layout follows within a bound."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from retroact.errors import InputError
from retroact.stream import layout
from support import crashing
from support.durable_streams import fill, opened

ERASED = "person-07"


@pytest.fixture(autouse=True)
def every_store_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "AT_ONCE", 0)


def filled(where: Path, folder: Path, name: str = "a", without: tuple[str, ...] = ()) -> Any:
    stream = opened(where, folder, name)
    for round in range(1, 9):
        fill(stream, round, without=without)
        stream.close_round()
    return stream


def files_with(where: Path, text: str) -> list[str]:
    return [path.name for path in where.iterdir() if text.encode() in path.read_bytes()]


def content(where: Path) -> bytes:
    return (where / "data.sqlite").read_bytes()


def test_bytes_are_gone_at_once_and_the_layout_within_the_bound(tmp_path: Path) -> None:
    with filled(tmp_path / "one", tmp_path) as stream:
        assert files_with(tmp_path / "one", ERASED)
        asked = stream.erase(subject=ERASED)
        stream.close_round()
        assert files_with(tmp_path / "one", ERASED) == []
        receipt = json.loads(asked.receipt())["receipt"]
        assert receipt["state"] == "purged"
        assert receipt["what"][0] == "data.sqlite: rows, free pages and gaps in pages"
        assert "the layout of data.sqlite, rewritten when round 25 closes" in receipt["remains"][0]
        found = stream.verify()
        assert (found.problems, len(found.notes)) == ([], 1)
        assert "rewritten when round 25 closes" in found.notes[0]
        while stream.round <= 9 + layout.ROUNDS:
            assert stream.verify().notes
            stream.close_round()
        found, receipt = stream.verify(), json.loads(asked.receipt())["receipt"]
        assert (found.problems, found.notes) == ([], [])
        assert receipt["what"][0].endswith("and the layout")
        assert "layout" not in str(receipt["remains"])


def test_once_compact_the_file_is_that_of_a_twin(tmp_path: Path) -> None:
    """Byte for byte, and the same stream goes on."""
    with filled(tmp_path / "one", tmp_path) as one, filled(tmp_path / "two", tmp_path, "b", (ERASED,)) as two:
        one.erase(subject=ERASED)
        two.erase(subject=ERASED)
        assert one.close_round().encode() == two.close_round().encode()
        for stream in (one, two):
            assert stream.compact()
            assert stream.verify().notes == []
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_the_layout_is_rewritten_when_hours_have_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path / "one", tmp_path) as stream:
        stream.erase(subject=ERASED)
        stream.close_round()
        assert stream.store.note(layout.NOTE)
    monkeypatch.setattr(layout, "HOURS", 0)
    with opened(tmp_path / "one", tmp_path) as stream:
        assert not stream.store.note(layout.NOTE)
        assert stream.verify().problems == []


def test_what_is_overdue_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a stream that stays open and closes no round, nobody rewrites it."""
    with filled(tmp_path / "one", tmp_path) as stream:
        asked = stream.erase(subject=ERASED)
        stream.close_round()
        since = layout.OldLayout.noted(stream.store).since
        assert "rewritten when round 25 closes" in stream.verify().notes[0]
        monkeypatch.setattr(layout, "HOURS", 0)
        words = f"overdue since {since}: it is rewritten when the next round closes, when the stream is opened again"
        assert words in stream.verify().notes[0]
        assert words in json.loads(asked.receipt())["receipt"]["remains"][0]
        stream.close_round()
        assert stream.verify().notes == []


def test_when_it_is_due_by_rounds() -> None:
    waits = layout.OldLayout(3, "2026-11-18T10:00:00Z", layout.LayoutSettings(at_once=0, rounds=2, hours=1))
    early, late = "2026-11-18T10:59:59Z", "2026-11-18T11:00:00Z"
    assert waits.standing(5, early) == "rewritten when round 5 closes, or the first one after 2026-11-18T11:00:00Z"
    assert waits.standing(5, late).startswith("overdue since 2026-11-18T11:00:00Z: ")
    assert waits.standing(6, early).startswith("overdue since round 5 closed: ")


def test_the_settings_of_a_store_are_its_own(tmp_path: Path) -> None:
    with filled(tmp_path / "one", tmp_path) as stream:
        assert stream.compact(rounds=2, hours=1)
        for bad in ({"rounds": -1}, {"hours": 1.5}, {"at_once": "much"}):
            with pytest.raises(InputError, match=f"expected a whole number from 0.*{next(iter(bad))}"):
                stream.compact(**bad)
    with opened(tmp_path / "one", tmp_path) as stream:
        stream.erase(subject=ERASED)
        stream.close_round()
        assert "rewritten when round 11 closes" in stream.verify().notes[0]
        for _ in range(2):
            stream.close_round()
        assert stream.verify().notes == []
        assert stream.compact(at_once=1 << 40)
        stream.erase(subject="person-08")
        stream.close_round()
        assert not stream.store.note(layout.NOTE)
        assert stream.verify().problems == []


def test_a_store_that_is_not_large_is_rewritten_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "AT_ONCE", 1 << 40)
    with filled(tmp_path / "one", tmp_path) as stream:
        asked = stream.erase(subject=ERASED)
        stream.close_round()
        assert stream.store.note(layout.NOTE) is None
        assert json.loads(asked.receipt())["receipt"]["what"][0].endswith("and the layout")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["seal", "scrub", "commit", "purge", "purged", "advance", "_wiped", "_mark"])
def test_killed_at_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: str) -> None:
    """While an erasure is wiped, while its layout waits, and while it is rewritten."""
    monkeypatch.setattr(layout, "ROUNDS", 1)
    for occurrence in (1, 2, 3):
        folder = tmp_path / str(occurrence)
        folder.mkdir()
        ended = crashing.run(folder / "orders", folder, (step, when, occurrence))
        if ended == 0:
            assert step in ("purge", "purged", "_mark")
            return
        assert ended == -signal.SIGKILL
        assert crashing.run(folder / "orders", folder) == 0
        with crashing.opened(folder / "orders", folder) as stream:
            assert [request.state for request in stream.store.requests()] == ["purged"]
            assert not stream.store.note(layout.NOTE)
            assert stream.verify().problems == []
