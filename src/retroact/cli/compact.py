"""`retroact compact`: rewrite the layout of a large store after erasures, without waiting."""

from __future__ import annotations

from ..errors import InputError
from .console import say
from .options import Secrets, StreamArgument, TestingKey, command, opened
from .progress import busy


@command
def compact(stream: StreamArgument, secrets: Secrets, testing_key: TestingKey = None) -> None:
    """Rewrite the layout of the data now, if erasures wait for that.

    Erased bytes are gone when the round closes. In a store of 100 MB or more, the order of what is left is rewritten
    later; then the file is that of a stream that never had the records.

    \b
    Example:
      retroact compact orders
    """
    with opened(stream, secrets, testing_key=testing_key) as open_stream:
        where = open_stream.store.where
        with busy("writing the data anew"):
            done = open_stream.compact()
        if not done:
            raise InputError(f"{where}: expected nobody else to read the data: try again later")
    say(f"{where}: no erasure waits for its layout")
