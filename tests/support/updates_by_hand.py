"""Updates that are fed by hand: rows, stamps and names, without the operations that a stream makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from retroact.arrays import I64
from retroact.ledger import Operations, Stamped
from retroact.ledger import Updates as Plain
from retroact.ledger.operations import Subjects
from retroact.schema import Rows


class Updates(Plain):
    def add(self, rows: Rows, stamps: I64 | int, subjects: Subjects = None, ids: Sequence[str] | None = None) -> None:
        """Records, all with an id or all without; one stamp and one subject for all, or one for each."""
        stamped = Stamped.of(rows, stamps, subjects)
        self.append(Operations(added=stamped) if ids is None else Operations(placed=stamped, ids=ids))

    def delete(self, rows: Rows, stamps: I64 | int, subjects: Subjects = None) -> None:
        """One copy each of records without id."""
        self.append(Operations(deleted=Stamped.of(rows, stamps, subjects)))

    def delete_ids(self, ids: Sequence[str]) -> None:
        self.append(Operations(ids=ids, emptied=range(len(ids))))

    def erase(self, subjects: Sequence[str]) -> None:
        """Every record of these subjects, whenever in the round it arrives."""
        self.append(Operations(erased=subjects))
