"""What the demo prints: a table, what was checked, what it costs, and what to do next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .story import Story, orders, tiny

BIGGEST = 3
NEXT = ("retroact run your_events.jsonl --count --sum amount:0..500", "--subject user_id --epsilon 1")
INDENT = 12


def print_story(story: Story, out: Path, console: Console) -> None:
    console.print(
        f"Published {len(story.plan.rows)} statistics in each of {story.rounds:,} rounds of a made-up shop. The last:",
        highlight=False,
    )
    console.print()
    console.print(_table(story))
    console.print()
    before = f", {story.cancelled:,} cancelled before" if story.cancelled else ""
    erased = f"erased customer {story.customer} ({orders(story.erased)}{before})"
    own, subject = story.guarantee, story.subject_guarantee
    whole = f"customer {story.customer} as a whole ({orders(story.placed)})"
    fits = INDENT + len(" ".join(NEXT)) < console.width
    _say(console, "Erasure", f"Round {story.erased_at:,}: {erased}.")
    print_check(story.customer, story.identical, story.later, console)
    _say(console, "", f"{story.differing:,} of the {story.earlier:,} earlier rounds differ, as they should", "dim")
    _say(console, "Budget", f"ε = {own.epsilon:g}, δ = {tiny(own.delta)} for one order added or removed, whole history")
    _say(console, "", f"ε = {subject.epsilon:.3g} for {whole}: little protection", "dim")
    _say(console, "Page", str(out), "bold")
    _say(console, "Next", (" " if fits else " \\\n    ").join(NEXT), "cyan")


def print_check(customer: int, identical: int, later: int, console: Console) -> None:
    """The twin check, in green or in red."""
    good = identical == later
    subject = f"same stream without customer {customer}:"
    result = f"{identical:,} of {later:,} later rounds identical {'✔' if good else '✘'}"
    fits = INDENT + len(subject) + 2 + len(result) <= console.width
    style = "bold green" if good else "bold red"
    _say(console, "Twin check", Text.assemble(subject, "  " if fits else "\n", (result, style)))


def _table(story: Story) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("statistic", no_wrap=True)
    for head in ("released", "95 % interval", "true (demo only)"):
        table.add_column(head, justify="right", no_wrap=True)
    biggest = sorted(story.countries, key=lambda line: -(line.value or 0))[:BIGGEST]
    for line in [*story.lines, *(replace(line, label=f"orders from {line.label}") for line in biggest)]:
        *shown, true = line.cells
        table.add_row(*shown, Text(true, "dim"))
    table.add_row(Text(f"… and {len(story.countries) - BIGGEST} more countries", "dim"))
    return table


def _say(console: Console, label: str, content: str | Text, style: str = "") -> None:
    """A label and a text, which may run over the edge of the window and is never broken by us."""
    first, *more = (Text(content, style) if isinstance(content, str) else content).split("\n")
    console.print(Text.assemble((f"{label:<{INDENT}}", "bold"), first), soft_wrap=True, highlight=False)
    for line in more:
        console.print(Text.assemble(" " * INDENT, line), soft_wrap=True, highlight=False)
