"""What takes long is seen to go on, and what does not stays quiet."""

import itertools
import threading
import time
from types import SimpleNamespace

import pytest

from retroact.cli import progress
from retroact.cli.progress import busy


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is an hour after the one before."""
    clock = itertools.count(step=3600)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(progress, "REDRAW", 0.001)


def seen(capsys: pytest.CaptureFixture[str]) -> str:
    """What is on standard error within ten seconds."""
    end, found = time.monotonic() + 10, ""
    while "\n" not in found and time.monotonic() < end:
        time.sleep(0.005)
        found += capsys.readouterr().err
    return found


@pytest.mark.usefixtures("hours")
def test_long_work_says_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    running = threading.active_count()
    with busy("erasing"):
        assert seen(capsys).startswith("progress: erasing, ")
    assert threading.active_count() == running


@pytest.mark.usefixtures("hours")
def test_nothing_is_shown_where_nobody_wants_it(capsys: pytest.CaptureFixture[str]) -> None:
    with busy("erasing", shown=False):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_short_work_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with busy("erasing"):
        time.sleep(0.01)
    assert capsys.readouterr().err == ""
