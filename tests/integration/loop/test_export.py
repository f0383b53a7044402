"""A session as a branch of somebody's repository."""

from __future__ import annotations

import json
import subprocess

import pytest
from typer.testing import CliRunner

from loop.apply import data_of
from loop.cli import app
from loop.provenance import blame
from tests.integration.loop.test_review import LONGER, kit, run, session  # noqa: F401  # fixtures

pytestmark = pytest.mark.usefixtures("kit")


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit, something staged, and a hook that would be noticed."""
    folder = tmp_path / "repo"
    git(folder, "init", "-q", "-b", "main", str(folder), at=tmp_path)
    (folder / "README").write_text("hello\n")
    git(folder, "add", "README")
    git(folder, "-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "-q", "-m", "first")
    (folder / "staged.txt").write_text("mine\n")
    git(folder, "add", "staged.txt")
    hook = folder / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    return folder


def git(folder, *args: str, at=None) -> str:
    where = ["-C", str(at or folder)]
    done = subprocess.run(["git", *where, *args], capture_output=True, text=True, check=True)
    return done.stdout


def export(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["export", "s1", *args], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_every_edit_is_a_commit_with_its_evidence(session, repository, tmp_path):  # noqa: F811
    """The branch leads from the draft to the workflow; each body says why."""
    answer = json.loads(export("--pr", str(repository), "--json"))

    branch = answer["branch"]
    subjects = git(repository, "log", "--reverse", "--format=%s", f"main..{branch}").splitlines()
    assert len(subjects) == 13
    assert subjects[1].startswith("to_shell(s0")
    body = git(repository, "log", "-1", "--format=%b", f"{branch}~11")
    assert "reason 0" in body
    assert "G3 passed: passes alone" in body
    assert git(repository, "show", f"{branch}:workflows/capitals.yaml") == session.read_text()
    (tmp_path / "out").mkdir()
    for name in ("capitals.yaml", "capitals.prov.json"):
        text = git(repository, "show", f"{branch}:workflows/{name}")
        (tmp_path / "out" / name).write_text(text)
    assert len(blame(tmp_path / "out" / "capitals.yaml")) == len(session.read_text().splitlines())
    stats = git(repository, "show", "--stat", "--format=", f"{branch}~3")
    assert "1 file changed" in stats
    assert "file_contains path=o0.txt contains=BOB" in answer["body"]


def test_nothing_but_the_branch_is_touched(session, repository, tmp_path):  # noqa: F811
    """Work tree, index, HEAD and hooks are as they were."""
    before = git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")

    export("--pr", str(repository))

    assert (
        git(repository, "status", "--porcelain"),
        git(repository, "rev-parse", "HEAD"),
    ) == before
    assert not (repository / "workflows").exists()
    assert not (tmp_path / "hooked").exists()


@pytest.mark.sandbox
def test_what_a_person_rejected_is_not_exported(session, repository, tmp_path):  # noqa: F811
    """After a review the branch holds what stands, with who looked at it."""
    said = [{"hunk": f"{n + 1}.0", "decision": "reject"} for n in LONGER]
    said.append({"hunk": "1.0", "decision": "accept"})
    file = tmp_path / "d.json"
    file.write_text(json.dumps(said))
    run("--decisions", str(file), "--as", "ada")

    export("--pr", str(repository), "--branch", "mine", "--path", "flows/c.yaml")

    subjects = git(repository, "log", "--format=%s", "main..mine").splitlines()
    assert len(subjects) == 10
    assert not any("set_timeout" in subject for subject in subjects)
    done = data_of(git(repository, "show", "mine:flows/c.yaml"))["sub_steps"]
    assert all("timeout_seconds" not in step for step in done)
    assert "Reviewed-by: ada" in git(repository, "log", "-1", "--format=%b", "mine~8")


def test_what_is_in_the_way_is_one_sentence(session, repository, tmp_path):  # noqa: F811
    """No repository, a branch that exists, a path that leads out: exit 2 and the way out."""
    export("--pr", str(repository))

    assert "--branch" in export("--pr", str(repository), code=2)
    assert "git init" in export("--pr", str(tmp_path / "nowhere"), code=2)
    assert "inside the repository" in export("--pr", str(repository), "--path", "../x.yaml", code=2)
