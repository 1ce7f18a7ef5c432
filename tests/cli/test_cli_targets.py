"""Where commands may write: every option of every command that writes, against everything that a stream needs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import retroact as ra
from retroact.files import AtomicFile
from retroact.store.targets import check_targets
from support.cli_program import CLOSE, SPEC, Program, add, lines

EVENTS = lines(add(subject="anna", id="o-1"), add("FR", 7, subject="ben"), CLOSE, add(subject="carl"))
ERASE = ("erase", "orders", "--subject", "anna", "--request", "r-1", "--close", "--receipt")
# every option of every command that writes, with {} for the file
COMMANDS = {
    "run --out": ("run", "events.jsonl", "--spec", "shop.toml", "--store", "orders", "--out", "{}"),
    "run --out without a store": ("run", "events.jsonl", "--spec", "shop.toml", "--key-file", "new.key", "--out", "{}"),
    "run --out of a new store": ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--out", "{}"),
    "export --out": ("export", "orders", "--out", "{}"),
    "erase --receipt": (*ERASE, "{}"),
    "audit --out": ("audit", "shop.toml", "--key-file", "audit.key", "--out", "{}"),
    "audit --html": ("audit", "shop.toml", "--out", "report.json", "--html", "{}"),
    "demo --out": ("demo", "--rounds", 10, "--out", "{}"),
}
CREATING = {
    "run --key-file": ("run", "events.jsonl", "--spec", "shop.toml", "--key-file", "{}"),
    "run --store --key-file": ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--key-file", "{}"),
    "run --store --fence": ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--fence", "{}"),
    "audit --key-file": ("audit", "shop.toml", "--key-file", "{}"),
}
OWN = ("orders.key", "orders.fence", "orders.fence.lock", "shop.toml", "orders/data.sqlite", "orders/journal.sqlite",
       "orders/lock", "orders/data.sqlite-wal", "orders/new.json", "orders/more/new.json")  # fmt: skip
OTHERS = ("other.key", "other.fence", "other.fence.lock", "other.toml", "other/data.sqlite", "other/journal.sqlite",
          "other/data.sqlite-wal", "other/data.sqlite-shm", "other/new.json", "loose.sqlite")  # fmt: skip


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams: one closed, and one whose process was stopped with its logs not cut."""
    from retroact.cli import main

    place = tmp_path_factory.mktemp("streams") / "place"
    place.mkdir()
    (place / "shop.toml").write_text(SPEC)
    (place / "other.toml").write_text(SPEC)
    (place / "events.jsonl").write_text(EVENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name in ("RETROACT_KEY", "RETROACT_KEY_COMMAND"):
            patch.delenv(name, raising=False)
        for name in ("orders", "open"):
            with pytest.raises(SystemExit) as ended:
                main(["run", "events.jsonl", "--spec", "shop.toml", "--store", name, "-q", "--out", "releases.jsonl"])
            assert ended.value.code == 0
        with ra.Stream.open("open") as stream:
            stream.add({"country": "DE", "amount": 3})
            shutil.copytree("open", "other")
            for suffix in ("key", "fence"):
                shutil.copy2(f"open.{suffix}", f"other.{suffix}")
        for name in ("orders.fence.lock", "other.fence.lock"):
            Path(name).touch()  # as some systems have it
    for path in (place / "open", *place.glob("open.*")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copy2(place / "orders" / "data.sqlite", place / "loose.sqlite")
    assert (place / "other" / "data.sqlite-wal").stat().st_size > 0
    (place / "orders" / "data.sqlite-wal").touch()  # as a killed process may leave it
    (place / "orders" / "more").mkdir()
    shutil.copytree(place, place.with_name("kept"))
    return place


@pytest.fixture
def place(streams: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As it was made, where it was made: a key drives one stream in one place."""
    monkeypatch.delenv("RETROACT_KEY_COMMAND", raising=False)
    shutil.rmtree(streams)
    shutil.copytree(streams.with_name("kept"), streams)
    monkeypatch.chdir(streams)
    return streams


def content(folder: Path) -> dict[str, object]:
    """Everything in a folder: names, links, bytes and inodes."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (path.stat().st_ino, path.read_bytes() if path.is_file() else None)
    return found


def spellings(folder: Path, name: str) -> Iterator[str]:
    """One file under its own name, another spelling, through a link, a link to its folder, and as a hard link."""
    links = folder / "links"
    links.mkdir(exist_ok=True)
    plain = name.replace("/", "-")
    yield name
    yield f"./links/../{name}"
    (links / f"soft-{plain}").symlink_to(Path("..") / name)
    yield f"links/soft-{plain}"
    if not (links / "folder").exists():
        (links / "folder").symlink_to("..")
    yield f"links/folder/{name}"
    if (folder / name).exists():
        os.link(folder / name, links / f"hard-{plain}.json")
        yield f"links/hard-{plain}.json"


def still_works(program: Program, folder: Path) -> None:
    shutil.rmtree(folder / "links", ignore_errors=True)  # a fence has one name
    with (folder / "events.jsonl").open("a") as file:
        file.write(lines(CLOSE))
    ended = program("run", "events.jsonl", "--store", "orders", "-q")
    assert (ended.code, ended.err) == (0, "")
    assert {release["round"] for release in ended.releases} == {2}
    assert program("verify", "orders").code == 0
    assert program("verify", "other").code in (0, 2)


def some(folder: Path, names: list[str]) -> Iterator[str]:
    """Each under its own name and one other, so that all spellings come up."""
    for number, name in enumerate(names):
        own, *others = spellings(folder, name)
        yield own
        yield others[number % len(others)]


def unchanged(program: Program, folder: Path, path: str, command: tuple[object, ...], *, code: int = 2) -> None:
    before = content(folder)
    ended = program(*(str(part).format(path) for part in command))
    assert ended.code == code, (path, ended)
    assert path.removeprefix("./") in ended.err
    assert content(folder) == before, path


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_a_stream_needs_is_written_over(program: Program, place: Path, command: str) -> None:
    for path in list(some(place, [*OWN, *OTHERS])):
        if not path.startswith("links/hard") or (place / path).stat().st_size:
            # nothing tells what an empty file is; it is replaced, which leaves its other names alone
            unchanged(program, place, path, COMMANDS[command])
    still_works(program, place)


def test_by_whatever_name(place: Path) -> None:
    for name in [*OWN, *OTHERS]:
        for path in spellings(place, name):
            if not path.startswith("links/hard") or (place / path).stat().st_size:
                with pytest.raises(ra.InputError):
                    check_targets([("--out", Path(path))], store="orders")
                with pytest.raises(ra.InputError):
                    check_targets([("--out", Path(path))])


@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.startswith(("audit", "demo"))])
def test_the_source_is_not_written_over(program: Program, place: Path, command: str) -> None:
    for path in list(spellings(place, "events.jsonl")):
        if command.startswith(("run", "audit", "demo")):
            unchanged(program, place, path, COMMANDS[command])
        else:  # known from the store, which is opened for that
            ended = program(*(str(part).format(path) for part in COMMANDS[command]))
            assert (ended.code, "the source events.jsonl" in ended.err) == (2, True)
            assert (place / path).read_text() == EVENTS
    assert program("erase", "orders", "--status").out == ""
    still_works(program, place)


@pytest.mark.parametrize("command", CREATING)
def test_keys_and_fences_are_made_nowhere_else(program: Program, place: Path, command: str) -> None:
    (place / "notes.txt").write_text("call anna")
    names = [*OTHERS, "orders/new.json", "shop.toml", "notes.txt"]
    names.remove("other.fence" if "fence" in command else "other.key")  # these are read, and written as what they are
    names += ["third/new"] * ("third" in CREATING[command]) + ["events.jsonl"] * ("audit" not in command)
    for path in list(some(place, names)):
        empty = (place / path).exists() and not (place / path).stat().st_size
        if "fence" not in command or not ("notes" in path or empty):  # read as a fence, which it is not
            unchanged(program, place, path, CREATING[command])
    still_works(program, place)


def test_a_folder_of_receipts(program: Program, place: Path) -> None:
    (place / "list.csv").write_text("subject,request\nanna,r-1\nben,r-2\n")
    (place / "link").symlink_to(".")
    command = ("erase", "orders", "--from", "list.csv", "--receipt", "{}")
    for folder in ("orders", "link/orders", "other", "link/../place/other", "orders/more"):
        unchanged(program, place, folder, command)
    # a receipt of the folder that is a link to what the stream needs: all are looked at before the first is entered
    receipts = place / "receipts"
    receipts.mkdir()
    with ra.Stream.open("orders") as orders:
        second = orders.erase(subject="ben", request="r-2", dry_run=True).now.content.hex()
    for name in (*OWN, "events.jsonl", "list.csv"):
        (receipts / f"{second}.json").symlink_to(place / name)
        ended = program(*(part.format("receipts") for part in command))
        assert (ended.code, f"{second}.json" in ended.err) == (2, True), ended
        assert [path.name for path in receipts.iterdir()] == [f"{second}.json"]
        assert program("erase", "orders", "--status").out == ""
        (receipts / f"{second}.json").unlink()
    assert program(*(part.format("receipts") for part in command)).code == 0
    assert len(list(receipts.iterdir())) == 2
    still_works(program, place)


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "shop.toml", "--out", "r", "--html", "links/soft"),
        ("audit", "shop.toml", "--out", "r", "--html", "./r"),
        ("audit", "shop.toml", "--key-file", "r", "--html", "links/soft"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--key-file", "r", "--out", "links/soft"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--key-file", "r", "--out", "r"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--fence", "r", "--out", "links/soft"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--fence", "r", "--key-file", "links/soft"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--fence", "r", "--out", "r.lock"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--out", "third.key"),
        ("run", "events.jsonl", "--spec", "shop.toml", "--store", "third", "--out", "THIRD.fence"),
    ],
)
def test_two_targets_of_one_command_differ(program: Program, place: Path, arguments: tuple[str, ...]) -> None:
    (place / "links").mkdir()
    (place / "links" / "soft").symlink_to("../r")
    before = content(place)
    ended = program(*arguments)
    assert ended.code == 2
    assert "expected another file than the" in ended.err
    assert content(place) == before


def test_in_python_as_well(place: Path) -> None:
    spec = {"schema": {"n": ra.Integer(0, 9)}, "statistics": {"c": ra.Count()}, "epsilon": 1.0, "horizon": 9}
    before = content(place)
    for more in (
        {"key_file": "other/new.key"}, {"fence": "orders/new.fence"}, {"key_file": "x", "fence": "x"},
        {"where": "other/third", "key_file": "x.key", "fence": "x.fence"},
        {"fence": "other.key"}, {"key_file": "shop.toml"}, {"key_file": "none/x"},
        {"fence": "third/fence"}, {"key_file": "other.fence"},
    ):  # fmt: skip
        with pytest.raises(ra.InputError):
            ra.Stream.open(**{"where": "third", **spec, **more})
        assert content(place) == before
    with ra.Stream.open("orders") as orders, pytest.raises(ra.InputError, match="stream in"):
        orders.successor(epsilon=1.0, where="third", key_file="orders/new.key")
    assert not (place / "third").exists()


@pytest.mark.parametrize("command", [*COMMANDS, "run --key-file"])
def test_what_cannot_be_written_is_named(program: Program, place: Path, command: str) -> None:
    (place / "folder").mkdir()
    (place / "loop").symlink_to("loop")
    for path in ("folder", "none/x.json", "n" * 300, "shop.toml/x", "loop"):
        if path != "folder" or command != "erase --receipt":
            unchanged(program, place, path, (COMMANDS | CREATING)[command])
    still_works(program, place)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", ["run --out", "export --out", "erase --receipt", "demo --out"])
def test_a_device_that_is_full(program: Program, place: Path, command: str) -> None:
    (place / "full").symlink_to("/dev/full")
    (place / "more.jsonl").write_text(EVENTS + lines(CLOSE))
    given = [str(part).format("full").replace("events", "more") for part in COMMANDS[command]]
    ended = program(*given)
    assert (ended.code, "full: no space left on device" in ended.err) == (2, True), ended
    assert os.readlink("full") == "/dev/full"
    assert program("verify", "orders").code == 0
    if command == "erase --receipt":
        # asked again, it writes the receipt
        assert program(*ERASE, "receipt.json").code == 0
        assert program("verify", "receipt.json", "--stream", "orders").code == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden")
def test_a_folder_that_may_not_be_written_to(program: Program, place: Path) -> None:
    (place / "closed").mkdir(mode=0o500)
    for command, arguments in COMMANDS.items():
        ended = program(*(str(part).format("closed/x.json") for part in arguments))
        assert (ended.code, "closed/x.json: permission denied" in ended.err) == (2, True), command


def test_a_write_that_fails_leaves_what_was_there(
    program: Program, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of receipts, pages and complete outputs: the old file, or the new one."""
    (place / "kept").write_text("as it was")

    def fail(part: AtomicFile) -> None:
        part.file.flush()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AtomicFile, "sync", fail)
    for command in ("run --out without a store", "export --out", "erase --receipt", "demo --out"):
        ended = program(*(str(part).format("kept") for part in COMMANDS[command]))
        assert (ended.code, "no space left on device" in ended.err) == (2, True), command
        assert (place / "kept").read_text() == "as it was"
    assert not list(place.glob(".*.part"))
    monkeypatch.undo()
    monkeypatch.chdir(place)
    assert program(*ERASE, "receipt.json").code == 0


def test_modes(program: Program, place: Path) -> None:
    """A file that is there leaves its mode to the one in its place; a new one has the usual mode; a key is private."""
    (place / "private.jsonl").touch(mode=0o640)
    (place / "private.jsonl").chmod(0o640)
    old = os.umask(0o027)
    try:
        for path in ("private.jsonl", "new.jsonl"):
            assert program("export", "orders", "--out", path).code == 0
            assert stat.S_IMODE((place / path).stat().st_mode) == 0o640
    finally:
        os.umask(old)
    assert program("run", "events.jsonl", "--spec", "shop.toml", "--key-file", "x.key", "--out", "y", "-q").code == 0
    assert stat.S_IMODE((place / "x.key").stat().st_mode) == 0o600


def test_standard_output_and_input_are_files_too(place: Path) -> None:
    program = [sys.executable, "-m", "retroact", "run", "-", "--spec", "shop.toml", "--out"]
    (place / "in.jsonl").write_text(EVENTS)

    def run(out: str, target: str) -> subprocess.CompletedProcess[bytes]:
        with (place / "in.jsonl").open("rb") as source, (place / target).open("ab") as file:
            return subprocess.run([*program, out], stdin=source, stdout=file, stderr=subprocess.PIPE, check=False)

    assert (run("table", "table").returncode, run("in.jsonl", "table").returncode) == (2, 2)
    assert (place / "in.jsonl").read_text() == EVENTS
    assert run("out.jsonl", "table").returncode == 0
    assert json.loads((place / "out.jsonl").read_text().splitlines()[0])["round"] == 1


def test_a_store_in_postgresql_has_its_key_and_fence_here(program: Program, place: Path) -> None:
    """Refused before anything is connected to: there is no such server."""
    url = "postgresql://nobody@localhost:1/shop#orders"
    for path in ("orders.key", "orders.fence", "events.jsonl", "shop.toml", "other/new.json"):
        unchanged(program, place, path, ("run", "events.jsonl", "--spec", "shop.toml", "--store", url, "--out", "{}"))
    for path in ("orders.key", "orders.fence", "other.key", "other/data.sqlite"):
        unchanged(program, place, path, ("export", url, "--out", "{}"))
        unchanged(program, place, path, ("erase", url, "--subject", "anna", "--receipt", "{}"))
    for name in ("third.key", "third.fence"):  # yet to be made
        third = url.replace("orders", "third")
        unchanged(program, place, name, ("run", "events.jsonl", "--spec", "shop.toml", "--store", third, "--out", "{}"))
