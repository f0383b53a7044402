"""What a step may run: every simple command of a line is judged before any of it is run.

Light to import: the parts are loaded when a policy is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.policy.load import load_policy
    from openry.policy.policy import Policy
    from openry.policy.values import Decision, Part, Verdict

__all__ = ["Decision", "Part", "Policy", "Verdict", "load_policy"]
_WHERE = {"load_policy": "load", "Policy": "policy"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"openry.policy.{_WHERE.get(name, 'values')}"), name)
