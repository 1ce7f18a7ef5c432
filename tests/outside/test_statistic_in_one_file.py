"""A statistic in one file outside the package: written in a file, planned, run, explained, checked, audited, signed."""

import json
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

import retroact as ra
from retroact.audit.report import sign, verify
from retroact.audit.run import TESTS, audit_stream
from retroact.audit.target import Target
from retroact.audit.work import Piece
from retroact.cli import main
from retroact.testing import check_examples, every_example

pytestmark = pytest.mark.usefixtures("near_changes")

FILE = """
epsilon = 40.0
horizon = 8
law = "laplace"

[schema]
age = { type = "integer", lower = 0, upper = 100 }
amount = { type = "number", lower = 0, upper = 50, step = 0.5 }
country = { type = "category", values = ["DE", "FR"] }

[statistics]
together = { type = "covariance", one = "age", other = "amount", noise = "schauder" }
by_country = { type = "covariance", one = "age", other = "amount", by = "country", noise = "schauder" }
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package, which is one file and its entry point; nothing of it is imported yet."""
    (tmp_path / "measures.py").write_text(Path(__file__).with_name("measures.py").read_text())
    folder = tmp_path / "measures-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: measures\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text("[retroact.statistics]\ncovariance = measures:Covariance\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(p for p in sys.path if p != str(Path(__file__).parent))])
    monkeypatch.setattr(ra.statistics.Statistic, "kinds", dict(ra.statistics.Statistic.kinds))
    ra.statistics.Statistic.kinds.pop("covariance", None)
    monkeypatch.delitem(sys.modules, "measures", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").write_text(FILE)
    yield
    sys.modules.pop("measures", None)


@pytest.fixture
def spec(installed):
    return ra.Specification.from_dict(tomllib.loads(FILE))


def command(capsys, *arguments):
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert not ended.value.code, captured.err
    return captured.out


def test_it_is_loaded_when_a_file_names_it(installed):
    tables = tomllib.loads(FILE)
    del tables["statistics"]
    ra.Specification.from_dict({**tables, "statistics": {"n": {"type": "count"}}})
    assert "measures" not in sys.modules
    spec = ra.Specification.from_dict(tomllib.loads(FILE))
    assert repr(spec.statistics["together"]) == "Covariance('age', 'amount', noise='schauder')"
    # and is written down again
    again = ra.Specification.from_dict({**tables, "statistics": {"c": spec.statistics["together"].spec()}})
    assert again.statistics["c"] == spec.statistics["together"]


def test_a_wrong_argument_is_told_with_the_right_ones(installed):
    with pytest.raises(ra.InputError, match=r"got 'othr' \(did you mean 'other'\?\) - at statistics.together.othr"):
        ra.Specification.from_dict(tomllib.loads(FILE.replace("other", "othr", 1)))


def test_it_is_planned_explained_and_run(installed, capsys):
    assert "together" in command(capsys, "plan", "shop.toml")
    assert "together" in command(capsys, "explain", "shop.toml")
    records = [{"age": age, "amount": age / 2, "country": "DE" if age % 2 else "FR"} for age in range(0, 100, 3)] * 30
    Path("orders.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    out = command(capsys, "run", "orders.jsonl", "--spec", "shop.toml", "--key-file", "shop.key")
    (release,) = [line for line in map(json.loads, out.splitlines()) if line["statistic"] == "together"]
    exact = sum(r["age"] * r["amount"] for r in records) / 1020 - sum(r["age"] for r in records) ** 2 / 2 / 1020**2
    assert release["value"] == pytest.approx(exact, rel=0.2)


def test_its_examples_alone_bring_every_generic_check(spec):
    found = check_examples(type(spec.statistics["together"]), pairs=4, draws=300)
    assert list(found) == ["covariance", "covariance, window"]
    for ran in found.values():
        assert {"twin", "sensitivity", "noise law", "missing values", "published numbers", "published law"} <= set(ran)


def test_its_examples_are_among_all_examples(spec):
    assert {"count", "covariance", "covariance, window"} <= set(every_example())


def test_a_signed_report_names_its_own_theorem_and_who_declared_it(spec):
    report = audit_stream(spec, effort="quick", only="sensitivity")
    assert report.verdict == "passed"
    signed = verify(sign(report, bytes(32)), place="report")
    declared = 'Theorem "linear", with F the rows 1, x, y and xy (declared by measures 3)'
    assert {one.statistic: one.theorem for one in signed.obligations} == {"together": declared, "by_country": declared}


SMALL = {
    "sensitivity": {"pairs": 5},
    "releases": {"histories": 2},
    "noise": {"draws": 4000},
    "published noise": {"draws": 200},
    "twin": {"pairs": 10},
}


@pytest.mark.parametrize("test", SMALL)
def test_a_small_audit_passes_and_catches_its_planted_bugs(spec, test):
    results = Piece(test, TESTS[test].test, Target.stream(spec, name="measures"), SMALL[test]).run(1)
    judged = [result for result in results if result.verdict != "not applicable"]
    assert judged
    assert all(result.verdict == "passed" and result.control.caught for result in judged), judged


@pytest.mark.slow
def test_every_test_of_an_audit_passes(spec):
    assert audit_stream(spec, effort="quick").verdict == "passed"


def test_package_and_version_are_in_the_digest(spec, monkeypatch):
    names = list(spec.statistics)
    assert names == ["together", "by_country"]
    before = [spec.digest(name) for name in names]
    monkeypatch.setattr(type(spec.statistics["together"]), "version", "4")
    assert all(spec.digest(name) != old for name, old in zip(names, before, strict=True))
    monkeypatch.undo()
    assert msgspec.json.encode(spec.statistics["together"].spec()).find(b"measures") == -1
