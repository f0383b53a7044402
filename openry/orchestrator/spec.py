"""The workflow language as models: composition, workflow (big step), sub step.

Every key a file may hold stands here with its type and default; `loader` reads files into these
and reports what is wrong with line numbers. Plain data of a model (`plan_data`) reads back into
an equal model, which is what an instance stores.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from openry.orchestrator.rules import Rule
from openry.orchestrator.shape import (
    Count,
    Int,
    Model,
    Name,
    Number,
    Regex,
    Seconds,
    Text,
    Texts,
    Value,
)
from openry.orchestrator.yaml12 import plain
from openry.sandbox.hosts import HOST_HINT, is_pattern
from openry.session.blackboard import COMMON, is_name

#: Route targets with a meaning of their own; a sub step may not be called like one.
DONE, ABORT, RETRY, RETRY_CURRENT, CONTINUE = "done", "abort", "retry", "retry_current", "continue"
RESERVED = frozenset({DONE, ABORT, RETRY, RETRY_CURRENT, CONTINUE, "next"})
#: What `on_output_overflow` takes beside a workflow's name.
OVERFLOW_WORDS = frozenset({"default_overflow", "fail", "truncate"})
SHELL_TIMEOUT_S = 600.0
AGENT_TOOL_CALLS = 10


class Kind(StrEnum):
    AGENT = "agent"
    SHELL = "shell"
    CAPABILITY = "capability"
    APPROVAL = "approval"


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """A mapping with every value changed; anything else as it is."""
    return {k: change(v) for k, v in value.items()} if isinstance(value, dict) else value


def _shorthand(key: str) -> Callable[[Any], Any]:
    """A name alone stands for a mapping with that key."""
    return lambda value: {key: value} if isinstance(value, str) else value


#: Texts by name. A null is an empty text, numbers keep their spelling.
TextMap = Annotated[
    dict[str, Text],
    BeforeValidator(
        lambda value: _each(value, lambda text: "" if text is None else text),
        json_schema_input_type=dict[str, str | float | bool | None],
    ),
]


def _a_policy(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise PydanticCustomError("policy", "must be a policy's name or a mapping")
    return value


Policy = Annotated[
    Any,
    BeforeValidator(plain, json_schema_input_type=str | dict[str, Any]),
    AfterValidator(_a_policy),
]


class InputType(StrEnum):
    STRING = "string"
    INT = "int"
    NUMBER = "number"
    BOOL = "bool"
    PATH = "path"
    LIST = "list"
    REF = "ref"  #: what a step of another session ended with


_INPUT_WORDS = {
    "str": "string", "text": "string", "integer": "int", "float": "number", "boolean": "bool",
    "file": "path", "array": "list",
}  # fmt: skip


class InputSpec(Model):
    """A value given with `--input k=v`, checked before anything runs."""

    type: Annotated[
        InputType,
        BeforeValidator(lambda v: _INPUT_WORDS.get(v, v) if isinstance(v, str) else v),
    ] = InputType.STRING
    required: bool | None = None
    default: Value = None
    description: Text = ""
    choices: tuple[Value, ...] | None = None
    pattern: Regex | None = None

    @property
    def must_be_given(self) -> bool:
        return self.default is None if self.required is None else self.required


Inputs = Annotated[
    dict[str, InputSpec],
    BeforeValidator(
        lambda value: _each(value, lambda spec: {} if spec is None else spec),
        json_schema_input_type=dict[str, InputSpec | None],
    ),
]


class AgentSpec(Model):
    """Who acts in an agent step. `mode` is `capabilities` where the step names capabilities."""

    model: Text = ""
    adapter: Text = ""
    mode: Literal["free", "capabilities"] | None = None
    temperature: Annotated[Number, Field(ge=0)] | None = None
    max_turns: Annotated[Int, Field(ge=1)] | None = None
    max_tokens: Annotated[Int, Field(ge=1)] | None = None
    max_cost_usd: Annotated[Number, Field(ge=0)] | None = None
    system: Text = ""


Agent = Annotated[
    AgentSpec,
    BeforeValidator(_shorthand("model"), json_schema_input_type=str | AgentSpec),
]


def _hosts(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        if not is_pattern(text):
            raise PydanticCustomError("host", "`{text}` is no host; " + HOST_HINT, {"text": text})
    return texts


class NetworkSpec(Model):
    hosts: Annotated[Texts, AfterValidator(_hosts)] = ()
    per_minute: Count = 0


def _network(value: Any) -> Any:
    if isinstance(value, list):
        return {"hosts": value}
    return {"none": False, "host": True}.get(value, value) if isinstance(value, str) else value


class SandboxSettings(Model):
    """What surrounds a step's commands. A name alone is the backend."""

    backend: Literal["auto", "bubblewrap", "landlock", "seatbelt", "none"] | None = None
    read: Texts = ()
    write: Texts = ()
    network: (
        Annotated[
            bool | NetworkSpec,
            BeforeValidator(_network, json_schema_input_type=bool | list[str] | NetworkSpec),
        ]
        | None
    ) = None


Sandbox = Annotated[
    SandboxSettings,
    BeforeValidator(_shorthand("backend"), json_schema_input_type=str | SandboxSettings),
]


class PromptBlock(Model):
    """Text put before the task: given here, or read from a file."""

    type: Literal["text", "file"]
    content: Text | None = None
    path: Text | None = None
    label: Text = ""
    optional: bool = False

    @model_validator(mode="after")
    def _has_its_source(self) -> PromptBlock:
        wanted = "content" if self.type == "text" else "path"
        if getattr(self, wanted) is None:
            raise PydanticCustomError("missing_source", "needs `{wanted}`", {"wanted": wanted})
        return self


#: What YAML of old took for true or false: whoever writes it means no name.
_YES_OR_NO = {"true", "false", "yes", "no", "on", "off"}


def _board(value: Any) -> Any:
    """`true` is the blackboard that all share who name none."""
    if isinstance(value, bool):
        return {True: COMMON, False: ""}[value]
    if not isinstance(value, str) or (value and not is_name(value)):
        raise PydanticCustomError(
            "blackboard", "must be `true` or a name of letters, digits, `.`, `_` and `-`"
        )
    if value.lower() in _YES_OR_NO:
        raise PydanticCustomError("blackboard", "must be `true`, `false` or another name")
    return value


Board = Annotated[
    str,
    BeforeValidator(_board, json_schema_input_type=bool | str),
]


class ForEach(Model):
    """One run per item: `items` is a list, a template giving one, or a glob."""

    items: Annotated[Value, Field()]
    as_: Annotated[Name, Field(alias="as")] = "item"
    max_parallel: Annotated[Int, Field(ge=1)] = 1
    on_item_failure: Literal["abort", "skip"] = "abort"


class Backoff(Model):
    """Seconds before a retry: `base` doubled each time up to `cap`.

    `jitter` is the part of a delay that is left to chance, from 0 to 1; `true` is all of it.
    """

    base: Annotated[Number, Field(ge=0)] = 0.0
    cap: Annotated[Number, Field(ge=0)] = 60.0
    jitter: Annotated[
        float,
        BeforeValidator(lambda v: float(v) if isinstance(v, bool) else plain(v)),
        Field(ge=0, le=1),
    ] = 0.0

    @classmethod
    def flat(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"base": value, "cap": value}
        return value


class RouteRule(Model):
    """One conditional route: a condition and where to go when it holds and when it does not."""

    when: Rule | None = None
    when_any: Annotated[tuple[Rule, ...], Field(min_length=1)] | None = None
    when_all: Annotated[tuple[Rule, ...], Field(min_length=1)] | None = None
    on_match: Name = CONTINUE
    on_mismatch: Name = CONTINUE
    on_mismatch_message: Text = ""
    note: Text = ""

    @model_validator(mode="after")
    def _one_condition(self) -> RouteRule:
        if sum(c is not None for c in (self.when, self.when_any, self.when_all)) != 1:
            raise PydanticCustomError(
                "one_of", "needs exactly one of `when`, `when_any`, `when_all`"
            )
        return self

    @property
    def rules(self) -> tuple[Rule, ...]:
        return (
            (self.when,) if self.when is not None else tuple(self.when_any or self.when_all or ())
        )


class SubStep(Model):
    """The atom of a workflow: one thing an agent, a shell, a capability or a person does."""

    foreign_keys = frozenset({"semantic_reporting", "allow_payload_query", "payload_query_scope"})

    id: Name
    kind: Kind = Kind.AGENT
    name: Text = ""
    note: Text = ""
    description: Text = ""
    prompt_blocks: tuple[PromptBlock, ...] = ()
    command: Text | None = None
    capability: Name | None = None
    args: dict[str, Value] = Field(default_factory=dict)
    prompt: Text = ""
    approvers: Texts = ()
    expires_minutes: Seconds | None = None
    for_each: ForEach | None = None
    agent: Agent | None = None
    timeout_seconds: Seconds | None = None
    max_tool_calls: Count | None = None
    parallel_actions: Annotated[Int, Field(ge=1, le=32)] = 1
    max_sub_step_retries: Count = 3
    retry_backoff_seconds: Annotated[
        Backoff, BeforeValidator(Backoff.flat, json_schema_input_type=float | Backoff)
    ] = Backoff()
    on_success: Name | None = None
    on_failure: Name = ABORT
    on_validation_fail: Name = RETRY_CURRENT
    on_payload_missing: Name | None = None
    on_dropped: Name | None = None
    expect_payload: bool = False
    payload_keys: Texts = ()
    payload_keys_on_error: Literal["abort", "fallback"] = "abort"
    payload_from: Name | None = None
    inherit_payload: bool = False
    validation: tuple[Rule, ...] = ()
    validation_routing: tuple[RouteRule, ...] = ()
    command_policy: Policy | None = None
    secrets: Texts = ()
    sandbox: Sandbox | None = None
    env: TextMap = Field(default_factory=dict)
    blackboard: Board = ""
    capabilities: Texts = ()
    max_output_tokens: Count = 0
    max_step_output_tokens: Count = 0
    on_output_overflow: Name | None = None
    overflow_strategy: Literal["truncate", "workflow", "fail"] | None = None
    snapshot: Literal["before", "after", "both", "none"] | None = None
    irreversible: bool = False
    model_ladder: Texts = ()

    @property
    def timeout_s(self) -> float | None:
        """Seconds this run alone may take; None means no clock of its own."""
        if self.timeout_seconds is not None or self.kind in (Kind.AGENT, Kind.APPROVAL):
            return self.timeout_seconds
        return SHELL_TIMEOUT_S

    @property
    def tool_calls(self) -> int:
        """Forwarded commands allowed in one run; 0 means no limit."""
        if self.max_tool_calls is not None:
            return self.max_tool_calls
        return AGENT_TOOL_CALLS if self.kind is Kind.AGENT else 0

    @property
    def snapshot_when(self) -> str:
        return self.snapshot or ("before" if self.irreversible else "none")

    @property
    def overflow_handler(self) -> str:
        """The overflow workflow's name; `fail` and `truncate` are words of their own."""
        if self.on_output_overflow:
            return self.on_output_overflow
        strategy = self.overflow_strategy or "workflow"
        return "default_overflow" if strategy == "workflow" else strategy


class NotifySpec(Model):
    """Whom to tell when an instance ends or needs somebody, and how."""

    on: Annotated[
        tuple[Literal["completed", "failed", "cancelled", "needs_human"], ...],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
        Field(min_length=1),
    ] = ("failed", "needs_human")
    command: Text = ""
    webhook: Text = ""

    @model_validator(mode="after")
    def _one_way(self) -> NotifySpec:
        if bool(self.command) == bool(self.webhook):
            raise PydanticCustomError("one_of", "needs exactly one of `command`, `webhook`")
        return self


class WorkflowSpec(Model):
    """A workflow: what a composition calls a big step."""

    foreign_keys = frozenset({"semantic_reporting", "allow_payload_query", "payload_query_scope"})

    name: Name = "workflow"
    version: Text = ""
    description: Text = ""
    note: Text = ""
    inputs: Inputs = Field(default_factory=dict)
    timeout_minutes: Seconds | None = None
    max_retries: Count = 0
    agent: Agent | None = None
    sandbox: Sandbox | None = None
    command_policy: Policy | None = None
    env: TextMap = Field(default_factory=dict)
    capabilities: Texts = ()
    workspace: Literal["shared", "per_instance"] = "per_instance"
    notify: NotifySpec | None = None
    sub_steps: Annotated[tuple[SubStep, ...], Field(min_length=1)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {step.id: place for place, step in enumerate(self.sub_steps)}

    def has(self, step_id: str) -> bool:
        return step_id in self._places

    def step(self, step_id: str) -> SubStep:
        """The sub step of that id. `KeyError` when there is none: load refuses such routes."""
        return self.sub_steps[self._places[step_id]]

    def after(self, step_id: str) -> str:
        """Where success leads: `on_success`, else the next step in the file, else `done`."""
        here = self._places[step_id]
        last = here + 1 == len(self.sub_steps)
        return self.sub_steps[here].on_success or (DONE if last else self.sub_steps[here + 1].id)


class BigStep(Model):
    """A workflow's place in a composition. A bare name is a `ref`."""

    ref: Name
    description: Text = ""
    note: Text = ""
    on_success: Name | None = None
    on_failure: Name = ABORT
    when: Rule | None = None
    inputs: dict[str, Value] = Field(default_factory=dict)


class Concurrency(Model):
    max_parallel_instances: Annotated[Int, Field(ge=1)] | None = None


class Composition(Model):
    """Big steps and the routes between them."""

    name: Name = "composition"
    version: Text = ""
    description: Text = ""
    note: Text = ""
    concurrency: Concurrency = Concurrency()
    inputs: Inputs = Field(default_factory=dict)
    notify: NotifySpec | None = None
    big_steps: Annotated[
        tuple[
            Annotated[
                BigStep, BeforeValidator(_shorthand("ref"), json_schema_input_type=str | BigStep)
            ],
            ...,
        ],
        Field(min_length=1),
    ]


def plan_data(spec: WorkflowSpec | Composition) -> dict[str, Any]:
    """The resolved spec as plain JSON data; `model_validate` of it gives an equal spec."""
    return spec.model_dump(mode="json", by_alias=True, exclude_none=False, exclude_unset=True)


def plan_hash(data: dict[str, Any]) -> str:
    """SHA-256 of plan data, whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def json_schema() -> dict[str, Any]:
    """JSON Schema of a workflow or composition file, for editors."""
    from pydantic import TypeAdapter

    either: TypeAdapter[Any] = TypeAdapter(WorkflowSpec | Composition)
    schema = either.json_schema(by_alias=True)
    shapes = schema["$defs"]
    for model in (WorkflowSpec, Composition, SubStep):
        shapes[model.__name__]["properties"] |= dict.fromkeys(sorted(model.foreign_keys), True)
    for shape in shapes.values():
        if shape.get("additionalProperties") is False:
            shape["patternProperties"] = {"^x-": True}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "OpenRY workflow or composition"
    return schema
