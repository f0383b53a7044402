"""The hand's forms, wherever they are asked for: by hand, or over a run's socket.

What differs is who reads the files that are named, so `Given` is told how to.
"""

from __future__ import annotations

import os

from openry.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from openry.forwarder.hand import Hand
    from openry.models.command import CommandResult

    #: The content of a file that is named, or of standard input for `-`; at most so many bytes
    #: and one more; what it is, for a sentence about it.
    ReadFile = Callable[[str, int, str], bytes]

MIB = 1024 * 1024
#: What to do about a value that is too large, by its option.
_INSTEAD = {
    "-c": "let the command run the file itself: -c 'sh FILE'",
    "--payload": "put the large part in a file and give its path",
    "--args": "put the large part in a file and name that",
}
#: Options of the hand's forms and whether a value follows. `-c` and the like choose the form.
FORMS = {"-c": True, "--status": True, "--call": True, "--capabilities": False}
_OPTIONS = {
    "--cwd": True,
    "--timeout": True,
    "--env": True,
    "--stdin": False,
    "--raw": False,
    "--dry-run": False,
    "--propagate": False,
    "--payload": True,
    "--wait": False,
    "--args": True,
    "--format": True,
}
_ALLOWED = {
    "-c": {"--cwd", "--timeout", "--env", "--stdin", "--raw", "--dry-run", "--propagate"},
    "--status": {"--payload", "--wait"},
    "--call": {"--args", "--dry-run", "--cwd", "--timeout", "--propagate"},
    "--capabilities": {"--format"},
}


class Given:
    """A form and its options, by their names.

    Args:
        read: Reads the files that are named.
        folder: What a folder that is named is relative to.
    """

    def __init__(self, form: str, options: dict[str, Any], read: ReadFile, folder: str) -> None:
        self.form, self._options, self._read, self._folder = form, options, read, folder

    def has(self, name: str) -> bool:
        return name in self._options

    def text(self, name: str, default: str = "") -> str:
        text: str = self._options.get(name, default)
        return text

    @property
    def pairs(self) -> dict[str, str]:
        texts: list[str] = self._options["--env"]
        for text in texts:
            if "=" not in text[1:]:
                raise UsageError(f"--env must be NAME=VALUE, got `{text}`")
        return dict(text.split("=", 1) for text in texts)

    @property
    def seconds(self) -> float | None:
        if "--timeout" not in self._options:
            return None
        text = self._options["--timeout"]
        try:
            seconds = 0.0 if "_" in text else float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < 1e9:
            raise UsageError(
                f"--timeout must be a number of seconds above 0, e.g. 2.5; got `{text}`"
            )
        return seconds

    @property
    def cwd(self) -> str:
        """The folder that is named, in full; empty when none is."""
        if "--cwd" not in self._options:
            return ""
        if not self._options["--cwd"]:
            raise UsageError("--cwd is empty; name a folder, or leave it out")
        return os.path.normpath(os.path.join(self._folder or "/", self._options["--cwd"]))

    def content(self, name: str, what: str, default: str = "") -> str:
        """A value that may be `-` for standard input or `@FILE`; up to 1 MiB, byte for byte.

        Raises:
            UsageError: It cannot be read, or is longer.
            NotAllowedError: The run may not read it.
        """
        given = self.text(name, default)
        if given != "-" and not given.startswith("@"):
            return given
        data = self._read(given.removeprefix("@"), MIB, what)
        if len(data) > MIB:
            raise UsageError(f"{what} is larger than 1 MiB; {_INSTEAD[name]}")
        return data.decode("utf-8", "surrogateescape")


def parse(words: Sequence[str], read: ReadFile, folder: str) -> Given:
    """The form that is meant and the options given with it.

    Raises:
        UsageError: They do not say anything that can be done.
    """
    form, given = "", {"--env": []}  # type: tuple[str, dict[str, Any]]
    rest = list(words)
    while rest:
        name, text = _option(rest, form)
        if name in FORMS:
            if form and form != name:
                raise UsageError(f"`{form}` and `{name}` cannot go together")
            form = name
        if name == "--env":
            given["--env"].append(text)
        elif name in given:
            raise UsageError(f"`{name}` is given twice")
        else:
            given[name] = text
    if not form:
        raise UsageError("say what to do: -c, --status, --call or --capabilities (see --help)")
    wrong = [name for name in given if name not in (form, "--env") and name not in _ALLOWED[form]]
    if wrong or (given["--env"] and form != "-c"):
        raise UsageError(f"`{(wrong or ['--env'])[0]}` does not go with `{form}`")
    return Given(form, given, read, folder)


def _option(rest: list[str], form: str) -> tuple[str, str]:
    """Take the next option and its value off `rest`."""
    name, equals, text = rest.pop(0).partition("=")
    takes_value = {**FORMS, **_OPTIONS}.get(name)
    if takes_value is None or (equals and not name.startswith("--")):
        word = f"{name}{equals}{text}"
        if name.startswith("--"):
            raise UsageError(f"unknown option `{word}`{_meant(name)}")
        if form in ("", "-c"):
            raise UsageError(f"`{word}` is no option; quote the whole command: -c 'ls -l'")
        raise UsageError(f"`{word}` is no option of `{form}`; see openry --help")
    if not takes_value:
        if equals:
            raise UsageError(f"`{name}` takes no value")
        return name, ""
    if equals:
        return name, text
    if not rest:
        raise UsageError(f"`{name}` needs a value")
    return name, rest.pop(0)


def _meant(name: str) -> str:
    from openry.texts import bracketed, did_you_mean

    return bracketed(did_you_mean(name, (*FORMS, *_OPTIONS, "--version", "--help"), 0.7))


# --- -c -------------------------------------------------------------------------------------


def run_command(hand: Hand, given: Given, *, stdin_fd: int = 0) -> CommandResult:
    """Do what `-c` says.

    Args:
        stdin_fd: The caller's standard input, for `--stdin`.
    """
    from openry.models.command import Command

    if given.text("-c") == "-" and given.has("--stdin"):
        raise UsageError("`-c -` reads standard input itself, so --stdin cannot pass it on")
    command = Command(
        text=given.content("-c", "the command file"),
        cwd=given.cwd,
        timeout_s=given.seconds,
        env=given.pairs,
        inherit_stdin=given.has("--stdin"),
        stdin_fd=stdin_fd,
        raw=given.has("--raw"),
    )
    return hand.preview(command) if given.has("--dry-run") else hand.forward(command)


def exit_status(result: CommandResult, given: Given) -> int:
    """What `openry` exits with when it has printed the answer."""
    from openry.forwarder.hand import is_usage_error

    if given.has("--propagate"):
        return result.exit_code
    return result.exit_code if is_usage_error(result) else 0


# --- --status -------------------------------------------------------------------------------


def report(hand: Hand, given: Given, verdict: Callable[[], tuple[str, str]]) -> str:
    """Do what `--status` says; the answer as one line of JSON.

    Args:
        verdict: For `--wait`: what validation says, `passed`, `failed` or `pending`, and why.
    """
    import json

    status = given.text("--status")
    clean = hand.clean(_payload(given.content("--payload", "the payload", "{}")))
    outcome = hand.report(status, clean)
    answer = {"status": status, "payload": clean, "acknowledged": outcome.acknowledged}
    message = outcome.message
    if given.has("--wait") and status == "completed" and outcome.acknowledged:
        answer["verdict"], message = verdict()
    if message:
        answer["message"] = message
    return json.dumps(answer, ensure_ascii=False) + "\n"


_LOOK_S = 0.1


def wait_for_verdict(hand: Hand, wait: Callable[[float], bool]) -> tuple[str, str]:
    """What validation said of the run, `passed` or `failed` and why, as soon as it did.

    Args:
        wait: Waits so many seconds; whether the caller still wants an answer.
    """
    import time

    until = time.monotonic() + hand.config.timeout_default_s
    while time.monotonic() < until:
        row = hand.ledger.run(hand.context.run_id)
        if row and row.validation_status in ("passed", "failed"):
            return row.validation_status, row.reason if row.validation_status == "failed" else ""
        if not wait(_LOOK_S):
            break
    return "pending", "validation has not ended yet; ask again with the same call"


def _payload(text: str) -> dict[str, Any]:
    """The payload, whole characters only: a lone surrogate would poison what stores it."""
    import json

    if len(text.encode("utf-8", "surrogatepass")) > MIB:
        raise UsageError("the payload is larger than 1 MiB; put it in a file and give its path")
    try:
        payload = json.loads(text, object_pairs_hook=without_duplicates)
    except ValueError as error:
        raise UsageError(f"the payload is not JSON: {error}") from error
    except RecursionError:
        raise UsageError("the payload is nested too deep") from None
    if not isinstance(payload, dict):
        raise UsageError('the payload must be a JSON object, e.g. {"count": 3}')
    try:
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (UnicodeEncodeError, ValueError) as error:
        raise UsageError(f"the payload holds what JSON cannot: {error}") from error
    return payload


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A hook for `json.loads`.

    Raises:
        ValueError: A key stands twice in an object.
    """
    found: dict[str, Any] = {}
    for key, item in pairs:
        if key in found:
            raise ValueError(f"key `{key}` stands twice, as {found[key]!r} and {item!r}")
        found[key] = item
    return found
