"""Change feeds in: files, standard input and frames become additions, deletions and rounds of a stream."""

from ..stream.grid import Grid
from .options import Options
from .play import play
from .totals import Totals

__all__ = ["Grid", "Options", "Totals", "play"]
