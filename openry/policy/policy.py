"""A policy in force, and its decision. Deciding changes nothing; it looks at links and at PATH."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property

from openry.policy.calls import Call, Place
from openry.policy.judge import Judge
from openry.policy.numbers import is_number
from openry.policy.profiles import canonical
from openry.policy.rules import Rule
from openry.policy.values import Decision, Part, Verdict
from openry.policy.words import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


@dataclass(frozen=True, eq=False)
class Policy:
    """What a step may run. `openry.policy.load_policy` makes it.

    Attributes:
        default: For what no rule matches.
        opaque: For what cannot be analysed; ALLOW only where nothing is restricted.
        read: Path patterns; None where the policy says nothing of them.
        env: Variables that may be set although programs load from them.
        parents: Policies that hold as well: the strictest of all decides.
        sections: What others read of it: `limits`, `require`, `network`, `env`.
    """

    name: str = ""
    default: Decision = Decision.DENY
    opaque: Decision = Decision.DENY
    rules: tuple[Rule, ...] = ()
    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None
    protect: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    env: frozenset[str] = frozenset()
    parents: tuple[Policy, ...] = ()
    sections: Mapping[str, Any] = field(default_factory=dict)

    def decide(
        self,
        command: str | Sequence[Sequence[str]],
        *,
        cwd: str,
        workspace: str = "",
        home: str = "",
        path: str | None = None,
        env: Mapping[str, str] | None = None,
        inherited: Mapping[str, str] | None = None,
    ) -> Verdict:
        """Say what may become of a shell line, or of the argument vectors of a pipeline.

        The strictest of the commands in it decides, and of this policy and its parents.

        Args:
            path: Where programs are looked for; None means our own PATH.
            env: Variables set for this command alone; judged like assignments before it.
            inherited: Every variable the command will see, if that is known; arithmetic with one
                that is no number may run something.
        """
        folders = os.environ.get("PATH", os.defpath) if path is None else path
        base = workspace or cwd
        place = Place(cwd, base, home or "/nowhere", folders, (cwd,))
        verdicts = [
            one._decide(command, place, env or {}, inherited) for one in (self, *self.parents)
        ]
        return max(verdicts, key=lambda verdict: verdict.decision)

    def decide_capability(
        self,
        name: str,
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        urls: Sequence[str] = (),
        cwd: str,
        workspace: str = "",
        home: str = "",
    ) -> Verdict:
        """Say what may become of a call of the capability `name`, by what its arguments name.

        The words it starts are its definition's, so they are not judged: its files must be where
        `files` says, its addresses among `network.hosts`, and no rule may deny it by its name.
        """
        place = Place(cwd, workspace or cwd, home or "/nowhere", "", (cwd,))
        verdicts = []
        for policy in (self, *self.parents):
            judge = Judge(policy, place)
            judge.capability(name, reads, writes, urls)
            verdicts.append(_verdict(judge))
        return max(verdicts, key=lambda verdict: verdict.decision)

    def rules_for(self, call: Call) -> tuple[Rule, ...]:
        """The rules that may speak of this program, in the policy's order."""
        by_program = self._by_program
        same = canonical(call.name) if call.name else ""
        return by_program.get(same) or by_program[""]

    @cached_property
    def of_texts(self) -> tuple[Rule, ...]:
        """Rules that deny any line with some text in it."""
        return tuple(
            rule
            for rule in self.rules
            if rule.regex and rule.program == "*" and rule.decision is Decision.DENY
        )

    @cached_property
    def _by_program(self) -> dict[str, tuple[Rule, ...]]:
        """Rules by the program they name; those of paths and of every program are in each."""
        of_every = [rule.program == "*" or "/" in rule.program for rule in self.rules]
        places: dict[str, list[int]] = {"": []}
        for place, rule in enumerate(self.rules):
            places.setdefault("" if of_every[place] else canonical(rule.program), []).append(place)
        return {
            name: tuple(self.rules[place] for place in sorted({*some, *places[""]}))
            for name, some in places.items()
        }

    @cached_property
    def offered(self) -> str:
        """What the rules allow, for somebody who was refused."""
        names = dict.fromkeys(r.program for r in self.rules if r.decision is Decision.ALLOW)
        shown = [f"`{name}`" for name in list(names)[:12]]
        return ", ".join(shown) + (", …" if len(names) > 12 else "")

    @cached_property
    def frees_arithmetic(self) -> bool:
        """Whether a rule lets the shell's arithmetic (`let`, `$((…))`) run what it likes."""
        return self.opaque is Decision.ALLOW or any(
            rule.program == "let" and rule.runs for rule in self.rules
        )

    def _decide(
        self,
        command: str | Sequence[Sequence[str]],
        place: Place,
        env: Mapping[str, str],
        inherited: Mapping[str, str] | None,
    ) -> Verdict:
        judge = Judge(self, place)
        given = {**(inherited or {}), **env}
        judge.environment = given if inherited is not None else None
        judge.tainted = frozenset(name for name in given if not is_number(Word(given[name])))
        for name, text in env.items():
            judge.variable(name, text)
        if isinstance(command, str):
            judge.text(command)
        else:
            for stage in command:
                judge.argv(tuple(Word(word) for word in stage))
        return _verdict(judge)


def _verdict(judge: Judge) -> Verdict:
    """The strictest thing that was said decides."""
    decision, rule, reason, instead = Decision.ALLOW, "", "every part of it is allowed", ""
    for part in judge.parts:
        if part.decision > decision:
            decision, rule, reason = part.decision, part.rule, part.reason
            instead = part.instead
    return Verdict(
        decision,
        reason,
        rule,
        _merged(judge.parts),
        tuple(judge.reads),
        tuple(judge.writes),
        tuple(judge.hosts),
        instead,
    )


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    """One part for each command: the strictest thing that was said of it."""
    merged: list[Part] = []
    for part in parts:
        if merged and merged[-1].argv == part.argv:
            merged[-1] = max(merged[-1], part, key=lambda one: one.decision)
        else:
            merged.append(part)
    return tuple(merged)
