"""Statements of the paper that can be measured."""

from .amnesia import Amnesia, amnesia, insertion_only_twin
from .distinct import Experiment, Row, price_of_retroactivity
from .smoothing import BlockRow, audit_blocks
from .streams import STREAMS, Lives

__all__ = [
    "STREAMS",
    "Amnesia",
    "BlockRow",
    "Experiment",
    "Lives",
    "Row",
    "amnesia",
    "audit_blocks",
    "insertion_only_twin",
    "price_of_retroactivity",
]
