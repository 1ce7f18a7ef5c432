"""Algorithms that are private and not retroactive: they keep books on the past. No stream takes them."""

from .base import Stateful
from .median import Cumulative, MedianTracker, RankEstimate
from .tracker import Estimate, FlippancyTracker

__all__ = ["Cumulative", "Estimate", "FlippancyTracker", "MedianTracker", "RankEstimate", "Stateful"]
