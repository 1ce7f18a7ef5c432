"""What a stream publishes."""

from typing import TYPE_CHECKING

from ..late_names import late_names
from .answer import Answer, Bins, Noisy, Published
from .count import Count
from .distinct import Distinct
from .grant import Demand, Grant, Layout, View
from .group import GroupBy
from .histogram import Histogram
from .linear import Contributions, Linear
from .linear_query import LinearQuery
from .mapped import Mapped
from .moments import Mean, Variance
from .quantile_answer import Ranks
from .quantiles import Quantiles
from .ratio import Ratio
from .restated import Restated
from .statistic import Example, Statistic
from .sum import Sum

if TYPE_CHECKING:
    from .clusters import Centres, Distances, KMeans, KMedian
    from .models import PCA, CategoricalNB, Classifier, Correlation, Covariance, NearestMean, Ridge, load_model

__all__ = [
    "PCA",
    "Answer",
    "Bins",
    "CategoricalNB",
    "Centres",
    "Classifier",
    "Contributions",
    "Correlation",
    "Count",
    "Covariance",
    "Demand",
    "Distances",
    "Distinct",
    "Example",
    "Grant",
    "GroupBy",
    "Histogram",
    "KMeans",
    "KMedian",
    "Layout",
    "Linear",
    "LinearQuery",
    "Mapped",
    "Mean",
    "NearestMean",
    "Noisy",
    "Published",
    "Quantiles",
    "Ranks",
    "Ratio",
    "Restated",
    "Ridge",
    "Statistic",
    "Sum",
    "Variance",
    "View",
    "load_model",
]

# they take as long as all the others together
_LATE = {"Centres", "Distances", "KMeans", "KMedian", "Ridge", "load_model"} | {
    "PCA",
    "CategoricalNB",
    "Classifier",
    "Correlation",
    "Covariance",
    "NearestMean",
}
__getattr__ = late_names(__name__, _LATE, ("clusters", "models"))
