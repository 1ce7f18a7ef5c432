"""Tries to break every promise: retroactivity, privacy, reconstruction. Finds bugs; never proves their absence."""

from .result import Control, Result
from .seeds import Seeds
from .target import Approximate, Target

__all__ = ["Approximate", "Control", "Result", "Seeds", "Target"]
