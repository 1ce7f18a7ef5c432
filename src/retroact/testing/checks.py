"""Generic checks, for any dynamic algorithm and for any statistic of your own.

>>> import retroact as ra
>>> report = check_statistic(ra.Count(), {"age": ra.Integer(0, 120)}, pairs=5, draws=0)
>>> "twin" in report
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random

from ..coins import Key
from ..compilers import sample_in
from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update
from ..schema import Field, Schema
from ..statistics import Statistic
from ..stream import Specification
from .algorithm import CheckFailedError, Make, Persistent, StreamAlgorithm, run
from .families import uniting_pairs, without_effect
from .gathering import check_gathering
from .histories import Pair, Shape, crowded, history, shuffled, values_of
from .law import check_law
from .missing import check_missing
from .noise_law import check_noise_law
from .published import Scene, check_published
from .residuals import check_residuals, enough_keys
from .running import check_oblivious
from .sampling import check_sample
from .sensitivity import check_sensitivity

KEYS = (1, 2)


def check_twin(make: Make, pairs: Iterable[Pair], *, keys: Iterable[int] = KEYS) -> int:
    """Two histories that unite give, under the same key, equal bytes from that round on. Returns how many compared."""
    compared = 0
    for pair in pairs:
        for seed in keys:
            one, other = (run(make, Key.for_testing(seed), s) for s in (pair.one, pair.other))
            for round in range(pair.unite, len(one) + 1):
                compared += 1
                if one[round - 1] != other[round - 1]:
                    raise CheckFailedError(
                        f"twin check: histories unite at round {pair.unite}, answers differ in round {round}:\n"
                        f"  {pair.one}\n  {one[round - 1]!r}\n  {pair.other}\n  {other[round - 1]!r}"
                    )
    return compared


def check_replay(make: Make, sequences: Iterable[Sequence]) -> None:
    """The same history under the same key, twice."""
    for sequence in sequences:
        if run(make, Key.for_testing(1), sequence) != run(make, Key.for_testing(1), sequence):
            raise CheckFailedError(f"replay: the same history gave other answers:\n  {sequence}")


def check_no_op_deletions(make: Make, sequences: Iterable[Sequence], shape: Shape, random: Random) -> None:
    """Deletions that name nothing change no answer, not in their own round and not later."""
    for sequence in sequences:
        other = without_effect(sequence, shape, random)
        if run(make, Key.for_testing(1), sequence) != run(make, Key.for_testing(1), other):
            raise CheckFailedError(f"no-op deletions: answers changed:\n  {sequence}\n  {other}")


def check_order(make: Make, sequences: Iterable[Sequence], random: Random) -> None:
    """The arrival order within a round does not matter (but for events on one id)."""
    for sequence in sequences:
        other = tuple(shuffled(updates, random) for updates in sequence)
        if run(make, Key.for_testing(1), sequence) != run(make, Key.for_testing(1), other):
            raise CheckFailedError(f"order within a round: answers changed:\n  {sequence}\n  {other}")


def check_key(make: Make, sequence: Sequence) -> None:
    """Other keys give other noise, in nearly every round."""
    one, other = run(make, Key.for_testing(1), sequence), run(make, Key.for_testing(2), sequence)
    # A round without any release says nothing.
    answers = [(a, b) for a, b in zip(one, other, strict=True) if a or b]
    if sum(a == b for a, b in answers) > len(answers) / 2:
        raise CheckFailedError("key: two keys gave the same answers in most rounds: there is no noise of the key's own")


def check_state(make: Make, pairs: Iterable[Pair]) -> None:
    """State goes out and in again without a difference, and is the same for histories that have united."""
    for pair in pairs:
        states = []
        for sequence in (pair.one, pair.other):
            algorithm = make(Key.for_testing(1))
            if not isinstance(algorithm, Persistent):
                return
            head, tail = sequence[: pair.unite], sequence[pair.unite :]
            for updates in head:
                algorithm.close(updates)
            states.append(algorithm.state())
            resumed = algorithm.resume(states[-1])
            for round, updates in enumerate(tail, pair.unite + 1):
                if algorithm.close(updates) != resumed.close(updates):
                    raise CheckFailedError(f"state round trip: round {round} differs after it:\n  {sequence}")
        if states[0] != states[1]:
            raise CheckFailedError(
                f"state: histories united at round {pair.unite}, their states differ: something of the past is kept\n"
                f"  {pair.one}\n  {pair.other}"
            )


def check_bounded_state(make: Make, churn: Callable[[int], tuple[Update, ...]], *, rounds: int = 60) -> None:
    """Records that come and go leave nothing: the state does not grow with the number of rounds."""
    algorithm = make(Key.for_testing(1))
    if not isinstance(algorithm, Persistent):
        return
    sizes = []
    for round in range(1, rounds + 1):
        algorithm.close(churn(round))
        sizes.append(len(algorithm.state()))
    # The round number itself may take a few bytes more.
    if max(sizes) - min(sizes) > 16:
        raise CheckFailedError(f"bounded state: it grew from {min(sizes)} to {max(sizes)} bytes under churn")


def check_algorithm(make: Make, shape: Shape, *, pairs: int = 100, seed: int = 0) -> list[str]:
    """Everything that can be checked from outside. Returns the names of the checks that ran."""
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
    """All checks on one statistic: with Laplace noise and, where there is a delta, with Gaussian noise, with and
    without a horizon. Raises `CheckFailedError`.

    ``updates``: at most so many in a round; take more, and a larger epsilon, for what shows nothing of few records.
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
    values = values_of(spec.schema, random)
    shape = Shape(values, rounds=8, updates=updates, late=spec.late)

    def make(key: Key) -> StreamAlgorithm:
        return StreamAlgorithm(spec, key)

    if not all(bound.keyed for bound in spec.bounds.values()):
        check_law(make, uniting_pairs(shape, random, max(1, pairs // 10)))
        check_sensitivity(spec, random)
        check_missing(spec, random)
        check_gathering(spec, Random(seed))
        return ["law", "sensitivity", "missing values", "gathering"]
    ran = check_algorithm(make, shape, pairs=pairs, seed=seed)
    for chunk in (1, 2, 1000):
        for sequence in (history(shape, random) for _ in range(5)):
            key = Key.for_testing(1)
            batched = StreamAlgorithm(spec, key, chunk=chunk)
            if [batched.close(updates) for updates in sequence] != run(make, key, sequence):
                raise CheckFailedError(f"batch boundaries: batches of {chunk} gave other answers:\n  {sequence}")
    longer = spec.replace(horizon=spec.horizon and 100)
    check_bounded_state(lambda key: StreamAlgorithm(longer, key), _churn(shape))
    check_sensitivity(spec, random)
    check_oblivious(spec, random)
    check_missing(spec, random)
    check_gathering(spec, Random(seed))
    for name in spec.statistics:
        check_published(spec, name, random)
        check_sample(spec, name, random)
    ran += [
        "batch boundaries",
        "bounded state",
        "sensitivity",
        "oblivious noise",
        "missing values",
        "gathering",
        "published numbers",
    ]
    if not draws:
        return ran
    check_noise_law(spec, draws=draws)
    for name, bound in spec.bounds.items():
        if sample_in(bound) is None:
            scene = Scene(spec, name, random)
            check_residuals(scene, keys=enough_keys(scene, draws // 3))
    return [*ran, "noise law", "published law"]


def _churn(shape: Shape) -> Callable[[int], tuple[Update, ...]]:
    def churn(round: int) -> tuple[Update, ...]:
        value = shape.values[round % len(shape.values)]
        plain = (Add(value), Delete(value, round), Add(value, subject=f"s{round}"), Erase(f"s{round}"))
        return (*plain, Add(value, id=f"i{round}"), DeleteId(f"i{round}"))

    return churn
