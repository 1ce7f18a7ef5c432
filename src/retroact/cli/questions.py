"""Public choices, asked one by one on a terminal. Each answer is checked at once; an empty one leaves the gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError
from ..feeds.header import Kind
from ..messages import exact_text, hint
from ..privacy.budget import check_budget
from ..schema import Field
from ..schema.numbers import exact_number
from ..stream.rounds import Rounds
from .console import say
from .draft import KEYS, TYPES, quoted
from .gaps import CHOICES
from .proposal import Proposal

Ask = Callable[[str], str]
_ROLES = {
    "id": "Which column is the id of a record",
    "subject": "Which column says whom a record belongs to",
    "time": "Which column says when it happened, for rounds by time",
    "op": "Which column says what a row does (add, delete)",
}
_WORDS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


class Questions:
    """Asks with ``ask``, which shows a prompt and returns a line."""

    def __init__(self, ask: Ask) -> None:
        self._answer: Ask | None = ask
        self.choices: dict[str, str] = {}
        """What was chosen, by path, as TOML."""

    def _ask(self, prompt: str) -> str:
        """An answer; after the end of the input (Ctrl-D) the usual one, so that those given are not lost."""
        try:
            return "" if self._answer is None else self._answer(prompt)
        except EOFError:
            self._answer = None
            say("\nnote: no more answers: what is left takes what is in brackets, or stays open", err=True)
            return ""

    def proposal(self, found: Proposal, columns: Mapping[str, Kind], *, roles: bool) -> Proposal:
        """Which columns have which role, and which are published."""
        if roles:
            say("Enter accepts what is in brackets; - is none.", err=True)
            given: dict[str, str] = {}
            for role, question in _ROLES.items():
                free = [name for name in columns if name not in given.values()]
                usual = found.roles.get(role, "")
                name = self._column(question, free, usual if usual in free else "")
                given |= {role: name} if name else {}
            found = found.with_roles(given)
        every = {**found.fields, **found.others}
        chosen = [name for name in every if self._yes(f"Publish a statistic of {quoted(name)}", name in found.fields)]
        return found.publishing(chosen, columns)

    def choose(self, proposal: Proposal) -> None:
        """The budget, the grid, and the bounds of every field. An empty answer leaves a gap."""
        say("Now the public choices. Do not look at the data for them. Enter leaves one open.", err=True)
        self._number("epsilon", lambda value: check_budget(value, 0.0))
        self._number("delta", lambda value: check_budget(1.0, value))
        self._whole("records")
        if "time" in proposal.roles:
            self._grid()
        else:
            self._whole("horizon")
        for name, kind in proposal.fields.items():
            self._field(name, kind)

    def _grid(self) -> None:
        usual: dict[str, Any] = {"start": "2000-01-01", "length": "1d"}
        for key in ("time_zone", "start", "length", "end"):
            if key == "end" and not {"rounds.start", "rounds.length"} <= self.choices.keys():
                continue

            def check(text: str, key: str = key) -> str:
                Rounds.from_spec({**usual, key: text})
                return text

            text = self._checked(CHOICES[key], check)
            if text is not None:
                usual[key] = text
                self.choices[f"rounds.{key}"] = quoted(text)

    def _field(self, name: str, kind: Kind) -> None:
        place = f"schema.{name}"
        table: dict[str, Any] = {"type": TYPES.get(kind, kind)}
        filler = {"lower": 0, "upper": 1, "step": 1, "values": ["A"], "dimension": 1, "radius": 1}
        day = {"date": "2000-01-01", "time": "2000-01-01T00:00:00Z"}.get(kind)
        for key in KEYS[kind]:

            def check(text: str, key: str = key) -> Any:
                bound = day is not None and key in ("lower", "upper")
                value = text if bound else _read(key, text)
                given = {**table, key: value}
                # what is still open does not count
                open_bound = dict.fromkeys(("lower", "upper"), value if bound else day) if day else {}
                usual = {**filler, **open_bound}
                others = {each: usual[each] for each in KEYS[kind] if each in usual and each not in given}
                if {"lower", "upper"} <= given.keys() or "lower" not in KEYS[kind] or bound:
                    Field.from_spec({**others, **given}, place)
                return value

            value = self._checked(f"{quoted(name)}: {CHOICES[key]}", check)
            if value is not None:
                table[key] = value
                self.choices[f"{place}.{key}"] = _toml(value)

    def _number(self, name: str, check: Callable[[float], Any]) -> None:
        def read(text: str) -> str:
            value = exact_number(text, name)
            check(float(value))
            return repr(float(value)) if value else "0"

        text = self._checked(CHOICES[name], read)
        if text is not None:
            self.choices[name] = text

    def _whole(self, name: str) -> None:
        def read(text: str) -> str:
            if not (text.isascii() and text.isdigit() and int(text)):
                raise InputError(f"expected a whole number from 1 on, got {text!r}", place=name)
            return str(int(text))

        text = self._checked(CHOICES[name], read)
        if text is not None:
            self.choices[name] = text

    def _column(self, question: str, columns: list[str], usual: str) -> str:
        while True:
            name = self._ask(f"{question}? [{quoted(usual)[1:-1] or '-'}] ").strip() or usual
            if name in ("", "-") or name in columns:
                return "" if name == "-" else name
            listed = ", ".join(map(quoted, columns))
            say(f"expected one of {listed}, or -, got {name!r}{hint(name, columns)}", err=True)

    def _yes(self, question: str, usual: bool) -> bool:
        while True:
            word = self._ask(f"{question}? [{'Y/n' if usual else 'y/N'}] ").strip().lower()
            if not word or word in _WORDS:
                return _WORDS[word] if word else usual
            say(f"expected yes or no, got {word!r}", err=True)

    def _checked(self, question: str, check: Callable[[str], Any]) -> Any:
        """A checked answer, asked again until it is good; None if it is empty."""
        while True:
            text = self._ask(f"{question}: ").strip()
            if not text:
                return None
            try:
                return check(text)
            except InputError as error:
                say(str(error), err=True)


def _read(key: str, text: str) -> Any:
    """An answer as its key takes it."""
    if key == "clip":
        if text.lower() not in _WORDS:
            raise InputError(f"expected true or false, got {text!r}", place=key)
        return _WORDS[text.lower()]
    if key == "values":
        return [part.strip().strip("'\"") for part in text.strip("[]").split(",") if part.strip()]
    if key == "missing":
        return text.strip("'\"")
    number = exact_number(text, key)
    return int(number) if number.denominator == 1 else exact_text(number)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(value, str) and value.replace(".", "", 1).replace("-", "", 1).isdigit():
        return value
    return quoted(value) if isinstance(value, str) else str(value)
