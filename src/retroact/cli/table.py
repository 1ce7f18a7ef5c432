"""Tables as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Literal
from unicodedata import combining, east_asian_width

from ..escape import printable

Kind = Literal["fold", "left", "right"]
GAP = "   "
NARROWEST = 12
"""No column that folds gets narrower than that."""


def table(columns: Mapping[str, Kind], rows: Iterable[Iterable[str]], *, width: int) -> list[str]:
    """Columns by their headings: "left" and "right" are aligned and never broken; those that "fold" share what is left
    of the width.

    >>> for line in table({"name": "fold", "runs": "right"}, [["a name of three", "9"], ["b", "1,200"]], width=21):
    ...     print(line)
    <BLANKLINE>
     name            runs
     ────────────────────
     a name of          9
     three
     b              1,200
    <BLANKLINE>
    """
    kinds = list(columns.values())
    heads = [head.split("\n") for head in columns]
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(_width, [*heads[i], *(row[i] for row in cells)])) for i in range(len(kinds))]
    folding = [i for i, kind in enumerate(kinds) if kind == "fold"]
    left = width - 2 - len(GAP) * (len(kinds) - 1) - sum(w for i, w in enumerate(widths) if i not in folding)
    for rank, i in enumerate(sorted(folding, key=lambda i: widths[i])):
        # the narrow ones first: what they do not need is left for the wide ones
        widths[i] = min(widths[i], max(NARROWEST, left // (len(folding) - rank)))
        left -= widths[i]
    depth = max(map(len, heads))
    lines = ["", *_row([[""] * (depth - len(head)) + head for head in heads], kinds, widths)]
    lines.append(f" {'─' * (sum(widths) + len(GAP) * (len(kinds) - 1))}")
    for row in cells:
        folded = [_folded(cell, widths[i]) if i in folding else [cell] for i, cell in enumerate(row)]
        lines += _row(folded, kinds, widths)
    return [*lines, ""]


def aligned(text: str, kind: Kind, width: int) -> str:
    """Pad a text with spaces.

    >>> aligned("12", "right", 4), aligned("東京", "left", 6)
    ('  12', '東京  ')
    """
    space = " " * (width - _width(text))
    return space + text if kind == "right" else text + space


def _row(cells: Sequence[Sequence[str]], kinds: Sequence[Kind], widths: Sequence[int]) -> list[str]:
    lines = zip_longest(*cells, fillvalue="")
    return [f" {GAP.join(map(aligned, line, kinds, widths))}".rstrip() for line in lines]


def _folded(text: str, width: int) -> list[str]:
    """Broken between words, or within one that is too long."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and _width(f"{lines[-1]} {word}") > width:
            lines.append("")
        line = f"{lines[-1]} {word}" if lines[-1] else word
        lines.pop()
        while _width(line) > width:
            fits = next(n for n in range(len(line), 0, -1) if _width(line[:n]) <= width)
            lines.append(line[:fits])
            line = line[fits:]
        lines.append(line)
    return lines


def _width(text: str) -> int:
    """The number of columns on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
