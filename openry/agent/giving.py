"""The secrets that a tool declares, as variables for its call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from openry.capability import ToolDefinition, complete, secret_names

#: The value of a secret by its name; None when there is none.
Secrets = Callable[[str], str | None]


def no_secrets(name: str) -> str | None:
    """For a step: what it gets stands in its `secrets:`."""
    return None


def secrets_by_hand(home: Path, env: Mapping[str, str] = os.environ) -> Secrets:
    """For the person who calls: their environment, then what `openry secret set` keeps."""

    def of(name: str) -> str | None:
        from openry.secretstore import SecretStore

        return env.get(name) or SecretStore(home).values().get(name)

    return of


def secrets_of_server(tool: ToolDefinition, env: Mapping[str, str]) -> Secrets:
    """For programs that a person lets in: the server's environment, and only the names that the
    tool itself states. A caller that may name any variable could have it sent anywhere.
    """
    own = secret_names(tool, tool.defaults())
    return lambda name: env.get(name) if name in own else None


def variables(tool: ToolDefinition, given: Mapping[str, Any], secrets: Secrets) -> dict[str, str]:
    """The variables for one call; those that nobody has are left out, and the tool says so.

    Raises:
        BadArgumentsError: Every problem of the arguments at once.
    """
    names = secret_names(tool, complete(tool, given)) if tool.secret_env else ()
    return {name: text for name in names if (text := secrets(name))}
