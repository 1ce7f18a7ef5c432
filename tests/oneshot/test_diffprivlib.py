"""diffprivlib as a one-shot algorithm, for real: in an environment of its own, since it needs an older scikit-learn."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from retroact.errors import InputError
from retroact.oneshot import Diffprivlib

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def happened():
    python = ROOT / ".venv-diffprivlib" / "bin" / "python"
    if not python.exists():
        subprocess.run(["make", "-s", "-C", str(ROOT), ".venv-diffprivlib/.installed"], check=True, timeout=600)
    done = subprocess.run(
        [str(python), str(HERE / "diffprivlib_program.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_contract_is_the_estimators_for_a_record_in_the_place_of_another(happened):
    assert happened["contract"] == ["2", "0"]
    assert happened["substitution"] is True
    assert happened["keyed"] is False
    assert happened["spec"]["type"] == "diffprivlib"
    assert happened["spec"]["parameters"]["bounds"] == "(0, 10)"
    assert "accountant" not in happened["repr"]
    assert "expected the epsilon that StandardScaler spends, 2, got 1" in happened["epsilon"]


def test_answers(happened):
    means = happened["means"]
    assert all(4.5 < mean < 5.5 for mean in means)
    assert len(set(means)) == 3, "every run draws noise of its own"
    assert all(0.3 < part < 0.95 for part in happened["components"][0])
    assert happened["shape"] == [1, 3]
    assert happened["fitted"] is False, "the estimator that was handed in is left alone"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("leak", "got PrivacyLeakWarning"),
        ("leak when run", "expected an answer from StandardScaler for any records, got PrivacyLeakWarning"),
        ("none", "expected at least one record, got none"),
        ("seeded", "expected no random_state"),
        ("no privacy", "expected an estimator of epsilon above 0 and up to 1,000, got inf"),
        ("other", "expected a diffprivlib estimator, got object"),
        ("fields", "expected a list of fields, got 'x'"),
        ("read", "expected names of fitted attributes or a function"),
        ("text", "expected fields of numbers, got Text()"),
        ("unknown", "expected one of the fields"),
        ("attribute", "got AttributeError"),
    ],
)
def test_refusals(happened, case, words):
    assert happened[case] is not None, "it was accepted"
    assert words in happened[case]


def test_without_the_library_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    with pytest.raises(InputError, match=r"install retroact\[diffprivlib\]"):
        Diffprivlib(object(), ["x"], read=["mean_"])


def test_an_estimator_in_a_stream_sees_samples_of_one_size_and_answers_bottom_for_fewer(happened):
    first, second = happened["stream"]
    assert first == "⊥"
    assert 4 < second["mean_"][0] < 6
    assert "in the place of another" in happened["guarantee"]
    assert "retroactive in law, not in bytes" in happened["guarantee"]
    assert "always have the same size" in happened["any size"]


def test_estimators_that_spend_over_their_epsilon_are_refused(happened):
    assert len(happened["overspending"]) == 5
    assert all("expected an estimator that keeps to its epsilon" in told for told in happened["overspending"])
