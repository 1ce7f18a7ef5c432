"""A stream that takes four rounds of two sources in one pass, in a process that is killed at a chosen step."""

from __future__ import annotations

from pathlib import Path

from support import crashing

FIRST, LAST = 2, 5
SECRET, SECRET_ID = "u-nobody-may-find", "o-nobody-may-find"
"""A subject that comes and is erased within the pass."""


def source(number: int) -> str:
    return "other" if number == 2 else "feed"


def begin(where, folder: Path) -> None:
    """A closed round, and one that has taken something."""
    with crashing.opened(where, folder) as stream:
        for round, number in [(1, 1), (1, 2), (1, 3), (2, 1)]:
            if (round, number) == (2, 1):
                stream.close_round()
            with stream.receiving(source(number), (round, number)):
                crashing.batch(stream, round, number)


def rest(stream):
    """What is still to come, by round; the last round stays open."""
    for round in range(stream.round, LAST + 2):
        numbers = range(1, crashing.BATCHES + 1 if round <= LAST else 3)
        yield [(round, number) for number in numbers if (round, number) > stream.position(source(number))]


def take(stream, batches) -> None:
    for round, number in batches:
        with stream.receiving(source(number), (round, number), delivered=[10 * round + number]):
            crashing.batch(stream, round, number)
            if (round, number) == (3, 1):
                stream.add({"country": "DE", "amount": 1}, id=SECRET_ID, subject=SECRET)
            if (round, number) == (4, 2):
                stream.erase(subject=[SECRET, "u2"], request="ticket 2")


def alone(where, folder: Path) -> None:
    """Round by round."""
    with crashing.opened(where, folder) as stream:
        for batches in rest(stream):
            take(stream, batches)
            if stream.round <= LAST:
                stream.close_round()
        publish(stream, folder)


def in_one_pass(where, folder: Path) -> None:
    with crashing.opened(where, folder) as stream:
        if stream.round <= LAST:
            with stream.one_pass() as rounds:
                for batches in rest(stream):
                    take(stream, batches)
                    if stream.round <= LAST:
                        rounds.end_round()
        else:
            # the pass is committed: what was left open may have got lost with the process
            take(stream, [*rest(stream)][-1])
        publish(stream, folder)


def publish(stream, folder: Path) -> None:
    lines = [
        f"{stored.round} {stored.statistic} {stored.exact.hex()} {stored.line.hex()}\n"
        for stored in stream.store.releases()
    ]
    (folder / "published").write_text("".join(lines))
