"""Checks for any statistic or dynamic algorithm, including your own."""

from .algorithm import Algorithm, CheckFailedError, Persistent, StreamAlgorithm, in_memory, run
from .check import Check, Finding, require
from .checks import (
    check_algorithm,
    check_bounded_state,
    check_example,
    check_examples,
    check_key,
    check_state,
    check_statistic,
    every_example,
)
from .families import uniting_pairs
from .game import AdaptGame, Adversary, GameView
from .gathering import check_gathering, check_missing, may_lack
from .histories import Pair, Shape, history, neighbouring_pairs, shuffled, values_of
from .judgement import Conformance
from .law import check_law
from .noise_law import check_noise_law, conformance
from .passes import check_passes
from .published import check_published
from .residuals import check_residuals
from .running import check_oblivious
from .sampling import check_sample
from .seeds import Seeds
from .sensitivity import check_sensitivity
from .twin import check_no_op_deletions, check_order, check_replay, check_twin

__all__ = [
    "AdaptGame",
    "Adversary",
    "Algorithm",
    "Check",
    "CheckFailedError",
    "Conformance",
    "Finding",
    "GameView",
    "Pair",
    "Persistent",
    "Seeds",
    "Shape",
    "StreamAlgorithm",
    "check_algorithm",
    "check_bounded_state",
    "check_example",
    "check_examples",
    "check_gathering",
    "check_key",
    "check_law",
    "check_missing",
    "check_no_op_deletions",
    "check_noise_law",
    "check_oblivious",
    "check_order",
    "check_passes",
    "check_published",
    "check_replay",
    "check_residuals",
    "check_sample",
    "check_sensitivity",
    "check_state",
    "check_statistic",
    "check_twin",
    "conformance",
    "every_example",
    "history",
    "in_memory",
    "may_lack",
    "neighbouring_pairs",
    "require",
    "run",
    "shuffled",
    "uniting_pairs",
    "values_of",
]
