"""Repositories as they are, and strangers' repositories that would like to run something."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from openry.capability import complete, load_registry
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
REGISTRY = load_registry()
ALONE = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER")
       for what, text in (("NAME", "Ann"), ("EMAIL", "ann@example.com"))},
}  # fmt: skip


def run(name: str, **arguments) -> bytes:
    tool = REGISTRY.get(name)
    return load(tool.python or "")(**complete(tool, arguments))


def git(folder: Path, *words: str, **env: str) -> str:
    made = subprocess.run(["git", *words], cwd=folder, env=ALONE | env, capture_output=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.decode()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits in a workspace, which is the current folder as for the child process."""
    folder = tmp_path / "ws"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First", GIT_AUTHOR_DATE="2026-01-01T00:00:00Z")
    (folder / "a.txt").write_text("one\ntwo\n")
    git(folder, "commit", "-qam", "Second: 大 'quoted' \"words\"")
    monkeypatch.chdir(folder)
    return folder


def test_every_kind_of_change_is_told(repo: Path):
    """As `git status --porcelain` has it, names with blanks and line ends whole."""
    (repo / "gone.txt").write_text("x\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Third")
    (repo / "a.txt").write_text("1\n")
    (repo / "staged.txt").write_text("s\n")
    git(repo, "add", "staged.txt")
    (repo / "gone.txt").unlink()
    (repo / "two words\n大.txt").write_text("n\n")

    told = json.loads(run("git_status"))

    assert (told["branch"], told["clean"]) == ("main", False)
    assert {c["path"]: (c["change"], c["staged"]) for c in told["changes"]} == {
        "a.txt": ("modified", False),
        "gone.txt": ("deleted", False),
        "staged.txt": ("added", True),
        "two words\n大.txt": ("untracked", False),
    }


def test_the_log_is_what_git_says(repo: Path):
    """The same commits in the same order as git's own listing; words are no patterns."""
    told = json.loads(run("git_log"))

    assert [each["commit"] for each in told] == git(repo, "log", "--format=%H").split()
    assert told[0]["subject"] == "Second: 大 'quoted' \"words\""
    assert [c["subject"] for c in json.loads(run("git_log", message="first"))] == ["First"]
    assert json.loads(run("git_log", author=".*")) == []
    assert json.loads(run("git_log", file="b.txt")) == []
    assert len(json.loads(run("git_log", count=1))) == 1


def test_a_diff_can_be_applied(repo: Path):
    """What is shown between two commits turns one into the other."""
    made = run("git_diff", revision="HEAD~1", other="HEAD")
    git(repo, "checkout", "-q", "HEAD~1")

    subprocess.run(["git", "apply"], input=made, cwd=repo, check=True)

    assert (repo / "a.txt").read_text() == "one\ntwo\n"
    assert run("git_show", revision="main~1", file="a.txt") == b"one\n"
    assert b"a.txt | 1 +" in run("git_show", revision="main", summary=True)


def test_nothing_in_a_repository_is_run(repo: Path, tmp_path: Path):
    """Monitors, filters, pagers, diff and text drivers, signature checkers, hooks: none starts."""
    canary = tmp_path / "canary"
    bait = tmp_path / "bait"
    bait.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    bait.chmod(0o755)
    for key in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "pager.log", "pager.diff",
        "diff.external", "diff.x.command", "diff.x.textconv", "filter.x.clean", "filter.x.smudge",
        "filter.y z.process", "gpg.program", "core.alternateRefsCommand", "credential.helper",
        "interactive.diffFilter", "alias.log", "alias.status", "sequence.editor",
        "uploadpack.packObjectsHook",
    ):  # fmt: skip
        git(repo, "config", key, f"!{bait}" if key.startswith("alias") else str(bait))
    git(repo, "config", "log.showSignature", "true")
    git(repo, "config", "filter.x.required", "true")
    (repo / ".gitattributes").write_text("* filter=x diff=x\nb* filter=y\\040z\n")
    hook = repo / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(bait, hook)
    (repo / "a.txt").write_text("one\ntwo\nthree\n")
    os.utime(repo / "a.txt", (1, 1))

    calls = [
        ("git_status", {}), ("git_log", {}), ("git_log", {"file": "a.txt"}), ("git_diff", {}),
        ("git_diff", {"revision": "HEAD~1"}), ("git_diff", {"staged": True}), ("git_show", {}),
        ("git_show", {"file": "a.txt"}), ("git_show", {"summary": True}),
    ]  # fmt: skip
    for name, arguments in calls:
        assert isinstance(run(name, **arguments), bytes)

    assert not canary.exists()


def test_a_repository_elsewhere_is_not_looked_at(repo: Path, tmp_path: Path, monkeypatch):
    """Neither above the workspace, nor by a `.git` file, a work tree or borrowed objects."""
    inner = repo / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    with pytest.raises(ToolFailure, match="is no git repository"):
        run("git_log")
    (inner / ".git").write_text(f"gitdir: {repo}/.git\n")
    with pytest.raises(ToolFailure, match="outside the workspace"):
        run("git_log")

    (inner / ".git").unlink()
    git(inner, "init", "-q")
    git(inner, "config", "core.worktree", str(repo))
    with pytest.raises(ToolFailure, match="outside the workspace"):
        run("git_status")
    git(repo, "config", "--file", "inner/.git/config", "--unset", "core.worktree")
    (inner / ".git/objects/info").mkdir(exist_ok=True)
    (inner / ".git/objects/info/alternates").write_text(f"{repo}/.git/objects\n")
    with pytest.raises(ToolFailure, match="outside the workspace"):
        run("git_show", revision=git(repo, "rev-parse", "HEAD").strip())


@pytest.mark.parametrize(
    ("name", "arguments", "error_class"),
    [
        ("git_show", {"revision": "nothing"}, "not_found"),
        ("git_diff", {"revision": "nothing"}, "not_found"),
        ("git_log", {"revision": "nothing"}, "not_found"),
        ("git_show", {"file": "nothing.txt"}, "not_found"),
        ("git_diff", {"other": "HEAD"}, "bad_arguments"),
        ("git_log", {"path": "nowhere"}, "not_found"),
        ("git_log", {"since": "gibberish"}, None),
    ],
)
def test_what_is_not_there_has_its_class(repo: Path, name, arguments, error_class):
    """And one sentence, git's own where it says something."""
    if error_class is None:
        assert run(name, **arguments)
        return
    with pytest.raises(ToolFailure) as failure:
        run(name, **arguments)
    assert failure.value.error_class == error_class
    assert "\n" not in str(failure.value)


def test_an_empty_repository_and_a_missing_git_are_said(tmp_path: Path, monkeypatch):
    """No commits is no failure of ours; no git names what to install."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(ToolFailure, match="no commits yet"):
        run("git_log", revision="HEAD")
    assert json.loads(run("git_status"))["clean"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailure, match="git is not installed"):
        run("git_status")
