"""Whole audits: of streams, statistics and algorithms; the same on any number of processes."""

import pytest

import retroact as ra
from retroact.audit.run import TESTS, audit_algorithm, audit_statistic, audit_stream
from retroact.audit.target import Target
from retroact.audit.weaker import MakeCount
from retroact.audit.work import Piece, run_pieces
from retroact.errors import InputError
from retroact.privacy import Guarantee, PureDP
from retroact.testing import Shape

SCHEMA = {"age": ra.Integer(0, 120)}


def a_stream(**options):
    budget = {"epsilon": 1.0, "delta": 1e-6, "horizon": 12} | options
    return ra.Specification(SCHEMA, {"n": ra.Count()}, **budget)


def test_an_audit_of_a_stream():
    told = []
    report = audit_stream(a_stream(), effort="quick", progress=lambda *step: told.append(step))
    assert report.verdict == "passed", [r for r in report.results if r.void or r.verdict == "violation"]
    assert {result.part for result in report.results} == {"retroactivity", "privacy", "reconstruction"}
    assert all(result.control.caught for result in report.judged)
    assert all(result.detectable and result.question and result.tried for result in report.results)
    assert [done for done, _, _ in told] == list(range(1, told[0][1] + 1))


def test_the_same_on_one_and_on_two_processes():
    target = Target.stream(a_stream())
    names = ("twin", "likelihood", "sensitivity", "adaptive, window")
    pieces = [Piece(name, TESTS[name].test, target, TESTS[name].quick) for name in names]
    assert run_pieces(pieces, 5, workers=1) == run_pieces(pieces, 5, workers=2)


def test_a_statistic_of_ones_own():
    report = audit_statistic(ra.Sum("age"), SCHEMA, epsilon=0.5, delta=0.0, horizon=8, only="likelihood")
    assert report.verdict == "passed"
    assert report.claim.epsilon == "0.5"


def test_an_algorithm_that_claims_too_much():
    shape = Shape(("x", "y"), rounds=4, ids=0, subjects=0, late=False)
    honest = Guarantee(PureDP(1.0), epsilon=1.0)
    options = {"effort": "quick", "only": "neighbours"}
    assert audit_algorithm(MakeCount(1.0, 4), shape, honest, **options).verdict == "passed"
    report = audit_algorithm(MakeCount(64.0, 4), shape, honest, **options)
    assert report.verdict == "violation"
    assert report.specification is None


def test_functions_that_another_process_cannot_be_given_run_here():
    spec = ra.Specification(SCHEMA, {"n": ra.Count().map(lambda value: value / 2)}, epsilon=1.0, horizon=8)
    report = audit_stream(spec, effort="quick", only="sensitivity", workers=2)
    assert report.verdict == "passed"


def test_rejected_subjects_are_not_needed():
    assert audit_stream(a_stream(after_erasure="reject"), effort="quick", only="twin").verdict == "passed"


@pytest.mark.parametrize(
    ("given", "place"),
    [({"effort": "none"}, "effort"), ({"only": "twins"}, "only"), ({"confidence": 1.0}, "confidence")],
)
def test_bad_settings(given, place):
    with pytest.raises(InputError) as error:
        audit_stream(a_stream(), **given)
    assert error.value.place == place
