"""Every program in benchmarks/ runs to its end, on the least that it takes. What it measures is for people to read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
# {} is an empty folder. Those with --help need data or programs from outside.
RUNS = [
    "amnesia",
    "attacks {}",
    "audits quick count",
    "cluster_data --help",
    "cluster_peers --help",
    "cluster_pictures {}",
    "cluster_theorem --seeds 1 --most 10",
    "clustering --help",
    "code_lines",
    "compare --help",
    "compiler_pictures {}",
    "coverage --pairs 2 --records 100",
    "defaults 1",
    "distinct --seeds 1 --picture {}/distinct.svg 256",
    "door --rows 2000 --repeats 1",
    "feeds --rows 2000 --lines 2000",
    "gathering",
    "histogram --bins 200",
    "growth --sizes 1000 2000 --picture {}",
    "ids --count 2000 --only large",
    "ingest --count 2000",
    "ledger --count 2000 --repeats 1",
    "models --keys 1 --rows 300 --width 8 --only digits cancer --without-peers",
    "noise 4",
    "noise_pictures {}",
    "passes 2000",
    "pictures {}",
    "quantiles --seeds 1 4",
    "repeated_lines",
    "round",
    "samplers",
    "sampling rates",
    "smoothing --runs 100 --tracker-runs 4 --rounds 7 --additions 100",
    "startup --runs 1",
    "store 2000",
    "windows 4",
]


def test_every_program_is_listed():
    programs = {path.stem for path in BENCHMARKS.glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    assert programs == {run.split()[0] for run in RUNS}


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_it_runs(run, tmp_path):
    name, *arguments = run.format(tmp_path).split()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=600)
    assert ended.returncode == 0, ended.stderr[-2000:]
