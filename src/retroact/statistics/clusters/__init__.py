"""k-means and k-median: regions, what a release makes of their counters, and what it publishes."""

from .centres import Centres
from .distances import Distances
from .kmeans import KMeans, KMedian

__all__ = ["Centres", "Distances", "KMeans", "KMedian"]
