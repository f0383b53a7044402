"""What surrounds a step: its own setting, else the workflow's, else the configured one."""

# ruff: noqa: PTH100, PTH111, PTH118
# Paths are compared as text here, whether they are there or not.

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from openry.config import Config
from openry.files import make_private_folder
from openry.forwarder.bounds import narrowed
from openry.forwarder.judging import policy_of
from openry.models import RunContext, SandboxSpec
from openry.orchestrator.course import Standing
from openry.orchestrator.spec import AgentSpec, NetworkSpec, SandboxSettings, SubStep
from openry.policy import Policy
from openry.policy.load import preset_with
from openry.sandbox.hosts import in_both
from openry.sandbox.real import is_within
from openry.secretstore import SecretStore
from openry.session.blackboard import FOLDER, PROGRAMS, folder_of


def sandbox_of(
    standing: Standing, step: SubStep | None, config: Config, *, writable: bool = True
) -> SandboxSpec:
    """The sandbox of a step's commands: what its workflow asks for, narrowed by the step, and by
    every command policy. A drafted workflow cannot leave it, nor reach the network.

    `writable` False holds the workspace read-only, for commands that only look.

    Raises:
        UsageError: A command policy cannot be read.
    """
    policies = _policies(standing, step, config)
    spec = _asked(standing, step, config, open_to=any(one.hosts for one in policies))
    for policy in policies:
        spec = narrowed(spec, policy, standing.workspace)
    spec = replace(spec, protect=(*spec.protect, *_policy_files(standing, step)))
    if step is not None and step.blackboard:
        refused = "a drafted workflow has no blackboard" if standing.drafted else spec.refused
        board = str(folder_of(config, step.blackboard))
        spec = replace(spec, write=(*spec.write, board), refused=refused)
    return spec if writable else replace(spec, write=(), read=(*spec.read, *spec.write))


def blackboard_of(standing: Standing, step: SubStep | None, config: Config) -> dict[str, Any]:
    """What the context of a step's commands has for its blackboard: programs, and where it is."""
    if step is None or not step.blackboard or standing.drafted:  # which is refused later
        return {}
    folder = folder_of(config, step.blackboard)
    make_private_folder(folder)
    env = {FOLDER: str(folder), "BLACKBOARD_PYTHON": sys.executable}
    return {"programs": str(PROGRAMS), "env": env}


def _policies(standing: Standing, step: SubStep | None, config: Config) -> tuple[Policy, ...]:
    named = policies_of(standing, step)
    policy = policy_of(RunContext(workspace=standing.workspace, policy=named), config.home_dir)
    return (policy, *policy.parents) if policy else ()


def _policy_files(standing: Standing, step: SubStep | None) -> tuple[str, ...]:
    """Policies that are files: whoever is under one must not change it."""
    named = (one for one in policies_of(standing, step) if isinstance(one, str))
    return tuple(os.path.abspath(one) for one in named if one.endswith((".yaml", ".yml")))


def _asked(
    standing: Standing, step: SubStep | None, config: Config, *, open_to: bool
) -> SandboxSpec:
    """What workflow and step ask for, before any policy.

    `open_to`: A policy names hosts; that asks for them where nothing else is said of the network.
    """
    write = (standing.workspace,)
    if standing.drafted:
        return SandboxSpec("auto", write)
    workflow = standing.spec.sandbox or SandboxSettings()
    own = (step.sandbox if step else None) or SandboxSettings()
    spec = SandboxSpec(
        backend=own.backend or workflow.backend or config.sandbox,
        write=(*write, *_paths(standing, own.write or workflow.write)),
        read=_paths(standing, own.read or workflow.read),
        network=True,
        refused=_wider(standing, workflow, own),
    )
    asked = [each for each in (workflow.network, own.network) if each is not None] or [open_to]
    for each in asked:
        spec = _reaching(spec, each)
    return spec


def _reaching(spec: SandboxSpec, network: bool | NetworkSpec) -> SandboxSpec:
    """`spec` with no more network than this."""
    if isinstance(network, NetworkSpec):
        hosts = network.hosts if spec.network else in_both(spec.hosts, network.hosts)
        rates = [rate for rate in (spec.connections_per_minute, network.per_minute) if rate]
        rate = min(rates, default=0)
        return replace(spec, network=False, hosts=hosts, connections_per_minute=rate)
    return spec if network else replace(spec, network=False, hosts=())


def _wider(standing: Standing, workflow: SandboxSettings, own: SandboxSettings) -> str:
    """What a step asks for beyond what its workflow says; empty when nothing."""
    if own.backend == "none" and workflow.backend not in (None, "none"):
        return f"the step asks for no sandbox, its workflow for `{workflow.backend}`"
    inside = (standing.workspace, *_paths(standing, workflow.write))
    for name, said, asked, within in (
        ("write", workflow.write, own.write, inside),
        ("read", workflow.read, own.read, (*inside, *_paths(standing, workflow.read))),
    ):
        for place in _paths(standing, asked) if said else ():
            if not any(is_within(place, one) for one in within):
                return (
                    f"the step's `sandbox.{name}` has `{place}`, which its workflow's has not;"
                    " a step can only narrow: add it there"
                )
    return ""


def policies_of(standing: Standing, step: SubStep | None) -> tuple[str | dict[str, Any], ...]:
    """The command policies of a step, all of which hold: it can only narrow its workflow's.

    A workflow that names none is under `moderate`, a drafted one whatever it says. The folders
    that a person's workflow shows its sandbox are then files of the policy too.
    """
    named, own = standing.spec.command_policy, step.command_policy if step else None
    given = [policy for policy in (named, own) if policy is not None]
    if standing.drafted:
        return "moderate", *given
    return tuple(given) if named is not None else (_moderate(standing, step), *given)


def _moderate(standing: Standing, step: SubStep | None) -> str | dict[str, Any]:
    spoken = (standing.spec.sandbox, step.sandbox if step else None)
    settings = [one for one in spoken if one is not None]
    read = _paths(standing, [name for one in settings for name in one.read])
    write = _paths(standing, [name for one in settings for name in one.write])
    if not read and not write:
        return "moderate"
    return preset_with("moderate", read=(*read, *write), write=write)


def _paths(standing: Standing, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        os.path.normpath(os.path.join(standing.workspace, os.path.expanduser(name)))
        for name in names
    )


def agent_of(standing: Standing, step: SubStep) -> AgentSpec:
    """Who acts: the step's settings laid over the workflow's."""
    under, over = standing.spec.agent, step.agent
    if under is None or over is None:
        return over or under or AgentSpec()
    return under.model_copy(update=over.model_dump(exclude_unset=True))


def secrets_of(
    step: SubStep, env: Mapping[str, str], home: str | os.PathLike[str]
) -> dict[str, str]:
    """The values a step's commands get of the secrets it names: set in `env`, else stored.

    One that is neither is left out, and `openry-orchestrator validate` says so.
    """
    if not step.secrets:
        return {}
    known = {**SecretStore(home).values(), **env}
    return {name: known[name] for name in step.secrets if name in known}
