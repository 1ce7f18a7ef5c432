"""Rounds, erasure, budget: what turns statistics into a published sequence."""

from .core import HorizonWarning
from .durable import Durable
from .plan import Expected, Plan, plan, solve
from .release import Applied, Release, Round
from .specification import Specification
from .stream import Stream

__all__ = [
    "Applied",
    "Durable",
    "Expected",
    "HorizonWarning",
    "Plan",
    "Release",
    "Round",
    "Specification",
    "Stream",
    "plan",
    "solve",
]
