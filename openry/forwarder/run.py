"""Carry out one planned call: start, read, end, and make the answer of it."""

from __future__ import annotations

import os
import time

from openry.errors import SandboxError, UsageError
from openry.forwarder.environment import TemporaryFolder
from openry.forwarder.files import OutputFile, open_kept, open_spill, readable
from openry.forwarder.pump import ENDED, EXCESS, INTERRUPTED, TIMEOUT, TRESPASS, Pump
from openry.models.command import CommandResult, Ending
from openry.models.output import Kept
from openry.models.value import value
from openry.output.capture import Capture, Captured
from openry.sandbox.process import KILL
from openry.sandbox.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from openry.config import Config
    from openry.models.command import SandboxSpec
    from openry.output.notice import Reader
    from openry.output.packing import PackedFile
    from openry.output.redact import Redactor
    from openry.sandbox.launcher import Launcher
    from openry.sandbox.proxy import Decision
    from openry.sandbox.usage import Usage

_SIGPIPE_CODE = 128 + 13
_TOO_LONG = 7  # E2BIG, by its number on every system
_NO_SANDBOX, _NOT_EXECUTABLE, _NOT_FOUND = 125, 126, 127
#: How long what a command left in the background may take to end by itself when asked to.
_BACKGROUND_GRACE_S = 0.2


@value
class Plan:
    """One call, decided: nothing here is looked up again.

    Attributes:
        argvs: A pipeline; one element for a shell line.
        stdin_fd: The caller's standard input, where it is passed on; else -1.
        script: The shell's text when it is too long for an argument; then it goes by descriptor.
        roots: Folders in which `output_file` may be.
        reader: The agent that reads the answer; None when the configured bytes count.
        watch: Given what is written while the call runs, without secrets.
    """

    argvs: tuple[tuple[str, ...], ...]
    script: bytes
    cwd: str
    env: Mapping[str, str]
    timeout_s: float
    stdin: bytes | None
    stdin_fd: int
    tmp_base: str
    output_file: str
    roots: tuple[str, ...]
    raw: bool
    run_id: str
    reader: Reader | None
    launcher: Launcher
    spec: SandboxSpec
    config: Config
    alone: bool
    wake_fd: int
    watch: Callable[[bytes], None] | None


@value
class Done:
    """The answer and what only the ledger wants to know.

    Attributes:
        kept: The streams that are in files.
        tokens: Estimated tokens of the answer; 0 when nobody counts them.
        decisions: What was decided about connections it asked for.
    """

    result: CommandResult
    stdout_digest: str = ""
    stderr_digest: str = ""
    kept: tuple[Kept, ...] = ()
    tokens: int = 0
    decisions: tuple[Decision, ...] = ()

    def with_note(self, note: str) -> CommandResult:
        from dataclasses import replace

        told = with_line(self.result.stderr, note)
        return replace(self.result, stderr=told, note=f"{self.result.note} {note}".strip())


def carry_out(plan: Plan, command_id: int, redactor: Redactor) -> Done:
    """Run the processes of `plan` to their end. None is alive when this returns or raises."""
    started = time.monotonic()
    confined = plan.launcher.confines_processes
    folder = None if confined else TemporaryFolder(plan.tmp_base, alone=plan.alone)
    call = _Call(plan, command_id, redactor, folder.path if folder else "")
    try:
        call.run()
    finally:
        call.clean_up()
        if folder:
            folder.close()
    return call.done(time.monotonic() - started)


class _Call:
    """The moving parts of one call."""

    def __init__(self, plan: Plan, command_id: int, redactor: Redactor, own_tmp: str) -> None:
        self.plan = plan
        self.command_id = command_id
        self.redactor = redactor
        self.own_tmp = own_tmp
        self.env = {**plan.env, "TMPDIR": own_tmp} if own_tmp else dict(plan.env)
        self.out, self.err = self._capture("stdout"), self._capture("stderr")
        self.tree = Tree(own_tmp, confined=plan.launcher.confines_processes, alone=plan.alone)
        self.ending = Ending.EXITED
        self.notes: list[str] = []
        self.failed_to_start = 0
        self._usage: Usage | None = None
        self._fds: list[int] = []  #: ours to close when all is over
        self._pump: Pump | None = None
        self._file: OutputFile | None = None
        self._tokens = (0, 0, 0)  #: of the answer, and of both streams whole

    def run(self) -> None:
        try:
            self._start()
        except (OSError, UsageError) as error:
            self._note_failed_start(error)
            return
        except SandboxError as error:  # what lies in its folders now cannot be protected
            self.ending, self.failed_to_start = Ending.REFUSED, _NO_SANDBOX
            self.notes.append(f"openry: sandbox unavailable: {error}")
            return
        assert self._pump is not None
        how = self._pump.until_ended(self.plan.timeout_s, self.plan.config.drain_s)
        if how == TIMEOUT:
            self.ending = Ending.TIMEOUT
            self.notes.append(f"openry: stopped after {self.plan.timeout_s:g} s (timeout)")
        elif how == INTERRUPTED:
            self.ending = Ending.INTERRUPTED
            self.notes.append("openry: interrupted")
        elif used := self._pump.said if how == EXCESS else self._refused():
            self.ending = Ending.SIGNALLED
            self.notes.append(f"openry: stopped: it used {used}")
        if how != ENDED:
            self._end(0.0 if how in (EXCESS, TRESPASS) else self.plan.config.kill_after_s)
        elif self.plan.config.background == "kill":
            self._end_background()
        self._pump.drain(0.0)

    # --- start ------------------------------------------------------------------------------

    def _start(self) -> None:
        plan = self.plan
        if plan.output_file:
            self._file = OutputFile(plan.output_file, plan.cwd, plan.roots)
        out_read, out_write = self._pipe()
        err_read, err_write = self._pipe()
        source = self._stdin()
        last = len(plan.argvs) - 1
        try:
            for place, argv in enumerate(plan.argvs):
                sink_read, sink = (-1, out_write) if place == last else self._pipe()
                if place == last and self._file:
                    sink = self._file.fd
                self._start_one(argv, source, sink, err_write)
                source = sink_read
        finally:
            streams = {out_read: self.out, err_read: self.err}
            self._pump = Pump(self.tree, streams, plan.wake_fd, self._excess())
            for fd in self._fds:
                if fd not in (out_read, err_read):
                    os.close(fd)
            self._fds = []

    def _start_one(self, argv: tuple[str, ...], stdin: int, stdout: int, stderr: int) -> None:
        extra: tuple[int, ...] = ()
        if self.plan.script:
            script = readable(self.plan.script)
            argv, extra = (argv[0], f"/dev/fd/{script}"), (script,)
        opened = [*extra]
        try:
            launch = self.plan.launcher.launch(argv, self.plan.cwd, self.own_tmp)
            opened += launch.pass_fds
            self.tree.start(launch, self.env, (stdin, stdout, stderr), extra)
        finally:
            for fd in opened:
                os.close(fd)

    def _excess(self) -> Callable[[], str] | None:
        """What to ask now and then, when this call's resources are limited."""
        if not self.plan.spec.is_limited:
            return None
        from openry.sandbox.usage import Usage

        def roots() -> Iterator[int]:
            return (one.pid for one in self.tree.processes)

        spec, folders = self.plan.spec, (*self.plan.spec.write, self.own_tmp)
        self._usage = Usage(spec, roots, self.tree.groups, folders)
        return self._usage.excess

    def _refused(self) -> str:
        """What the kernel kept the command from, although it ended by itself."""
        return self._usage.refused() if self._usage else ""

    def _stdin(self) -> int:
        if self.plan.stdin_fd >= 0:
            return self.plan.stdin_fd
        data = self.plan.stdin
        fd = os.open(os.devnull, os.O_RDONLY) if data is None else readable(data)
        self._fds.append(fd)
        return fd

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._fds += ends
        return ends

    def _note_failed_start(self, error: OSError | UsageError) -> None:
        missing = isinstance(error, FileNotFoundError)
        if isinstance(error, UsageError):
            self.failed_to_start = 2
        else:
            self.failed_to_start = _NOT_FOUND if missing else _NOT_EXECUTABLE
        program = getattr(error, "filename", None)
        said = f"`{program}`: {error.strerror}" if isinstance(error, OSError) else str(error)
        if isinstance(error, OSError) and error.errno == _TOO_LONG:
            said += "; an argument or variable may have 128 KiB: put it in a file or on its input"
        self.notes.append(f"openry: cannot start: {said}" if program else f"openry: {said}")

    # --- end --------------------------------------------------------------------------------

    def clean_up(self) -> None:
        """Whatever happened: nothing alive, nothing open."""
        self.tree.close()
        self._settle()
        if self._pump:
            self._pump.close()
        if self._file:
            self._file.close(keep=self.ending is Ending.EXITED and self._exit_code() == 0)

    def _settle(self) -> None:
        """What was made under a protected name is put away; then the command was not allowed."""
        if not self.tree.guards:
            return
        all_of_them = f"{self.plan.config.home_dir}/quarantine"
        folder = f"{all_of_them}/{self.plan.run_id}-{self.command_id}"
        if names := self.tree.settle(folder):
            from openry.sandbox.quarantine import KEPT_DAYS, make_room

            make_room(all_of_them)
            self.ending, self.failed_to_start = Ending.REFUSED, _NOT_EXECUTABLE
            where = (
                f"is in {folder}, for {KEPT_DAYS} days" if os.path.isdir(folder)
                else "was too large to be kept, and is gone"
            )  # fmt: skip
            self.notes.append(
                f"openry: not allowed: {names} is protected; what was made there {where}"
            )

    def _end(self, grace_s: float) -> None:
        assert self._pump is not None
        self.tree.ask_to_end()
        if not self._pump.until_gone(grace_s):
            self.tree.kill()
            self._pump.until_gone(1.0)
        self.tree.end_orphans(_BACKGROUND_GRACE_S)

    def _end_background(self) -> None:
        """End what the shell left running; say so when it held the answer."""
        assert self._pump is not None
        held = self._pump.held_open
        if not self.tree.is_torn_down():
            self._end(_BACKGROUND_GRACE_S)
        if self.tree.end_orphans(_BACKGROUND_GRACE_S) or held:
            self.notes.append("openry: ended what still ran in the background after the command")

    # --- the answer -------------------------------------------------------------------------

    def _capture(self, stream: str) -> Capture:
        config = self.plan.config
        folder = f"{config.home_dir}/runs/{self.plan.run_id}"
        output_bytes = self.plan.spec.output_mb * 1024 * 1024

        def spill() -> PackedFile:
            from openry.output.packing import PackedFile

            return PackedFile(open_spill(folder, f"out-{self.command_id}.{stream}"))

        return Capture(
            self.redactor,
            limit=config.answer_limit_bytes,
            open_spill=spill,
            spill_limit=min(config.spill_limit_bytes, output_bytes or config.spill_limit_bytes),
            raw=self.plan.raw,
            watch=self.plan.watch,
        )

    def _exit_code(self) -> int:
        """The pipeline's code: the last one that failed. Who stopped at a closed pipe did not."""
        codes = [process.reap() for process in self.tree.processes]
        for place, code in reversed(list(enumerate(codes))):
            if code and not (code == _SIGPIPE_CODE and place < len(codes) - 1):
                return code
        return 0

    def done(self, duration_s: float) -> Done:
        out, err = self.out.end(), self.err.end()
        trouble = self._sandbox_trouble(err)
        ending, exit_code = self.ending, self.failed_to_start or self._exit_code()
        if trouble:
            ending, exit_code = Ending.REFUSED, 125
            self.notes.append(f"openry: sandbox unavailable: {trouble}")
        if ending is Ending.TIMEOUT:
            exit_code = 124
        elif ending is Ending.INTERRUPTED:
            exit_code = 130
        elif ending is Ending.SIGNALLED:
            exit_code = 128 + KILL
        elif ending is Ending.EXITED and self.tree.processes and self.tree.processes[-1].signalled:
            ending = Ending.SIGNALLED
        stdout, stderr = self._texts(out, err)
        decisions = tuple(map(self._without_secrets, self.tree.decisions))
        made = dict.fromkeys(f"{d.host}:{d.port}" for d in decisions if not d.reason)
        refused = dict.fromkeys(d.reason for d in decisions if d.reason)
        self.notes += [f"openry: not allowed: {reason}" for reason in refused]
        for note in self.notes:
            stderr = with_line(stderr, note)
        kept = self._kept(out, err)
        result = CommandResult(
            exit_code, stdout, stderr, duration_s, ending, out.size, err.size,
            " ".join([*self.notes, *(f"connected to {place}" for place in made)]),
            kept[0].path if kept else "",
        )  # fmt: skip
        return Done(result, out.digest, err.digest, kept, self._tokens[0], decisions)

    def _without_secrets(self, decision: Decision) -> Decision:
        """A secret may be sent away as the name of a host."""
        from dataclasses import replace

        text = self.redactor.text
        return replace(decision, host=text(decision.host), reason=text(decision.reason))

    def _sandbox_trouble(self, err: Captured) -> str:
        """Why a sandbox could not be built. A program missing in it fails by itself."""
        for process in self.tree.processes:
            trouble = process.sandbox_trouble(err.head)
            if trouble.startswith("execvp "):
                process.exit_code = _NOT_FOUND
            elif trouble:
                return trouble
        return ""

    def _texts(self, out: Captured, err: Captured) -> tuple[str, str]:
        """Both streams as the answer shows them."""
        if not out.head and not err.head:
            return "", ""
        config, reader = self.plan.config, self.plan.reader
        if reader is None:
            from openry.output.answer import manual_text

            limit = config.answer_limit_bytes
            return manual_text(out, self.redactor, limit), manual_text(err, self.redactor, limit)
        from openry.output.notice import told

        name = f"out-{self.command_id}"
        said = told(out, err, self.redactor, reader, self._whole, name)
        self._tokens = said.tokens, said.out_tokens, said.err_tokens
        if said.large:
            for captured, capture in ((out, self.out), (err, self.err)):
                if captured.size:
                    capture.keep()
        return said.stdout, said.stderr

    def _whole(self, captured: Captured) -> Iterator[bytes]:
        """A stream from its beginning to its end."""
        from openry.output.digest import reads_of

        if not captured.spill:
            yield captured.head
            return
        try:
            with open_kept(captured.spill) as file:
                yield from reads_of(file.read)
        except OSError:  # somebody removed it in between: both ends are there
            yield captured.head + captured.tail

    def _kept(self, out: Captured, err: Captured) -> tuple[Kept, ...]:
        """The streams that are in files now."""
        streams = (("stdout", out, self.out), ("stderr", err, self.err))
        return tuple(
            Kept(name, capture.path, captured.size, captured.lines, tokens, captured.digest)
            for (name, captured, capture), tokens in zip(streams, self._tokens[1:], strict=True)
            if capture.path
        )


def with_line(text: str, line: str) -> str:
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}{line}\n"
