"""Frozen values that every floor shares. Standard library only: this is on the forwarder's path."""

from openry.models.command import (
    MANUAL_RUN,
    Answer,
    Command,
    CommandResult,
    Ending,
    RunCommand,
    RunContext,
    SandboxSpec,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.models.problem import Problem
    from openry.models.states import InstanceState, RunState
    from openry.models.verdict import RuleResult

__all__ = [
    "MANUAL_RUN",
    "Answer",
    "Command",
    "CommandResult",
    "Ending",
    "InstanceState",
    "Problem",
    "RuleResult",
    "RunCommand",
    "RunContext",
    "RunState",
    "SandboxSpec",
]


#: Imported by whoever uses them: the states are enumerations, and `enum` takes 6 ms.
_ELSEWHERE = {
    "InstanceState": "states",
    "RunState": "states",
    "Problem": "problem",
    "RuleResult": "verdict",
}


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module `openry.models` has no `{name}`")
    from importlib import import_module

    return getattr(import_module(f"openry.models.{_ELSEWHERE[name]}"), name)
