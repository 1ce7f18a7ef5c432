"""Change feeds in: files, standard input and frames become additions, deletions and rounds of a stream."""

from retroact.feeds.options import Options
from retroact.feeds.play import play
from retroact.feeds.totals import Totals
from retroact.stream.grid import Grid

__all__ = ["Grid", "Options", "Totals", "play"]
