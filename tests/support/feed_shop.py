"""A small stream, and files for it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import retroact as ra
from retroact.feeds import Totals, play
from retroact.stream.columns import Columns

LENIENT = replace(Columns.usual(), ignore=True)
CLOSE: dict[str, Any] = {"op": "close"}


def shop(**more: Any) -> ra.Stream:
    """With the usual columns; others are passed over."""
    given: dict[str, Any] = {"epsilon": 1.0, "horizon": 200, "key": ra.Key.for_testing(3), "columns": LENIENT, **more}
    fields = {"country": ra.Category(["DE", "FR", "US"]), "amount": ra.Number(0, 500)}
    return ra.Stream(fields, {"orders": ra.Count(), "revenue": ra.Sum("amount")}, **given)


def row(country: str = "DE", amount: object = 1, **more: Any) -> dict[str, Any]:
    return {"country": country, "amount": amount, **more}


def written(path: Path, events: Iterable[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


class Played:
    """A file played into a stream, and what was published."""

    def __init__(self, path: Any, stream: ra.Stream | None = None, **options: Any) -> None:
        self.stream = shop() if stream is None else stream
        self.releases: list[dict[str, Any]] = []
        self.totals: Totals = play(self.stream, path, publish=self._publish, **options)

    def _publish(self, round: Any) -> None:
        self.releases += [release.to_dict() for release in round.values()]

    @property
    def surviving(self) -> bytes:
        """What is left, in canonical bytes."""
        return self.stream.state()


def by_hand(*rounds: Iterable[tuple[str, dict[str, Any]]], **more: Any) -> ra.Stream:
    """The stream after these calls, with a round closed after each part."""
    stream = shop(**more)
    for calls in rounds:
        for name, arguments in calls:
            getattr(stream, name)(**arguments)
        stream.close_round()
    return stream
