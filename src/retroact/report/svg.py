"""Elements of pictures as plain SVG text. All texts and attributes are escaped here.

Results are `Markup`, which templates do not escape again. Colours and fonts come from the style sheet.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ..escape import markup


def element(name: str, *children: str, **attributes: Any) -> Markup:
    """An element. Children that are not markup are text. Attributes that are None or empty are left out.

    >>> element("text", "a < b", class_="note", x=12.04, text_anchor="end")
    Markup('<text class="note" x="12" text-anchor="end">a &lt; b</text>')
    """
    start = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{markup(value if isinstance(value, str) else digits(value))}"'
        for key, value in attributes.items()
        if value is not None and value != ""
    )
    inside = "".join(child if isinstance(child, Markup) else markup(child) for child in children)
    return Markup(f"<{name}{start}>{inside}</{name}>" if inside else f"<{name}{start}/>")


def joined(*parts: Markup) -> Markup:
    return Markup("").join(parts)


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> Markup:
    return element("text", content, class_=kind, x=x, y=y, text_anchor="" if anchor == "start" else anchor)


def path(d: str, kind: str = "", **attributes: Any) -> Markup:
    return element("path", class_=kind, d=d, **attributes)


def segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return path(f"M{digits(x1)} {digits(y1)}L{digits(x2)} {digits(y2)}", kind)


def rectangle(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> Markup:
    inside = [element("title", title)] if title else []
    return element("rect", *inside, class_=kind, x=x, y=y, width=max(width, 0), height=height, rx=2)


def picture(name: str, width: float, height: float, title: str, description: str, body: Markup) -> Markup:
    """A picture on a page. Screen readers announce its title and description."""
    ids = f"{name}-title", f"{name}-text"
    return element(
        "svg", element("title", title, id=ids[0]), element("desc", description, id=ids[1]), body,
        class_=name.rsplit("-", 1)[-1], viewBox=f"0 0 {digits(width)} {digits(height)}", role="img",
        aria_labelledby=" ".join(ids),
    )  # fmt: skip


def document(
    width: float, height: float, title: str, description: str, style: str, body: Markup, kind: str = ""
) -> Markup:
    """A picture in a file by itself, on white; its style sheet applies within the class ``kind``."""
    return element(
        "svg", element("title", title), element("desc", description), element("style", Markup(style)),
        element("rect", width=width, height=height, fill="#fff"), body,
        xmlns="http://www.w3.org/2000/svg", class_=kind, viewBox=f"0 0 {digits(width)} {digits(height)}", role="img",
    )  # fmt: skip


def digits(value: float) -> str:
    """One decimal: a tenth of a pixel.

    >>> digits(12.04), digits(-0.04), digits(7.25), digits(1234567)
    ('12', '0', '7.2', '1234567')
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
