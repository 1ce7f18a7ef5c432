"""One-shot private algorithms, which the compilers run on samples: each answers for any records, has a contract, and
draws named coins. Their building blocks are in `exponential`, `quantiles` and `block_cdf`."""

from ..late_names import late_names
from .base import ADD_REMOVE, BOTTOM, SUBSTITUTION, Bottom, Contract, OneShot
from .block_cdf import BlockCDF
from .declared import Own, Unkeyed, columns_of
from .opendp import OpenDP
from .quantiles import InteriorPoint, Median, Quantile, QuantilePoints

__all__ = [
    "ADD_REMOVE",
    "BOTTOM",
    "SUBSTITUTION",
    "BlockCDF",
    "Bottom",
    "Contract",
    "InteriorPoint",
    "Median",
    "OneShot",
    "OpenDP",
    "Own",
    "Quantile",
    "QuantilePoints",
    "Unkeyed",
    "columns_of",
]

# `LinearModel` rests on the features of models, which are above this package.
__getattr__ = late_names(__name__, ("LinearModel",), (".compilers",))
