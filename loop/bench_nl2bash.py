"""Requests for one line of bash, as in InterCode-Bash: what a command did beside what gold does.

A suite is a folder: `PLACE.tasks.jsonl` (`id`, `query`, `gold`) and, for a place that is no empty
machine, `PLACE.files.jsonl` (`path`, `type`, `mode`, `text`, `mtime`). Each task begins in a new
machine (`loop.bench_root`): a root folder in the sandbox, nothing of the host but its programs. A
command is right when it prints what the gold command prints, white space folded, and leaves the
same file system; where gold ends in another folder, it must end there too. Turns follow each other
in one machine, ten at most, and end with the first right one, as in the paper: before each but the
first a model is told what its last command printed, and that the task is not done yet.

A gold command that does not do the same twice, or asks for a program or a system file that is not
there, judges nobody: its task is set aside and counted. `does nothing` is what `true` would be
given: some gold commands print and change nothing. Either the embedded model writes (layer L2) or
what large models wrote is played again (L3, `MODEL.PLACE.jsonl`: `task`, `actions`, `rewards`);
never both at once.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loop.bench import until_interrupted
from loop.bench_figures import bootstrap, share
from loop.bench_page import Part, page
from loop.bench_plot import Series, chart
from loop.bench_root import Machine, Shown, State, clear
from loop.evidence import cut
from loop.freehand import command_in
from loop.kit import Kit
from loop.order import read_text
from openry.errors import BadFileError, UsageError
from openry.llm import ChatRequest, assistant, system, user

TURNS = 10
#: J. Yang and others, InterCode, NeurIPS 2023: all 200 tasks, not these, in their own machines.
PAPER = "InterCode paper, GPT-4 on all 200 tasks: 34.0% first turn, 48.5% best of ten turns"
#: A recorded command, and the reward that was recorded for it.
_Act = tuple[str, float | None]
_NOTHING = "does nothing"
#: So many earlier turns are told, each with so much of what it printed: small models read no more.
_REMEMBERED, _SHOWN_CHARS = 3, 400
_SYSTEM = (
    "You write one line of bash that does what is asked, on a Linux machine whose files are in"
    " /testbed. Answer with the command only, no explanation."
)
#: What says that gold asks for more than this machine has: a program, or a file of another place.
_LACKING = re.compile(
    r"(?:command )?not found$|^xargs: [\w.-]+: No such file|missing operand$"
    r"|['‘ ]/(?!testbed)\S+: No such file",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Task:
    """One request, its gold command, and the files that it begins with."""

    id: str
    query: str
    gold: str
    files: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Gold:
    """What the gold command does. `unfit` says why it can judge nobody; empty when it can."""

    output: str
    state: State
    cwd: str
    unfit: str = ""

    def is_met_by(self, shown: Shown, state: State) -> bool:
        moved = self.cwd not in ("/", shown.cwd)
        return not moved and _folded(shown.output) == self.output and state == self.state


@dataclass(frozen=True, slots=True)
class Turn:
    """One command of a subject. `reward` is what was recorded for it; None for a fresh one."""

    command: str
    right: bool
    tokens: int = 0
    reward: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """How one subject did on one task."""

    task: str
    subject: str
    turns: tuple[Turn, ...]

    def right_by(self, turn: int) -> bool:
        """Whether one of the first `turn` commands was right."""
        return any(each.right for each in self.turns[:turn])

    def rewarded_by(self, turn: int) -> bool:
        """The same by what was recorded."""
        return any((each.reward or 0.0) >= 1.0 for each in self.turns[:turn])


@dataclass(frozen=True, slots=True)
class Outcome:
    """All lines of a run, and the tasks that were set aside with the reason."""

    layer: str
    lines: tuple[Line, ...]
    aside: Mapping[str, str] = field(default_factory=dict)

    def of(self, subject: str) -> list[Line]:
        return [line for line in self.lines if line.subject == subject]

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.subject for line in self.lines))

    def totals(self) -> list[dict[str, Any]]:
        """A row for each subject."""
        return [_total(subject, self.of(subject)) for subject in self.subjects]

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "paper": PAPER,
            "totals": self.totals(),
            "set_aside": dict(self.aside),
            "lines": [asdict(line) for line in self.lines],
            "schema_version": 1,
        }

    def to_text(self) -> str:
        """The table that a person reads."""
        cells = [_HEAD, *map(_cells, self.totals())]
        widths = [max(len(row[n]) for row in cells) for n in range(len(_HEAD))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        title = f"nl2bash, layer {self.layer}"
        return "\n".join([title, *lines, "", self._aside(), PAPER])

    def to_html(self) -> str:
        """The report page."""
        series = [
            Series(
                subject,
                tuple(
                    (turn, share([[line.right_by(turn) for line in self.of(subject)]]))
                    for turn in range(1, TURNS + 1)
                ),
            )
            for subject in self.subjects
        ]
        picture = chart(series, title="success by turn", x="turn", y="right")
        about = f"Layer {self.layer}. {self._aside()} {PAPER}."
        return page(
            "Requests for one line of bash",
            about,
            [
                Part("Figures", "Brackets: 95 %, tasks drawn anew.", "", _HEAD,
                     list(map(_cells, self.totals()))),
                Part("Success by turn", "", picture),
            ],
        )  # fmt: skip

    def _aside(self) -> str:
        reasons: dict[str, int] = {}
        for reason in self.aside.values():
            reasons[reason] = reasons.get(reason, 0) + 1
        listed = "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        judged = len({line.task for line in self.lines})
        aside = f", {len(self.aside)} set aside ({listed})" if self.aside else ""
        return f"{judged} tasks judged{aside}."


def read_folder(folder: Path) -> tuple[Task, ...]:
    """The tasks of a folder.

    Raises:
        UsageError: It holds none.
        BadFileError: A line is no task or no file.
    """
    found: list[Task] = []
    for path in sorted(folder.glob("*.tasks.jsonl")):
        there = path.with_name(path.name.replace(".tasks.", ".files."))
        files = tuple(_read(there, ("path", "type", "mode"))) if there.is_file() else ()
        found += [
            Task(str(each["id"]), str(each["query"]), str(each["gold"]), files)
            for each in _read(path, ("id", "query", "gold"))
        ]
    if not found:
        raise UsageError(f"`{folder}` holds no `*.tasks.jsonl`")
    return tuple(found)


def run(
    kit: Kit,
    folder: Path,
    recorded: Path | None = None,
    *,
    limit: int | None = None,
    turns: int = TURNS,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Judge recorded models, or let the configured one write.

    Ctrl-C ends it with the tasks that are done.

    Raises:
        UsageError: A folder holds nothing to read.
        SandboxError: There is no sandbox here to do it in.
    """
    told = _transcripts(recorded) if recorded else {}
    lines: list[Line] = []
    aside: dict[str, str] = {}
    with until_interrupted(lambda: bool(lines)):
        for task in read_folder(folder)[:limit]:
            gold = gold_of(kit, task)
            if gold.unfit:
                aside[task.id] = gold.unfit
                continue
            played: list[tuple[str, list[_Act]]] = [(_NOTHING, [("true", None)])]
            played += [
                (name, by_task[task.id]) for name, by_task in told.items() if task.id in by_task
            ]
            new = [
                Line(task.id, name, _play(kit, task, gold, acts[:turns])) for name, acts in played
            ]
            if not recorded:
                new.append(Line(task.id, kit.config.model, _write(kit, task, gold, turns)))
            lines += new
            if tell is not None:
                tell(f"{task.id}: right {[line.subject for line in new if line.right_by(turns)]}")
    return Outcome("L3" if recorded else "L2", tuple(lines), aside)


def gold_of(kit: Kit, task: Task) -> Gold:
    """What the gold command does, tried in two new machines."""
    found = []
    for _ in range(2):
        with _machine(kit, task) as machine:
            shown = machine.run(task.gold)
            found.append((shown, machine.state()))
    (first, state), (second, other) = found
    unfit = ""
    if first.exit_code == 127 or _LACKING.search(first.errors):
        unfit = "ask for what is not here"
    elif first.exit_code is None:
        unfit = "do not end"
    elif first.output != second.output or state != other:
        unfit = "do not do the same twice"
    return Gold(_folded(first.output), state, first.cwd, unfit)


def _play(kit: Kit, task: Task, gold: Gold, acts: Iterable[_Act]) -> tuple[Turn, ...]:
    """Commands one after another in one machine, all of them: what was recorded is compared."""
    with _machine(kit, task) as machine:
        made = []
        for command, reward in acts:
            shown = machine.run(command)
            made.append(Turn(command, gold.is_met_by(shown, machine.state()), reward=reward))
        return tuple(made)


def _write(kit: Kit, task: Task, gold: Gold, turns: int) -> tuple[Turn, ...]:
    """The configured model's commands, each told what the one before it did, until one is right.

    The first is greedy. Later ones are drawn: a small model told that it was wrong says the same
    again.
    """
    model = kit.open_model(kit.config.model, config=kit.config)
    said = [system(_SYSTEM), user(f"Task: {task.query}\nCommand:")]
    made: list[Turn] = []
    with _machine(kit, task) as machine:
        for number in range(turns):
            reply = model.complete(
                ChatRequest(
                    (*said[:2], *said[2:][-2 * _REMEMBERED :]),
                    max_tokens=96,
                    temperature=0.8 if number else 0.0,
                    seed=number,
                    attempt=number,
                )
            )
            command = command_in(reply.text)
            shown = machine.run(command)
            made.append(Turn(command, gold.is_met_by(shown, machine.state()), reply.tokens))
            if made[-1].right:
                break
            said += [assistant(command), user(_observed(shown, task.query))]
    return tuple(made)


def _observed(shown: Shown, query: str) -> str:
    """What a command did, in the words that ask for the next."""
    output = cut(f"{shown.output}\n{shown.errors}".strip(), _SHOWN_CHARS) or "(nothing)"
    status = "" if shown.exit_code == 0 else f"Exit status: {shown.exit_code}\n"
    return f"Output:\n{output}\n{status}The task is not done yet. Task: {query}\nCommand:"


def _transcripts(folder: Path) -> dict[str, dict[str, list[_Act]]]:
    """What each model did on each task."""
    found: dict[str, dict[str, list[_Act]]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        by_task = found.setdefault(path.name.rsplit(".", 2)[0], {})
        for each in _read(path, ("task", "actions")):
            rewards = each.get("rewards") or [None] * len(each["actions"])
            acts = [str(act or "") for act in each["actions"]]
            by_task[str(each["task"])] = list(zip(acts, rewards, strict=False))
    if not found:
        raise UsageError(f"`{folder}` holds no transcript: `MODEL.PLACE.jsonl` is looked for")
    return found


@contextmanager
def _machine(kit: Kit, task: Task) -> Iterator[Machine]:
    place = Path(tempfile.mkdtemp(prefix="openry-machine-"))
    try:
        yield Machine(kit, place, task.files)
    finally:
        clear(place)


def _read(path: Path, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    problems = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            data = json.loads(line)
            lacking = [key for key in keys if key not in data]
        except (ValueError, TypeError) as error:
            problems.append(f"{path}:{number}: not JSON: {error}")
            continue
        problems += [f"{path}:{number}: missing `{key}`" for key in lacking]
        if not lacking:
            yield data
    if problems:
        raise BadFileError("", tuple(problems))


_HEAD = (
    "subject", "tasks", "first turn", "best of turns", "recorded first", "recorded best",
    "as recorded", "tokens a task",
)  # fmt: skip


def _total(subject: str, lines: Sequence[Line]) -> dict[str, Any]:
    first = {line.task: [float(line.right_by(1))] for line in lines}
    best = {line.task: [float(line.right_by(TURNS))] for line in lines}
    rewarded = [turn for line in lines for turn in line.turns if turn.reward is not None]
    same = [turn.right == (turn.reward >= 1.0) for turn in rewarded if turn.reward is not None]
    return {
        "subject": subject,
        "tasks": len(lines),
        "first": share(list(first.values())),
        "first_in": bootstrap(first, share),
        "best": share(list(best.values())),
        "best_in": bootstrap(best, share),
        "recorded_first": share([[line.rewarded_by(1) for line in lines]]) if rewarded else None,
        "recorded_best": share([[line.rewarded_by(TURNS) for line in lines]]) if rewarded else None,
        "as_recorded": share([same]) if same else None,
        "tokens": sum(turn.tokens for line in lines for turn in line.turns),
    }


def _cells(total: Mapping[str, Any]) -> tuple[str, ...]:
    def percent(key: str) -> str:
        value, inside = total[key], total.get(f"{key}_in")
        bounds = f" [{inside[0] * 100:.0f}, {inside[1] * 100:.0f}]" if inside else ""
        return "-" if value is None else f"{value:.1%}{bounds}"

    keys = ("first", "best", "recorded_first", "recorded_best", "as_recorded")
    tokens = f"{total['tokens'] / max(total['tasks'], 1):.0f}"
    return (total["subject"], str(total["tasks"]), *map(percent, keys), tokens)


def _folded(text: str) -> str:
    return " ".join(text.split())
