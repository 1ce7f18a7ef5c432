"""k-means and k-median: counters over regions, and the centres that a release finds with them."""

from .centres import Centres
from .distances import Distances
from .kmeans import KMeans, KMedian

__all__ = ["Centres", "Distances", "KMeans", "KMedian"]
