"""`retroact audit`: try to break every promise of a stream, and write a signed report; or run one again and compare."""

from __future__ import annotations

import importlib.util
import os
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from retroact.cli.console import console_for, message, plain, say
from retroact.cli.files import opened, put
from retroact.cli.notes import Notes, Progress
from retroact.cli.options import QuietOption, SpecArgument, command
from retroact.cli.specification import DEFAULT_FILE, Asked
from retroact.coins.keyring import from_file
from retroact.errors import InputError, RetroactError, VerificationError
from retroact.files import os_errors
from retroact.store.targets import check_targets
from retroact.stream import Specification

if TYPE_CHECKING:
    from retroact.audit.report import Report

PURPOSE = "audit report"
NEEDED = {"scipy": "scipy", "sklearn": "scikit-learn"}


class Effort(StrEnum):
    quick = "quick"
    normal = "normal"
    thorough = "thorough"


@command
def audit(
    spec: SpecArgument = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The signed report; appears whole or not at all.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="The report as a page with pictures.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page when it is done.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Another audit; 1 if absent.")] = None,
    effort: Annotated[Effort | None, typer.Option(help="How many runs; normal if absent.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if absent.")] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sign by a key derived from this one; created if absent.")
    ] = None,
    quiet: QuietOption = False,
    reproduce: Annotated[Path | None, typer.Option(metavar="REPORT", help="Run a report again and compare.")] = None,
    public_key: Annotated[str | None, typer.Option(metavar="HEX", help="Whose signature is expected.")] = None,
) -> None:
    """Try to break every promise of a stream: retroactivity, privacy, reconstruction. Needs retroact[audit].

    All histories are generated and all keys thrown away: no data are needed, and none are read.

    Every test is also run against a bug planted on purpose; a test that misses it is void. An audit finds violations;
    it never proves that there are none.

    Exit codes: 0 passed or reproduced, 2 bad input, 4 a violation, a void test, or not reproduced.

    \b
    Examples:
      retroact audit retroact.toml --out report.json --html report.html --key-file audit.key
      retroact audit --reproduce report.json
    """
    if reproduce is not None:
        given = {"SPEC": spec, "--out": out, "--html": html, "--open": open_page, "--seed": seed, "--effort": effort,
                 "--key-file": key_file}  # fmt: skip
        for name, value in given.items():
            if value is not None and value is not False:
                raise InputError(f"expected no {name} beside --reproduce: the report says it", place=name)
        _check_installed()
        _reproduce(reproduce, public_key, workers=workers, quiet=quiet)
        return
    targets = [("--out", out), ("--html", html)]
    check_targets(targets, used={"specification": spec or DEFAULT_FILE}, key_file=key_file)
    if open_page and html is None:
        raise InputError("expected --html FILE beside --open", place="--open")
    _check_installed()
    specification, name = _specification(spec)
    # opened before the work, which may take hours; put in their places after it
    with opened((out, "--out"), (html, "--html")) as outputs:
        secret, whose = _secret(key_file, public_key)
        report = _run(
            specification, name=name, seed=1 if seed is None else seed, effort=(effort or Effort.normal).value,
            workers=workers, quiet=quiet,
        )  # fmt: skip
        failure = _failure(report)
        try:
            try:
                _show(report)
            finally:
                put(outputs, _contents(report, out, html, secret))
        except (RetroactError, OSError) as error:
            raise error if failure is None else ExceptionGroup("an audit", [failure, error]) from None
    if out is not None and not quiet:
        say(whose, err=True)
    if html is not None and open_page:
        webbrowser.open(html.resolve().as_uri())
    if failure is not None:
        raise failure


def _specification(spec: Path | None) -> tuple[Specification, str]:
    if spec is None and not DEFAULT_FILE.is_file():
        raise InputError("expected a specification file: retroact audit FILE, or retroact.toml in this folder")
    name = (spec or DEFAULT_FILE).stem.encode(errors="replace").decode()
    return Asked(spec).specification(), name


def _secret(key_file: Path | None, expected: str | None) -> tuple[bytes, str]:
    """What a report is signed with, and a line on whose signature that is."""
    from retroact.audit.report import public_key

    if key_file is None:
        if expected is not None:
            raise InputError("expected --key-file FILE beside --public-key", place="--public-key")
        return os.urandom(32), (
            "note: signed by a throw-away key: this shows that the report is whole, not whose it is (see --key-file)"
        )
    key, created = from_file(key_file)
    secret = key.derive(PURPOSE)
    if expected is not None and public_key(secret) != expected:
        raise InputError(f"expected the key of {expected}, got that of {public_key(secret)}", place="--key-file")
    where = "created in" if created else "from"
    return secret, f"note: signed by a key derived from the one {where} {key_file}; public key {public_key(secret)}"


def _run(specification: Specification, *, workers: int | None, quiet: bool, **settings: Any) -> Report:
    from retroact.audit.run import audit_stream

    with Progress(Notes(quiet=quiet)) as bar:
        return audit_stream(
            specification,
            workers=workers or os.cpu_count() or 1,
            progress=lambda done, total, text: bar.update(done, text, total),
            **settings,
        )


def _check_installed() -> None:
    missing = [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise InputError(f"expected {' and '.join(missing)}, which an audit needs: install retroact[audit]")


def _reproduce(path: Path, public_key: str | None, *, workers: int | None, quiet: bool) -> None:
    from retroact.audit.report import LIMIT, compare, same_programs, signer, verify

    with os_errors(path, "--reproduce"), path.open("rb") as file:
        content = file.read(LIMIT + 1)
    old = verify(content, place=str(path), public_key=public_key)
    settings = old.settings
    new = _run(
        old.specified(str(path)), name=old.target, seed=settings.seed, effort=settings.effort,
        confidence=float(settings.confidence), workers=workers, quiet=quiet, only=settings.only,
    )  # fmt: skip
    _show(new)
    whose = "by the expected key" if public_key else f"by {signer(content, place=str(path))}, whoever that is"
    say(f"{path}: the signature holds, {whose}")
    differences = compare(old, new)
    for line in differences:
        say(f"differs: {line}")
    if not same_programs(old, new):
        say("note: words were not compared, since other versions of the programs wrote them")
    if differences:
        made = old.program
        versions = "" if made == new.program else f" (made by retroact {made}, this is {new.program})"
        raise VerificationError(f"expected the same results again, found {len(differences):,} that differ{versions}")
    say(f"reproduced: all {old.tests:,} tests gave the same again; verdict: {new.verdict}")


def _show(report: Report) -> None:
    """A row for each test, and the claim that they were held against."""
    console = console_for("stdout")
    console.print(_table(report))
    for result in report.violations:
        message(console, f"violation, {result.test}: {result.found}", "red")
    delta = f", δ = {report.claim.delta}" if report.claim.delta != "0" else ""
    message(console, f"claimed: ε = {report.claim.epsilon}{delta} for {report.claim.unit}")
    caught = [result.control.caught for result in report.results if result.control is not None]
    message(
        console,
        f"{report.verdict}: {report.count('passed'):,} of {report.tests:,} tests passed, {len(report.violations):,} "
        f"found a violation, {_silent(report)}; {sum(caught):,} of {len(caught):,} planted bugs were caught",
    )


def _silent(report: Report) -> str:
    return f"{report.count('inconclusive'):,} inconclusive, {report.count('not applicable'):,} do not apply"


def _table(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("test", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("would have shown", overflow="fold")
    table.add_column("planted bug", no_wrap=True)
    for result in report.results:
        control = "–" if result.control is None else "caught" if result.control.caught else "MISSED"
        table.add_row(
            plain(result.test),
            result.verdict,
            f"{result.runs:,}",
            plain(_first_sentence(result.detectable)),
            plain(control),
        )
    return table


def _first_sentence(text: str) -> str:
    """The report has the rest.

    >>> _first_sentence("A factor of 1.5 would have shown. Others would not.")
    'A factor of 1.5 would have shown'
    """
    return text.split(". ")[0].removesuffix(".")


def _failure(report: Report) -> VerificationError | None:
    """An audit that did not pass ends the program with exit code 4, after all is written."""
    names = ", ".join(result.test for result in report.violations or report.voids)
    if report.verdict == "violation":
        return VerificationError(f"expected every promise to hold, found a violation by: {names}")
    if report.voids:
        return VerificationError(f"expected every planted bug to be caught; this audit says nothing: {names}")
    if report.verdict == "void":
        return VerificationError(f"expected a test to pass; this audit says nothing: {_silent(report)}")
    return None


def _contents(report: Report, out: Path | None, html: Path | None, secret: bytes) -> list[bytes]:
    """What is written to the files that were asked for."""
    from retroact.audit.report import public_key, sign

    contents = [] if out is None else [sign(report, secret)]
    if html is not None:
        from retroact.audit.page import page

        # without the report there is no signature that the key could be of
        contents.append(page(report, public_key=None if out is None else public_key(secret)).encode())
    return contents
