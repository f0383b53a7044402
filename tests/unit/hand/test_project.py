"""A project's `.openry`: used once it was trusted, asked about again when it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openry.errors import NotFoundError, UsageError
from openry.orchestrator.lookup import _FOLDERS as WORKFLOW_FOLDERS
from openry.project import KINDS, find_project, forget, places, supplies, trust, untrusted_hint


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".openry"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".openry" / "workflows").mkdir(parents=True)
    (root / ".openry" / "workflows" / "a.yaml").write_text("name: a\n")
    (root / "deep" / "er").mkdir(parents=True)
    for path in (root / ".openry", root / ".openry/workflows"):
        path.chmod(0o755)
    (root / ".openry/workflows/a.yaml").chmod(0o644)
    return root


def test_nothing_is_taken_before_it_was_trusted(project: Path, home: Path):
    """Then it is, from any folder below; OPENRY_HOME goes before it."""
    assert places("workflows", home, project / "deep" / "er") == ()
    assert "openry trust" in untrusted_hint("workflows", "a", home, project)
    assert untrusted_hint("workflows", "b", home, project) == ""

    trust(project / "deep", home)
    (home / "workflows").mkdir()

    found = places("workflows", home, project / "deep" / "er")
    assert found == (home / "workflows", project / ".openry" / "workflows")
    assert untrusted_hint("workflows", "a", home, project) == ""


def test_nothing_is_found_in_a_folder_that_trust_does_not_look_at(project: Path, home: Path):
    """Whatever is asked for by name is among what a change is noticed of."""
    (project / ".openry/agents").mkdir(mode=0o755)
    trust(project, home)

    assert places("agents", home, project) == ()
    assert set(WORKFLOW_FOLDERS) <= set(KINDS)


@pytest.mark.parametrize("change", ["content", "new file", "gone", "renamed"])
def test_a_change_asks_again(project: Path, home: Path, change: str):
    """Whatever changed in what it supplies; the change is named."""
    trust(project, home)
    file = project / ".openry/workflows/a.yaml"
    if change == "content":
        file.write_text("name: b\n")
    elif change == "new file":
        (project / ".openry/policies").mkdir(mode=0o755)
        (project / ".openry/policies/p.yaml").write_text("default: allow\n")
        (project / ".openry/policies/p.yaml").chmod(0o644)
    elif change == "gone":
        file.unlink()
    else:
        file.rename(file.with_name("c.yaml"))

    found = find_project(project, home)

    assert found is not None
    assert not found.trusted
    assert "has changed" in found.complaint
    assert found.changes
    assert places("workflows", home, project) == ()
    trust(project, home)
    assert places("workflows", home, project) == (project / ".openry/workflows",)


def test_what_it_cannot_supply_is_no_change(project: Path, home: Path):
    """Settings in it are never read, so they may change as they like."""
    trust(project, home)

    (project / ".openry/config.yaml").write_text("shell: {program: /tmp/evil}\n")

    assert find_project(project, home).trusted


@pytest.mark.parametrize("what", ["writable folder", "writable file", "link", "fifo"])
def test_what_others_may_change_is_never_trusted(project: Path, home: Path, what: str):
    """One sentence says why and which; also after it was trusted."""
    trust(project, home)
    folder = project / ".openry"
    if what == "writable folder":
        folder.chmod(0o777)
    elif what == "writable file":
        (folder / "workflows/a.yaml").chmod(0o664)
    elif what == "link":
        (folder / "workflows/b.yaml").symlink_to("/etc/hostname")
    else:
        os.mkfifo(folder / "workflows/b.yaml")

    assert places("workflows", home, project) == ()
    with pytest.raises(UsageError, match="is not used: "):
        trust(project, home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_user_s_folder_is_never_trusted(project: Path, home: Path):
    """Its owner could change it between the look and the use."""
    os.chown(project / ".openry/workflows/a.yaml", 65534, 65534)

    with pytest.raises(UsageError, match="belongs to another user"):
        trust(project, home)


def test_trust_can_be_taken_back(project: Path, home: Path):
    """Then it supplies nothing."""
    trust(project, home)
    forget(project, home)

    assert places("workflows", home, project) == ()
    assert (home / "trusted.json").stat().st_mode & 0o777 == 0o600


def test_where_there_is_none_that_is_said(tmp_path: Path, home: Path):
    """OPENRY_HOME itself is no project, though it may be called the same."""
    home.mkdir(parents=True)

    assert find_project(home.parent, home) is None
    with pytest.raises(NotFoundError, match=r"no `\.openry` folder"):
        trust(home.parent, home)
    with pytest.raises(NotFoundError, match="is no folder"):
        trust(tmp_path / "nothing", home)


def test_a_broken_record_trusts_nothing(project: Path, home: Path):
    """Whatever stands in it."""
    home.mkdir(parents=True)
    for text in ("", "[]", '{"x": 1}', f'{{"{project / ".openry"}": {{"files": 3}}}}'):
        (home / "trusted.json").write_text(text)
        assert places("workflows", home, project) == ()


def test_what_a_project_supplies_is_known_by_its_place(project: Path, home: Path):
    """Files of OPENRY_HOME are a person's own."""
    assert supplies(project / ".openry/workflows/a.yaml", home)
    assert not supplies(project / ".openry/config.yaml", home)
    assert not supplies(home / "workflows/a.yaml", home)
    assert not supplies(project / "workflows/a.yaml", home)
