"""What Theorem "linear" charges for its tree: every interval moves all m nodes over each of its ends.

**Privacy.** 2m with m = log2 T + 1, whatever the interval: never less than the exact number of `noise.Tree`.
**Retroactivity.** As there: the nodes of a round depend on the round alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from ..noise.tree import Tree


class PaperTree(Tree):
    """
    >>> PaperTree(1024).l1, Tree(1024).l1
    (Fraction(22, 1), Fraction(19, 1))
    """

    kind: ClassVar[str] = "paper_tree"
    name = "tree"

    def charge(self, p: int) -> Fraction:
        return Fraction(2 * self.height)
