"""Tier 0: repairs that plain code knows for failures it recognises. No model is asked.

A rule looks at the scene of a failure and yields proposals, the likeliest first. It proposes
only; the gates decide.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loop.acceptance import rule_words
from loop.contract import checks_for
from loop.diagnose import Diagnosis, FailureClass, rule_path
from loop.edits import (
    AddCheck,
    Edit,
    InsertStep,
    Proposal,
    RelaxCheck,
    SetOutput,
    SetPrompt,
    SetRetries,
    SetTimeout,
    StepData,
    ToCapability,
    ToShell,
)
from loop.evidence import StepRun, Trial
from loop.values import RuleData, Survey
from openry.capability.registry import Registry

#: Common programs of a text pipeline; a misspelt one is near to one of these.
PROGRAMS = (
    "awk basename cat comm cp cut date diff dirname echo egrep expr fgrep find fold grep gzip head"
    " join jq ls mkdir mv nl paste perl printf python3 rev rm sed seq sh sort split tac tail tar"
    " tee touch tr uniq wc xargs"
).split()
_TRANSIENT = re.compile(r"temporar|try again|timed? ?out|rate.?limit|connection reset|busy", re.I)


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a rule may look at.

    Attributes:
        workflow: Plain data of the workflow that ran.
        survey: The workspace before the run.
        hard: The sealed rules, in the order of the trial's verdicts.
        soft: What the wording suggests, in the order of the trial's verdicts.
    """

    task: str
    workflow: Mapping[str, Any]
    trial: Trial
    diagnosis: Diagnosis
    survey: Survey
    hard: tuple[RuleData, ...]
    soft: tuple[RuleData, ...]
    registry: Registry

    @property
    def step(self) -> StepData | None:
        """Data of the step that the diagnosis blames."""
        steps = self.workflow.get("sub_steps") or []
        return next((dict(s) for s in steps if s["id"] == self.diagnosis.step), None)

    @property
    def run(self) -> StepRun | None:
        return self.trial.step(self.diagnosis.step)

    @property
    def files_then(self) -> tuple[str, ...]:
        """Files that were there when the blamed step began."""
        names = dict.fromkeys(self.survey.names)
        for step in self.trial.steps:
            if step.id == self.diagnosis.step:
                break
            names |= dict.fromkeys(step.changed)
        return tuple(names)


Rule = Callable[[Scene], Iterator[Proposal]]


def propose(scene: Scene) -> Iterator[Proposal]:
    """Every rule's proposals, surest rule first."""
    for rule in RULES:
        for proposal in rule(scene):
            yield Proposal(proposal.edits, f"rule:{rule.__name__}", proposal.why)


def misspelt_file(scene: Scene) -> Iterator[Proposal]:
    """The step reads a file that does not exist, and one with nearly that name does."""
    step, name = scene.step, scene.diagnosis.missing
    if step is None or not name or scene.diagnosis.failure_class is FailureClass.SILENT_WRONG:
        return
    for near in _nearest(name, scene.files_then, scene.task)[:3]:
        edit = with_word(scene, step, name, near, f"`{name}` does not exist, `{near}` does")
        if edit is not None:
            yield Proposal((edit,), "", edit.why)


def wrong_column(scene: Scene) -> Iterator[Proposal]:
    """The step asks for a column that the header lacks, or not for the one the task names."""
    step = scene.step
    if step is None or step.get("kind") != "capability" or step["capability"] not in scene.registry:
        return
    tool = scene.registry.get(step["capability"])
    args = step.get("args") or {}
    columns = _columns(scene, [args.get(name) for name in tool.with_role("input")])
    for parameter in tool.with_role("column", "columns"):
        value = args.get(parameter)
        for asked in value if isinstance(value, list) else [value]:
            known = str(asked) != scene.diagnosis.missing and (
                str(asked) in columns or str(asked).isdigit()
            )
            named = [c for c in columns if _names(scene.task, c) and c != asked]
            near = named if known else _nearest(str(asked), columns, scene.task) or named
            for column in near[:3]:
                why = f"the header has `{column}`, the step asks for `{asked}`"
                new = (
                    [column if v == asked else v for v in value]
                    if isinstance(value, list)
                    else column
                )
                yield Proposal((_call(scene, step, {**args, parameter: new}, why),), "", why)


def misspelt_program(scene: Scene) -> Iterator[Proposal]:
    """A shell step calls a program that does not exist, and one with nearly that name does."""
    step, run = scene.step, scene.run
    if step is None or run is None or step.get("kind") != "shell":
        return
    if not any(command.exit_code == 127 for command in run.commands):
        return
    name = scene.diagnosis.missing
    for near in difflib.get_close_matches(name, PROGRAMS, n=2, cutoff=0.5):
        edit = with_word(scene, step, name, near, f"`{name}` is no program, `{near}` is")
        if edit is not None:
            yield Proposal((edit,), "", edit.why)


def misnamed_result(scene: Scene) -> Iterator[Proposal]:
    """No step wrote the file that was asked for, but one wrote a file nobody asked for."""
    wanted = scene.diagnosis.missing
    if scene.diagnosis.failure_class is not FailureClass.SILENT_WRONG or not wanted:
        return
    asked = {rule_path(rule) for rule in (*scene.hard, *scene.soft)}
    strangers = [
        (run.id, path)
        for run in scene.trial.steps
        for path in run.changed
        if path not in asked and not _names(scene.task, path)
    ]
    order = {path: rank for rank, path in enumerate(_nearest(wanted, [p for _, p in strangers]))}
    for step_id, path in sorted(strangers, key=lambda pair: order.get(pair[1], 99)):
        step = next(s for s in scene.workflow["sub_steps"] if s["id"] == step_id)
        edit = with_word(scene, step, path, wanted, f"the task asks for `{wanted}`, not `{path}`")
        if edit is not None:
            yield Proposal((edit,), "", edit.why)


def missing_folder(scene: Scene) -> Iterator[Proposal]:
    """The step writes into a folder that does not exist."""
    step, name = scene.step, scene.diagnosis.missing
    folder = name.rpartition("/")[0]
    there = {file.rpartition("/")[0] for file in scene.files_then} | set(scene.survey.folders)
    if step is None or not folder or folder in there or "create_directory" not in scene.registry:
        return
    tool = scene.registry.get("create_directory")
    parameter = (tool.required or ("path",))[0]
    data = {
        "id": _free_id(scene.workflow, "make_folder"),
        "kind": "capability",
        "capability": "create_directory",
        "args": {parameter: folder},
    }
    why = f"the folder `{folder}` does not exist"
    yield Proposal((InsertStep(step=step["id"], place="before", data=data, why=why),), "", why)


def unmet_payload(scene: Scene) -> Iterator[Proposal]:
    """A rule asks for payload keys that the step was never told to report."""
    step, run = scene.step, scene.run
    if step is None or run is None or step.get("kind", "agent") != "agent":
        return
    keys = [
        str(rule.get("key"))
        for rule in step.get("validation") or []
        if str(rule.get("type")).startswith("payload_")
    ]
    for key in dict.fromkeys(keys):
        if key not in (step.get("payload_keys") or []) and key not in run.payload:
            why = f"a rule reads `{key}`, which the step is not asked to report"
            yield Proposal((SetOutput(step=step["id"], key=key, why=why),), "", why)


def too_short(scene: Scene) -> Iterator[Proposal]:
    """The step was stopped by its own time limit."""
    step = scene.step
    if step is None or scene.diagnosis.failure_class is not FailureClass.TIMEOUT:
        return
    limit = step.get("timeout_seconds")
    if isinstance(limit, int | float) and limit < 900:
        seconds = min(900, max(10, limit * 4))
        why = f"{limit} s were not enough"
        yield Proposal((SetTimeout(step=step["id"], seconds=seconds, why=why),), "", why)


def transient(scene: Scene) -> Iterator[Proposal]:
    """The failure passes by itself."""
    step, command = scene.step, scene.diagnosis.command
    if step is None or command is None or not _TRANSIENT.search(command.stderr):
        return
    if step.get("max_sub_step_retries") != 2 or step.get("on_failure") != "retry":
        why = "the error says that it may pass"
        yield Proposal((SetRetries(step=step["id"], retries=2, why=why),), "", why)


def check_where_it_goes_wrong(scene: Scene) -> Iterator[Proposal]:
    """An agent's step passes with a wrong result: let the step itself hear what is wrong."""
    step = scene.step
    if step is None or scene.diagnosis.failure_class is not FailureClass.SILENT_WRONG:
        return
    if step.get("kind", "agent") != "agent":
        return
    rules = zip(scene.hard, scene.trial.hard, strict=True)
    for rule, verdict in rules:
        if not verdict.passed and rule not in (step.get("validation") or []):
            why = "the step should fail where its result is wrong"
            yield Proposal((AddCheck(step=step["id"], rule=rule, why=why),), "", why)
            return


def check_too_strict(scene: Scene) -> Iterator[Proposal]:
    """All that was agreed holds, and only the step's own rule fails: a person may loosen it."""
    step, run = scene.step, scene.run
    if step is None or run is None or not scene.hard:
        return
    if scene.diagnosis.failure_class is not FailureClass.CHECK_FALSE_ALARM:
        return
    broken = {verdict.rule for verdict in run.broken_rules}
    for index, rule in enumerate(step.get("validation") or []):
        if rule_words(rule) in broken:
            why = "the acceptance holds although this rule fails"
            yield Proposal((RelaxCheck(step=step["id"], index=index, why=why),), "", why)


RULES: tuple[Rule, ...] = (
    misspelt_file,
    wrong_column,
    misspelt_program,
    misnamed_result,
    missing_folder,
    unmet_payload,
    too_short,
    transient,
    check_where_it_goes_wrong,
    check_too_strict,
)


def with_word(scene: Scene, step: Mapping[str, Any], old: str, new: str, why: str) -> Edit | None:
    """The edit that puts `new` for the word `old` where the step acts; None when it is not there.

    A person's rules stay: they say what must hold, not what to do.
    """
    kind = step.get("kind", "agent")
    if kind == "capability":
        args = step.get("args") or {}
        changed = {key: _replaced(value, old, new) for key, value in args.items()}
        return None if changed == args else _call(scene, step, changed, why)
    key = "command" if kind == "shell" else "description"
    text = str(step.get(key) or "")
    changed_text = _word(old).sub(lambda _: _quoted(new) if kind == "shell" else new, text)
    if changed_text == text:
        return None
    if kind == "shell":
        return ToShell(step=step["id"], command=changed_text, why=why)
    return SetPrompt(step=step["id"], text=changed_text, why=why)


def _call(scene: Scene, step: Mapping[str, Any], args: dict[str, Any], why: str) -> ToCapability:
    name = step["capability"]
    checks = checks_for(step, name, args, scene.registry) if name in scene.registry else None
    return ToCapability(step=step["id"], name=name, args=args, validation=checks, why=why)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, list):
        return [_replaced(each, old, new) for each in value]
    return new if isinstance(value, str) and value.removeprefix("./") == old else value


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(text)}(?![\w-]|\.\w)")


def _quoted(name: str) -> str:
    return shlex.quote(name)


def _nearest(name: str, names: Sequence[str], task: str = "") -> list[str]:
    """Those of `names` that `name` may have meant, best first; what the task names goes first."""
    lower = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), list(lower), n=4, cutoff=0.6)
    near = [lower[each] for each in found]
    base = name.rpartition("/")[2].lower()
    near += [each for each in names if each.rpartition("/")[2].lower() == base]
    unique = [each for each in dict.fromkeys(near) if each != name]
    return sorted(unique, key=lambda each: not (task and _names(task, each)))


def _names(text: str, word: str) -> bool:
    """Whether `word` stands in `text` by itself, case aside."""
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-]|\.\w)", text, re.I) is not None


def _columns(scene: Scene, inputs: Sequence[Any]) -> list[str]:
    files = [scene.survey.get(name) for name in inputs if isinstance(name, str)]
    return list(dict.fromkeys(column for file in files if file for column in file.columns))


def _free_id(workflow: Mapping[str, Any], stem: str) -> str:
    taken = {step["id"] for step in workflow.get("sub_steps") or []}
    names = (stem if n == 1 else f"{stem}_{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
