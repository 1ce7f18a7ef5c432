"""What the source repeats: runs of lines, and names of classes; and files that are long.

`python benchmarks/repeated_lines.py [LINES]`: runs of at least this many equal lines (default: 6). Blanks, comments,
docstrings, imports, signatures and lines with nothing but brackets do not count.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator

from code_lines import ROOT, SOURCE

LONGEST_FILE = 350
SHORTEST_RUN = 6
Line = tuple[int, str]
Place = tuple[str, int]


def source_files() -> dict[str, str]:
    paths = sorted((ROOT / SOURCE).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def counted_lines(text: str) -> list[Line]:
    """Lines that may be compared, with their numbers."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        silent = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if silent or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.FunctionDef):
            left_out.update(range(node.lineno, node.body[0].lineno))
    numbered = ((number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), start=1))
    return [
        (n, line) for n, line in numbered if n not in left_out and any(c.isalnum() for c in line) and line[0] != "#"
    ]


def repeated_runs(files: dict[str, str], length: int = SHORTEST_RUN) -> Iterator[tuple[int, Place, Place]]:
    """Every run of ``length`` lines or more that stands in two places: how many lines, and where it begins."""
    lines = {name: counted_lines(text) for name, text in files.items()}
    where: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, own in lines.items():
        for start in range(len(own) - length + 1):
            where[tuple(line for _, line in own[start : start + length])].append((name, start))
    for places in where.values():
        for i, (name, start) in enumerate(places):
            for other, begin in places[i + 1 :]:
                if start and begin and lines[name][start - 1][1] == lines[other][begin - 1][1]:
                    continue  # within a longer run
                run = 0
                while (
                    start + run < len(lines[name])
                    and begin + run < len(lines[other])
                    and lines[name][start + run][1] == lines[other][begin + run][1]
                ):
                    run += 1
                yield run, (name, lines[name][start][0]), (other, lines[other][begin][0])


def repeated_classes(files: dict[str, str]) -> dict[str, list[Place]]:
    """Names of classes that stand for more than one."""
    found: dict[str, list[Place]] = defaultdict(list)
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append((name, node.lineno))
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def long_files(files: dict[str, str]) -> dict[str, int]:
    lengths = {name: len(text.splitlines()) for name, text in files.items()}
    return {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def main() -> None:
    files = source_files()
    for name, length in long_files(files).items():
        print(f"{length} lines: {name}")
    for name, places in repeated_classes(files).items():
        print(f"class {name}: {', '.join(_place(place) for place in places)}")
    length = int(sys.argv[1]) if len(sys.argv) > 1 else SHORTEST_RUN
    for run, one, other in sorted(repeated_runs(files, length), reverse=True):
        print(f"{run} equal lines: {_place(one)} and {_place(other)}")


def _place(place: Place) -> str:
    return f"{place[0].removeprefix(SOURCE + '/')}:{place[1]}"


if __name__ == "__main__":
    main()
