"""What a person sees while the loop works, and what a script reads: one event at a time.

Only `loop.cli` imports this: it brings rich with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.syntax import Syntax

from loop.outcome import Finished

_MARKS = {"accepted": "[green]accepted[/]", "rejected": "[red]rejected[/]"}
#: First lines of a result that are shown.
_LINES = 3
#: What the phases that take their time do, for those who see no spinner.
_PHASES = {
    "understand": "reading the task and the folder",
    "locate": "looking for the step that spoiled the run",
    "strength": "comparing the result with other readings",
}
#: Length of the bar that shows the budget, and of what a step does.
_BAR, _DOES_CHARS = 20, 80
_STATES = {"done": "green", "validated": "green", "failed": "red", "dropped": "red"}


class JsonView:
    """One JSON object a line, the outcome last; with `quiet` only that. Written out at once."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stdout
        self._quiet = quiet

    def __call__(self, event: str, data: Mapping[str, Any]) -> None:
        if not self._quiet:
            self._print({"event": event, **data})

    def finished(self, finished: Finished) -> None:
        self._print(finished.to_json())

    def _print(self, data: Mapping[str, Any]) -> None:
        print(json.dumps(data, ensure_ascii=False, default=str), file=self._stream, flush=True)


class TextView:
    """Plan, draft, steps, rounds and outcome, as they come."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self._status: Status | None = None
        self._budget_of: Mapping[str, Any] = {}
        self._tokens, self._usd = 0, 0.0
        self._phase_now = ""
        self._shows: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "phase": self._phase,
            "budget": self._budget,
            "judged": self._judged,
            "plan": self._plan,
            "draft": self._draft,
            "step": self._step,
            "round": self._round,
            "try": self._try,
            "attempt": self._attempt,
            "round_end": self._round_end,
            "delivered": self._delivered,
        }

    def __call__(self, event: str, data: Mapping[str, Any]) -> None:
        show = self._shows.get(event)
        if show is not None and not self.quiet:
            self._wait("")
            show(data)

    def finished(self, finished: Finished) -> None:
        """The outcome: always shown, in three or four lines."""
        self._wait("")
        say = self.console.print
        tone = "green" if finished.outcome == "converged" else "yellow"
        word = finished.outcome.replace("_", " ")
        if not self.quiet:
            say()
        line = f"[bold {tone}]{word}[/] ({finished.stop}) {escape(finished.sentence)}"
        say(line.rstrip(), soft_wrap=True)
        for path in finished.results:
            say(f"  result    {escape(path)}", soft_wrap=True)
            for line in _first_lines(Path(path)):
                say(f"    [dim]{escape(plain(line)[:200])}[/]", soft_wrap=True)
        for path in finished.removed:
            say(f"  removed   {escape(path)}", soft_wrap=True)
        if finished.workflow:
            label = "workflow " if finished.outcome == "converged" else "best so far"
            say(f"  {label} {escape(finished.workflow)}", soft_wrap=True)
        strength = finished.acceptance_strength
        if finished.outcome == "converged":
            say(f"  acceptance {finished.acceptance}, {strength}")
            for reason in finished.weak_because:
                say(f"    [yellow]weak:[/] {escape(reason)}", soft_wrap=True)
            say(f"  {escape(finished.confidence)}", soft_wrap=True)
        if not finished.session:
            return
        say(
            f"  {_count(finished.rounds, 'round')}, {_count(finished.edits, 'edit')}, "
            f"{_count(finished.tokens, 'token')}, "
            f"{finished.cost_usd:.4f} USD, {finished.seconds:.1f} s; session {finished.session}"
        )

    def _wait(self, what: str) -> None:
        """Show on a terminal that something is under way; nothing with an empty word."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        if what and self.console.is_terminal:
            self._status = self.console.status(escape(what))
            self._status.start()

    def _phase(self, data: Mapping[str, Any]) -> None:
        self._phase_now = str(data["phase"])
        self._wait(self._phase_now)
        if not self.console.is_terminal and self._phase_now in _PHASES:  # in a pipe nothing turns
            self.console.print(f"{_PHASES[self._phase_now]} …")

    def _judged(self, data: Mapping[str, Any]) -> None:
        """Where no model acts there is nothing to certify, and nothing is said of it."""
        if data["gate"] == "G6" or data["models"]:
            tone = "yellow" if data["indecisive"] else "green" if data["passed"] else "red"
            line = f"  {data['gate']} [{tone}]{escape(data['note'])}[/]"
            self.console.print(line, soft_wrap=True)

    def _try(self, data: Mapping[str, Any]) -> None:
        line = f"  try {escape(data['edit'])} [dim]{escape(data['origin'])}[/]"
        self.console.print(line, soft_wrap=True)
        if data["why"]:
            self.console.print(f"    {escape(data['why'])}", soft_wrap=True)

    def _plan(self, data: Mapping[str, Any]) -> None:
        self._budget_of = data.get("budget") or self._budget_of
        say = self.console.print
        say("[bold]plan[/]")
        for number, goal in enumerate(data["plan"], start=1):
            say(f"  {number}. {escape(goal)}", soft_wrap=True)
        if not data["plan"]:
            say("  (none yet)")
        acceptance = data.get("acceptance")
        if acceptance:
            say(f"[bold]what must hold[/] ({acceptance['origin']})")
            for rule in acceptance["hard"]:
                say(f"  {escape(rule)}", soft_wrap=True)
            for rule in acceptance["soft"]:
                say(f"  [dim]should: {escape(rule)}[/]", soft_wrap=True)
        for problem in data.get("assumed", ()):
            say(f"  [yellow]note:[/] {escape(problem)}", soft_wrap=True)

    def _budget(self, data: Mapping[str, Any]) -> None:
        if data["sentence"]:
            self.console.print(f"[dim]{escape(data['sentence'])}[/]", soft_wrap=True)

    def _draft(self, data: Mapping[str, Any]) -> None:
        self.console.print("[bold]draft[/]")
        self._yaml(data["workflow"])

    def _yaml(self, text: str) -> None:
        if self.console.is_terminal:
            self.console.print(Syntax(text.rstrip(), "yaml", background_color="default"))
        else:
            self.console.print(escape(text.rstrip()), soft_wrap=True)

    def _step(self, data: Mapping[str, Any]) -> None:
        if self._phase_now in ("prune", "certify", "locate"):
            self._wait(self._phase_now)
            return
        if data["state"] == "in_progress":
            does = plain(" ".join(str(data.get("does", "")).split())[:_DOES_CHARS])
            self._wait(f"step {data['step']}  {does}")
            return
        tone = _STATES.get(str(data["state"]), "dim")
        reason = f" {escape(str(data['reason']))}" if data.get("reason") else ""
        line = f"  step {escape(str(data['step']))} [{tone}]{data['state']}[/]{reason}"
        self.console.print(line, soft_wrap=True)

    def _round(self, data: Mapping[str, Any]) -> None:
        diagnosis = data["diagnosis"]
        self.console.print(f"[bold]round {data['round']}[/] {diagnosis['failure_class']}")
        self.console.print(f"  {escape(diagnosis['cause'])}", soft_wrap=True)

    def _attempt(self, data: Mapping[str, Any]) -> None:
        mark = _MARKS.get(data["verdict"], f"[yellow]{data['verdict']}[/]")
        self.console.print(f"  {mark}: {escape(data['reason'])}", soft_wrap=True)
        for line in data["diff"].splitlines()[2:] if data["verdict"] != "rejected" else ():
            tone = {"+": "green", "-": "red"}.get(line[:1], "dim")
            self.console.print(f"    [{tone}]{escape(line)}[/]", soft_wrap=True)

    def _round_end(self, data: Mapping[str, Any]) -> None:
        held = f"{data['held']} of {data['rules']} rules hold"
        line = f"  {data['verdict']}: {held} [dim]({data['seconds']:.1f} s)[/]"
        self.console.print(line, soft_wrap=True)
        if data["tokens"]:
            self._tokens, self._usd = self._tokens + data["tokens"], self._usd + data["cost_usd"]
            self.console.print(f"  [dim]{self._spent()}[/]", soft_wrap=True)

    def _spent(self) -> str:
        """What the models used so far, and how much of the budget that is."""
        used = f"used {self._tokens:,} tokens, {self._usd:.4f} USD"
        limits = (self._budget_of.get("tokens"), self._budget_of.get("usd"))
        shares = [
            now / most for now, most in zip((self._tokens, self._usd), limits, strict=True) if most
        ]
        if not shares:
            return used
        part = min(1.0, max(shares))
        full = round(part * _BAR)
        return f"{used}  {'█' * full}{'░' * (_BAR - full)} {part:.0%} of the budget"

    def _delivered(self, data: Mapping[str, Any]) -> None:
        for path in data["unchanged"]:
            self.console.print(f"  as it was {escape(path)}", soft_wrap=True)
        if data["left_out"]:
            names = ", ".join(data["left_out"][:10])
            self.console.print(f"  not copied back (nobody asked for it): {escape(names)}")


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def plain(line: str) -> str:
    """A line without signs that a terminal obeys."""
    return "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)


def _first_lines(path: Path) -> list[str]:
    """The first lines of a result; none of a file that is no text."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:
        return []
    if b"\0" in start:
        return []
    lines = start.decode("utf-8", "replace").splitlines()
    shown = [line[:120] for line in lines[:_LINES]]
    return [*shown, "…"] if len(lines) > _LINES else shown


def open_view(*, as_json: bool, quiet: bool) -> JsonView | TextView:
    """The view for these flags."""
    return JsonView(quiet=quiet) if as_json else TextView(Console(highlight=False), quiet=quiet)
