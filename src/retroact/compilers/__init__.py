"""From private algorithms to retroactive ones: sampling with expiry, the gate, smoothing."""

from .gate import Gate
from .linear_model import LinearModel
from .sample_bound import SampleBound, sample_in
from .smooth import Smoothed, smooth
from .window_sample import WindowSample

__all__ = ["Gate", "LinearModel", "SampleBound", "Smoothed", "WindowSample", "sample_in", "smooth"]
