"""`openry`: the hand on a command line. Parses, calls, renders; imports nothing heavy."""

from __future__ import annotations

import gc
import os
import sys

from openry.cli.output import write
from openry.errors import OpenRYError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_HELP = """\
openry -c CMD|-|@FILE [--cwd DIR] [--timeout SECONDS] [--env K=V]... [--stdin] [--raw]
       [--dry-run] [--propagate]           run a command; the answer is one line of JSON
openry --status completed|failed|cancelled|in_progress|overflow [--payload JSON|@FILE|-]
       [--wait]                            say how your task stands, or wait for the verdict
openry --capabilities [--format json|prompt|openai|mcp]
openry --call NAME --args JSON|@FILE|- [--dry-run]
                                           use a described tool instead of a shell line
openry config [--json]                     each setting and where it came from
openry init [--json]                       make OPENRY_HOME with a config.yaml to fill in
openry doctor [--ledger] [--json]          what works on this machine, and the fix of what does not
openry probe [--network] [--json]          does the sandbox hold here? acts with control runs
openry log [--run ID] [--step ID] [--failed] [--since 1h] [--grep RE] [--json]
openry snapshot create [--dir DIR]|list|diff A B|restore ID [--to DIR] [--force]|gc [--json]
                                           keep a folder as it is, and bring it back
openry session list|show ID|suspend ID|resume ID|export ID FILE|import FILE|end ID|sweep [--json]
                                           a task's whole life, also on another machine
openry blackboard list|get|put|append|add|remove [NAME] [TEXT] [--board NAME]
                                           texts that the steps of all sessions share
openry secret set NAME | list [--json] | remove NAME
                                           values that steps ask for by name; the value is typed in
openry trust [DIR] [--forget|--show] [--json]
                                           let a project's .openry supply workflows and tools
openry backup FILE [--with-secrets] [--whole] | FILE --restore
                                           the ledger and what you wrote, in one archive
openry output list|show|grep|kinds|digest|slice|merge ...
                                           look into outputs that were too large to be answered
openry policy explain CMD [--policy NAME|FILE] [--cwd DIR] [--json] | test FILE
                                           what a policy says of a command; nothing is run
openry capability list|show NAME|test NAME [--json]
openry mcp [--dir DIR] [--tools PATTERN]... [--policy NAME] [--sandbox BACKEND] [--no-shell]
                                           the same hand for agents that speak MCP, over stdio
openry serve [--host 127.0.0.1] [--port 9100] [--token-file FILE] [--dir, --tools, ... as for mcp]
                                           the same hand for programs, over HTTP
openry --version
"""
#: Which module of this package answers a word.
_COMMANDS = {
    "backup": "backup",
    "blackboard": "blackboard",
    "config": "settings",
    "doctor": "doctor",
    "init": "init",
    "log": "log",
    "probe": "probe",
    "capability": "tools",
    "mcp": "mcp",
    "output": "outputs",
    "policy": "policy",
    "secret": "secret",
    "serve": "serve",
    "session": "session",
    "snapshot": "snapshot",
    "trust": "trust",
}
#: Of these, what an agent may ask for as well.
_INSIDE = ("output",)


def program() -> NoReturn:
    """The console script.

    A form of the hand does one thing and ends: it needs no garbage collector, and once its answer
    is written and its row on disk, tidying the interpreter up would take a tenth of its time.
    """
    try:
        if not sys.argv[1:2] or not sys.argv[1].startswith("-"):
            status = main()
            if "xllamacpp" in sys.modules or "numpy" in sys.modules:
                # Their own tidying up waits, now and then for ever, for their threads.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
            sys.exit(status)
        gc.disable()
        os._exit(main())
    except KeyboardInterrupt:  # before there was anything to be ended
        sys.stderr.write("openry: interrupted\n")
        sys.exit(130)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `openry` and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    first = words[0] if words else "--help"
    if first in ("-h", "--help", "help"):
        if first == "help" and words[1:2] and words[1] in _COMMANDS:
            return main([words[1], "--help"])
        write(_HELP)
        return 0
    if first == "--version" and words[1:]:
        return _complain(f"too many words: `{words[1]}`; see openry --help", 2)
    if first == "--version":
        from openry import __version__

        write(f"openry {__version__}\n")
        return 0
    if os.environ.get("OPENRY_SOCKET"):
        from openry.forwarder.client import ask

        return ask(words)
    if not first.startswith("-"):
        return _run_command(first, words[1:])
    from openry.cli.forms import run_form

    try:
        return run_form(words)
    except OpenRYError as error:
        return _answer_problem(error)


def _answer_problem(error: OpenRYError) -> int:
    """A problem of ours, in the form an agent reads."""
    from openry.models.command import Answer

    write(Answer(error.exit_status, "", f"openry: {error}\n", 0).to_json() + "\n")
    return error.exit_status


def _run_command(name: str, words: Sequence[str]) -> int:
    """A form for people: text on standard output, a problem in one sentence on standard error."""
    if name not in _COMMANDS:
        from difflib import get_close_matches

        from openry.forwarder.forms import FORMS

        known = {**dict.fromkeys(_COMMANDS), **{form.lstrip("-"): form for form in FORMS}}
        near = get_close_matches(name, known, n=1)
        meant = f" (did you mean `{known[near[0]] or near[0]}`?)" if near else ""
        return _complain(f"unknown command `{name}`{meant}; see openry --help", 2)
    from importlib import import_module

    try:
        if name not in _INSIDE:
            _refuse_inside_a_run(name)
        status: int = import_module(f"openry.cli.{_COMMANDS[name]}").main(words)
    except OpenRYError as error:
        return _complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    return status


def _refuse_inside_a_run(name: str) -> None:
    from openry.ledger.inside import refuse_inside_a_run

    refuse_inside_a_run(f"openry {name}")


def _complain(sentence: str, status: int) -> int:
    sys.stderr.write(f"openry: {sentence}\n")
    return status
