"""Releases as notebooks show them: a table in HTML, and plots."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .frames import Tabular
from .table import TableForm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .charts import Chart


class Shown(Tabular):
    """Releases of a stream, with the form of their table."""

    @abstractmethod
    def _shown_form(self) -> TableForm:
        """The form of its table."""

    @abstractmethod
    def _title(self) -> str:
        """What a notebook writes above the table."""

    def _repr_html_(self) -> str:
        from .page import releases_fragment

        return releases_fragment(self._title(), self._shown_form(), self._table())

    def plot(self, statistic: str | None = None, *, ax: Axes | None = None) -> Axes | tuple[Axes, ...]:
        """Draw the chart of a statistic with matplotlib, and return its Axes. Without a name: of the only one, or
        one figure for each, and a tuple of Axes."""
        from .plots import plotted

        form = self._shown_form()
        found = {chart.statistic: chart for chart in self._charts()}
        if statistic is not None and statistic not in form.statistics:
            raise InputError(f"expected one of {', '.join(form.statistics)}, got {statistic!r}", place="statistic")
        names = form.statistics if statistic is None else [statistic]
        chosen = [found[name] for name in names if name in found]
        if not chosen:
            raise InputError("expected a release to plot, got none", place="statistic")
        if ax is not None and len(chosen) > 1:
            raise InputError(f"expected one of {', '.join(found)} for these Axes", place="statistic")
        drawn = tuple(plotted(chart, ax, testing=form.testing) for chart in chosen)
        return drawn[0] if len(drawn) == 1 else drawn

    def _charts(self) -> list[Chart]:
        from .charts import charts

        return charts(self._shown_form(), self._table())


def rounds_text(rounds: Any) -> str:
    """
    >>> rounds_text([3]), rounds_text([1, 1, 2, 4]), rounds_text([])
    ('round 3', 'rounds 1 to 4', 'no rounds')
    """
    first, last = min(rounds, default=0), max(rounds, default=0)
    return "no rounds" if not last else f"round {last:,}" if first == last else f"rounds {first:,} to {last:,}"
