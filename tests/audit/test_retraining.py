"""What perfect retraining gives away, what streams do not, and that the pictures are current."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from attack_pictures import STYLE
from retraining import (
    RIDGE,
    average_releases,
    choose_queries,
    count_tables,
    difference_counts,
    invert_ridge,
    read_by_median,
)
from retroact.audit import Seeds

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"


def test_exact_tables_show_every_deleted_record_and_streams_none():
    found = difference_counts(Seeds(1))
    assert (found.retrained, found.retrained_records) == (1.0, found.deletions)
    assert found.stream_records == 0
    assert 0.4 < found.stream < 0.62


def test_a_stream_with_hardly_any_noise_is_read_like_retraining():
    """So it is the noise that hides the records, not the attack that fails."""
    found = difference_counts(Seeds(1), deletions=5, epsilon=1000.0)
    assert found.stream_records == 5
    rows = average_releases(Seeds(1), n=32, deletions=(0, 2), epsilon=1000.0)
    assert [row.stream for row in rows] == [1.0, 1.0]


def test_exact_tables_are_those_of_the_surviving_records():
    tables = count_tables(Seeds(2), records=50, deletions=3, epsilon=1000.0, delta=1e-6)
    assert np.abs(tables.exact - tables.published).max() < 3
    assert (np.diff(tables.exact, axis=0) == -tables.deleted).all()


def test_the_identity_behind_the_ridge_attack():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(200, 4)), random.normal(size=200)

    def weights(first):
        return np.linalg.solve(x[first:].T @ x[first:] + RIDGE * np.eye(4), x[first:].T @ y[first:])

    left = (x[1:].T @ x[1:] + RIDGE * np.eye(4)) @ (weights(0) - weights(1))
    assert np.allclose(left, x[0] * (y[0] - x[0] @ weights(0)))


def test_a_retrained_model_shows_the_deleted_record_and_a_model_from_a_stream_does_not():
    found = invert_ridge(Seeds(3))
    assert found.cosine > 0.99
    assert found.target_off < 0.1
    assert abs(found.stream_cosine) < 0.5
    assert found.stream_model_error < 1.2 * found.model_error


def test_medians_show_values_of_others():
    assert read_by_median(Seeds(4)) == 16
    assert read_by_median(Seeds(4), own=10) == 6


def test_fresh_noise_is_averaged_away_and_kept_noise_is_not():
    rows = average_releases(Seeds(5), n=48, deletions=(0, 64, 400), repeats=2)
    assert rows[0].fresh == rows[0].kept
    assert rows[-1].fresh > 0.85
    assert rows[-1].kept == rows[0].kept
    assert max(row.stream for row in rows) < 0.73


def test_chosen_queries_recover_everything():
    rows = choose_queries(Seeds(6), n=50)
    assert rows[-1] == (400, 1.0)
    assert choose_queries(Seeds(6), n=50, epsilon=0.01)[-1][1] < 0.8


def program():
    spec = importlib.util.spec_from_file_location("attacks_program", ROOT / "benchmarks" / "attacks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["attack-transition", "attack-differencing", "attack-deletions"])
def test_pictures_have_a_title_a_description_and_the_style_of_today(name):
    source = (PICTURES / f"{name}.svg").read_text()
    root = ElementTree.fromstring(source)
    assert [child.tag.split("}")[1] for child in root[:2]] == ["title", "desc"]
    assert STYLE in source


def test_the_picture_of_one_deletion_is_current():
    assert (PICTURES / "attack-differencing.svg").read_text() == program().draw_differencing()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attack-transition", "attack-deletions"])
def test_the_other_pictures_are_current(name):
    assert (PICTURES / f"{name}.svg").read_text() == program().PICTURES[name]()
