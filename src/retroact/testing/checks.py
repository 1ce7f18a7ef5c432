"""Black-box checks of any dynamic algorithm, and all checks of a statistic.

>>> import retroact as ra
>>> report = check_statistic(ra.Count(), {"age": ra.Integer(0, 120)}, horizons=(8,), pairs=5, draws=0)
>>> "twin" in report
True
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any

from ..coins import Key
from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update
from ..schema import Field, Schema
from ..statistics import Example, Statistic
from ..statistics import models as models  # its kinds are among the examples
from ..stream import HorizonWarning, Specification
from .algorithm import CheckFailedError, Make, Persistent, StreamAlgorithm, run
from .families import uniting_pairs
from .gathering import check_gathering, check_missing, may_lack
from .histories import Pair, Shape, crowded, history, values_of
from .law import check_law
from .noise_law import check_noise_law
from .passes import check_passes
from .published import Scene, check_published
from .residuals import check_residuals, enough_keys
from .running import check_oblivious
from .sampling import check_sample
from .sensitivity import check_sensitivity
from .twin import KEYS, check_no_op_deletions, check_order, check_replay, check_twin

# The most bytes that the round number itself adds to a state.
NUMBERS = 16


def check_key(make: Make, sequence: Sequence) -> None:
    """Noise comes from the key: two keys give different answers in at least half of the rounds."""
    one, other = (run(make, Key.for_testing(seed), sequence) for seed in KEYS)
    # Rounds without a release do not count.
    answers = [(a, b) for a, b in zip(one, other, strict=True) if a or b]
    if sum(a == b for a, b in answers) > len(answers) / 2:
        raise CheckFailedError("key: two keys gave the same answers in most rounds: no noise comes from the key")


def check_state(make: Make, pairs: Iterable[Pair]) -> None:
    """A state can be saved and restored between rounds, and histories that have united have the same state: nothing of
    the past is kept."""
    for pair in pairs:
        states = []
        for sequence in (pair.one, pair.other):
            algorithm = make(Key.for_testing(1))
            if not isinstance(algorithm, Persistent):
                return
            for updates in sequence[: pair.unite]:
                algorithm.close(updates)
            states.append(algorithm.state())
            resumed = algorithm.resume(states[-1])
            for round, updates in enumerate(sequence[pair.unite :], pair.unite + 1):
                if algorithm.close(updates) != resumed.close(updates):
                    raise CheckFailedError(f"state round trip: round {round} differs after restoring:\n  {sequence}")
        if states[0] != states[1]:
            raise CheckFailedError(
                f"state: histories united at round {pair.unite}, their states differ: something of the past is kept\n"
                f"  {pair.one}\n  {pair.other}"
            )


def check_bounded_state(make: Make, churn: Callable[[int], tuple[Update, ...]], *, rounds: int = 24) -> None:
    """Records that come and go leave nothing behind: the state does not grow with the number of rounds. A byte that is
    left behind in every round is found within 18 rounds."""
    algorithm = make(Key.for_testing(1))
    if not isinstance(algorithm, Persistent):
        return
    sizes = []
    for round in range(1, rounds + 1):
        algorithm.close(churn(round))
        sizes.append(len(algorithm.state()))
    if max(sizes) - min(sizes) > NUMBERS:
        raise CheckFailedError(f"bounded state: it grew from {min(sizes)} to {max(sizes)} bytes under churn")


def check_algorithm(make: Make, shape: Shape, *, pairs: int = 100, seed: int = 0) -> list[str]:
    """All black-box checks of a dynamic algorithm. Returns the names of those that ran."""
    random = Random(seed)
    histories = [history(shape, random) for _ in range(max(1, pairs // 5))]
    check_twin(make, uniting_pairs(shape, random, pairs))
    check_replay(make, histories)
    check_no_op_deletions(make, histories, shape, random)
    check_order(make, histories, random)
    check_key(make, crowded(histories[0], shape))
    check_state(make, uniting_pairs(shape, random, max(1, pairs // 5)))
    return ["twin", "replay", "no-op deletions", "order within a round", "key independence", "state round trip"]


def check_statistic(
    statistic: Statistic,
    schema: Mapping[str, Field] | Schema,
    *,
    epsilon: float = 1.0,
    deltas: tuple[float, ...] = (0.0, 1e-6),
    horizons: tuple[int | None, ...] = (8, None),
    pairs: int = 40,
    draws: int = 2000,
    seed: int = 0,
    updates: int = 3,
    late: bool = True,
) -> list[str]:
    """All checks of one statistic: with Laplace noise and, for each positive delta, Gaussian noise; with and without a
    horizon. Raises `CheckFailedError`. Returns the names of the checks that ran.

    ``pairs`` and ``draws`` set the effort; ``draws=0`` leaves out the statistical tests. ``updates``: the most in a
    round; increase it, and epsilon, for a statistic that publishes nothing of few records.
    """
    whole = schema if isinstance(schema, Schema) else Schema(schema)
    ran: list[str] = []
    for delta in deltas:
        for horizon in horizons:
            spec = Specification(
                whole,
                {"checked": statistic},
                epsilon=epsilon,
                delta=delta,
                horizon=horizon,
                late=late,
                law="gaussian" if delta else "laplace",
            )
            ran = _check_specification(spec, pairs=pairs, draws=draws, seed=seed, updates=updates)
    return ran


def _check_specification(spec: Specification, *, pairs: int, draws: int, seed: int, updates: int) -> list[str]:
    random = Random(seed)
    shape = Shape(values_of(spec.schema, random), rounds=8, updates=updates, late=spec.late)

    def make(key: Key, chunk: int | None = None) -> StreamAlgorithm:
        return StreamAlgorithm(spec, key, chunk=chunk)

    if not all(bound.keyed for bound in spec.bounds.values()):
        check_law(make, uniting_pairs(shape, random, max(1, pairs // 10)))
        return ["law", *_check_gathered(spec, random, seed, pairs)]
    ran = check_algorithm(make, shape, pairs=pairs, seed=seed)
    for _ in range(max(1, pairs // 8)):
        sequence = history(shape, random)
        answers = run(make, Key.for_testing(1), sequence)
        for chunk in (1, 2, 1000):
            if run(partial(make, chunk=chunk), Key.for_testing(1), sequence) != answers:
                raise CheckFailedError(f"batch boundaries, batches of {chunk}: answers changed:\n  {sequence}")
    check_passes(spec, shape, random, histories=max(1, pairs // 4))
    longer = spec.replace(horizon=spec.horizon and 100)
    check_bounded_state(lambda key: StreamAlgorithm(longer, key), _churn(shape), rounds=min(60, 20 + pairs))
    check_oblivious(spec, random, pairs=max(2, pairs // 4))
    ran += [
        "batch boundaries",
        "one pass",
        "bounded state",
        "oblivious noise",
        *_check_gathered(spec, random, seed, pairs),
    ]
    for name in spec.statistics:
        check_published(spec, name, random)
        check_sample(spec, name, random)
    ran.append("published numbers")
    if not draws:
        return ran
    check_noise_law(spec, draws=draws)
    for name, bound in spec.bounds.items():
        if bound.additive:
            scene = Scene(spec, name, random)
            check_residuals(scene, keys=enough_keys(scene, draws // 3))
    return [*ran, "noise law", "published law"]


def _check_gathered(spec: Specification, random: Random, seed: int, pairs: int) -> list[str]:
    if spec.schema != may_lack(spec.schema):  # otherwise `check_missing` searches the same pairs
        check_sensitivity(spec, random)
    check_missing(spec, random, pairs=max(10, pairs))
    check_gathering(spec, Random(seed))
    return ["sensitivity", "missing values", "gathering"]


def _churn(shape: Shape) -> Callable[[int], tuple[Update, ...]]:
    def churn(round: int) -> tuple[Update, ...]:
        value = shape.values[round % len(shape.values)]
        plain = (Add(value), Delete(value, round), Add(value, subject=f"s{round}"), Erase(f"s{round}"))
        return (*plain, Add(value, id=f"i{round}"), DeleteId(f"i{round}"))

    return churn


def every_example() -> dict[str, Example]:
    """The examples of every known kind of statistic, by name.

    >>> every_example()["count"].statistic
    Count()
    """
    return {example.name: example for kind in Statistic.kinds.values() for example in kind.examples()}


def check_example(
    example: Example, *, crossed: bool = False, lacking: bool = False, only: int | None = None, **effort: Any
) -> list[str]:
    """All checks of one example in two streams: pure with a horizon and Gaussian without, or the other way round
    (``crossed``), as far as its own options allow; ``lacking``: values may be missing; ``only=0`` or ``only=1``: in one
    of the two streams. Returns the names of the checks that ran."""
    schema = may_lack(Schema(example.schema)) if lacking else example.schema
    stream, ran = example.stream, list[str]()
    cases = [(0.0, None), (1e-6, 8)] if crossed else [(0.0, 8), (1e-6, None)]
    if "delta" in stream:
        cases = [(stream["delta"], horizon) for _, horizon in cases]
    if "horizon" in stream:
        cases = [(delta, stream["horizon"] and 8) for delta, _ in cases]
    for delta, horizon in dict.fromkeys(cases if only is None else cases[only : only + 1]):
        usual = {"deltas": (delta,), "horizons": (horizon,), "late": stream.get("late", True)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HorizonWarning)
            ran = check_statistic(example.statistic, schema, **{**usual, **effort, **example.checks})
    return ran


def check_examples(kind: type[Statistic], **effort: Any) -> dict[str, list[str]]:
    """All checks of all examples of a class: the names of those that ran, by example."""
    return {example.name: check_example(example, **effort) for example in kind.examples()}
