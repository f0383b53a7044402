"""Whatever a folder holds: recorded and put back, it is the same."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from openry.session import contents, memory
from openry.session.snapshot import SnapshotStore
from openry.session.tree import Entry, compare

ANY_NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: not set(name) & set(b"/\0") and name not in (b".", b"..", b".openry")
)
#: A folder of that name makes the one it is in a repository; the other is no UTF-8.
NAMES = st.one_of(ANY_NAMES, st.sampled_from([b".git", b"\xff\xfe"]))
#: A file that is mostly a hole, with a few bytes before and behind.
HOLES = st.integers(0, 300_000).map(lambda size: b"begin" + bytes(size) + b"end")
MODES = st.integers(0, 0o777).map(lambda mode: mode | 0o600)
TIMES = st.integers(0, 4_000_000_000_000_000_000)
FILES = st.tuples(st.just("file"), MODES, TIMES, st.one_of(st.binary(max_size=64), HOLES))
LINKS = st.tuples(st.just("link"), MODES, TIMES, NAMES)


def _folders(inside):
    children = st.dictionaries(NAMES, inside, max_size=4)
    return st.tuples(st.just("folder"), MODES.map(lambda mode: mode | 0o700), TIMES, children)


TREES = _folders(st.recursive(st.one_of(FILES, LINKS), _folders, max_leaves=12))


def make(node, place: Path) -> None:
    kind, mode, time_ns, inside = node
    if kind == "link":
        place.symlink_to(os.fsdecode(inside))
        os.utime(place, ns=(time_ns, time_ns), follow_symlinks=False)
        return
    if kind == "file":
        with place.open("wb") as file:
            file.write(inside[:64])
            file.seek(max(len(inside) - 3, file.tell()))
            file.write(inside[file.tell() :])
    else:
        place.mkdir()
        for name, child in inside.items():
            make(child, place / os.fsdecode(name))
    place.chmod(mode)
    os.utime(place, ns=(time_ns, time_ns))


def look(place: Path):
    """All that `make` made, read back."""
    status = place.lstat()
    mode, time_ns = status.st_mode & 0o7777, status.st_mtime_ns
    if place.is_symlink():
        return "link", time_ns, place.readlink()
    if place.is_file():
        return "file", mode, time_ns, place.read_bytes()
    return "folder", mode, time_ns, {child.name: look(child) for child in place.iterdir()}


@settings(max_examples=40, deadline=None)
@given(TREES, TREES, st.sampled_from([0, 32]))
def test_putting_back_what_was_recorded_changes_nothing(one, other, alone):
    """restore(create(x)) is x, into a new folder and over any other tree; packed or not."""
    with tempfile.TemporaryDirectory() as folder, patch.object(contents, "_ALONE", alone):
        home = Path(folder)
        store = SnapshotStore(home / "store")
        make(one, home / "one")
        make(other, home / "other")
        before = look(home / "one")
        snapshot = store.create(home / "one")

        store.restore(snapshot.id, home / "new")
        store.restore(snapshot.id, home / "other")

        assert look(home / "new") == before
        assert look(home / "other") == before
        assert look(home / "one") == before
        assert store.create(home / "other").id == snapshot.id


def files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file() and not path.is_symlink())


@settings(max_examples=40, deadline=None)
@given(TREES, st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_whatever_was_touched_comes_back(tree, longer, gone):
    """Files taken over and files written anew are together what was recorded, each with one name.

    What was touched has another size: within the same moment nothing else would show it.
    """
    moment = patch.object(memory, "_TICK_NS", -(10**9))
    with tempfile.TemporaryDirectory() as folder, moment:
        home = Path(folder)
        store = SnapshotStore(home / "store")
        make(tree, home / "ws")
        before = look(home / "ws")
        snapshot = store.create(home / "ws")
        for place, path in enumerate(files(home / "ws")):
            if place in gone:
                path.unlink()
            elif place in longer:
                path.write_bytes(path.read_bytes() + b"more")

        store.restore(snapshot.id, home / "ws")

        assert look(home / "ws") == before
        assert all(path.stat().st_nlink == 1 for path in files(home / "ws"))


ENTRIES = st.builds(
    Entry,
    st.sampled_from("fl"),
    st.just(0o644),
    st.integers(0, 9),
    st.just(0),
    st.sampled_from("ab"),
)
FLAT = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), ENTRIES, max_size=4)


@given(FLAT, FLAT)
def test_changes_say_all_and_nothing_else(before, after):
    """Applying the named changes to the one tree gives the other, up to times."""
    changes = {change.path: change.kind for change in compare(before, after)}
    made = {path: entry for path, entry in before.items() if changes.get(path) != "deleted"}
    made |= {path: after[path] for path, kind in changes.items() if kind != "deleted"}

    assert made.keys() == after.keys()
    assert all(made[path].same_as(after[path]) for path in after)
    assert all(path in before for path, kind in changes.items() if kind != "added")


@given(FLAT)
def test_nothing_happened_to_what_is_the_same(tree):
    """No tree differs from itself."""
    assert compare(tree, tree) == ()
