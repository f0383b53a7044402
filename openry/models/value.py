"""Frozen values without `dataclasses`, whose import costs more than a whole forwarded command may.

`@value` reads like `@dataclass(frozen=True, slots=True)` and is one to a type checker. It is used
on the forwarder's path only (measured: `import dataclasses` 20 ms and 2 ms a class, this 0.1 ms);
`dataclasses.replace`, `fields` and `asdict` work on its instances all the same.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_: bool) -> object:
        return lambda decorator: decorator  # what typing's does, without importing typing


@dataclass_transform(frozen_default=True, kw_only_default=False)
def value(cls: type[T]) -> type[T]:
    """Make a frozen class with slots out of annotated names and their defaults."""
    body = dict(cls.__dict__)
    names = tuple(name for name in body.get("__annotations__", {}) if _is_field(body, name))
    defaults = {name: body.pop(name) for name in names if name in body}
    for gone in ("__dict__", "__weakref__"):
        body.pop(gone, None)
    body |= {"__slots__": names, "__match_args__": names, "_defaults": defaults}
    body["_names"] = frozenset(names)
    make: Any = type(cls)
    made: Any = make(cls.__name__, (_Value,), body)
    made._setters = tuple((name, getattr(made, name).__set__) for name in names)
    kept: type[T] = made
    return kept


def _is_field(body: dict[str, Any], name: str) -> bool:
    return not str(body["__annotations__"][name]).startswith("ClassVar")


class _Fields:
    """`__dataclass_fields__`, made when somebody asks: only they pay for `dataclasses`."""

    def __get__(self, instance: object, owner: Any) -> dict[str, Any]:
        import dataclasses

        def described(name: str) -> tuple[Any, ...]:
            if name not in owner._defaults:
                return name, owner.__annotations__[name]
            factory = lambda: owner._defaults[name]  # noqa: E731
            return name, owner.__annotations__[name], dataclasses.field(default_factory=factory)

        lines = [described(name) for name in owner.__slots__]
        made: Any = dataclasses.make_dataclass("fields", lines, eq=False)
        fields: dict[str, Any] = made.__dataclass_fields__
        owner.__dataclass_fields__ = fields  # once for each class: it takes 2 ms
        return fields


class _Value:
    """What every value can do."""

    __slots__: tuple[str, ...] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _setters: ClassVar[tuple[tuple[str, Callable[[Any, Any], None]], ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    __dataclass_fields__ = _Fields()

    def __init__(self, *args: Any, **given: Any) -> None:
        setters = self._setters
        if not given and len(args) == len(setters):
            for (_, put), one in zip(setters, args, strict=True):
                put(self, one)
            return
        names = self.__slots__
        fields = {**self._defaults, **dict(zip(names, args, strict=False)), **given}
        too_many = len(args) > len(names) or not given.keys().isdisjoint(names[: len(args)])
        if too_many or fields.keys() != self._names:
            raise TypeError(_complaint(type(self), args, given, fields))
        for name, put in setters:
            put(self, fields[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot change `{name}` of a frozen {type(self).__name__}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot change `{name}` of a frozen {type(self).__name__}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self.__getstate__())

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__slots__)
        return f"{type(self).__name__}({inside})"

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in type(self).__slots__)

    def __setstate__(self, values: tuple[Any, ...]) -> None:
        for name, one in zip(type(self).__slots__, values, strict=True):
            object.__setattr__(self, name, one)


def _complaint(
    cls: type[_Value], args: tuple[Any, ...], given: dict[str, Any], fields: dict[str, Any]
) -> str:
    names = cls.__slots__
    if len(args) > len(names):
        return f"{cls.__name__} takes {len(names)} values, got {len(args)}"
    wrong = [name for name in fields if name not in names]
    wrong += [name for name in names if name not in fields]
    wrong += [name for name in names[: len(args)] if name in given]
    said = ", ".join(f"`{name}`" for name in wrong)
    return f"{cls.__name__}: unknown, missing or repeated: {said}"
