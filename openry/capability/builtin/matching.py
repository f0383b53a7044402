"""Whether a line has what is looked for."""

from __future__ import annotations

import re
from collections.abc import Callable

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.lines import text_of


def compiled(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolFailure("bad_arguments", f"bad regular expression `{pattern}`: {error}") from None


def matcher(
    needle: str, *, where: str = "anywhere", regex: bool = False, ignore_case: bool = False
) -> Callable[[bytes], bool]:
    """A test for the body of a line.

    Args:
        where: `anywhere`, `start`, `end`, `whole` (the entire line) or `word` (not inside a word).
    """
    if not regex and not ignore_case and where == "anywhere" and needle.isascii():
        plain = needle.encode()
        return lambda body: plain in body
    pattern = needle if regex else re.escape(needle)
    match = compiled(_AROUND[where].format(pattern), ignore_case=ignore_case).search
    return lambda body: match(text_of(body)) is not None


_AROUND = {
    "anywhere": "{}",
    "start": "^(?:{})",
    "end": "(?:{})$",
    "whole": r"\A(?:{})\Z",
    "word": r"(?<!\w)(?:{})(?!\w)",
}
