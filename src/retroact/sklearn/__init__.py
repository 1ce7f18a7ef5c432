"""Estimators for scikit-learn. Nothing else in Retroact needs it, and `import retroact` does not load it.

>>> from retroact.sklearn import RetroactiveKMedian
>>> RetroactiveKMedian(n_clusters=3, radius=10)
RetroactiveKMedian(n_clusters=3, radius=10)
"""

try:
    from .base import Forgotten, WithdrawnError
    from .classifiers import RetroactiveCategoricalNB, RetroactiveClassifier, RetroactiveNearestMean
    from .clusters import ClusterWarning, RetroactiveKMeans, RetroactiveKMedian
    from .model_base import ModelWarning
    from .pca import RetroactivePCA
    from .public import PublicFourier, PublicPipeline, PublicScaler, make_pipeline
    from .ridge import RetroactiveRidge
except ImportError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ImportError(
        f"retroact.sklearn needs scikit-learn 1.6 or later (pip install 'retroact[sklearn]'): {error}",
        name=error.name,
        path=error.path,
    ) from error

__all__ = [
    "ClusterWarning",
    "Forgotten",
    "ModelWarning",
    "PublicFourier",
    "PublicPipeline",
    "PublicScaler",
    "RetroactiveCategoricalNB",
    "RetroactiveClassifier",
    "RetroactiveKMeans",
    "RetroactiveKMedian",
    "RetroactiveNearestMean",
    "RetroactivePCA",
    "RetroactiveRidge",
    "WithdrawnError",
    "make_pipeline",
]
