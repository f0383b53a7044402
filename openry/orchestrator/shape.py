"""Building blocks of the language's models: fields that read what people write, and their base."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from openry.orchestrator.yaml12 import plain


def _text_of(value: Any) -> Any:
    """A scalar as it was written, where text is wanted: `version: 1.10` is "1.10"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(getattr(value, "text", value))
    return value


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number_expected", "must be a number, got bool")
    return plain(value)


def _good_regex(pattern: str) -> str:
    import regex  # type: ignore[import-untyped]  # 10 ms, for the few files that hold one

    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise PydanticCustomError("bad_regex", "bad regex: {why}", {"why": str(error)}) from None
    return pattern


def _good_schema(schema: Any) -> Any:
    from jsonschema import SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]

    if not isinstance(schema, dict | bool):
        raise PydanticCustomError("bad_schema", "a JSON Schema is a mapping")
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path)) or "the schema"
        text = {"where": where, "why": error.message.split("\n", 1)[0][:200]}
        raise PydanticCustomError("bad_schema", "bad JSON Schema at {where}: {why}", text) from None
    return schema


_AsText = BeforeValidator(_text_of, json_schema_input_type=str | float | bool)
Text = Annotated[str, _AsText]
Name = Annotated[str, _AsText, Field(min_length=1)]
Int = Annotated[int, BeforeValidator(_no_bool)]
Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0)]
Number = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, allow_inf_nan=False)]
Value = Annotated[Any, BeforeValidator(plain)]
Regex = Annotated[str, _AsText, AfterValidator(_good_regex)]
JsonSchema = Annotated[Any, BeforeValidator(plain), AfterValidator(_good_schema)]
Texts = Annotated[
    tuple[Text, ...],
    BeforeValidator(
        lambda value: value if isinstance(value, list | tuple) else [value],
        json_schema_input_type=str | list[str | float | bool],
    ),
]


class Model(BaseModel):
    """What every shape shares: unknown keys are errors, a null means the key is not there.

    With `context={"shapes": {}}` validation notes which model read which mapping, so that the
    loader can offer the nearest key.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, serialize_by_alias=True, defer_build=True
    )

    #: Keys where null is a value of its own.
    null_means_null: ClassVar[frozenset[str]] = frozenset()
    #: Keys other tools of the language use and we do not act on: a warning, not an error.
    foreign_keys: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def reshape(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Older forms of the same thing, brought into today's."""
        return data

    @model_validator(mode="before")
    @classmethod
    def _tidy(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        if info.context is not None and "shapes" in info.context:
            info.context["shapes"][id(data)] = cls
        kept = {
            key: value
            for key, value in data.items()
            if not str(key).startswith("x-")
            and key not in cls.foreign_keys
            and (value is not None or key in cls.null_means_null)
        }
        return cls.reshape(kept)
