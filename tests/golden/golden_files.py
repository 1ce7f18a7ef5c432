"""Files of published bytes. Each is written once and never again: its hash is in `.ci/golden.sha256`, which the tests
and `.ci/run` check. What comes to be published later goes into a further file of its own, with streams of its own."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import golden_crossfade
import golden_exponential
import golden_groups
import golden_lapped
import golden_streams

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
HASHES = ROOT / ".ci" / "golden.sha256"

Streams = dict[str, Callable[[], Iterator[bytes]]]
FILES: dict[str, Callable[[], Streams]] = {
    "releases.json": golden_streams.streams,
    "groups.json": golden_groups.streams,
    "lapped.json": golden_lapped.streams,
    "crossfade.json": golden_crossfade.streams,
    "exponential.json": golden_exponential.streams,
}
"""For each file the streams whose releases it holds."""


def texts(releases: Iterable[bytes]) -> list[str]:
    """As a file has them: text where they are text."""
    return [_text(release) for release in releases]


def _text(release: bytes) -> str:
    try:
        return release.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(release).decode()


def stored(file: str) -> dict[str, list[str]]:
    """The releases of each stream; nothing where the file is not written yet."""
    path = FOLDER / file
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def digest(file: str) -> str:
    return hashlib.sha256((FOLDER / file).read_bytes()).hexdigest()


def listed() -> dict[str, str]:
    """The hash of every file that is written, as `sha256sum` has them."""
    lines = HASHES.read_text().splitlines() if HASHES.exists() else []
    pairs = (line.split("  ") for line in lines)
    return {Path(path).name: hash for hash, path in pairs}


def write(file: str) -> None:
    """Once: a file that is there, or was there, is left alone."""
    path = FOLDER / file
    if path.exists() or file in listed():
        raise SystemExit(f"{file} is written already, and is never written again: add a file of its own to FILES")
    found = {name: texts(run()) for name, run in FILES[file]().items()}
    path.write_text(json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    with HASHES.open("a") as hashes:
        hashes.write(f"{digest(file)}  {path.relative_to(ROOT).as_posix()}\n")
