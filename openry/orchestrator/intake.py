"""What is started becomes a row: its plan frozen, its inputs checked, its folder known."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openry import __version__
from openry.config import Config
from openry.errors import UsageError
from openry.orchestrator.course import new_id
from openry.orchestrator.inputs import check_inputs
from openry.orchestrator.loader import Loaded
from openry.orchestrator.lookup import resolver
from openry.orchestrator.missing import refuse_secrets
from openry.orchestrator.plan import Plan, make_plan, sha256_of, with_policies
from openry.orchestrator.spec import WorkflowSpec
from openry.output.redact import Redactor
from openry.project import places, supplies

Row = dict[str, Any]


def plan_of(
    loaded: Loaded | WorkflowSpec, config: Config, payload: Mapping[str, Any]
) -> tuple[Plan, str]:
    """The frozen plan, and the file it came from.

    Raises:
        BadFileError: With every problem of the file and of those it refers to.
    """
    if isinstance(loaded, WorkflowSpec):
        return Plan(None, {loaded.name: loaded}, payload), ""
    return make_plan(loaded, resolver(loaded, config), payload), str(loaded.path or "")


def row_of(
    plan: Plan,
    config: Config,
    *,
    file: str = "",
    inputs: Mapping[str, Any] | None = None,
    workspace: Path | None = None,
    drafted: bool = False,
    session_id: str = "",
    instance_id: str = "",
    data: Mapping[str, Any] | None = None,
) -> Row:
    """An instance's row, not put down yet.

    Raises:
        UsageError: With every problem of the inputs, the folder is none, or a secret would be kept.
    """
    first = plan.workflow_at(0)
    specs = plan.composition.inputs if plan.composition else first.inputs
    checked = check_inputs(specs, inputs or {})
    plan = with_policies(plan, places("policies", config.home, workspace or "."))
    instance_id, text = _checked(instance_id) or new_id(), plan.to_text()
    redactor = Redactor.for_config(config, os.environ)
    refuse_secrets(redactor, text, input=checked, payload=plan.payload)
    return {
        "instance_id": instance_id,
        "workflow": plan.name,
        "kind": plan.kind,
        "plan": text,
        "plan_hash": sha256_of(text),
        "source_file": file,
        "interpreter_version": __version__,
        "inputs": checked,
        "payload": dict(plan.payload),
        "workspace": str(folder_of(plan, workspace) or own_folder(config, instance_id)),
        # A project's workflow may never do more than a drafted one: `openry trust` says so.
        "drafted": drafted or bool(file and supplies(file, config.home)),
        "session_id": session_id,
        "data": dict(data or {}),
    }


def _checked(instance_id: str) -> str:
    """An id somebody gave: it names a folder, and is given on command lines."""
    if instance_id and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", instance_id):
        raise UsageError(f"`{instance_id}` is no id: letters, digits, `.`, `_` and `-`")
    return instance_id


def folder_of(plan: Plan, given: Path | None) -> Path | None:
    """The folder the steps work in; None when it is one of the instance's own."""
    if given is not None:
        folder = given.expanduser().resolve()
        if not folder.is_dir():
            raise UsageError(f"the workspace `{given}` is not a folder")
        return folder
    return Path.cwd() if plan.workflow_at(0).workspace == "shared" else None


def own_folder(config: Config, instance_id: str) -> Path:
    return config.home / "instances" / instance_id / "workspace"
