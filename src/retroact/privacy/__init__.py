"""Guarantees as values, their composition, and the split of a budget."""

from typing import TYPE_CHECKING

from ..late_names import late_names
from .budget import Kind, Share, check_budget, split
from .composition import product_epsilon
from .dominating_pair import LawPair
from .gaussian import FINENESS, delta_of, discreteness, epsilon_of, largest_mu
from .guarantee import Guarantee
from .measures import ApproximateDP, GaussianDP, Measure, MixedDP, PureDP, ZeroConcentratedDP, compose

if TYPE_CHECKING:
    from .persistent_samples import rank_reach
    from .sampled_cost import Cost, Form, largest_epsilon0, window_cost

__all__ = [
    "FINENESS",
    "ApproximateDP",
    "Cost",
    "Form",
    "GaussianDP",
    "Guarantee",
    "Kind",
    "LawPair",
    "Measure",
    "MixedDP",
    "PureDP",
    "Share",
    "ZeroConcentratedDP",
    "check_budget",
    "compose",
    "delta_of",
    "discreteness",
    "epsilon_of",
    "largest_epsilon0",
    "largest_mu",
    "product_epsilon",
    "rank_reach",
    "split",
    "window_cost",
]

# what samples cost, for the compilers alone
_SAMPLED = ("Cost", "Form", "largest_epsilon0", "rank_reach", "window_cost")
__getattr__ = late_names(__name__, _SAMPLED, ("sampled_cost", "persistent_samples"))
