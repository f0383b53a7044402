"""Tools as models are offered them: function-calling schema, MCP tools, prompt text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openry.capability.definition import Parameter, ToolDefinition


def as_openai(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """OpenAI's function calling."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.json_schema(),
            },
        }
        for tool in tools
    ]


def as_mcp(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Tools of the Model Context Protocol, with its hints about what they change."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.json_schema(),
            "annotations": {
                "readOnlyHint": tool.side_effects == "none" and not tool.with_role("output"),
                "destructiveHint": tool.side_effects == "irreversible",
                "idempotentHint": tool.idempotent is True,
                "openWorldHint": tool.network,
            },
        }
        for tool in tools
    ]


def as_json(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Each tool whole, as its pack defines it."""
    return [tool.model_dump(mode="json", by_alias=True, exclude_defaults=True) for tool in tools]


def as_prompt(tools: Iterable[ToolDefinition]) -> str:
    """Text for a model without tool calling: what each is for, its arguments, one example."""
    return "\n".join(_in_words(tool) for tool in tools)


def _in_words(tool: ToolDefinition) -> str:
    lines = [f"- {tool.name}: {tool.description.strip()}"]
    lines += [
        f"    {name}{_kind(each)}: {each.description}" for name, each in tool.parameters.items()
    ]
    example = tool.examples[0]
    lines.append(f'    example: "{example.request}" -> {_compact(example.arguments)}')
    return "\n".join(lines)


def _kind(parameter: Parameter) -> str:
    if parameter.enum:
        kind = "|".join(str(each) for each in parameter.enum)
    else:
        kind = "|".join(parameter.types)
    if parameter.required:
        return f" ({kind}, required)"
    default = "" if parameter.default is None else f", default {_compact(parameter.default)}"
    return f" ({kind}{default})"


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
