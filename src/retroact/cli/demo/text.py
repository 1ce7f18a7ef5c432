"""What the demo prints: a table, what was checked, what it costs, and what to do next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..console import Console
from ..table import GAP, Kind, aligned
from .story import Story, orders, tiny

BIGGEST = 3
NEXT = ("retroact run your_events.jsonl --count --sum amount:0..500", "--subject user_id --epsilon 1")
INDENT = 12
HEADS = ("statistic", "released", "95 % interval", "true (demo only)")
KINDS: tuple[Kind, ...] = ("left", "right", "right", "right")


def print_story(story: Story, out: Path, console: Console) -> None:
    console.print(
        f"Published {len(story.plan.rows)} statistics in each of {story.rounds:,} rounds of a made-up shop. The last:"
    )
    console.lines(["", *_table(story, console), ""])
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
    _say(console, "Twin check", subject + ("  " if fits else "\n") + console.styled(result, style))


def _table(story: Story, console: Console) -> list[str]:
    biggest = sorted(story.countries, key=lambda line: -(line.value or 0))[:BIGGEST]
    lines = [*story.lines, *(replace(line, label=f"orders from {line.label}") for line in biggest)]
    more = (f"… and {len(story.countries) - BIGGEST} more countries", "", "", "")
    rows = [HEADS, *(line.cells for line in lines), more]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body, last = [[*map(aligned, row, KINDS, widths)] for row in rows]
    shown = [GAP.join([*cells, console.styled(true, "dim")]) for *cells, true in body]
    return [console.styled(GAP.join(head), "dim"), *shown, console.styled(GAP.join(last).rstrip(), "dim")]


def _say(console: Console, label: str, content: str, style: str = "") -> None:
    """A label and a text, which may run over the edge of the window and is never broken by us."""
    for line in content.split("\n"):
        console.print(console.styled(f"{label:<{INDENT}}", "bold" if label else "") + console.styled(line, style))
        label = ""
