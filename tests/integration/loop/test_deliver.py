"""Results reach the person's folder whole, alone, and only where nothing changed."""

from __future__ import annotations

import pytest

from loop.deliver import Delivery, deliver, plan
from openry.errors import UsageError, WorkspaceChangedError


@pytest.fixture
def folders(tmp_path):
    """base = as it was, source = the copy that ran, target = the person's folder."""
    made = {name: tmp_path / name for name in ("base", "source", "target")}
    for folder in made.values():
        folder.mkdir()
        (folder / "in.txt").write_text("in")
    return made


def test_only_what_was_asked_for_is_written(folders):
    """Intermediate files and files nobody asked for stay behind."""
    found = plan(["out.txt", ".work/a", "scratch.txt"], ["in.txt"], lambda path: path == "out.txt")

    assert found == Delivery(("out.txt",), (), ("scratch.txt", "in.txt"))


def test_results_arrive(folders):
    """New files, also in new folders, and changed files."""
    (folders["source"] / "sub").mkdir()
    (folders["source"] / "sub/out.txt").write_text("out")
    (folders["source"] / "in.txt").write_text("new")

    deliver(Delivery(("sub/out.txt", "in.txt")), **folders)

    assert (folders["target"] / "sub/out.txt").read_text() == "out"
    assert (folders["target"] / "in.txt").read_text() == "new"
    assert sorted(p.name for p in folders["target"].rglob("*")) == ["in.txt", "out.txt", "sub"]


def test_a_file_that_changed_meanwhile_is_not_overwritten(folders):
    """The person's own work since the start is worth more than ours."""
    (folders["source"] / "out.txt").write_text("ours")
    (folders["target"] / "out.txt").write_text("theirs")

    with pytest.raises(WorkspaceChangedError, match=r"out\.txt"):
        deliver(Delivery(("out.txt",)), **folders)

    assert (folders["target"] / "out.txt").read_text() == "theirs"


def test_delivering_twice_is_delivering_once(folders):
    """A session killed after delivery delivers again without complaint."""
    (folders["source"] / "out.txt").write_text("out")
    deliver(Delivery(("out.txt",)), **folders)
    deliver(Delivery(("out.txt",)), **folders)

    assert (folders["target"] / "out.txt").read_text() == "out"


def test_a_removed_file_is_removed(folders):
    """A task that moves a file away moves it away."""
    (folders["source"] / "in.txt").unlink()

    deliver(Delivery((), ("in.txt",)), **folders)

    assert not (folders["target"] / "in.txt").exists()


def test_all_or_none(folders):
    """When one result cannot be written, none is, and nothing of ours is left lying about."""
    (folders["source"] / "a.txt").write_text("a")
    (folders["source"] / "z").mkdir()
    (folders["source"] / "z/b.txt").write_text("b")
    (folders["base"] / "z").write_text("a file")
    (folders["target"] / "z").write_text("a file")

    with pytest.raises(UsageError, match="nothing was changed"):
        deliver(Delivery(("a.txt", "z/b.txt")), **folders)

    assert sorted(p.name for p in folders["target"].iterdir()) == ["in.txt", "z"]


def test_a_link_out_of_the_folder_is_not_followed(folders, tmp_path):
    """A result never lands outside, whatever links lie in the folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (folders["target"] / "sub").symlink_to(outside)
    (folders["source"] / "sub").mkdir()
    (folders["source"] / "sub/out.txt").write_text("out")

    with pytest.raises(UsageError):
        deliver(Delivery(("sub/out.txt",)), **folders)

    assert list(outside.iterdir()) == []
