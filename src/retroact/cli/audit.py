"""`retroact audit`: try to break every promise of a stream, and write a signed report; or run one again and compare."""

from __future__ import annotations

import importlib.util
import os
import webbrowser
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..coins.keyring import from_file
from ..errors import InputError, RetroactError, VerificationError
from ..files import os_errors
from ..store.targets import check_targets
from ..stream import Specification
from .console import console_for, message, say
from .files import opened, put, require_page
from .options import QUIET_HELP, SPEC_HELP, argument, command, flag, option
from .progress import Progress
from .specification import DEFAULT_FILE, SpecOptions
from .table import Kind, table

if TYPE_CHECKING:
    from ..audit.report import Report

PURPOSE = "audit report"
NEEDED = {"scipy": "scipy", "sklearn": "scikit-learn"}
WITH_REPRODUCE = ("reproduce", "public_key", "workers", "quiet")
COLUMNS: dict[str, Kind] = {
    "test": "fold",
    "verdict": "left",
    "runs": "right",
    "smallest detectable effect": "fold",
    "planted bug": "left",
}


class Effort(StrEnum):
    quick = "quick"
    normal = "normal"
    thorough = "thorough"


@dataclass(frozen=True)
class AuditOptions:
    """What to audit, and what to write."""

    spec: Path | None = argument(SPEC_HELP, "SPEC")
    out: Path | None = option("Write the signed report; written atomically.", "FILE")
    html: Path | None = option("Write the report as a page with pictures.", "FILE")
    open: bool = flag("Open the page in a browser.")
    seed: int | None = option("Another seed is another audit. Default: 1.", min=0, max=2**63 - 1)
    effort: Effort | None = option("How many runs. Default: normal.")
    workers: int | None = option("The number of processes. Default: one per core.", min=1)
    key_file: Path | None = option("Sign with a key derived from this one; created if it does not exist.", "FILE")
    quiet: bool = flag(QUIET_HELP, "--quiet", "-q")
    reproduce: Path | None = option("Run a report again and compare the results.", "REPORT")
    public_key: str | None = option("The key that must have signed the report.", "HEX")


@command
def audit(order: AuditOptions) -> None:
    """Try to break every promise of a stream: retroactivity, privacy, resistance to reconstruction. Needs
    retroact[audit].

    All histories are generated and all keys thrown away: no data are needed, and none are read.

    Every test also runs against a bug planted on purpose; a test that misses it is void. An audit finds violations. It
    never proves that there are none.

    Exit codes: 0 passed or reproduced, 2 bad input, 4 a violation, a void test, or not reproduced.

    \b
    Examples:
      retroact audit retroact.toml --out report.json --html report.html --key-file audit.key
      retroact audit --reproduce report.json
    """
    if order.reproduce is not None:
        for name, value in asdict(order).items():
            if name not in WITH_REPRODUCE and value is not None and value is not False:
                given = "SPEC" if name == "spec" else f"--{name.replace('_', '-')}"
                raise InputError(f"expected no {given} with --reproduce: the report says it", place=given)
        _check_installed()
        _reproduce(order.reproduce, order)
        return
    targets = [("--out", order.out), ("--html", order.html)]
    check_targets(targets, used={"specification": order.spec or DEFAULT_FILE}, key_file=order.key_file)
    require_page(order.html)
    if order.open and order.html is None:
        raise InputError("expected --html FILE with --open", place="--open")
    _check_installed()
    if order.spec is None and not DEFAULT_FILE.is_file():
        raise InputError("expected a specification file: retroact audit FILE, or retroact.toml in this folder")
    specification = SpecOptions(order.spec).specification()
    name = (order.spec or DEFAULT_FILE).stem.encode(errors="replace").decode()
    # opened before the work, which may take hours
    with opened((order.out, "--out"), (order.html, "--html")) as outputs:
        secret, whose = _secret(order.key_file, order.public_key)
        seed, effort = 1 if order.seed is None else order.seed, (order.effort or Effort.normal).value
        report = _run(specification, order, name=name, seed=seed, effort=effort)
        failure = _failure(report)
        try:
            try:
                _show(report)
            finally:
                put(outputs, _contents(report, order, secret))
        except (RetroactError, OSError) as error:
            raise error if failure is None else ExceptionGroup("an audit", [failure, error]) from None
    if order.out is not None and not order.quiet:
        say(whose, err=True)
    if order.html is not None and order.open:
        webbrowser.open(order.html.resolve().as_uri())
    if failure is not None:
        raise failure


def _secret(key_file: Path | None, expected: str | None) -> tuple[bytes, str]:
    """The key that signs a report, and a line on whose signature that is."""
    from ..audit.report import public_key

    if key_file is None:
        if expected is not None:
            raise InputError("expected --key-file FILE with --public-key", place="--public-key")
        return os.urandom(32), (
            "note: signed by a throw-away key: this shows that the report is whole, not whose it is (see --key-file)"
        )
    key, created = from_file(key_file)
    secret = key.derive(PURPOSE)
    if expected is not None and public_key(secret) != expected:
        raise InputError(f"expected the key of {expected}, got that of {public_key(secret)}", place="--key-file")
    where = "created in" if created else "from"
    return secret, f"note: signed by a key derived from the one {where} {key_file}; public key {public_key(secret)}"


def _run(specification: Specification, order: AuditOptions, **settings: Any) -> Report:
    from ..audit.run import audit_stream

    with Progress(console_for("stderr"), shown=not order.quiet) as bar:
        return audit_stream(
            specification,
            workers=order.workers or os.cpu_count() or 1,
            progress=lambda done, total, text: bar.update(done, text, total),
            **settings,
        )


def _check_installed() -> None:
    missing = [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise InputError(f"expected {' and '.join(missing)}, which an audit needs: install retroact[audit]")


def _reproduce(path: Path, order: AuditOptions) -> None:
    from ..audit.report import LIMIT, compare, same_programs, signer, verify

    with os_errors(path, "--reproduce"), path.open("rb") as file:
        content = file.read(LIMIT + 1)
    old = verify(content, place=str(path), public_key=order.public_key)
    settings = old.settings
    new = _run(
        old.specified(str(path)), order, name=old.target, seed=settings.seed, effort=settings.effort,
        confidence=float(settings.confidence), only=settings.only,
    )  # fmt: skip
    _show(new)
    whose = "by the expected key" if order.public_key else f"by {signer(content, place=str(path))}, whoever that is"
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
    """A row for each test, and the claim that was tested."""
    console = console_for("stdout")
    rows = []
    for result in report.results:
        control = "–" if result.control is None else "caught" if result.control.caught else "MISSED"
        # the report has the other sentences
        shown = result.detectable.split(". ")[0].removesuffix(".")
        rows.append((result.test, result.verdict, f"{result.runs:,}", shown, control))
    console.lines(table(COLUMNS, rows, width=console.width))
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


def _failure(report: Report) -> VerificationError | None:
    """An audit that did not pass ends with exit code 4, after everything is written."""
    names = ", ".join(result.test for result in report.violations or report.voids)
    if report.verdict == "violation":
        return VerificationError(f"expected every promise to hold, found a violation by: {names}")
    if report.voids:
        return VerificationError(f"expected every planted bug to be caught; this audit says nothing: {names}")
    if report.verdict == "void":
        return VerificationError(f"expected a test to pass; this audit says nothing: {_silent(report)}")
    return None


def _contents(report: Report, order: AuditOptions, secret: bytes) -> list[bytes]:
    """The contents of the files that were asked for."""
    from ..audit.report import public_key, sign

    contents = [] if order.out is None else [sign(report, secret)]
    if order.html is not None:
        from ..audit.page import page

        # without a report there is nothing that the key signed
        contents.append(page(report, public_key=None if order.out is None else public_key(secret)).encode())
    return contents
