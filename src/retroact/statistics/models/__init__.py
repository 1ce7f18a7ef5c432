"""Models: regression, classification, covariance and principal components, from noisy sums of products."""

from .model import Model, load_model
from .moments import Moments
from .ridge import Ridge

__all__ = ["Model", "Moments", "Ridge", "load_model"]
