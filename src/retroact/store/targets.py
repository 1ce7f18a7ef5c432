"""Where a command may write: never over what a stream needs, under any name, and never twice to the same place."""

from __future__ import annotations

import os
import stat
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..files import AtomicFile, is_pipe_or_device, os_errors

POSTGRES = ("postgresql://", "postgres://")
KINDS = {"key file": ("a key",), "fence": ("a fence",), "lock of the fence": ("a lock", "the lock of a fence")}
Targets = Iterable[tuple[str, Path | None]]
STORE = ("data.sqlite", "journal.sqlite", "lock")
"""A folder with any two of these holds a stream."""
LIMIT = 1 << 20
SQLITE = {b"SQLite format 3\0": "a database", b"\x37\x7f\x06\x82": "a log of a database",
          b"\x37\x7f\x06\x83": "a log of a database", b"\x18\xe2\x2d\0": "an index of a log of a database"}  # fmt: skip


class Identity(NamedTuple):
    """A file by device and inode, whatever its name; one that does not exist by its folder and name."""

    device: int
    inode: int
    name: str = ""


def identity(path: Path) -> Identity:
    """
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> identity(folder / "x.key") == identity(folder / ".." / folder.name / "X.key")
    True
    """
    rest: list[str] = []
    real = Path(os.path.realpath(path))
    while True:
        try:
            about = os.stat(real)
        except (FileNotFoundError, NotADirectoryError):
            rest.append(real.name)
            real = real.parent
        else:
            # some file systems ignore case and Unicode form
            name = unicodedata.normalize("NFC", "/".join(reversed(rest))).casefold()
            return Identity(about.st_dev, about.st_ino, name)


def files_of(where: str | Path | None, key_file: str | Path | None, fence: str | Path | None) -> dict[str, Path]:
    """The files of a stream outside its store, whether they exist or not."""
    if where is None:
        return {} if key_file is None else {"key file": Path(key_file)}
    key = with_ending(default_base(where), ".key") if key_file is None else Path(key_file)
    barrier = fence_of(key) if fence is None else Path(fence)
    return {"key file": key, "fence": barrier, "lock of the fence": with_ending(barrier, ".lock")}


def default_base(where: str | Path) -> Path:
    """The default path of key and fence, without suffix: next to the store."""
    text = str(where)
    if text.startswith(POSTGRES):
        return Path(text.partition("#")[2] or "retroact")
    folder = Path(where)
    return folder.parent / folder.resolve().name


def fence_of(path: Path) -> Path:
    """The default fence of a key or a folder."""
    return path.with_name(f"{path.name.removesuffix('.key')}.fence")


def with_ending(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def check_targets(
    targets: Targets = (),
    *,
    used: Mapping[str, Path | None] | None = None,
    store: str | Path | None = None,
    key_file: str | Path | None = None,
    fence: str | Path | None = None,
    folders: bool = False,
) -> None:
    """Before anything is done, refuse to write over what a command uses, into its store, over a file of any other
    stream, twice to the same place, or where no file can be made.

    Targets are options and their files, or folders for several files if ``folders`` is set. Key and fence are targets
    too if they do not exist yet.
    """
    own = files_of(store, key_file, fence)
    others = {name: path for name, path in (used or {}).items() if path is not None}
    folder = None if store is None or str(store).startswith(POSTGRES) else identity(Path(store))
    asked = [(option, path) for option, path in targets if path is not None and not is_pipe_or_device(path)]
    _refuse(asked, {**others, **own}, folder)
    if folder is not None and folder.name and store is not None and (found := _stream_part(Path(store), None)):
        raise InputError(f"expected a separate place, got {found}", source=str(store))
    new: dict[str, Path] = {}
    for name, path in own.items():
        with os_errors(path, name):
            if not path.exists():
                new[name] = path
    there = {name: path for name, path in own.items() if name not in new}
    _refuse(new.items(), {**others, **there}, folder)
    reserved = {identity(path): name for name, path in others.items()}
    for name, path in there.items():
        with os_errors(path, name):
            other, kind = reserved.get(identity(path)), kind_of(path)
        if other is not None:
            raise InputError(f"expected another file than the {other}", place=name, source=str(path))
        if kind not in (None, *KINDS[name]):
            raise InputError(f"expected {KINDS[name][0]}, got {kind}", place=name, source=str(path))
    given = {"key file": key_file, "fence": fence}
    for option, path in [*asked, *((name, path) for name, path in new.items() if given.get(name) is not None)]:
        with os_errors(path, option):
            if not folders or not path.is_dir():
                with AtomicFile(path):
                    pass


def _refuse(targets: Iterable[tuple[str, Path]], used: Mapping[str, Path], folder: Identity | None) -> None:
    others = {identity(path): name for name, path in used.items()}
    seen: dict[Identity, str] = {}
    for option, path in targets:
        with os_errors(path, option):
            this = identity(path)
            taken = others.get(this) or seen.get(this)
            if taken is not None:
                raise InputError(f"expected another file than the {taken}", place=option, source=str(path))
            found = _stream_part(path, folder)
        if found is not None:
            raise InputError(f"expected a file that no stream needs, got {found}", place=option, source=str(path))
        seen[this] = f"one for {option}"
        if any(this[:2] == (about.st_dev, about.st_ino) and not this.name for about in _standard()):
            raise InputError("expected a file that nothing else is written to", place=option, source=str(path))


def kind_of(path: Path) -> str | None:
    """What a file is to a stream, in words: by its content, or by its name if that may be damaged."""
    from ..coins.keyring import secret_in

    real = Path(os.path.realpath(path))
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            return None
        with real.open("rb") as file:
            content = file.read(LIMIT)
    except FileNotFoundError:
        return None
    if real.suffix == ".fence" or _is_fence(content):
        return "a fence"
    for magic, kind in SQLITE.items():
        if content.startswith(magic):
            return kind
    if real.suffix == ".lock" and kind_of(real.with_suffix("")) == "a fence":
        return "the lock of a fence"
    if secret_in(content) is not None:
        return "a key"
    if real.suffix == ".toml" or _is_specification(content):
        return "a specification"
    return None


def _stream_part(path: Path, own: Identity | None) -> str | None:
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        is_store = sum((folder / name).exists() for name in STORE) > 1
        if is_store or (own is not None and identity(folder) == own):
            return f"a part of the stream in {folder}"
    return kind_of(path)


def _standard() -> Iterator[os.stat_result]:
    """The files of standard output and error."""
    for number in (1, 2):
        with suppress(OSError):
            yield os.fstat(number)


def _is_fence(content: bytes) -> bool:
    import msgspec

    try:
        mark = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(mark, dict) and {"stream", "round", "salt"} <= mark.keys()


def _is_specification(content: bytes) -> bool:
    try:
        tables = tomllib.loads(content.decode())
    except ValueError:
        return False
    return {"schema", "statistics"} <= tables.keys()
