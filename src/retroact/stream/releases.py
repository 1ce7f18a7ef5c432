"""The releases of a stream: as lines, tables, frames, plots and pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..outputs.frames import Tabular
from ..outputs.table import Table, TableForm
from .release import Release

if TYPE_CHECKING:
    from .core import Core
    from .specification import Specification

KEPT = 100_000
"""How many published numbers a stream in memory keeps. The rounds before are dropped; a store keeps everything."""


def table_form(spec: Specification, *, testing: bool) -> TableForm:
    rows = {name: statistic.answer_rows(spec.schema) for name, statistic in spec.statistics.items()}
    grid = spec.rounds.grid
    zone = "UTC" if grid is None else grid.time_zone
    return TableForm(rows, span=None if grid is None else spec.rounds.span, zone=zone, testing=testing)


class RecentReleases:
    """What a stream in memory has published, most recent rounds first to stay. It is public: an erasure changes later
    releases, and not what was published before."""

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
    return sum(max(1, len(release.numerators)) for release in releases.values())


class Releases(Tabular):
    """The releases of some rounds of a stream. Iterating gives lines, as `Release.to_dict` has them."""

    def __init__(self, form: TableForm, lines: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self.form, self._lines = form, lines

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._lines())

    def table(self) -> Table:
        """One tidy table (`outputs.table`)."""
        return self.form.table(self)

    _table = table


class Publishing(Tabular):
    """A stream, as the source of its releases."""

    _core: Core

    def releases(self, first: int = 1, last: int | None = None) -> Releases:
        """What was published in these rounds, as lines, a table, frames, plots or a page. A stream in memory keeps the
        latest rounds (`stream.releases.KEPT` numbers), a store all of them.

        >>> import retroact as ra
        >>> schema = {"country": ra.Category(["DE", "FR"])}
        >>> orders = ra.Stream(schema, {"orders": ra.GroupBy("country", ra.Count())}, epsilon=1.0, horizon=10)
        >>> published = orders.close_round(), orders.close_round()
        >>> orders.releases(2).to_pandas()[["round", "statistic", "country"]].values.tolist()
        [[2, 'orders', 'DE'], [2, 'orders', 'FR']]
        """
        return Releases(self._core.form, lambda: self._lines(first, last))

    def _lines(self, first: int, last: int | None) -> Iterator[dict[str, Any]]:
        with self._core.lock:
            return self._core.recent.lines(first, last)

    def _table(self) -> Table:
        return self.releases().table()
