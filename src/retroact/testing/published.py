"""What is published, compared with independently computed exact totals (`definitions`).

Three questions about every release, under any key and in any round, answered number by number:

- `check_numbers`: are the noisy totals behind the answer the exact totals plus the noise of their names, which is drawn
  again here, node by node; and are they complete?
- `check_nothing_else`: does the answer depend on the records only through these noisy totals? Other records come with
  noise that makes up for the difference, so that the noisy totals are equal; value, error, interval and bytes must be
  equal too.
- `check_calibration`: is the law of every node as wide as the budget requires, by the declared norms?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import numpy as np

from ..arrays import I64
from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Key, integer_cells
from ..errors import VerificationError
from ..noise import Mechanism, Oblivious
from ..schema import Rows
from ..statistics import Distinct, Histogram, KMeans, Linear, Quantiles
from ..statistics.answer import Published, noisy_totals
from ..statistics.bound import At, Bound
from ..statistics.declared_groups import DeclaredGroups
from ..statistics.histogram import HistogramBound
from ..statistics.restated import Lagged
from ..statistics.value_tree import NUMBERS
from ..statistics.wrapper import core
from ..stream import Specification
from ..stream.release import plain
from .altered import shifted
from .claimed_law import ENDLESS, claimed_size, claims
from .contributions import Name
from .definitions import Coordinate, Definition, Totals
from .drawn_noise import noise_again
from .histories import values_of
from .ranges import check_ranges
from .records import Record

# A bin or a node has records for this many deviations of noise: its noisy count is too low with probability e^-40.
CLEAR = 60
FEWEST, MOST = 100, 1 << 20
LEVELS = (0.5, 0.95)
# The lattice makes Gaussian noise at most this much wider than the claim.
WIDER = Fraction(1, 100)


class Look(NamedTuple):
    """One release: what was published, the noise of the statistic, and the noisy totals by coordinate."""

    published: Published
    noise: Mechanism
    noisy: dict[Coordinate, int]

    @classmethod
    def of(cls, published: Published, noise: Mechanism) -> Look:
        return cls(published, noise, {Coordinate(*where): total for where, total in noisy_totals(published).items()})


class Scene:
    """Enough records to pass any threshold, half of them old and half new in every round, and what is published of
    them under any key in any release: by random access, since a release remembers nothing."""

    def __init__(self, spec: Specification, name: str, random: Random, *, whole: bool = False) -> None:
        self.spec, self.name, self.statistic = spec, name, spec.statistics[name]
        self.definition, self.bound = Definition(spec, name), spec.bounds[name]
        self.values = list(dict.fromkeys(values_of(spec.schema, random, whole=whole)))
        self._digest = spec.digest(name)
        self._latest: tuple[Coins, Bound] | None = None
        self.copies = self._enough()
        self._rows: dict[tuple[int, bool], list[tuple[Rows, I64]]] = {}
        self._gathered: dict[tuple[int, bool], list[Any]] = {}
        self._exact: dict[tuple[int, bool], Totals] = {}

    @property
    def last(self) -> int:
        """The last release to check."""
        releases = self.spec.releases(self.name)
        return ENDLESS if releases is None else releases

    def _enough(self) -> int:
        first = parts_of(self.noise(Key.for_testing(0)))[0]
        rounds = np.unique([1, max(1, self.last // 3), self.last])
        wide = math.sqrt(float(first.variances_of(0, rounds).max())) / first.units[0]
        least = 0.0
        threshold = _parts(self.bound)[0].threshold
        if threshold is not None:
            least = max(float(threshold.at(int(index))) for index in rounds)
        return min(MOST, max(FEWEST, math.ceil(least + CLEAR * wide)))

    def records(self, index: int, *, other: bool = False) -> list[Record]:
        """The records of a release; ``other``: in other numbers, and of fewer values where values are counted."""
        round, out = index * self.statistic.every, []
        for number, value in enumerate(self.values):
            if other and number % 2 and isinstance(self.definition.inner, Distinct):
                continue
            copies = self.copies + 7 * number + (self.copies // 3 + number if other else 0)
            fields = dict(zip(self.spec.schema.fields, value, strict=True))  # type: ignore[call-overload]
            out += [Record(fields, stamp, copies) for stamp in {1, round}]
        return out

    def look(self, key: Key, index: int) -> Look:
        return self.under(self.noise(key), index)

    def noise(self, key: Key) -> Mechanism:
        return self.bound.noise.under(key.coins("stream").branch(self._digest))

    def under(self, noise: Mechanism, index: int) -> Look:
        """The release with this noise."""
        return Look.of(self.release(noise, noise, index), noise)

    def release(self, names: Mechanism, noise: Mechanism, index: int, *, other: bool = False) -> Published:
        """``names``: the mechanism whose coins name the cells."""
        bound = self._drawn(names.coins)
        gathered = self._gathered.get((index, other))
        if gathered is None:
            gathered = [bound.gather(*seen) for seen in self._seen(index, other)]
            if not self.definition.by_key:
                self._gathered[index, other] = gathered
        totals = [bound.named(one, names.coins) for one in gathered]
        return bound.release(totals, noise, At(index, index * self.statistic.every))

    def _drawn(self, coins: Coins) -> Bound:
        """Cached for the latest coins."""
        if self._latest is None or self._latest[0] is not coins:
            self._latest = coins, self.bound.drawn(coins)
        return self._latest[1]

    def _seen(self, index: int, other: bool) -> list[tuple[Rows, I64]]:
        """The records that each view of a release counts, encoded."""
        if (index, other) not in self._rows:
            records = self.records(index, other=other)
            self._rows[index, other] = self.definition.seen(records, index * self.statistic.every)
        return self._rows[index, other]

    def exact(self, noise: Mechanism, index: int, *, other: bool = False) -> Totals:
        """The totals by the definition; cached if they do not depend on the key."""
        if (index, other) in self._exact:
            return self._exact[index, other]
        records = self.records(index, other=other)
        totals = self.definition.totals(records, index * self.statistic.every, noise.coins)
        if not self.definition.by_key:
            self._exact[index, other] = totals
        return totals

    def fail(self, index: int, problem: str) -> VerificationError:
        return VerificationError(f"{self.name}: round {index * self.statistic.every} {problem}")


def _parts(bound: Bound) -> Sequence[Bound]:
    """The bound of each view."""
    return bound.parts or [bound]


def parts_of(noise: Mechanism) -> list[Mechanism]:
    """The noise of each view."""
    return noise.parts if isinstance(noise, Lagged) else [noise]


def check_published(spec: Specification, name: str, random: Random, *, keys: int = 2, looks: int = 6) -> int:
    """All three checks of one statistic; returns how many numbers were compared."""
    if not spec.bounds[name].additive:
        return check_ranges(spec, name, random)
    check_calibration(spec, name)
    scene, compared = Scene(spec, name, random), 0
    for index in looked_at(scene, random, looks):
        for seed in range(keys):
            compared += check_numbers(scene, Key.for_testing(seed + 1), index)
        check_nothing_else(scene, Key.for_testing(random.randrange(1 << 30)), index)
    return compared


def looked_at(scene: Scene, random: Random, count: int) -> list[int]:
    """The first releases, the last one, and some random ones."""
    chosen = {1, 2, 3, scene.last, (scene.last + 1) // 2}
    while len(chosen) < min(count, scene.last):
        chosen.add(random.randint(1, scene.last))
    return sorted(index for index in chosen if 1 <= index <= scene.last)


# The numbers ----------------------------------------------------------------------------------------------------------


def check_numbers(scene: Scene, key: Key, index: int) -> int:
    """A release is made of exact totals plus the noise of their names; returns how many numbers were compared."""
    look = scene.look(key, index)
    exact = scene.exact(look.noise, index)
    _check_complete(scene, look, exact, index)
    wrong = first_wrong(scene.definition, look, exact, index)
    if wrong is not None:
        raise scene.fail(index, f"is not its totals plus their noise, at {_words(wrong)}")
    check_numerators(scene, look, index)
    return len(look.noisy)


def first_wrong(definition: Definition, look: Look, exact: Totals, index: int) -> Coordinate | None:
    """The first coordinate whose noisy total is not the exact total plus the noise of its name, if there is one."""
    drawn, denominator = drawn_again(definition, look, index), look.published.denominator
    wrong = (where for where, total in look.noisy.items() if total != exact.get(where, 0) * denominator + drawn[where])
    return next(wrong, None)


def drawn_again(definition: Definition, look: Look, index: int) -> dict[Coordinate, int]:
    """The noise of every coordinate of a release, node by node."""
    out: dict[Coordinate, int] = {}
    groups: dict[tuple[int, int], list[Coordinate]] = {}
    for where in look.noisy:
        groups.setdefault((where.view, where.place), []).append(where)
    for (view, place), members in groups.items():
        part = parts_of(look.noise)[view]
        named = members[0].name is not None
        cells = integer_cells(place + 1)[place:]
        if named:
            cells = definition.cells([where.name for where in members], part.coins)
        finer = Fraction(look.published.denominator, part.process.at(index).denominator * part.refinement)
        totals = noise_again(part, index, place, cells, named=named)
        out.update((where, int(finer * total)) for where, total in zip(members, totals, strict=True))
    return out


def _check_complete(scene: Scene, look: Look, exact: Totals, index: int) -> None:
    """No number is missing, and there is none that should not be there."""
    inner, noisy = scene.definition.inner, look.noisy
    views = [k for k, lag in enumerate(scene.definition.lags) if index * scene.statistic.every - lag >= 1]
    if not noisy and views:
        raise scene.fail(index, "does not say which noisy totals it is made of")
    if not noisy:
        return  # before the first round of its lags
    expected: set[Coordinate] = set()
    if isinstance(inner, Linear):
        places = range(inner.layout(scene.spec.schema).size)
        expected = {Coordinate(view, None, place) for view in views for place in places}
    elif isinstance(inner, Histogram):
        expected = _bins(scene, look, exact, index, views)
    elif isinstance(inner, Distinct):
        expected = {Coordinate(view, None, group) for view in views for group in range(scene.bound.layout.size)}
    if expected and expected != noisy.keys():
        wrong = min(expected ^ noisy.keys(), key=repr)
        raise scene.fail(index, f"has {'no number' if wrong in expected else 'a number'} at {_words(wrong)}")
    if isinstance(inner, Quantiles):
        groups = len(DeclaredGroups(inner.by, scene.spec.schema))
        roots = {Coordinate(view, (0, NUMBERS * group), 0) for view in views for group in range(groups)}
        if not roots <= noisy.keys():
            raise scene.fail(index, "does not say how many records there are")


def _bins(scene: Scene, look: Look, exact: Totals, index: int, views: list[int]) -> set[Coordinate]:
    """Declared bins, or those with records, which have enough of them to pass the threshold."""
    assert isinstance(scene.definition.inner, Histogram)
    out: set[Coordinate] = set()
    for view in views:
        part = core(_parts(scene.bound.drawn(look.noise.coins))[view])
        assert isinstance(part, HistogramBound)
        if part.cells is not None:
            names: list[Name] = list(zip(*(label.tolist() for label in part.cells.labels), strict=True))
        else:
            names = [where.name for where in exact if where.view == view and where.place == 0]
        out |= {Coordinate(view, name, place) for name in names for place in range(part.noise.size)}
    if below_threshold(scene.bound, look, index):
        raise scene.fail(index, "shows a bin below its threshold")
    return out


def below_threshold(bound: Bound, look: Look, index: int) -> bool:
    """Whether a bin is shown whose noisy count is below the threshold of its view."""
    for view, part in enumerate(_parts(bound)):
        if part.threshold is not None:
            least = part.threshold.at(index) * look.published.denominator
            if any(total < least for where, total in look.noisy.items() if (where.view, where.place) == (view, 0)):
                return True
    return False


def check_numerators(scene: Scene, look: Look, index: int) -> None:
    """The bytes of a release hold its noisy totals."""
    inner, numerators, noisy = scene.definition.inner, look.published.numerators, list(look.noisy.values())
    if isinstance(inner, Linear | Histogram | Distinct):
        same = list(numerators) == noisy
    elif isinstance(inner, Quantiles):
        same = bool(numerators) and numerators[-1] in noisy
    elif isinstance(inner, KMeans):
        same = set(numerators) <= {*noisy}
    else:
        return
    if not same:
        raise scene.fail(index, "publishes other integers than its noisy totals")


# Nothing else ---------------------------------------------------------------------------------------------------------


def check_nothing_else(scene: Scene, key: Key, index: int) -> None:
    """The same noisy totals from other records give the same release."""
    look = scene.look(key, index)
    before, after = (scene.exact(look.noise, index, other=other) for other in (False, True))
    moved = {where: before.get(where, Fraction(0)) - after.get(where, Fraction(0)) for where in {*before, *after}}
    again = scene.release(look.noise, shifted(scene.definition, look.noise, moved), index, other=True)
    if _all(look.published) != _all(again):
        raise scene.fail(index, "depends on the records not only through its noisy totals")


def _all(published: Published) -> tuple[Any, ...]:
    answer = published.answer
    intervals = [plain(answer.interval(level)) for level in LEVELS]
    shown = [_shown(part) for part in (answer.value, answer.standard_error)]
    return shown, intervals, published.numerators, published.denominator


def _shown(value: Any) -> tuple[Any, dict[str, Any]]:
    """The value as it is written, and its public attributes."""
    more = {name: part for name, part in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
    return plain(value), {name: plain(part) for name, part in more.items() if not callable(part)}


# The laws -------------------------------------------------------------------------------------------------------------


def check_calibration(spec: Specification, name: str) -> None:
    """Every node is as wide as the budget requires by the declared norms and sensitivity, and hardly wider."""
    if isinstance(spec.statistics[name].noise, Oblivious):
        return  # the law is defined by the user
    for which, later, claim, mechanism in claims(spec, name):
        last = claim.process.horizon or ENDLESS
        for index in sorted({1 + later, last} if 1 + later <= last else {last}):
            for level in np.unique(claim.process.at(index).levels).tolist():
                for unit in set(mechanism.units):
                    law, wanted = mechanism.law(level, unit), claimed_size(claim, level, unit)
                    if isinstance(law, DiscreteLaplace):
                        drawn = law.scale
                    else:
                        assert isinstance(law, DiscreteGaussian)
                        drawn = law.parameter / mechanism.refinement**2
                    if not wanted <= drawn <= wanted * (1 + WIDER) ** 2:
                        raise VerificationError(
                            f"noise law of {which}: a node of level {level} is {float(drawn):.6g} wide, the budget "
                            f"requires {float(wanted):.6g}"
                        )


def _words(where: Coordinate) -> str:
    cell = "" if where.name is None else f" of {where.name!r}"
    return f"coordinate {where.place}{cell}" + (f", view {where.view}" if where.view else "")
