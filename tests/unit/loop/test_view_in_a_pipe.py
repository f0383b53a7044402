"""Without a terminal each phase that takes its time is a plain line, at once."""

from __future__ import annotations

import io

from rich.console import Console

from loop.view import TextView


def shown(*, terminal: bool) -> str:
    out = io.StringIO()
    view = TextView(Console(file=out, force_terminal=terminal, highlight=False))
    view("phase", {"phase": "understand"})
    view("phase", {"phase": "rounds"})
    return out.getvalue()


def test_a_pipe_sees_what_is_under_way():
    assert shown(terminal=False) == "reading the task and the folder …\n"


def test_a_terminal_has_its_spinner_instead():
    assert "reading the task" not in shown(terminal=True)
