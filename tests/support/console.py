"""Commands that pages show, run as a reader would."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")


def run(command: str, folder: Path) -> str:
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
        "NO_COLOR": "1",
    }  # fmt: skip
    environment.pop("RETROACT_KEY", None)
    if command.startswith("retroact ") and not re.search(r"[|;&<>$`*?~]", command):
        printed = forked(shlex.split(command)[1:], folder, environment)
    else:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
        printed = done.stdout + done.stderr
    lines = (line.rstrip() for line in printed.strip("\n").split("\n"))
    return "\n".join(line for line in lines if not line.startswith("progress: "))  # those depend on the machine


def forked(arguments: list[str], folder: Path, environment: dict[str, str]) -> str:
    """The program in a copy of this process, which need not import it again: standard output, then errors."""
    from retroact.cli import main

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for number, file in ((1, out), (2, err)):
                    os.dup2(file.fileno(), number)
                sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(environment)
                warnings.resetwarnings()
                main(arguments)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return (out.read() + err.read()).decode()


def check_commands(text: str, folder: Path) -> int:
    """Runs every command of the console blocks in a text, and compares what it prints; moments are not compared.
    Returns how many there were."""
    checked = 0
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            printed = run(command, folder)
            assert MOMENT.sub("…", printed) == MOMENT.sub("…", expected.rstrip("\n")), command
            checked += 1
    return checked
