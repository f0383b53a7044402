"""A session that is killed before its journal begins leaves nothing that anybody stumbles over."""

from __future__ import annotations

import json
import os

import pytest

from loop import leftovers
from loop.start import history, new, sessions
from openry.errors import NotFoundError


def test_a_folder_without_a_session_is_named_and_cleared(kit, order):
    """Nothing lists it, who asks for it is told, and the next task removes it."""
    folder = kit.config.home / "loops" / "20260101-0123abcd"
    leftovers.mark(folder)
    owner = json.loads((folder / "process.json").read_text())
    (folder / "process.json").write_text(json.dumps({**owner, "started_at": ""}))

    assert sessions(kit) == []
    with pytest.raises(NotFoundError, match="killed before its plan was made; give the task again"):
        history(kit, folder.name)
    new(kit, order("Sort names.txt"), emit=lambda *_: None)

    assert not folder.exists()


def test_a_folder_that_somebody_works_in_is_left_alone(kit):
    """One with a living owner, and one that is just getting its owner, stay."""
    loops = kit.config.home / "loops"
    leftovers.mark(loops / "owned")
    (loops / "new").mkdir()
    (loops / "old").mkdir()
    os.utime(loops / "old", (0, 0))

    leftovers.clear(loops, kit.ledger)

    assert sorted(each.name for each in loops.iterdir()) == ["new", "owned"]


def test_a_session_that_is_written_down_keeps_its_folder(kit, order, folder):
    """Whatever became of its process: it can be resumed."""
    session = new(kit, order("Sort names.txt"), emit=lambda *_: None)
    leftovers.mark(session.folder)
    session.journal.begin(kit.ledger, session.id, {"task": "x", "directory": str(folder)})
    (session.folder / "process.json").unlink()
    os.utime(session.folder, (0, 0))

    leftovers.clear(session.folder.parent, kit.ledger)

    assert session.folder.is_dir()
