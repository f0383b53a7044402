"""What a tool is: the pydantic form of one capability definition.

Descriptions are what models choose by, so a definition that lacks them is refused with what is
missing (`shortcomings`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

JsonType = Literal["string", "integer", "number", "boolean", "array", "object"]
SideEffects = Literal["none", "writes", "network", "irreversible"]
OutputParser = Literal["auto", "json", "jsonl", "csv", "table", "lines", "text", "yaml"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: `{name}`, `{name...}` (a list, spread over several arguments) or `{name|escape}` (for a regex).
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)(\.\.\.|\|[a-z]+)?\}")


def is_name(text: str) -> bool:
    """Whether a tool can have that name."""
    return _NAME.fullmatch(text) is not None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _check_regexes(patterns: list[str], info: ValidationInfo) -> list[str]:
    """Refuses what is no regex; a definition that was found sound before is taken as it is."""
    if info.context and info.context.get("checked"):
        return patterns
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"bad regex `{pattern}`: {error}") from error
    return patterns


Regexes = list[str]


class Parameter(_Strict):
    """One argument of a tool: JSON Schema keys, and what in a request fills it.

    Attributes:
        role: What evidence fills it: `input` (a path that exists), `output` (a new path),
            `pattern` (a glob), `needle`, `replacement`, `text`, `count`, `start`, `end`, `column`,
            `columns`, `value`, `query`, `delimiter`, `choice` (an enum), `flag`.
        cues: For an enum or a flag: value (as text) to regexes; a request that matches one
            of them asks for that value.
    """

    type: JsonType | list[JsonType]
    description: str = ""
    role: str = ""
    required: bool = False
    default: Any = None
    enum: list[Any] | None = None
    format: str | None = None
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = Field(default=None, alias="minLength")
    max_length: int | None = Field(default=None, alias="maxLength")
    items: dict[str, Any] | None = None
    min_items: int | None = Field(default=None, alias="minItems")
    source: Literal["workspace", "inputs"] | None = Field(default=None, alias="from")
    cues: dict[str, Regexes] = Field(default_factory=dict)

    @field_validator("cues")
    @classmethod
    def _cues_compile(cls, cues: dict[str, Regexes], info: ValidationInfo) -> dict[str, Regexes]:
        for patterns in cues.values():
            _check_regexes(patterns, info)
        return cues

    @property
    def types(self) -> tuple[str, ...]:
        return (self.type,) if isinstance(self.type, str) else tuple(self.type)

    @property
    def is_path(self) -> bool:
        return self.format == "path" or (self.items or {}).get("format") == "path"

    def json_schema(self) -> dict[str, Any]:
        """The parameter as standard JSON Schema, without our own keys."""
        keys = self.model_dump(
            by_alias=True,
            exclude_none=True,
            exclude={"role", "required", "source", "cues"},
        )
        return {key: value for key, value in keys.items() if value != ""}


class Example(_Strict):
    """A request in a person's words and the arguments it means.

    Attributes:
        files: Written into the folder before the example runs, beside the tool's fixtures.
        result: What the tool must then answer, when the example says so.
    """

    request: Annotated[str, Field(min_length=1)]
    arguments: dict[str, Any]
    files: dict[str, str] = Field(default_factory=dict)
    result: Any = None


class When(_Strict):
    """Command words that appear only if a parameter is set (and equals `equals`, if given).

    A stage that is left without words is left out.
    """

    condition: str = Field(alias="if")
    equals: Any = None
    then: list[str | When] = Field(default_factory=list)
    otherwise: list[str | When] = Field(default_factory=list, alias="else")


Word = str | When
Template = list[Word | list[Word]]


class Returns(_Strict):
    """What comes back: the format on standard output or in `output`, and an optional schema."""

    format: Literal["text", "lines", "number", "csv", "json", "jsonl", "none"] = "text"
    description: str = ""
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")


class RetryPolicy(_Strict):
    attempts: int = Field(default=1, ge=1, le=10)
    backoff_s: float = Field(default=1.0, ge=0, le=60)


class AuthCheck(_Strict):
    command: list[str]
    hint: str


class ToolDefinition(_Strict):
    """One capability, as a pack's YAML file describes it.

    Attributes:
        description: What it does, when to use it, when not.
        opposite: The tool most easily mistaken for this one, with `cues` (regexes over the
            request, case ignored) that decide for *this* tool.
        command_template: Program arguments, never a shell line: a list of words, or a list of
            such lists for a pipeline. A word with `{param}` stays one argument.
        python: `module:function` or `./file.py:function` beside the definition, run as a child
            process with the arguments as JSON on its standard input.
        ok_exits: Exit codes that are an answer, not a failure (`grep` says 1 for no match).
        error_patterns: Regexes over the output of a call that ended well, for tools that say
            "error" and exit with 0.
        output_file: Where the standard output goes; empty for a tool that names its `output`
            in the command or writes it by itself.
        ensures: Post-conditions as validation rules with `{param}` in them. A rule whose
            parameter was not given is left out. `when: {param: value}` restricts one; the value may
            be `{matches: REGEX}`.
        secrets: Parameters whose values are hidden in logs and questions.
        secret_env: Variables with secrets that the tool reads, by name or `{param}`. By hand each
            comes from the environment or `openry secret set`; a step gives it by its `secrets:`.
        conventions: Parameter to the sentence that states what its default means.
        fixtures: Files that the examples run on, by name or glob.
        timeout_s: Seconds of wall time for one call.
        idempotent: Whether doing it twice is like doing it once; parameter to values when that
            hangs on an argument, as a request's method.
    """

    name: str
    pack: str = ""
    description: str = ""
    opposite: str = ""
    cues: Regexes = Field(default_factory=list)
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    examples: list[Example] = Field(default_factory=list)
    returns: Returns = Field(default_factory=Returns)
    command_template: Template | None = None
    python: str | None = None
    stdin: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    output_file: str = "{output}"
    timeout_s: float = Field(default=60.0, gt=0, alias="timeout")
    requires_confirmation: bool = False
    idempotent: bool | dict[str, list[Any]] = True
    side_effects: SideEffects = "none"
    output_parser: OutputParser = "auto"
    ok_exits: list[int] = [0]
    error_patterns: Regexes = Field(default_factory=list)
    retry: dict[str, RetryPolicy] = Field(default_factory=dict)
    auth_check: AuthCheck | None = None
    secrets: list[str] = Field(default_factory=list)
    secret_env: list[str] = Field(default_factory=list)
    network: bool = False
    ensures: list[dict[str, Any]] = Field(default_factory=list)
    conventions: dict[str, str] = Field(default_factory=dict)
    fixtures: dict[str, str] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name_is_a_word(cls, name: str) -> str:
        if not is_name(name):
            raise ValueError(f"`{name}` must be small letters, digits and `_`")
        return name

    @field_validator("cues", "error_patterns")
    @classmethod
    def _regexes_compile(cls, patterns: Regexes, info: ValidationInfo) -> Regexes:
        return _check_regexes(patterns, info)

    @model_validator(mode="after")
    def _one_implementation(self) -> Self:
        if (self.command_template is None) == (self.python is None):
            raise ValueError("give exactly one of `command_template` and `python`")
        kinds = {isinstance(each, list) for each in self.command_template or ()}
        if self.command_template == [] or len(kinds) > 1:
            raise ValueError("`command_template` must be a list of words, or a list of such lists")
        if self.python is not None and ":" not in self.python:
            raise ValueError(f"`python` must be `module:function`, got `{self.python}`")
        return self

    @property
    def stages(self) -> tuple[tuple[Word, ...], ...]:
        """The command template as a pipeline; empty for a Python tool."""
        template = self.command_template or []
        pipeline = tuple(tuple(stage) for stage in template if isinstance(stage, list))
        words = tuple(word for word in template if not isinstance(word, list))
        return pipeline or ((words,) if words else ())

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, each in self.parameters.items() if each.required)

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """Names of the parameters that have one of `roles`, in order."""
        return tuple(name for name, each in self.parameters.items() if each.role in roles)

    def may_repeat(self, values: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments may be run again after it failed."""
        if isinstance(self.idempotent, bool):
            return self.idempotent
        return all(values.get(name) in wanted for name, wanted in self.idempotent.items())

    def defaults(self) -> dict[str, Any]:
        return {n: p.default for n, p in self.parameters.items() if p.default is not None}

    def json_schema(self) -> dict[str, Any]:
        """The arguments as one JSON Schema object."""
        return {
            "type": "object",
            "properties": {name: each.json_schema() for name, each in self.parameters.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }


def shortcomings(tool: ToolDefinition) -> tuple[tuple[str, str], ...]:
    """(key, what is missing) for everything that keeps a definition from being registered."""
    return tuple(_shortcomings(tool))


def _shortcomings(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    if len(tool.description.split()) < 3:
        yield "description", "missing `description`: say what it does, when to use it, when not"
    if not tool.examples:
        yield "examples", "missing `examples`: at least one request with its arguments"
    for name, parameter in tool.parameters.items():
        if not parameter.description.strip():
            yield name, f"parameter `{name}` has no `description`"
    for name in sorted(set(_used_parameters(tool)) - set(tool.parameters)):
        yield name, f"`{{{name}}}` is used but `parameters` has no `{name}`"
    for name in sorted(set(tool.conventions) - set(tool.parameters)):
        yield name, f"convention `{name}` names no parameter"
    if not isinstance(tool.idempotent, bool):
        for name in sorted(set(tool.idempotent) - set(tool.parameters)):
            yield name, f"`idempotent` names no parameter `{name}`"


def _used_parameters(tool: ToolDefinition) -> Iterator[str]:
    for stage in tool.stages:
        yield from _used_in_words(stage)
    for rule in tool.ensures:
        yield from placeholders(rule)
        yield from rule.get("when", {})
    yield from placeholders([tool.stdin, list(tool.env.values()), tool.secret_env])
    if tool.output_file != "{output}":
        yield from placeholders(tool.output_file)


def _used_in_words(words: Iterable[Word]) -> Iterator[str]:
    for word in words:
        if isinstance(word, str):
            yield from placeholders(word)
        else:
            yield word.condition
            yield from _used_in_words((*word.then, *word.otherwise))


def placeholders(value: Any) -> Iterator[str]:
    """The parameter names that `value` mentions, at any depth."""
    if isinstance(value, str):
        yield from (match.group(1) for match in PLACEHOLDER.finditer(value))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from placeholders(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from placeholders(inner)
