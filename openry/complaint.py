"""What typer says of words that a command line cannot take, as one sentence of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from openry.texts import did_you_mean


def complaint(error: Exception, program: str, commands: Iterable[str]) -> str | None:
    """What to print about `error`; None when it is not about the words that were given.

    Called with no words at all, a program prints its help, which is no sentence.
    """
    said: Any = getattr(error, "format_message", None)
    if said is None:
        return None
    text: str = said()
    if text.startswith("Usage: "):
        return f"{text.rstrip()}\n"
    known = _commands_of(error) or list(commands)
    return f"{program}: {_reworded(text, known)}{_usage(error, text)}\n"


def _reworded(message: str, commands: list[str]) -> str:
    """Lower case, no full stop, names in backticks, the nearest command."""
    text = message.strip().rstrip(".")
    unknown = re.match(r"No such command '(?P<word>[^']*)'", text)
    if unknown:
        word = unknown["word"]
        hint = did_you_mean(word, commands) or f"there are {', '.join(commands)}"
        return f"there is no command `{word}` ({hint})"
    text = re.sub(r": (\S+) \(Possible options: (.+)\)", _nearest, text.partition("\n")[0])
    text = re.sub(r"'?(?<![\w-])(--[\w-]+)'?", r"`\1`", text).replace("'", "`")
    place, colon, why = text.partition(": Input should be ")
    text = f"{place}: it must be {why.partition(',')[0]}" if colon else text
    return text[:1].lower() + text[1:]


def _commands_of(error: Exception) -> list[str]:
    """The commands of the group that the words were given to."""
    group = getattr(getattr(error, "ctx", None), "command", None)
    return list(getattr(group, "commands", ()))


def _nearest(said: re.Match[str]) -> str:
    near = get_close_matches(said[1], said[2].split(", "), 1, 0.0)
    return f": {said[1]} (did you mean {near[0]}?)"


def _usage(error: Exception, text: str) -> str:
    """How the command is written, where something is missing."""
    context = getattr(error, "ctx", None)
    if context is None or not text.startswith("Missing"):
        return ""
    line = re.sub(r"[{}]", "", " ".join(context.get_usage().split()))
    return f" ({line[:1].lower()}{line[1:]})"
