"""Erasures that found nothing: they are entered all the same, and the program ends with an exit code of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from retroact.errors import RetroactError

if TYPE_CHECKING:
    from retroact.cli.report import Report
    from retroact.feeds.totals import Missed

ALLOW = "If that is right: --allow-missing"


class NotFoundError(RetroactError):
    """No record was found of somebody who is to be erased. Nothing else went wrong."""

    exit_code = 5


@contextmanager
def naming_not_found(missed: Missed, report: Report, *, allowed: bool) -> Iterator[None]:
    """Around a run: the erasures in it that found nothing are named at its end, also when it ends by another error."""
    try:
        yield
    except BaseException:
        tell(missed, report, allowed=allowed)
        raise
    if allowed or not missed.count:
        tell(missed, report, allowed=allowed)
    else:
        words = missed.words() if missed.untold else f"{missed.source}: no record was found for erasures named before"
        raise NotFoundError(f"{words}. {ALLOW}")


def tell(missed: Missed, report: Report, *, allowed: bool) -> None:
    """Of those that nobody was told of yet."""
    if missed.untold:
        words = missed.words()
        report.line(f"note: {words}") if allowed else report.warn(words)
