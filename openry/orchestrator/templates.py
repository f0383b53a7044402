"""Templates: values put into prompts, arguments and commands, once, and never as program text.

In a command each value is handed over as a shell variable, and its place is written for the
quoting it stands in. Jinja is imported when the first template with something to fill is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openry.errors import TemplateError
from openry.orchestrator.shell_places import Trouble, marker, place
from openry.orchestrator.template_source import Piece, jinja_source, split

#: Linux takes no single environment string longer than 128 KiB.
MAX_VALUE_BYTES = 120 * 1024
MAX_VALUES_BYTES = 1024 * 1024
_VARIABLE = "RY_VALUE_"


def render_text(template: str, scope: Mapping[str, Any], *, references: bool = False) -> str:
    """A prompt or another text. Data shows as JSON; what is undefined is an error.

    `references` fills `${payload.K}` and its like as well, as `env:` values do.

    Raises:
        TemplateError: Before anything was rendered; it names what is undefined, and the nearest.
    """
    pieces = split(template, references=references)
    if all(piece.kind == "text" for piece in pieces):
        return "".join(piece.source for piece in pieces)
    from openry.orchestrator import template_env

    return template_env.render(jinja_source(pieces), _named(scope), template_env.as_text)


def render_value(template: Any, scope: Mapping[str, Any]) -> Any:
    """An argument: a template that is one `{{ … }}` gives the value itself, not its text.

    Mappings and lists are rendered throughout.
    """
    if isinstance(template, Mapping):
        return {key: render_value(value, scope) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [render_value(value, scope) for value in template]
    if not isinstance(template, str):
        return template
    pieces = split(template, references=True)
    if len(pieces) != 1 or pieces[0].kind != "value":
        return render_text(template, scope, references=True)
    from openry.orchestrator import template_env

    found: list[Any] = []

    def keep(value: Any) -> str:
        found.append(value)
        return ""

    template_env.render(jinja_source(pieces), _named(scope), keep)
    return _plain(found[0])


def render_env(env: Mapping[str, str], scope: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a step's `env:`: the way by which values reach any program safely."""
    made = {name: render_text(text, scope, references=True) for name, text in env.items()}
    for name, text in made.items():
        _check_size(text, f"`env.{name}`")
    return made


def render_command(template: str, scope: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The shell text of a command, and the variables that hold its values.

    Raises:
        TemplateError: Something is undefined, or a value stands where it would be program text.
    """
    pieces = split(template, references=True)
    if all(piece.kind == "text" for piece in pieces):
        return "".join(piece.source for piece in pieces), {}
    from openry.orchestrator import template_env

    values: list[str] = []

    def keep(value: Any) -> str:
        text = template_env.as_text(value)
        if isinstance(value, template_env.Raw):
            return split_free(text)
        values.append(text)
        return marker(len(values))

    placed = place(template_env.render(jinja_source(pieces), _named(scope), keep), _VARIABLE)
    if placed.troubles:
        raise TemplateError("; ".join(_sentence(trouble, "a value") for trouble in placed.troubles))
    env = {f"{_VARIABLE}{number}": text for number, text in enumerate(values, 1)}
    for text in values:
        _check_size(text, "a value in the command")
    if sum(map(len, values)) > MAX_VALUES_BYTES:
        raise TemplateError("the values of the command together are larger than 1 MiB")
    return placed.text, env


def split_free(text: str) -> str:
    """Raw text without the characters that mark a value's place."""
    return "".join(c for c in text if c < "\U0010fff0")


def _check_size(text: str, what: str) -> None:
    if "\0" in text:
        raise TemplateError(f"{what} has a NUL in it, which no shell variable can hold")
    try:
        size = len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise TemplateError(f"{what} has half a character (a lone surrogate) in it") from None
    if size > MAX_VALUE_BYTES:
        hint = "write it to a file and name the file"
        raise TemplateError(f"{what} is larger than {MAX_VALUE_BYTES // 1024} KiB ({hint})")


def _sentence(trouble: Trouble, what: str) -> str:
    return f"{what} stands {trouble.where}, where it would be program text ({trouble.way_out})"


def _named(scope: Mapping[str, Any]) -> dict[str, Any]:
    from openry.orchestrator.template_env import Named

    made: dict[str, Any] = {}
    for name, value in scope.items():
        made[name] = value
        if isinstance(value, Mapping):
            made[name] = Named(value)
            made[name].label = name
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, int | float):
        return value
    return [_plain(inner) for inner in value] if isinstance(value, Iterator) else str(value)


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong with a template, found without rendering. `shown` is the part meant."""

    message: str
    hint: str = ""
    shown: str = ""


def check_template(
    template: str,
    names: Mapping[str, frozenset[str] | None],
    *,
    command: bool = False,
    references: bool = False,
) -> list[Flaw]:
    """What can be known to be wrong before a run.

    `names` are the roots a template may use; a set holds what the root has, None means unknown.
    """
    try:
        pieces = split(template, references=command or references)
    except TemplateError as error:
        return [Flaw(*_hinted(str(error)))]
    if all(piece.kind == "text" for piece in pieces):
        return []
    return [*_check_pieces(pieces, names), *(_check_places(pieces) if command else [])]


def _hinted(message: str) -> tuple[str, str]:
    """A message and the hint it ends with in brackets."""
    head, bracket, hint = message.rpartition(" (")
    return (head, hint[:-1]) if bracket and hint.endswith(")") else (message, "")


def _check_pieces(pieces: list[Piece], names: Mapping[str, frozenset[str] | None]) -> list[Flaw]:
    """Each `{{ … }}` by itself, so that the right one is shown; with `{% … %}` the whole too."""
    from openry.orchestrator import template_names

    flaws: list[Flaw] = []
    branches = any(piece.kind == "tag" for piece in pieces)
    for piece in pieces:
        if piece.kind == "value":
            found = template_names.used(jinja_source([piece]))
            if found.error:
                flaws.append(Flaw(*_hinted(found.error), piece.shown))
            elif not branches:
                unknown = template_names.unknown(found, names)
                flaws += [Flaw(message, hint, piece.shown) for message, hint, _ in unknown]
    return flaws if flaws or not branches else _check_whole(pieces, names)


def _check_whole(pieces: list[Piece], names: Mapping[str, frozenset[str] | None]) -> list[Flaw]:
    from openry.orchestrator import template_names

    found = template_names.used(jinja_source(pieces))
    flaws = [Flaw(*_hinted(found.error))] if found.error else []
    for message, hint, word in template_names.unknown(found, names):
        shown = next((p.shown for p in pieces if p.kind != "text" and word in p.source), "")
        flaws.append(Flaw(message, hint, shown))
    return flaws


def _check_places(pieces: list[Piece]) -> list[Flaw]:
    """Values of a command that stand where they would be program text.

    With `{% … %}` in it the text depends on the values; it is looked at with all branches in a
    row, and believed only when its quotes come out even.
    """
    line: list[str] = []
    shown: dict[int, str] = {}
    for number, piece in enumerate(pieces, 1):
        if piece.kind == "text":
            line.append(piece.source)
        elif piece.kind == "value" and not _is_raw(piece):
            line.append(marker(number))
            shown[number] = piece.shown
    placed = place("".join(line), _VARIABLE)
    if any(piece.kind == "tag" for piece in pieces) and not placed.closed:
        return []
    flaws = []
    for trouble in placed.troubles:
        what = shown[trouble.number]
        said = f"`{what}` stands {trouble.where}, where it would be program text"
        flaws.append(Flaw(said, trouble.way_out, what))
    return flaws


def _is_raw(piece: Piece) -> bool:
    return piece.source.rstrip().rstrip("-").rstrip().endswith("raw") and "|" in piece.source


def uses_raw(template: str) -> bool:
    """Whether some value of a command opts out of quoting with `| raw`."""
    try:
        return any(p.kind == "value" and _is_raw(p) for p in split(template, references=True))
    except TemplateError:
        return False


def program_from_value(template: str) -> str:
    """The first value of a command that decides which program runs, as it stands there."""
    try:
        pieces = split(template, references=True)
    except TemplateError:
        return ""
    line = [marker(n) if piece.kind == "value" else piece.source for n, piece in enumerate(pieces)]
    text = "".join(part for part, p in zip(line, pieces, strict=True) if p.kind != "tag")
    numbers = place(text).programs if any(p.kind == "value" for p in pieces) else []
    return pieces[numbers[0]].shown if numbers else ""
