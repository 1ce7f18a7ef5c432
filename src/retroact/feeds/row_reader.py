"""From the columns of a file or a frame to changes: what each row does, and whether it has what that needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..errors import InputError, Place, Unit
from ..messages import mismatch, show
from ..schema import Schema
from ..schema.packed_texts import PackedTexts
from ..stream.columns import Columns
from ..stream.open_round import LARGEST
from .batch import ADD, CLOSE, DELETE, ERASE, NOTHING, UPDATE, Batch, Changes, ColumnValues
from .encoded_cells import ColumnReader
from .options import Options
from .roles import CODES, NEEDS_ID, NEEDS_STAMP, ONE_ON_AN_ID, PROGRESS, ROLES, Heading, code_of, heading, weigh

BY_TIME = "rounds are numbered from 1; for dates and times: --time COLUMN with --start, --length and --end"
RoleReader = Callable[[ColumnValues, str], ColumnValues]


class RowReader:
    """Changes from batches of columns whose names say what they are for."""

    unit: Unit
    has_column_names = True
    role_readers: Mapping[str, RoleReader] = {}
    """How the cells of roles are read, where they are texts."""

    def __init__(
        self, name: str, schema: Schema, options: Options, fields: Mapping[str, ColumnReader] | None = None
    ) -> None:
        """``fields`` say how the cells of fields are read, where they are texts. Of such sources, rows that have more
        than they need are refused."""
        self.options = options
        self.begin_after = 0
        """The rows up to this one, or that begin on lines up to this one, were read before."""
        self.heading: Heading | None = None
        self.label: str | None = None
        """What says which rows are added and which deleted."""
        self.roles: dict[str, str] = {}
        self.ignored: tuple[str, ...] = ()
        self.skipped: Counter[str] = Counter()
        """Rows that are no events, by what they are."""
        self._name, self._schema, self._fields = name, schema, fields
        self._strict = fields is not None

    def begin(self, names: Sequence[str], line: int | None = None) -> Heading:
        """The columns have these names, which a line may hold."""
        try:
            found = self._heading(names, self.options.columns)
        except InputError as error:
            wrong = error.found_in(self._name, row=line, unit=self.unit)
            if self.options.refusals is None:
                raise wrong from None
            try:
                # if only unknown columns are wrong, the others can be read
                found = self._heading(names, replace(self.options.columns, ignore=tuple(names)))
            except InputError:
                raise wrong from None
            self.options.refusals.add(wrong)
        self.heading, self.ignored, self.skipped, self.label = found, found.ignored, Counter(), None
        self.roles = {role: found.roles[role] for role in ROLES if role in found.roles}
        if found.operation is not None:
            self.label = f"{'weights' if found.weighted else 'operations'} in {show(found.operation)}"
        return found

    def _heading(self, names: Sequence[str], columns: Columns) -> Heading:
        by_number, timed = self.options.by_number, self.options.time is not None
        return heading(names, self._schema, columns, by_number=by_number, timed=timed)

    def read(self, batch: Batch) -> Iterator[Changes]:
        """The changes of a batch; of one with a row that is refused, those before it."""
        try:
            changes = self._changes(batch)
        except InputError as error:
            wrong = error.at(batch.numbers, self._name, self.unit)
            if self.options.refusals is not None:
                parts = self.options.refusals.left(wrong, batch.numbers)
                self._look_at_values(batch.take(np.setdiff1d(np.arange(len(batch)), np.concatenate([[], *parts]))))
                for rows in parts:
                    yield from self.read(batch.take(rows))
                return
            if error.row is not None and error.row > 1:
                yield from self.read(batch.take(slice(0, error.row - 1)))
            raise wrong from None
        yield changes

    def _changes(self, batch: Batch) -> Changes:
        found = self.heading
        assert found is not None
        progress: Mask | None = None
        if found.weighted and self._strict and PROGRESS in batch.columns:
            cells = batch.columns[PROGRESS].values.tolist()
            marks = np.fromiter((cell in ("t", "true", "True", "1") for cell in cells), np.bool_, len(batch))
            progress = marks if marks.any() else None
        codes, copies = self._operations(batch, found, progress)
        roles = {role: self._role(batch, role, column) for role, column in found.roles.items()}
        if "position" in roles:
            _check_positions(roles["position"], codes, found.roles["position"])
        fields = {name: batch.columns[name] for name in found.fields}
        changes = Changes(batch.numbers, codes, fields, roles, copies, self._fields)
        self._check(changes, found)
        if progress is not None and self.options.cut.close_by != "progress":
            self.skipped["progress messages"] += int(progress.sum())
        nothing = codes == NOTHING if progress is None else (codes == NOTHING) & ~progress
        if found.weighted and self._strict and nothing.any():
            self.skipped["weights of 0"] += int(nothing.sum())
        return changes

    def _look_at_values(self, batch: Batch) -> None:
        """Note the bad values of rows that are refused for something else, if all rows are additions."""
        found = self.heading
        if found is None or found.operation is not None or self.options.refusals is None or not len(batch):
            return
        fields = {name: batch.columns[name] for name in found.fields}
        rows = Changes(batch.numbers, np.full(len(batch), ADD, np.int8), fields, {}, readers=self._fields)
        self.options.refusals.of_values(self._schema, rows, self._name, self.unit)

    def _role(self, batch: Batch, role: str, column: str) -> ColumnValues:
        cells = batch.columns[column]
        try:
            if role in self.role_readers:
                cells = self.role_readers[role](cells, column)
            if role in ("stamp", "round", "position", "version"):
                return ColumnValues(cells.whole(column), cells.present)
        except InputError as error:
            if role == "round":
                error.hint = BY_TIME
            raise
        return cells

    def _operations(self, batch: Batch, found: Heading, progress: Mask | None) -> tuple[NDArray[np.int8], I64 | None]:
        """What each row does, and how many copies it stands for, if any stands for more than one."""
        column = found.operation
        if column is None:
            return np.full(len(batch), ADD, np.int8), None
        cells = batch.columns[column]
        if not found.weighted:
            return _words(cells, column), None
        if "weight" in self.role_readers:
            cells = self.role_readers["weight"](cells, column)
        if progress is not None:
            cells = ColumnValues.of(
                [0 if alone else cell for alone, cell in zip(progress.tolist(), cells.listed(), strict=True)]
            )
        codes, copies = _weights(cells, column, self.options.cut.contribution)
        if progress is not None and self.options.cut.close_by == "progress":
            codes[progress] = CLOSE
        return codes, copies

    def _check(self, changes: Changes, found: Heading) -> None:
        """Check that each row has what its operation needs and, in strict sources, nothing else."""
        codes, named = changes.codes, changes.there("id")
        require_needs(changes, timed="time" in found.roles)
        if changes.copies is not None:
            odd = named & (changes.copies > 1)
            if odd.any():
                got = int(changes.copies[int(np.argmax(odd))])
                _refuse(odd, InputError(expected=ONE_ON_AN_ID, found=str(got), place=found.operation))
        erases = codes == ERASE
        if self.options.columns.has_subjects:
            _refuse(
                erases & ~changes.there("subject"), InputError("expected a subject to erase, got none", place="subject")
            )
        if self._strict and found.operation and not found.weighted:
            self._check_alone(changes, erases, "expected a subject alone", "erase", ("id", "stamp"))
            wrong = "expected nothing else with it, except a round"
            self._check_alone(changes, codes == CLOSE, wrong, "close", ("id", "subject", "stamp"))

    def _check_alone(self, changes: Changes, chosen: Mask, wrong: str, place: str, roles: tuple[str, ...]) -> None:
        if chosen.any():
            more = np.zeros(len(changes), np.bool_)
            for role in roles:
                more |= changes.there(role)
            rows = np.flatnonzero(chosen)
            for cells in changes.fields.values():
                more[rows] |= np.array([cell != "" for cell in cells.take(rows).listed()])
            _refuse(chosen & more, InputError(wrong, place=place))


def require_needs(changes: Changes, *, timed: bool) -> None:
    """An update needs an id; a deletion needs one too, or a stamp, or a time that a grid makes a stamp of."""
    codes, named = changes.codes, changes.there("id")
    _refuse((codes == UPDATE) & ~named, InputError(NEEDS_ID, place="id"))
    if not timed:
        by_value = (codes == DELETE) & ~named
        _refuse(by_value & ~changes.there("stamp"), InputError(NEEDS_STAMP, place="stamp"))


def _refuse(odd: Mask, error: InputError) -> None:
    if odd.any():
        raise error.for_rows(np.flatnonzero(odd) + 1)


def _words(cells: ColumnValues, column: str) -> NDArray[np.int8]:
    coded = cells.values.coded() if isinstance(cells.values, PackedTexts) else None
    if coded is not None:
        cells = ColumnValues(coded.codes, None, coded.words)
    if cells.words is not None and cells.present is None:
        used = np.bincount(cells.values, minlength=len(cells.words)) > 0
        codes = [CODES.get(word) if there else NOTHING for word, there in zip(cells.words, used.tolist(), strict=True)]
        if None not in codes:
            by_word: NDArray[np.int8] = np.array(codes, np.int8)[cells.values]
            return by_word
    words = cells.listed()
    found = [CODES.get(word) if isinstance(word, str) else None for word in words]
    if None in found:
        odd = [code is None for code in found]
        try:
            code_of(words[odd.index(True)], column)
        except InputError as error:
            _refuse(np.array(odd), error)
    return np.array(found, np.int8)


def _weights(cells: ColumnValues, place: str, contribution: int | None) -> tuple[NDArray[np.int8], I64 | None]:
    there = cells.there()
    if not there.all():
        weigh(None, Place(place, int(np.argmin(there)) + 1), contribution)
    try:
        weights = cells.whole(place)
    except InputError as error:
        # it may be a whole number that is too large
        weigh(cells.listed()[(error.row or 1) - 1], Place(place, error.row or 1), contribution)
        raise
    most = contribution or 1
    odd = (weights > most) | (weights < -most)  # abs would leave -2^63 as it is
    if odd.any():
        first = int(np.argmax(odd))
        weigh(int(weights[first]), Place(place, first + 1), contribution)
    codes = np.where(weights > 0, ADD, np.where(weights < 0, DELETE, NOTHING)).astype(np.int8)
    copies = np.abs(weights)
    return codes, copies if bool((copies > 1).any()) else None


def _check_positions(cells: ColumnValues, codes: NDArray[np.int8], place: str) -> None:
    """Every row has a position, except those that end rounds."""
    there, positions = cells.there(), cells.values
    missing = ~there & (codes != CLOSE) & (codes != NOTHING)
    _refuse(missing, InputError("expected the position of the row, got none", place=place))
    odd = there & ((positions <= -LARGEST) | (positions >= LARGEST))
    if odd.any():
        row = int(np.argmax(odd))
        expected = "a whole number below 2^62, the position of the row"
        raise mismatch(expected, int(positions[row]), Place(place, row + 1))
