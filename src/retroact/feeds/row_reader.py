"""From the columns of a file or a frame to changes: what each row says is to be done, and what it has for that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64, Mask
from retroact.errors import InputError, Place, Unit
from retroact.feeds.batch import ADD, CLOSE, DELETE, ERASE, NOTHING, UPDATE, Batch, Changes, ColumnReader, ColumnValues
from retroact.feeds.options import Options
from retroact.feeds.roles import CODES, NEEDS_ID, NEEDS_STAMP, ONE_ON_AN_ID, Heading, code_of, weigh
from retroact.messages import mismatch, show
from retroact.stream.open_round import LARGEST

RoleReader = Callable[[ColumnValues, str], ColumnValues]


class RowReader:
    """What the rows of one source say, given who is who among its columns.

    ``roles`` reads the cells of roles and ``fields`` those of fields, where they are texts. A source is ``strict`` if
    what a row has beside that which it needs is refused.
    """

    def __init__(
        self,
        heading: Heading,
        options: Options,
        *,
        roles: Mapping[str, RoleReader] | None = None,
        fields: Mapping[str, ColumnReader] | None = None,
        progress: str | None = None,
    ) -> None:
        self.heading = heading
        self.skipped: Counter[str] = Counter()
        self._options = options
        self._roles = roles or {}
        self._fields = fields
        self._strict = fields is not None
        self._progress = progress
        """The column that says that a row tells progress alone."""
        own = {"time": heading.time, "position": heading.position, "version": heading.version}
        self._columns = {**heading.roles, **{role: column for role, column in own.items() if column}}

    def read(self, batch: Batch, name: str, unit: Unit) -> Iterator[Changes]:
        """The changes of a batch; of one with a row that is refused, those before it."""
        try:
            changes = self._changes(batch)
        except InputError as error:
            if error.row is not None and error.row > 1:
                yield from self.read(batch.take(slice(0, error.row - 1)), name, unit)
            raise error.at(batch.numbers, name, unit) from None
        yield changes

    def _changes(self, batch: Batch) -> Changes:
        heading = self.heading
        progress = self._is_progress(batch)
        codes, copies = self._operations(batch, progress)
        roles = {role: self._role(batch, role, column) for role, column in self._columns.items()}
        if "position" in roles:
            _check_positions(roles["position"], codes, heading.position or "")
        fields = {name: batch.columns[name] for name in heading.fields}
        changes = Changes(batch.numbers, codes, fields, roles, copies, self._fields)
        self._check(changes)
        if progress is not None and self._options.cut.close_by != "progress":
            self.skipped["progress messages"] += int(progress.sum())
        nothing = codes == NOTHING if progress is None else (codes == NOTHING) & ~progress
        if heading.weighted and self._strict and nothing.any():
            self.skipped["weights of 0"] += int(nothing.sum())
        return changes

    def _role(self, batch: Batch, role: str, column: str) -> ColumnValues:
        cells = batch.columns[column]
        if role in self._roles:
            cells = self._roles[role](cells, column)
        if role in ("stamp", "round", "position", "version"):
            return ColumnValues(cells.whole(column), cells.present)
        return cells

    def _is_progress(self, batch: Batch) -> Mask | None:
        if self._progress is None:
            return None
        told = batch.columns[self._progress].values.tolist()
        found = np.fromiter((cell in ("t", "true", "True", "1") for cell in told), np.bool_, len(batch))
        return found if found.any() else None

    def _operations(self, batch: Batch, progress: Mask | None) -> tuple[NDArray[np.int8], I64 | None]:
        """What each row says is to be done; and how many copies it stands for, where that may be more than one."""
        column = self.heading.operation
        if column is None:
            return np.full(len(batch), ADD, np.int8), None
        cells = batch.columns[column]
        if not self.heading.weighted:
            return _words(cells, column), None
        if "weight" in self._roles:
            cells = self._roles["weight"](cells, column)
        if progress is not None:
            cells = ColumnValues.of(
                [0 if told else cell for told, cell in zip(progress.tolist(), cells.listed(), strict=True)]
            )
        codes, copies = _weights(cells, column, self._options.cut.contribution)
        if progress is not None and self._options.cut.close_by == "progress":
            codes[progress] = CLOSE
        return codes, copies

    def _check(self, changes: Changes) -> None:
        """What a row must have for what it says, and where that is all, what else it has not."""
        codes, named = changes.codes, changes.there("id")
        require_needs(changes, timed=self.heading.time is not None)
        if changes.copies is not None:
            odd = named & (changes.copies > 1)
            if odd.any():
                got = int(changes.copies[int(np.argmax(odd))])
                _refuse(odd, InputError(expected=ONE_ON_AN_ID, found=str(got), place=self.heading.operation))
        erases = codes == ERASE
        if self._options.columns.has_subjects:
            _refuse(
                erases & ~changes.there("subject"), InputError("expected a subject to erase, got none", place="subject")
            )
        if self._strict and self.heading.operation and not self.heading.weighted:
            self._check_alone(changes, erases, "expected a subject alone", "erase", ("id", "stamp"))
            wrong = "expected nothing beside it, except a round"
            self._check_alone(changes, codes == CLOSE, wrong, "close", ("id", "subject", "stamp"))

    def _check_alone(self, changes: Changes, chosen: Mask, wrong: str, place: str, roles: tuple[str, ...]) -> None:
        if chosen.any():
            more = np.zeros(len(changes), np.bool_)
            for role in roles:
                more |= changes.there(role)
            for cells in changes.fields.values():
                more |= cells.values != ""
            _refuse(chosen & more, InputError(wrong, place=place))


class HeadedSource:
    """What is known of a source whose columns have a heading, once that was read."""

    has_column_names = True
    _reader: RowReader | None = None

    @property
    def label(self) -> str | None:
        """What says which rows are added and which deleted."""
        found = None if self._reader is None else self._reader.heading
        if found is None or found.operation is None:
            return None
        return f"{'weights' if found.weighted else 'operations'} in {show(found.operation)}"

    @property
    def roles(self) -> dict[str, str]:
        return {} if self._reader is None else self._reader.heading.roles

    @property
    def ignored(self) -> tuple[str, ...]:
        return () if self._reader is None else self._reader.heading.ignored

    @property
    def skipped(self) -> Counter[str]:
        return Counter() if self._reader is None else self._reader.skipped


def require_needs(changes: Changes, *, timed: bool) -> None:
    """An update needs an id; a deletion needs one too, or a stamp, or a time that a grid makes a stamp of."""
    codes, named = changes.codes, changes.there("id")
    _refuse((codes == UPDATE) & ~named, InputError(NEEDS_ID, place="id"))
    if not timed:
        by_value = (codes == DELETE) & ~named
        _refuse(by_value & ~changes.there("stamp"), InputError(NEEDS_STAMP, place="stamp"))


def _refuse(odd: Mask, error: InputError) -> None:
    if odd.any():
        raise error.moved(Place(error.path or "", int(np.argmax(odd)) + 1))


def _words(cells: ColumnValues, column: str) -> NDArray[np.int8]:
    if cells.words is not None and cells.present is None:
        used = np.bincount(cells.values, minlength=len(cells.words)) > 0
        codes = [CODES.get(word) if there else NOTHING for word, there in zip(cells.words, used.tolist(), strict=True)]
        if None not in codes:
            by_word: NDArray[np.int8] = np.array(codes, np.int8)[cells.values]
            return by_word
    words = cells.listed()
    found = [CODES.get(word) if isinstance(word, str) else None for word in words]
    if None in found:
        first = found.index(None)
        code_of(words[first], Place(column, first + 1))
    return np.array(found, np.int8)


def _weights(cells: ColumnValues, place: str, contribution: int | None) -> tuple[NDArray[np.int8], I64 | None]:
    there = cells.there()
    if not there.all():
        weigh(None, Place(place, int(np.argmin(there)) + 1), contribution)
    try:
        weights = cells.whole(place)
    except InputError as error:
        # it may be a whole number, and too large a one
        weigh(cells.listed()[(error.row or 1) - 1], Place(place, error.row or 1), contribution)
        raise
    most = contribution or 1
    odd = (weights > most) | (weights < -most)  # not by abs, which leaves -2^63 as it is
    if odd.any():
        first = int(np.argmax(odd))
        weigh(int(weights[first]), Place(place, first + 1), contribution)
    codes = np.where(weights > 0, ADD, np.where(weights < 0, DELETE, NOTHING)).astype(np.int8)
    copies = np.abs(weights)
    return codes, copies if bool((copies > 1).any()) else None


def _check_positions(cells: ColumnValues, codes: NDArray[np.int8], place: str) -> None:
    """Every row says where it stands in its source; a round may end without that."""
    there, positions = cells.there(), cells.values
    missing = ~there & (codes != CLOSE) & (codes != NOTHING)
    _refuse(missing, InputError("expected the position of the row, got none", place=place))
    odd = there & ((positions <= -LARGEST) | (positions >= LARGEST))
    if odd.any():
        row = int(np.argmax(odd))
        expected = "a whole number below 2^62, the position of the row"
        raise mismatch(expected, int(positions[row]), Place(place, row + 1))
