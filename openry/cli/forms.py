"""The hand's forms by hand: `-c`, `--status`, `--call`, `--capabilities`, outside of every run."""

from __future__ import annotations

import os
import sys

from openry.cli.output import write
from openry.errors import UsageError
from openry.forwarder.forms import exit_status, parse, report, run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from openry.config import Config
    from openry.forwarder.forms import Given
    from openry.forwarder.hand import Hand
    from openry.models.command import CommandResult, RunContext
# As `stat` names them, which would cost its import.
_REGULAR, _FOLDER = 0o100000, 0o040000
#: What was opened for us already.
_HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def run_form(words: Sequence[str]) -> int:
    """Do what the options say and answer in JSON.

    Raises:
        UsageError: They do not say anything that can be done.
        StorageError: The ledger cannot be written; nothing was started.
    """
    given = parse(words, _content, _here())
    return _HANDLERS[given.form](given)


def _content(given: str, limit: int, what: str) -> bytes:
    """What `-` or a file holds, or what a shell's `<(…)` gives.

    Another pipe may have no writer: to open it would wait for one, past every signal.
    """
    if given == "-":
        return sys.stdin.buffer.read(limit + 1)
    try:
        mode = os.stat(given).st_mode
        if mode & 0o170000 != _REGULAR and not given.startswith(_HANDED_OVER):
            why = "this is a folder" if mode & 0o170000 == _FOLDER else "this is no regular file"
            raise UsageError(f"{what} `{given}`: {why}; name another, or `-` for standard input")
        with open(given, "rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{what} `{given}`: {error.strerror}") from error


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


# --- forms ----------------------------------------------------------------------------------


def _command(given: Given) -> int:
    refused = _refused(given.text("-c"))
    if refused is None:
        return _answer(run_command(make_hand(folder=given.cwd), given), given)
    return _answer(refused, given)


def _answer(result: CommandResult, given: Given) -> int:
    write(result.answer().to_json() + "\n")
    return exit_status(result, given)


def _status(given: Given) -> int:
    from openry.ledger.above import inside_a_run

    inside = inside_a_run()
    if not inside:
        write(report(make_hand(), given, lambda: ("pending", "")))
        return 0
    from openry.models.command import quoted

    message = quoted(f"{inside}; a status is reported over the run's socket")
    told = f'"payload": {{}}, "acknowledged": false, "message": {message}'
    write(f'{{"status": {quoted(given.text("--status"))}, {told}}}\n')
    return 0


def _call(given: Given) -> int:
    from openry.cli.tools import call

    refused = _refused(f"{given.text('--call')} {given.text('--args')}")
    if refused is not None:
        return _answer(refused, given)
    result = call(
        make_hand(folder=given.cwd),
        given.text("--call"),
        given.content("--args", "the arguments", "{}"),
        folder=given.cwd,
        timeout_s=given.seconds,
        dry_run=given.has("--dry-run"),
    )
    return _answer(result, given)


def _capabilities(given: Given) -> int:
    from openry.cli.tools import offered

    write(offered(given.text("--format", "json")))
    return 0


_HANDLERS = {
    "-c": _command,
    "--status": _status,
    "--call": _call,
    "--capabilities": _capabilities,
}


# --- the hand -------------------------------------------------------------------------------


def make_hand(*, once: bool = True, folder: str = "") -> Hand:
    """The hand for free use, outside of every run.

    Args:
        once: For one command, after which this process ends.
        folder: The folder it is for; empty for the current one.
    """
    from openry.config import load_config, make_home
    from openry.forwarder.hand import Hand
    from openry.ledger.fast import FastLedger
    from openry.models.command import RunContext
    from openry.sandbox.process import wake_on_signals

    config = load_config()
    ledger = FastLedger(config.ledger)
    make_home(config)
    wake_fd = wake_on_signals() if once else -1
    if config.policy == "permissive":
        return Hand(ledger, RunContext(), config, alone=once, wake_fd=wake_fd)
    from openry.cli.terminal import ask, can_ask

    context = _under_policy(config, folder if os.path.isdir(folder) else _here())
    asking = ask if can_ask() else None
    return Hand(ledger, context, config, alone=once, wake_fd=wake_fd, ask=asking)


def _under_policy(config: Config, folder: str) -> RunContext:
    """Free use under the policy of config.yaml, whose limits hold.

    What it requires of a sandbox is held by the one of config.yaml, with `folder` for a workspace.

    Raises:
        UsageError: The policy cannot be read.
    """
    from openry.forwarder.bounds import bounded
    from openry.models.command import RunContext, SandboxSpec

    context = bounded(RunContext(policy=(config.policy,)), config.home_dir)
    if not context.sandbox.require or config.sandbox == "none":
        return context
    spec = SandboxSpec(config.sandbox, (folder,))
    context = RunContext(policy=(config.policy,), workspace=folder, sandbox=spec)
    return bounded(context, config.home_dir)


def _refused(text: str) -> CommandResult | None:
    """The answer to who is inside a run and does not come through its socket; None outside.

    The ledger is told when the run is named: what it says of the run goes first.
    """
    from openry.ledger.above import IN_SANDBOX, inside_a_run

    inside = inside_a_run()
    if not inside:
        return None
    from openry.models.command import MANUAL_RUN, CommandResult, Ending

    reason = f"openry: not allowed: {inside}"
    run_id = os.environ.get("OPENRY_RUN_ID") or MANUAL_RUN
    if run_id != MANUAL_RUN and not inside.startswith(IN_SANDBOX):
        reason += ", which is used through its worker's socket; OPENRY_SOCKET does not name that"
        braked, refused = _tell_ledger(run_id, text, reason)
        if braked:
            return CommandResult(0, braked, "", 0.0, Ending.BRAKED)
        reason = refused or reason
    return CommandResult(126, "", f"{reason}\n", 0.0, Ending.REFUSED)


def _tell_ledger(run_id: str, text: str, reason: str) -> tuple[str | None, str | None]:
    from openry.config import load_config
    from openry.ledger.fast import FastLedger
    from openry.models.command import RunContext
    from openry.output.redact import Redactor

    config = load_config()
    if not os.path.isfile(config.ledger):
        return None, None
    shown = Redactor.for_config(config, os.environ).text(text)
    context = RunContext(run_id, token=os.environ.get("OPENRY_RUN_TOKEN", ""))
    with FastLedger(config.ledger) as ledger:
        begun = ledger.refuse(context, shown, reason=reason)
    return begun.braked, begun.refused
