"""The page that the demo writes: one file that asks for nothing, with two pictures and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retroact.escape import markup

from ..report.page_style import STYLE
from .page_countries import countries
from .page_history import history
from .page_story import Story, amount, orders, tiny


def page(story: Story) -> str:
    """The same bytes for the same story."""
    title = f"Erased in round {story.erased_at:,}. As if never there."
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>Retroact demo: {markup(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(
            [
                _header(story, title),
                _explanation(story),
                _history(story),
                _countries(story),
                _published(story),
                _expected(story),
                _guarantee(story),
                _footer(story),
            ]
        )
        + "\n</main>\n</body>\n</html>\n"
    )


def _header(story: Story, title: str) -> str:
    cards = [
        (
            ' class="yes"',
            f"✔ {story.identical:,} of {story.later:,}",
            "later rounds identical to the twin, byte for byte",
        ),
        ("", orders(story.erased), f"of customer {story.customer} erased in round {story.erased_at:,}"),
        (
            "",
            f"ε = {story.guarantee.epsilon:g}",
            f"δ = {tiny(story.guarantee.delta)}, for one order, all rounds together",
        ),
        ("", f"{len(story.plan.rows)} × {story.rounds:,}", "statistics × rounds published"),
    ]
    items = "".join(f"<li{kind}><b>{markup(number)}</b><span>{text}</span></li>" for kind, number, text in cards)
    return (
        '<header><p class="brand">Retroact<span class="badge">demo · all data made up</span></p>'
        f'<h1>{markup(title)}</h1></header>\n<ul class="cards">{items}</ul>'
    )


def explanation(story: Story) -> tuple[tuple[str, str], ...]:
    """In at most 120 words: what is seen, what is private, what is retroactive."""
    return (
        (
            "What is seen",
            f"A shop publishes {len(story.plan.rows)} statistics after each of {story.rounds:,} rounds, while orders "
            "come in and some are cancelled.",
        ),
        (
            "What is private",
            "Every number carries calibrated noise. From all rounds together, nobody can tell with confidence whether "
            "any one order was ever there. Many orders of one person are protected less: see the guarantee.",
        ),
        (
            "What is retroactive",
            f"In round {story.erased_at:,}, customer {story.customer} is erased. From then on every number is exactly "
            "what it would have been had the customer never ordered. The check: the twin, the same shop without this "
            "customer, run under the same secret key.",
        ),
    )


def _explanation(story: Story) -> str:
    parts = "".join(f"<div><dt>{head}</dt><dd>{markup(body)}</dd></div>" for head, body in explanation(story))
    return f'<dl class="explain">{parts}</dl>'


def _history(story: Story) -> str:
    step = max(1, len(story.points) // 10)
    shown = [p for i, p in enumerate(story.points) if i % step == 0 or abs(p.round - story.erased_at + 0.5) < 1]
    rows = [
        (f"{p.round:,}", amount(p.released), f"{amount(p.low)} to {amount(p.high)}", f"{p.true:,}", amount(p.twin),
         amount(p.released - p.twin))
        for p in shown
    ]  # fmt: skip
    head = ("Round", "Published", "95 % interval", "True (demo only)", "Twin published", "Difference")
    return (
        f"<h2>Customer {story.customer} and the twin</h2>\n<figure>{history(story)}"
        f"<figcaption>{story.differing:,} of the {story.earlier:,} rounds before the erasure differ from the twin (the "
        f"first order of customer {story.customer} came in round {story.first_order:,}); none of the {story.later:,} "
        "rounds from it on. Both lines can be drawn only because the data are made up: a real stream has one history, "
        "and its key refuses a second.</figcaption></figure>\n"
        f"<details><summary>The numbers behind this picture</summary>{_table(head, rows)}</details>"
    )


def _countries(story: Story) -> str:
    rows = [(c.label, c.show(c.value), c.interval, c.show(c.true)) for c in story.countries]
    return (
        f"<h2>Orders by country</h2>\n<figure>{countries(story)}<figcaption>Every declared country is "
        "published in every round, empty or not. About 19 in 20 intervals hold the truth.</figcaption></figure>\n"
        "<details><summary>The numbers behind this picture</summary>"
        f"{_table(('Country', 'Published', '95 % interval', 'True (demo only)'), rows)}</details>"
    )


def _published(story: Story) -> str:
    rows = [(s.label, s.show(s.value), s.interval, s.show(s.true)) for s in story.lines]
    head = ("Statistic", "Published", "95 % interval", "True (demo only)")
    return f"<h2>Published in round {story.rounds:,}</h2>\n{_table(head, rows)}"


def _expected(story: Story) -> str:
    total = sum(story.plan.weights.values())
    rows = []
    for row in story.plan.rows:
        label, prefix, digits = story.names[row.statistic]
        rows.append(
            (
                label,
                f"±\u00a0{amount(row.typical_half_width, digits, prefix)}",
                f"±\u00a0{amount(row.half_width, digits, prefix)}",
                "–" if row.simultaneous is None else f"±\u00a0{amount(row.simultaneous, digits, prefix)}",
                f"{story.plan.weights[row.statistic] / total:.0%}",
            )
        )
    head = ("Statistic", "Typical round", "Worst round", "All rounds at once", "Share of budget")
    return (
        "<h2>Expected error, known beforehand</h2>\n"
        f'<p class="soft">From the plan, before any order came in: 95 % of published numbers stay this close '
        f"to the truth (averages: when there are {story.plan.records:,} orders).</p>\n{_table(head, rows)}"
    )


def _guarantee(story: Story) -> str:
    own, subject = story.guarantee, story.subject_guarantee
    cancelled = f" ({orders(story.erased)} erased, {story.cancelled:,} cancelled before)" if story.cancelled else ""
    promises = "".join(f" Promised: {markup(promise)}." for promise in own.promises)
    streams = "also if later orders react to what was published" if own.adaptive else "if orders do not react to it"
    return (
        "<h2>The guarantee</h2>\n"
        f'<div class="promise"><p><b>ε = {own.epsilon:g}, δ = {tiny(own.delta)}</b> for {markup(own.unit)}, over the '
        f"whole published sequence, {streams}.{promises}</p>\n"
        f"<p><b>ε = {subject.epsilon:.3g}, δ = {tiny(subject.delta)}</b> for all {orders(story.placed)} of customer "
        f"{story.customer} together{cancelled}: little protection for a person with so many. To protect whole persons, "
        "bound the orders of each and choose ε for that many.</p>\n"
        f"<p><b>Exact erasure</b> does not depend on ε: from round {story.erased_at:,} on nothing published depends on "
        "the erased orders. What was published before stays published.</p></div>"
    )


def _footer(story: Story) -> str:
    return (
        "<footer>Made by <code>retroact demo</code>, version "
        f"{markup(story.version)}. This page loads nothing and sends nothing.</footer>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{markup(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{markup(row[0])}</th>' + "".join(f"<td>{markup(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
