"""What holds for the project as a whole: layers, docs that run, outputs that are real, locks without addresses."""

import ast
import doctest
import importlib
import math
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retroact
from support.console import check_commands, run

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "retroact"
# Imports go down only: each package may import itself and what stands before it.
LAYERS = [
    "late_names",
    "arrays",
    "escape",
    "errors",
    "messages",
    "log",
    "report",
    "entry_points",
    "params",
    "paper_forms",
    "checks",
    "files",
    "texts",
    "schema",
    "ledger",
    "coins",
    "privacy",
    "noise",
    "oneshot",
    "statistics",
    "stateful",
    "compilers",
    "outputs",
    "store",
    "stream",
    "feeds",
    "sklearn",
    "testing",
    "audit",
    "cli",
    "paper",
]
MODULES = [m.name for m in pkgutil.walk_packages(retroact.__path__, "retroact.") if not m.name.endswith("__main__")]


def imported(path):
    """The packages of retroact that a file imports when it is loaded or run."""
    package = ["retroact", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [module] if module != "retroact" else [f"retroact.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "retroact" and len(parts) > 1:
                yield parts[1]


def test_imports_go_down_only():
    for path in sorted(SOURCE.rglob("*.py")):
        layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if layer not in LAYERS:
            assert layer in ("__init__", "__main__"), f"{path} is in no layer"
            continue
        for other in imported(path):
            if other in LAYERS:
                assert LAYERS.index(other) <= LAYERS.index(layer), f"{path} imports {other}, which is above {layer}"
                assert other != "paper" or layer == "paper", f"{path} imports the paper's own forms"
            elif layer != "cli":
                assert other.startswith("__"), f"{path} imports the public names of the package: {other}"


def test_loading_a_form_of_the_paper_loads_nothing_above_the_compilers():
    for path in (SOURCE / "paper").glob("*.py"):
        for other in set(imported(path)) - {"paper"}:
            assert LAYERS.index(other) <= LAYERS.index("compilers"), f"{path} is a form, and imports {other}"
    loaded = "import sys, retroact.paper_forms as f; f.paper_form('Doubling'); print('retroact.stream' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "False\n"


def test_a_stream_loads_nothing_that_only_some_programs_need():
    """Stores, clusters, pages, files and what errors are worded with come when they are first used."""
    own = ["audit", "cli", "compilers", "feeds", "report", "store", "stream.durable", "statistics.clusters"]
    heavy = [f"retroact.{name}" for name in own]
    heavy += ["cryptography", "difflib", "html", "scipy", "sqlite3", "statistics", "zoneinfo", "pyarrow", "pandas"]
    code = f"import sys, retroact as ra; ra.Stream; print(sorted(set({heavy}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_late_name_is_found_once_and_then_kept():
    assert {"Durable", "KMeans", "feeds"} <= set(dir(retroact))
    assert retroact.Durable is importlib.import_module("retroact.stream.durable").Durable is vars(retroact)["Durable"]
    with pytest.raises(AttributeError, match=r"module 'retroact\.stream' has no attribute 'Durabel'"):
        importlib.import_module("retroact.stream").Durabel  # noqa: B018


def test_an_upward_import_would_be_found(tmp_path):
    assert LAYERS.index("stream") > LAYERS.index("noise")
    assert set(imported(SOURCE / "stream" / "stream.py")) >= {"coins", "ledger", "privacy", "statistics"}


def test_modules_import_one_another_by_relative_names():
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert "retroact" not in {name.split(".")[0] for name in names}, f"{path}:{node.lineno}"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} says nothing of itself"
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_public_names_are_documented():
    for name in retroact.__all__:
        thing = getattr(retroact, name)
        assert (thing.__doc__ or "").strip(), f"retroact.{name} has no docstring"


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"], ids=lambda p: p.name)
def test_python_in_the_docs_runs(page, capsys):
    """And prints what follows it, where a text does."""
    namespace = {}
    for block, printed in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), namespace)
        out = capsys.readouterr().out
        assert not printed or out == printed


def test_the_readme_shows_what_happens(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    text = (ROOT / "README.md").read_text()
    assert check_commands(text, tmp_path) >= 4
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    printed = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "program.py").write_text(program)
    assert run("python program.py", tmp_path) == printed.rstrip("\n")


def test_the_errors_in_the_readme_are_at_most_what_it_says():
    """ "At most" is rounded up, never to the nearest."""
    text = " ".join((ROOT / "README.md").read_text().split())
    stated = re.search(
        r"standard error of at most ([\d.]+) \(δ = 10⁻⁶\) or ([\d.]+) \(δ = 0\); the paper's calibration gives "
        r"(\d+\.\d+)",
        text,
    )
    for said, noise, delta in zip(stated.groups(), ("crossfade", "lapped", "paper"), (1e-6, 0, 0), strict=True):
        spec = retroact.Specification(
            {"v": retroact.Boolean()}, {"n": retroact.Count(noise=noise)}, epsilon=1.0, delta=delta, horizon=65_535
        )
        mechanism = spec.mechanism("n", retroact.Key.for_testing(1).coins("errors"))
        largest = math.sqrt(mechanism.variances_of(0, np.arange(1, 65_536)).max())
        assert largest <= float(said) + (noise == "paper") * 0.05, f"{noise}: {largest} is above {said}"
        assert largest > float(said) - 0.1


def test_links_in_the_docs_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_theory_table_names_things_that_exist():
    text = (ROOT / "docs" / "theory.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    for name in set(re.findall(r"`(test_\w+)", text)):
        assert f"def {name}(" in tests, f"theory.md names {name}, which is nowhere"
    for symbol, path in re.findall(r"`([A-Za-z_][\w.]*)` \(`([\w/]+\.py)`", text):
        assert re.search(rf"\b{symbol.split('.')[-1]}\b", (SOURCE / path).read_text()), f"{path} has no {symbol}"
    for path in set(
        re.findall(
            r"`((?:tests|benchmarks|ledger|noise|coins|privacy|statistics|oneshot|compilers|paper|store|stream)/[\w/]*(?:\.py)?)`",
            text,
        )
    ):
        assert (ROOT / path).exists() or (SOURCE / path).exists(), f"theory.md names {path}, which is nowhere"
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for name in set(re.findall(r"`(?:\w+\.)*(\w+)\(?[^`]*`", text)):
        if not name.startswith("test_") and not (ROOT / "tests" / name).exists():
            assert re.search(rf"\b{name}\b", source), f"theory.md names {name}, which is nowhere"


def test_the_architecture_page_names_files_and_rooms_that_exist():
    """And its rooms are in the order of the layers."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in set(re.findall(r"\b((?:\w+/)+\w+\.py)\b", text)):
        assert (ROOT / path).exists() or (SOURCE / path).exists(), f"architecture.md names {path}, which is nowhere"
    rooms = re.findall(r"^\| (?:root: )?(`.*?`) \|", text, re.MULTILINE)
    named = [name.removesuffix("/") for room in rooms for name in re.findall(r"`([\w/]+)`", room)]
    assert {*named} == {*LAYERS}, "architecture.md has other rooms than there are"
    order = [LAYERS.index(re.search(r"`(\w+)/`", room)[1]) for room in rooms if "/`" in room]
    assert order == sorted(order), "architecture.md has the rooms in another order than the layers"


def test_the_architecture_page_names_symbols_that_exist():
    """A method in the file of its class, a name in the file in brackets after it, and every other name somewhere."""
    page = (ROOT / "docs" / "architecture.md").read_text().replace("```", "")
    files = {path: path.read_text() for folder in (SOURCE, ROOT / "tests") for path in folder.rglob("*.py")}
    known = {word for text in files.values() for word in re.findall(r"\w+", text)} | {path.stem for path in files}
    found = re.findall(r"`([A-Za-z_]\w*(?:\.(?!py\b)\w+)?)(?:\(.*?\))?`(?: \(`((?:\w+/)*\w+\.py)`)?", page)
    assert len(found) > 60
    for name, path in found:
        owner, _, last = name.rpartition(".")
        texts = (
            [text for text in files.values() if re.search(rf"^class {owner}\b", text, re.MULTILINE)] if owner else []
        )
        if path:
            texts = [files[SOURCE / path]]
        words = {word for text in texts for word in re.findall(r"\w+", text)} if texts else known
        assert owner == "stream" or ((texts or not owner) and last in words), f"architecture.md names {name}: nowhere"


def test_the_versioning_page_names_files_that_exist():
    for path in re.findall(r"`((?:\w+/)*\w+\.py)\b", (ROOT / "docs" / "versioning.md").read_text()):
        assert (SOURCE / path).exists(), f"versioning.md names {path}, which is nowhere"


def test_the_citation_has_this_version():
    assert f"version: {retroact.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_locks_hold_hashes_and_no_addresses():
    for lock in (ROOT / "requirements").glob("*.txt"):
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert not re.search(r"://|--index-url|--extra-index-url|--find-links|@ file", text), lock


def test_nothing_stands_twice_and_files_stay_small(monkeypatch):
    """No class name means two things, no run of lines stands in two places, and no file holds two concepts."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    shape = importlib.import_module("repeated_lines")
    files = shape.source_files()
    assert shape.repeated_classes(files) == {}
    assert list(shape.repeated_runs(files)) == []
    assert shape.long_files(files) == {}


def test_what_stands_twice_would_be_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    shape = importlib.import_module("repeated_lines")
    lines = [f"x{i} = f({i})" for i in range(7)]
    indented = [f"    {line}  " for line in lines]
    one = "\n".join(["class A:", "    'What it is.'", *indented])
    other = "\n".join(["def f(", "    y", ") -> None:", *indented[:3], "", "    # why", *indented[3:]])
    files = {"one.py": one, "other.py": other, "third.py": "class A: pass"}
    assert list(shape.repeated_runs(files)) == [(7, ("one.py", 3), ("other.py", 4))]
    assert shape.repeated_classes(files) == {"A": [("one.py", 1), ("third.py", 1)]}
    assert shape.long_files({"long.py": "x\n" * 351}) == {"long.py": 351}


SCRIPT = """
import hashlib, warnings
import numpy as np
import retroact as ra
from retroact.noise import default_process
warnings.simplefilter("ignore")
for newer in ("crossfade", "lapped"):  # of the processes when this was first published
    default_process.PROCESSES.pop(newer)
digest = hashlib.sha256()
for delta in (0.0, 1e-6):
    stream = ra.Stream(
        {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)},
        {"n": ra.Count(), "s": ra.Sum("amount"), "m": ra.Mean("age"), "v": ra.Variance("age"), "w": ra.Count(window=5)},
        epsilon=1.0, delta=delta, horizon=40, key=ra.Key.for_testing(1))
    rng = np.random.default_rng(1)
    for round in range(1, 41):
        ages = rng.integers(0, 120, 50)
        stream.add({"country": [f"c{a % 7}" for a in ages], "amount": ages * 1.25, "age": ages},
                   subject=[f"u{a % 11}" for a in ages])
        if round % 9 == 0:
            stream.erase(subject="u3")
        for release in stream.close_round().values():
            digest.update(release.encode())
            digest.update(repr(release.to_dict()).encode())
print(digest.hexdigest())
"""


BY_KEY = """
import sys
for batch, shuffle in eval(sys.argv[1]):
    digest = hashlib.sha256()
    for delta in (0.0, 1e-6):
        statistics = {
            "q": ra.Quantiles("age", [0.1, 0.5, 0.9], cdf=[20], counts=[(5, 50)]), "d": ra.Distinct("c"),
            "l": ra.Histogram("c", bins=["c1", "c2"], sum="amount"), "dw": ra.Distinct("c", window=4),
            "p": ra.Restated(ra.Sum("amount"), [0, 3]), "pq": ra.Restated(ra.Quantiles("age", [0.5]), [2]),
            "pr": ra.Restated(ra.Count(), list(range(12)), across="rectangle"),
        }
        if delta:
            statistics |= {"h": ra.Histogram("c"), "ph": ra.Restated(ra.Histogram(["c", "age"]), [1])}
        stream = ra.Stream(
            {"c": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}, statistics,
            epsilon=200.0, delta=delta, horizon=40, key=ra.Key.for_testing(1))
        rng = np.random.default_rng(1)
        for round in range(1, 16):
            ages = rng.integers(0, 120, 60)
            if shuffle:
                ages = np.random.default_rng(shuffle * 100 + round).permutation(ages)
            for part in np.array_split(ages, range(batch, 60, batch)):
                stream.add([{"c": f"c{a % 7}", "amount": float(a) * 1.25, "age": int(a)} for a in part],
                           subject=[f"u{a % 11}" for a in part])
            if round % 9 == 0:
                stream.erase(subject="u3")
            for release in stream.close_round().values():
                digest.update(release.encode())
                digest.update(repr(release.to_dict()).encode())
    print(digest.hexdigest())
"""


WHOLE, IN_BATCHES, SHUFFLED = (60, 0), (7, 0), (1, 3)


@pytest.mark.parametrize(
    ("environment", "arrivals"),
    [
        pytest.param({}, [WHOLE, IN_BATCHES, SHUFFLED], id="plain"),
        pytest.param({"PYTHONHASHSEED": "1"}, [WHOLE], id="hash seed 1"),
        pytest.param({"PYTHONHASHSEED": "2"}, [SHUFFLED], id="hash seed 2"),
        pytest.param({"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"}, [WHOLE], id="without vector instructions"),
    ],
)
def test_same_key_and_data_same_bytes(environment, arrivals):
    """Everything published, intervals included, is the same under other hash seeds and other vector instructions, and
    by key also in other batches and another order of arrival."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + BY_KEY, repr(arrivals)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [PUBLISHED, *[PUBLISHED_BY_KEY] * len(arrivals)]


# Of version 2 of the digests: a change here changes every published number under every key.
PUBLISHED = "40e583897da03367aa73654ab36df8dfc60eac195361f6cfc2d7477ac2d3c2a0"
PUBLISHED_BY_KEY = "1160c153adc6a01622344954f98698ae40b0fd055893a65e3831e050522c3233"
