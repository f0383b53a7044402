"""Which names of a template cannot be there, seen without rendering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import nodes
from jinja2.meta import find_undeclared_variables

from openry.errors import TemplateError
from openry.orchestrator.template_env import parse
from openry.texts import did_you_mean


@dataclass(frozen=True, slots=True)
class Used:
    """What one template, or one `{{ … }}` of it, asks for. `error` when it cannot be read."""

    roots: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    error: str = ""


@lru_cache(4096)
def used(jinja: str) -> Used:
    """The names in a piece of Jinja; the same pieces stand in many steps."""
    try:
        tree = parse(jinja)
        roots = tuple(sorted(find_undeclared_variables(tree) - {"range"}))
    except TemplateError as error:
        return Used(error=str(error))
    except RecursionError:
        return Used(error="the template is nested too deep")
    return Used(roots, tuple(_parts(tree)))


def unknown(
    found: Used, names: Mapping[str, frozenset[str] | None]
) -> Iterator[tuple[str, str, str]]:
    """(message, hint, word) for each name that `names` does not have."""
    for name in found.roots:
        if name not in names:
            yield f"`{name}` is not defined", _near(name, names), name
    for root, part in found.parts:
        known = names.get(root)
        if known is not None and part not in known:
            what = {"steps": "step", "inputs": "input"}.get(root, f"`{root}`")
            said = f"`{root}.{part}` is not defined: there is no {what} `{part}`"
            yield said, _near(part, known), part


def _parts(tree: nodes.Template) -> Iterator[tuple[str, str]]:
    """(root, first part) of every `root.part` and `root["part"]`."""
    guarded = {
        id(inner) for test in tree.find_all(nodes.Test) for inner in test.find_all(nodes.Node)
    }
    for filtered in tree.find_all(nodes.Filter):
        if filtered.name in ("default", "d"):
            guarded |= {id(inner) for inner in filtered.find_all(nodes.Node)}
        elif filtered.name == "_key" and isinstance(filtered.node, nodes.Name):
            key = filtered.args[0]
            if isinstance(key, nodes.Const):
                yield filtered.node.name, str(key.value).split(".")[0]
    node: Any
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        part = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        if not isinstance(node.node, nodes.Name) or not isinstance(part, str):
            continue
        if id(node) not in guarded and part not in ("get", "items", "keys", "values"):
            yield node.node.name, part


def _near(name: str, names: Mapping[str, object] | frozenset[str]) -> str:
    if hint := did_you_mean(name, names):
        return hint
    some = ", ".join(f"`{each}`" for each in sorted(names)[:8])
    return f"there are {some}" if some else ""
