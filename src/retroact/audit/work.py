"""Independent pieces of an audit, on any number of processes, which changes no result."""

from __future__ import annotations

import multiprocessing
import pickle
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from ..errors import RetroactError
from ..stream import HorizonWarning
from ..testing.seeds import Seeds
from .result import Result
from .target import Target

Progress = Callable[[int, int, str], None]
"""Called with the number of pieces done, the number of all, and the name of the last."""


@dataclass(frozen=True)
class Piece:
    """One test of a target; its randomness goes by its name."""

    name: str
    test: Callable[..., Result | list[Result]]
    target: Target
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, seed: int) -> list[Result]:
        with warnings.catch_warnings():
            # an audit fills every horizon on purpose
            warnings.simplefilter("ignore", HorizonWarning)
            found = self.test(self.target, Seeds(seed, self.name), **self.options)
        return found if isinstance(found, list) else [found]


def run_pieces(
    pieces: Sequence[Piece], seed: int, *, workers: int = 1, progress: Progress | None = None
) -> list[Result]:
    """The results in the order of the pieces."""
    done: dict[int, list[Result]] = {}

    def finished(place: int, results: list[Result]) -> None:
        done[place] = results
        if progress is not None:
            progress(len(done), len(pieces), pieces[place].name)

    away = {place: piece for place, piece in enumerate(pieces) if workers > 1 and _portable(piece)}
    if away:
        # a fresh interpreter for each worker: a forked one would share locks and threads with this one
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(workers, len(away)), mp_context=context) as pool:
            waiting = {pool.submit(piece.run, seed): place for place, piece in away.items()}
            try:
                for future in as_completed(waiting):
                    finished(waiting[future], future.result())
            except BrokenProcessPool:
                raise RetroactError("a process of the audit has ended before its test: try with one worker") from None
    for place, piece in enumerate(pieces):
        if place not in away:
            finished(place, piece.run(seed))
    return [result for place in range(len(pieces)) for result in done[place]]


def _portable(piece: Piece) -> bool:
    """Whether it can be sent to another process: not with local functions, nor with those of a C library."""
    try:
        pickle.dumps(piece)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return False
    return True
