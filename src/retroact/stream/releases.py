"""The releases of a stream: as lines, tables, frames, plots and pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..outputs.shown import Shown, rounds_text
from ..outputs.table import Table, TableForm
from ..statistics import Histogram
from ..statistics.bound import Bound
from .release import Release

if TYPE_CHECKING:
    from ..outputs.page import About
    from .core import Core
    from .specification import Specification

KEPT, EACH = 250_000, 10
"""How many published numbers a stream in memory keeps, where a release counts as ten more: about 50 MB. Earlier rounds
are dropped; a store keeps everything."""


def table_form(spec: Specification, *, testing: bool, origin: int = 0) -> TableForm:
    """The table of a stream's releases; ``origin`` is the last round before its first."""
    rows = {name: statistic.answer_rows(spec.schema) for name, statistic in spec.statistics.items()}
    grid = spec.rounds.grid
    counts = [name for name, own in spec.statistics.items() if isinstance(own, Histogram) and own.sum is None]
    bounds = {name: spec.bounds[name] for name in counts}
    return TableForm(
        rows,
        span=None if grid is None else spec.rounds.span,
        zone="UTC" if grid is None else grid.time_zone,
        testing=testing,
        threshold=BinThresholds(bounds, origin),
    )


class BinThresholds:
    """The noisy counts from which bins are published; releases with it can be pickled."""

    def __init__(self, bounds: Mapping[str, Bound], origin: int) -> None:
        self._bounds, self._origin = bounds, origin

    def __call__(self, statistic: str, round: int) -> float | None:
        bound = self._bounds.get(statistic)
        found = None if bound is None else bound.threshold
        if bound is None or found is None:
            return None
        return float(found.at((round - self._origin) // bound.statistic.every))


class RecentReleases:
    """What a stream in memory has published in its latest rounds. It is public: an erasure changes later releases, and
    not what was published before."""

    def __init__(self) -> None:
        self._rounds: deque[tuple[int, Mapping[str, Release]]] = deque()
        self._numbers = 0

    def keep(self, round: int, releases: Mapping[str, Release]) -> None:
        self._rounds.append((round, releases))
        self._numbers += _size(releases)
        while self._numbers > KEPT and len(self._rounds) > 1:
            self._numbers -= _size(self._rounds.popleft()[1])

    def lines(self, first: int, last: int | None) -> Iterator[dict[str, Any]]:
        for round, releases in list(self._rounds):
            if round >= first and (last is None or round <= last):
                yield from (release.to_dict() for release in releases.values())


def _size(releases: Mapping[str, Release]) -> int:
    return sum(EACH + len(release.numerators) for release in releases.values())


class Releases(Shown):
    """The releases of some rounds of a stream. Iterating gives lines, as `Release.to_dict` has them."""

    def __init__(self, core: Core, lines: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self.form, self._core, self._lines = core.form, core, lines

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._lines())

    def table(self) -> Table:
        """One tidy table (`outputs.table`)."""
        return self.form.table(self)

    _table = table

    def _shown_form(self) -> TableForm:
        return self.form

    def _title(self) -> str:
        return f"Releases of {rounds_text([line['round'] for line in self])}"

    def page(self) -> str:
        """A page that is one file: every statistic as a chart with the table behind it, what is protected, what it
        cost, and how many rounds are left."""
        from ..outputs.page import page

        return page(self.form, self.table(), _about(self._core))


class Publishing(Shown):
    """A stream, as the source of its releases."""

    _core: Core

    def releases(self, first: int = 1, last: int | None = None) -> Releases:
        """What was published in these rounds, as lines, a table, frames, plots or a page. A stream in memory keeps its
        latest rounds (about 20,000 releases or 250,000 numbers), a store all of them.

        >>> import retroact as ra
        >>> schema = {"country": ra.Category(["DE", "FR"])}
        >>> orders = ra.Stream(schema, {"orders": ra.GroupBy("country", ra.Count())}, epsilon=1.0, horizon=10)
        >>> published = orders.close_round(), orders.close_round()
        >>> orders.releases(2).to_pandas()[["round", "statistic", "country"]].values.tolist()
        [[2, 'orders', 'DE'], [2, 'orders', 'FR']]
        """
        return Releases(self._core, lambda: self._lines(first, last))

    def _lines(self, first: int, last: int | None) -> Iterator[dict[str, Any]]:
        with self._core.lock:
            return self._core.recent.lines(first, last)

    def _table(self) -> Table:
        return self.releases().table()

    def _shown_form(self) -> TableForm:
        return self._core.form

    def _title(self) -> str:
        return f"Stream, {rounds_text([line['round'] for line in self.releases()])}"


def _about(core: Core) -> About:
    """What a page says about a stream; nothing of it depends on records."""
    from ..outputs.page import About
    from .plan import number, plan

    spec, expected = core.specification, plan(core.specification)
    whole = sum(expected.weights.values())
    costs = []
    for row in expected.rows:
        error = "–" if number(row.half_width) == "–" else f"±{number(row.half_width)}"
        unit = " (ranks)" if row.kind in ("quantiles", "distances") and error != "–" else ""
        costs.append((row.statistic, f"{float(expected.weights[row.statistic] / whole):.0%}", error + unit))
    used, count = core.round - 1 - core.origin, spec.rounds.count
    limits = [*([] if spec.horizon is None else [spec.horizon]), *([] if count is None else [count - core.origin])]
    most = min(limits, default=None)
    left = None if most is None else 0 if core.over else most - used
    return About(core.engine.guarantee, most, used, left, costs, expected.records, core.persistence.durable)
