"""A run whose output was too large: its handler is started, and the run goes on with what it says.

The handler is an instance of its own, in a folder of its own with a copy of the output. It is put
down in the transaction that marks the run, so a crash leaves both or neither; whatever goes wrong
with it, the run goes on with the digest.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from openry.errors import OpenRYError
from openry.forwarder.files import open_kept
from openry.ledger.commands import CommandRecord, of_run
from openry.ledger.instances import Glance, Instance, add_instance, get_instance, glance_at
from openry.ledger.journal import Transaction, later, ledger_now
from openry.ledger.outputs import find_output, outputs_of
from openry.ledger.runs import PROCESS, Run, get_run, move_run
from openry.models.output import StoredOutput
from openry.orchestrator.intake import Row, plan_of, row_of
from openry.orchestrator.loader import load
from openry.orchestrator.lookup import find_file, names
from openry.orchestrator.outcomes import FINAL
from openry.orchestrator.room import Room
from openry.orchestrator.scope import scope_of
from openry.orchestrator.spec import SubStep
from openry.orchestrator.templates import render_text
from openry.output.digest import digest_of, reads_of
from openry.output.kinds import task_words
from openry.output.tokens import MARGIN, weigh
from openry.texts import one_line, shortened

#: Names with a meaning: the shipped handler unless somebody has one of that name.
DEFAULT, SHIPPED = "default_overflow", "overflow_digest"
FAIL, TRUNCATE = "fail", "truncate"
#: Resumes of one attempt after which it is no use to go on.
MAX_RESUMES = 10
#: Part of the step's limit that the handler's text may take in the next prompt.
_SHARE = 0.5
_HANDLER_MINUTES = 10.0
#: How much later than its own clock a handler is given up.
HANDLER_SLACK_S = 30.0
_KEYS = ("summary", "digest", "_stdout")
_OUTPUT, _WRAPPER = "output.txt", "openry"
_LAST_WHOLE = 3
_LINE_CHARS, _CALL_CHARS = 160, 800


@dataclass(frozen=True, slots=True)
class Handling:
    """What is known of an overflow, as the run's row keeps it.

    Attributes:
        output: Name of the output; empty when none was kept.
        instance: The handler's; empty when there is none.
        until: When it is given up.
        trouble: Why the handler did not do it.
        text: What the next prompt says of the output.
        nonce: Marks where that begins and ends; nobody could know it before.
    """

    handler: str = ""
    output: str = ""
    instance: str = ""
    until: str = ""
    trouble: str = ""
    text: str = ""
    nonce: str = ""

    def data(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Start:
    """A handler to be put down: its row, and what the run's row says of it."""

    row: Row
    handling: Handling
    minutes: float


@dataclass(frozen=True, slots=True)
class Resume:
    """The run is to go on with this; `payload` is its row's."""

    handling: Handling
    payload: Mapping[str, Any] = field(default_factory=dict)


def handling_of(run: Run) -> Handling | None:
    """The overflow that a run is in, or was resumed after."""
    data = run.data.get("overflow")
    return Handling(**data) if data else None


class Overflow:
    """Decides about runs that overflowed; files are copied and read here, nothing is recorded."""

    def __init__(self, room: Room) -> None:
        self.room = room

    # --- a handler, or none -----------------------------------------------------------------

    def begin(self, run: Run) -> Start | Resume | str:
        """What comes first: the handler, the digest at once, or why the step has failed."""
        step, instance = self._step(run), self._instance(run.workflow_instance_id)
        if step.overflow_handler == FAIL:
            return "overflow: the output was larger than the step allows"
        if run.data.get("resumes", 0) >= MAX_RESUMES:
            return f"overflow: {MAX_RESUMES} times in one attempt"
        output = self._output(run)
        name = output.name if output else ""
        is_handler = bool(instance.parent_instance_id)  # one that overflows is not handled again
        if output is None or step.overflow_handler == TRUNCATE or is_handler:
            return self._digested(run, Handling(TRUNCATE, name))
        handler = self._handler(step)
        try:
            return self._start(run, step, instance, output, handler)
        except (OpenRYError, OSError) as error:
            trouble = " ".join(str(error).split())[:300]
            return self._digested(run, Handling(handler, name, trouble=trouble))

    def _handler(self, step: SubStep) -> str:
        name = step.overflow_handler
        return SHIPPED if name == DEFAULT and name not in names(self.room.config) else name

    def _start(
        self, run: Run, step: SubStep, instance: Instance, output: StoredOutput, handler: str
    ) -> Start:
        """Fill the handler's folder and make its row; the same again after a crash in between."""
        file = find_file(handler, self.room.config)
        loaded = load(file)
        plan, source = plan_of(loaded, self.room.config, {})
        given = {
            "output": _OUTPUT,
            "name": output.name,
            "tokens": self._room_for(step),
            "task": self._task(run),
            "command": output.command,
        }
        specs = plan.composition.inputs if plan.composition else plan.workflow_at(0).inputs
        instance_id = _id_of_handler(run)
        home = self.room.config.home / "instances" / instance_id / "workspace"
        _fill(home, Path(output.path), file)
        row = row_of(
            plan,
            self.room.config,
            file=source,
            inputs={name: value for name, value in given.items() if name in specs},
            workspace=home,
            drafted=instance.drafted,
        )
        row |= {"instance_id": instance_id, "parent_instance_id": instance.instance_id}
        minutes = plan.workflow_at(0).timeout_minutes or _HANDLER_MINUTES
        return Start(row, Handling(handler, output.name, instance_id), minutes)

    # --- when the handler has ended -----------------------------------------------------------

    def is_waiting(self, run: Run) -> bool:
        """Whether the handler of `run` is still at it, and nothing else ends the wait."""
        handling = handling_of(run) or Handling()
        with self.room.ledger.read() as connection:
            at = ledger_now(connection)
            found = glance_at(connection, (handling.instance, run.workflow_instance_id))
        handler, own = found.get(handling.instance), found.get(run.workflow_instance_id)
        ended = handler is None or handler.state in FINAL or at >= handling.until
        return not (ended or run.cancel_requested or _is_late(own, at))

    def end(self, run: Run) -> Resume | None:
        """What the handler said, or the digest when it failed or is late.

        None when the big step's own time is up.
        """
        handling = handling_of(run) or Handling()
        with self.room.ledger.read() as connection:
            at = ledger_now(connection)
            instance = get_instance(connection, handling.instance)
            own = glance_at(connection, (run.workflow_instance_id,))
        if _is_late(own.get(run.workflow_instance_id), at):
            return None
        if instance is not None:  # the whole is kept elsewhere
            Path(instance.workspace, _OUTPUT).unlink(missing_ok=True)
        if instance is None or instance.state not in FINAL:
            return self._digested(run, replace(handling, trouble="it did not end in time"))
        if instance.state != "completed":
            trouble = instance.reason or instance.state
            return self._digested(run, replace(handling, trouble=trouble))
        found = (instance.payload.get(key) for key in _KEYS)
        text = next((each for each in found if isinstance(each, str) and each.strip()), "")
        if not text:
            return self._digested(run, replace(handling, trouble="it said nothing"))
        said = _cut(text, self._room_for(self._step(run)))
        payload = {key: value for key, value in instance.payload.items() if key != "_stdout"}
        return self._resume(run, replace(handling, text=said), payload)

    def _digested(self, run: Run, handling: Handling) -> Resume:
        """The digest, made here: what is always possible."""
        output = self._output(run)
        text = ""
        if output is not None:
            words = task_words(self._task(run))
            try:
                with open_kept(output.path) as file:
                    tokens = self._room_for(self._step(run))
                    text = digest_of(reads_of(file.read), tokens, words=words, name=output.name)
            except OSError as error:
                text = f"(the output cannot be read any more: {error.strerror})\n"
        return self._resume(run, replace(handling, text=text), {"digest": text})

    def _resume(self, run: Run, handling: Handling, payload: Mapping[str, Any]) -> Resume:
        kept = replace(handling, nonce=secrets.token_hex(8))
        said = {"output": kept.output, "handler": kept.handler, **payload}
        if kept.trouble:
            said["trouble"] = kept.trouble
        return Resume(kept, {**run.payload, "overflow": said})

    # --- what is looked up ------------------------------------------------------------------

    def _step(self, run: Run) -> SubStep:
        return self.room.standing(run).step(run.step_id)

    def _task(self, run: Run) -> str:
        """The step's task in the words its agent read."""
        standing = self.room.standing(run)
        try:
            scope = scope_of(self.room, standing, run)
            return render_text(standing.step(run.step_id).description, scope)
        except OpenRYError:
            return standing.step(run.step_id).description

    def _instance(self, instance_id: str) -> Instance:
        with self.room.ledger.read() as connection:
            instance = get_instance(connection, instance_id)
        assert instance is not None, "a run's instance is there by foreign key"
        return instance

    def _output(self, run: Run) -> StoredOutput | None:
        """The output that the agent means: the one it named, else the last one of its run."""
        named = run.payload.get("output")
        if isinstance(named, str):
            found = find_output(self.room.fast, named, instance_id=run.workflow_instance_id)
            if found is not None:
                return found
        found_all = outputs_of(self.room.fast, run_id=run.run_id, limit=2)
        for output in found_all:  # both streams of the last command: the larger one
            if output.command_id == found_all[-1].command_id and output.bytes >= max(
                each.bytes for each in found_all if each.command_id == output.command_id
            ):
                return output
        return None

    def _room_for(self, step: SubStep) -> int:
        limit = step.max_output_tokens or self.room.config.default_max_output_tokens
        return max(100, int(limit * _SHARE))


def write_handler(
    connection: Transaction, at: str, run: Run, start: Start, about: Mapping[str, Any]
) -> bool:
    """Mark the run and put its handler down, in one; False when the run is not as it was seen."""
    until = later(at, start.minutes * 60 + HANDLER_SLACK_S)
    handling = replace(start.handling, until=until)
    values = {**about, "data": {**run.data, "overflow": handling.data()}}
    if move_run(connection, at, run, PROCESS, **values) is None:
        return False
    add_instance(connection, at, start.row)
    return True


def _is_late(instance: Glance | None, at: str) -> bool:
    """Whether the time of the instance's big step is up."""
    deadline_at = instance.deadline_at if instance else None
    return deadline_at is not None and at >= deadline_at


def _id_of_handler(run: Run) -> str:
    """The same after a crash, so that what was begun is gone on with."""
    return hashlib.sha256(f"overflow {run.run_id}".encode()).hexdigest()[:12]


def _fill(folder: Path, output: Path, workflow: Path) -> None:
    """The handler's folder: the output, `openry`, and the scripts that go with its workflow."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f".{_OUTPUT}.draft"
    with open_kept(str(output)) as source, draft.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1024 * 1024)
    draft.replace(folder / _OUTPUT)
    wrapper = folder / _WRAPPER
    call = f"exec {_quoted(sys.executable)} -Ic 'from openry.cli import program; program()'"
    wrapper.write_text(f'#!/bin/sh\n{call} "$@"\n', "utf-8")
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    for script in sorted(workflow.parent.glob(f"{workflow.stem}.*")):
        if script.suffix not in (".yaml", ".yml") and script.is_file():
            shutil.copy(script, folder / script.name)


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _cut(text: str, tokens: int) -> str:
    """`text` within the limit; a handler may say more than it was asked to."""
    while text and weigh(text.encode("utf-8", "replace")) * MARGIN > tokens:
        weight = weigh(text.encode("utf-8", "replace")) * MARGIN
        text = text[: int(len(text) * tokens / weight * 0.98)]
    return text


# --- the prompt of a resumed run ----------------------------------------------------------------


def resume_prompt(room: Room, run: Run, *, may_look: bool) -> str:
    """What a run that goes on after an overflow is told behind its task; empty for others."""
    handling = handling_of(run)
    if handling is None:
        return ""
    from openry.agent.prompt import render

    calls = _calls_before(room, run)
    return render(
        "agent_resume.j2",
        number=len(calls),
        history=_history(calls),
        output=handling.output,
        text=handling.text.rstrip("\n"),
        nonce=handling.nonce,
        may_look=may_look and bool(handling.output),
    )


def _calls_before(room: Room, run: Run) -> list[CommandRecord]:
    """The calls of this attempt so far, through every run of it that was cut off or resumed."""
    calls: list[CommandRecord] = []
    before = run.previous_run_id
    with room.ledger.read() as connection:
        while before:
            last = get_run(connection, before)
            if last is None or last.attempt != run.attempt or last.step_id != run.step_id:
                break
            calls = [*of_run(connection, before), *calls]
            before = last.previous_run_id if "requeue_of" in last.data else None
    return calls


def _history(calls: list[CommandRecord]) -> list[str]:
    """One line for each call, the last three with what they answered."""
    lines = []
    for number, call in enumerate(calls, 1):
        code = call.ending if call.exit_code is None else f"exit {call.exit_code}"
        line = f"{number}. {one_line(call.command, _LINE_CHARS)} → {code}"
        said = call.stdout or call.stderr
        if number <= len(calls) - _LAST_WHOLE:
            first = said.strip().partition("\n")[0]
            lines.append(f"{line}: {one_line(first, _LINE_CHARS // 2)}" if first else line)
        else:
            shown = shortened(said, _CALL_CHARS)
            lines += [f"{line}:", *(f"   {each}" for each in shown.splitlines())]
    return lines
