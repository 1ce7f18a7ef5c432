"""One-shot private algorithms, which the compilers run on samples: total, each with a contract and with named coins."""

from .base import ADD_REMOVE, BOTTOM, SUBSTITUTION, Bottom, Contract, OneShot
from .block_cdf import BlockCDF, block_cdf, block_error, estimate
from .columns import columns_of
from .declared import Own, Unkeyed
from .exponential import choose, interior_point, probabilities, quantile_point
from .opendp import OpenDP
from .quantiles import (
    InteriorPoint,
    Median,
    Quantile,
    QuantilePoints,
    interior_records,
    quantile_points,
    quantile_records,
    rank_bound,
)

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
    "block_cdf",
    "block_error",
    "choose",
    "columns_of",
    "estimate",
    "interior_point",
    "interior_records",
    "probabilities",
    "quantile_point",
    "quantile_points",
    "quantile_records",
    "rank_bound",
]
