"""Commands that pages show, run as a reader would."""

import os
import re
import subprocess
import sys
from pathlib import Path

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")


def run(command: str, folder: Path) -> str:
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
        "NO_COLOR": "1",
    }  # fmt: skip
    environment.pop("RETROACT_KEY", None)
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    lines = (line.rstrip() for line in (done.stdout + done.stderr).strip("\n").split("\n"))
    return "\n".join(line for line in lines if not line.startswith("progress: "))  # those depend on the machine


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
