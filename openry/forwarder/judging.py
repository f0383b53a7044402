"""The policy's gate: whether a command may be run at all. Only for runs that have a policy."""

from __future__ import annotations

from openry.errors import UsageError
from openry.models.command import MANUAL_RUN
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openry.ledger.asking import Asking
    from openry.models.command import Command, RunContext
    from openry.policy import Policy, Verdict

#: What is judged is what runs: the shell whose grammar the policy reads.
JUDGED_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


@value
class Refusal:
    """Why a command is not started as it is: the verdict, the rule, the reason, what else to do."""

    verdict: str
    rule: str
    reason: str
    instead: str = ""

    @property
    def asks(self) -> bool:
        """Whether a person's yes would do."""
        return self.verdict == "confirm"

    @property
    def sentence(self) -> str:
        """What the agent reads."""
        said = "needs approval" if self.asks else "not allowed"
        instead = f"; try: {self.instead}" if self.instead else ""
        return " ".join(f"openry: {said}: {self.reason}{instead}".split())


def policy_of(context: RunContext, home: str = "") -> Policy | None:
    """The policy in force; None where nothing is to be judged, and then nothing is imported.

    Args:
        home: OPENRY_HOME: policies by name are looked for there and in a trusted project.

    Raises:
        UsageError: A policy cannot be read; nothing is run without it.
    """
    by_hand = context.run_id == MANUAL_RUN  # there nothing is read that restricts nothing
    names = [one for one in context.policy if not (by_hand and one == "permissive")]
    if not names:
        return None
    from openry.errors import OpenRYError
    from openry.policy import load_policy

    policy = None
    try:
        for one in names:
            policy = load_policy(one, parent=policy, folders=_folders(one, context, home))
    except OpenRYError as error:
        raise UsageError(f"the command policy cannot be read: {error}") from error
    return policy


def _folders(named: str | Mapping[str, object], context: RunContext, home: str) -> tuple[Path, ...]:
    """Where a policy of that name may be, besides what is shipped."""
    from openry.policy.load import PRESETS

    if not home or not isinstance(named, str) or named in PRESETS:
        return ()
    from openry.project import places

    return places("policies", home, context.workspace or ".")


def judge(
    policy: Policy, command: Command, *, cwd: str, workspace: str, env: Mapping[str, str]
) -> Refusal | None:
    """None when `command` may be run."""
    verdict = verdict_of(policy, command, cwd=cwd, workspace=workspace, env=env)
    if verdict.allowed:
        return None
    return Refusal(verdict.decision.word, verdict.rule, verdict.reason, verdict.instead)


def verdict_of(
    policy: Policy, command: Command, *, cwd: str, workspace: str, env: Mapping[str, str]
) -> Verdict:
    """What the policy says of `command`.

    A capability's words come from its definition, not from an agent: it is judged by what its
    arguments name. A shell of ours is judged by the text it is given.
    """
    place = {"cwd": cwd, "workspace": workspace or cwd, "home": env.get("HOME", "")}
    if command.capability:
        return policy.decide_capability(
            command.capability,
            reads=command.reads,
            writes=(*command.writes, *filter(None, (command.output_file,))),
            urls=command.urls,
            **place,
        )
    path = env.get("PATH", "")
    text = command.text or _shell_text(command.stages)
    return policy.decide(text or command.stages, path=path, env=command.env, inherited=env, **place)


def _shell_text(stages: tuple[tuple[str, ...], ...]) -> str:
    """The text of a shell that OpenRY starts by itself, as `judged_shell` does; else empty."""
    if len(stages) != 1 or stages[0][1:3] != ("--noprofile", "--norc") or stages[0][-2] != "-c":
        return ""
    return stages[0][-1] if stages[0][0] in ("bash", *JUDGED_SHELLS) else ""


def asking_of(
    command: Command, refusal: Refusal, *, shown: str, cwd: str, clean: Callable[[str], str]
) -> Asking:
    """What a person is asked: the whole plan, nothing in it hidden but secrets.

    Args:
        shown: The command as its row shows it.
        clean: Takes secrets out of a text.
    """
    from hashlib import sha256

    from openry.ledger.asking import Asking

    stdin = "" if command.stdin is None else sha256(command.stdin).hexdigest()
    env = tuple(sorted(command.env.items()))
    known = (command.text, command.stages, cwd, env, stdin, command.output_file)
    plan = f"run `{visible(shown)}` in `{visible(cwd)}`"
    if env:
        plan += " with " + ", ".join(visible(clean(f"{name}={text}")) for name, text in env)
    reason = visible(clean(refusal.reason))
    return Asking(f"{plan}? {reason}", reason, sha256(repr(known).encode()).hexdigest())


def visible(text: str) -> str:
    """`text` with every sign that could hide or turn something spelt out.

    >>> from openry.forwarder.judging import visible
    >>> visible("ls\\x1b[2K\\u202ex")
    'ls\\\\x1b[2K\\\\u202ex'
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def judged_shell() -> tuple[str, ...]:
    """The shell for a run with a policy.

    Raises:
        UsageError: It is not there.
    """
    import os

    for shell in JUDGED_SHELLS:
        if os.path.exists(shell):
            return shell, "--noprofile", "--norc", "-c"
    raise UsageError("a command policy is in force, which needs bash; install bash")
