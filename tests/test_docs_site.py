"""The site of the docs: it builds without a warning, loads nothing from elsewhere, and shows what really happens."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.console import check_commands

ROOT = Path(__file__).parent.parent
WITH_COMMANDS = [
    "howto-backups", "howto-dashboards", "howto-epsilon", "howto-erasure", "howto-groups", "howto-own-file",
]  # fmt: skip


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_pages_show_what_happens(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    assert check_commands((ROOT / "docs" / f"{page}.md").read_text(), tmp_path)


def test_the_tutorial_shows_what_happens(tmp_path: Path) -> None:
    """As a reader would follow it: the specification that the page shows is written where the page shows it."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    before, specification, after = re.split(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    assert check_commands(before, tmp_path) >= 5
    (tmp_path / "retroact.toml").write_text(specification)
    assert check_commands(after, tmp_path) >= 15


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.name: path.read_text() for path in tmp_path.glob("*.html")}
    assert {"index.html", "specification.html", "api.html", "glossary.html", "performance.html"} <= pages.keys()
    for name, page in pages.items():
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?([^\s\">]+)", page)
        assert not [target for target in loaded if "//" in target], name
    for kind in ("quantiles", "ratio", "category", "window_sample"):
        assert f'type = "{kind}"' in pages["specification.html"].replace("&quot;", '"')
