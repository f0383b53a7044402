"""The capabilities that a step offers its agent: as schema, in words, and when called."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openry.agent.actions import REPORT, RUN, Call, Schema, constrain, payload_schema
from openry.agent.evidence import Evidence
from openry.agent.task import AgentTask, Mode
from openry.agent.touches import Touch, of_call
from openry.capability import Registry, ToolDefinition, ToolResult, as_prompt, invoke
from openry.errors import BadArgumentsError
from openry.models import Command, CommandResult, Ending, RunCommand

_DATA_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Answered:
    """What an action came to. `key` is what two answers must share to count as the same."""

    text: str
    failed: bool = False
    braked: bool = False
    key: str = ""


class Offer:
    """What the step offers. In mode `capabilities` there is nothing beside it."""

    def __init__(self, task: AgentTask, registry: Registry) -> None:
        self.task = task
        self.tools = registry.scope(task.offered) if task.offered else ()
        self.names = tuple(tool.name for tool in self.tools)

    def described(self) -> str:
        """The tools in words, for a model without tool calling."""
        return as_prompt(self.tools) if self.tools else ""

    def schemas(self, evidence: Evidence) -> list[tuple[str, Schema]]:
        """Each tool's name with its parameters, narrowed to what the task and folder offer."""
        return [(tool.name, narrowed(tool, evidence)) for tool in self.tools]

    def functions(self, evidence: Evidence) -> tuple[Mapping[str, Any], ...]:
        """What a tool-calling model is offered, in OpenAI's shape."""
        if self.task.mode is Mode.FREE:
            return (_OPENRY,)
        about = {tool.name: tool.description for tool in self.tools}
        calls = [_function(name, about[name], each) for name, each in self.schemas(evidence)]
        return (*calls, self._report_function())

    def function_names(self) -> tuple[str, ...]:
        return ("openry",) if self.task.mode is Mode.FREE else (*self.names, REPORT)

    def example(self) -> str:
        """One well-formed reply, for a model that did not give one."""
        if self.task.mode is Mode.FREE:
            return json.dumps({"action": RUN, "command": "ls"})
        if not self.tools:
            return json.dumps({"action": REPORT, "status": "completed"})
        tool = self.tools[0]
        return json.dumps({"action": tool.name, "arguments": tool.examples[0].arguments})

    def call(self, call: Call, run: RunCommand) -> Answered:
        """Call a tool by name; what is not offered, or does not fit, is said and not run."""
        if call.name not in self.names:
            offered = ", ".join(self.names) or "none"
            return Answered(f"`{call.name}` is not offered here; offered: {offered}", failed=True)
        tool = next(tool for tool in self.tools if tool.name == call.name)
        watch = _Watch(run)
        try:
            result = invoke(tool, dict(call.arguments), watch, self.task.workspace, hand_asks=True)
        except BadArgumentsError as error:
            schema = json.dumps(tool.json_schema(), ensure_ascii=False)
            return Answered(f"bad arguments: {error}; they must fit {schema}", failed=True)
        if watch.brake is not None:
            return Answered(watch.brake.answer().to_json(), braked=True, key="braked")
        text = shown(result)
        return Answered(text, failed=not result.success, key=_without_time(result))

    def touch(self, call: Call) -> Touch:
        """What a call touches; one that is not offered is not run."""
        found = [tool for tool in self.tools if tool.name == call.name]
        return of_call(found[0], call.arguments, self.task.workspace) if found else Touch()

    def _report_function(self) -> Mapping[str, Any]:
        fields: Schema = {"status": {"type": "string", "enum": ["completed", "failed"]}}
        if self.task.expect_payload or self.task.payload_keys:
            fields["payload"] = payload_schema(self.task.payload_keys)
        schema = {"type": "object", "properties": fields, "required": ["status"]}
        return _function(REPORT, "Report how the task went. Call it once, at the end.", schema)


class _Watch:
    """Passes commands on, and remembers the brake a tool's result would hide."""

    def __init__(self, run: RunCommand) -> None:
        self.brake: CommandResult | None = None
        self._run = run

    def __call__(self, command: Command) -> CommandResult:
        result = self._run(command)
        if result.ending is Ending.BRAKED:
            self.brake = result
        return result


def shown(result: ToolResult) -> str:
    """A tool's result as the model reads it: one JSON object, its data cut when long."""
    said: dict[str, Any] = {"success": result.success}
    if result.error is not None:
        said["error"] = result.error.message
        if result.error.hint:
            said["hint"] = result.error.hint
    data = json.dumps(result.data, ensure_ascii=False, default=str)
    if len(data) > _DATA_CHARS:
        said["data"], said["cut"] = data[:_DATA_CHARS], f"{len(data)} characters in all"
    elif result.data is not None:
        said["data"] = result.data
    return json.dumps(said, ensure_ascii=False, default=str)


def _without_time(result: ToolResult) -> str:
    return f"{result.success} {result.error} {result.data!r}"


def narrowed(tool: ToolDefinition, evidence: Evidence) -> Schema:
    """The tool's parameters, each with evidence narrowed to an enumeration of it."""
    roles = {name: each.role or each.format or "" for name, each in tool.parameters.items()}
    return constrain(tool.json_schema(), roles, evidence)


def _function(name: str, description: str, parameters: Schema) -> Mapping[str, Any]:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_OPENRY = _function(
    "openry",
    "Run one command line in the task's folder and get its exit code and output. To report how "
    "the task went, run: openry --status completed|failed [--payload JSON]",
    {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "the command line"}},
        "required": ["command"],
    },
)
