"""Guarantees as values, their composition, and the split of a budget."""

from .budget import Kind, Share, check_budget, split
from .gaussian import FINENESS, delta_of, discreteness, epsilon_of, largest_mu
from .guarantee import Guarantee
from .measures import ApproximateDP, GaussianDP, Measure, MixedDP, PureDP, ZeroConcentratedDP, compose

__all__ = [
    "FINENESS",
    "ApproximateDP",
    "GaussianDP",
    "Guarantee",
    "Kind",
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
    "largest_mu",
    "split",
]
