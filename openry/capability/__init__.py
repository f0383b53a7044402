"""Typed tools a small model can choose: definitions, registry, execution, ways to offer them."""

from openry.capability.arguments import complete
from openry.capability.definition import Example, Parameter, ToolDefinition
from openry.capability.execution import Confirm, DryRun, dry_run, invoke, plan_text
from openry.capability.offers import as_json, as_mcp, as_openai, as_prompt
from openry.capability.registry import Registered, Registry, load_registry, own_registry
from openry.capability.rendering import ensures_for, prepare, secret_names
from openry.capability.result import ToolError, ToolResult

__all__ = [
    "Confirm",
    "DryRun",
    "Example",
    "Parameter",
    "Registered",
    "Registry",
    "ToolDefinition",
    "ToolError",
    "ToolResult",
    "as_json",
    "as_mcp",
    "as_openai",
    "as_prompt",
    "complete",
    "dry_run",
    "ensures_for",
    "invoke",
    "load_registry",
    "own_registry",
    "plan_text",
    "prepare",
    "secret_names",
]
