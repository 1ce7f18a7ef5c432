"""The processes that a statistic can be given. A stream takes the one with the smallest error.

**Privacy.** Each of them hides every change that one operation can make to a linear statistic: one number on one
interval of rounds (with a window, one no longer than the window). None relies on anything else: `OneSided`, which hides
changes that last, and `FewChanges`, which relies on a promise, are not among them. The choice reads the specification
and never the data, so it costs nothing. A test brute-forces all that can be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, get_args

from ..errors import InputError
from ..paper_forms import paper_form
from ..privacy import Kind
from .bridge import Bridge
from .crossfade import LONGEST, Crossfade
from .crossfade_epochs import CrossfadeEpochs
from .crossfade_window import WIDEST, CrossfadeWindow
from .faded import GAUSSIAN
from .fresh import Fresh
from .lapped import LAPLACE, Lapped
from .mechanism import Oblivious
from .process import Process
from .schauder import Schauder
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

Law = Literal["gaussian", "laplace"]
LAWS: tuple[Law, ...] = get_args(Law)
"""The laws in order of preference, where two are equally good or no statistic has an interval to judge them by."""

Name = Literal["crossfade", "schauder", "lapped", "bridge", "tree", "fresh", "paper", "doubling"]
Choice = Name | type[Process] | Oblivious | None
Candidates = Mapping[str, Process]

NAMES: tuple[Name, ...] = get_args(Name)
CLASSES: dict[type[Process], Name] = {
    Crossfade: "crossfade", Schauder: "schauder", Lapped: "lapped", Bridge: "bridge", Tree: "tree", Fresh: "fresh",
}  # fmt: skip


@lru_cache(maxsize=1024)
def _made(process: Callable[..., Process], *arguments: Any, **options: Any) -> Process:
    """One object for all streams: it caches what is known about its rounds."""
    return process(*arguments, **options)


def _fresh(releases: int | None, live: int | None) -> Process | None:
    reach = min((n for n in (releases, live) if n is not None), default=None)
    return None if reach is None else _made(Fresh, reach)


def _over(process: type[Process], releases: int | None, live: int | None) -> Process | None:
    return None if releases is None else _made(process, releases)


def _crossfade(releases: int | None, live: int | None) -> Process | None:
    return None if releases is None or releases > LONGEST else _made(Crossfade, releases)


def _windowed(inner: type[Process], releases: int | None, live: int | None) -> Process | None:
    return _made(Windowed, live, inner=inner) if _is_shorter(live, releases) else None


def _crossfade_window(releases: int | None, live: int | None) -> Process | None:
    if live is None or live > WIDEST or not _is_shorter(live, releases):
        return None
    return _made(CrossfadeWindow, live)


def _unbounded(inner: type[Process], releases: int | None, live: int | None) -> Process | None:
    return _made(Unbounded, inner=inner) if releases is live is None else None


def _crossfade_epochs(releases: int | None, live: int | None) -> Process | None:
    return _made(CrossfadeEpochs) if releases is live is None else None


def _is_shorter(live: int | None, releases: int | None) -> bool:
    return live is not None and (releases is None or live < releases)


# Each takes the number of releases and the window in releases, or None for either; it returns None where it does not
# apply. Of two equally good ones the first is taken. Names are stored with streams: their meaning never changes.
PROCESSES: dict[str, Callable[[int | None, int | None], Process | None]] = {
    "fresh": _fresh,
    "tree": partial(_over, Tree),
    "schauder": partial(_over, Schauder),
    "bridge": partial(_over, Bridge),
    "crossfade": _crossfade,
    "lapped": partial(_over, Lapped),
    "windowed crossfade": _crossfade_window,
    "windowed schauder": partial(_windowed, Schauder),
    "windowed bridge": partial(_windowed, Bridge),
    "unbounded crossfade": _crossfade_epochs,
    "unbounded schauder": partial(_unbounded, Schauder),
    "unbounded bridge": partial(_unbounded, Bridge),
}


def named(choice: Choice, place: str, own: Sequence[str] = ()) -> Any:
    """``noise=`` (a name, a class, or a law of the user's own), checked; ``own`` are further names."""
    if choice is None or isinstance(choice, Oblivious) or choice in (*NAMES, *own):
        return choice
    if isinstance(choice, type) and choice in CLASSES:
        return CLASSES[choice]
    if choice in (Windowed, Unbounded):
        return None  # what a window or a missing horizon gives anyway
    raise InputError(f"expected one of {', '.join((*NAMES, *own))}, got {choice!r}", place=place)


def candidates(
    choice: Name | Oblivious | None, releases: int | None, live: int | None, place: str, kind: Kind = "gaussian"
) -> Candidates:
    """All that apply, by name, or the one that ``noise=`` asks for. Where crossfade noise is not certified, Schauder
    noise takes its place.

    >>> list(candidates(None, 1023, None, ""))
    ['fresh', 'tree', 'schauder', 'bridge', 'crossfade']
    >>> list(candidates(None, None, 64, ""))
    ['fresh', 'windowed crossfade', 'windowed schauder', 'windowed bridge']
    >>> candidates("bridge", None, 64, "")["windowed bridge"]
    Windowed(64, inner=Bridge)
    """
    wanted: object = choice
    if choice in ("crossfade", "schauder", "bridge"):
        wanted = f"{'windowed ' if _is_shorter(live, releases) else 'unbounded ' if releases is None else ''}{choice}"
    elif choice == "fresh" and releases is live is None:
        raise InputError("noise 'fresh' needs a horizon or a window", place=place)
    elif choice not in (None, "fresh") and (live is not None or (releases is None and choice != "doubling")):
        what = "a window" if live is not None else "no horizon"
        raise InputError(f"noise {choice!r} does not go with {what}: use 'schauder' or 'bridge'", place=place)
    if choice == "doubling":
        return {"doubling": _made(paper_form("Doubling"))}
    if choice == "paper" or isinstance(choice, Oblivious):
        return {"paper": paper_form("PaperTree")(releases)}
    if choice == "crossfade" and kind == "pure":
        raise InputError(GAUSSIAN, place=place)  # also where Schauder noise would take its place
    found = {name: process for name, process in _all(releases, live) if wanted in (None, name)}
    if not found:
        return candidates("schauder", releases, live, place, kind)
    fit = {name: process for name, process in found.items() if process.serves(kind)}
    if not fit:
        raise InputError(GAUSSIAN if kind == "pure" else LAPLACE, place=place)
    return fit


def _all(releases: int | None, live: int | None) -> Iterator[tuple[str, Process]]:
    for name, make in PROCESSES.items():
        process = make(releases, live)
        if process is not None:
            yield name, process


def quietest(found: Candidates, kind: Kind, last: int) -> str:
    """The one with the smallest deviation in the worst release of 1 .. last: for noise without an interval."""
    fit = {name: process for name, process in found.items() if process.serves(kind)}
    seen = {name: process.outlook(1 if kind == "pure" else 2, last) for name, process in fit.items()}
    return min(seen, key=lambda name: math.inf if (one := seen[name]) is None else one.deviation)
