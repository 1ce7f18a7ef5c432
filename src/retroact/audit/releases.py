"""What is published, number by number: exact totals with the noise of its names on, and nothing else.

The tests from inside look at totals and laws; this one ties them to what is really published. Histories are run through
the stream, and releases are taken by random access, the last one among them; each is compared with exact totals that
are worked out record by record from the definition of the statistic (`testing.definitions`) and with noise that is
drawn again, node by node. Then other records are handed in with as much other noise: the answer must not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

from ..coins import Key
from ..compilers import sample_in
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Update
from ..ledger.definition import Sequence as History
from ..privacy import ApproximateDP, GaussianDP, MixedDP, PureDP, epsilon_of
from ..statistics.bound import Bound
from ..stream import Round, Specification
from ..testing import StreamAlgorithm, check_published, check_sample, history, in_memory
from ..testing.altered import publishing
from ..testing.histories import crowded
from ..testing.running import differs, published_noise
from ..testing.seeds import Seeds
from .nodes import idle_inside
from .result import Control, Result, decimal
from .target import Target

COPIES = 300
# Releases that are taken by random access.
LOOKS = 6


class Careless(StreamAlgorithm):
    """A stream that counts every record of a round twice, and takes it for the least one."""

    choose: Callable[..., Update] = staticmethod(min)

    def release(self, updates: Sequence[Update]) -> Round:
        added = [update for update in updates if isinstance(update, Add)]
        if not added:
            return super().release(updates)
        chosen = type(self).choose(added, key=repr)
        assert isinstance(chosen, Add)
        same = [replace(update, value=chosen.value) for update in added]
        return super().release([*(update for update in updates if not isinstance(update, Add)), *same, *same])


class Generous(Careless):
    """The same with the largest one."""

    choose = staticmethod(max)


def releases(target: Target, seeds: Seeds, *, histories: int = 12) -> list[Result]:
    """One result on what is published, and one on the sum of what the statistics spend.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in releases(Target.stream(spec), Seeds(1), histories=2)]
    [('passed', True), ('passed', True)]
    """
    if target.specification is None:
        return [idle_inside("releases", "an algorithm that is not a stream does not say what its noise is")]
    spec = in_memory(target.specification)
    random = seeds.random()
    nothing: History = ((),) * target.shape.rounds
    drawn = [history(target.shape, random) for _ in range(histories)]
    # Many copies of every value, so that whatever has a threshold shows something.
    drawn.append(crowded(nothing, target.shape, COPIES))

    def make(spec: Specification, key: Key) -> StreamAlgorithm:
        own = target.make(key)
        return own if isinstance(own, StreamAlgorithm) else StreamAlgorithm(spec, key)

    problem = _first_difference(spec, nothing, drawn, seeds.key(), make)
    compared, wrong = _by_access(spec, seeds, looks=LOOKS + histories // 4)
    told = (problem or wrong or "").splitlines()
    planted = [_first_difference(spec, nothing, drawn[-1:], seeds.key(), bad) for bad in (Careless, Generous)]
    planted.append(_by_access(_thinned(spec), seeds, looks=1)[1])
    missed = [bug for bug in planted[2:] if not bug and any(map(_noisy, spec.bounds.values()))]
    published = Result(
        part="privacy",
        test="releases",
        question="Is what a running stream publishes exactly its totals with the noise that is accounted for?",
        tried=f"{len(drawn)} histories of {target.shape.rounds} rounds each, run through the stream under one key, and "
        f"{compared:,} numbers by random access under others, up to the last round; each was compared with exact "
        "totals, added up record by record from the definition of the statistic, and noise drawn again node by node. "
        "With other records and as much other noise, so that the noisy totals were the same, the answers had to be the "
        "same.",
        runs=len(drawn) * target.shape.rounds,
        verdict="violation" if told else "passed",
        found=f"A release is not what it should be: {told[0]}."
        if told
        else "Every number is what it should be, and the noise does not depend on the data.",
        detectable="Any difference in any number of these histories and releases.",
        control=Control(
            bug="the same stream, which counts every record of a round twice and takes it for another one; statistics "
            "that publish nine tenths of their noise",
            caught=any(planted[:2]) and not missed,
            how="; ".join(bug.splitlines()[0] for bug in planted if bug) or "no difference was seen",
        ),
        counterexample=told,
    )
    return [published, _budget(spec)]


def _first_difference(
    spec: Specification,
    nothing: History,
    drawn: Sequence[History],
    key: Key,
    make: Callable[[Specification, Key], StreamAlgorithm] = StreamAlgorithm,
) -> str | None:
    """In whole histories."""
    try:
        expected = published_noise(spec, nothing, key=key)
        for sequence in drawn:
            problem = differs(expected, published_noise(spec, sequence, make, key))
            if problem:
                return f"{problem}\n{sequence}"
    except VerificationError as error:
        return str(error)
    return None


def _by_access(spec: Specification, seeds: Seeds, *, looks: int) -> tuple[int, str | None]:
    """In releases by random access: how many numbers were compared, and what was wrong."""
    compared = 0
    try:
        for name in spec.statistics:
            compared += check_published(spec, name, seeds.branch("access", name).random(), looks=looks)
            if spec.bounds[name].keyed:
                check_sample(spec, name, seeds.branch("samples", name).random())
    except VerificationError as error:
        return compared, str(error)
    return compared, None


def _noisy(bound: Bound) -> bool:
    return sample_in(bound) is None


def _thinned(spec: Specification) -> Specification:
    """The same with statistics that publish nine tenths of their noise."""
    thin = copy(spec)
    thin.bounds = {
        name: publishing(own, lambda drawn, _: drawn * 9 // 10) if _noisy(own) else own
        for name, own in spec.bounds.items()
    }
    return thin


def _budget(spec: Specification) -> Result:
    """The parts of the budget, put together again without the code that divided it."""
    spent = _spent(spec, 1)
    planted = _spent(spec, 2)
    claim = f"ε = {decimal(float(spec.epsilon))}, δ = {decimal(float(spec.delta))}"
    return Result(
        part="privacy",
        test="budget",
        question="Do the parts of the budget that the statistics spend add up to no more than is claimed?",
        tried="The exact part of each statistic, composed anew: epsilons and deltas are added, and so are squares of "
        "μ; the Gaussian part is converted at what is left of δ.",
        runs=len(spec.statistics),
        verdict="passed" if spent <= float(spec.epsilon) * (1 + 1e-9) else "violation",
        found=f"Together they spend ε = {decimal(spent)}; claimed is {claim}.",
        detectable="Any excess above one part in a billion.",
        control=Control(
            bug="parts that are twice as large",
            caught=planted > float(spec.epsilon) * (1 + 1e-9),
            how=f"together they would spend ε = {decimal(planted)}",
        ),
        measured={"epsilon spent": decimal(spent), "epsilon claimed": decimal(float(spec.epsilon))},
    )


def _spent(spec: Specification, times: int) -> float:
    """The epsilon of all parts together, each taken so many times, at the claimed delta."""
    pure = square = failure = 0.0
    for name in spec.statistics:
        match spec.measure_of(name):
            case PureDP(value):
                pure += value
            case ApproximateDP(value, failed):
                pure, failure = pure + value, failure + failed
            case GaussianDP(mu):
                square += mu**2
            case MixedDP(value, mu, failed):
                pure, square, failure = pure + value, square + mu**2, failure + failed
            case other:
                raise InputError(f"expected a pure, approximate or Gaussian part, got {other}", place=name)
    left = float(spec.delta) - failure
    if left < -1e-9 * float(spec.delta):
        return math.inf
    return times * pure + (epsilon_of(times * math.sqrt(square), left) if square else 0.0)
