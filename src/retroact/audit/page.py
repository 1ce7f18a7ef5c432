"""The page of an audit, for people who answer for privacy: one file that asks for nothing, on screen and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from retroact.escape import markup

from . import page_words as words
from .page_style import STYLE
from .pictures import pictures
from .report import Report
from .result import Control, Part, Result

PARTS: dict[Part, str] = {
    "retroactivity": "Retroactivity",
    "privacy": "Privacy",
    "reconstruction": "Reconstruction",
}


def page(report: Report, *, public_key: str | None = None) -> str:
    """The same bytes for the same report; ``public_key`` is the one it was signed with."""
    title = words.TITLES[report.verdict]
    sections = [
        _header(report, title),
        _claimed(report),
        _model(report),
        _tried(report),
        _detectable(report),
        _found(report),
        _gallery(report),
        _not_shown(),
        _check(report, public_key),
        _glossary(),
        _footer(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>Retroact audit of {markup(report.target)}: {markup(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        "<body>\n<main>\n" + "\n".join(section for section in sections if section) + "\n</main>\n</body>\n</html>\n"
    )


def _header(report: Report, title: str) -> str:
    controls = [result.control for result in report.results if result.control is not None]
    caught = sum(control.caught for control in controls)
    kind = {"passed": "yes", "violation": "no", "void": "void"}[report.verdict]
    delta = f"δ = {report.claim.delta}, for one operation" if report.claim.delta != "0" else "for one operation"
    cards = [
        (kind, words.VERDICTS[report.verdict], f"verdict on “{report.target}”"),
        ("", f"{len(report.judged):,} tests run", _counted(report)),
        ("" if caught == len(controls) else "void", f"{caught:,} of {len(controls):,}", "planted bugs caught"),
        ("", f"ε = {report.claim.epsilon}", delta),
    ]
    items = "".join(
        f"<li{_kind(kind)}><b>{markup(number)}</b><span>{markup(text)}</span></li>" for kind, number, text in cards
    )
    return (
        '<header><p class="brand">Retroact<span class="badge">audit report</span></p>'
        f'<h1>{markup(title)}</h1><p class="lead">{markup(words.LEADS[report.verdict])}</p></header>\n'
        f'<ul class="cards">{items}</ul>'
    )


def _counted(report: Report) -> str:
    return ", ".join(f"{report.count(verdict):,} {verdict}" for verdict in words.ORDER)


def _claimed(report: Report) -> str:
    claim = report.claim
    facts = [
        ("Privacy", f"ε = {claim.epsilon}, δ = {claim.delta}, over the whole published sequence"),
        *([("It follows from", claim.measure)] if claim.measure != f"ε = {claim.epsilon}" else []),
        ("For", claim.unit),
        ("Against", words.ADAPTIVE if claim.adaptive else words.FIXED),
        ("Retroactivity", claim.retroactivity),
        *(("Promised by the operator, not checked", promise) for promise in claim.promises),
    ]
    head = ("Statistic", "Rests on", "Noise", "Sensitivity", "Law", "Share of the budget")
    rows = [(o.statistic, o.theorem, o.noise, o.sensitivity, o.law, o.share) for o in report.obligations]
    owed = f"<h3>What each statistic owes to the claim</h3>{_table(head, rows)}" if rows else ""
    return f"<h2>What is claimed</h2>\n{_facts(facts)}{owed}"


def _model(report: Report) -> str:
    return f"<h2>Under which model</h2>\n{_list(report.model)}"


def _tried(report: Report) -> str:
    rows = [(r.test, r.question, r.tried, f"{r.runs:,}") for r in report.results]
    head = ("Test", "Question", "What was done", "Runs")
    return f"<h2>What was tried</h2>\n<p>{markup(words.TRIED)}</p>{_table(head, rows, numbers=(3,))}"


def _detectable(report: Report) -> str:
    text = words.DETECTABLE.format(
        confidence=report.settings.confidence, bounds=report.bounds, false_alarm=f"{report.false_alarm:.3g}"
    )
    head = ("Test", "Smallest effect that would have shown", "Bug planted on purpose", "Caught", "How")
    rows = [(r.test, r.detectable, *_control(r.control)) for r in report.judged]
    return f"<h2>What could have been detected</h2>\n<p>{markup(text)}</p>{_table(head, rows, marks=(3,))}"


def _control(control: Control | None) -> tuple[str, str, str]:
    return ("none", "–", "") if control is None else (control.bug, "yes" if control.caught else "NO", control.how)


def _found(report: Report) -> str:
    out = ["<h2>What was found</h2>"]
    for part, title in PARTS.items():
        results = [result for result in report.results if result.part == part]
        if not results:
            continue
        head = ("Test", "Verdict", "Runs", "Found", "Would have shown", "Planted bug caught")
        body = "".join(
            f'<tr><th scope="row">{markup(r.test)}</th><td class="mark-cell {_verdict(r).replace(" ", "-")}">'
            f'{markup(_verdict(r))}</td><td class="number">{r.runs:,}</td><td>{markup(r.found)}</td>'
            f'<td>{markup(r.detectable)}</td><td class="mark-cell">{_control(r.control)[1]}</td></tr>'
            for r in results
        )
        out.append(f"<h3>{title}</h3>{_rows(head, body, numbers=(2,))}")
        out += [_counterexample(result) for result in results if result.counterexample]
    measured = [(r.test, name, value) for r in report.results for name, value in sorted(r.measured.items())]
    if measured:
        table = _table(("Test", "Quantity", "Value"), measured, numbers=(2,))
        out.append(f"<details><summary>All measured numbers</summary>{table}</details>")
    return "\n".join(out)


def _counterexample(result: Result) -> str:
    lines = "\n".join(map(markup, result.counterexample))
    return f"<p>Counterexample to “{markup(result.test)}”:</p>\n<pre><code>{lines}</code></pre>"


def _verdict(result: Result) -> str:
    return "void" if result.void and result.verdict != "violation" else result.verdict


def _gallery(report: Report) -> str:
    figures: dict[str, list[str]] = {kind: [] for kind in words.CAPTIONS}
    for number, result in enumerate(report.results):
        for drawn in pictures(result, f"p{number}"):
            kind = next(kind for kind in words.CAPTIONS if f"-{kind}-title" in drawn)
            caption = f"<b>{markup(result.test)}</b>{markup(words.CAPTIONS[kind])}"
            figures[kind].append(f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>")
    drawings = "".join(chain.from_iterable(figures.values()))
    return f'<h2>Pictures</h2>\n<div class="gallery">{drawings}</div>' if drawings else ""


def _not_shown() -> str:
    return f"<h2>What this does not show</h2>\n{_list(words.NOT_SHOWN)}"


def _check(report: Report, public_key: str | None) -> str:
    signed = (
        "This page is a rendering of the file <code>report.json</code>, which is signed. "
        + (f'Its public key: <code class="key">{markup(public_key)}</code>. ' if public_key else "")
        + "A signature shows who made the report only if the public key is known from elsewhere."
    )
    command = "retroact audit --reproduce report.json" + (f" --public-key {public_key}" if public_key else "")
    again = words.AGAIN if report.specification is not None else words.NOT_AGAIN
    code = f"<pre><code>{markup(command)}</code></pre>\n" if report.specification is not None else ""
    return f"<h2>How to check this report</h2>\n<p>{signed}</p>\n{code}<p>{markup(again)}</p>"


def _glossary() -> str:
    return f"<h2>Six words</h2>\n{_facts(words.GLOSSARY)}"


def _footer(report: Report) -> str:
    settings, where = report.settings, report.environment
    versions = ", ".join(f"{name} {version}" for name, version in sorted(where.versions.items()))
    text = (
        f"Made by retroact {report.program}, seed {settings.seed}, effort {settings.effort}, confidence "
        f"{settings.confidence} for each test; {where.seconds} seconds on {where.cores} cores, {where.platform}; "
        f"{versions}. This page loads nothing and sends nothing."
    )
    return f"<footer>{markup(text)}</footer>"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return f'<dl class="facts">{"".join(f"<dt>{markup(a)}</dt><dd>{markup(b)}</dd>" for a, b in facts)}</dl>'


def _list(texts: Iterable[str]) -> str:
    return f'<ul class="plain">{"".join(f"<li>{markup(text)}</li>" for text in texts)}</ul>'


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = (), marks: Sequence[int] = ()
) -> str:
    kinds = {**dict.fromkeys(numbers, "number"), **dict.fromkeys(marks, "mark-cell")}
    body = "".join(
        f'<tr><th scope="row">{markup(row[0])}</th>'
        + "".join(f"<td{_kind(kinds.get(i, ''))}>{markup(cell)}</td>" for i, cell in enumerate(row[1:], 1))
        + "</tr>"
        for row in rows
    )
    return _rows(head, body, numbers=numbers)


def _rows(head: Sequence[str], body: str, *, numbers: Sequence[int] = ()) -> str:
    top = "".join(
        f'<th scope="col"{_kind("number" if i in numbers else "")}>{markup(cell)}</th>' for i, cell in enumerate(head)
    )
    return f'<div class="scroll"><table class="words"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _kind(name: str) -> str:
    return f' class="{name}"' if name else ""
