"""The `structured` strategy: a capable model drafts and mends, as JSON that code turns into YAML.

What a model says is a wish. It becomes a workflow only when it loads, lints and passes the
guards; otherwise the model hears what is wrong once more, and then the answer is given up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from loop.edits import EDIT_CLASSES, Edit, Proposal, parse_edit
from loop.evidence import cut
from loop.rules import Scene
from loop.values import FileInfo, RuleData, Survey
from openry.agent.prompt import render
from openry.capability.definition import ToolDefinition
from openry.capability.registry import Registry
from openry.llm import ChatRequest, Model, Purpose, system, user
from openry.llm.structured import ask_document

#: Model calls for one draft or one proposal: the question and one repair.
REPAIRS = 1
#: Longest answers: a workflow, and one to three edits.
DRAFT_TOKENS, EDIT_TOKENS = 3000, 1500
_HEAD_CHARS = 300
_FILES_SHOWN = 60
#: Keys of a draft that are not the workflow's own.
_BESIDE = ("plan", "results")

_RULE_SCHEMA = {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]}
DRAFT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "plan": {"type": "array", "items": {"type": "string"}},
        "results": {"type": "array", "items": {"type": "string"}},
        "sub_steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 30,
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "kind": {"enum": ["capability", "shell", "agent"]},
                    "description": {"type": "string"},
                    "capability": {"type": "string"},
                    "args": {"type": "object"},
                    "command": {"type": "string"},
                    "validation": {"type": "array", "items": _RULE_SCHEMA},
                    "timeout_seconds": {"type": "number"},
                    "on_success": {"type": "string"},
                    "on_failure": {"type": "string"},
                },
                "required": ["id"],
            },
        },
    },
    "required": ["sub_steps"],
}
EDITS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "op": {"enum": [each.operation() for each in EDIT_CLASSES if not each.starred]},
                    "step": {"type": "string"},
                    "why": {"type": "string"},
                },
                "required": ["op", "step"],
            },
        }
    },
    "required": ["edits"],
}


@dataclass(frozen=True, slots=True)
class Draft:
    """What a planner proposes: the workflow as plain data, its plan in words, its result files."""

    data: Mapping[str, Any]
    plan: tuple[str, ...]
    results: tuple[str, ...]


#: Says what is wrong with a workflow's plain data; empty when it may be run.
CheckData = Callable[[Mapping[str, Any]], str]


def draft(
    model: Model,
    task: str,
    survey: Survey,
    registry: Registry,
    acceptance: Sequence[RuleData],
    check: CheckData,
    *,
    rule_types: Sequence[str] = (),
    purpose: Purpose | None = None,
) -> Draft:
    """A first workflow that `check` finds nothing wrong with.

    Raises:
        ModelError: The model cannot be asked, or no usable draft came of two calls.
        BudgetError: A call would exceed the budget.
    """
    prompt = render(
        "loop_draft.j2",
        capabilities=offered(registry),
        rules=", ".join(rule_types),
        acceptance=[json.dumps(rule, ensure_ascii=False) for rule in acceptance],
        files=[_file_line(file) for file in survey.files[:_FILES_SHOWN]],
        task=task,
        mark=_mark(task),
    )
    request = ChatRequest(
        (system("You answer with one JSON object."), user(prompt)),
        max_tokens=DRAFT_TOKENS,
        purpose=purpose or Purpose("draft"),
    )
    document = ask_document(
        model,
        request,
        DRAFT_SCHEMA,
        repairs=REPAIRS,
        want="yaml",
        check=lambda value: check(_without(value, _BESIDE)),
    )
    value = document.value
    return Draft(
        _without(value, _BESIDE),
        tuple(map(str, value.get("plan") or ())),
        tuple(map(str, value.get("results") or ())),
    )


def propose(
    model: Model,
    scene: Scene,
    step_text: str,
    tried: Sequence[str],
    check: Callable[[Sequence[Edit]], str],
    *,
    helped: Sequence[str] = (),
    purpose: Purpose | None = None,
) -> Proposal:
    """One to three typed edits for the failure in `scene`.

    Args:
        step_text: The blamed step's YAML.
        tried: What was tried for this signature and how it went, in words.
        helped: What helped in other tasks, in words of ours.
        check: Says why the edits cannot be carried out; empty when they can.

    Raises:
        ModelError: The model cannot be asked, or no usable edit came of two calls.
        BudgetError: A call would exceed the budget.
    """
    shown = _evidence(scene)
    prompt = render(
        "loop_edit.j2",
        operations=[_operation(kind) for kind in EDIT_CLASSES if not kind.starred],
        capabilities=offered(scene.registry),
        task=scene.task,
        diagnosis=scene.diagnosis,
        step=step_text,
        earlier=", ".join(str(step["id"]) for step in scene.workflow["sub_steps"]),
        evidence=shown,
        helped=helped,
        tried=[json.dumps(cut(line, _HEAD_CHARS), ensure_ascii=False) for line in tried],
        files=[_file_line(file) for file in scene.survey.files[:_FILES_SHOWN]],
        mark=_mark(shown),
    )
    request = ChatRequest(
        (system("You answer with one JSON object."), user(prompt)),
        max_tokens=EDIT_TOKENS,
        attempt=len(tried),
        purpose=purpose or Purpose("edit"),
    )
    document = ask_document(
        model,
        request,
        EDITS_SCHEMA,
        repairs=REPAIRS,
        check=lambda value: _edits_problem(value["edits"], check),
    )
    edits = tuple(parse_edit(each) for each in document.value["edits"])
    return Proposal(edits, f"planner:{model.name}", "; ".join(e.why for e in edits if e.why))


def _evidence(scene: Scene) -> str:
    """What failed, as JSON on one line: words of commands and files are data in it."""
    diagnosis, command = scene.diagnosis, scene.diagnosis.command
    found: dict[str, Any] = {"cause": diagnosis.cause, "broken": list(diagnosis.broken)}
    if command is not None:
        found |= {
            "command": command.command,
            "exit_code": command.exit_code,
            "stdout": cut(command.stdout),
            "stderr": cut(command.stderr),
        }
    return json.dumps(found, ensure_ascii=False)


def _edits_problem(
    data: Iterable[Mapping[str, Any]], check: Callable[[Sequence[Edit]], str]
) -> str:
    edits = []
    for each in data:
        try:
            edits.append(parse_edit(each))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            return f"edit `{each.get('op')}`: `{place}`: {first['msg']}"
    alone = [edit.op for edit in edits if edit.starred]
    if alone:
        return f"only a person may do `{alone[0]}`"
    return check(edits)


def offered(registry: Registry) -> str:
    """Every tool on one line: name, arguments (`?` may be left out), and its first sentence."""
    return "\n".join(map(_tool_line, registry.tools()))


def _tool_line(tool: ToolDefinition) -> str:
    args = [name if each.required else f"{name}?" for name, each in tool.parameters.items()]
    about = " ".join(tool.description.split()).split(". ")[0].rstrip(".")
    return f"- {tool.name}({', '.join(args)}): {about}"


def _operation(kind: type[Any]) -> str:
    """An edit's name and keys for a prompt, e.g. `to_shell {command}: make the step ...`."""
    keys = [name for name in kind.model_fields if name not in ("op", "step", "why")]
    about = " ".join((kind.__doc__ or "").split())
    return f"`{kind.operation()}` {{{', '.join(keys)}}}: {about}"


def _file_line(file: FileInfo) -> str:
    head = json.dumps(file.head[:_HEAD_CHARS], ensure_ascii=False)
    columns = f", columns {', '.join(file.columns)}" if file.columns else ""
    name = json.dumps(file.name, ensure_ascii=False)
    return f"{name} ({file.kind}, {file.bytes} bytes{columns}) begins {head}"


def _mark(text: str) -> str:
    """A delimiter that cannot stand in `text`, the same for the same text."""
    return "=" * 4 + hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _without(data: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}
