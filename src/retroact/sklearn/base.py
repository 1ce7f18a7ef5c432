"""What all estimators share: records are added and forgotten in a stream, and each release becomes attributes.

**Privacy.** Nothing is drawn or decided here. `fit`, `partial_fit`, `update` and `refresh` each close one round of the
stream, and every fitted attribute is part of its release; `add` and `forget` publish nothing. When to publish is the
caller's choice, and must be as public as the releases: by a clock, never because of what the records are.
**Retroactivity.** That of the stream: all attributes follow from the key, the number of the release and the surviving
records.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import msgspec
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import NotFittedError

from ..coins import Key
from ..errors import InputError, RetroactError
from ..stream import Release, Specification
from ..stream.door import required
from ..stream.open import exists
from .fitted_stream import FittedStream, check_batch, checked_ids

NONE = object()
"""No records at all; None as the records is a mistake."""


class WithdrawnError(RetroactError, NotFittedError):  # type: ignore[misc]
    """The model was withdrawn by its operator."""


class Forgotten(msgspec.Struct, frozen=True):
    """What `forget` did. Exact, so for the operator only."""

    unknown: list[str]
    """The ids or subjects that no record was known of."""
    final: bool
    """Whether all releases are used up: the published model was made before, and stays unless it is withdrawn."""

    def __str__(self) -> str:
        found = "all were known" if not self.unknown else f"unknown: {', '.join(self.unknown)}"
        if self.final:
            return f"{found}. The published model was made before, and all its releases are used up"
        return f"{found}. The next release will be as if the records had never been there"


class Withheld:
    """An attribute that scikit-learn's estimators have and a private one must not."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name}: {self._reason}")


class RetroactiveEstimator(BaseEstimator):  # type: ignore[misc]
    key: Any
    store: Any
    epsilon: Any
    delta: Any
    clip: Any
    max_releases: Any
    _called: ClassVar[dict[str, str]] = {"horizon": "max_releases"}
    """What the statistic and the stream call the parameters."""
    _warning: ClassVar[type[Warning]] = UserWarning
    """Of what a release has to say about itself."""

    def _keep(self, parameters: Mapping[str, Any]) -> None:
        """The arguments of `__init__` as attributes, unchanged, as scikit-learn expects them."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def fit(self, X: Any, y: Any = None, *, ids: Any = None, subjects: Any = None) -> Self:
        """Start over with these records, and publish. Each fit has its own budget: for the same people they add up."""
        return self._publish(X, y, ids, subjects, fresh=True)

    def partial_fit(self, X: Any, y: Any = None, *, ids: Any = None, subjects: Any = None) -> Self:
        """Add records, and publish. The first call starts the stream. In a loop over chunks, `add` each of them and
        `refresh` once: a release for every chunk would spend one of ``max_releases`` on it."""
        return self._publish(X, y, ids, subjects)

    def add(self, X: Any, y: Any = None, *, ids: Any = None, subjects: Any = None) -> Self:
        """Add records, each with an id and the subject it belongs to if they are given; publish nothing."""
        with self._all_or_nothing():
            self._advance(X, y, ids, subjects, [], publishes=False)
        return self

    def forget(self, ids: Any = None, *, subject: Any = None) -> Forgotten:
        """Delete the records with these ids, or all records of a subject (or several); publish nothing.

        The next release will be as if they had never been there. When ``max_releases`` are used up there is none; the
        records are deleted all the same.
        """
        if (ids is None) == (subject is None):
            raise InputError("expected either ids or a subject", place="ids")
        names = required(subject, "subject") if ids is None else required(ids, "ids")
        with self._all_or_nothing():
            source = self._current()
            if source is None:
                raise self._unfitted()
            known = source.forget(names) if ids is not None else source.forget_subjects(names)
        return Forgotten([name for name, there in zip(names, known, strict=True) if not there], source.stream.over)

    def update(
        self, X: Any = None, y: Any = None, *, ids: Any = None, subjects: Any = None, forget: Any = None
    ) -> Self:
        """Add records and forget others, by id, in one release; an id in both is forgotten."""
        if X is None and (ids is not None or subjects is not None):
            raise InputError("expected the records of these ids, got none", place="X")
        return self._publish(NONE if X is None else X, y, ids, subjects, forget)

    def refresh(self) -> Self:
        """Publish what all calls of `add` and `forget` since the last release led to. Do so by a public clock, such as
        every night, whether or not there were any."""
        return self._publish(NONE)

    def withdraw(self) -> Self:
        """Take the published model out of use: predictions are refused until the next release. An act of the operator,
        which says nothing about records; copies that were handed out are out of reach."""
        gone = [name for name in vars(self) if name.endswith("_") and name not in self._kept]
        for name in gone:
            delattr(self, name)
        self._withdrawn = frozenset(gone) | vars(self).get("_withdrawn", frozenset())
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """For what is not there."""
            if name in vars(self).get("_withdrawn", ()):
                raise _withdrawn()
            return super().__getattribute__(name)

    def close(self) -> None:
        """Close the store, if there is one; records that wait for a release stay there."""
        source: FittedStream | None = self.__dict__.pop("_source", None)
        if source is not None:
            source.close()

    # What an estimator adds -----------------------------------------------------------------------------------------

    _kept: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")
    """Attributes about columns, which are public and stay when the model is withdrawn."""

    @abstractmethod
    def _specification(self) -> Specification:
        """Of a stream for these columns (`n_features_in_`)."""

    @abstractmethod
    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, Any]:
        """Checked records, as columns of the stream; with ``reset``, their columns are those of the estimator."""

    @abstractmethod
    def _show(self, release: Release) -> None:
        """The release as attributes."""

    @abstractmethod
    def _adopt(self, specification: Specification) -> None:
        """The columns of a stream in a store are those of the estimator."""

    # ----------------------------------------------------------------------------------------------------------------

    def _publish(
        self, X: Any, y: Any = None, ids: Any = None, subjects: Any = None, forget: Any = None, *, fresh: bool = False
    ) -> Self:
        forgotten = [] if forget is None else required(forget, "forget")
        with self._all_or_nothing():
            notes = self._advance(X, y, ids, subjects, forgotten, fresh=fresh)
        # Warnings come last: one that is turned into an error interrupts nothing.
        for note in notes:
            warnings.warn(note, stacklevel=3)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """After an error all is as before, and a stream that was opened inside is closed."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            opened = self.__dict__.get("_source")
            self.__dict__.clear()
            self.__dict__.update(before)
            if opened is not None and opened is not before.get("_source"):
                opened.close()
            raise

    def _advance(
        self,
        X: Any,
        y: Any,
        ids: Any,
        subjects: Any,
        forget: list[str],
        *,
        fresh: bool = False,
        publishes: bool = True,
    ) -> list[Warning]:
        source = None if fresh else self._current()
        columns, names = None, []
        if X is not NONE:
            columns = self._columns(X, y, reset=source is None)
            count = len(next(iter(columns.values())))
            names = self._names(ids, count, source)
            if source is None:
                source = self._source = self._started(columns, names, subjects, named=ids is not None)
        elif source is None:
            raise self._unfitted()
        source.require_room()
        if not publishes:
            source.apply(columns, names, subjects, forget)
            return []
        release, others = source.publish(columns, names, subjects, forget)
        self.__dict__.pop("_withdrawn", None)
        self.release_ = release
        self.n_releases_ = release.round
        self.guarantee_ = release.guarantee.text
        self._show(release)
        return [*(self._warning(note) for note in getattr(release.value, "notes", ())), *others]

    def _names(self, ids: Any, count: int, source: FittedStream | None) -> list[str]:
        if source is not None:
            return source.names(ids, count)
        return [str(number) for number in range(count)] if ids is None else checked_ids(ids, count)

    def _started(self, columns: dict[str, Any], names: list[str], subjects: Any, *, named: bool) -> FittedStream:
        """Checked before the key is used: a key drives one stream only."""
        try:
            specification = self._specification()
        except InputError as error:
            own = (error.path or "").removeprefix("statistics.model.")
            raise error.moved(self._called.get(own, own or None)) from None
        check_batch(specification, columns, names, subjects)
        return FittedStream.begin(specification, key=self.key, store=self.store, named=named)

    def _current(self) -> FittedStream | None:
        source: FittedStream | None = vars(self).get("_source")
        if source is None and self.store is not None:
            source = self._reopened(FittedStream.reopened(self.store, self.key))
            if source is not None:
                self._source = source
            return source
        if source is None and "release_" in vars(self):
            raise InputError(
                "this is a copy, with the published model alone: records and key stay with the estimator that was "
                "fitted. Go on with that one, or call fit"
            )
        return source

    def _reopened(self, source: FittedStream | None) -> FittedStream | None:
        if source is not None:
            try:
                self._adopt(source.stream.specification)
                source.require_same(self._specification())
            except BaseException:
                source.close()
                raise
        return source

    def _unfitted(self) -> NotFittedError:
        return NotFittedError(f"this {type(self).__name__} has no records yet: add, fit or partial_fit come first")

    def _require_published(self) -> None:
        """Refuse to predict without a published model."""
        if "_withdrawn" in vars(self):
            raise _withdrawn()
        if "release_" in vars(self):
            return
        if self.store is not None and ("_source" in vars(self) or exists(self.store)):
            raise NotFittedError(
                f"this {type(self).__name__} has published nothing since it was made, and earlier releases of its "
                "store are not loaded: refresh for the next one. To read those there: "
                "retroact.Stream.open(store).releases() and retroact.load_model"
            )
        raise NotFittedError(f"this {type(self).__name__} has published nothing yet: fit, or add and refresh")

    def __sklearn_is_fitted__(self) -> bool:
        return "release_" in vars(self) or "_withdrawn" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.key is None
        return tags

    def __sklearn_clone__(self) -> Any:
        # A key cannot be copied, and copies have no store. They are shared: a second stream is refused.
        bare = copy.copy(self)
        bare.key = None
        known = self.get_params(deep=False)
        return BaseEstimator.__sklearn_clone__(bare).set_params(
            **{name: known[name] for name in ("key", "store") if name in known}
        )

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and the published model, without the key, the stream and its records."""
        state = dict(super().__getstate__())
        state.pop("_source", None)
        state["store"] = None
        if isinstance(state["key"], Key):
            state["key"] = None
        if "release_" in state:
            # The function that computes intervals may refer to anything.
            state["release_"] = replace(state["release_"], _interval=_no_interval)
        return state


class NamesOut(ClassNamePrefixFeaturesOutMixin):  # type: ignore[misc]
    """For estimators that transform: names of what comes out, if there is a published model."""

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        self._require_published()
        return super().get_feature_names_out(input_features)


def _withdrawn() -> WithdrawnError:
    return WithdrawnError("this model was withdrawn by its operator")


def _no_interval(level: float) -> None:
    return None
