"""Algorithms that are private but not retroactive, since they remember the past. Streams refuse them."""

from .base import Stateful
from .median import Cumulative, MedianTracker, RankEstimate
from .tracker import Estimate, FlippancyTracker

__all__ = ["Cumulative", "Estimate", "FlippancyTracker", "MedianTracker", "RankEstimate", "Stateful"]
