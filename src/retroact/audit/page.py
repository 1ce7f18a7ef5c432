"""The page of an audit, for privacy officers: one self-contained file, for screen and paper."""

from __future__ import annotations

from ..report.page import render
from .pictures import pictures
from .report import Report
from .result import Control, Part, Result, Verdict

PARTS: tuple[Part, ...] = ("retroactivity", "privacy", "reconstruction")
VERDICTS: tuple[Verdict, ...] = ("passed", "violation", "inconclusive", "not applicable")
ADAPTIVE = "attackers who choose later additions and deletions after seeing earlier answers, too"
FIXED = "attackers who fix all additions and deletions beforehand"


def page(report: Report, *, public_key: str | None = None) -> str:
    """The same bytes for the same report; ``public_key`` is the one it was signed with."""
    results = report.results
    controls = [result.control.caught for result in results if result.control is not None]
    figures = [(kind, r.test, svg) for i, r in enumerate(results) for kind, svg in pictures(r, f"p{i}").items()]
    return render(
        "audit.html",
        report=report,
        public_key=public_key,
        counted=", ".join(f"{report.count(verdict):,} {verdict}" for verdict in VERDICTS),
        caught=sum(controls),
        controls=len(controls),
        claimed=_claimed(report),
        obligations=[(o.statistic, o.theorem, o.noise, o.sensitivity, o.law, o.share) for o in report.obligations],
        tried=[(r.test, r.question, r.tried, f"{r.runs:,}") for r in results],
        detectable=[(r.test, r.detectable, *_control(r.control)) for r in report.judged],
        found=[_found(part, own) for part in PARTS if (own := [r for r in results if r.part == part])],
        measured=[(r.test, name, value) for r in results for name, value in sorted(r.measured.items())],
        figures=figures,
        versions=", ".join(f"{name} {version}" for name, version in sorted(report.environment.versions.items())),
    )


def _claimed(report: Report) -> list[tuple[str, str]]:
    claim = report.claim
    return [
        ("Privacy", f"ε = {claim.epsilon}, δ = {claim.delta}, over the whole published sequence"),
        *([("It follows from", claim.measure)] if claim.measure != f"ε = {claim.epsilon}" else []),
        ("For", claim.unit),
        ("Against", ADAPTIVE if claim.adaptive else FIXED),
        ("Retroactivity", claim.retroactivity),
        *(("Promised by the operator, not checked", promise) for promise in claim.promises),
    ]


def _found(part: Part, results: list[Result]) -> tuple[Part, list[tuple[str, ...]], list[tuple[str, list[str]]]]:
    """Rows of results, and the counterexamples among them."""
    rows: list[tuple[str, ...]] = []
    for r in results:
        rows.append((r.test, _verdict(r), f"{r.runs:,}", r.found, r.detectable, _control(r.control)[1]))
    return part, rows, [(r.test, r.counterexample) for r in results if r.counterexample]


def _control(control: Control | None) -> tuple[str, str, str]:
    return ("none", "–", "") if control is None else (control.bug, "yes" if control.caught else "NO", control.how)


def _verdict(result: Result) -> str:
    return "void" if result.void and result.verdict != "violation" else result.verdict
