"""Which process a statistic gets: by its budget, its horizon and its window, unless it names one."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from ..errors import InputError
from ..privacy import Kind
from .bridge import Bridge
from .doubling import Doubling
from .mechanism import Oblivious
from .process import Process
from .schauder import Schauder
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

Name = Literal["schauder", "bridge", "tree", "paper", "doubling"]
Choice = Name | type[Process] | Oblivious | None

NAMES: tuple[Name, ...] = ("schauder", "bridge", "tree", "paper", "doubling")
CLASSES: dict[type[Process], Name] = {Schauder: "schauder", Bridge: "bridge", Tree: "tree", Doubling: "doubling"}


def named(choice: Choice, place: str) -> Name | Oblivious | None:
    """``noise=`` as it was written (a name, a class, a law of the user's own), checked."""
    if choice is None or isinstance(choice, Oblivious) or choice in NAMES:
        return choice
    if isinstance(choice, type) and choice in CLASSES:
        return CLASSES[choice]
    if choice in (Windowed, Unbounded):
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
    """
    inner: type[Schauder] | type[Bridge] = Bridge if kind == "pure" else Schauder
    if choice in ("schauder", "bridge"):
        inner = Schauder if choice == "schauder" else Bridge
    elif choice is not None and (window is not None or (horizon is None and choice != "doubling")):
        what = "a window" if window is not None else "no horizon"
        raise InputError(f"noise {choice!r} does not go with {what}: use 'schauder' or 'bridge'", place=place)
    if window is not None and (horizon is None or window < horizon):
        return Windowed(window, inner=inner)
    if choice == "doubling":
        return Doubling()
    if horizon is None:
        return Unbounded(inner=inner)
    if choice == "tree":
        return Tree(horizon)
    if choice == "paper" or isinstance(choice, Oblivious):
        return Tree(horizon, accounting="paper")
    return inner(horizon)
