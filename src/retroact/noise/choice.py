"""Which process a statistic gets: by its budget, its horizon and its window, unless it names one."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from ..errors import InputError
from ..privacy import Kind
from .bridge import Bridge
from .doubling import Doubling
from .fresh import Fresh
from .mechanism import Oblivious
from .process import Process
from .schauder import Schauder
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

Name = Literal["schauder", "bridge", "tree", "paper", "doubling"]
Choice = Name | type[Process] | Oblivious | None

# Windows up to this may do best with fresh noise, and horizons up to so many windows with a tree over all of it.
SHORT, LONG = 64, 16

NAMES: tuple[Name, ...] = ("schauder", "bridge", "tree", "paper", "doubling")
CLASSES: dict[type[Process], Name] = {Schauder: "schauder", Bridge: "bridge", Tree: "tree", Doubling: "doubling"}


def named(choice: Choice, place: str) -> Name | Oblivious | None:
    """``noise=`` as it was written (a name, a class, a law of the user's own), checked."""
    if choice is None or isinstance(choice, Oblivious) or choice in NAMES:
        return choice
    if isinstance(choice, type) and choice in CLASSES:
        return CLASSES[choice]
    if choice in (Windowed, Unbounded, Fresh):
        return None  # what a window or a missing horizon gives anyway
    raise InputError(f"expected one of {', '.join(NAMES)}, got {choice!r}", place=place)


def kind_of(choice: Name | Oblivious | None, delta: float) -> Kind:
    """Laplace noise for delta = 0 and for the paper's own form, Gaussian noise otherwise."""
    return "pure" if delta == 0 or choice == "paper" else "gaussian"


@lru_cache(maxsize=256)
def process_for(
    choice: Name | Oblivious | None, kind: Kind, horizon: int | None, window: int | None, place: str
) -> Process:
    """
    >>> process_for(None, "gaussian", 1023, None, ""), process_for(None, "pure", None, 64, "")
    (Schauder(horizon=1023), Windowed(64, inner=Bridge))
    >>> process_for(None, "gaussian", 1023, 7, "")
    Fresh(7)
    """
    inner: type[Schauder] | type[Bridge] = Bridge if kind == "pure" else Schauder
    if choice in ("schauder", "bridge"):
        inner = Schauder if choice == "schauder" else Bridge
    elif choice is not None and (window is not None or (horizon is None and choice != "doubling")):
        what = "a window" if window is not None else "no horizon"
        raise InputError(f"noise {choice!r} does not go with {what}: use 'schauder' or 'bridge'", place=place)
    if window is not None and (horizon is None or window < horizon):
        return _windowed(window, inner, horizon, kind, choice)
    if choice == "doubling":
        return Doubling()
    if horizon is None:
        return Unbounded(inner=inner)
    if choice == "tree":
        return Tree(horizon)
    if choice == "paper" or isinstance(choice, Oblivious):
        return Tree(horizon, accounting="paper")
    return inner(horizon)


def _windowed(
    window: int, inner: type[Schauder] | type[Bridge], horizon: int | None, kind: Kind, choice: Name | Oblivious | None
) -> Process:
    """Fresh noise for short windows, the tree over the whole horizon for long ones: whichever has the least error."""
    found: list[Process] = [Windowed(window, inner=inner)]
    if choice is None:
        found += [Fresh(window)] if window <= SHORT else []
        found += [inner(horizon)] if horizon is not None and horizon <= LONG * window else []

    def worst(process: Process) -> float:
        p, norm = (1, process.l1**2) if kind == "pure" else (2, process.l2_squared)
        # An odd stride walks through every phase; the noise of a window repeats itself after a block.
        rounds = 1 + np.arange(4096, dtype=np.int64) * 1021 % (process.horizon or 4 * window)
        return float(norm) * float(process.variances(rounds, p).max())

    return min(found, key=worst)
