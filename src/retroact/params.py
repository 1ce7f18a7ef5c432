"""Specifications from signatures: the arguments of a class say how it is written, read, shown and compared.

Fields, statistics, noise processes, compilers and one-shot algorithms are declared by their constructors alone.
`spec()` has the names of the constructor, in plain types, and leaves out what equals its default: so an argument that
is added later changes no specification, no digest and no coin name. What the stream decides (a law, a process, a
method) is not an argument: whoever names coins adds it.
"""

from __future__ import annotations

import importlib
import inspect
from base64 import b64encode
from collections.abc import Collection, Mapping, Set
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Self

import msgspec

from .entry_points import load
from .errors import InputError
from .messages import check_keys, exact_text, hint, show

REQUIRED = inspect.Parameter.empty


class Parameters:
    """A class that its constructor arguments describe.

    Every argument is kept under its name, unless `argument` says otherwise. A constructor with ``**options`` also takes
    the keyword arguments of its base class. A class with a ``kind`` is listed under it in the ``kinds`` of its family,
    which is the base class that has them.

    >>> class Shape(Parameters):
    ...     kinds = {}
    >>> class Box(Shape):
    ...     kind = "box"
    ...     def __init__(self, width, *, height=1):
    ...         self.width, self.height = width, height
    >>> Box(3), Box(3, height=2).spec(), Box(3) == Box(3, height=1)
    (Box(3), {'type': 'box', 'width': 3, 'height': 2}, True)
    >>> Shape.from_spec({"type": "box", "width": 3, "hieght": 2}, "x")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected only type, width, height, got 'hieght' (did you mean 'height'?) - at x.hieght
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Any]]]
    """The classes of a family by kind; on its base class."""
    group: ClassVar[str] = ""
    """The entry points through which other packages add kinds; on the base class of a family."""
    unwritten: ClassVar[tuple[str, ...]] = ()
    """Arguments that no file can hold, such as functions."""
    undigested: ClassVar[tuple[str, ...]] = ()
    """Arguments that affect noise only through a share of the budget, or only what is shown."""
    tables: ClassVar[Mapping[str, type[Parameters]]] = {}
    """Arguments that are written as nested tables, with their classes."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls) and hasattr(cls, "kinds"):
            known = cls.kinds.get(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise TypeError(f"{cls.__qualname__}: {known.__module__} has the kind {cls.kind!r} already")
            cls.kinds[cls.kind] = cls

    @classmethod
    @cache
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """The arguments of the constructor, and the keyword arguments that it passes on."""
        found: dict[str, inspect.Parameter] = {}
        own_class = True
        for base in cls.__mro__:
            if "__init__" not in vars(base) or base is object:
                continue
            listed = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
            for one in listed:
                # what a constructor passes on by position is its own affair
                if one.kind is one.KEYWORD_ONLY or (own_class and one.kind is one.POSITIONAL_OR_KEYWORD):
                    found.setdefault(one.name, one)
            own_class = False
            if not any(one.kind is one.VAR_KEYWORD for one in listed):
                break
        return found

    def argument(self, name: str) -> Any:
        """What the constructor was given, or an equal value."""
        return getattr(self, name)

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """The arguments in plain types, without those that equal their defaults: what files hold and, without the
        undigested ones, what coins are named by (``digest``)."""
        found: dict[str, Any] = {"type": self.kind} if hasattr(self, "kind") else {}
        for name, one in self.parameters().items():
            if name in self.unwritten or (digest and name in self.undigested):
                continue
            value = self.argument(name)
            written = value.spec(digest=digest) if isinstance(value, Parameters) else plain(value)
            if not _is_default(value, one.default):
                found[name] = written
        return found

    def replace(self, **changes: Any) -> Self:
        """The same with other arguments."""
        own = {name: self.argument(name) for name in self.parameters()}
        return type(self)(**{**own, **changes})

    @classmethod
    def from_spec(cls, table: Any, place: str, extra: Collection[str] = ()) -> Any:
        """What a table, such as `spec()`, describes. ``extra`` keys may be among the arguments, for the caller."""
        if not hasattr(cls, "kinds"):
            return cls.from_table(table, place, extra)
        if not isinstance(table, Mapping):
            raise InputError(f"expected a table with a type, got {show(table)}", place=place)
        kind = table.get("type")
        if not isinstance(kind, str) or (found := cls.find(kind)) is None:
            named = sorted(name for name, one in cls.kinds.items() if not one.unwritten)
            raise InputError(
                f"expected one of {', '.join(named)}, got {show(kind)}{hint(kind, named)}", place=f"{place}.type"
            )
        return found.from_table(table, place, extra)

    @classmethod
    def from_table(cls, table: Any, place: str, extra: Collection[str] = ()) -> Self:
        """An object of this class, whatever type the table names."""
        if not isinstance(table, Mapping):
            raise InputError(f"expected a table, got {show(table)}", place=place)
        known = cls.parameters()
        written = [name for name in known if name not in cls.unwritten]
        needed = [name for name in written if known[name].default is REQUIRED]
        check_keys(table, ["type"] * hasattr(cls, "kinds") + written + [*extra], place, needed)
        if cls.unwritten:
            raise InputError(f"expected a type that files can hold, got {cls.kind!r}", place=f"{place}.type")
        given = {name: value for name, value in table.items() if name in known}
        for name, nested in cls.tables.items():
            if isinstance(given.get(name), Mapping):
                given[name] = nested.from_spec(given[name], f"{place}.{name}")
        try:
            return cls(**given)
        except InputError as error:
            raise error.under(place) from None

    @classmethod
    def find(cls, kind: str) -> type[Any] | None:
        """The class of a kind. Clusters, models, the paper's forms and other packages are loaded when needed."""
        for module in ("retroact.statistics.clusters", "retroact.statistics.models", "retroact.paper"):
            if kind not in cls.kinds:
                importlib.import_module(module)
        if kind not in cls.kinds and cls.group:
            load(cls.group, kind, cls.kinds)
        return cls.kinds.get(kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parameters) or type(self) is not type(other):
            return NotImplemented
        return self.spec() == other.spec() and all(self.argument(n) is other.argument(n) for n in self.unwritten)

    def __hash__(self) -> int:
        return hash((type(self), words(self.spec())))

    def __repr__(self) -> str:
        shown: list[str] = []
        for name, one in self.parameters().items():
            if name in self.unwritten:
                continue
            value = self.argument(name)
            if one.default is REQUIRED and one.kind is one.POSITIONAL_OR_KEYWORD:
                shown.append(_shown(value))
            elif not _is_default(value, one.default):
                shown.append(f"{name}={_shown(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"


def plain(value: Any) -> Any:
    """The value in JSON types, exactly: equal values have equal forms.

    >>> plain((Fraction(1, 8), b"ab", date(2024, 2, 29), {"b": 1}))
    ['0.125', {'base64': 'YWI='}, '2024-02-29', {'b': 1}]
    """
    if hasattr(value, "tolist"):
        value = value.tolist()  # a numpy array or number
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Parameters):
        return value.spec()
    if isinstance(value, Fraction):
        return exact_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, Set):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, type) and issubclass(value, Parameters):
        return value.kind
    raise TypeError(f"expected a value that can be written down, got {type(value).__name__}")


def words(spec: Any) -> str:
    """A specification as text, independent of the order of its keys."""
    return msgspec.json.encode(spec, order="deterministic").decode()


def _is_default(value: Any, default: Any) -> bool:
    if default is REQUIRED:
        return False
    if isinstance(value, Fraction) and isinstance(default, int | float):
        return value == default
    return bool(plain(value) == plain(default))


def _shown(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, Fraction):
        return exact_text(value) if "/" not in exact_text(value) else repr(value)
    return repr(value) if not isinstance(value, tuple) else repr(list(value))
