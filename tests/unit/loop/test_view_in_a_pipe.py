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


def told(budget: dict[str, float | None], *rounds: tuple[int, float]) -> str:
    """What a view shows of a plan with a budget, and of rounds that used so much."""
    out = io.StringIO()
    view = TextView(Console(file=out, highlight=False, width=200))
    view("plan", {"plan": ["sort"], "budget": budget})
    ended = {"verdict": "accepted", "held": 1, "rules": 1, "seconds": 0.1}
    for tokens, cost in rounds:
        view("round_end", {**ended, "tokens": tokens, "cost_usd": cost})
    return out.getvalue()


def test_after_each_round_it_says_what_was_used_of_the_budget():
    """The tighter of the two limits counts; without a limit there is no bar."""
    both = told({"tokens": 1000, "usd": 0.01}, (100, 0.001), (150, 0.006))
    none = told({"tokens": None, "usd": None}, (1200, 0.0))

    assert "used 100 tokens, 0.0010 USD  ██░░░░░░░░░░░░░░░░░░ 10% of the budget" in both
    assert f"used 250 tokens, 0.0070 USD  {'█' * 14}{'░' * 6} 70% of the budget" in both
    assert none.endswith("used 1,200 tokens, 0.0000 USD\n")


def test_where_no_model_was_asked_nothing_is_said_of_cost():
    """Most workflows ask none."""
    assert "used" not in told({"tokens": 1000, "usd": None}, (0, 0.0))


def test_a_terminal_sees_what_the_step_under_way_does():
    """Its command, tool or task, in one line."""
    out = io.StringIO()
    view = TextView(Console(file=out, force_terminal=True, highlight=False, width=200))

    view("step", {"step": "s1", "state": "in_progress", "does": "grep -c ERROR\n app.log"})
    view("phase", {"phase": "deliver"})

    assert "step s1  grep -c ERROR app.log" in out.getvalue()
