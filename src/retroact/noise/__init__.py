"""Noise over rounds: processes that hide the indicator of one interval, or other patterns of rounds."""

from .any_rounds import Patterns
from .bridge import Bridge
from .by_size import BySize
from .few_changes import Flips
from .fresh import Fresh
from .independent_copy import Apart
from .mechanism import Mechanism, Oblivious
from .one_sided import Past
from .process import Process, Terms, difference
from .rectangle import Crossed
from .schauder import Schauder
from .spread import Spread
from .stamped_blocks import Blocks, best_block
from .tails import Summand, Tail
from .threshold import GaussianThreshold, Threshold
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

__all__ = [
    "Apart",
    "Blocks",
    "Bridge",
    "BySize",
    "Crossed",
    "Flips",
    "Fresh",
    "GaussianThreshold",
    "Mechanism",
    "Oblivious",
    "Past",
    "Patterns",
    "Process",
    "Schauder",
    "Spread",
    "Summand",
    "Tail",
    "Terms",
    "Threshold",
    "Tree",
    "Unbounded",
    "Windowed",
    "best_block",
    "difference",
]
