"""Guarantees as values, their composition, and the split of a budget."""

from .amplification import paper_advanced, paper_amplified, paper_basic, paper_ranks, rank_reach
from .budget import Kind, Share, check_budget, split
from .composition import product_delta, product_epsilon
from .gate import gate_chernoff, gate_exact, gate_union
from .gaussian import FINENESS, delta_of, discreteness, epsilon_of, largest_mu
from .guarantee import Guarantee
from .measures import ApproximateDP, GaussianDP, Measure, MixedDP, PureDP, ZeroConcentratedDP, compose
from .pairs import Pair
from .window import Cost, Form, largest_epsilon0, window_cost

__all__ = [
    "FINENESS",
    "ApproximateDP",
    "Cost",
    "Form",
    "GaussianDP",
    "Guarantee",
    "Kind",
    "Measure",
    "MixedDP",
    "Pair",
    "PureDP",
    "Share",
    "ZeroConcentratedDP",
    "check_budget",
    "compose",
    "delta_of",
    "discreteness",
    "epsilon_of",
    "gate_chernoff",
    "gate_exact",
    "gate_union",
    "largest_epsilon0",
    "largest_mu",
    "paper_advanced",
    "paper_amplified",
    "paper_basic",
    "paper_ranks",
    "product_delta",
    "product_epsilon",
    "rank_reach",
    "split",
    "window_cost",
]
