"""Another version of the tz database."""

import shutil
import zoneinfo
from pathlib import Path

import pytest
import tzdata


@pytest.fixture
def rules(tmp_path):
    """Gives Europe/Berlin the rules of another zone, as a later version of the database may."""
    usual = zoneinfo.TZPATH

    def change(other):
        folder = tmp_path / "zones" / "Europe"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(tzdata.__file__).parent / "zoneinfo" / other, folder / "Berlin")
        zoneinfo.reset_tzpath([str(folder.parent)])
        zoneinfo.ZoneInfo.clear_cache()

    yield change
    zoneinfo.reset_tzpath(usual)
    zoneinfo.ZoneInfo.clear_cache()
