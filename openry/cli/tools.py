"""`openry --call`, `--capabilities` and `openry capability`: typed tools instead of shell lines."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from openry.agent.calls import arguments_of, call_tool, preview_call, told_with_schema
from openry.agent.giving import secrets_by_hand
from openry.capability import (
    Registered,
    Registry,
    as_json,
    as_mcp,
    as_openai,
    as_prompt,
    own_registry,
)
from openry.capability.trial import try_example
from openry.cli.folders import check_folder
from openry.cli.output import write, write_json, write_table
from openry.cli.parser import Parser
from openry.cli.terminal import ask, can_ask
from openry.config import load_config
from openry.errors import BadFileError, UsageError
from openry.forwarder import Hand
from openry.models import CommandResult


def registry() -> Registry:
    """The shipped tools, those in OPENRY_HOME, and those of a trusted project."""
    return own_registry(load_config().home)


def call(
    hand: Hand, name: str, args: str, *, folder: str, timeout_s: float | None, dry_run: bool
) -> CommandResult:
    """Call a tool; `stdout` of the answer is the ToolResult as one line of JSON.

    Raises:
        NotFoundError: There is no such tool.
        BadArgumentsError: The arguments do not fit; nothing was run.
        UsageError: They are no JSON object.
    """
    tool, given = registry().get(name), arguments_of(args)
    workspace = Path(folder or hand.context.workspace or Path.cwd())
    if dry_run:
        with told_with_schema(tool):
            return preview_call(hand, tool, given, workspace, timeout_s=timeout_s)
    confirm = ask if can_ask() else None
    secrets = secrets_by_hand(hand.config.home)
    if sys.stderr.isatty():
        hand = hand.watched_by(_show_late())
    with told_with_schema(tool):
        called = call_tool(
            hand, tool, given, workspace, timeout_s=timeout_s, confirm=confirm, secrets=secrets
        )
    return called.answer


def _show_late(after_s: float = 2.0) -> Callable[[bytes], None]:
    """Shows a person what a tool writes once it takes long; control characters are left out."""
    begun = time.monotonic()

    def show(written: bytes) -> None:
        if time.monotonic() - begun > after_s:
            text = written.decode("utf-8", "replace")
            sys.stderr.write("".join(sign for sign in text if sign.isprintable() or sign == "\n"))
            sys.stderr.flush()

    return show


def offered(form: str) -> str:
    """Every tool, in one of the forms models are offered them.

    Raises:
        UsageError: There is no such form.
    """
    tools = registry().tools()
    if form == "prompt":
        return as_prompt(tools).rstrip() + "\n"
    made: dict[str, Callable[..., Any]] = {"json": as_json, "openai": as_openai, "mcp": as_mcp}
    if form not in made:
        raise UsageError(f"--format must be json, prompt, openai or mcp; got `{form}`")
    return json.dumps(made[form](tools), ensure_ascii=False) + "\n"


# --- openry capability ------------------------------------------------------------------------


def main(words: Sequence[str]) -> int:
    parser = Parser("openry capability", description="tools and their packs")
    forms = parser.add_subparsers(dest="form", required=True)
    for form, told, named in (
        ("list", "every tool, one a line", False),
        ("show", "one tool whole", True),
        ("test", "run a tool's examples for real", True),
    ):
        one = forms.add_parser(form, help=told)
        one.add_argument("--json", action="store_true", help="as JSON")
        if named:
            one.add_argument("name", nargs="+" if form == "test" else None)
    choose = forms.add_parser("choose", help="the tools that fit a request, best first, and why")
    choose.add_argument("request", help='in a person\'s words: "lines of app.log with ERROR"')
    choose.add_argument("--dir", type=Path, default=Path(), help="the folder it speaks of")
    choose.add_argument("--top", type=int, default=3, help="how many tools (default 3)")
    choose.add_argument("--json", action="store_true", help="as JSON")
    add = forms.add_parser("add", help="copy a pack into OPENRY_HOME, if every tool in it is sound")
    add.add_argument("folder", type=Path)
    new = forms.add_parser("new", help="begin a tool of your own, with what to change in it")
    new.add_argument("name")
    new.add_argument("--dir", type=Path, help="the pack's folder; by default one in OPENRY_HOME")
    new.add_argument("--python", action="store_true", help="a Python function, not a program")
    given = parser.parse_args(words)
    acts = {"list": _list, "show": _show, "test": _test, "add": _add, "new": _new,
            "choose": _choose}  # fmt: skip
    status: int = acts[given.form](given)
    return status


def _list(given: argparse.Namespace) -> int:
    found = registry()
    if given.json:
        write_json([{"name": t.name, "pack": t.pack, "description": t.description} for t in found])
    else:
        write_table((f"{t.pack}.{t.name}", " ".join(t.description.split())) for t in found)
    for problem in found.problems:
        write(f"{problem}\n")
    return 2 if found.problems else 0


def _show(given: argparse.Namespace) -> int:
    from openry.capability.commands import show_text

    found = registry()
    if given.json:
        write_json(as_json([found.get(given.name)])[0])
    else:
        write(show_text(found, given.name) + "\n")
    return 0


def _choose(given: argparse.Namespace) -> int:
    from openry.agent.ranking import in_words, rank_tools, set_aside

    check_folder(given.dir, "--dir")
    if not given.request.strip():
        raise UsageError('REQUEST is empty; say what is wanted, e.g. "lines of app.log with ERROR"')
    if given.top < 1:
        raise UsageError(f"--top must be at least 1, got `{given.top}`")
    home = load_config().home
    ranked = rank_tools(own_registry(home), given.request, given.dir, home / "cache")
    first, aside = ranked[: given.top], set_aside(ranked)
    if given.json:
        write_json(
            {
                "ranking": [each.to_data() for each in first],
                "set_aside": [each.to_data() for each in aside],
            }
        )
        return 0
    write("".join(in_words(f"{n}.", each) for n, each in enumerate(first, start=1)))
    write("".join(in_words("set aside:", each) for each in aside if each not in first))
    return 0


def _test(given: argparse.Namespace) -> int:
    """Each example in a folder of its own, through the real hand."""
    found, hand = registry(), _plain_hand()
    names = found.names() if given.name == ["all"] else given.name
    results = [
        {"tool": name, "request": trial.request, "problems": trial.problems}
        for name in names
        for trial in _trials(found.entry(name), hand)
    ]
    if given.json:
        write_json(results)
    else:
        for one in results:
            said = "; ".join(one["problems"]) or "ok"
            write(f"{one['tool']}: {one['request']}: {said}\n")
    return 1 if any(one["problems"] for one in results) else 0


def _plain_hand() -> Hand:
    from openry.cli.forms import make_hand

    return make_hand(once=False)


def _trials(entry: Registered, hand: Hand) -> list[Any]:
    trials = []
    for example in entry.tool.examples:
        with tempfile.TemporaryDirectory() as folder:
            trials.append(try_example(entry, example, Path(folder), hand.forward))
    return trials


def _add(given: argparse.Namespace) -> int:
    check_folder(given.folder, "openry capability add")
    alone = Registry()
    from openry.capability.registry import load_pack

    load_pack(alone, given.folder)
    if alone.problems or not len(alone):
        problems = tuple(map(str, alone.problems)) or (f"{given.folder}: no tool is defined here",)
        raise BadFileError("", problems)
    target = load_config().home / "capabilities" / given.folder.resolve().name
    shutil.copytree(given.folder, target, dirs_exist_ok=True)
    write(f"added {', '.join(alone.names())}\n")
    return 0


def _new(given: argparse.Namespace) -> int:
    from openry.capability.skeleton import write_skeleton

    folder = given.dir or load_config().home / "capabilities" / "mine"
    for path in write_skeleton(registry(), given.name, folder, python=given.python):
        write(f"wrote {path}\n")
    if given.dir:
        write(f"when it does what you want: openry capability add {folder}\n")
    write(f"try it: openry capability test {given.name}\n")
    return 0
