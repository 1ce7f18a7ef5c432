"""Retroact: publish statistics again and again from a stream of additions and deletions.

Private: the whole published sequence is (epsilon, delta)-differentially private for one added or deleted record.
Retroactive: once a record is deleted, all later answers are distributed exactly as if it had never been there.
"""

from typing import TYPE_CHECKING

from .late_names import late_names

if TYPE_CHECKING:
    from . import audit, feeds, noise, oneshot
    from .coins import Key
    from .compilers import Gate, WindowSample, smooth
    from .errors import ExhaustedError, InputError, KeyReusedError, RetroactError, VerificationError
    from .privacy import ApproximateDP, GaussianDP, Guarantee, PureDP, ZeroConcentratedDP
    from .schema import Boolean, Bytes, Category, Date, Integer, Number, Schema, Text, Timestamp, Vector
    from .statistics import (
        PCA,
        CategoricalNB,
        Classifier,
        Correlation,
        Count,
        Covariance,
        Distances,
        Distinct,
        GroupBy,
        Histogram,
        KMeans,
        KMedian,
        Linear,
        LinearQuery,
        Mean,
        NearestMean,
        Quantiles,
        Ratio,
        Restated,
        Ridge,
        Sum,
        Variance,
        load_model,
    )
    from .stream import Durable, HorizonWarning, Plan, Release, Round, Specification, Stream, plan, solve

__version__ = "0.4.0"

__all__ = [
    "PCA",
    "ApproximateDP",
    "Boolean",
    "Bytes",
    "CategoricalNB",
    "Category",
    "Classifier",
    "Correlation",
    "Count",
    "Covariance",
    "Date",
    "Distances",
    "Distinct",
    "Durable",
    "ExhaustedError",
    "Gate",
    "GaussianDP",
    "GroupBy",
    "Guarantee",
    "Histogram",
    "HorizonWarning",
    "InputError",
    "Integer",
    "KMeans",
    "KMedian",
    "Key",
    "KeyReusedError",
    "Linear",
    "LinearQuery",
    "Mean",
    "NearestMean",
    "Number",
    "Plan",
    "PureDP",
    "Quantiles",
    "Ratio",
    "Release",
    "Restated",
    "RetroactError",
    "Ridge",
    "Round",
    "Schema",
    "Specification",
    "Stream",
    "Sum",
    "Text",
    "Timestamp",
    "Variance",
    "Vector",
    "VerificationError",
    "WindowSample",
    "ZeroConcentratedDP",
    "audit",
    "feeds",
    "load_model",
    "noise",
    "oneshot",
    "plan",
    "smooth",
    "solve",
]

# so that `retroact --help` does not wait for numpy; in this order, because few need the last, which take long to load
_MODULES = ("errors", "coins", "privacy", "schema", "statistics", "stream", "compilers")
_PACKAGES = ("audit", "feeds", "noise", "oneshot")
__getattr__ = late_names(__name__, __all__, _MODULES + _PACKAGES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
