"""Does noise have the law that its claim asks for: as the stream draws it, and as it publishes it?

`conformance` draws many independent copies of the noise with the stream's own code, in early and late releases;
`published_law` takes what is published under many keys, less exact totals. Both are compared with the law that budget,
norms and declared sensitivity ask for, by tests whose error is bounded without a limit theorem (`testing.judgement`).
"""

from __future__ import annotations

from ..compilers import sample_in
from ..errors import VerificationError
from ..noise import Oblivious
from ..stream import Specification
from ..testing import in_memory
from ..testing.drawn_noise import Noise, check_draws, check_lattices, drawn, looked_at, noises, pairs_of
from ..testing.noise_law import NoiseLaw
from ..testing.published import Scene
from ..testing.ranges import ranges_in
from ..testing.residuals import enough_keys, published_noise
from ..testing.seeds import Seeds
from ..testing.shared_names import SharedNames, names_of
from .result import Result, idle_inside, report
from .target import Target

# What is drawn --------------------------------------------------------------------------------------------------------


def conformance(target: Target, seeds: Seeds, *, draws: int = 4000) -> list[Result]:
    """One result for each statistic: all of its noise, as the stream draws it, in some releases. And one for all
    statistics together: no two share their noise.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in conformance(Target.stream(spec), Seeds(1), draws=500)]
    [('passed', True), ('passed', True)]
    """
    spec = target.specification
    if spec is None:
        return [idle_inside("noise")]
    last = spec.horizon or 7
    rounds = max(1, min(3, last - 1)), min(7, last)
    results = [_drawn_law(spec, name, seeds.branch(name), draws, rounds) for name in spec.statistics]
    own = seeds.branch("shared names")
    every = [named for name in spec.statistics for named in names_of(spec, name, own.coins())]
    return [*results, report(SharedNames(), every, own, part="privacy", test="noise: shared names")]


def _drawn_law(spec: Specification, name: str, seeds: Seeds, draws: int, rounds: tuple[int, int]) -> Result:
    test, kinds = f"noise: {name}", list(noises(spec, name, rounds))
    if not kinds:
        return idle_inside(test, "it has no noise of a known law in these rounds")
    problem, again = "", 0
    try:
        check_lattices(spec, name)
        again = check_draws(spec, name, seeds.branch("again").number())
    except VerificationError as error:
        problem = str(error)
    looks = _looks(spec, name, kinds, seeds.branch("pairs"))
    copies = [noise.kind(drawn(noise, draws, seeds.branch("draws", i).coins())) for i, noise in enumerate(looks)]
    pairs = ", ".join(f"{one:,} and {two:,}" for one, two in sorted({tuple(noise.indices) for noise in looks}))
    tried = (
        f"{draws:,} independent copies of the noise in pairs of releases ({pairs}), {len(kinds)} "
        f"kind{'s' * (len(kinds) != 1)} of it, against the law that the budget asks for by the declared sensitivity of "
        "its process (which is checked by the search for sensitivity); and whether what is drawn in one release is, "
        f"number by number, the sum of the noises of its nodes ({again:,} releases)."
    )
    return report(NoiseLaw(name, draws, tried, problem=problem), copies, seeds, part="privacy", test=test)


def _looks(spec: Specification, name: str, kinds: list[Noise], seeds: Seeds) -> list[Noise]:
    """Every kind in the first rounds and at the end; one kind of each noise in more pairs of releases."""
    out, seen = list(kinds), set()
    for noise in kinds:
        indices = looked_at(spec, name, noise.mechanism, seeds.random())
        pairs = pairs_of(indices, seeds.random())
        # With many kinds, fewer pairs of each: the time is the same.
        most = 1 if id(noise.mechanism) in seen else max(1, 2 * len(pairs) // (1 + len(kinds)))
        seen.add(id(noise.mechanism))
        out += [noise.at(pair) for pair in pairs[-most:]]
    return out


# What is published ----------------------------------------------------------------------------------------------------


def published_law(target: Target, seeds: Seeds, *, draws: int = 600) -> list[Result]:
    """One result for each statistic.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in published_law(Target.stream(spec), Seeds(1))]
    [('passed', True)]
    """
    if target.specification is None:
        return [idle_inside("published noise")]
    spec = in_memory(target.specification)
    return [_published(spec, name, seeds.branch(name), draws) for name in spec.statistics]


def _published(spec: Specification, name: str, seeds: Seeds, draws: int) -> Result:
    test = f"published noise: {name}"
    if ranges_in(spec.bounds[name]) is not None:
        return idle_inside(test, "its answers are drawn from the counts; the test of releases checks what is drawn")
    if sample_in(spec.bounds[name]) is not None:
        return idle_inside(test, "a sample adds no noise to totals; the test of releases checks what is drawn")
    if isinstance(spec.statistics[name].noise, Oblivious):
        return idle_inside(test, "its noise is a law of the user's own")
    scene = Scene(spec, name, seeds.random())
    keys = enough_keys(scene, draws)
    law = published_noise(scene, keys=keys, first=seeds.number() % (1 << 40))
    return report(*law, seeds, part="privacy", test=test)
