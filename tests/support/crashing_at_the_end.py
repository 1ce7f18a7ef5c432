"""A stream after its last round, under a workload in a process that is killed at a chosen step."""

from __future__ import annotations

from pathlib import Path

import retroact as ra
from support import crashing

ROUNDS = 2
NEXT = ra.Key.for_testing(12)
METHODS = (
    *("receive", "prepare", "amend", "scrub", "applied_without_round", "write_notes", "purge", "purged"),
    *("advance", "replace", "seal", "initialise"),
)
"""Every step; `seal` and `initialise` are of the store of the successor, `replace` lies within the fence."""


def opened(where, folder: Path, **more):
    return ra.Stream.open(
        where,
        crashing.SCHEMA,
        crashing.STATISTICS,
        epsilon=1.0,
        delta=1e-6,
        horizon=ROUNDS,
        key=crashing.KEY,
        fence=folder / "the.fence",
        **more,
    )


def follower(place, folder: Path):
    return ra.Stream.open(place, key=NEXT, fence=folder / "next.fence")


def after(where) -> str:
    return f"{where}_next"


def close_all(where, folder: Path) -> None:
    """All promised rounds, in peace."""
    with opened(where, folder) as stream:
        for round in range(1, ROUNDS + 1):
            for number in range(1, crashing.BATCHES + 1):
                crashing.batch(stream, round, number)
            stream.close_round()


def work(where, folder: Path) -> None:
    """Everything that is not done yet: records that wait, erasures and deletions by id, and a successor."""
    with opened(where, folder) as stream:
        if stream.store.note("followed") is None:
            done = stream.position("feed") or (0, 0)
            for number in (1, 2, 3):
                if (ROUNDS + 1, number) > done:
                    with stream.receiving("feed", (ROUNDS + 1, number), delivered=[number]):
                        take(stream, number)
            stream.erase(subject="u2", request="after 2")
            waiting = stream._core.open.updates.of_subjects(["u2"])
            assert waiting == [0]
            stream.successor(
                epsilon=1.0, delta=1e-6, horizon=3, where=after(where), key=NEXT, fence=folder / "next.fence"
            ).close()
        stream.erase(subject="u3", request="after 3")


def take(stream, number: int) -> None:
    names = [f"u{k}" for k in range(9)]
    if number == 2:
        # waits at first, and is gone with the erasure that comes with it
        stream.erase(subject="u1", request="after 1")
        stream.delete(id=["o-2-1-3", "o-1-1-3", "nothing"])
    stream.add(
        {"country": ["DE"] * 9, "amount": [number] * 9}, id=[f"o-3-{number}-{k}" for k in range(9)], subject=names
    )
    stream.delete({"country": "DE", "amount": 7}, stamp=1, subject="u1")
    if number == 3:
        stream.delete(id="o-3-1-4")


def found(where, folder: Path):
    """What there is in the end, in both stores."""

    parts = []
    for stream in (opened(where, folder), follower(after(where), folder)):
        with stream:
            assert stream.verify().problems == []
            store = stream.store
            requests = sorted((each.state, each.round, bool(each.outcome)) for each in store.requests())
            named = [request for name in ("1", "2", "3") if (request := named_request(stream, f"after {name}"))]
            parts += [
                stream.round,
                store.blocks(),
                store.inbox(),
                store.sources(),
                requests,
                named,
                [each.exact for each in store.releases()],
                stream._vault.guard.fence.read().round,
                stream.over,
                store.residue(),
            ]
    return parts


def named_request(stream, name: str):
    known = stream.request(stream.hashes.request(name, [], []).name)
    return known and (name, known.state, known.round)
