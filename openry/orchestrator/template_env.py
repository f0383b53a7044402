"""Jinja in a box: no way to Python, no undefined names, and bounds on time and size.

Import this lazily: it brings Jinja.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, nodes, pass_context, pass_environment
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.loaders import BaseLoader
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment

from openry.errors import TemplateError
from openry.orchestrator import template_source as source
from openry.orchestrator.rules_scene import MISSING, look_up
from openry.texts import bracketed, did_you_mean

MAX_OUTPUT_CHARS = 1024 * 1024
MAX_SECONDS = 1.0
MAX_ROUNDS = 100_000
MAX_TEMPLATE_CHARS = 1024 * 1024
_MAX_INT_BITS = 4096
#: Where a rendering keeps its own state; templates cannot name it.
STATE = "__state__"
#: What a template may look at, beside a step's own names.
ROOTS = ("inputs", "payload", "steps", "item", "env", "run", "last_failure")

_MAP_METHODS = {"get", "items", "keys", "values"}
_STR_METHODS = {
    "split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "startswith", "endswith", "upper",
    "lower", "title", "capitalize", "removeprefix", "removesuffix", "find", "count", "isdigit",
}  # fmt: skip
_LOOP_NAMES = {"index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem",
               "nextitem", "cycle", "changed", "depth", "depth0"}  # fmt: skip
_FILTERS = {
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float",
    "groupby", "int", "items", "last", "length", "list", "lower", "map", "max", "min", "reject",
    "rejectattr", "reverse", "select", "selectattr", "sort", "string", "sum",
    "title", "trim", "truncate", "unique", "upper", "wordcount",
}  # fmt: skip
#: What `map` may apply: filters whose result is no larger than what they are given.
_MAPPED = {
    "string", "int", "float", "upper", "lower", "trim", "length", "count", "abs", "title", "first",
    "capitalize", "last", "list", "max", "min", "sum", "sort", "unique",
}  # fmt: skip
_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign, nodes.Name,
    nodes.Const, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.Keyword,
    nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call, nodes.Getattr, nodes.Getitem, nodes.Slice,
    nodes.Concat, nodes.Compare, nodes.Operand, nodes.BinExpr, nodes.UnaryExpr,
)  # fmt: skip


class Raw(str):
    """A value whose writer said `| raw`: it goes into the command as text."""

    __slots__ = ()


class Named(dict[str, Any]):
    """A mapping that knows what it is called, for messages."""

    label = ""


class State:
    """One rendering: its clock, and where values of a command are collected."""

    def __init__(self, collect: Callable[[Any], str]) -> None:
        self.collect = collect
        self.deadline = time.monotonic() + MAX_SECONDS
        self.rounds = 0

    def tick(self) -> None:
        self.rounds += 1
        if self.rounds > MAX_ROUNDS:
            raise TemplateError(f"the template goes round more than {MAX_ROUNDS} times")
        if time.monotonic() > self.deadline:
            raise TemplateError(f"the template takes longer than {MAX_SECONDS:g} s")


class _Undefined(StrictUndefined):
    """A missing name: an error that offers the nearest one."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, holder = self._undefined_name, self._undefined_obj
        if self._undefined_hint:
            return self._undefined_hint
        if isinstance(holder, Mapping):
            label = f"{holder.label}." if isinstance(holder, Named) and holder.label else ""
            return f"`{label}{name}` is not defined{_near(str(name), map(str, holder))}"
        if isinstance(holder, list | tuple):
            return f"item {name} is not in a list of {len(holder)}"
        kind = type(holder).__name__ if isinstance(holder, str | int | float | None) else ""
        return f"`{name}` is not defined" + (f" on a value of type {kind}" if kind else "")


def _near(name: str, names: Iterable[str]) -> str:
    known = list(names)
    if hint := did_you_mean(name, known):
        return bracketed(hint)
    some = ", ".join(f"`{each}`" for each in known[:6])
    return f" (there are {some})" if some else " (there is nothing in it)"


class _Environment(SandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            if attribute in obj:
                return obj[attribute]
            return (
                getattr(dict(obj), attribute)
                if attribute in _MAP_METHODS
                else self._none(obj, attribute)
            )
        allowed = _STR_METHODS if isinstance(obj, str) else set()
        if isinstance(obj, LoopContext):
            allowed = _LOOP_NAMES
        return getattr(obj, attribute) if attribute in allowed else self._none(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping):
            return obj[argument] if argument in obj else self._none(obj, argument)
        if isinstance(obj, list | tuple | str) and isinstance(argument, int | slice):
            try:
                return obj[argument]
            except IndexError:
                return self._none(obj, argument)
        return (
            self.getattr(obj, argument) if isinstance(argument, str) else self._none(obj, argument)
        )

    def _none(self, obj: Any, name: Any) -> Undefined:
        return self.undefined(obj=obj, name=name)

    def is_safe_callable(self, obj: Any) -> bool:
        return True  # only the methods and functions above can be reached at all

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        _check_growth(operator, left, right)
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, int) and result.bit_length() > _MAX_INT_BITS:
            raise TemplateError("a number in the template grows too large")
        return result


def _check_growth(operator: str, left: Any, right: Any) -> None:
    sizes = [len(v) for v in (left, right) if isinstance(v, str | list | tuple)]
    if operator == "%" and isinstance(left, str):
        raise TemplateError("`%` takes numbers in templates: join texts with `~`")
    if operator == "*" and sizes:
        sizes = [sizes[0] * max((v for v in (left, right) if isinstance(v, int)), default=1)]
    if operator == "**" and isinstance(left, int) and isinstance(right, int):
        sizes = [0 if left.bit_length() * abs(right) <= _MAX_INT_BITS else MAX_OUTPUT_CHARS + 1]
    if sum(sizes) > MAX_OUTPUT_CHARS:
        raise TemplateError("a value in the template grows past 1 MiB")


def _joined(value: Any, mark: Any = "", attribute: Any = None) -> str:
    items = list(value)
    if attribute is not None:
        items = [environment().getitem(item, attribute) for item in items]
    return _concat(items, str(mark))


def _replaced(value: Any, old: Any, new: Any, count: int = -1) -> str:
    text, old, new = as_text(value), str(old), str(new)
    _check_growth("+", text, "x" * min(MAX_OUTPUT_CHARS, text.count(old) * len(new)))
    return text.replace(old, new, count)


def _indented(value: Any, width: int = 4, first: bool = False) -> str:
    pad = " " * min(max(int(width), 0), 80)
    text = as_text(value).replace("\n", "\n" + pad)
    return _bounded(pad + text if first else text)


def _bounded(text: str) -> str:
    if len(text) > MAX_OUTPUT_CHARS:
        raise TemplateError("a value in the template grows past 1 MiB")
    return text


def _concat(parts: Any, mark: str = "") -> str:
    texts: list[str] = []
    size = 0
    for part in parts:
        texts.append(as_text(part))
        size += len(texts[-1]) + len(mark)
        if size > MAX_OUTPUT_CHARS:
            raise TemplateError("a value in the template grows past 1 MiB")
    return mark.join(texts)


def _rounded(value: Any, precision: int = 0, method: str = "common") -> float:
    places = min(max(int(precision), 0), 15)
    if method == "common":
        return float(round(value, places))
    return float((math.ceil if method == "ceil" else math.floor)(value * 10**places) / 10**places)


@pass_environment
def _key(environment: _Environment, holder: Any, key: str) -> Any:
    """`${payload.a.b}`: a dotted key, a literal one first."""
    found = look_up(holder, key)
    return environment.undefined(obj=holder, name=key) if found is MISSING else found


@pass_context
def _rounds(context: Context, items: Any) -> Iterator[Any]:
    """What a `for` goes over, counted."""
    state: State = context[STATE]
    for item in items:
        state.tick()
        yield item


@pass_context
def _collect(context: Context, value: Any) -> Any:
    """Every value on its way into the output."""
    state: State = context[STATE]
    state.tick()
    if isinstance(value, Undefined):
        str(value)  # raises, naming what is missing
    if callable(value) and not isinstance(value, Raw):
        raise TemplateError("a method stands where a value belongs: call it with `()`")
    return state.collect(value)


def as_text(value: Any) -> str:
    """A value as text: data as JSON, so that `true` and lists read as they were given."""
    if isinstance(value, str):
        return str(value)
    if _size(value) > MAX_OUTPUT_CHARS:
        raise TemplateError("a value in the template grows past 1 MiB")
    return json.dumps(value, ensure_ascii=False, default=str)  # `str` of an undefined one raises


def _size(value: Any) -> int:
    """Least number of characters that `value` has as JSON; counting ends past the limit."""
    size, waiting = 0, [value]
    while waiting and size <= MAX_OUTPUT_CHARS:
        one = waiting.pop()
        size += 1
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, Mapping):
            size += sum(len(str(key)) for key in one)
            waiting += one.values()
        elif isinstance(one, list | tuple):
            size += len(one)
            waiting += one if size <= MAX_OUTPUT_CHARS else ()
    return size


@lru_cache(1)
def environment() -> _Environment:
    made = _Environment(
        block_start_string=source.BLOCK,
        block_end_string=source.BLOCK_END,
        variable_start_string=source.VALUE,
        variable_end_string=source.VALUE_END,
        comment_start_string=source.COMMENT,
        comment_end_string=source.COMMENT_END,
        undefined=_Undefined,
        finalize=_collect,
        keep_trailing_newline=True,
        autoescape=False,
        loader=BaseLoader(),
        cache_size=0,
    )
    made.globals = {"range": made.globals["range"]}
    made.filters = {name: made.filters[name] for name in _FILTERS}
    made.filters |= {
        "join": _joined, "round": _rounded, "replace": _replaced, "indent": _indented,
        "tojson": as_text, "json": as_text, "raw": lambda value: Raw(as_text(value)),
        "_key": _key, "_rounds": _rounds, "_concat": _concat,
    }  # fmt: skip
    return made


def parse(jinja: str) -> nodes.Template:
    """The tree of a template.

    Raises:
        TemplateError: It is not Jinja, or asks for what templates may not have.
    """
    if len(jinja) > MAX_TEMPLATE_CHARS:
        raise TemplateError("the template is larger than 1 MiB")
    try:
        tree = environment().parse(jinja)
        _inspect(tree)
    except TemplateSyntaxError as error:
        raise TemplateError(_syntax(str(error.message or error))) from None
    except (RecursionError, MemoryError):
        raise TemplateError("the template is nested too deep") from None
    return tree


def _syntax(message: str) -> str:
    for mark, shown in ((source.VALUE_END, "}}"), (source.BLOCK_END, "%}")):
        message = message.replace(mark, shown)
    message = message[:1].lower() + message[1:].rstrip(".")
    message = message.replace("'", "`")
    return f"{message} (write {{% raw %}}…{{% endraw %}} around text with braces)"


def _inspect(tree: nodes.Template) -> None:
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, (*_NODES, nodes.Helper)):
            raise TemplateError(f"`{type(node).__name__.lower()}` is not available in templates")
        if isinstance(node, nodes.Getattr) and node.attr.startswith("__"):
            raise TemplateError(f"unsafe attribute `{node.attr}`")
        index = node.arg if isinstance(node, nodes.Getitem) else None
        if isinstance(index, nodes.Const) and str(index.value).startswith("__"):
            raise TemplateError(f"unsafe attribute `{index.value}`")
        if isinstance(node, nodes.Name) and (node.name.startswith("__") or node.name == "self"):
            raise TemplateError(f"unsafe name `{node.name}`")
        if isinstance(node, nodes.For) and node.recursive:
            raise TemplateError("`recursive` loops are not available in templates")
        if isinstance(node, nodes.Filter | nodes.Test):
            _known(node)


def _known(node: nodes.Filter | nodes.Test) -> None:
    kind = "filter" if isinstance(node, nodes.Filter) else "test"
    names = environment().filters if kind == "filter" else environment().tests
    if node.name not in names:
        public = (name for name in names if not name.startswith("_"))
        hint = bracketed(did_you_mean(node.name, public))
        raise TemplateError(f"unknown {kind} `{node.name}`{hint}")
    if node.name == "map" and node.args and getattr(node.args[0], "value", None) not in _MAPPED:
        raise TemplateError(f"`map` takes `attribute=…` or one of {', '.join(sorted(_MAPPED))}")


def _bound(tree: nodes.Template) -> nodes.Template:
    """Count every round of a loop, and measure what `~` joins."""
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, "_rounds", [], [], None, None)
    for concat in list(tree.find_all(nodes.Concat)):
        concat.nodes = [nodes.Filter(nodes.List(concat.nodes), "_concat", [], [], None, None)]
    tree.set_lineno(1)
    tree.set_environment(environment())
    return tree


@lru_cache(512)
def compiled(jinja: str) -> Template:
    env = environment()
    try:
        code = env.compile(_bound(parse(jinja)), filename="<template>")
    except (RecursionError, MemoryError, SyntaxError):
        raise TemplateError("the template is nested too deep") from None
    return Template.from_code(env, code, dict(env.globals))


def render(jinja: str, scope: Mapping[str, Any], collect: Callable[[Any], str]) -> str:
    """Render once; every value goes through `collect`.

    Raises:
        TemplateError: An undefined name, a bound exceeded, or an operation that fails.
    """
    template = compiled(jinja)
    parts: list[str] = []
    size = 0
    try:
        for part in template.generate({**scope, STATE: State(collect)}):
            size += len(part)
            if size > MAX_OUTPUT_CHARS:
                raise TemplateError("the rendered text is larger than 1 MiB")
            parts.append(part)
    except UndefinedError as error:
        raise TemplateError(str(error.message or error)) from None
    except SecurityError as error:
        raise TemplateError(f"unsafe: {error}") from None
    except TemplateError:
        raise
    except JinjaError as error:
        raise TemplateError(f"cannot be rendered: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise TemplateError(f"cannot be rendered: {error}") from None
    except (RecursionError, MemoryError, OverflowError):
        raise TemplateError("the template needs too much") from None
    return "".join(parts)
