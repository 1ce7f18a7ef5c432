"""The secret key, names, and exact integer samples: all randomness of a stream."""

from .coins import Coins, RandomWords, integer_cells, name_bytes
from .gaussian import DiscreteGaussian
from .key import Key
from .laplace import DiscreteLaplace
from .law import Law
from .uniform import COIN_BITS, below, distinct, integer, permutation, tossed

__all__ = [
    "COIN_BITS",
    "Coins",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Key",
    "Law",
    "RandomWords",
    "below",
    "distinct",
    "integer",
    "integer_cells",
    "name_bytes",
    "permutation",
    "tossed",
]
