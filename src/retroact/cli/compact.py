"""`retroact compact`: rewrite the layout of a large store after erasures, without waiting."""

from __future__ import annotations

from typing import Annotated

from ..errors import InputError
from .console import say
from .options import Secrets, StreamArgument, TestingKey, command, opened, option
from .progress import busy

ROUNDS = "Rounds after which the layout of a large store is rewritten, from now on. Initially 16."
HOURS = "Hours after which the next round that closes rewrites it, from now on. Initially 24."
AT_ONCE = "Below this size the layout is rewritten at once, from now on. Initially 100 MB."


@command
def compact(
    stream: StreamArgument,
    secrets: Secrets,
    rounds: Annotated[int | None, option(ROUNDS, min=0)] = None,
    hours: Annotated[int | None, option(HOURS, min=0)] = None,
    at_once: Annotated[int | None, option(AT_ONCE, "BYTES", min=0)] = None,
    testing_key: TestingKey = None,
) -> None:
    """Rewrite the layout of the data now, if erasures wait for that.

    Erased bytes are gone when the round closes. In a store of 100 MB or more, the order of what is left is rewritten
    later; then the file is that of a stream that never had the records. The settings are kept in the store.

    \b
    Examples:
      retroact compact orders
      retroact compact orders --rounds 4 --hours 6
    """
    with opened(stream, secrets, testing_key=testing_key) as open_stream:
        where = open_stream.store.where
        with busy("rewriting the data"):
            done = open_stream.compact(at_once=at_once, rounds=rounds, hours=hours)
        if not done:
            raise InputError(f"{where}: another process is reading the data: try again later")
    say(f"{where}: no erasure waits for its layout")
