"""The game of Appendix B: an adversary who picks every update after seeing all answers so far.

World 0 has the challenge update, world 1 does not; privacy means that the adversary's view hardly tells them apart.
With ``challenges="one"`` there is one challenge, an addition or a deletion, as in the definition of neighbours: the
guarantee is that of one operation. With ``challenges="each"`` there may be one of each kind, as in the paper; then two
intervals differ and the guarantee is that of two operations.

Each game makes a new adversary: one that played both worlds would carry over what it learned in the first, and the
difference of its views would say nothing about the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Add, Delete, Update
from .algorithm import Make


class Adversary(Protocol):
    """Chooses the updates of a round from the answers before it (and from its own coins and memory)."""

    def updates(self, round: int, answers: Sequence[bytes]) -> tuple[Sequence[Update], Add | Delete | None]:
        """The regular updates of the round, and a challenge or None."""


@dataclass(frozen=True)
class GameView:
    """All answers that the adversary saw, and the challenges it made with their rounds."""

    answers: tuple[bytes, ...]
    challenges: tuple[tuple[int, Add | Delete], ...] = field(default=())


@dataclass(frozen=True)
class AdaptGame:
    """
    >>> from retroact.testing import AdaptGame, StreamAlgorithm
    >>> import retroact as ra
    >>> spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=4)
    >>> class Once:
    ...     def updates(self, round, answers):
    ...         return [], Add((True,)) if round == 2 else None
    >>> game = AdaptGame(lambda key: StreamAlgorithm(spec, key), Once, rounds=4)
    >>> with_it, without = (game.play(world, ra.Key.for_testing(1)) for world in (0, 1))
    >>> [a == b for a, b in zip(with_it.answers, without.answers)]
    [True, False, False, False]
    """

    make: Make
    adversary: Callable[[], Adversary]
    """Makes an adversary: a class, or a function without arguments."""
    rounds: int
    challenges: Literal["one", "each"] = "one"

    def __post_init__(self) -> None:
        if not callable(self.adversary):
            got = type(self.adversary).__name__
            raise InputError(
                f"expected a function that makes an adversary, got one {got}: it would carry over what it remembers "
                "from game to game",
                place="adversary",
            )

    def play(self, world: int, key: Key) -> GameView:
        algorithm, adversary = self.make(key), self.adversary()
        answers: list[bytes] = []
        made: list[tuple[int, Add | Delete]] = []
        for round in range(1, self.rounds + 1):
            regular, challenge = adversary.updates(round, tuple(answers))
            updates = list(regular)
            if challenge is not None:
                self._check(challenge, round, made)
                made.append((round, challenge))
                if world == 0:
                    updates.append(challenge)
            answers.append(algorithm.close(updates))
        return GameView(tuple(answers), tuple(made))

    def _check(self, challenge: Add | Delete, round: int, made: list[tuple[int, Add | Delete]]) -> None:
        if not isinstance(challenge, Add | Delete) or (isinstance(challenge, Add) and challenge.id is not None):
            raise InputError(f"expected an addition without id or a deletion by value, got {challenge!r}")
        if self.challenges == "one" and made:
            raise InputError(f"expected one challenge, got a second in round {round}")
        if any(type(earlier) is type(challenge) for _, earlier in made):
            raise InputError(f"expected at most one challenge of a kind, got a second in round {round}")
        if isinstance(challenge, Delete) and challenge.stamp >= round:
            raise InputError(f"expected a challenge deletion of an earlier round, got stamp {challenge.stamp}")
