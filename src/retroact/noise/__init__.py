"""Noise over rounds: processes that hide the indicator of one interval, or other patterns of rounds."""

from .any_rounds import AnyRounds
from .bridge import Bridge
from .by_size import BySize
from .crossfade import Crossfade
from .crossfade_epochs import CrossfadeEpochs
from .crossfade_window import CrossfadeWindow
from .few_changes import FewChanges
from .fresh import Fresh
from .independent_copy import IndependentCopy
from .lapped import Lapped
from .mechanism import Mechanism, Oblivious
from .one_sided import OneSided
from .process import Process, Terms, difference
from .rectangle import Rectangle
from .schauder import Schauder
from .spread import Spread
from .stamped_blocks import StampedBlocks, best_block
from .tails import Summand, Tail
from .threshold import GaussianThreshold, Threshold
from .tree import Tree
from .unbounded import Unbounded
from .windowed import Windowed

__all__ = [
    "AnyRounds",
    "Bridge",
    "BySize",
    "Crossfade",
    "CrossfadeEpochs",
    "CrossfadeWindow",
    "FewChanges",
    "Fresh",
    "GaussianThreshold",
    "IndependentCopy",
    "Lapped",
    "Mechanism",
    "Oblivious",
    "OneSided",
    "Process",
    "Rectangle",
    "Schauder",
    "Spread",
    "StampedBlocks",
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
