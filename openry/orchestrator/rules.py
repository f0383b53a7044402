"""The validation rules as a person writes them: one model per type, told apart by `type`.

What they mean is in `validation`; here is only their shape.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BeforeValidator, Discriminator, Field, Tag, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from openry.orchestrator.shape import (
    Count,
    Int,
    JsonSchema,
    Model,
    Name,
    Number,
    Regex,
    Seconds,
    Text,
    Texts,
    Value,
)
from openry.orchestrator.yaml12 import resolve


class RuleBase(Model):
    """One check. `message` replaces ours when it fails; `note` is for readers."""

    message: Text = ""
    note: Text = ""

    def model_post_init(self, context: Any, /) -> None:
        self.__pydantic_fields_set__.add("type")  # so that stored data always says which rule it is

    def wording(self) -> str:
        """The rule in one line, in the form that an inline `--accept` takes."""
        given = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        kind = given.pop("type")
        words = [f"{key}={_worded(value, takes(type(self), key))}" for key, value in given.items()]
        return " ".join([kind, *words])


def takes(rule: type[RuleBase], key: str) -> str:
    """How a value of `key` is written inline: as `text`, `texts` with commas, or `data` (YAML)."""
    info = next((i for name, i in rule.model_fields.items() if key in (name, i.alias)), None)
    kinds = _kinds(info.annotation) if info is not None else set()
    if tuple in kinds:
        return "texts"
    return "text" if str in kinds else "data"


def _kinds(annotation: Any) -> set[Any]:
    """`str`, `tuple` (of texts) and what else an annotation is made of."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kinds(inner[0])
    if origin in (Union, UnionType):
        return {kind for one in inner for kind in _kinds(one)}
    if origin is Literal:
        return {str}
    if origin is tuple:
        return {tuple} if str in _kinds(inner[0]) else set()
    return {annotation}


def _worded(value: Any, form: str) -> str:
    if form == "texts" and isinstance(value, list) and all(isinstance(t, str) for t in value):
        simple = value and not any("," in text or text[:1] in ("[", "") for text in value)
        return shlex.quote(",".join(value) if simple else json.dumps(value, ensure_ascii=False))
    plain_text = isinstance(value, str) and (form != "data" or resolve(value) == value)
    return shlex.quote(value if plain_text else json.dumps(value, ensure_ascii=False))


class PayloadHasKey(RuleBase):
    type: Literal["payload_has_key"] = "payload_has_key"
    key: Name


class PayloadValueMatches(RuleBase):
    type: Literal["payload_value_matches"] = "payload_value_matches"
    key: Name
    regex: Regex


class PayloadValuesEqual(RuleBase):
    type: Literal["payload_values_equal"] = "payload_values_equal"
    key_a: Name
    key_b: Name


class PayloadValuesNotEqual(RuleBase):
    type: Literal["payload_values_not_equal"] = "payload_values_not_equal"
    key_a: Name
    key_b: Name


class PayloadValueEquals(RuleBase):
    """Typed: `true`, 1 and "1" are three values."""

    null_means_null = frozenset({"value"})
    type: Literal["payload_value_equals"] = "payload_value_equals"
    key: Name
    value: Value


class PayloadValueInSet(RuleBase):
    type: Literal["payload_value_in_set"] = "payload_value_in_set"
    key: Name
    values: tuple[Value, ...]
    mode: Literal["allow", "deny"] = "allow"


class PayloadValueGreaterThan(RuleBase):
    type: Literal["payload_value_greater_than"] = "payload_value_greater_than"
    key: Name
    threshold: Number
    or_equal: bool = False


class PayloadValueLessThan(RuleBase):
    type: Literal["payload_value_less_than"] = "payload_value_less_than"
    key: Name
    threshold: Number
    or_equal: bool = False


#: Other words for a payload's types, as people write them.
TYPE_WORDS = {
    "string": "str", "text": "str", "integer": "int", "number": "float", "boolean": "bool",
    "array": "list", "object": "dict", "map": "dict", "none": "null",
}  # fmt: skip


def _type_word(value: Any) -> Any:
    if value is None:
        return "null"
    return TYPE_WORDS.get(value, value) if isinstance(value, str) else value


class PayloadType(RuleBase):
    """`float` takes any number, `int` only whole ones; a bool is neither."""

    null_means_null = frozenset({"expected_type"})
    type: Literal["payload_type"] = "payload_type"
    key: Name
    expected_type: Annotated[
        Literal["int", "float", "str", "bool", "list", "dict", "null"], BeforeValidator(_type_word)
    ]


class FileExists(RuleBase):
    type: Literal["file_exists"] = "file_exists"
    path: Name


class FileContains(RuleBase):
    """`contains` is literal text; `regex` is searched in the whole text, `^` being its start."""

    type: Literal["file_contains"] = "file_contains"
    path: Name
    contains: Text | None = None
    regex: Regex | None = None

    @model_validator(mode="after")
    def _one_of(self) -> FileContains:
        return _exactly_one(self, "contains", "regex")


class FileSizeGreaterThan(RuleBase):
    """More than `min_bytes`, like its name."""

    type: Literal["file_size_greater_than"] = "file_size_greater_than"
    path: Name | None = None
    path_key: Name | None = None
    min_bytes: Count = 0

    @model_validator(mode="after")
    def _one_of(self) -> FileSizeGreaterThan:
        return _exactly_one(self, "path", "path_key")


class CommandRule(RuleBase):
    """Exit status 0, any stage of a pipeline failing it."""

    type: Literal["command"] = "command"
    run: Name
    timeout_seconds: Seconds = 60


class CommandOutputContains(RuleBase):
    type: Literal["command_output_contains"] = "command_output_contains"
    run: Name
    contains: Text
    timeout_seconds: Seconds = 60


class DbQuery(RuleBase):
    type: Literal["db_query"] = "db_query"
    query: Name


class HttpStatus(RuleBase):
    type: Literal["http_status"] = "http_status"
    url: Name
    expected_status: Int = 200
    method: Text = "GET"
    timeout_seconds: Seconds = 10


class JsonSchemaRule(RuleBase):
    """`key` of the payload, or a JSON file at `path`."""

    type: Literal["json_schema"] = "json_schema"
    key: Name | None = None
    path: Name | None = None
    schema_: Annotated[JsonSchema, Field(alias="schema")]

    @model_validator(mode="after")
    def _one_of(self) -> JsonSchemaRule:
        return _exactly_one(self, "key", "path")


class PayloadYamlValid(RuleBase):
    """The value is text that reads as YAML; files in the wild use it."""

    type: Literal["payload_yaml_valid"] = "payload_yaml_valid"
    key: Name


class FileMatchesSchema(RuleBase):
    """The whole file reads as `format` and has the `schema` or the `columns`, in order.

    Without either, it only has to be readable as what it claims to be.
    """

    type: Literal["file_matches_schema"] = "file_matches_schema"
    path: Name
    format: Literal["json", "jsonl", "csv", "yaml"] | None = None
    schema_: Annotated[JsonSchema | None, Field(alias="schema")] = None
    columns: tuple[Text, ...] | None = None
    delimiter: Text = ""
    min_rows: Count = 0


class FilesCount(RuleBase):
    type: Literal["files_count"] = "files_count"
    glob: Name
    min: Count | None = None
    max: Count | None = None

    @model_validator(mode="after")
    def _a_bound(self) -> FilesCount:
        if self.min is None and self.max is None:
            raise PydanticCustomError("needs_bound", "needs `min` or `max`")
        return self


class Unchanged(RuleBase):
    """What the glob matches is as it was in the snapshot before the step."""

    type: Literal["unchanged"] = "unchanged"
    glob: Name


class Relation(RuleBase):
    """How an output stands to its input; see `relations` for each kind's meaning.

    Attributes:
        columns: By name or 1-based position, for `projection`, `tally_of` and `number_in`.
        header: Whether the first line of a CSV names the columns; None looks.
        via: How `round_trip` turns the output back.
    """

    type: Literal["relation"] = "relation"
    kind: Literal[
        "subset_lines", "permutation", "same_line_count", "sum_of_line_counts", "set_equal",
        "prefix", "suffix", "tally_of", "projection", "number_in", "round_trip",
    ]  # fmt: skip
    input: Annotated[Texts, Field(min_length=1)]
    output: Name
    ordered: bool = False
    columns: Texts = ()
    delimiter: Text = ""
    header: bool | None = None
    via: Literal["format", "reverse"] = "format"


class Sorted(RuleBase):
    """Lines of the file in order; equal neighbours are fine unless `unique`.

    Text is ordered by code point, as `LC_ALL=C sort` does, or without regard to case.
    """

    type: Literal["sorted"] = "sorted"
    path: Name
    numeric: bool = False
    reverse: bool = False
    unique: bool = False
    ignore_case: bool = False
    column: Text = ""
    delimiter: Text = ""
    header: bool | None = None


class NoLineMatches(RuleBase):
    type: Literal["no_line_matches"] = "no_line_matches"
    path: Name
    regex: Regex | None = None
    contains: Text | None = None

    @model_validator(mode="after")
    def _one_of(self) -> NoLineMatches:
        return _exactly_one(self, "regex", "contains")


class AllLinesMatch(RuleBase):
    type: Literal["all_lines_match"] = "all_lines_match"
    path: Name
    regex: Regex | None = None
    contains: Text | None = None
    allow_empty: bool = False

    @model_validator(mode="after")
    def _one_of(self) -> AllLinesMatch:
        return _exactly_one(self, "regex", "contains")


class Not(RuleBase):
    """Passes when `rule` was evaluated and failed. One that cannot be evaluated passes nowhere."""

    type: Literal["not"] = "not"
    rule: Rule


class AnyOf(RuleBase):
    type: Literal["any_of"] = "any_of"
    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]


class AllOf(RuleBase):
    type: Literal["all_of"] = "all_of"
    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]


_R = TypeVar("_R", bound=RuleBase)


def _exactly_one(rule: _R, *names: str) -> _R:
    given = [name for name in names if getattr(rule, name) is not None]
    if len(given) != 1:
        wanted = " or ".join(f"`{name}`" for name in names)
        what = "needs" if not given else "takes only one of"
        raise PydanticCustomError("one_of", "{what} {wanted}", {"what": what, "wanted": wanted})
    return rule


_CLASSES: tuple[type[RuleBase], ...] = (
    PayloadHasKey, PayloadValueMatches, PayloadValuesEqual, PayloadValuesNotEqual,
    PayloadValueEquals, PayloadValueInSet, PayloadValueGreaterThan, PayloadValueLessThan,
    PayloadType, PayloadYamlValid, FileExists, FileContains, FileSizeGreaterThan, CommandRule,
    CommandOutputContains, DbQuery, HttpStatus, JsonSchemaRule, FileMatchesSchema, FilesCount,
    Unchanged, Relation, Sorted, NoLineMatches, AllLinesMatch, Not, AnyOf, AllOf,
)  # fmt: skip
#: Types of rules that run a command.
COMMANDS = frozenset({"command", "command_output_contains"})
#: Every rule type by its name.
RULE_TYPES: dict[str, type[RuleBase]] = {
    get_args(cls.model_fields["type"].annotation)[0]: cls for cls in _CLASSES
}


def with_inner(rules: Iterable[Any]) -> Iterator[Any]:
    """`rules`, each with the rules inside it."""
    for rule in rules:
        yield rule
        yield from with_inner((rule.rule,) if isinstance(rule, Not) else getattr(rule, "rules", ()))


def rule_types(rules: Iterable[Any]) -> frozenset[str]:
    """The types of `rules` and of the rules inside them."""
    return frozenset(rule.type for rule in with_inner(rules))


def _which(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return kind if isinstance(kind, str) and kind in RULE_TYPES else None


def _short_form(value: Any) -> Any:
    """`{file_exists: {path: a}}` means `{type: file_exists, path: a}`."""
    if isinstance(value, dict) and "type" not in value and len(value) == 1:
        (kind, rest), *_ = value.items()
        if kind in RULE_TYPES and isinstance(rest, dict):
            return {"type": kind, **rest}
    return value


if TYPE_CHECKING:
    Rule = RuleBase
else:
    Rule = Annotated[
        Union[tuple(Annotated[cls, Tag(kind)] for kind, cls in RULE_TYPES.items())],  # noqa: UP007
        Discriminator(_which),
        BeforeValidator(_short_form),
    ]


@cache
def read_rules() -> Callable[..., tuple[Rule, ...]]:
    """What makes rules of a list of data; made when it is first wanted."""
    return TypeAdapter(tuple[Rule, ...]).validate_python
