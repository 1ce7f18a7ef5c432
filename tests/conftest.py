import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# After everything else: some of its files are named like packages.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

# Stores wait for the disk at every step. No test needs that wait: temporary files lie in memory where there is room.
memory = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(memory)

# One worker a core: no thread of a library competes with the other workers.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

settings.register_profile("default", deadline=None, max_examples=40)
settings.register_profile("full", deadline=None, max_examples=100)
settings.load_profile("default")


def pytest_collection_finish() -> None:
    """All modules and thousands of tests stay to the end: the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def near_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a horizon, searches for the worst change look at four times the first epoch; in the slow tier, at
    sixteen times."""
    from retroact.testing import crossfade_costs

    if settings.default.max_examples < 100:
        monkeypatch.setattr(crossfade_costs, "ENDLESS", 1 << 12)
