"""Models: regression, classification, covariance and principal components, from noisy sums of products."""

from .classifier import Classifier
from .correlation import Correlation
from .covariance import Covariance
from .model import Model, load_model
from .moments import Moments
from .naive_bayes import CategoricalNB
from .nearest_mean import NearestMean
from .pca import PCA
from .ridge import Ridge

__all__ = [
    "PCA",
    "CategoricalNB",
    "Classifier",
    "Correlation",
    "Covariance",
    "Model",
    "Moments",
    "NearestMean",
    "Ridge",
    "load_model",
]
