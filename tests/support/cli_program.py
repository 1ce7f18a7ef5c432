"""The program in this process, which is quick; `test_cli_program.py` runs it as people do."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SPEC = """
epsilon = 1.0
horizon = 50

[schema]
country = { type = "category", values = ["DE", "FR", "US"] }
amount = { type = "number", lower = 0, upper = 500, step = 0.01 }

[statistics]
orders = { type = "count" }
revenue = { type = "sum", field = "amount" }
average = { type = "mean", field = "amount", every = 2 }
countries = { type = "count", by = "country" }
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def releases(self) -> list[dict[str, Any]]:
        """As streams publish them: without the times of rounds, and the mark of a testing key."""
        added = ("start", "end", "testing_key")
        lines = (json.loads(line) for line in self.out.splitlines())
        return [{key: part for key, part in line.items() if key not in added} for line in lines]


Program = Callable[..., Ended]


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Program:
    from retroact.cli import main

    def call(*arguments: object, stdin: bytes | None = None) -> Ended:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = ended.value.code
        # on a slow machine there is progress
        err = "".join(line for line in captured.err.splitlines(keepends=True) if not line.startswith("progress: "))
        return Ended(code if isinstance(code, int) else 0, captured.out, err)

    return call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with a specification in it, and no key around."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RETROACT_KEY", raising=False)
    (tmp_path / "shop.toml").write_text(SPEC)
    return tmp_path


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def add(country: str = "DE", amount: object = 1, **more: Any) -> dict[str, Any]:
    return {"op": "add", "record": {"country": country, "amount": amount}, **more}


CLOSE: dict[str, Any] = {"op": "close"}
