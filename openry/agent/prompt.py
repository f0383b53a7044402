"""The words an agent reads. They live in `templates/prompts/agent_*.j2`; here they are filled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from openry.agent.task import AgentTask, Mode
from openry.data import data_root

if TYPE_CHECKING:
    from jinja2 import Environment

#: Takes secrets out of a text before a model reads it.
Redact = Callable[[str], str]

_FILES_SHOWN = 40
_PAYLOAD_CHARS = 4000


def system_prompt(task: AgentTask, *, tool_calling: bool, capabilities: str) -> str:
    """The hand's contract. `capabilities` describes the offered ones in words; may be empty."""
    name = "agent_free.j2" if task.mode is Mode.FREE else "agent_capabilities.j2"
    return render(
        name,
        tool_calling=tool_calling,
        capabilities=capabilities,
        wants_payload=task.expect_payload or bool(task.payload_keys),
        payload_keys=task.payload_keys,
        max_tool_calls=task.max_tool_calls,
        parallel_actions=task.parallel_actions,
        blackboard=task.blackboard,
        system=task.system,
    )


def task_prompt(task: AgentTask, files: tuple[str, ...]) -> str:
    """The task with what the model should know first: files, payload, what failed before."""
    return render(
        "agent_task.j2",
        blocks=task.blocks,
        text=task.text,
        files=files[:_FILES_SHOWN],
        more_files=max(0, len(files) - _FILES_SHOWN),
        payload=_short_json(task.payload),
        last_failure=task.last_failure,
        resume=task.resume,
    )


def no_action_prompt(why: str, *, tool_calling: bool, names: tuple[str, ...], example: str) -> str:
    """The one answer to a reply that holds no action."""
    return render(
        "agent_no_action.j2", why=why, tool_calling=tool_calling, names=names, example=example
    )


def render(name: str, **values: Any) -> str:
    """One of the shipped prompts, filled; an unknown variable is our own mistake and raises."""
    return _environment().get_template(name).render(values).strip()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(data_root() / "templates" / "prompts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  # prompts are plain text, not HTML
    )


def _short_json(payload: Mapping[str, Any]) -> str:
    if not payload:
        return ""
    text = json.dumps(dict(payload), ensure_ascii=False, default=str)
    return text if len(text) <= _PAYLOAD_CHARS else text[:_PAYLOAD_CHARS] + " …"
