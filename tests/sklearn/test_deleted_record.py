"""The attack on models before and after a deletion: exact retraining gives the record away, our releases do not."""

import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::retroact.sklearn.ModelWarning")


def test_a_deleted_record_is_read_off_exact_models_alone():
    attack = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "examples" / "deleted_record.py")))
    X, y, others = attack.prepared(4000, seed=3)
    deleted = list(range(0, 1600, 40))
    exact = attack.guessed(attack.exactly(X, y, deleted), others)
    assert attack.told_apart(exact, X, deleted, seed=4) > 0.98
    private = attack.guessed(attack.privately(X, y, deleted, key=5), others)
    assert attack.told_apart(private, X, deleted, seed=4) < math.e / (1 + math.e)
