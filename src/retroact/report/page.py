"""Pages from templates: one base page, one style sheet; each page is one file that loads nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..escape import printable
from ..messages import plural

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """A page. Values are escaped, control characters and direction marks included; only what `svg` has drawn is not.

    >>> "<h1>1 &lt; 2</h1>" in render("base.html", title="1 < 2", badge="example")
    True
    """
    return _environment().get_template(template).render(values)


def style(name: str) -> str:
    """A style sheet, for a picture in a file by itself."""
    return (TEMPLATES / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["plural"] = plural
    return environment


def _shown(value: Any) -> Any:
    """Markup as it is; anything else as one line without control characters, to be escaped."""
    return value if isinstance(value, Markup) else printable(str(value))
