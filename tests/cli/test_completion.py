"""Shells complete commands, options and files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli_program import Program

PROGRAM = [sys.executable, "-c", "from retroact.cli import main; main()"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str, program: Program) -> None:
    made = program("completion", shell)
    assert made.code == 0
    assert f"_RETROACT_COMPLETE={shell}_complete" in made.out
    found = shutil.which(shell)
    if found is not None:
        subprocess.run([found, "-n"], input=made.out, text=True, check=True, timeout=30)


def test_another_shell_is_refused(program: Program) -> None:
    refused = program("completion", "tcsh")
    assert refused.code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in refused.err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("retroact ver", ["plain,verify"]),
        ("retroact run x.csv --quie", ["plain,--quiet"]),
        ("retroact run x.csv --format p", ["plain,parquet"]),
        ("retroact completion z", ["plain,zsh"]),
        ("retroact run sho", ["file,sho"]),
    ],
)
def test_what_is_completed(words: str, found: list[str], folder: Path) -> None:
    environment = {
        "_RETROACT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "PYTHONPATH": ":".join(sys.path),
    }
    answer = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, timeout=60)
    assert answer.stdout.split() == found
