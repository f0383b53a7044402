"""The hand: gates, row, process, answer. No process starts without a row in the ledger."""

from __future__ import annotations

import os
from _thread import allocate_lock

from openry.errors import NotAllowedError, OpenRYError, SandboxError, StorageError, UsageError
from openry.forwarder.environment import build_environment, shell_argv
from openry.forwarder.run import Plan, carry_out
from openry.models.command import MANUAL_RUN, Command, CommandResult, Ending, RunContext
from openry.output.redact import Redactor
from openry.sandbox.launcher import Unconfined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from openry.config import Config
    from openry.forwarder.acting import Acting
    from openry.forwarder.judging import Refusal
    from openry.forwarder.loops import Circles
    from openry.ledger.asking import Asking
    from openry.ledger.fast import FastLedger
    from openry.ledger.gates import Begun, StatusOutcome
    from openry.output.notice import Reader
    from openry.policy import Policy
    from openry.sandbox.launcher import Launcher

USAGE, NO_SANDBOX, REFUSED = 2, 125, 126
#: Longest single argument the shell gets as such; Linux allows 128 KiB. Longer: by descriptor.
_LONGEST_ARGUMENT = 100 * 1024


class Hand:
    """Runs commands for one run. Cheap to make; safe to use from several threads.

    Args:
        env: Our own environment: what a command inherits from by the allow-list, and where the
            secrets to take out of every answer are found.
        alone: This process does nothing else, so every orphan among its children is the
            command's.
        wake_fd: Becomes readable when the command is to be interrupted; -1 for never.
        ask: Asks the person who sits there whether a command may be run; without it they are
            asked in the ledger.
        after: Called when a command of a run has ended, before its answer is given.
        launcher: Puts each command into its sandbox; without it the one that the context asks for
            is made for the first command. Whoever gives one answers for what it confines.
    """

    def __init__(
        self,
        ledger: FastLedger,
        context: RunContext,
        config: Config,
        *,
        env: Mapping[str, str] = os.environ,
        alone: bool = False,
        wake_fd: int = -1,
        ask: Callable[[str], bool] | None = None,
        after: Callable[[], object] | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self.ledger = ledger
        self.context = context
        self.config = config
        token = {"OPENRY_RUN_TOKEN": context.token} if context.token else {}
        self.redactor = Redactor.for_config(config, env, context.env, token)
        self._env = env
        self._alone = alone
        self._wake_fd = wake_fd
        self._ask = ask
        self._watch: Callable[[bytes], None] | None = None
        self._launcher = launcher
        self._getting_ready = allocate_lock()
        self._policy: Policy | None = None
        self._after = after
        self._circles: Circles | None = None
        if context.watched:
            from openry.forwarder.loops import Circles, Limits

            self._circles = Circles(Limits.of(config))

    def forward(self, command: Command) -> CommandResult:
        """Run `command` if the gates allow it.

        Raises:
            StorageError: The ledger could not be written; nothing was started.
        """
        try:
            plan = self._plan(command)
        except UsageError as error:
            return _not_run(USAGE, f"openry: {error}")
        except SandboxError as error:
            return self._refuse(command, NO_SANDBOX, f"openry: sandbox unavailable: {error}")
        except NotAllowedError as error:
            sentence = self.redactor.text(f"openry: {error}")
            return self._refuse(command, REFUSED, sentence, rule=error.rule, verdict="deny")
        about: dict[str, Any] = {}
        refusal = self._judge(command, plan)
        acting = self._acting(command, plan)
        if acting is not None and refusal is None:
            refusal = acting.unknown()
        if refusal is not None:
            about = {"verdict": refusal.verdict, "rule": refusal.rule}
            asking = self._asking(command, plan, refusal) if refusal.asks else None
            if asking is None or (self._ask and not self._ask(asking.question)):
                return self._refuse(command, REFUSED, refusal.sentence, **about)
            about["asking"] = None if self._ask else asking
        shell = f"{plan.argvs[0][0]} (sandbox: {plan.launcher.backend})"
        if acting is not None:
            about["fingerprint"] = acting.fingerprint
        begun = self.ledger.begin(
            self.context, self._shown(command), cwd=plan.cwd, shell=shell, **about
        )
        if begun.command_id is None:
            return turned_away(begun)
        if acting is None:
            return self._run(plan, begun.command_id)
        recorded = acting.recorded(begun.command_id)
        result = recorded or acting.watched(self._run(plan, begun.command_id))
        if self._after is not None:
            self._after()
        return result

    def _acting(self, command: Command, plan: Plan) -> Acting | None:
        """What is known of this action from before; None for free use by hand."""
        if self.context.run_id == MANUAL_RUN:
            return None
        from openry.forwarder.acting import Acting

        return Acting(self.ledger, self.context, command, plan.cwd, self._circles)

    def preview(self, command: Command) -> CommandResult:
        """What `forward` would start, as JSON in `stdout`; nothing is started or recorded."""
        import json

        try:
            plan = self._plan(command)
        except UsageError as error:
            return _not_run(USAGE, f"openry: {error}")
        except SandboxError as error:
            return _not_run(NO_SANDBOX, f"openry: sandbox unavailable: {error}")
        except NotAllowedError as error:
            return _not_run(REFUSED, self.redactor.text(f"openry: {error}"))
        from openry.forwarder.foresight import foresee

        seen = foresee(
            command,
            policy=self._policy,
            context=self.context,
            ledger=self.ledger,
            cwd=plan.cwd,
            env=plan.env,
        )
        shown = {
            "dry_run": True,
            "argv": plan.argvs if len(plan.argvs) > 1 else plan.argvs[0],
            "cwd": plan.cwd,
            "timeout_s": plan.timeout_s,
            "sandbox": plan.launcher.backend,
            **seen,
        }
        return CommandResult(0, json.dumps(self.clean(shown), ensure_ascii=False) + "\n", "", 0.0)

    def report(self, status: str, payload: Mapping[str, Any]) -> StatusOutcome:
        """Record what the agent says of its run; secrets in `payload` are replaced first.

        Raises:
            StorageError: The ledger could not be written.
        """
        return self.ledger.report(self.context, status, self.clean(payload))

    def look(self, words: Sequence[str], folder: str = "") -> CommandResult:
        """Do what `openry output WORDS` says, for this run.

        Args:
            folder: What files are named from; the workspace when empty.

        Raises:
            StorageError: The ledger could not be written; nothing was looked at.
        """
        from openry.forwarder.looking import look_for_run

        return look_for_run(self, words, folder)

    def plan(self, command: Command) -> Plan:
        """How `command` would be carried out, for who carries it out without the gates.

        Raises:
            UsageError: It cannot be carried out as asked.
            SandboxError: Its sandbox cannot be built here.
        """
        return self._plan(command)

    def check_reading(self, path: str) -> str:
        """The real place of a file or folder (absolute) that an agent names.

        Raises:
            NotAllowedError: The run may not read it.
            UsageError: The policy cannot be read.
            SandboxError: The sandbox cannot be built here.
        """
        from openry.forwarder.reading import check_reading

        self._get_ready()
        confined = self._launcher is not None and self._launcher.backend != "none"
        return check_reading(path, self.context, self._policy, confined=confined)

    def woken_by(self, wake_fd: int) -> Hand:
        """This hand for one call, which ends early once `wake_fd` becomes readable.

        Sandbox and policy are shared by all calls; what is wrong with them the call says itself.
        """
        from contextlib import suppress
        from copy import copy

        with suppress(OpenRYError):
            self._get_ready()
        other = copy(self)
        other._wake_fd = wake_fd
        return other

    def watched_by(self, watch: Callable[[bytes], None]) -> Hand:
        """This hand, with `watch` given what commands write while they run, without secrets."""
        from copy import copy

        other = copy(self)
        other._watch = watch
        return other

    def clean(self, item: Any) -> Any:
        """`item`, made of JSON values, without secrets."""
        if isinstance(item, str):
            return self.redactor.text(item)
        if isinstance(item, dict):
            return {self.redactor.text(key): self.clean(one) for key, one in item.items()}
        return [self.clean(one) for one in item] if isinstance(item, list | tuple) else item

    def _run(self, plan: Plan, command_id: int) -> CommandResult:
        try:
            done = carry_out(plan, command_id, self.redactor)
        except BaseException:
            # Ctrl-C of a host that does not use `wake_fd`, or our own mistake: the processes are
            # ended by now, and the row must say so.
            self.ledger.finish(command_id, _not_run(130, "", Ending.INTERRUPTED))
            raise
        try:
            self.ledger.finish(
                command_id,
                done.result,
                stdout_digest=done.stdout_digest,
                stderr_digest=done.stderr_digest,
            )
            if done.kept or done.tokens:
                from openry.ledger.outputs import keep_outputs

                keep_outputs(self.ledger, self.context, command_id, done.kept, done.tokens)
            if done.decisions:
                from openry.ledger.connections import keep_connections

                asked = ((one.at, one.host, one.port, one.reason) for one in done.decisions)
                keep_connections(self.ledger, self.context, command_id, asked)
        except StorageError as error:
            return done.with_note(f"openry: how this ended could not be recorded: {error}")
        return done.result

    def _judge(self, command: Command, plan: Plan) -> Refusal | None:
        """What the policy has against `command`, or why a person is asked; without secrets."""
        if self._policy is None and not command.ask:
            return None
        from openry.forwarder.judging import Refusal, judge

        workspace, found = self.context.workspace, None
        if self._policy is not None:
            found = judge(self._policy, command, cwd=plan.cwd, workspace=workspace, env=plan.env)
        if found is None and command.ask:
            found = Refusal("confirm", "capability", command.ask)
        if found is None:
            return None
        reason, instead = map(self.redactor.text, (found.reason, found.instead))
        return Refusal(found.verdict, found.rule, reason, instead)

    def _asking(self, command: Command, plan: Plan, refusal: Refusal) -> Asking:
        from openry.forwarder.judging import asking_of

        shown, clean = self._shown(command), self.redactor.text
        return asking_of(command, refusal, shown=shown, cwd=plan.cwd, clean=clean)

    def _refuse(
        self,
        command: Command,
        exit_code: int,
        reason: str,
        *,
        verdict: str = "allow",
        rule: str = "",
    ) -> CommandResult:
        begun = self.ledger.refuse(
            self.context,
            self._shown(command),
            reason=reason,
            exit_code=exit_code,
            verdict=verdict,
            rule=rule,
        )
        if begun.braked is not None:
            return turned_away(begun)
        return _not_run(exit_code if begun.refused == reason else REFUSED, begun.refused or reason)

    def _shown(self, command: Command) -> str:
        """The command as its row shows it."""
        text = command.label or command.text or " | ".join(map(_quoted, command.stages))
        return self.redactor.text(text)

    def _plan(self, command: Command) -> Plan:
        """Everything about this call, decided.

        Raises:
            UsageError: It cannot be carried out as asked.
            SandboxError: Its sandbox cannot be built here.
            NotAllowedError: The run may not read its folder.
        """
        config, context = self.config, self.context
        launcher = self._get_ready()
        shell = judged_shell_argv() if self._policy is not None else shell_argv(config.shell)
        by_hand = context.run_id == MANUAL_RUN
        if command.cwd and not by_hand:
            self.check_reading(os.path.join(context.workspace or "/", command.cwd))
        cwd = _folder(command.cwd, context.workspace)
        if command.cwd and by_hand and context.workspace:
            self.check_reading(cwd)
        _check(command, shell)
        workspace = {"OPENRY_WORKSPACE": context.workspace} if context.workspace else {}
        env = build_environment(self._env, launcher.env, workspace, context.env, command.env)
        if context.programs:
            env["PATH"] = f"{context.programs}:{env['PATH']}"
        return Plan(
            argvs=command.stages or ((*shell, command.text),),
            script=_script(command.text),
            cwd=cwd,
            env=env,
            timeout_s=_timeout(command, context, config),
            stdin=command.stdin,
            stdin_fd=command.stdin_fd if command.inherit_stdin else -1,
            tmp_base=self._env.get("TMPDIR") or "/tmp",  # noqa: S108
            output_file=command.output_file,
            roots=context.sandbox.write or (context.workspace or cwd,),
            raw=command.raw,
            run_id=context.run_id,
            reader=self._reader(),
            launcher=launcher,
            spec=context.sandbox,
            config=config,
            alone=self._alone,
            wake_fd=self._wake_fd,
            watch=self._watch,
        )

    @property
    def max_tokens(self) -> int:
        """Largest answer in tokens; 0 for free use by hand, where bytes count."""
        if self.context.max_output_tokens:
            return self.context.max_output_tokens
        by_hand = self.context.run_id == MANUAL_RUN
        return 0 if by_hand else self.config.default_max_output_tokens

    def _reader(self) -> Reader | None:
        """Who reads the answer; None for free use by hand, where bytes count."""
        context, limit = self.context, self.max_tokens
        if not limit:
            return None
        from openry.output.notice import Reader

        said = 0
        if context.max_step_output_tokens:
            from openry.ledger.outputs import said_tokens

            said = said_tokens(self.ledger, context.run_id)
        return Reader(
            limit,
            context.max_step_output_tokens,
            said,
            context.single_digits,
            may_look=context.may_look,
            words=context.task_words,
        )

    def _get_ready(self) -> Launcher:
        """Sandbox and policy, made once."""
        with self._getting_ready:  # actions of one agent may begin at the same time
            if self.context.policy and self._policy is None:
                from openry.forwarder.judging import policy_of

                self._policy = policy_of(self.context, self.config.home_dir)
            if self._launcher is None:
                self._launcher = self._make_launcher()
            return self._launcher

    def _make_launcher(self) -> Launcher:
        spec, home = self.context.sandbox, self.config.home_dir
        if spec.backend == "none" and not (spec.require or spec.refused):
            return Unconfined(spec)
        from openry.sandbox.trial import trusted_launcher

        ledger = str(self.ledger.path)
        hide = (home, *(f"{ledger}{end}" for end in ("", "-wal", "-shm", "-journal")))
        return trusted_launcher(spec, self.context.workspace, hide=hide, home=home)


def _script(text: str) -> bytes:
    """The text for a descriptor, when it is too long for an argument; else empty."""
    if len(text) * 4 <= _LONGEST_ARGUMENT:  # whatever its characters are
        return b""
    data = text.encode("utf-8", "surrogateescape")
    return data if len(data) > _LONGEST_ARGUMENT else b""


def judged_shell_argv() -> tuple[str, ...]:
    from openry.forwarder.judging import judged_shell

    return judged_shell()


def is_usage_error(result: CommandResult) -> bool:
    """Whether nothing was run because the call itself was wrong."""
    return result.ending is Ending.REFUSED and result.exit_code == USAGE


def turned_away(begun: Begun) -> CommandResult:
    """What a call hears that did not pass the gates."""
    if begun.braked is not None:
        return CommandResult(0, begun.braked, "", 0.0, Ending.BRAKED)
    return _not_run(REFUSED, begun.refused or "")


def _not_run(exit_code: int, note: str, ending: Ending = Ending.REFUSED) -> CommandResult:
    return CommandResult(exit_code, "", f"{note}\n" if note else "", 0.0, ending, note=note)


def _folder(asked: str, workspace: str) -> str:
    base = workspace or _here()
    cwd = os.path.join(base, asked) if asked else base
    if not os.path.isdir(cwd):
        is_file = os.path.exists(cwd)
        what = f"`{cwd}` is a file, not a folder" if is_file else f"folder `{cwd}` does not exist"
        raise UsageError(f"{what}; name a folder that exists with --cwd")
    return os.path.abspath(cwd)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current folder does not exist any more; go to another one") from None


def _check(command: Command, shell: tuple[str, ...]) -> None:
    words = [word for stage in command.stages for word in stage] or [command.text]
    if not all(command.stages) or (not command.stages and not command.text.strip()):
        raise UsageError("the command is empty; say what to run")
    if any("\0" in word for word in words) or any(
        "\0" in word for pair in command.env.items() for word in pair
    ):
        raise UsageError("a command and its environment cannot hold a NUL character")
    if command.output_file and not command.stages:
        raise UsageError("an output file needs stages; in shell text use `>`")
    if bad := [name for name in command.env if not (name.isascii() and name.isidentifier())]:
        raise UsageError(
            f"`{bad[0]}` cannot be the name of a variable: letters, digits and `_`, no digit first"
        )


def _timeout(command: Command, context: RunContext, config: Config) -> float:
    """What is asked, at most the limits of the run and of its sandbox; else these, else the
    configured one."""
    limits = [limit for limit in (context.timeout_s, context.sandbox.time_s) if limit]
    if command.timeout_s is None:
        return min(limits, default=config.timeout_default_s)
    return min((command.timeout_s, *limits))


def _quoted(argv: tuple[str, ...]) -> str:
    import shlex

    return shlex.join(argv)
