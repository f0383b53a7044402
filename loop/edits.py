"""The typed edits: all that the loop may do to a workflow.

An edit is a value that says what it does and why. It compiles to primitive changes of one
step; `openry.orchestrator.editing` carries those out and leaves every other line as it was.
Edits marked `starred` can be written down and shown, but only a person may accept them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from loop.values import RuleData
from openry.errors import BadFileError
from openry.texts import one_line

StepData = dict[str, Any]
#: Label of a prompt block that shows a case and its answer.
EXAMPLE = "example"
#: Keys that belong to one kind of step and go when its kind changes.
_KIND_KEYS = {
    "agent": ("description", "prompt_blocks", "agent", "capabilities", "max_tool_calls"),
    "shell": ("command",),
    "capability": ("capability", "args"),
}


@dataclass(frozen=True, slots=True)
class SetKey:
    """Give a key of a step a new value; the key is added when it is missing."""

    step: str
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class DropKey:
    """Take a key of a step away; nothing happens when it is missing."""

    step: str
    key: str


@dataclass(frozen=True, slots=True)
class PutItem:
    """Replace item `index` of the list under a key, or append with `index` None."""

    step: str
    key: str
    value: Any
    index: int | None = None


@dataclass(frozen=True, slots=True)
class DropItem:
    """Take item `index` of the list under a key away."""

    step: str
    key: str
    index: int


@dataclass(frozen=True, slots=True)
class PutSteps:
    """Put steps in the place of one (`before` and `after` keep that one)."""

    step: str
    steps: tuple[StepData, ...]
    place: Literal["before", "after", "instead"]


@dataclass(frozen=True, slots=True)
class DropStep:
    """Take a step away; routes that led to it lead to where it led."""

    step: str


@dataclass(frozen=True, slots=True)
class JoinSteps:
    """Make one step of two of the same kind that follow each other; the first keeps its id."""

    step: str
    other: str


@dataclass(frozen=True, slots=True)
class PutFallback:
    """Put a step where a failed one leads, and from there to where success leads."""

    step: str
    data: StepData


Change = SetKey | DropKey | PutItem | DropItem | PutSteps | DropStep | JoinSteps | PutFallback


class _Edit(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")
    starred: ClassVar[bool] = False

    step: str
    why: str = ""

    @classmethod
    def operation(cls) -> str:
        """The edit's `op`."""
        return str(cls.model_fields["op"].default)

    @abstractmethod
    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        """The primitive changes, given the step's data as it stands."""


class SetPrompt(_Edit):
    """Word an agent step's task anew."""

    op: Literal["set_prompt"] = "set_prompt"
    text: str = Field(min_length=1, max_length=8000)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (SetKey(self.step, "description", self.text),)


class AddContext(_Edit):
    """Put a block of text before an agent step's task."""

    op: Literal["add_context"] = "add_context"
    text: str = Field(min_length=1, max_length=4000)
    label: str = ""

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        block = {"type": "text", "content": self.text} | (
            {"label": self.label} if self.label else {}
        )
        return (PutItem(self.step, "prompt_blocks", block),)


class DropContext(_Edit):
    """Take block `index` of what stands before an agent step's task away, counted from 0."""

    op: Literal["drop_context"] = "drop_context"
    index: int = Field(ge=0)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        blocks = [n for n, block in _blocks(step) if block.get("label") != EXAMPLE]
        return (DropItem(self.step, "prompt_blocks", _nth(blocks, self.index, "context", step)),)


class AddExample(_Edit):
    """Show an agent step one made-up case and its right answer; never one of the real cases."""

    op: Literal["add_example"] = "add_example"
    given: str = Field(min_length=1, max_length=1500)
    answer: str = Field(min_length=1, max_length=1500)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        content = f"Given: {self.given}\nAnswer: {self.answer}"
        block = {"type": "text", "label": EXAMPLE, "content": content}
        return (PutItem(self.step, "prompt_blocks", block),)


class RemoveExample(_Edit):
    """Take example `index` of an agent step away, counted from 0."""

    op: Literal["remove_example"] = "remove_example"
    index: int = Field(ge=0)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        blocks = [n for n, block in _blocks(step) if block.get("label") == EXAMPLE]
        return (DropItem(self.step, "prompt_blocks", _nth(blocks, self.index, "example", step)),)


class SetOutput(_Edit):
    """Narrow what a step may answer: keys it must report, and what one of them may hold."""

    op: Literal["set_output"] = "set_output"
    key: str = Field(min_length=1)
    choices: tuple[str, ...] = ()
    regex: str = ""
    json_schema: dict[str, Any] = Field(default_factory=dict)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        keys = list(step.get("payload_keys") or [])
        found: list[Change] = [SetKey(self.step, "expect_payload", True)]
        if self.key not in keys:
            found.append(SetKey(self.step, "payload_keys", [*keys, self.key]))
        if self.regex:
            rule: RuleData = {
                "type": "payload_value_matches",
                "key": self.key,
                "regex": self.regex,
            }
            found.append(PutItem(self.step, "validation", rule))
        if self.choices:
            rule = {
                "type": "payload_value_in_set",
                "key": self.key,
                "values": list(self.choices),
            }
            found.append(PutItem(self.step, "validation", rule))
        if self.json_schema:
            rule = {"type": "json_schema", "key": self.key, "schema": dict(self.json_schema)}
            found.append(PutItem(self.step, "validation", rule))
        return tuple(found)


class AddCheck(_Edit):
    """One more validation rule, behind those that are there."""

    op: Literal["add_check"] = "add_check"
    rule: RuleData

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (PutItem(self.step, "validation", dict(self.rule)),)


class StrengthenCheck(_Edit):
    """Put a stricter rule in the place of rule `index`, counted from 0."""

    op: Literal["strengthen_check"] = "strengthen_check"
    index: int = Field(ge=0)
    rule: RuleData

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (PutItem(self.step, "validation", dict(self.rule), self.index),)


class RelaxCheck(_Edit):
    """Loosen rule `index`, or take it away when no `rule` is given."""

    starred = True
    op: Literal["relax_check"] = "relax_check"
    index: int = Field(ge=0)
    rule: RuleData | None = None

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        if self.rule is None:
            return (DropItem(self.step, "validation", self.index),)
        return (PutItem(self.step, "validation", dict(self.rule), self.index),)


class SetRetries(_Edit):
    """How often a failed attempt is repeated."""

    op: Literal["set_retries"] = "set_retries"
    retries: int = Field(ge=0, le=5)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (SetKey(self.step, "max_sub_step_retries", self.retries),)


class SetTimeout(_Edit):
    """The time one attempt may take."""

    op: Literal["set_timeout"] = "set_timeout"
    seconds: float = Field(gt=0, le=3600)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        seconds = int(self.seconds) if self.seconds == int(self.seconds) else self.seconds
        return (SetKey(self.step, "timeout_seconds", seconds),)


class SetRoute(_Edit):
    """Where the instance goes after the step."""

    op: Literal["set_route"] = "set_route"
    on: Literal["on_success", "on_failure", "on_validation_fail"]
    target: str = Field(min_length=1)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (SetKey(self.step, self.on, self.target),)


class ToShell(_Edit):
    """Make the step a shell step, or give a shell step another command."""

    op: Literal["to_shell"] = "to_shell"
    command: str = Field(min_length=1, max_length=4000)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return _become(self.step, step, "shell", {"command": self.command})


class ToCapability(_Edit):
    """Make the step one capability call, or correct the call that it is."""

    op: Literal["to_capability"] = "to_capability"
    name: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)
    #: The step's checks from now on, when the old ones belong to the old call; None keeps them.
    validation: tuple[RuleData, ...] | None = None

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        changed = _become(
            self.step, step, "capability", {"capability": self.name, "args": dict(self.args)}
        )
        if self.validation is None:
            return changed
        return (*changed, SetKey(self.step, "validation", [dict(r) for r in self.validation]))


class ToAgent(_Edit):
    """Hand the step to a model again."""

    starred = True
    op: Literal["to_agent"] = "to_agent"
    text: str = Field(min_length=1)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return _become(self.step, step, "agent", {"description": self.text})


class SplitStep(_Edit):
    """Put several smaller steps in the place of one; the first keeps its id."""

    op: Literal["split_step"] = "split_step"
    steps: tuple[StepData, ...] = Field(min_length=2, max_length=8)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        first, *rest = self.steps
        last = _routes(step)
        steps = [{**first, "id": self.step}, *rest]
        steps[-1] = {**steps[-1], **last}
        return (PutSteps(self.step, tuple(steps), "instead"),)


class InsertStep(_Edit):
    """Put a new step before or after the one named."""

    op: Literal["insert_step"] = "insert_step"
    place: Literal["before", "after"] = "after"
    data: StepData

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (PutSteps(self.step, (dict(self.data),), self.place),)


class MergeSteps(_Edit):
    """Make one step of this one and `other`, the next; both shell or both agent."""

    op: Literal["merge_steps"] = "merge_steps"
    other: str = Field(min_length=1)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (JoinSteps(self.step, self.other),)


class AddFallback(_Edit):
    """Another way to the same result, tried when the step fails; it keeps the step's checks."""

    op: Literal["add_fallback"] = "add_fallback"
    data: StepData

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        own = list(self.data.get("validation") or [])
        rules = [rule for rule in step.get("validation") or [] if rule not in own]
        data = {**self.data, "validation": [*rules, *own]} if rules or own else dict(self.data)
        return (PutFallback(self.step, data),)


class SetOverflow(_Edit):
    """How much a step's command may print, in tokens, and what becomes of more."""

    op: Literal["set_overflow"] = "set_overflow"
    max_output_tokens: int = Field(ge=100, le=32_000)
    strategy: Literal["truncate", "workflow", "fail"] = "workflow"

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (
            SetKey(self.step, "max_output_tokens", self.max_output_tokens),
            SetKey(self.step, "overflow_strategy", self.strategy),
        )


class RemoveStep(_Edit):
    """Take a step away."""

    starred = True
    op: Literal["remove_step"] = "remove_step"

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (DropStep(self.step),)


class NarrowPolicy(_Edit):
    """Let the step do less than it may."""

    op: Literal["narrow_policy"] = "narrow_policy"
    policy: str | dict[str, Any]

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (SetKey(self.step, "command_policy", self.policy),)


class WidenPolicy(_Edit):
    """Let the step do more than it may."""

    starred = True
    op: Literal["widen_policy"] = "widen_policy"
    policy: str | dict[str, Any]

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (SetKey(self.step, "command_policy", self.policy),)


class SetModel(_Edit):
    """Give the step another model."""

    starred = True
    op: Literal["set_model"] = "set_model"
    model: str = Field(min_length=1)

    def changes(self, step: Mapping[str, Any]) -> tuple[Change, ...]:
        return (SetKey(self.step, "agent", self.model),)


Edit = Annotated[
    SetPrompt
    | AddContext
    | DropContext
    | AddExample
    | RemoveExample
    | SetOutput
    | AddCheck
    | StrengthenCheck
    | RelaxCheck
    | SetRetries
    | SetTimeout
    | SetRoute
    | ToShell
    | ToCapability
    | ToAgent
    | SplitStep
    | MergeSteps
    | InsertStep
    | RemoveStep
    | AddFallback
    | SetOverflow
    | NarrowPolicy
    | WidenPolicy
    | SetModel,
    Field(discriminator="op"),
]
_ADAPTER: TypeAdapter[Edit] = TypeAdapter(Edit)
EDIT_CLASSES: tuple[type[_Edit], ...] = tuple(_Edit.__subclasses__())


def parse_edit(data: Mapping[str, Any]) -> Edit:
    """The edit that `data` describes.

    Raises:
        pydantic.ValidationError: `data` is none.
    """
    return _ADAPTER.validate_python(dict(data))


def edit_data(edit: Edit) -> dict[str, Any]:
    """`edit` as the journal and a model's JSON hold it, without what is empty."""
    return edit.model_dump(mode="json", exclude_defaults=True) | {"op": edit.op}


def summary(edit: Edit) -> str:
    """One line for a person: the operation, the step and its main value."""
    data = edit.model_dump(mode="json", exclude={"op", "step", "why"}, exclude_none=True)
    shown = ", ".join(f"{key}={_short(value)}" for key, value in data.items() if value != "")
    return f"{edit.op}({edit.step}{', ' if shown else ''}{shown})"


def starred(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Those of `edits` that only a person may accept."""
    return tuple(edit for edit in edits if edit.starred)


def heirs(edits: Sequence[Edit]) -> dict[str, tuple[str, ...]]:
    """For each step that is split or merged, the ids of those that stand for it."""
    found: dict[str, tuple[str, ...]] = {}
    for edit in edits:
        if isinstance(edit, SplitStep):
            found[edit.step] = (edit.step, *(str(step.get("id")) for step in edit.steps[1:]))
        elif isinstance(edit, MergeSteps):
            found[edit.other] = (edit.step,)
    return found


@dataclass(frozen=True, slots=True)
class Proposal:
    """One to three edits that belong together, or a whole new draft.

    Attributes:
        origin: Who proposes: `rule:NAME`, `candidate:N`, `planner`, `person`.
        why: One sentence.
        redraft: The whole new text when the edits cannot say it; then `edits` is empty.
    """

    edits: tuple[Edit, ...]
    origin: str
    why: str
    redraft: str = ""

    @property
    def needs_person(self) -> bool:
        return bool(starred(self.edits))

    @property
    def summary(self) -> str:
        return "redraft" if self.redraft else "; ".join(map(summary, self.edits))


def _become(
    step_id: str, step: Mapping[str, Any], kind: str, values: Mapping[str, Any]
) -> tuple[Change, ...]:
    """Changes that give a step another kind, touching only what differs."""
    found: list[Change] = []
    if step.get("kind", "agent") != kind:
        gone = [key for other, keys in _KIND_KEYS.items() if other != kind for key in keys]
        found += [DropKey(step_id, key) for key in gone if key in step]
        found.append(SetKey(step_id, "kind", kind))
    found += [
        SetKey(step_id, key, value) for key, value in values.items() if step.get(key) != value
    ]
    return tuple(found)


def _blocks(step: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    return list(enumerate(step.get("prompt_blocks") or []))


def _nth(places: Sequence[int], index: int, what: str, step: Mapping[str, Any]) -> int:
    if index >= len(places):
        raise BadFileError(f"step `{step.get('id')}` has no {what} {index} (it has {len(places)})")
    return places[index]


def _routes(step: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("on_success", "on_failure", "on_validation_fail")
    return {key: step[key] for key in keys if key in step}


def _short(value: Any, limit: int = 60) -> str:
    return one_line(value if isinstance(value, str) else repr(value), limit)
