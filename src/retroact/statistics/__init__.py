"""What is published: linear statistics, all of one shape."""

from .count import Count
from .group import GroupBy
from .linear import Contributions, Layout, Linear
from .linear_query import LinearQuery
from .mapped import Mapped
from .mean import Mean
from .noisy import Answer, Noisy
from .specification import statistic_from_spec
from .sum import Sum
from .variance import Variance

__all__ = [
    "Answer",
    "Contributions",
    "Count",
    "GroupBy",
    "Layout",
    "Linear",
    "LinearQuery",
    "Mapped",
    "Mean",
    "Noisy",
    "Sum",
    "Variance",
    "statistic_from_spec",
]
