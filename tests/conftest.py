import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "testing"))

settings.register_profile("default", deadline=None)
settings.load_profile("default")
