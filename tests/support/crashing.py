"""A stream under a workload, in a process that is killed at a chosen step."""

from __future__ import annotations

import os
import signal
import traceback
from pathlib import Path

import numpy as np

import retroact as ra
from retroact import files
from retroact.store.fence import Fence
from retroact.store.store import Store

SCHEMA = {"country": ra.Text(missing="skip"), "amount": ra.Number(0, 500, step=1, missing="skip")}
STATISTICS = {
    "orders": ra.Count(),
    "revenue": ra.Sum("amount", window=3),
    "countries": ra.Histogram("country", bins=["DE", "FR"]),
}
KEY = ra.Key.for_testing(11)
ROUNDS, BATCHES = 5, 3

METHODS = ("receive", "prepare", "seal", "edit_blocks", "scrub", "commit", "purge", "purged", "advance", "replace")
"""Every step of the protocol; `edit_blocks` lies within the transaction of a seal, `replace` within the fence."""
WITHIN = ("_wiped", "_cut_log", "_connect", "_mark", "wind_up")
"""Every step of wiping the pages of an SQLite file."""


def opened(where, folder: Path, **more):
    return ra.Stream.open(
        where, SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=64, key=KEY, fence=folder / "the.fence", **more
    )


def batch(stream, round: int, number: int) -> None:
    """The same every time: additions with and without id, updates, deletions of all kinds, an erasure; values that are
    missing among them."""
    random = np.random.default_rng([round, number])
    countries = [["DE", "FR"][k] for k in random.integers(0, 2, 12)]
    stream.add(
        {"country": countries, "amount": random.integers(0, 500, 12).tolist()},
        id=[f"o-{round}-{number}-{k}" for k in range(12)],
        subject=[f"u{k}" for k in random.integers(0, 9, 12)],
    )
    stream.add({"country": ["DE", "DE", "DE", None], "amount": [7, 7, round, None]}, subject=[f"u{number}"] * 4)
    if round > 1:
        stream.delete(id=[f"o-{round - 1}-{number}-{k}" for k in (1, 5, 99)])
        stream.delete({"country": "DE", "amount": 7}, stamp=round - 1, subject=f"u{number}")
        stream.delete({"country": None, "amount": None}, stamp=round - 1, subject=f"u{number}")
    if round == 3 and number == 2:
        stream.erase(subject=["u1", "nobody"], request="ticket 1")


def work(where, folder: Path) -> None:
    """Everything that is not done yet; what is acknowledged and published is written down outside."""
    stream = opened(where, folder)
    log = folder / "published"
    known = log.read_text().splitlines() if log.exists() else []
    if known and not log.read_text().endswith("\n"):
        raise AssertionError("half a line was published")
    last = max((int(line.split(" ")[0]) for line in known), default=0)
    with log.open("a") as out:
        _publish(out, stream, last + 1)
        while stream.round <= ROUNDS:
            round = stream.round
            done = stream.position("feed") or (0, 0)
            for number in range(1, BATCHES + 1):
                if (round, number) > done:
                    with stream.receiving("feed", (round, number)):
                        batch(stream, round, number)
                    with (folder / "acknowledged").open("a") as file:
                        file.write(f"{round} {number}\n")
            stream.close_round()
            _publish(out, stream, round)
    stream.close()


def _publish(out, stream, first: int) -> None:
    lines = [f"{stored.round} {stored.statistic} {stored.exact.hex()}\n" for stored in stream.store.releases(first)]
    out.write("".join(lines))
    out.flush()


def killed_at(method: str, when: str, occurrence: int):
    """Patch a step so that the process dies before or after it, the n-th time."""
    seen = [0]

    def dying(step):
        def wrapped(*arguments, **options):
            seen[0] += 1
            if seen[0] == occurrence and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = step(*arguments, **options)
            if seen[0] == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    if method == "advance":
        Fence.advance = dying(Fence.advance)
    elif method == "replace":
        files.os = type("Os", (), {**vars(os), "replace": staticmethod(dying(os.replace))})
    else:
        for kind in (Store, *Store.__subclasses__()):
            if method in vars(kind):
                setattr(kind, method, dying(vars(kind)[method]))


def run(where, folder: Path, kill=None, work=work) -> int:
    """In a process of its own; how it ended (0, or minus the signal)."""
    child = os.fork()
    if child == 0:
        try:
            if kill is not None:
                killed_at(*kill)
            work(where, folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
