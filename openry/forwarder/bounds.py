"""What a command policy says of the sandbox: lists, hosts and limits, which only ever narrow."""

# Paths are compared as text here, whether they are there or not.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from openry.forwarder.judging import policy_of
from openry.models import RunContext, SandboxSpec
from openry.policy import Policy
from openry.sandbox.hosts import in_both
from openry.sandbox.real import is_within

#: Names of a policy's limits, and where the sandbox has them.
_LIMITS = {
    "time_s": "time_s",
    "cpu_s": "cpu_s",
    "memory_mb": "memory_mb",
    "procs": "processes",
    "disk_mb": "disk_mb",
    "output_mb": "output_mb",
}


def bounded(context: RunContext, home: str) -> RunContext:
    """`context` with its sandbox under its policies; one that names hosts asks for them.

    Args:
        home: OPENRY_HOME, where policies are looked for by name.

    Raises:
        UsageError: A policy cannot be read.
    """
    policy = policy_of(context, home)
    if policy is None:
        return context
    policies = (policy, *policy.parents)
    asked = any(one.hosts for one in policies)
    spec = replace(context.sandbox, network=context.sandbox.network or asked)
    for one in policies:
        spec = narrowed(spec, one, context.workspace)
    return replace(context, sandbox=spec)


def narrowed(spec: SandboxSpec, policy: Policy, workspace: str) -> SandboxSpec:
    """`spec` under `policy`: nothing is reached, read, written or used that was not before.

    A sandbox holds folders and files. Of a pattern like `src/*.py` it holds the folder `src`; the
    rest is for whoever judges commands.
    What cannot be held as it is required is said in `refused`.
    """
    required = tuple(policy.sections.get("require", ()))
    read, write = spec.read, spec.write
    only_named = spec.only_named
    writable = policy.read if policy.write is None else tuple(map(_folder, policy.write))
    if writable is not None:  # what may be written can be read as well
        write = _kept(write, writable, workspace)
        if workspace in spec.write and workspace not in write and not only_named:
            read = (*read, workspace)  # it was seen as something to write
    if policy.read is not None:
        seen = read if only_named else (workspace, *read)
        read = _kept(seen, policy.read, workspace)
        only_named = workspace not in read
    return replace(
        spec,
        read=read,
        write=write,
        only_named=only_named,
        protect=(*spec.protect, *_names(policy.protect)),
        require=tuple(dict.fromkeys((*spec.require, *required))),
        refused=spec.refused or _not_held(policy, required),
        **_network(spec, policy),
        **_limits(spec, policy.sections.get("limits", {})),
    )


# --- files ------------------------------------------------------------------------------------


def _kept(places: Sequence[str], patterns: Sequence[str], workspace: str) -> tuple[str, ...]:
    """What of `places` the patterns leave.

    >>> _kept(("/w",), ("src/**", "/etc/**"), "/w"), _kept(("/w/a", "/x"), ("**",), "/w")
    (('/w/src',), ('/w/a',))
    """
    kept: dict[str, None] = {}
    for place in places:
        for pattern in patterns:
            head, rest = _split(pattern, workspace)
            if is_within(head, place):
                kept[head] = None
            elif "**" in rest and is_within(place, head):
                kept[place] = None
    return tuple(one for one in kept if not any(is_within(one, o) for o in kept if o != one))


def _folder(pattern: str) -> str:
    """A file is written by way of its folder: programs make a new one and rename it.

    >>> _folder("build/**"), _folder("out/a.txt"), _folder("a.txt")
    ('build/**', 'out/*', './*')
    """
    return pattern if "*" in pattern else os.path.join(os.path.dirname(pattern) or ".", "*")


def _split(pattern: str, workspace: str) -> tuple[str, str]:
    """The folder or file before the first part that stands for several, and the rest."""
    text = os.path.normpath(os.path.join(workspace, os.path.expanduser(pattern)))
    parts = text.split("/")
    head = next((n for n, part in enumerate(parts) if set(part) & set("*?")), len(parts))
    return "/".join(parts[:head]) or "/", "/".join(parts[head:])


def _not_held(policy: Policy, required: Sequence[str]) -> str:
    """Why a list of folders cannot hold what is required; empty when it can."""
    for layer, patterns in (("fs_read", policy.read), ("fs_write", policy.write)):
        for pattern in patterns or () if layer in required else ():
            rest = _split(pattern, "/")[1]
            if rest != "**" and (rest or layer == "fs_write"):
                return (
                    f"the policy requires `{layer}`, and a sandbox holds whole folders only,"
                    f" not `{pattern}`; write it like `build/**`"
                )
    return ""


def _names(patterns: Sequence[str]) -> tuple[str, ...]:
    """Those to be protected that are names of their own, in one folder or, like `**/.env`, in
    every one; the others are judged by their words."""
    names = (pattern.removesuffix("/**") for pattern in patterns)
    plain = (name for name in names if not set(name.removeprefix("**/")) & set("*?"))
    return tuple(map(os.path.expanduser, plain))


# --- hosts and limits -------------------------------------------------------------------------


def _network(spec: SandboxSpec, policy: Policy) -> dict[str, Any]:
    per_minute = policy.sections.get("network", {}).get("per_minute", 0)
    rate = {"connections_per_minute": _lower(spec.connections_per_minute, per_minute)}
    if policy.hosts is None:
        return rate
    hosts = policy.hosts if spec.network else in_both(spec.hosts, policy.hosts)
    return {"network": False, "hosts": hosts, **rate}


def _limits(spec: SandboxSpec, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Whole numbers but for seconds of wall time: less than one becomes one."""
    given = {_LIMITS[name]: amount for name, amount in limits.items()}
    return {
        name: _lower(getattr(spec, name), amount if name == "time_s" else max(1, int(amount)))
        for name, amount in given.items()
    }


def _lower(one: Any, other: Any) -> Any:
    """The stricter of two limits, of which 0 is none."""
    return min(one, other) if one and other else one or other
