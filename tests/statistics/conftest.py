import pytest


@pytest.fixture(autouse=True)
def searches(near_changes: None) -> None:
    """Every check of a statistic looks for the worst change."""
