"""Noise over rounds: processes that hide the indicator of one interval, or other patterns of rounds."""

from .apart import Apart
from .blocks import Blocks, best_block
from .bridge import Bridge
from .by_size import BySize
from .crossed import Crossed
from .doubling import Doubling
from .flips import Flips
from .fresh import Fresh
from .mechanism import Mechanism, Oblivious
from .past import Past
from .patterns import Patterns
from .process import Process, Terms, difference
from .schauder import Schauder
from .spread import Spread
from .tails import Summand, Tail
from .threshold import GaussianThreshold, PaperThreshold, Threshold
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

__all__ = [
    "Apart",
    "Blocks",
    "Bridge",
    "BySize",
    "Crossed",
    "Doubling",
    "Flips",
    "Fresh",
    "GaussianThreshold",
    "Mechanism",
    "Oblivious",
    "PaperThreshold",
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
