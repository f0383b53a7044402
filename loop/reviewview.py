"""A review at a terminal: one hunk after the other, one key each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape

from loop.review import Decision, Hunk, read_edits
from loop.reviewing import Reviewed
from loop.view import plain
from openry.errors import BadFileError

#: Asks for one line; an empty one at the end of the input.
Ask = Callable[[str], str]
#: Lets a person change a text; None when they left it.
Editor = Callable[[str], str | None]
_KEYS = {"a": "accept", "r": "reject", "e": "edit", "s": "skip"}
_HELP = "a accept, r reject, e edit, s skip, q leave without writing anything"


def ask_all(
    console: Console, hunks: Sequence[Hunk], ask: Ask, edit: Editor
) -> tuple[Decision, ...] | None:
    """A person's decisions; None when they left before the end."""
    found = []
    for number, hunk in enumerate(hunks, start=1):
        _show(console, hunk, f"{number} of {len(hunks)}")
        decision = _ask_one(console, hunk, ask, edit)
        if decision is None:
            return None
        found.append(decision)
    return tuple(found)


def show_outcome(console: Console, reviewed: Reviewed) -> None:
    """How it ended, in a few lines."""
    tone = "green" if reviewed.certified else "red"
    console.print(f"[bold {tone}]{escape(reviewed.sentence)}[/]", soft_wrap=True)
    for word in ("accepted", "rejected", "edited", "skipped"):
        names = getattr(reviewed, word)
        if names:
            console.print(f"  {word:<9} {', '.join(names)}", soft_wrap=True)
    if reviewed.workflow:
        console.print(f"  workflow  {escape(reviewed.workflow)}", soft_wrap=True)


def _ask_one(console: Console, hunk: Hunk, ask: Ask, edit: Editor) -> Decision | None:
    while True:
        key = ask("[a/r/e/s/q] ").strip().lower()[:1]
        if key == "q" or not key:
            return None
        if key not in _KEYS:
            console.print(f"  {_HELP}")
            continue
        if key != "e":
            return Decision(hunk.name, _KEYS[key])
        changed = edit(json.dumps(hunk.edits, indent=1, ensure_ascii=False) + "\n")
        if changed is None:
            console.print("  left as it was")
            continue
        try:
            return Decision(hunk.name, "edit", read_edits(json.loads(changed)))
        except (BadFileError, ValueError) as error:
            console.print(f"  [red]{escape(str(error))}[/]", soft_wrap=True)


def _show(console: Console, hunk: Hunk, where: str) -> None:
    say = console.print
    say(f"\n[bold]{where}[/]  edit {hunk.name}, {hunk.verdict}  [dim]{escape(hunk.origin)}[/]")
    for line in (hunk.failure, hunk.why):
        if line:
            say(f"  {escape(line)}", soft_wrap=True)
    for line in hunk.command.splitlines()[:6]:
        say(f"    [dim]{escape(plain(line))}[/]", soft_wrap=True)
    for line in hunk.diff.splitlines()[2:]:
        tone = {"+": "green", "-": "red"}.get(line[:1], "dim")
        say(f"    [{tone}]{escape(plain(line))}[/]", soft_wrap=True)
    for gate in hunk.gates:
        say(f"  {escape(gate)}", soft_wrap=True)
    if hunk.cost:
        say(f"  [dim]{hunk.cost}[/]")
