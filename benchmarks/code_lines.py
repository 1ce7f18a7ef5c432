"""Lines of code by package, without blanks, comments and docstrings: of the working tree, and of a revision beside it.

`python benchmarks/code_lines.py [REVISION]`
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "src/retroact"
CORE = (
    "root", "schema", "ledger", "coins", "privacy", "noise", "statistics", "oneshot", "stateful", "compilers", "paper",
    "stream", "store", "feeds",
)  # fmt: skip
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    '''
    >>> code_lines('"""What it is."""\\n\\nx = [\\n    1,  # one\\n]\\n"""What x is."""\\n# more\\n')
    3
    '''
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def package(path: str) -> str:
    inside = path.removeprefix(f"{SOURCE}/")
    return inside.partition("/")[0] if "/" in inside else "root"


def in_tree() -> Counter[str]:
    files = sorted((ROOT / SOURCE).rglob("*.py"))
    return _summed({path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files})


def in_revision(revision: str) -> Counter[str]:
    names = _git("ls-tree", "-r", "--name-only", revision, SOURCE).split()
    return _summed({name: _git("show", f"{revision}:{name}") for name in names if name.endswith(".py")})


def _summed(files: dict[str, str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for path, text in files.items():
        found[package(path)] += code_lines(text)
    return found


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def main() -> None:
    after = in_tree()
    before = in_revision(sys.argv[1]) if len(sys.argv) > 1 else after
    others = sorted({*before, *after} - {*CORE})
    print(f"{'package':12} {'before':>8} {'after':>8} {'change':>8}")
    for names, whole in ((CORE, "core"), (others, "others"), ((*CORE, *others), "all")):
        for name in names if whole != "all" else ():
            _print(name, before[name], after[name])
        _print(f"= {whole}", sum(before[name] for name in names), sum(after[name] for name in names))


def _print(name: str, before: int, after: int) -> None:
    print(f"{name:12} {before:8,} {after:8,} {after - before:+8,}")


if __name__ == "__main__":
    main()
