"""A session as a branch: one commit for each edit that stands, its body the evidence.

Git's plumbing alone is used: nobody's work tree, index or hooks are touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from loop.acceptance import rule_words
from loop.finishing import rebuilt
from loop.journal import Attempt, History
from loop.order import Order, file_name
from loop.provenance import confidence, failure_of, place, provenance
from openry.errors import UsageError
from openry.texts import one_line

_TITLE_CHARS = 72
_NOBODY = ("OpenRY", "openry@localhost")


@dataclass(frozen=True, slots=True)
class Exported:
    """A branch that is ready to be pushed.

    Attributes:
        commits: (hash, first line), oldest first.
        title: A pull request's.
        body: Its text.
    """

    branch: str
    path: str
    commits: tuple[tuple[str, str], ...]
    title: str
    body: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "schema_version": 1}


@dataclass(frozen=True, slots=True)
class _State:
    """The workflow after one commit."""

    text: str
    message: str


def export(history: History, folder: Path, *, branch: str = "", path: str = "") -> Exported:
    """Write the session's edits to a new branch of the repository that `folder` lies in.

    Args:
        path: Where the workflow stands in the repository; `workflows/NAME.yaml` by default.

    Raises:
        UsageError: There is no repository, the branch exists, or nothing is to be exported.
    """
    if history.current is None:
        raise UsageError("nothing ran in this session, so there is nothing to export")
    name = file_name(str(history.session["name"]))
    branch, path = branch or f"openry/{name}", _inside(path or f"workflows/{name}.yaml")
    git = _Git(folder)
    if git.says("show-ref", "--verify", "--quiet", f"refs/heads/{branch}"):
        raise UsageError(f"branch `{branch}` exists already: name another with `--branch`")
    if not git.says("check-ref-format", "--branch", branch):
        raise UsageError(f"`{branch}` cannot be a branch's name")
    states = _states(history)
    notes = _notes(history)
    commits = git.commit_all(
        branch, path, states, {str(PurePosixPath(path).with_suffix("")): notes}
    )
    title = _cut(f"{history.session['name']}: {history.session['task']}")
    return Exported(branch, path, commits, title, _body(history, commits))


def _states(history: History) -> list[_State]:
    """The draft, every edit that stands on it, and where they do not lead, what does."""
    assert history.current is not None, "asked before"
    task = history.session["task"]
    order = Order.from_data(history.session["settings"])
    born = "As it was given" if order.source else "Draft"
    states = [_State(history.rounds[0].text, _message(f"{born}: {task}", _draft_words(history)))]
    done: list[Attempt] = []
    for attempt in history.accepted:
        done.append(attempt)
        text = rebuilt(history.rounds[0].text, [each.proposal for each in done])
        words = _evidence(attempt, history)
        states.append(_State(text or attempt.text, _message(attempt.proposal.summary, words)))
    if states[-1].text != history.current.text:
        states.append(_State(history.current.text, _message("As it stands after the review", [])))
    return states


def _draft_words(history: History) -> list[str]:
    rules = [rule_words(rule) for rule in history.session["acceptance"]["hard"]]
    return ["What must hold:", *(f"- {rule}" for rule in rules)] if rules else []


def _evidence(attempt: Attempt, history: History) -> list[str]:
    """Why the edit was made, and what speaks for it."""
    round_ = next((each for each in history.rounds if each.number == attempt.round), None)
    command = round_.diagnosis.command if round_ and round_.diagnosis else None
    words = [failure_of(attempt, history)]
    if command is not None:
        came = (command.stderr or command.stdout).strip().splitlines()[:3]
        words += [
            "",
            f"    $ {' '.join(command.command.split())}",
            *(f"    {line[:200]}" for line in came),
        ]
    words += ["", attempt.proposal.why, "", f"Proposed by {attempt.proposal.origin}. Gates:"]
    words += [
        f"- {gate.name} {'indecisive' if gate.indecisive else 'passed'}: {gate.note}"
        for gate in attempt.gates
    ]
    if attempt.trial:
        words += ["", f"Evidence: run {attempt.trial.instance_id}"]
    if attempt.reviewer:
        words.append(f"Reviewed-by: {attempt.reviewer}")
    return words


def _notes(history: History) -> str:
    assert history.current is not None, "asked before"
    session = history.session
    strength = {
        "acceptance_strength": session["acceptance_strength"] or "weak",
        "weak_because": session["weak_because"],
    }
    order = Order.from_data(session["settings"])
    prov = provenance(history, history.current, order, stop=session["stop"], strength=strength)
    return json.dumps(prov, indent=2, ensure_ascii=False) + "\n"


def _body(history: History, commits: Sequence[tuple[str, str]]) -> str:
    session = history.session
    rules = [rule_words(rule) for rule in session["acceptance"]["hard"]]
    lines = [
        f"Task: {session['task']}",
        "",
        f"Outcome: {session['outcome'] or session['state']} ({session['stop'] or 'not ended'}). "
        f"{confidence(history.current)}".strip(),
        f"Acceptance: {session['acceptance_origin']}, {session['acceptance_strength'] or 'weak'}.",
        *(f"- `{rule}`" for rule in rules),
        *(f"- weak: {why}" for why in session["weak_because"]),
        "",
        f"Cost: {session['tokens']} tokens, {session['cost_usd']:.4f} USD.",
        "",
        "Commits, one an edit; each body holds the failure, the gates and the run behind it:",
        *(f"- {subject}" for _, subject in commits),
    ]
    waiting = [place(each) for each in history.attempts if each.verdict == "waiting"]
    if waiting:
        lines += ["", f"Not in here, a person has to decide: {', '.join(waiting)}"]
    return "\n".join(lines) + "\n"


def _message(title: str, words: Sequence[str]) -> str:
    body = "\n".join(words).strip()
    return f"{_cut(title)}\n\n{body}\n" if body else f"{_cut(title)}\n"


def _cut(text: str) -> str:
    return one_line(text, _TITLE_CHARS)


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts or not pure.name:
        raise UsageError(f"`{path}` is no path inside the repository")
    return str(pure)


class _Git:
    """The repository that a folder lies in, by plumbing commands alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir() or not self.says("rev-parse", "--git-dir"):
            raise UsageError(f"`{folder}` is no Git repository: make one with `git init`")

    def says(self, *args: str) -> bool:
        """Whether a command succeeds."""
        return self._call(args).returncode == 0

    def commit_all(
        self, branch: str, path: str, states: Sequence[_State], notes: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        """One commit a state on HEAD; the last one has the notes too. States that change nothing
        are left out.
        """
        parent = self._ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail=True)
        found = []
        with tempfile.TemporaryDirectory(prefix="openry-export-") as place:
            index = {"GIT_INDEX_FILE": str(Path(place, "index"))}
            if parent:
                self._ask("read-tree", parent, env=index)
            before = self._ask("write-tree", env=index)
            for number, state in enumerate(states, start=1):
                self._put(path, state.text, index)
                if number == len(states):
                    for stem, text in notes.items():
                        self._put(f"{stem}.prov.json", text, index)
                tree = self._ask("write-tree", env=index)
                if tree == before:
                    continue
                before = tree
                above = ["-p", parent] if parent else []
                parent = self._ask(
                    "commit-tree", tree, *above, given=state.message, env=self._who()
                )
                found.append((parent, state.message.splitlines()[0]))
        if not found:
            raise UsageError(
                "the repository has this workflow already, so nothing is to be exported"
            )
        self._ask("update-ref", f"refs/heads/{branch}", parent, "")
        return tuple(found)

    def _put(self, path: str, text: str, index: Mapping[str, str]) -> None:
        blob = self._ask("hash-object", "-w", "--no-filters", "--stdin", given=text)
        self._ask("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=index)

    def _who(self) -> dict[str, str]:
        """Who commits: whoever Git knows, else nobody in particular."""
        if self.says("var", "GIT_COMMITTER_IDENT") and self.says("var", "GIT_AUTHOR_IDENT"):
            return {}
        name, mail = _NOBODY
        roles = ("AUTHOR", "COMMITTER")
        return {f"GIT_{r}_NAME": name for r in roles} | {f"GIT_{r}_EMAIL": mail for r in roles}

    def _ask(
        self,
        *args: str,
        given: str = "",
        env: Mapping[str, str] | None = None,
        may_fail: bool = False,
    ) -> str:
        done = self._call(args, given, env)
        if done.returncode and not may_fail:
            why = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise UsageError(f"git {args[0]} in `{self.folder}`: {why[-1] if why else 'failed'}")
        return done.stdout.decode("utf-8", "replace").strip()

    def _call(
        self, args: Sequence[str], given: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        options = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        try:
            return subprocess.run(
                ["git", "-C", str(self.folder), *options, *args],
                input=given.encode("utf-8", "replace"),
                capture_output=True,
                env={**os.environ, **(env or {})},
                check=False,
            )
        except FileNotFoundError as error:
            raise UsageError("`git` is not installed here: install it first") from error
