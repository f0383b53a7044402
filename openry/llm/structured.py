"""Ask for data, not prose: rules mend what they can, the model is asked again only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from openry.errors import ModelError
from openry.llm.base import ChatReply, ChatRequest, Json, Model, assistant, user
from openry.llm.repair import Want, extract

#: Says what is wrong with a value that fits the schema; nothing when it is right.
Check = Callable[[Any], str]
_SHOWN_PROBLEMS = 5
_SHOWN_CHARS = 300
_KEPT_ANSWER_CHARS = 8000
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Document:
    """A usable answer, and every reply it took (the last one holds it)."""

    value: Any
    text: str
    mended: bool
    replies: tuple[ChatReply, ...]


def ask_structured(
    model: Model,
    request: ChatRequest,
    schema: Json | None,
    *,
    repairs: int = 1,
    want: Want = "json",
    check: Check | None = None,
) -> Any:
    """The value that `model` answers, fitting `schema` and accepted by `check`.

    At most `1 + repairs` calls, whatever goes wrong.

    Raises:
        ModelError: `empty_answer` or `bad_answer` after the last try, with the text it gave; or
            whatever the model itself raises.
    """
    return ask_document(model, request, schema, repairs=repairs, want=want, check=check).value


def ask_document(
    model: Model,
    request: ChatRequest,
    schema: Json | None = None,
    *,
    repairs: int = 1,
    want: Want = "json",
    check: Check | None = None,
) -> Document:
    """As `ask_structured`, with the document's text and what each call cost."""
    question = first = replace(request, schema=schema if schema is not None else request.schema)
    replies: list[ChatReply] = []
    for tries_left in range(repairs, -1, -1):
        reply = model.complete(question)
        replies.append(reply)
        try:
            value, text, mended = _read(reply, question.schema, want, check)
        except ModelError as error:
            if not tries_left:
                raise _unusable(model.name, len(replies), error) from error
            question = _asked_again(first, question, reply, error, want)
        else:
            return Document(value, text, mended, tuple(replies))
    raise AssertionError("unreachable: the last try returns or raises")


def _read(
    reply: ChatReply, schema: Json | None, want: Want, check: Check | None
) -> tuple[Any, str, bool]:
    found = extract(reply.text, want)
    if reply.finish_reason == "length" and want == "yaml":
        # Half a YAML document is a whole one that says less.
        raise ModelError("bad_answer", "the answer was cut at its longest length", reply.text)
    value = found.value if schema is None else conform(found.value, schema)
    problems = [] if schema is None else schema_problems(value, schema)
    if not problems and check is not None and (objection := check(value)):
        problems = [objection]
    if problems:
        raise ModelError("bad_answer", "; ".join(problems), reply.text)
    return value, found.text, found.mended or value != found.value


def _asked_again(
    first: ChatRequest, last: ChatRequest, reply: ChatReply, error: ModelError, want: Want
) -> ChatRequest:
    """The next try: more room after a cut, another seed after nothing, the problem otherwise."""
    if reply.finish_reason == "length":
        return replace(last, max_tokens=2 * last.max_tokens, attempt=last.attempt + 1)
    if error.code == "empty_answer":
        return replace(last, seed=last.seed + 1, attempt=last.attempt + 1)
    shape = " that fits the schema" if last.schema is not None else ""
    correction = (
        f"That answer cannot be used: {error}\n"
        f"Answer again with the whole {want.upper()} document{shape} and nothing else."
    )
    again = first.followed_by(assistant(reply.text[:_KEPT_ANSWER_CHARS]), user(correction))
    return replace(again, max_tokens=last.max_tokens, attempt=last.attempt + 1)


def _unusable(model: str, calls: int, error: ModelError) -> ModelError:
    tries = "" if calls == 1 else f" in {calls} tries"
    return ModelError(error.code, f"`{model}` gave no usable answer{tries}: {error}", error.text)


def schema_problems(value: Any, schema: Json) -> list[str]:
    """Where `value` does not fit `schema`, one line a place, the first few."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    errors = sorted(
        Draft202012Validator(dict(schema)).iter_errors(value), key=lambda e: e.json_path
    )
    lines = [f"`{e.json_path}`: {e.message[:_SHOWN_CHARS]}" for e in errors[:_SHOWN_PROBLEMS]]
    more = len(errors) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def conform(value: Any, schema: Json) -> Any:
    """`value` with the slips mended that leave no doubt about what was meant.

    A null for a key that may be left out is dropped; a number, truth value or text written as
    another is turned; one thing where a list of such is wanted becomes a list of one.

    >>> wanted = {"properties": {"n": {"type": "integer"}, "note": {"type": "string"}}}
    >>> conform({"n": "3", "note": None}, wanted)
    {'n': 3}
    """
    kinds = _kinds(schema)
    if kinds == ("array",) and not isinstance(value, list) and value is not None:
        value = [value]
    if isinstance(value, dict):
        return _conform_object(value, schema)
    if isinstance(value, list):
        items = schema.get("items")
        return [conform(item, items) for item in value] if isinstance(items, Mapping) else value
    return _conform_scalar(value, kinds)


def _conform_object(value: dict[str, Any], schema: Json) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    mended = {}
    for key, item in value.items():
        wanted = properties.get(key)
        if not isinstance(wanted, Mapping):
            mended[key] = item
        elif item is not None or key in required or "null" in _kinds(wanted):
            mended[key] = conform(item, wanted)
    return mended


def _conform_scalar(value: Any, kinds: tuple[str, ...]) -> Any:
    if isinstance(value, str) and "string" not in kinds:
        text = value.strip()
        for kind, read in (("integer", int), ("number", float)):
            if kind in kinds:
                try:
                    return read(text)
                except ValueError:
                    continue
        return _WORDS.get(text.lower(), value) if "boolean" in kinds else value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if number and kinds == ("string",) else value


def _kinds(schema: Json) -> tuple[str, ...]:
    """The types a schema names; none when it names them in another way (`anyOf`, `enum`)."""
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)
