"""The installed program, as a process of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import retroact as ra
from retroact.cli.main import COMMANDS, _gravest
from retroact.cli.specification import read_toml
from support.cli_program import CLOSE, add, lines

PROGRAM = [sys.executable, "-c", "from retroact.cli import main; main()"]


def retroact(*arguments: object, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    environ = {k: v for k, v in os.environ.items() if k != "RETROACT_KEY"} | environment
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, env=environ)


def history(seed: int, *, without: str | None = None) -> list[dict[str, Any]]:
    """Ten rounds with every kind of event. In the eighth a subject is erased; or it had never been there until then."""
    rng = random.Random(seed)
    events: list[dict[str, Any]] = []
    for round in range(1, 11):
        for number in range(40):
            event = add(rng.choice(["DE", "FR", "US"]), round_cents(rng.uniform(0, 500)))
            event["subject"] = f"u{rng.randrange(6)}"
            if number % 2:
                event["id"] = f"{event['subject']}-{rng.randrange(60)}"
            if number % 7 == 0:
                event["stamp"] = rng.randint(1, round)
            events.append(event)
        id = f"u{rng.randrange(6)}-{rng.randrange(60)}"
        events.append({"op": "delete", "id": id})
        events.append({"op": "delete", "stamp": rng.randint(1, round), "record": {"country": "DE", "amount": 7}})
        if round == 8:
            events = [event for event in events if without is None or event.get("subject") != without]
            events.append({"op": "erase", "subject": "u3"})
        events.append(CLOSE)
    return events


def round_cents(value: float) -> float:
    return round(value, 2)


def by_the_library(events: list[dict[str, Any]], spec: Path, seed: int) -> list[dict[str, Any]]:
    """The same, one call at a time."""
    stream = ra.Stream.from_specification(ra.Specification.from_dict(read_toml(spec)), key=ra.Key.for_testing(seed))
    releases = []
    for event in events:
        given: dict[str, Any] = {key: event[key] for key in ("id", "subject", "stamp") if key in event}
        match event["op"]:
            case "add":
                stream.add(event["record"], **given)
            case "delete":
                stream.delete(event.get("record"), **given)
            case "erase":
                stream.erase(**given)
            case _:
                releases += [release.to_dict() for release in stream.close_round().values()]
    plain: list[dict[str, Any]] = json.loads(json.dumps(releases))
    return plain


def test_releases_are_those_of_the_library(folder: Path) -> None:
    events = history(1)
    (folder / "events.jsonl").write_text(lines(*events))
    ended = retroact("run", "events.jsonl", "--spec", "shop.toml", "--testing-key", 7)
    assert ended.returncode == 0, ended.stderr
    published = by_the_library(events, folder / "shop.toml", 7)
    lines_out = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines_out == [{**line, "testing_key": True} for line in published]
    for part in (b"native JSON lines", b"orders", b"example, line 1", b"do not publish", b"10 of 50 promised rounds"):
        assert part in ended.stderr
    assert b"\x1b[" not in ended.stderr


def test_twin(folder: Path) -> None:
    """With an erased subject and without: the lines from the erasure on are equal, byte for byte."""
    outputs = []
    for name, events in (("with", history(2)), ("without", history(2, without="u3"))):
        (folder / f"{name}.jsonl").write_text(lines(*events))
        made = ("run", f"{name}.jsonl", "--spec", "shop.toml", "--testing-key", 3, "--out", f"{name}.out.jsonl", "-q")
        # in the second there is nobody to erase
        ended = retroact(*made, "--allow-missing")
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
        outputs.append((folder / f"{name}.out.jsonl").read_bytes().splitlines())
    later = [[line for line in output if json.loads(line)["round"] >= 8] for output in outputs]
    assert later[0] == later[1]
    assert len(later[0]) == 3 * 3 + 2
    assert outputs[0] != outputs[1]


def test_standard_input_is_published_as_it_comes(folder: Path) -> None:
    command = [*PROGRAM, "run", "-", "--spec", "shop.toml", "--testing-key", "1", "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines(add(), CLOSE).encode())
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["round"] == 1
    process.stdin.write(lines(add(), CLOSE, {"op": "shut"}).encode())
    out, _ = process.communicate(timeout=30)
    assert json.loads(out.splitlines()[-1])["round"] == 2
    assert process.returncode == 2


def test_an_error_after_closed_rounds(folder: Path) -> None:
    ended = retroact("run", "-", "--spec", "shop.toml", stdin=lines(add(), CLOSE, add(amount="x"), CLOSE).encode())
    assert ended.returncode == 2
    assert {json.loads(line)["round"] for line in ended.stdout.splitlines()} == {1}
    assert b"error: stdin:3: expected a number, got 'x' - at amount\n" in ended.stderr


def test_horizon_exhausted(folder: Path) -> None:
    ended = retroact("run", "-", "--spec", "shop.toml", "--out", "out", stdin=lines(add(), *[CLOSE] * 51).encode())
    assert ended.returncode == 3
    assert b"error: stdin:52: all 50 promised rounds are released" in ended.stderr
    assert ended.stderr.count(b"warning: round 40 of 50") == 1
    assert not (folder / "out").exists()


def test_a_reader_that_leaves_is_no_error(folder: Path) -> None:
    events = lines(*[CLOSE] * 50)
    command = [*PROGRAM, "run", "-", "--spec", "shop.toml", "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(events.encode(), timeout=30)
    assert err == b""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupted(folder: Path) -> None:
    command = [*PROGRAM, "run", "-", "--spec", "shop.toml", "--out", "out"]
    # A shell that runs the tests in the background would have them ignore interrupts, and so their children.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(lines(add(), CLOSE).encode())
    process.stdin.flush()
    while b"fresh key" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert [path.name for path in folder.iterdir()] == ["shop.toml"]


def test_importing_and_help_leave_numpy_alone() -> None:
    code = (
        "import sys; from retroact.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'msgspec', 'cryptography', 'jinja2', 'rich', 'retroact.stream'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30, capture_output=True)


def test_help_and_docs_name_every_command_and_its_module() -> None:
    shown = retroact("--help").stdout.decode()
    modules = {path.stem for path in (Path(ra.__file__).parent / "cli").iterdir()}
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    for name in COMMANDS:
        assert f"  {name} " in shown
        assert name in modules
        assert f"| `retroact {name}` |" in page
    assert b"error: no such command 'rum'. Did you mean 'run'?\nhint: retroact --help\n" in retroact("rum").stderr


def test_of_several_exit_codes_the_gravest_counts() -> None:
    assert [_gravest(2, 4), _gravest(5, 3), _gravest(3, 2), _gravest(5, 2), _gravest(0, 5)] == [4, 3, 2, 2, 5]
    assert (_gravest(0), _gravest(1, 0)) == (0, 1)


def test_lazy_names() -> None:
    code = (
        "import sys, retroact as ra; assert 'numpy' not in sys.modules\n"
        "from retroact import Stream, noise; import retroact.stream\n"
        "assert Stream is retroact.stream.Stream is ra.Stream and noise is ra.noise\n"
        "assert all(hasattr(ra, name) for name in ra.__all__) and {*ra.__all__} <= {*dir(ra)}\n"
        "assert not hasattr(ra, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_version() -> None:
    assert retroact("--version").stdout.decode().strip() == f"retroact {ra.__version__}"
