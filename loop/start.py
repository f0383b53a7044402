"""Everything a command line (or a program) asks of the loop, in plain calls."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loop import events, leftovers, report, shelf, templates
from loop.apply import read_workflow
from loop.diagnose import said
from loop.journal import Attempt, History, Journal, Round
from loop.kit import Kit, refuse_if_closed, refuse_if_unfit
from loop.models import trouble
from loop.order import Order, checked, kind_of, read_accept, read_text
from loop.review import Decision, hunks, read_decisions
from loop.reviewing import Reviewed, carry_out
from loop.session import Ask, Session
from loop.shelf import place_for
from loop.templates import Template
from loop.variant import USUAL, Variant
from loop.work import Emit
from openry.config import Config, load_config
from openry.errors import BadFileError, NotFoundError, UsageError
from openry.ledger import loops
from openry.ledger.process import ProcessId, is_alive, this_process


@contextmanager
def kit(*, scratch: bool = False, config: Config | None = None) -> Iterator[Kit]:
    """The kit of this process. With `scratch` its home, but for the cache, is thrown away."""
    settings = config or load_config()
    if not scratch:
        with Kit(settings) as made:
            yield made
        return
    with tempfile.TemporaryDirectory(prefix="openry-", ignore_cleanup_errors=True) as home:
        aside = replace(settings, home_dir=home, ledger=str(Path(home, "openry.db")))
        with Kit(aside, cache=settings.home / "cache") as made:
            yield made


def order(
    task: str,
    folder: Path,
    *,
    model: str = "",
    planner: str = "",
    accept: Sequence[str] = (),
    source: Path | None = None,
    config: Config | None = None,
    **limits: Any,
) -> Order:
    """The order that these words and flags are.

    Raises:
        UsageError: It cannot be carried out.
        BadFileError: A rule or the workflow to start from is wrong; every problem at once.
    """
    settings = config or load_config()
    first, *larger = [each.strip() for each in (planner or settings.planner_model).split(",")]
    made = Order(
        task=task,
        directory=str(folder.absolute()),
        planner=first,
        ladder=tuple(larger),
        model=model or settings.model,
        accept=read_accept(accept),
        source=_read(source) if source else "",
        source_file=str(source or ""),
        **limits,
    )
    return checked(made)


def new(
    kit: Kit,
    order: Order,
    *,
    emit: Emit,
    ask: Ask | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    variant: Variant = USUAL,
) -> Session:
    """A new session for `order`; `run()` it.

    Raises:
        OpenRYError: Something that can be seen before anything runs is in the way.
    """
    refuse_if_closed(kit.config.home)
    refuse_if_unfit(Path(order.directory), kit.config.home)
    leftovers.clear(kit.config.home / "loops", kit.ledger)
    if order.name:
        place_for(kit.config.home / "workflows", order.name, chosen=True)
    kit.models(order, "").check()
    return Session(
        kit, order, new_id(), emit=emit, ask=ask, should_stop=should_stop, variant=variant
    )


def resume(
    kit: Kit,
    session_id: str,
    *,
    emit: Emit,
    should_stop: Callable[[], bool] = lambda: False,
) -> Session:
    """The session of that id (or of the only id that begins so), to go on with.

    Raises:
        NotFoundError: There is none.
        UsageError: Another process is at work on it, or its workflow was edited by hand.
    """
    found = history(kit, session_id)
    row = found.session
    whole_id = row["session_id"]
    _refuse_if_busy(row)
    best = shelf.best_of(kit.config.home / "loops" / whole_id)
    if row["state"] != "ended" and not shelf.is_as_written(best, found):
        raise UsageError(
            f"`{best}` was edited by hand, but a session goes on with its own: start from yours"
            f" with `openry-loop new --from {best}`, or move it away to go on"
        )
    refuse_if_closed(kit.config.home)
    earlier = Order.from_data(row["settings"])
    return Session(kit, earlier, whole_id, emit=emit, should_stop=should_stop)


def _refuse_if_busy(row: Mapping[str, Any]) -> None:
    owner = ProcessId(row["pid"] or 0, row["pid_started_at"], row["host"])
    if row["state"] == "running" and owner != this_process() and is_alive(owner):
        raise UsageError(
            f"session `{row['session_id']}` is being worked on by process {owner.pid}: wait for it"
        )


def new_id() -> str:
    """A session's id: the day, and eight random hex digits."""
    return f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(4)}"


def sessions(kit: Kit) -> list[dict[str, Any]]:
    """The latest sessions, newest first, in short."""
    return [
        {
            "session": row["session_id"],
            "state": row["state"],
            "outcome": row["outcome"],
            "stop": row["stop"],
            "rounds": row["rounds"],
            "name": row["name"],
            "task": row["task"],
            "workflow": row["workflow_path"],
            "created_at": row["created_at"],
        }
        for row in loops.sessions(kit.ledger)
    ]


def history(kit: Kit, session_id: str) -> History:
    """All that the journal has of a session; the beginning of its id is enough.

    Raises:
        NotFoundError: No session, or more than one, has such an id.
    """
    found = Journal(kit.ledger, session_id).history()
    if found is not None:
        return found
    near = [row["session_id"] for row in loops.sessions(kit.ledger, 1000)]
    matching = [each for each in near if session_id and each.startswith(session_id)]
    if len(matching) == 1:
        whole = Journal(kit.ledger, matching[0]).history()
        assert whole is not None
        return whole
    why = "several sessions begin so" if matching else "`openry-loop list` shows all"
    place = kit.config.home / "loops" / session_id
    if session_id and "/" not in session_id and kind_of(place) == "folder":
        why = "it was killed before its plan was made; give the task again"
    raise NotFoundError(f"no session is called `{session_id}` ({why})")


def as_data(found: History) -> dict[str, Any]:
    """A session for scripts."""
    return {
        "session": dict(found.session),
        "rounds": [
            {
                **events.round_event(each),
                "workflow": each.text,
                "diagnosis": each.diagnosis.to_data() if each.diagnosis else None,
                "edits": [events.attempt_event(a) for a in found.of_round(each.number)],
            }
            for each in found.rounds
        ],
        "schema_version": 1,
    }


def as_text(found: History) -> str:
    """A session for a person: plan, rounds, workflow."""
    row = found.session
    lines = [
        f"session  {row['session_id']}  {row['outcome'] or row['state']} {row['stop']}".rstrip(),
        f"task     {row['task']}",
        f"folder   {row['directory']}",
        f"accept   {row['acceptance_origin']} {row['acceptance_strength']}".rstrip(),
        "",
        "plan",
        *(f"  {number}. {goal}" for number, goal in enumerate(row["goals"], start=1)),
    ]
    for each in found.rounds:
        lines += ["", *_round_lines(each, found.of_round(each.number))]
    if found.current:
        lines += ["", "workflow", *(f"  {line}" for line in found.current.text.splitlines())]
    return "\n".join(lines)


def diff(found: History, first: int, second: int) -> str:
    """The change of the workflow from one round to another.

    Raises:
        NotFoundError: There is no such round.
    """
    texts = {each.number: each.text for each in found.rounds}
    for number in (first, second):
        if number not in texts:
            raise NotFoundError(
                f"session `{found.session['session_id']}` has no round {number}"
                f" (it has 0 to {max(texts, default=0)})"
            )
    return events.diff(texts[first], texts[second])


def write_report(found: History, path: Path) -> None:
    """Write the session as one HTML page.

    Raises:
        UsageError: The file cannot be written.
    """
    write_page(report.html(found), path)


def write_review(found: History, path: Path) -> None:
    """Write the session's edits as one HTML page on which they can be decided.

    Raises:
        UsageError: The file cannot be written.
    """
    write_page(report.review_html(found, hunks(found)), path)


def read_decisions_file(found: History, path: Path) -> tuple[Decision, ...]:
    """The decisions that a page or a script wrote.

    Raises:
        BadFileError: It cannot be read, or holds no decisions on this session; every problem at
            once.
    """
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise BadFileError(f"{path}: is no JSON: {error}") from error
    session = found.session["session_id"]
    if isinstance(data, dict) and data.get("session", session) != session:
        raise BadFileError(f"{path}: is about session `{data['session']}`, not `{session}`")
    return read_decisions(data, found)


def review(kit: Kit, found: History, decisions: Sequence[Decision], reviewer: str) -> Reviewed:
    """Carry decisions out, if nobody else is at work on the session.

    Raises:
        OpenRYError: They cannot be carried out; nothing was written.
    """
    _refuse_if_busy(found.session)
    return carry_out(kit, found, decisions, reviewer)


def add_template(kit: Kit, source: str, *, task: str = "", name: str = "") -> Path:
    """Make a template of a session that converged, or of a workflow file and its task.

    Raises:
        UsageError: The session did not converge, a file has no task, or the name is taken.
    """
    folder = kit.config.home / "templates"
    path = Path(source)
    if kind_of(path) == "file":
        if not task:
            raise UsageError("say with `--task` which sentence the workflow answers")
        text = _read(path)
        read_workflow(text, str(path))
        return templates.add(folder, Template(templates.name_for(task, name), task, text))
    found = history(kit, source)
    row = found.session
    if row["outcome"] != "converged" or found.current is None:
        raise UsageError(f"session `{row['session_id']}` did not converge: nothing is solved yet")
    words = task or row["task"]
    made = Template(templates.name_for(words, name), words, found.current.text, row["session_id"])
    return templates.add(folder, made)


def refuse_if_no_page(path: Path) -> None:
    """Raises UsageError when no page can be written there; asked before what takes its time.

    Nothing is opened or made: a pipe would be waited for, a link's target would be there.
    """
    try:
        try:
            folder, place, rights = stat.S_ISDIR(path.stat().st_mode), path, os.W_OK
        except FileNotFoundError:
            place = Path(os.path.realpath(path)).parent
            folder, rights = False, os.W_OK | os.X_OK
            place.stat()
        if folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(place, rights):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritten(path, error) from error


def write_page(text: str, path: Path) -> None:
    """Write one HTML page.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> UsageError:
    return UsageError(f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}")


def _read(source: Path) -> str:
    text = read_text(source)
    if not text.strip():
        raise BadFileError(f"{source}:1: the file is empty")
    return text


def _round_lines(round_: Round, attempts: Sequence[Attempt]) -> list[str]:
    title = "draft" if round_.number == 0 else round_.verdict
    lines = [f"round {round_.number}: {title} ({round_.seconds:.1f} s)"]
    if round_.diagnosis:
        lines.append(f"  {round_.diagnosis.failure_class}: {round_.diagnosis.cause}")
    for attempt in attempts:
        lines.append(f"  {attempt.verdict}: {attempt.proposal.summary} [{attempt.proposal.origin}]")
        lines += [
            f"    {gate.name} {'passed' if gate.passed else 'refused'}: {gate.note}"
            for gate in attempt.gates
        ]
        if attempt.accepted:
            lines += [f"    {line}" for line in attempt.diff.splitlines()[2:]]
    lines += [f"  step {step.id}: {step.state or 'not reached'}" for step in round_.trial.steps]
    lines += [f"  broken: {said(rule)}" for rule in round_.trial.hard if not rule.passed]
    return lines


def models(kit: Kit) -> list[dict[str, Any]]:
    """Planner and executor: name, origin, and whether each can be asked."""
    rows = []
    for role, field in (("planner", "planner_model"), ("executor", "model")):
        name = getattr(kit.config, field)
        note = trouble(name, kit)
        origin = kit.config.origins.get(field, "default")
        row = {"role": role, "model": name, "origin": origin, "usable": not note, "note": note}
        rows.append(row)
    return rows
