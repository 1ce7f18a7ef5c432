"""Tries to break every promise: retroactivity, privacy, reconstruction. Finds bugs; never proves their absence."""

from ..testing.seeds import Seeds
from .report import Report
from .result import Control, Result
from .run import audit_algorithm, audit_statistic, audit_stream, audit_target
from .target import Approximate, Target

__all__ = [
    "Approximate",
    "Control",
    "Report",
    "Result",
    "Seeds",
    "Target",
    "audit_algorithm",
    "audit_statistic",
    "audit_stream",
    "audit_target",
]
