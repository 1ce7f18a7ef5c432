"""Pages of the site that are made when it is built: those of the root folder, and the reference of specifications."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import retroact.compilers
import retroact.statistics.models  # noqa: F401 (their statistics are listed, too)
from retroact.oneshot.base import OneShot
from retroact.params import REQUIRED, Parameters
from retroact.schema import Field
from retroact.statistics import Statistic

ROOT = Path(__file__).parent.parent
FROM_ROOT = {"README.md": "index.md", **{name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}}
# What pages of the site say about files that are not pages.
NOT_PAGES = re.compile(r"\[([^\]]+)\]\((?:\.\./)?((?:examples|tests|benchmarks|src|LICENSE|CITATION)[^)]*)\)")


def on_files(files: Files, config: Any) -> Files:
    for source, target in FROM_ROOT.items():
        text = (ROOT / source).read_text()
        text = re.sub(r"\]\(docs/", "](", text)
        text = text.replace("](README.md", "](index.md")
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "specification.md", content=specification_page()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that leave the folder of the docs lead to the pages made here, or become plain names of files."""
    markdown = re.sub(r"\]\(\.\./(CONTRIBUTING|SECURITY|CHANGELOG)\.md", r"](\1.md", markdown)
    markdown = re.sub(r"\]\(\.\./README\.md", "](index.md", markdown)
    return NOT_PAGES.sub(r"\1 (`\2`)", markdown)


def specification_page() -> str:
    """The reference of `retroact.toml`, from the signatures that it is read with."""
    parts = [(ROOT / "docs" / "specification_head.md").read_text()]
    for title, place, family in (
        ("Fields", "`[schema]`", Field),
        ("Statistics", "`[statistics]`", Statistic),
        ("Algorithms", "the `algorithm` of a `window_sample`", OneShot),
    ):
        parts.append(f"## {title}\n\nTables of {place}, by their `type`.\n")
        if family is Statistic:
            parts.append(f"All of them also take {', '.join(f'`{name}`' for name in family.parameters())}.\n")
        for kind, one in sorted(family.kinds.items()):
            if not one.unwritten and one.__module__.startswith("retroact."):
                parts.append(_section(kind, one, family))
    return "\n".join(parts)


def _section(kind: str, one: type[Parameters], family: type[Parameters]) -> str:
    common = family.parameters() if family is Statistic else {}
    own = {name: parameter for name, parameter in one.parameters().items() if name not in common}
    about = inspect.getdoc(one) or ""
    first = re.sub(r"\*\*Privacy\.\*\*.*", "", about.split("\n\n")[0], flags=re.DOTALL).replace("``", "`").strip()
    rows = [f"| `{name}` | {_default(parameter.default)} |" for name, parameter in own.items()]
    table = ["| key | default |", "|---|---|", *rows] if rows else ["No keys of its own."]
    return "\n".join([f'### `type = "{kind}"`', "", *([first, ""] if first else []), *table, ""])


def _default(value: Any) -> str:
    return "required" if value is REQUIRED else f"`{value!r}`".replace("None", "none")
