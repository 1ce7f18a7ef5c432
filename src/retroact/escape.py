"""Untrusted text, made safe to show: it cannot move the cursor, start a line, or hide or reverse other text.

Whatever files, feeds and specifications say goes through `printable` in messages and logs, and through `markup` in
pages and pictures. Data for programs (releases) stay as they are.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """One line, with a Python escape for every character that is not printable: control characters (C0 and C1), line
    and paragraph separators, direction marks, lone surrogates.

    >>> printable("fine\\nreproduced: all\\x1b[1A ε")
    'fine\\\\nreproduced: all\\\\x1b[1A ε'
    >>> printable(printable("\\u202e\\x9b")) == printable("\\u202e\\x9b") == "\\\\u202e\\\\x9b"
    True
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def markup(text: str) -> str:
    """The same for HTML and SVG.

    >>> markup("<b>\\x1b")
    '&lt;b&gt;\\\\x1b'
    """
    from html import escape  # slow to import, and needed for pages alone

    return escape(printable(text))
