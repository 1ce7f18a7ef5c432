import sys
from pathlib import Path

from hypothesis import settings

for helpers in ("testing", "support"):
    sys.path.insert(0, str(Path(__file__).parent / helpers))

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

settings.register_profile("default", deadline=None)
settings.load_profile("default")
