"""Run a suite of small tasks whose right results the loop never sees, and say how it did.

A suite is a JSONL file: `id`, `task`, `files` (the folder), `accept` (what the person states) and
`expect` (hidden; compared after folding white space), or `everyday`, our own: each kind of task
makes an instance of a seed, and where nothing can be done nothing may be delivered.

Arms are never mixed in one row. `full` is the loop, `draft` its first draft left as it is; two more
take away its gates (`without_gates`: only the whole run decides; `always_accept`: nothing does) and
two its soft checks (`soft_off`) or the doubt about them (`soft_hard`). Three let the same small
model write shell commands freely through the hand: `single_shot`, `blind_retry` (until one ends
with status 0) and `best_of_12` (until the checker is content; it asks what the loop asks). `human`
is what a person who knows the shell would write.

`mending` are the same chores, but each begins with a person's workflow that has a mistake in it.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loop import start
from loop.acceptance import settle
from loop.apply import dump
from loop.bench_tables import MEASURE, Mark, Outcome, Score, row
from loop.freehand import Tries, cpu_s
from loop.kit import Kit
from loop.order import Order, kind_of, read_text
from loop.suites.making import Wanted
from loop.values import RuleData
from loop.variant import USUAL, Variant
from openry.clock import monotonic
from openry.errors import BadFileError, OpenRYError, UsageError
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load

if TYPE_CHECKING:
    from loop.outcome import Finished
    from loop.session import Session

#: Rounds and variant of the arms that are the loop.
_LOOPS: Mapping[str, tuple[int, Variant]] = {
    "full": (8, USUAL),
    "draft": (0, USUAL),
    "without_gates": (8, Variant(gates="none")),
    "always_accept": (8, Variant(gates="accept")),
    "soft_off": (8, Variant(soft="off")),
    "soft_hard": (8, Variant(soft="hard")),
}
#: Most tries of the arms in which a model writes commands.
_SHELLS = {"single_shot": 1, "blind_retry": 12, "best_of_12": 12}
ARMS = (*_LOOPS, *_SHELLS, "human")
#: Our own suites: from a sentence, and from a workflow with a mistake.
OWN, MENDING = "everyday", "mending"


@dataclass(frozen=True, slots=True)
class Case:
    """One task of a suite.

    Attributes:
        by_hand: What a person would type; empty when nobody wrote it.
        start: A command to begin with instead of a draft, and to be mended; empty for none.
    """

    id: str
    task: str
    files: Mapping[str, str]
    accept: tuple[RuleData, ...]
    expect: Mapping[str, Wanted]
    by_hand: str = ""
    start: str = ""


def read_suite(path: Path) -> tuple[Case, ...]:
    """The cases of a suite.

    Raises:
        BadFileError: The file cannot be read, or a line is no case; every problem at once.
    """
    lines = read_text(path).splitlines()
    cases, problems = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            cases.append(
                Case(
                    str(data["id"]),
                    data["task"],
                    data.get("files", {}),
                    tuple(data.get("accept", ())),
                    data["expect"],
                    str(data.get("by_hand", "")),
                )
            )
        except (ValueError, TypeError) as error:
            problems.append(f"{path}:{number}: not JSON: {error}")
        except KeyError as error:
            problems.append(f"{path}:{number}: missing `{error.args[0]}`")
    if problems:
        raise BadFileError("", tuple(problems))
    if not cases:
        raise BadFileError(f"{path}: holds no task")
    return tuple(cases)


def own_suite(seeds: int = 1) -> tuple[Case, ...]:
    """The instances of every kind of our own suite, one a seed, from 1 to `seeds`."""
    from loop.suites import KINDS
    from loop.suites.by_hand import command

    made = ((kind, seed, kind.instance(seed)) for seed in range(1, seeds + 1) for kind in KINDS)
    return tuple(
        Case(
            f"{kind.name}/{seed}",
            task.said,
            task.files,
            (),
            task.want,
            command(kind.name, task.said),
        )
        for kind, seed, task in made
    )


def mending_suite(seeds: int = 1) -> tuple[Case, ...]:
    """What can be done of our own suite, each with a mistake in what a person wrote.

    The id names the mistake last: `sort_down/1/misspelt_file`.
    """
    from loop.suites.faults import plant

    found = []
    for number, case in enumerate(own_suite(seeds)):
        fault, planted = plant(case.by_hand, case.files, number) if case.by_hand else ("", "")
        if fault:
            found.append(replace(case, id=f"{case.id}/{fault}", start=planted))
    return tuple(found)


def _cases(suite: str, seeds: int) -> tuple[Case, ...]:
    own = {OWN: own_suite, MENDING: mending_suite}
    if suite in own and not kind_of(suite):
        return own[suite](seeds)
    return read_suite(Path(suite))


def run(
    kit: Kit,
    suite: str,
    arms: Sequence[str],
    *,
    limit: int | None = None,
    seeds: int = 1,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Run every case in every arm, one after another, in this process.

    Ctrl-C ends it with the cases that are done.

    Raises:
        UsageError: An arm is unknown, or the suite cannot be read.
    """
    arms_for(arms, ())  # said before a suite is read
    cases = _cases(suite, seeds)[:limit]
    arms = arms_for(arms, cases)
    scores: list[Score] = []
    with until_interrupted(lambda: bool(scores)):
        for case in cases:
            done = scores_of(kit, case, arms)
            scores += done
            if tell is not None:
                for one in done:
                    tell(row(one))
    order = {arm: place for place, arm in enumerate(arms)}
    return Outcome(suite, tuple(sorted(scores, key=lambda one: order[one.arm])))


@contextmanager
def until_interrupted(begun: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C ends what is inside; it goes on only where nothing is there to be shown."""
    try:
        yield
    except KeyboardInterrupt:
        if not begun():
            raise


def arms_for(wanted: Sequence[str], cases: Sequence[Case]) -> tuple[str, ...]:
    """The arms that are meant; `all` has no person where nobody wrote anything.

    Raises:
        UsageError: One is unknown.
    """
    unknown = [arm for arm in wanted if arm not in (*ARMS, "all")]
    if unknown:
        raise UsageError(f"unknown arm `{unknown[0]}`: choose among all, {', '.join(ARMS)}")
    if "all" not in wanted:
        return tuple(dict.fromkeys(wanted))
    return ARMS if any(case.by_hand for case in cases) else tuple(a for a in ARMS if a != "human")


def scores_of(kit: Kit, case: Case, arms: Sequence[str]) -> list[Score]:
    """How each arm does on one case."""
    with _folder(case) as place:
        tries = _tries(kit, case, Path(place)) if set(arms) & set(_SHELLS) else None
        return [
            _shell(case, arm, tries) if tries and arm in _SHELLS else score(kit, case, arm)
            for arm in arms
        ]


def score(kit: Kit, case: Case, arm: str) -> Score:
    """Run one case through the loop, or by hand, in a fresh folder; look what is there then."""
    with _folder(case) as place:
        folder = Path(place)
        began, cpu = monotonic(), cpu_s()
        session, finished, error = None, None, ""
        try:
            session = _session(kit, case, arm, folder)
            finished = session.run() if session else None
        except OpenRYError as problem:
            error = str(problem)
        used = round(monotonic() - began, 2), round(cpu_s() - cpu, 2)
        wrong = _wrong(case, folder)
        scored = Score(
            case.id,
            arm,
            right=not wrong,
            outcome="unusable" if error else "needs_human",
            seconds=used[0],
            cpu_s=used[1],
            wrong=error or wrong,
            task=case.task,
        )
        if session is not None and finished is not None:
            scored = _told(scored, session, finished)
            try:
                scored = replace(scored, marks=_marks(kit, case, session))
                if scored.right and finished.workflow and arm == MEASURE:
                    scored = replace(scored, again_cpu_s=_again(kit, session))
            except OpenRYError as problem:  # its own task's, not the end of all others'
                scored = replace(scored, right=False, outcome="unusable", wrong=str(problem))
        last = Mark(scored.right, scored.tokens, used[0])
        return replace(scored, marks=(*scored.marks[:-1], last))


def first_difference(expect: Mapping[str, Wanted], folder: Path) -> str:
    """The first file that is not as expected, both shown; empty when all are."""
    for name, wanted in expect.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        there = path.read_text("utf-8", "replace")
        if not _is_wanted(there, wanted):
            return f"{name}: got {_folded(there)[:80]!r}, wanted {_folded(str(wanted))[:80]!r}"
    return ""


def _wrong(case: Case, folder: Path) -> str:
    """How a folder differs from what is right; empty when it does not."""
    if case.expect:
        return first_difference(case.expect, folder)
    new = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    new = [name for name in new if name not in case.files]
    return f"{new[0]} was made, and nothing should be" if new else ""


def _is_wanted(there: str, wanted: Wanted) -> bool:
    """Text but for white space, a JSON value, or figures by group whatever their heading."""
    if isinstance(wanted, str):
        return _folded(there) == _folded(wanted)
    if isinstance(wanted, Mapping):
        rows = [row for row in csv.reader(io.StringIO(there)) if len(row) == 2]
        figures = {name: figure for name, figure in rows if figure.strip("-").isdigit()}
        return figures == {name: str(figure) for name, figure in wanted.items()}
    try:
        return bool(json.loads(there) == wanted)
    except ValueError:
        return False


def _folded(text: str) -> str:
    return " ".join(text.split())


def _folder(case: Case) -> tempfile.TemporaryDirectory[str]:
    """A throw-away folder with the case's files."""
    made = tempfile.TemporaryDirectory(prefix="openry-bench-")
    for name, content in case.files.items():
        path = Path(made.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    return made


def _session(kit: Kit, case: Case, arm: str, folder: Path) -> Session | None:
    """The loop's session, or a person's command as one of one step; None where they decline."""
    rounds, variant = (0, USUAL) if arm == "human" else _LOOPS[arm]
    command = case.by_hand if arm == "human" else case.start
    if arm == "human" and not command:
        return None
    order = Order(
        case.task,
        str(folder),
        planner=kit.config.planner_model,
        model=kit.config.model,
        rounds=rounds,
        accept=case.accept,
        source=_workflow(command) if command else "",
        source_file="by-hand.yaml" if command else "",
    )
    return start.new(kit, order, emit=lambda event, data: None, variant=variant)


def _workflow(command: str) -> str:
    """A workflow of one step."""
    step = {"id": "by_hand", "kind": "shell", "command": command}
    return dump({"name": "by-hand", "sub_steps": [step]})


def _told(scored: Score, session: Session, finished: Finished) -> Score:
    """With what a session said of itself."""
    return replace(
        scored,
        outcome=finished.outcome,
        strength=finished.acceptance_strength,
        rounds=finished.rounds,
        edits=finished.edits,
        calls=session.calls,
        tokens=finished.tokens,
    )


def _marks(kit: Kit, case: Case, session: Session) -> tuple[Mark, ...]:
    """How the workflow stood after each round."""
    marks = []
    tokens, seconds = 0, 0.0
    history = session.journal.history()
    for each in history.rounds if history else ():
        tokens, seconds = tokens + each.tokens, seconds + each.seconds
        right = False
        if each.trial.acceptable and case.expect:
            with kit.open_copy(each.trial.after, session.folder) as copy:
                right = not _wrong(case, copy)
        marks.append(Mark(right, tokens, round(seconds, 3)))
    return tuple(marks)


def _again(kit: Kit, session: Session) -> float:
    """Processor seconds of one more run of what a session left, without the loop."""
    history = session.journal.history()
    assert history is not None and history.current is not None, "it left a workflow"
    began = cpu_s()
    with (
        kit.open_copy(history.session["snapshot_id"], session.folder) as folder,
        Engine(kit.config, ledger=kit.ledger, registry=kit.registry) as engine,
    ):
        engine.run(engine.submit(load(history.current.text), workspace=folder, drafted=True))
    return round(cpu_s() - began, 3)


def _tries(kit: Kit, case: Case, folder: Path) -> Tries:
    """A model's free tries, and a checker that asks what the loop would ask."""
    rules = case.accept
    if not rules:
        survey = kit.survey(folder)
        rules = settle(kit.reader.read(case.task, survey), ()).hard
    return Tries(kit, case.task, rules, folder, lambda copy: _wrong(case, copy))


def _shell(case: Case, arm: str, tries: Tries) -> Score:
    marks: list[Mark] = []
    done, wrong = False, ""
    tokens, seconds, cpu = 0, 0.0, 0.0
    try:
        for each in tries.up_to(_SHELLS[arm]):
            tokens, seconds, cpu = tokens + each.tokens, seconds + each.seconds, cpu + each.cpu_s
            marks.append(Mark(not each.wrong, tokens, round(seconds, 3)))
            done, wrong = each.accepted if arm == "best_of_12" else each.ran, each.wrong
            if done:
                break
    except OpenRYError as error:
        return Score(case.id, arm, right=False, outcome="unusable", wrong=str(error))
    last = marks[-1]
    return Score(
        case.id,
        arm,
        right=last.right,
        outcome="converged" if done else "not_converged",
        rounds=len(marks) - 1,
        calls=len(marks),
        tokens=tokens,
        seconds=round(seconds, 2),
        cpu_s=round(cpu, 2),
        wrong=wrong,
        task=case.task,
        marks=tuple(marks),
    )
