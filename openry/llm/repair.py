"""Get the JSON or YAML out of what a model wrote around it, by rule, without asking again.

Handled: code fences, words before and after, `<think>` parts, trailing commas, comments, Python's
`True`/`None`/single quotes, curly quotes, uneven YAML indentation and tabs. Never handled: an end
that is missing. Half an answer stays half.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from openry.errors import ModelError

Want = Literal["json", "yaml"]
#: A longer answer is not searched: no document we ask for comes near it.
MAX_CHARS = 400_000

_THINK = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[ \t]*\n(.*?)^[ \t]*\1", re.DOTALL | re.MULTILINE
)
_OPEN_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*[\w+-]*[ \t]*\n", re.MULTILINE)
_YAML_LINE = re.compile(
    r"""(?:\s|-(?:\s|$)|\#|---|[A-Za-z_][\w.-]*\s*:(?:\s|$)|["'][^"']+["']\s*:)"""
)
_YAML_START = re.compile(r"""(?:-\s|---\s*$|[A-Za-z_][\w.-]*\s*:(?:\s|$)|["'][^"']+["']\s*:)""")
_DOCUMENT_START = re.compile(rf"^[ \t]*(?:[{{\[]|{_YAML_START.pattern})", re.MULTILINE)
_BLOCK_SCALAR = re.compile(r"(?:^|[:\s-])[|>][+-]?\d?[+-]?\s*(?:#.*)?$")
_WORDS = {"true": "true", "false": "false", "none": "null", "null": "null"}
_CLOSING = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Extracted:
    """The document found in an answer.

    Attributes:
        value: What it says: an object or a list.
        text: The document alone, mended, as JSON or YAML text.
        mended: Whether more than surrounding words and fences had to be changed.
    """

    value: Any
    text: str
    mended: bool = False


def extract(text: str | None, want: Want = "json") -> Extracted:
    """The one object or list that `text` holds.

    Raises:
        ModelError: `empty_answer` for nothing but white space, `bad_answer` when no rule finds a
            whole document; both keep the text.
    """
    said = (text or "").removeprefix("\ufeff")
    if not said.strip():
        raise ModelError("empty_answer", "the model answered nothing", said)
    if len(said) > MAX_CHARS:
        raise ModelError("bad_answer", f"the answer has {len(said):,} characters", said)
    why = ""
    for body in _bodies(_THINK.sub("", said).replace("\r\n", "\n")):
        for reader in _readers(body, want):
            try:
                return reader(body)
            except ValueError as error:
                why = why or str(error)
    raise ModelError("bad_answer", f"no {want.upper()} in the answer: {why}", said)


def _bodies(said: str) -> Iterator[str]:
    """Where the document may be: inside fences, longest first, else anywhere."""
    fenced = [match.group(3) for match in _FENCE.finditer(said)]
    yield from sorted(fenced, key=len, reverse=True)
    if not fenced and (opened := _OPEN_FENCE.search(said)):
        yield said[opened.end() :]
    yield said


def _readers(body: str, want: Want) -> tuple[Callable[[str], Extracted], ...]:
    if want == "json":
        return (_as_json,)
    first = _DOCUMENT_START.search(body)
    bracketed = first is not None and first.group().lstrip()[0] in _CLOSING
    # Never YAML then: lines from inside a JSON answer that was cut would read as a whole one.
    return (_as_json,) if bracketed else (_as_yaml, _as_json)


# --- JSON -------------------------------------------------------------------------------------


def _as_json(body: str) -> Extracted:
    """The first bracketed part that reads as JSON, as it stands or mended."""
    why = "it has no `{` or `[`"
    start = 0
    while (begin := _next_bracket(body, start)) >= 0:
        end = _matching_end(body, begin)
        if end < 0:
            raise ValueError(f"the `{body[begin]}` at character {begin + 1} is never closed")
        found = body[begin:end]
        for mended, text in ((False, found), (True, _mend_json(found))):
            try:
                return Extracted(json.loads(text), text, mended)
            except (ValueError, RecursionError) as error:
                why = str(error)
        start = end
    raise ValueError(why)


def _next_bracket(text: str, start: int) -> int:
    found = [at for at in (text.find("{", start), text.find("[", start)) if at >= 0]
    return min(found, default=-1)


def _matching_end(text: str, begin: int) -> int:
    """Just behind the bracket that closes the one at `begin`, or -1."""
    waiting: list[str] = []
    for at, token in _tokens(text, begin):
        if token in _CLOSING:
            waiting.append(_CLOSING[token])
        elif token in ("}", "]"):
            if not waiting or waiting.pop() != token:
                return -1
            if not waiting:
                return at + 1
    return -1


_TOKEN = re.compile(
    r"""
    "(?:[^"\\]|\\.)*"              # a string
  | (?<![\w])'(?:[^'\\\n]|\\.)*'   # a string as Python writes it; not an apostrophe
  | //[^\n]* | /\*.*?\*/           # comments
  | [A-Za-z_]+                     # true, None, a bare key
  | \s+
  | .
    """,
    re.VERBOSE | re.DOTALL,
)


def _tokens(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    for match in _TOKEN.finditer(text, start):
        yield match.start(), match.group()


def _mend_json(text: str) -> str:
    """The same with strict quotes and words, and without comments and trailing commas."""
    straight = text.translate({0x201C: '"', 0x201D: '"'}) if '"' not in text else text
    out: list[str] = []
    for _, token in _tokens(straight):
        if token.startswith(("//", "/*")):
            continue
        if token in ("}", "]"):
            _drop_trailing_comma(out)
        out.append(_strict(token))
    return "".join(out)


def _drop_trailing_comma(out: list[str]) -> None:
    at = len(out) - 1
    while at >= 0 and out[at].isspace():
        at -= 1
    if at >= 0 and out[at] == ",":
        del out[at]


def _strict(token: str) -> str:
    if token.startswith("'") and len(token) > 1:
        inner = token[1:-1].replace("\\'", "'")
        return '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'
    if token.startswith('"') and len(token) > 1:
        return token.replace("\n", "\\n").replace("\t", "\\t")
    if token[0].isalpha() or token[0] == "_":
        return _WORDS.get(token.lower(), token)
    return token


# --- YAML -------------------------------------------------------------------------------------


def _as_yaml(body: str) -> Extracted:
    """The lines that look like YAML, as they stand or with their indentation made even."""
    text = _yaml_part(body)
    if not text:
        raise ValueError("no line looks like `key: value`")
    why = ""
    for mended, candidate in ((False, text), (True, even_indentation(text))):
        try:
            value = _load_yaml(candidate)
        except ValueError as error:
            why = why or str(error)
            continue
        return Extracted(value, candidate, mended)
    raise ValueError(why)


def _yaml_part(body: str) -> str:
    """`body` without the sentences before its first and after its last line of YAML."""
    lines = body.strip("\n").split("\n")
    starts = [i for i, line in enumerate(lines) if _YAML_START.match(line.lstrip())]
    if not starts:
        return ""
    lines = lines[starts[0] :]
    while lines and not (lines[-1].strip() and _YAML_LINE.match(lines[-1])):
        lines.pop()
    return "\n".join(lines) + "\n" if lines else ""


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    if not isinstance(value, (dict, list)):
        raise ValueError(f"it is a {type(value).__name__}, not a mapping or a list")
    if isinstance(value, dict) and all(item is None for item in value.values()):
        raise ValueError("it is a sentence, not a mapping")
    return value


def even_indentation(text: str) -> str:
    """`text` with each line moved to the nearest level that is open there; tabs become two spaces.

    >>> print(even_indentation("steps:\\n  - id: a\\n   kind: shell\\n    run: x"), end="")
    steps:
      - id: a
        kind: shell
        run: x
    """
    levels = [0]
    opens_deeper = True
    scalar_depth: int | None = None  # of the text below a `|`: 0 until its first line is seen
    out: list[str] = []
    for line in text.expandtabs(2).splitlines():
        content = line.lstrip(" ")
        depth = len(line) - len(content)
        if scalar_depth is not None:
            if not content or depth >= (scalar_depth or levels[-1] + 1):
                scalar_depth = scalar_depth or (depth if content else 0)
                out.append(line)
                continue
            scalar_depth = None
        if not content or content.startswith("#"):
            out.append(line)
            continue
        depth = _nearest_level(levels, depth, opens_deeper)
        out.append(" " * depth + content)
        opens_deeper = content.rstrip().endswith(":")
        scalar_depth = 0 if _BLOCK_SCALAR.search(content) else None
        while (dash := re.match(r"-\s+(?=\S)", content)) is not None:
            depth += dash.end()
            content = content[dash.end() :]
            levels.append(depth)
    return "\n".join(out) + "\n"


def _nearest_level(levels: list[int], depth: int, opens_deeper: bool) -> int:
    """The level a line at `depth` belongs to; `levels` is cut or grown to end with it."""
    if opens_deeper and depth > levels[-1]:
        levels.append(depth)
        return depth
    nearest = min(reversed(levels), key=lambda level: abs(level - depth))
    del levels[levels.index(nearest) + 1 :]
    return nearest
