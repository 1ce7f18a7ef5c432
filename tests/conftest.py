import sys
from pathlib import Path

from hypothesis import settings

# After everything else: some of its files are named like packages.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

settings.register_profile("default", deadline=None)
settings.load_profile("default")
