"""A workflow's own tests: recorded outputs in place of commands, a script in place of the agent.

They stand beside the workflow in `NAME.test.yaml`, or in `tests/NAME.yaml`. Routes, payloads,
templates, rules and retries are the real ones; nothing starts but what prints what was recorded.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from openry.config import Config
from openry.errors import BadFileError
from openry.files import must_be_file
from openry.llm import Model, ScriptedModel
from openry.orchestrator import yaml12
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import Loaded, read_model
from openry.orchestrator.outcomes import InstanceOutcome
from openry.orchestrator.rules import Rule
from openry.orchestrator.shape import Int, Name, Text, Value
from openry.orchestrator.shape import Model as Shape
from openry.orchestrator.spec import AgentSpec, Kind, SubStep, WorkflowSpec
from openry.orchestrator.validation import check_rules

_SCRIPTED = "scripted/"
_PASSES = 100  # of patrols, between which a person answers


class Recorded(Shape):
    """What one run of a step came to.

    Attributes:
        stdout: What its command printed; `payload` instead is printed as JSON.
        files: Files it left in the workspace.
        say: For an agent: its actions, one a turn, as JSON or a mapping.
        approve: For an approval: what the person said.
    """

    stdout: Text = ""
    payload: dict[str, Value] | None = None
    exit_code: Annotated[Int, Field(ge=0, le=255)] = 0
    files: dict[str, Text] = Field(default_factory=dict)
    say: tuple[Value, ...] = ()
    approve: bool = True


class Expected(Shape):
    """What must come of it; what is not named may be as it likes."""

    state: Literal["completed", "failed", "cancelled", "suspended"] = "completed"
    steps: tuple[Name, ...] | None = None
    payload: dict[str, Value] = Field(default_factory=dict)
    reason: Text = ""
    rules: tuple[Rule, ...] = ()


Attempts = Annotated[
    tuple[Recorded, ...],
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else [value]),
    Field(min_length=1),
]


class Case(Shape):
    name: Name
    note: Text = ""
    inputs: dict[str, Value] = Field(default_factory=dict)
    files: dict[str, Text] = Field(default_factory=dict)
    steps: dict[str, Attempts] = Field(default_factory=dict)
    expect: Expected = Expected()


class Tests(Shape):
    tests: Annotated[tuple[Case, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Result:
    """What one test came to; `problems` is empty when it passed."""

    name: str
    problems: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems


def test_file_of(path: Path) -> Path:
    """Where the tests of a workflow file stand: beside it, or in a folder `tests`."""
    beside, inside = path.with_name(f"{path.stem}.test.yaml"), path.parent / "tests" / path.name
    return inside if inside.is_file() and not beside.is_file() else beside


def read_tests(path: Path) -> tuple[Case, ...]:
    """The tests of a file.

    Raises:
        BadFileError: With every problem of it.
    """
    try:
        must_be_file(path)
        text, problems = yaml12.decode(path.read_bytes(), str(path))
    except OSError:
        inside = "" if path.parent.name == "tests" else " or in `tests/` beside the workflow"
        raise BadFileError(f"{path}: there are no tests; they stand here{inside}") from None
    document = yaml12.compose(text, str(path))
    found: list[Any] = [*problems, *document.problems]
    value = None
    if not found:
        value, found = read_model(Tests.model_validate, document.data, document)
    if found or value is None:
        raise BadFileError("", tuple(map(str, found)))
    return tuple(value.tests)


def run_tests(loaded: Loaded, cases: Iterable[Case], config: Config) -> Iterator[Result]:
    """Run each test in a place of its own."""
    spec = loaded.required().workflow
    if spec is None:
        raise BadFileError(f"{loaded.file}: only a workflow has tests of its own")
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="openry-test-") as place:
            yield _run(spec, case, replace(config, home_dir=place, ledger=f"{place}/openry.db"))


def _run(spec: WorkflowSpec, case: Case, config: Config) -> Result:
    unknown = [name for name in case.steps if not spec.has(name)]
    if unknown:
        return Result(case.name, (f"the workflow has no step `{unknown[0]}`",), ())
    workspace = Path(config.home_dir, "workspace")
    workspace.mkdir()
    for name, text in case.files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text, "utf-8")
    counters = Path(config.home_dir, "counters")
    counters.mkdir()
    steps = tuple(_recorded(step, case.steps.get(step.id), counters) for step in spec.sub_steps)
    played = spec.model_copy(update={"sub_steps": steps, "sandbox": None, "command_policy": None})
    scripts = {_SCRIPTED + name: _script(all_) for name, all_ in case.steps.items()}
    with Engine(
        replace(config, sandbox="none"), open_model=lambda name: _model(scripts, name)
    ) as engine:
        about: dict[str, Any] = {"inputs": dict(case.inputs), "workspace": workspace}
        instance_id = engine.submit(played, **about)
        outcome = _to_its_end(engine, instance_id, case)
        return Result(case.name, tuple(_problems(case, outcome, workspace)), _ran(outcome))


def _to_its_end(engine: Engine, instance_id: str, case: Case) -> InstanceOutcome:
    """Run it, and answer as was recorded; where nothing was, it stays suspended."""
    for _ in range(_PASSES):
        outcome = engine.run(instance_id)
        asked = engine.approvals(instance_id)
        if outcome.state != "suspended" or not asked or asked[0].step_id not in case.steps:
            break
        recorded = case.steps[asked[0].step_id][0]
        engine.answer(instance_id, approve=recorded.approve, by="test")
    return outcome


def _recorded(step: SubStep, attempts: tuple[Recorded, ...] | None, counters: Path) -> SubStep:
    """The step with its work played back; one without a recording fails with that reason."""
    quick: dict[str, Any] = {
        "retry_backoff_seconds": step.retry_backoff_seconds.model_copy(update={"base": 0.0})
    }
    if step.kind is Kind.APPROVAL:
        return step
    if step.kind is Kind.AGENT and attempts is not None:
        return step.model_copy(update={**quick, "agent": AgentSpec(model=_SCRIPTED + step.id)})
    played = "echo 'nothing is recorded for it' >&2; exit 1"
    if attempts is not None:
        played = _played(attempts, counters / step.id)
    gone: dict[str, Any] = {
        "capability": None,
        "args": {},
        "secrets": (),
        "sandbox": None,
        "command_policy": None,
    }
    return step.model_copy(update={**quick, **gone, "kind": Kind.SHELL, "command": played})


def _played(attempts: tuple[Recorded, ...], counter: Path) -> str:
    """A command that does what was recorded for its first run, its second …; the last goes on."""
    kept = shlex.quote(str(counter))
    lines = [f"n=$(($(cat {kept} 2>/dev/null || echo 0) + 1)); echo $n > {kept}", "case $n in"]
    for number, recorded in enumerate(attempts, 1):
        pattern = "*" if number == len(attempts) else str(number)
        lines.append(f"{pattern}) {'; '.join(_deeds(recorded))};;")
    return _literal("\n".join([*lines, "esac"]))


def _deeds(recorded: Recorded) -> Iterator[str]:
    for name, text in recorded.files.items():
        yield f"mkdir -p -- {shlex.quote(str(Path(name).parent))}"
        yield f"printf %s {shlex.quote(text)} > {shlex.quote(name)}"
    text = recorded.stdout
    if recorded.payload is not None:
        text = json.dumps(recorded.payload, ensure_ascii=False)
    yield f"printf %s {shlex.quote(text)}"
    yield f"exit {recorded.exit_code}"


def _literal(command: str) -> str:
    """The command as it is: braces and `${…}` in recordings are no templates."""
    return "{% raw %}" + command.replace("endraw", "endr''aw") + "{% endraw %}"


def _script(attempts: tuple[Recorded, ...]) -> list[str]:
    turns = (turn for recorded in attempts for turn in recorded.say)
    return [
        turn if isinstance(turn, str) else json.dumps(turn, ensure_ascii=False) for turn in turns
    ]


def _model(scripts: Mapping[str, list[str]], name: str) -> Model:
    return ScriptedModel(scripts.get(name, []))


def _ran(outcome: InstanceOutcome) -> tuple[str, ...]:
    return tuple(step.id for step in outcome.steps if step.state != "pending")


def _problems(case: Case, outcome: InstanceOutcome, workspace: Path) -> Iterator[str]:
    expect = case.expect
    if outcome.state != expect.state:
        because = f": {outcome.reason}" if outcome.reason else ""
        yield f"expected state `{expect.state}`, got `{outcome.state}`{because}"
    if expect.reason and expect.reason not in outcome.reason:
        yield f"expected a reason with `{expect.reason}`, got `{outcome.reason}`"
    if expect.steps is not None and _ran(outcome) != expect.steps:
        yield f"expected steps {', '.join(expect.steps)}, got {', '.join(_ran(outcome))}"
    payload = outcome.payload
    for key, value in expect.payload.items():
        if key not in payload or payload[key] != value:
            got = payload.get(key, "nothing")
            yield f"expected payload `{key}` = {value!r}, got {got!r}"
    for result in check_rules(expect.rules, workspace=workspace, payload=payload):
        if not result.passed:
            yield f"`{result.rule}`: {result.message}"
