"""What a file must say beyond the shape of each key: ids, routes, what each kind needs.

These look at the raw data, so they report beside the shape's problems, not after them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from openry.models import Problem
from openry.orchestrator import template_checks
from openry.orchestrator.report import Report, Where, as_text, mappings
from openry.orchestrator.spec import ABORT, CONTINUE, DONE, RESERVED, RETRY, RETRY_CURRENT
from openry.orchestrator.yaml12 import Document
from openry.texts import did_you_mean

#: For each route key, the words it takes beside a step's id.
STEP_ROUTES = {
    "on_success": (DONE,),
    "on_failure": (ABORT, RETRY, RETRY_CURRENT),
    "on_validation_fail": (RETRY_CURRENT, ABORT, RETRY),
    "on_payload_missing": (RETRY_CURRENT, ABORT, RETRY),
    "on_dropped": (ABORT,),
}
MATCH_ROUTES = (DONE, ABORT, RETRY_CURRENT, CONTINUE, RETRY)


def workflow(
    data: dict[str, Any], document: Document, refs: Collection[str], folder: Path | None
) -> list[Problem]:
    """Problems across the keys of a workflow. `refs` are workflows that a route may lead to."""
    report = Report(document)
    _name(data, report)
    steps = list(mappings(data.get("sub_steps")))
    ids = _ids(steps, report)
    for place, step in steps:
        where: Where = ("sub_steps", place)
        _routes(step, where, ids, refs, report)
        _needs(step, where, report)
        _payload_from(step, where, ids, report)
        _prompt_files(step, where, folder, report)
        _variables(step, where, report)
        _output_limits(step, where, as_text(data.get("name")), report)
        template_checks.step(step, where, template_checks.names(data, ids), report)
    template_checks.variables(data.get("env"), ("env",), template_checks.names(data, ids), report)
    _input_defaults(data, report)
    return report.found


def composition(
    data: dict[str, Any], document: Document, refs: Collection[str], folder: Path | None
) -> list[Problem]:
    """Problems across the keys of a composition."""
    report = Report(document)
    _name(data, report)
    steps = list(mappings(data.get("big_steps")))
    names = {str(step["ref"]) for _, step in steps if isinstance(step.get("ref"), str)}
    names |= {step for step in data.get("big_steps") or () if isinstance(step, str)}
    for place, step in steps:
        for key, word in (("on_success", DONE), ("on_failure", ABORT)):
            target = step.get(key)
            if isinstance(target, str) and target not in names and target != word:
                _nowhere(("big_steps", place, key), key, target, (*names, word), report)
        template_checks.values(step.get("inputs"), ("big_steps", place, "inputs"), data, report)
    _input_defaults(data, report)
    return report.found


def _name(data: dict[str, Any], report: Report) -> None:
    """A name is looked up and saved under, so it may lead to no other folder."""
    name = as_text(data.get("name")) or ""
    if "/" in name or "\\" in name or name in (".", ".."):
        report.add(("name",), f"`{name}` is a path, not a name", "leave `/` and `\\` out")
    elif not name.isprintable():
        report.add(("name",), "a name is made of visible characters")


def _ids(steps: list[tuple[int, dict[str, Any]]], report: Report) -> dict[str, int]:
    ids: dict[str, int] = {}
    for place, step in steps:
        name = as_text(step.get("id"))
        if not name:
            continue
        where: Where = ("sub_steps", place, "id")
        if name in ids:
            first = report.document.line(("sub_steps", ids[name], "id"))
            report.add(where, f"step id `{name}` is given twice", f"first on line {first}")
        elif not name.isprintable():
            report.add(where, "a step's id is made of visible characters")
        elif name in RESERVED:
            report.add(where, f"`{name}` is a route's word and cannot be a step's id")
        ids.setdefault(name, place)
    return ids


def _routes(
    step: dict[str, Any], where: Where, ids: dict[str, int], refs: Collection[str], report: Report
) -> None:
    for key, words in STEP_ROUTES.items():
        _route(step.get(key), (*where, key), words, ids, refs, report)
    for place, route in mappings(step.get("validation_routing")):
        for key in ("on_match", "on_mismatch"):
            at = (*where, "validation_routing", place, key)
            _route(route.get(key), at, MATCH_ROUTES, ids, refs, report)


def _route(
    value: Any, where: Where, words: tuple[str, ...], ids: dict[str, int],
    refs: Collection[str], report: Report,
) -> None:  # fmt: skip
    target = as_text(value)
    if target is None or target in ids or target in words:
        return
    key = str(where[-1])
    if target in refs:
        said = f"`{key}: {target}` leaves this workflow for the one of that name"
        report.add(where, said, level="warning")
    elif target in RESERVED:
        report.add(
            where, f"`{key}` cannot be `{target}`", f"it takes {_list(words)} or a step's id"
        )
    else:
        _nowhere(where, key, target, (*ids, *words), report)


def _nowhere(where: Where, key: str, target: str, names: Collection[str], report: Report) -> None:
    hint = did_you_mean(target, names) or f"there are {_list(tuple(names)[:8])}"
    report.add(where, f"`{key}` leads nowhere: no step is called `{target}`", hint)


def _list(words: Collection[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


_BELONGS = {
    "command": ("shell",),
    "capability": ("capability",),
    "args": ("capability",),
    "prompt": ("approval",),
    "approvers": ("approval",),
    "expires_minutes": ("approval",),
    "payload_keys_on_error": ("shell", "capability"),
}


def _needs(step: dict[str, Any], where: Where, report: Report) -> None:
    """What each kind cannot do without, and keys that say nothing to it."""
    kind = as_text(step.get("kind")) or "agent"
    if kind not in ("agent", "shell", "capability", "approval"):
        return
    has = {key for key, value in step.items() if value is not None and value != ""}
    wrong_kind = next((k for k in ("command", "capability") if k in has and kind == "agent"), None)
    if kind == "agent" and wrong_kind:
        meant = "shell" if wrong_kind == "command" else "capability"
        hint = f"add `kind: {meant}`" if "kind" not in has else f"did you mean `kind: {meant}`?"
        report.add((*where, wrong_kind), f"`{wrong_kind}` has no meaning on an agent step", hint)
        return
    if kind == "agent" and not has & {"description", "prompt_blocks"}:
        report.add(
            where, "missing `description`", "an agent step needs its task, or `prompt_blocks`"
        )
    if kind in ("shell", "capability"):
        wanted = "command" if kind == "shell" else "capability"
        if wanted not in has:
            report.add(where, f"missing `{wanted}`", f"a {kind} step needs it")
    if kind == "approval" and "for_each" in has:
        said = "`for_each` has no meaning on an approval step"
        report.add((*where, "for_each"), said, "a person is asked once")
    for key, kinds in _BELONGS.items():
        if key in has and kind not in kinds and key != wrong_kind:
            said = f"`{key}` has no effect on {'an' if kind[0] == 'a' else 'a'} {kind} step"
            report.add((*where, key), said, level="warning")


def _payload_from(step: dict[str, Any], where: Where, ids: dict[str, int], report: Report) -> None:
    source = as_text(step.get("payload_from"))
    if source and source not in ids:
        _nowhere((*where, "payload_from"), "payload_from", source, list(ids), report)


def capabilities(data: dict[str, Any], document: Document, known: Collection[str]) -> list[Problem]:
    """Steps that name a capability which is not among the known ones."""
    report = Report(document)
    for place, step in mappings(data.get("sub_steps")):
        name = as_text(step.get("capability"))
        if name and name not in known:
            where = ("sub_steps", place, "capability")
            report.add(where, f"no capability is called `{name}`", did_you_mean(name, known))
    return report.found


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variables(step: dict[str, Any], where: Where, report: Report) -> None:
    env, secrets = step.get("env"), step.get("secrets")
    names = [(name, "env") for name in env] if isinstance(env, dict) else []
    names += [(name, "secrets") for name in secrets] if isinstance(secrets, list) else []
    for name, key in names:
        if isinstance(name, str) and not _VARIABLE.fullmatch(name):
            report.add((*where, key), f"`{name}` cannot be a variable's name")


#: The notice of a large output takes about as many tokens; less would overflow by itself.
MIN_OUTPUT_TOKENS = 200


def _output_limits(
    step: dict[str, Any], where: Where, workflow_name: str | None, report: Report
) -> None:
    limit = step.get("max_output_tokens")
    if isinstance(limit, int) and 0 < limit < MIN_OUTPUT_TOKENS:
        said = f"`max_output_tokens` must be 0 or at least {MIN_OUTPUT_TOKENS}"
        report.add((*where, "max_output_tokens"), said, "a notice alone takes as many")
    handler = as_text(step.get("on_output_overflow"))
    if handler and handler == workflow_name:
        said = f"`on_output_overflow: {handler}` would overflow into itself"
        report.add((*where, "on_output_overflow"), said, "name another workflow")


def _prompt_files(step: dict[str, Any], where: Where, folder: Path | None, report: Report) -> None:
    """A file block that is not there, where its place can be known before the run."""
    if folder is None:
        return
    for place, block in mappings(step.get("prompt_blocks")):
        path = as_text(block.get("path"))
        if block.get("type") != "file" or not path or block.get("optional") is True:
            continue
        if "{{" in path or prompt_file(path, folder) or (Path.cwd() / path).exists():
            continue
        at = (*where, "prompt_blocks", place, "path")
        report.add(at, f"no file `{path}`", "create it, or set `optional: true`")


def prompt_file(path: str, folder: Path) -> Path | None:
    """A prompt block's file: a full path, or beside the workflow, or in `prompt_blocks/`."""
    named = Path(path).expanduser()
    for place in (folder, folder / "prompt_blocks", folder.parent / "prompt_blocks"):
        if (place / named).is_file():
            return (place / named).resolve()
    return None


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str, int, float), "int": (int,), "number": (int, float), "bool": (bool,),
    "path": (str,), "list": (list,), "ref": (str,),
}  # fmt: skip


def _input_defaults(data: dict[str, Any], report: Report) -> None:
    inputs = data.get("inputs")
    for name, spec in inputs.items() if isinstance(inputs, dict) else ():
        if not isinstance(spec, dict):
            continue
        kind, default = spec.get("type", "string"), spec.get("default")
        wanted = _TYPES.get(kind) if isinstance(kind, str) else None
        if default is None or wanted is None:
            continue
        bool_by_mistake = isinstance(default, bool) and kind != "bool"
        if bool_by_mistake or not isinstance(default, wanted):
            report.add(("inputs", name, "default"), f"default of `{name}` is not of type `{kind}`")
        choices = spec.get("choices")
        if isinstance(choices, list) and default not in choices:
            report.add(
                ("inputs", name, "default"), f"default of `{name}` is not one of its choices"
            )
