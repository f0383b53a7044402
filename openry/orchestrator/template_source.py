"""Taking a template apart: literal text, `{{ … }}`, `{% … %}`, and `${payload.K}`.

Only what is surely meant for us is taken; everything else a shell may write with braces
(`${#x}`, `{%s}`, `{a,b}`) stays literal text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from openry.errors import TemplateError

#: Delimiters that Jinja sees instead of braces. A template may not contain them.
BLOCK, BLOCK_END, VALUE, VALUE_END = "\U0010fff0", "\U0010fff1", "\U0010fff2", "\U0010fff3"
COMMENT, COMMENT_END = "\U0010fff4", "\U0010fff5"
_OURS = re.compile("[\U0010fff0-\U0010ffff]")
_TAGS = {"if", "elif", "else", "endif", "for", "endfor", "set"}
_FOREIGN_TAGS = {
    "block", "endblock", "macro", "endmacro", "call", "endcall", "filter", "endfilter", "include",
    "import", "from", "extends", "do", "with", "endwith", "autoescape", "endautoescape", "endset",
}  # fmt: skip
_TAG = re.compile(r"\{%[-+]?\s*([a-z_]+)\b")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}(.*?)\{%[-+]?\s*endraw\s*[-+]?%\}", re.DOTALL)
_COMMENT = re.compile(r"(?<!\$)\{#(?=[-\s]).*?#\}", re.DOTALL)
_REFERENCE = re.compile(r"\$\{(payload|env|inputs)\.([^{}\n]+)\}")
_START = re.compile(r"\{\{|\{%|\{#|\$\{")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a template. `shown` is how it stands there; `kind` is one of the below."""

    kind: str  #: `text`, `value`, `tag`
    source: str
    shown: str
    at: int


def split(template: str, *, references: bool) -> list[Piece]:
    """The pieces of a template. `references` takes `${payload.K}`, `${env.K}`, `${inputs.K}`.

    Raises:
        TemplateError: Something is not closed, or is a tag we do not take.
    """
    if _OURS.search(template):
        raise TemplateError("the template has characters beyond U+10FFF0, which are reserved")
    pieces: list[Piece] = []
    text_from = at = 0
    while match := _START.search(template, at):
        piece, end = _piece(template, match.start(), references)
        if piece is None:
            at = match.start() + 1
            continue
        if match.start() > text_from:
            literal = template[text_from : match.start()]
            pieces.append(Piece("text", literal, literal, text_from))
        pieces.append(piece)
        text_from = at = end
    if text_from < len(template):
        literal = template[text_from:]
        pieces.append(Piece("text", literal, literal, text_from))
    return pieces


def _piece(template: str, at: int, references: bool) -> tuple[Piece | None, int]:
    opening = template[at : at + 2]
    if opening == "{{":
        return _value(template, at)
    if opening == "{%":
        return _tag(template, at)
    if opening == "{#":
        comment = _COMMENT.match(template, at)
        return (Piece("text", "", comment.group(), at), comment.end()) if comment else (None, at)
    reference = _REFERENCE.match(template, at) if references else None
    if reference is None:
        return None, at
    root, key = reference.groups()
    source = f"{root}|_key({json.dumps(key.strip())})"
    return Piece("value", source, reference.group(), at), reference.end()


def _value(template: str, at: int) -> tuple[Piece, int]:
    end = _end(template, at + 2, "}}")
    if end < 0:
        shown = template[at : at + 40].split("\n")[0]
        hint = "close it with `}}`, or write {% raw %}…{% endraw %} around text with braces"
        raise TemplateError(f"`{shown}` is not closed ({hint})")
    source = template[at + 2 : end - 2]
    return Piece("value", source, template[at:end], at), end


def _tag(template: str, at: int) -> tuple[Piece | None, int]:
    raw = _RAW.match(template, at)
    if raw:
        return Piece("text", raw.group(1), raw.group(), at), raw.end()
    tag = _TAG.match(template, at)
    word = tag.group(1) if tag else ""
    if word not in _TAGS and word not in _FOREIGN_TAGS:
        return None, at
    end = _end(template, at + 2, "%}")
    if end < 0:
        return None, at
    if word in _FOREIGN_TAGS:
        known = ", ".join(f"`{name}`" for name in ("if", "for", "set", "raw"))
        raise TemplateError(f"`{{% {word} %}}` is not available in templates (there are {known})")
    return Piece("tag", template[at + 2 : end - 2], template[at:end], at), end


def _end(template: str, at: int, closing: str) -> int:
    """The place after `closing`, strings and nested braces skipped; -1 when there is none."""
    depth, quote = 0, ""
    while at < len(template):
        c = template[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif depth <= 0 and template.startswith(closing, at):
            return at + 2
        elif c in "'\"":
            quote = c
        elif c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        at += 1
    return -1


def jinja_source(pieces: list[Piece]) -> str:
    """The pieces as a Jinja template with our delimiters."""
    marks = {"value": (VALUE, VALUE_END), "tag": (BLOCK, BLOCK_END), "text": ("", "")}
    parts = []
    for piece in pieces:
        before, after = marks[piece.kind]
        parts.append(f"{before}{piece.source}{after}")
    return "".join(parts)
