"""Ids that are added while they hold a record, which is then replaced: often a mistake, and never refused."""

from __future__ import annotations

from itertools import repeat

from .batch import ADD, DELETE, ERASE, UPDATE, Changes
from .refusals import Refusal


class HeldIds:
    """
    >>> import numpy as np
    >>> from retroact.feeds.batch import ColumnValues
    >>> ids, held = ColumnValues.of(["a", "b", "a", None]), HeldIds()
    >>> held.note(Changes(np.arange(2, 6), np.full(4, ADD), {}, {"id": ids}))
    >>> held.again.count, held.again.first
    (1, [4])
    """

    def __init__(self) -> None:
        self.again = Refusal("id", "an id that holds a record is added again: the record is replaced", "line")
        self._held: dict[str, str | None] = {}
        """Whom the record of each id belongs to."""

    def note(self, changes: Changes) -> None:
        """These changes were accepted."""
        given, codes = changes.names("id"), changes.codes
        if given is None and not (codes == ERASE).any():
            return
        ids = [None] * len(changes) if given is None else [name if name is None else str(name) for name in given]
        owners = changes.names("subject") or repeat(None, len(changes))
        subjects = [name if name is None else str(name) for name in owners]
        fresh = {id: subject for id, subject in zip(ids, subjects, strict=True) if id is not None}
        if not (codes != ADD).any() and len(fresh) == len(ids) and self._held.keys().isdisjoint(fresh):
            self._held.update(fresh)
            return
        for code, id, subject, number in zip(codes.tolist(), ids, subjects, changes.numbers.tolist(), strict=True):
            if code == ERASE:
                self._held = {each: owner for each, owner in self._held.items() if owner != subject}
            elif id is not None and code == DELETE:
                self._held.pop(id, None)
            elif id is not None and code in (ADD, UPDATE):
                if code == ADD and id in self._held:
                    self.again.add([number])
                self._held[id] = subject
