"""The state of a stream between rounds, in canonical bytes: equal for histories that unite."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..coins import Key
from ..errors import InputError
from ..ledger import Ledger
from ..privacy import Guarantee
from .choosing import Choice
from .core import Core, Persistence
from .specification import Specification

FORMAT = 3


def to_bytes(core: Core) -> bytes:
    with core.lock:
        if len(core.open.updates):
            raise InputError("expected no operations in the open round: the state is taken between rounds")
        if core.followed:
            raise InputError("this stream has a successor: take the state of that one")
        digest, choice = core.specification.whole_digest, core.specification.choice
        chosen = [choice.law, *choice.noise.values()]
        before, ledger = len(core.before), core.ledger.state()
        return msgspec.msgpack.encode([FORMAT, digest, chosen, core.round, core.origin, before, ledger])


def from_bytes(specification: Specification, state: bytes, key: Key, before: Sequence[Guarantee]) -> Core:
    try:
        parts = msgspec.msgpack.decode(state, type=tuple[int, bytes, list[str], int, int, int, bytes])
    except msgspec.MsgspecError as error:
        raise InputError(f"expected the state of a stream, got something else ({error})", place="state") from None
    version, digest, chosen, round, origin, streams, ledger = parts
    if version != FORMAT:
        raise InputError(f"expected state format {FORMAT}, got {version}", place="state")
    names = list(specification.statistics)
    if len(chosen) == len(names) + 1:
        stored = {"law": chosen[0], "noise": dict(zip(names, chosen[1:], strict=True))}
        specification = specification.running_under(Choice.from_dict(stored))
    if digest != specification.whole_digest:
        raise InputError("expected the specification that the state was made under, got another", place="state")
    if len(before) != streams:
        raise InputError(f"expected the guarantees of {streams} predecessors, got {len(before)}", place="before")
    data = Ledger.from_state(specification.schema, ledger)
    return Core(specification, key, data, Persistence(), origin=origin, round=round, before=before)
