"""What `openry capability show` says of a tool."""

from __future__ import annotations

from collections.abc import Iterator

from openry.capability.definition import Parameter, ToolDefinition
from openry.capability.registry import Registry
from openry.capability.rendering import secret_names


def show_text(registry: Registry, name: str) -> str:
    """One tool whole: what it is for, its parameters with their defaults, conventions, examples.

    Raises:
        NotFoundError: No tool has that name; the message offers the nearest.
    """
    return "\n".join(_shown(registry.get(name), registry.entry(name).source))


def _shown(tool: ToolDefinition, source: str) -> Iterator[str]:
    yield f"{tool.name} ({tool.pack})"
    yield " ".join(tool.description.split())
    yield "\nparameters:"
    for name, parameter in tool.parameters.items():
        yield f"  {name} ({_kind(parameter)}): {parameter.description}"
        if name in tool.conventions:
            yield f"    by default: {tool.conventions[name]}"
    yield f"\nreturns: {tool.returns.format}. {tool.returns.description}".rstrip(". ")
    yield f"side effects: {tool.side_effects}; timeout {tool.timeout_s:g} s"
    if tool.secret_env:
        given = ", ".join(secret_names(tool, tool.defaults()))
        yield f"secrets it reads: {given} (by hand from the environment or `openry secret set`)"
    if tool.requires_confirmation:
        yield "a person is asked first"
    if tool.opposite:
        yield f"easily mistaken for: {tool.opposite}"
    yield "\nexamples:"
    for example in tool.examples:
        arguments = ", ".join(f"{k}={v!r}" for k, v in example.arguments.items())
        yield f"  {example.request}\n    {arguments}"
    yield f"\ndefined in {source}"


def _kind(parameter: Parameter) -> str:
    kinds = "|".join(map(str, parameter.enum or parameter.types))
    if parameter.required:
        return f"{kinds}, required"
    return kinds if parameter.default is None else f"{kinds}, default {parameter.default!r}"
