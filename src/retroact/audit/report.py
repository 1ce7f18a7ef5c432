"""The report of an audit: what is claimed, under which model, what was tried and found; signed, and comparable.

It holds no key and no user's record: all histories of an audit are generated. A signature by an unknown key shows only
that the report is complete.
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Literal

import msgspec

from ..errors import InputError
from ..escape import printable
from ..store.signed_statement import Signed
from ..stream import Specification
from ..stream.stored import written
from .claims import Obligation, StatedClaim, claim_of, exact, model_of, obligations_of
from .result import Result, Verdict, decimal
from .target import Target

LIMIT = 1 << 25
# Two runs on one machine agree; elsewhere sums may round in another order.
TOLERANCE = 1e-3
NEGLIGIBLE = 1e-9
PACKAGES = ("numpy", "scipy", "scikit-learn", "msgspec", "cryptography")

_number = re.compile(r"(?a)\d+(?:\.\d+)?(?:e-?\d+)?")

Outcome = Literal["passed", "violation", "void"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What determines a run, apart from the specification."""

    seed: int
    effort: str
    confidence: str
    only: str | None = None
    """One test alone."""


class Environment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where it ran; not compared. Never a path nor the name of a machine."""

    versions: dict[str, str]
    platform: str
    cores: int
    seconds: str


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that an audit says. ``specification`` is JSON inside a string, since the order of its fields matters.

    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=100)
    >>> report = report_on(Target.stream(spec), [], seed=1, effort="quick", confidence=0.999, seconds=2.0)
    >>> verify(sign(report, bytes(32)), place="report.json") == report
    True
    >>> report.verdict
    'void'
    """

    format: Literal["retroact audit report"] = "retroact audit report"
    version: Literal[1] = 1
    program: str
    target: str
    claim: StatedClaim
    model: list[str]
    obligations: list[Obligation] = []
    settings: Settings
    specification: str | None = None
    results: list[Result]
    environment: Environment

    @property
    def verdict(self) -> Outcome:
        """A violation decides; an audit that missed a planted bug, or passed no test, is void."""
        if self.violations:
            return "violation"
        return "void" if self.voids or not self.count("passed") else "passed"

    @property
    def violations(self) -> list[Result]:
        return [result for result in self.results if result.verdict == "violation"]

    @property
    def voids(self) -> list[Result]:
        return [result for result in self.results if result.void]

    @property
    def judged(self) -> list[Result]:
        """Tests that could be run on this target."""
        return [result for result in self.results if result.verdict != "not applicable"]

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict == verdict for result in self.results)

    @property
    def tests(self) -> int:
        return len(self.results)

    @property
    def bounds(self) -> int:
        """How many tests may be wrong with probability 1 - confidence each."""
        return len(self.judged)

    @property
    def false_alarm(self) -> float:
        """At most the probability that a correct target is accused by any of them."""
        return min(1.0, self.bounds * (1 - float(self.settings.confidence)))

    def specified(self, place: str = "report") -> Specification:
        """The specification, to run the audit again."""
        try:
            if self.specification is None:
                raise InputError("expected a specification, found none: its target was not made from one")
            return Specification.from_dict(msgspec.json.decode(self.specification))
        except InputError as error:
            wrong = error
        except msgspec.DecodeError as error:
            wrong = InputError(f"expected JSON, found something else: {error}")
        except RecursionError:
            wrong = InputError("expected a specification, found JSON that is nested too deeply")
        raise wrong.under("specification").found_in(place)


_reports = Signed("report", Report, LIMIT)


def report_on(
    target: Target,
    results: Sequence[Result],
    *,
    seed: int,
    effort: str,
    confidence: float,
    seconds: float,
    only: str | None = None,
) -> Report:
    """The report on the results of a target."""
    from .. import __version__

    spec = target.specification
    tables = None if spec is None else written(spec)
    return Report(
        program=__version__,
        target=target.name,
        claim=claim_of(target.claim, target.retroactivity, keyed=target.keyed),
        model=model_of(target),
        obligations=[] if spec is None else obligations_of(spec),
        settings=Settings(seed=seed, effort=effort, confidence=exact(confidence), only=only),
        specification=None if tables is None else msgspec.json.encode(tables).decode(),
        results=list(results),
        environment=_environment(seconds),
    )


def public_key(secret: bytes) -> str:
    """The public key, in hexadecimal, that reports signed with the secret are verified with."""
    return _reports.public_key(secret)


def sign(report: Report, secret: bytes) -> bytes:
    """The report as one line of canonical JSON with its public key and signature."""
    return _reports.sign(report, secret)


def verify(content: bytes, *, place: str, public_key: str | None = None) -> Report:
    """The report in ``content``, if it is well formed and its signature holds; see `store.signed_statement`."""
    report = _reports.verify(content, place=place, public_key=public_key)
    _check(report.settings, f"{place}, settings")
    return report


def _check(settings: Settings, place: str) -> None:
    """Whether an audit can be run with them."""
    from .run import EFFORTS, TESTS

    if settings.seed.bit_length() > 64:
        raise InputError("expected a seed of at most 64 bits, found a larger one", place=f"{place}.seed")
    if settings.effort not in EFFORTS:
        raise InputError(f"expected one of {', '.join(EFFORTS)}, found {settings.effort!r}", place=f"{place}.effort")
    confidence = settings.confidence
    if not _number.fullmatch(confidence) or not 0.75 <= float(confidence) < 1:
        message = f"expected a number from 0.75 to below 1, found {confidence!r}"
        raise InputError(message, place=f"{place}.confidence")
    if settings.only is not None and settings.only not in TESTS:
        raise InputError(f"expected one of {', '.join(TESTS)}, found {settings.only!r}", place=f"{place}.only")


def signer(content: bytes, *, place: str) -> str:
    """The public key that a report says it is signed with."""
    key: str = _reports.read(content, place=place).public_key
    return key


def compare(old: Report, new: Report) -> list[str]:
    """What is not the same in two runs, a line for each; nothing where the second reproduces the first.

    Claims, settings, verdicts, numbers of runs and counterexamples must be equal, and measured numbers close; words too
    where the same programs wrote them (`same_programs`). The environment is not compared. Lines are `printable`.
    """
    words, fields = same_programs(old, new), ("target", "claim", "model", "obligations", "settings", "specification")
    both = [{name: getattr(report, name) for name in (*fields, "verdict")} for report in (old, new)]
    out = list(_differing(*both, exact=True))
    before, after = _by_name(old.results), _by_name(new.results)
    for name in dict.fromkeys([*before, *after]):
        if name not in after or name not in before:
            out.append(f"{name}: only in the {'first' if name in before else 'second'} report")
            continue
        pair = before[name], after[name]
        out += [f"{name}: {line}" for line in _differing(*map(_exact, pair), exact=True)]
        out += [f"{name}: {line}" for line in _differing(*(_rounded(r, words=words) for r in pair), exact=False)]
    return [printable(line) for line in out]


def same_programs(old: Report, new: Report) -> bool:
    """Whether the same versions wrote both reports: others may word the same findings differently."""
    return (old.program, old.environment.versions) == (new.program, new.environment.versions)


def _by_name(results: Sequence[Result]) -> dict[str, Result]:
    seen: Counter[str] = Counter()
    out = {}
    for result in results:
        name = f"{result.part}, {result.test}"
        seen[name] += 1
        out[name if seen[name] == 1 else f"{name} ({seen[name]})"] = result
    return out


def _exact(result: Result) -> dict[str, object]:
    """What two runs must have in common to the letter."""
    control = None if result.control is None else (result.control.bug, result.control.caught)
    return {name: getattr(result, name) for name in ("verdict", "runs", "counterexample")} | {"control": control}


def _rounded(result: Result, *, words: bool) -> dict[str, object]:
    """Numbers, and words, that may be rounded in another way."""
    said = {name: getattr(result, name) for name in ("question", "tried", "found", "detectable")} if words else {}
    if words:
        said["how the control was caught"] = "" if result.control is None else result.control.how
    measured = {f"measured, {name}": value for name, value in result.measured.items()}
    curves = {f"curve {name}": " ".join(f"({x}, {y})" for x, y in points) for name, points in result.curves.items()}
    return said | measured | curves


def _differing(old: Mapping[str, object], new: Mapping[str, object], *, exact: bool) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        one, other = old.get(name), new.get(name)
        if one != other and (exact or None in (one, other) or not _same_words(str(one), str(other))):
            yield _differs(name, one, other)


def _same_words(one: str, other: str) -> bool:
    """Equal but for numbers, and these close."""
    numbers = zip(_number.findall(one), _number.findall(other), strict=False)
    return _number.sub("0", one) == _number.sub("0", other) and all(
        math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=NEGLIGIBLE) for a, b in numbers
    )


def _differs(name: str, old: object, new: object) -> str:
    one, other = ("nothing" if value is None else str(value) for value in (old, new))
    # of long texts only what is around the first difference
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - 60) if max(len(one), len(other)) > 120 else 0
    return f"{name}: {_brief(one, start)}, now {_brief(other, start)}"


def _brief(text: str, start: int) -> str:
    return f"{'…' if start else ''}{text[start : start + 120]}{'…' if len(text) > start + 120 else ''}"


def _environment(seconds: float) -> Environment:
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    where = f"{platform.system()} {platform.machine()}"
    return Environment(versions=versions, platform=where, cores=os.cpu_count() or 1, seconds=decimal(round(seconds, 1)))
