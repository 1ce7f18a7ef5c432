"""Rounds, erasure, budget: what turns statistics into a published sequence."""

from typing import TYPE_CHECKING

from ..late_names import late_names
from .core import HorizonWarning
from .plan import Expected, Plan, plan, solve
from .release import Applied, Release, Round
from .specification import Specification
from .stream import Stream

if TYPE_CHECKING:
    from .durable import Durable

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

__getattr__ = late_names(__name__, ("Durable",), ("durable",))
