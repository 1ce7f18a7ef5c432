"""Text of anybody's, shown to a person: nothing in it moves the cursor, starts a line, hides or turns round other text.

Files, feeds and specifications name things as they like. What they say goes through here wherever it is shown: messages
and logs by `printable`, pages and pictures by `markup`. Data that programs read (releases) stay as they are.
"""

from __future__ import annotations

from html import escape


def printable(text: str) -> str:
    """One line, in which every character that Python does not call printable is written as Python writes it: control
    characters (C0 and C1), line and paragraph separators, marks of direction, halves of surrogate pairs.

    >>> printable("fine\\nreproduced: all\\x1b[1A ε")
    'fine\\\\nreproduced: all\\\\x1b[1A ε'
    >>> printable(printable("\\u202e\\x9b")) == printable("\\u202e\\x9b") == "\\\\u202e\\\\x9b"
    True
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def markup(text: str) -> str:
    """The same, inside a page.

    >>> markup("<b>\\x1b")
    '&lt;b&gt;\\\\x1b'
    """
    return escape(printable(text))
