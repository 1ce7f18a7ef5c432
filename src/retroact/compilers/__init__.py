"""From private algorithms to retroactive ones: sampling with expiry, the gate, smoothing."""

from .gate import Gate
from .smooth import Smoothed, smooth
from .window_sample import WindowSample, sample_in

__all__ = ["Gate", "Smoothed", "WindowSample", "sample_in", "smooth"]
