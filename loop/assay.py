"""How much an acceptance is worth: run the accepted workflow and its rivals on other inputs.

Runs here are cheap: capability calls through the hand, in the sandbox, without the engine. What
they find is words for a person; nothing of it is accepted or delivered.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from loop.accounting import unaccounted
from loop.deliver import Delivery
from loop.diagnose import rule_path
from loop.evidence import Trial
from loop.mentions import find_mentions
from loop.strength import Files, Rival, measure
from loop.values import Acceptance, Candidate, RuleData, Strength, Survey
from openry.capability import invoke
from openry.errors import BadArgumentsError
from openry.forwarder import Hand
from openry.models import Command, RunContext, SandboxSpec

if TYPE_CHECKING:
    from loop.gates import Judge
    from loop.kit import Kit

#: More input than this is not compared.
MAX_BYTES = 8 * 1024**2
MAX_RIVALS = 12


def strength(
    kit: Kit,
    task: str,
    survey: Survey,
    acceptance: Acceptance,
    trial: Trial,
    workflow: Mapping[str, Any],
    candidates: Sequence[Candidate],
    delivery: Delivery,
    judge: Judge,
    near: Path,
) -> Strength:
    """Whether the acceptance would have rejected every different result; else what survived.

    Args:
        trial: The accepted run.
        workflow: Plain data of the accepted workflow.
        candidates: Other readings, best first.
        delivery: The files that the task asked for, and those that it takes away.
        near: Where folders of the loop's own may be made.
    """
    if any(step.get("kind", "agent") == "agent" for step in workflow["sub_steps"]):
        return Strength(False, ("a step asks a model: its result may differ from run to run",))
    with kit.open_copy(trial.before, near) as folder:
        files = _read(folder, survey.names)
    if sum(map(len, files.values())) > MAX_BYTES:
        return Strength(False, ("the input is too large to compare rivals on it",))
    results = delivery.results
    with kit.open_copy(trial.after, near) as folder:
        result = _read(folder, results)
        empty = [rule["run"] for rule in acceptance.hard if asks_of_nothing(rule, folder)]
    bench = _Bench(kit, near)

    def final(given: Files) -> Files | None:
        return result if given == files else bench.run(workflow["sub_steps"], given, results)

    def accepts(rules: Sequence[RuleData], given: Files) -> bool:
        with bench.folder(given) as folder:
            return all(verdict.passed for verdict in judge(rules, folder, {}))

    steps = workflow["sub_steps"]
    own = acceptance.hard if acceptance.origin == "given" else ()
    others = candidates[:MAX_RIVALS] if len(candidates) > 1 else ()  # the only one is no rival
    rivals = [_rival(kit, each, task, bench) for each in others]
    doubts = [f"nothing was compared with the removal of {name}" for name in delivery.remove]
    doubts += [f"`{run}` holds though the file it names is not there" for run in empty]
    calls = [(str(s["capability"]), s.get("args") or {}) for s in steps if "capability" in s]
    left_out = unaccounted(
        task,
        find_mentions(task, survey),
        calls,
        {name: kit.registry.get(name) for name, _ in calls},
    )
    if any("capability" not in step for step in steps):
        left_out = ()  # a command may mind anything
    return measure(
        task, survey, files, own, final, rivals, accepts, doubts=doubts, left_out=left_out
    )


_PRESENCE = re.compile(r"!\s*(?:ls|test|\[|stat|find)\b|\[\s*!|\btest\s+!")


def asks_of_nothing(rule: RuleData, folder: Path) -> bool:
    """Whether a command turns a failure into success and names a file that is not in `folder`.

    A file that must not be there is asked for with `test`, `ls` and the like.
    """
    run = str(rule.get("run") or "")
    if not re.search(r"(?:^|[;&|({]\s*)!\s|\|\|", run) or _PRESENCE.search(run):
        return False
    path = rule_path(rule)
    return bool(path) and "*" not in path and not (folder / path).exists()


def _rival(kit: Kit, candidate: Candidate, task: str, bench: _Bench) -> Rival:
    steps = kit.workflow_data(candidate, "rival", task)["sub_steps"]
    name = ", ".join(goal.tool for goal in candidate.goals)
    return Rival(name, lambda files: bench.run(steps, files, candidate.results))


class _Bench:
    """Runs steps one after another in folders made of nothing but the given files."""

    def __init__(self, kit: Kit, near: Path) -> None:
        self._kit = kit
        self._near = near

    def folder(self, files: Files) -> _Folder:
        return _Folder(files, self._near)

    def run(
        self, steps: Iterable[Mapping[str, Any]], files: Files, results: Sequence[str]
    ) -> Files | None:
        """The result files; None when a step failed."""
        with self.folder(files) as folder:
            sandbox = SandboxSpec(backend="auto", write=(str(folder),))
            context = RunContext(workspace=str(folder), sandbox=sandbox)
            hand = Hand(self._kit.fast, context, self._kit.config)
            if not all(self._step(step, hand, folder) for step in steps):
                return None
            return _read(folder, results)

    def _step(self, step: Mapping[str, Any], hand: Hand, folder: Path) -> bool:
        if step.get("kind") == "shell":
            return hand.forward(Command(text=str(step["command"]))).ok
        tool = self._kit.registry.get(str(step["capability"]))
        try:
            return invoke(tool, step.get("args") or {}, hand.forward, folder).success
        except BadArgumentsError:
            return False


class _Folder:
    """A throw-away folder with some files in it."""

    def __init__(self, files: Files, near: Path) -> None:
        near.mkdir(parents=True, exist_ok=True)
        self._files = files
        self._place = tempfile.TemporaryDirectory(dir=near, ignore_cleanup_errors=True)

    def __enter__(self) -> Path:
        folder = Path(self._place.name)
        above = {str(each) for name in self._files for each in PurePosixPath(name).parents}
        for name, content in self._files.items():
            if name in above:
                continue  # it was a file before, and is a folder in the result
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

    def __exit__(self, *_: object) -> None:
        self._place.cleanup()


def _read(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
