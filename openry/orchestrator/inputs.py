"""What a person gives with `--input`, checked and turned before anything runs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openry.errors import UsageError
from openry.orchestrator.spec import InputSpec, InputType
from openry.texts import did_you_mean

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: As people write them; Python's own reading takes `1_0` and `nan` as well.
_WHOLE = re.compile(r"[-+]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_REF = re.compile(r"[^/\s]+/[^/\s]+")
_REGEX_TIMEOUT_S = 2.0


def check_inputs(specs: Mapping[str, InputSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in their types, defaults filled in. Text is read as the type wants it.

    Raises:
        UsageError: Every problem at once.
    """
    problems = list(_foreign(specs, given))
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        if name in given:
            try:
                values[name] = _checked(spec, given[name])
            except ValueError as error:
                problems.append(f"input `{name}` {error}")
        elif spec.default is not None:
            values[name] = spec.default
        elif spec.must_be_given:
            about = f" ({spec.description})" if spec.description else ""
            problems.append(f"input `{name}` is missing: give --input {name}=…{about}")
    if problems:
        raise UsageError("; ".join(problems))
    return values


def _foreign(specs: Mapping[str, InputSpec], given: Mapping[str, Any]) -> Iterator[str]:
    for name in given:
        if name in specs:
            continue
        known = ", ".join(f"`{each}`" for each in specs) or "none"
        hint = did_you_mean(name, specs) or f"it takes {known}"
        yield f"there is no input `{name}` ({hint})"


def _checked(spec: InputSpec, given: Any) -> Any:
    value = _turned(spec.type, given)
    if spec.choices is not None and value not in spec.choices:
        words = ", ".join(f"`{choice}`" for choice in spec.choices)
        raise ValueError(f"must be one of {words}, got `{given}`")
    if spec.pattern is not None:
        import regex  # type: ignore[import-untyped]  # 10 ms, for who has a pattern

        if not regex.search(spec.pattern, str(value), timeout=_REGEX_TIMEOUT_S):
            raise ValueError(f"must match `{spec.pattern}`, got `{given}`")
    return value


def _turned(kind: InputType, given: Any) -> Any:
    """`given` in the type that is wanted; only text is turned, everything else must be of it."""
    match kind:
        case InputType.INT if isinstance(given, int) and not isinstance(given, bool):
            return given
        case InputType.NUMBER if isinstance(given, int | float) and not isinstance(given, bool):
            return given
        case InputType.BOOL if isinstance(given, bool):
            return given
        case InputType.LIST if isinstance(given, list | tuple):
            return list(given)
        case InputType.STRING | InputType.PATH if isinstance(given, str):
            return given
        case InputType.STRING if isinstance(given, int | float):
            return str(given)
        case InputType.REF if isinstance(given, Mapping):
            return dict(given)
    read = _READ.get(kind)
    if read is None or not isinstance(given, str):
        raise ValueError(f"must be of type {kind.value}, got `{given}`")
    return read(given.strip())


def _int(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"must be a whole number, got `{text}`")
    return int(text)


def _number(text: str) -> int | float:
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _DECIMAL.fullmatch(text) or not math.isfinite(number := float(text)):
        raise ValueError(f"must be a number, got `{text}`")
    return number


def _bool(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise ValueError(f"must be true or false, got `{text}`")
    return _WORDS[text.lower()]


def _list(text: str) -> list[Any]:
    """JSON, or words with commas between them."""
    if text.startswith("["):
        try:
            return list(json.loads(text))
        except ValueError:
            raise ValueError(f"must be a list, got `{text}`") from None
    return [word.strip() for word in text.split(",")] if text else []


def _ref(text: str) -> str:
    if not _REF.fullmatch(text):
        raise ValueError(f"must be SESSION/STEP, got `{text}`")
    return text


_READ = {
    InputType.INT: _int,
    InputType.NUMBER: _number,
    InputType.BOOL: _bool,
    InputType.LIST: _list,
    InputType.REF: _ref,
}
