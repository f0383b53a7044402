"""How a tool says that it cannot, and what it assumed."""

from __future__ import annotations

import sys


class ToolFailure(Exception):  # noqa: N818  # not raised past the child process
    """A failure with its class, e.g. `not_found`; the message is for whoever must mend it."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


def note(text: str) -> None:
    """Say what was assumed; it reaches the caller beside the result."""
    sys.stderr.write(f"note: {text}\n")


def nearest(name: str, known: list[str]) -> str:
    """` (did you mean …?)` or ` (there are: …)`, for the end of a message."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f" (did you mean `{near[0]}`?)"
    shown = ", ".join(f"`{each}`" for each in known[:12])
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    return f" (there are: {shown}{more})" if known else ""
