"""Noise over rounds: processes that hide the indicator of one interval."""

from .bridge import Bridge
from .doubling import Doubling
from .mechanism import Mechanism, Oblivious
from .process import Process, Terms, difference
from .schauder import Schauder
from .tails import Summand, Tail
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

__all__ = [
    "Bridge",
    "Doubling",
    "Mechanism",
    "Oblivious",
    "Process",
    "Schauder",
    "Summand",
    "Tail",
    "Terms",
    "Tree",
    "Unbounded",
    "Windowed",
    "difference",
]
