"""Whether a page can be written is asked before what takes its time, and leaves no trace."""

from __future__ import annotations

import os

import pytest

from loop.start import refuse_if_no_page
from openry.errors import UsageError


def test_a_place_that_will_do_is_left_as_it_was(tmp_path):
    """A new file, one that is there, a link to either, a pipe nobody reads."""
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "link.html").symlink_to("old.html")
    (tmp_path / "dangling.html").symlink_to("target.html")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())

    for name in ("new.html", "old.html", "link.html", "dangling.html", "pipe"):
        refuse_if_no_page(tmp_path / name)

    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "dangling.html").is_symlink()
    assert (tmp_path / "old.html").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".", "is a directory"),
        ("nope/a.html", "no such file or directory"),
        ("file/a.html", "not a directory"),
        ("astray.html", "no such file or directory"),
        ("round.html", "too many levels of symbolic links"),
        ("x" * 300, "file name too long"),
    ],
)
def test_a_place_that_will_not_do_is_said(tmp_path, name, why):
    """The same sentence that writing it would give."""
    (tmp_path / "file").write_text("")
    (tmp_path / "astray.html").symlink_to("nope/a.html")
    (tmp_path / "round.html").symlink_to("round.html")

    with pytest.raises(UsageError, match=f"cannot be written: {why}"):
        refuse_if_no_page(tmp_path / name)


def test_no_right_to_write_is_said(tmp_path, monkeypatch):
    """To a file, or to the folder of a new one; to whoever runs this everything may be allowed."""
    (tmp_path / "old.html").write_text("")
    monkeypatch.setattr(os, "access", lambda path, rights: False)

    for name in ("old.html", "new.html"):
        with pytest.raises(UsageError, match="cannot be written: permission denied"):
            refuse_if_no_page(tmp_path / name)
