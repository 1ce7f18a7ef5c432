"""Statements of the paper that can be measured."""

from .amnesia import Amnesia, amnesia, insertion_only_twin
from .distinct import Experiment, Row, price_of_retroactivity
from .streams import STREAMS, Lives

__all__ = [
    "STREAMS",
    "Amnesia",
    "Experiment",
    "Lives",
    "Row",
    "amnesia",
    "insertion_only_twin",
    "price_of_retroactivity",
]
