"""What is asked of the hand, and what came of it."""

from __future__ import annotations

# As in `collections.abc`, which imports all of `collections`: 6 % of the forwarder's time.
from _collections_abc import Callable, Iterator, Mapping
from types import MappingProxyType

from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

#: The run id of free use by hand, outside every workflow.
MANUAL_RUN = "manual"
_NOTHING: Mapping[str, str] = MappingProxyType({})


class _Listed(type):
    def __iter__(cls) -> Iterator[Ending]:
        return iter([known for known in cls.__dict__.values() if isinstance(known, Ending)])


class Ending(str, metaclass=_Listed):
    """How a command ended. Only EXITED carries the command's own status.

    Used like a `StrEnum`; not one, because `enum` alone would take a fifth of the forwarder's time.
    """

    __slots__ = ()
    EXITED: Ending
    SIGNALLED: Ending
    TIMEOUT: Ending
    REFUSED: Ending
    BRAKED: Ending
    INTERRUPTED: Ending
    LOST: Ending

    def __new__(cls, text: str) -> Self:
        known = cls.__dict__.get(text.upper())
        if isinstance(known, cls):
            return known
        raise ValueError(f"`{text}` is not how a command ends")

    @property
    def value(self) -> str:
        return str(self)


for _name in ("EXITED", "SIGNALLED", "TIMEOUT", "REFUSED", "BRAKED", "INTERRUPTED", "LOST"):
    setattr(Ending, _name, str.__new__(Ending, _name.lower()))


@value
class Command:
    """One request to the hand: a shell line in `text`, or program arguments in `stages`.

    Attributes:
        text: Given to the shell byte for byte. Empty when `stages` is set.
        stages: A pipeline of argument vectors, each started without a shell.
        cwd: Folder to run in; empty means the run's workspace.
        timeout_s: Seconds of wall time; None means the run's default.
        env: Added to the allow-listed environment.
        stdin: Bytes for the command's standard input; None means `/dev/null`.
        inherit_stdin: Pass the caller's own standard input on instead.
        stdin_fd: Where that is.
        output_file: Where the last stage's standard output is written instead of the answer,
            relative to `cwd`; only with `stages`. Written whole or not at all.
        raw: Leave ANSI codes and carriage returns in the answer.
        label: What the ledger row shows instead of the command, e.g. a capability call.
        ask: Why a person must agree before it is run, whatever the policy; else empty.
        capability: The tool whose definition these stages come from; empty for a person's or an
            agent's own. `reads`, `writes` and `urls` are then what its arguments name.
        once: Doing it twice is not like doing it once: a retry gets the recorded result.
    """

    text: str = ""
    stages: tuple[tuple[str, ...], ...] = ()
    cwd: str = ""
    timeout_s: float | None = None
    env: Mapping[str, str] = _NOTHING
    stdin: bytes | None = None
    inherit_stdin: bool = False
    stdin_fd: int = 0
    output_file: str = ""
    raw: bool = False
    label: str = ""
    ask: str = ""
    capability: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    once: bool = False


@value
class CommandResult:
    """What came of a command. A failure of the command is a value, not an exception.

    Attributes:
        exit_code: What the answer shows: the command's own status, 128+N for signal N,
            124 timeout, 125 no sandbox, 126 refused, 0 braked.
        stdout: Text for the agent: decoded, folded, redacted, cut to the limit.
        duration_s: Wall time in seconds, measured with a monotonic clock.
        stdout_bytes: Size of what the command really wrote.
        note: One sentence of ours about this ending, already part of `stderr`; else empty.
        spill: Path of the file that keeps an output larger than the answer; else empty.
    """

    exit_code: int
    stdout: str
    stderr: str
    duration_s: float
    ending: Ending = Ending.EXITED
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    note: str = ""
    spill: str = ""

    @property
    def ok(self) -> bool:
        return self.ending is Ending.EXITED and self.exit_code == 0

    def answer(self) -> Answer:
        return Answer(self.exit_code, self.stdout, self.stderr, round(self.duration_s * 1000))


#: Whoever can run a command for us; the forwarder's `Hand.forward` is one.
RunCommand = Callable[[Command], CommandResult]


@value
class Answer:
    """The four keys an agent reads, in this order, and nothing else."""

    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int

    def to_json(self) -> str:
        """One line of JSON; a lone surrogate becomes U+FFFD, so it always encodes as UTF-8."""
        line = (
            f'{{"exit_code": {self.exit_code}, "stdout": {quoted(self.stdout)}, '
            f'"stderr": {quoted(self.stderr)}, "duration_ms": {self.duration_ms}}}'
        )
        return line if _encodes(line) else "".join(map(_whole, line))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(character: str) -> str:
    return "\ufffd" if "\ud800" <= character <= "\udfff" else character


def quoted(text: str) -> str:
    """`text` as JSON, by the part of `json` that is written in C; all of it imports `re`."""
    try:
        from _json import encode_basestring
    except ImportError:
        from json.encoder import encode_basestring

    found: str = encode_basestring(text)
    return found


@value
class SandboxSpec:
    """What surrounds a command. 0 means no limit.

    Attributes:
        backend: `auto` (bubblewrap, else landlock, else refused), one of them, or `none`
            (by explicit word).
        write: Folders that may be written, absolute. The workspace belongs here when it may.
        read: Further folders or files that may be read, absolute.
        only_named: The workspace as a whole is not shown, only what `read` and `write` name.
        network: Whether the host's network is reachable.
        hosts: Without that network: hosts that may be reached through a proxy, as
            `api.example.com:443`, `*.example.com`.
        connections_per_minute: Most such connections.
        door: A folder with a run's socket, shown to its agent; empty for none.
        protect: Never to be written, beside what never is: paths from the workspace, or absolute.
        require: What the sandbox must be able to hold, of `LAYERS`; else nothing is run.
        refused: Why nothing can be run as it was asked for; empty when it can.
        memory_mb: Memory of all processes together.
        processes: How many there may be at once.
        cpu_s: Processor seconds of all together.
        file_mb: Largest file a process may write.
        tmp_mb: Size of the sandbox's own /tmp.
        disk_mb: Largest file, size of /tmp, and what the files written meanwhile hold together.
        output_mb: What is kept of an output.
        time_s: Longest wall time of one command.
    """

    backend: str = "none"
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    only_named: bool = False
    network: bool = False
    hosts: tuple[str, ...] = ()
    connections_per_minute: int = 0
    door: str = ""
    protect: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    refused: str = ""
    memory_mb: int = 0
    processes: int = 0
    cpu_s: int = 0
    file_mb: int = 0
    tmp_mb: int = 0
    disk_mb: int = 0
    output_mb: int = 0
    time_s: float = 0

    @property
    def is_limited(self) -> bool:
        """Whether somebody must look, now and then, what all processes together use."""
        return bool(self.memory_mb or self.processes or self.cpu_s or self.disk_mb)


#: What a policy may require of a sandbox.
LAYERS = ("fs_read", "fs_write", "net", "tree_kill")


@value
class RunContext:
    """Who asks: the run that a command belongs to, and the limits that hold for it.

    Attributes:
        run_id: One attempt at one sub step, or `manual`.
        max_tool_calls: Forwarded commands allowed in this run; 0 means no limit.
        max_output_tokens: Largest answer of one command in estimated tokens; 0 means the
            configured one.
        max_step_output_tokens: Largest sum of the answers of this run; 0 means no limit.
        single_digits: Who reads them makes a token of each digit, as small models do.
        may_look: Who reads them may call `openry output`.
        task_words: Of the task: what a digest of a large output looks for.
        timeout_s: Default and upper bound for one command; None means the configured one.
        env: Set for every command of the run.
        policy: Names or maps of command policies; all of them hold. None: nothing is judged.
        token: Shows that who asks was started for this run; nobody else has it.
        once: As of a command, for every command of the run.
        watched: Whoever acts may go round in circles, and is told and stopped then.
        programs: A folder whose programs come first on PATH; empty for none.
    """

    run_id: str = MANUAL_RUN
    workflow: str = ""
    step_id: str = ""
    instance_id: str = ""
    workspace: str = ""
    max_tool_calls: int = 0
    max_output_tokens: int = 0
    timeout_s: float | None = None
    env: Mapping[str, str] = _NOTHING
    sandbox: SandboxSpec = SandboxSpec()
    policy: tuple[str | Mapping[str, object], ...] = ()
    token: str = ""
    max_step_output_tokens: int = 0
    single_digits: bool = False
    may_look: bool = True
    task_words: tuple[str, ...] = ()
    once: bool = False
    watched: bool = False
    programs: str = ""
