"""The file tools in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.files import _glob
from openry.capability.builtin.runner import replace_file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (
        "a.txt",
        "b.TXT",
        "sub/c.txt",
        "sub/deep/d.txt",
        ".hidden/e.txt",
        ".f.txt",
        "x y.md",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def found(call, **arguments) -> list[str]:
    return call("find_files", **arguments).decode().splitlines()


def test_files_are_found_by_name_in_and_below_a_folder(call, here):
    """Sorted relative paths; hidden ones only when the pattern asks for them."""
    assert found(call, pattern="*.txt") == ["a.txt", "sub/c.txt", "sub/deep/d.txt"]
    assert found(call, pattern="*.txt", recursive=False) == ["a.txt"]
    assert found(call, pattern="*.txt", path="sub") == ["c.txt", "deep/d.txt"]
    assert found(call, pattern="*.txt", names_only=True) == ["a.txt", "c.txt", "d.txt"]
    assert found(call, pattern="sub/*.txt") == ["sub/c.txt"]
    assert found(call, pattern="**/d.txt") == ["sub/deep/d.txt"]
    assert found(call, pattern="*.{txt,TXT}", recursive=False) == ["a.txt", "b.TXT"]
    assert found(call, pattern=".*", recursive=False) == [".f.txt"]
    assert call("count_files", pattern="*") == b"5\n"


def test_the_result_itself_is_not_found(call, here):
    """A second run finds what the first one found."""
    (here / "found.txt").write_text("")

    again = call("find_files", pattern="*.txt", recursive=False, output="found.txt")

    assert again == b"a.txt\n"


def test_a_folder_is_listed_as_it_is(call, here):
    """Names in order, folders with a slash; only one kind where asked."""
    assert call("list_directory").decode().splitlines() == ["a.txt", "b.TXT", "sub/", "x y.md"]
    assert call("list_directory", kind="folders") == b"sub/\n"
    assert b".f.txt\n" in call("list_directory", hidden=True)
    (here / "sub" / "new\nline").touch()
    assert call("list_directory", path="sub", kind="files") == b"c.txt\nnew\\nline\n"


def test_a_place_that_is_no_folder_says_so(call, here):
    """Not an empty list."""
    with pytest.raises(ToolFailure, match="no such folder"):
        call("find_files", pattern="*", path="nowhere")
    with pytest.raises(ToolFailure, match="is a file; name a folder"):
        call("find_files", pattern="*", path="a.txt")


@settings(max_examples=100)
@given(st.text("ab.*?[]{},/!^-", max_size=8), st.text("ab./-", max_size=8))
def test_a_glob_never_breaks_and_a_plain_one_is_a_name(pattern, name):
    """Whatever the pattern; without signs it matches itself only."""
    try:
        compiled = _glob(pattern)
    except ToolFailure as failure:
        assert failure.error_class == "bad_arguments"
        return
    if not set(pattern) & set("*?[]{}"):
        plain = pattern.removeprefix("./")
        assert (compiled.fullmatch(name) is not None) is (name == plain)


def test_copying_leaves_the_original_and_makes_folders(call, here):
    """Files and folders, to a new name or into a folder."""
    call("copy", path="a.txt", output="new/place/a2.txt")
    call("copy", path="a.txt", output="sub")
    call("copy", path="sub", output="sub2")

    assert (here / "a.txt").read_text() == (here / "new/place/a2.txt").read_text() == "a.txt"
    assert (here / "sub/a.txt").exists()
    assert (here / "sub2/deep/d.txt").read_text() == "sub/deep/d.txt"
    with pytest.raises(ToolFailure, match="same file"):
        call("copy", path="a.txt", output="./a.txt")
    with pytest.raises(ToolFailure, match="into itself"):
        call("copy", path="sub", output="sub/inner")
    with pytest.raises(ToolFailure, match="exists"):
        call("copy", path="a.txt", output="b.TXT", overwrite=False)


def test_moving_takes_the_original_along_and_overwrites_nothing(call, here):
    """A file that is there stays, unless it was meant."""
    with pytest.raises(ToolFailure, match="exists"):
        call("move", path="a.txt", output="b.TXT")
    call("move", path="a.txt", output="b.TXT", overwrite=True)
    call("move", path="sub", output="renamed")

    assert (here / "b.TXT").read_text() == "a.txt"
    assert not (here / "a.txt").exists()
    assert (here / "renamed/deep/d.txt").exists()
    with pytest.raises(ToolFailure, match="into itself"):
        call("move", path="renamed", output="renamed/deep/x")
    with pytest.raises(ToolFailure, match="no such file"):
        call("move", path="nothing", output="x")


def test_what_is_deleted_is_in_the_trash(call, here):
    """Twice the same name is two pieces of trash; neither the workspace nor the trash goes."""
    call("delete", path="a.txt")
    (here / "a.txt").write_text("second")
    place = call("delete", path="a.txt").decode().strip()
    call("delete", path="sub/")

    assert not (here / "a.txt").exists()
    assert (here / ".trash/a.txt").read_text() == "a.txt"
    assert (here / place).read_text() == "second"
    assert (here / ".trash/sub/deep/d.txt").exists()
    for path in (".", "./", str(here), ".trash", ".trash/a.txt"):
        with pytest.raises(ToolFailure) as failure:
            call("delete", path=path)
        assert failure.value.error_class == "refused"
    (here / "link").symlink_to("b.TXT")
    call("delete", path="link")
    assert (here / "b.TXT").exists()


def test_reading_has_a_limit_that_names_the_way_out(call, here):
    """A model is not given a gigabyte."""
    (here / "big").write_bytes(b"x" * (1024 * 1024 + 1))

    assert call("read_file", path="a.txt") == b"a.txt"
    with pytest.raises(ToolFailure, match="take a part with first_lines"):
        call("read_file", path="big")
    assert call("file_size", path="big") == b"1048577\n"
    assert int(call("file_size", path="sub")) == len("sub/c.txt") + len("sub/deep/d.txt")


def test_text_is_appended_as_a_line_of_its_own(call, here):
    """Also after a last line without an end, and to a file that is not there yet."""
    for path in ("a.txt", "new/list.txt"):
        call("append_text", path=path, text="one")
        call("append_text", path=path, text="two\n")

    assert (here / "a.txt").read_text() == "a.txt\none\ntwo\n"
    assert (here / "new/list.txt").read_text() == "one\ntwo\n"
    call("append_text", path="a.txt", text="three", output="copy.txt")
    assert (here / "copy.txt").read_text() == "a.txt\none\ntwo\nthree\n"
    assert (here / "a.txt").read_text() == "a.txt\none\ntwo\n"


def test_a_file_is_written_whole_or_not_at_all(here):
    """A failure half-way leaves what was there, and no draft; mode and link stay."""
    (here / "a.txt").chmod(0o640)
    (here / "link").symlink_to("a.txt")

    def half():
        yield b"half"
        raise ToolFailure("internal", "broken")

    with pytest.raises(ToolFailure):
        replace_file("a.txt", half())
    before = sorted(here.iterdir())
    assert (here / "a.txt").read_text() == "a.txt"
    replace_file("link", [b"new"])

    assert (here / "link").is_symlink()
    assert (here / "a.txt").read_bytes() == b"new"
    assert (here / "a.txt").stat().st_mode & 0o777 == 0o640
    assert sorted(here.iterdir()) == before
    with pytest.raises(ToolFailure, match="is a folder"):
        replace_file("sub", [b""])
