"""A workspace comes back as it was kept."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openry.errors import NotFoundError, SnapshotError
from openry.session.snapshot import SnapshotStore
from openry.session.swap import remove_tree
from openry.session.tree import Change

NOBODY = 65534


@pytest.fixture
def tmp_path(open_place):
    """Some tests become another user, who must come this far."""
    return open_place


@pytest.fixture
def store(tmp_path):
    return SnapshotStore(tmp_path / "store")


@pytest.fixture
def workspace(tmp_path):
    """A folder with one of everything a snapshot keeps."""
    folder = tmp_path / "ws"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir(mode=0o711)
    (folder / "notes.txt").write_text("hello\n")
    (folder / "src" / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "src" / "deep" / "run.sh").chmod(0o750)
    (folder / "nothing").touch()
    (folder / "link").symlink_to("src/deep")
    (folder / "dangling").symlink_to("/nowhere/at all")
    os.close(os.open(bytes(folder) + b"/caf\xe9 \xff\n", os.O_CREAT))
    os.utime(folder / "notes.txt", ns=(1, 1_234_567_890_123_456_789))
    return folder


def contents(folder: Path) -> dict[str, tuple]:
    """All that is in a folder, by path: kind, mode, time, content."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        content = path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def test_a_restored_tree_is_the_same(store, workspace, tmp_path):
    """Contents, empty folders, links, modes, times and odd names all come back."""
    snapshot = store.create(workspace)
    store.restore(snapshot.id, tmp_path / "copy")

    assert contents(tmp_path / "copy") == contents(workspace)
    assert store.create(tmp_path / "copy").id == snapshot.id
    assert (snapshot.files, snapshot.bytes) == (4, 16)


def test_a_workspace_is_made_what_it_was(store, workspace):
    """What was changed, added or deleted since is undone."""
    before = contents(workspace)
    snapshot = store.create(workspace)
    (workspace / "notes.txt").write_text("changed")
    (workspace / "added").mkdir()
    shutil.rmtree(workspace / "src")
    (workspace / "src").write_text("a file now")

    store.restore(snapshot.id, workspace)

    assert contents(workspace) == before
    assert sorted(p.name for p in workspace.parent.iterdir()) == ["store", "ws"]


def test_a_copy_is_its_own(store, workspace, tmp_path):
    """Writing into a restored tree changes neither the original nor the store."""
    snapshot = store.create(workspace)
    store.restore(snapshot.id, tmp_path / "copy")
    (tmp_path / "copy" / "notes.txt").write_text("scribble")

    assert (workspace / "notes.txt").read_text() == "hello\n"
    assert store.read(snapshot.id, "notes.txt") == b"hello\n"


def test_equal_trees_share_an_id_and_their_contents(store, workspace):
    """Recording the same again stores nothing new."""
    first = store.create(workspace)
    kept = sorted(p for p in store.root.rglob("*"))

    assert store.create(workspace).id == first.id
    assert sorted(p for p in store.root.rglob("*")) == kept
    (workspace / "copy of notes").write_text("hello\n")
    store.create(workspace)
    assert len([p for p in (store.root / "objects").rglob("*") if p.is_file()]) == 3


def test_changes_are_named_by_path(store, workspace):
    """Added, changed and deleted; a touch is no change, a folder counts when it is empty."""
    before = store.create(workspace)
    (workspace / "notes.txt").write_text("new")
    (workspace / "nothing").unlink()
    (workspace / "new" / "inner").mkdir(parents=True)
    (workspace / "empty" / "full").touch()
    (workspace / "dangling").unlink()
    (workspace / "dangling").symlink_to("/elsewhere")
    (workspace / "src" / "deep" / "run.sh").chmod(0o700)
    os.utime(workspace / "src", ns=(5, 5))
    after = store.create(workspace)

    assert store.diff(before.id, after.id) == (
        Change("changed", "dangling"),
        Change("added", "empty/full"),
        Change("added", "new/inner"),
        Change("changed", "notes.txt"),
        Change("deleted", "nothing"),
        Change("changed", "src/deep/run.sh"),
    )
    assert store.diff(after.id, after.id) == ()


def test_the_tool_s_own_folder_is_no_part_of_it(store, workspace):
    """`.openry` is not recorded, and a restore leaves it as it is, at whatever depth."""
    for folder in (workspace, workspace / "src"):
        (folder / ".openry").mkdir()
        (folder / ".openry" / "config").write_text("before")
    times = (workspace / "src").stat().st_mtime_ns
    snapshot = store.create(workspace)
    for folder in (workspace, workspace / "src"):
        (folder / ".openry" / "config").write_text("after")

    store.restore(snapshot.id, workspace)

    assert not any(".openry" in path for path in store.tree(snapshot.id))
    for folder in (workspace, workspace / "src"):
        assert (folder / ".openry" / "config").read_text() == "after"
    assert (workspace / "src").stat().st_mtime_ns == times


def test_a_nested_repository_is_kept_whole(store, workspace, tmp_path):
    """A `.git` is a folder like any other."""
    (workspace / "vendor" / ".git" / "refs").mkdir(parents=True)
    (workspace / "vendor" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    store.restore(store.create(workspace).id, tmp_path / "copy")

    assert contents(tmp_path / "copy") == contents(workspace)


def test_sockets_and_pipes_are_left_out(store, workspace):
    """What is no content is skipped and named; the walk does not wait on it."""
    os.mkfifo(workspace / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(workspace / "sock"))
    snapshot = store.create(workspace)
    listener.close()

    assert snapshot.skipped == ("pipe", "sock")
    assert not {"pipe", "sock"} & set(store.tree(snapshot.id))


def test_a_store_inside_the_workspace_does_not_hold_itself(workspace):
    """Wherever the store is, a snapshot of a folder round it ends."""
    store = SnapshotStore(workspace / "kept")
    first = store.create(workspace)

    assert store.create(workspace).files == first.files
    assert not any(path.startswith("kept") for path in store.tree(first.id))


def test_a_large_file_is_kept_in_parts(store, workspace, tmp_path):
    """A file of several megabytes comes back the same, and its content is checked."""
    big = os.urandom(1 << 20) * 3 + b"end"
    (workspace / "big").write_bytes(big)
    snapshot = store.create(workspace)
    store.restore(snapshot.id, tmp_path / "copy")

    assert (tmp_path / "copy" / "big").read_bytes() == big
    assert store.read(snapshot.id, "big") == big


def test_a_store_is_its_owner_s_alone(workspace, tmp_path):
    """Every folder that the store makes, also above it, is closed to others."""
    SnapshotStore(tmp_path / "home" / "snapshots").create(workspace)

    made = (tmp_path / "home", *(tmp_path / "home").rglob("*"))
    assert all(p.stat().st_mode & 0o077 == 0 for p in made)


@pytest.mark.parametrize("name", ["0" * 32, "", "../../etc/passwd", "é", "A" * 32])
def test_an_unknown_snapshot_is_named(store, workspace, name):
    """An id that nothing has, or that is none, is not found; nothing is touched."""
    store.create(workspace)
    before = contents(workspace)

    with pytest.raises(NotFoundError, match="no snapshot"):
        store.restore(name, workspace)
    with pytest.raises(NotFoundError, match="no snapshot"):
        store.diff(name, name)
    assert contents(workspace) == before


def test_an_unknown_file_is_named(store, workspace):
    """Reading what was not there, or was a folder, says so."""
    snapshot = store.create(workspace)

    for path in ("nowhere", "src"):
        with pytest.raises(NotFoundError, match=f"has no file `{path}`"):
            store.read(snapshot.id, path)


@pytest.mark.parametrize(("what", "why"), [("notes.txt", "is not a folder"), ("no", "not exist")])
def test_only_folders_can_be_recorded(store, workspace, what, why):
    """A file, or nothing, is said to be what it is."""
    with pytest.raises(SnapshotError, match=why):
        store.create(workspace / what)


def test_a_file_is_not_replaced_by_a_tree(store, workspace):
    """Restoring over a file is refused; the file stays."""
    snapshot = store.create(workspace)

    with pytest.raises(SnapshotError, match=r"notes.txt` is not a folder"):
        store.restore(snapshot.id, workspace / "notes.txt")
    assert (workspace / "notes.txt").read_text() == "hello\n"


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_a_damaged_snapshot_changes_nothing(store, workspace, harm):
    """A content that is gone or not what it was stops the restore before the exchange."""
    snapshot = store.create(workspace)
    digest = store.tree(snapshot.id)["notes.txt"].content
    object_path = store.root / "objects" / digest[:2] / digest[2:]
    object_path.unlink() if harm == "missing" else object_path.write_text("other")
    (workspace / "notes.txt").write_text("now")
    before = contents(workspace)

    with pytest.raises(SnapshotError, match="the snapshot is damaged"):
        store.restore(snapshot.id, workspace)
    assert contents(workspace) == before
    assert sorted(p.name for p in workspace.parent.iterdir()) == ["store", "ws"]


@pytest.fixture
def remembered(monkeypatch):
    """Files are remembered also when they were written a moment ago."""
    monkeypatch.setattr("openry.session.memory._TICK_NS", -(10**9))


@pytest.mark.usefixtures("remembered")
def test_a_file_that_nobody_touched_is_taken_over(store, workspace):
    """Rolled back, it is the same file with one name; what was touched is written anew."""
    before = contents(workspace)
    snapshot = store.create(workspace)
    inodes = {path: path.stat().st_ino for path in workspace.rglob("*") if path.is_file()}
    changed = workspace / "notes.txt"
    changed.write_text("another\n")
    os.utime(changed, ns=(1, 1_234_567_890_123_456_789))

    store.restore(snapshot.id, workspace)

    assert contents(workspace) == before
    files = [path for path in inodes if not path.is_symlink()]
    assert [path for path in files if path.stat().st_ino != inodes[path]] == [changed]
    assert all(path.stat().st_nlink == 1 for path in files)


def test_what_was_restored_is_remembered(store, workspace, monkeypatch):
    """Recorded again nothing is read, restored again nothing is written; a change is seen."""
    (workspace / "link").unlink()
    (workspace / "dangling").unlink()
    for path in workspace.rglob("*"):
        os.utime(path, (1e9, 1e9))
    snapshot = store.create(workspace)
    (workspace / "nothing").write_text("something")
    store.restore(snapshot.id, workspace)
    inodes = {path: path.stat().st_ino for path in workspace.rglob("*") if path.is_file()}

    with monkeypatch.context() as nothing_read:
        nothing_read.delattr("openry.session.contents.Batch.keep_file")
        assert store.create(workspace).id == snapshot.id
    for _ in range(2):
        store.restore(snapshot.id, workspace)
        assert {path: path.stat().st_ino for path in inodes} == inodes
    (workspace / "notes.txt").write_text("jello\n")

    assert store.diff(snapshot.id, store.create(workspace).id) == (Change("changed", "notes.txt"),)


def test_what_cannot_be_remembered_was_restored(store, workspace, monkeypatch):
    """A disk that is full by then costs the next one time, no more."""
    snapshot = store.create(workspace)

    def keep(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("openry.session.memory.Memory.keep", keep)
    before = contents(workspace)
    (workspace / "nothing").write_text("something")
    store.restore(snapshot.id, workspace)

    assert contents(workspace) == before


@pytest.mark.usefixtures("remembered")
def test_a_file_with_another_name_outside_comes_back_as_a_copy(store, workspace, tmp_path):
    """Whoever writes to it by that name later does not change the workspace."""
    os.link(workspace / "notes.txt", tmp_path / "outside")
    snapshot = store.create(workspace)
    store.restore(snapshot.id, workspace)

    (tmp_path / "outside").write_text("scribble")

    assert (workspace / "notes.txt").read_text() == "hello\n"


@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_files_cannot_be_taken_over_they_are_written(store, workspace, monkeypatch, code):
    """File systems without links have snapshots, too."""

    def link(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    before = contents(workspace)
    snapshot = store.create(workspace)
    monkeypatch.setattr(os, "link", link)
    store.restore(snapshot.id, workspace)

    assert contents(workspace) == before


def test_folders_that_may_not_be_written_come_and_go(store, workspace):
    """A read-only folder is restored with its files, replaced again, and cleared away."""
    (workspace / "src" / "deep").chmod(0o555)
    snapshot = store.create(workspace)
    before = contents(workspace)

    _as_somebody_else(workspace.parent, lambda: [store.restore(snapshot.id, workspace)] * 2)

    assert contents(workspace) == before
    assert sorted(p.name for p in workspace.parent.iterdir()) == ["store", "ws"]
    remove_tree(workspace)


@pytest.mark.parametrize("what", ["src/deep/run.sh", "src/deep"])
def test_what_cannot_be_read_is_named(store, workspace, what):
    """An unreadable file or folder is one sentence with what to do."""
    (workspace / what).chmod(0)

    said = _as_somebody_else(workspace.parent, lambda: store.create(workspace))

    assert said == (
        f"SnapshotError: `{workspace / what}` cannot be read (Permission denied), so no snapshot"
        " was made; make it readable, or move it out of the workspace"
    )
    (workspace / what).chmod(0o700)


def test_a_target_that_may_not_be_written_is_named(store, workspace, tmp_path):
    """Without permission the workspace stays as it was, and the sentence says where."""
    snapshot = store.create(workspace)
    before = contents(workspace)
    workspace.chmod(0o555)
    tmp_path.chmod(0o555)

    said = _as_somebody_else(None, lambda: store.restore(snapshot.id, workspace), tmp_path)

    tmp_path.chmod(0o755)
    assert said.startswith("SnapshotError: `")
    assert "Permission denied; check space and permissions there" in said
    workspace.chmod(0o755)
    assert contents(workspace).keys() == before.keys()


def _as_somebody_else(owned: Path | None, act, reachable: Path | None = None) -> str:
    """What `act` raises in a process that may not do everything, as root's may."""
    if os.geteuid() != 0:
        return _said(act)
    if owned is not None:
        for place in [owned, *owned.rglob("*")]:
            os.chown(place, NOBODY, NOBODY, follow_symlinks=False)
    else:
        for place in [reachable / "store", *(reachable / "store").rglob("*")]:
            place.chmod(place.stat().st_mode | 0o055)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, _said(act).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, encoding="utf-8") as pipe:
        return pipe.read()


def _said(act) -> str:
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


RESTORER = """
import os, sys
from pathlib import Path
from openry.session.snapshot import SnapshotStore
store, one, other, target = SnapshotStore(Path(sys.argv[1])), *sys.argv[2:4], Path(sys.argv[4])
while True:
    store.restore(one, target)
    store.restore(other, target)
"""


def test_kill_9_never_leaves_half_a_tree(store, tmp_path):
    """A restore killed at any moment leaves one tree or the other, and the next clears up."""
    target, ids = tmp_path / "ws", []
    for text in ("one", "other"):
        remove_tree(target) if target.exists() else None
        target.mkdir()
        for number in range(60):
            (target / f"{number}").write_text(text)
        ids.append(store.create(target).id)
    (target / ".openry").mkdir()
    for pause_s in (0.02, 0.05, 0.09, 0.13):
        argv = [sys.executable, "-c", RESTORER, store.root, *ids, target]
        restorer = subprocess.Popen(argv)
        begun = target.stat().st_ino
        while target.stat().st_ino == begun:
            time.sleep(0.005)
        time.sleep(pause_s)
        restorer.send_signal(signal.SIGKILL)
        restorer.wait()
        # (Killed while `.openry` was moved over, the folder's own time of change is a new one.)
        found = store.create(target).id
        assert any(not store.diff(known, found) for known in ids)

    store.restore(ids[0], target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store", "ws"]
    assert (target / ".openry").is_dir()


@pytest.mark.sandbox
def test_a_mount_point_is_restored_from_within(store, workspace, tmp_path):
    """Where the workspace itself cannot be replaced, as a mounted one, its entries are."""
    (workspace / ".openry").mkdir()
    before = contents(workspace)
    snapshot = store.create(workspace)
    (workspace / "notes.txt").write_text("changed")
    (workspace / "added").mkdir()
    code = (
        "import sys; from pathlib import Path; from openry.session.snapshot import SnapshotStore;"
        "SnapshotStore(Path(sys.argv[1])).restore(sys.argv[2], Path(sys.argv[3]))"
    )
    mounts = ["--dev-bind", "/", "/", "--bind", workspace, workspace]
    argv = ["bwrap", *mounts, sys.executable, "-c", code, store.root, snapshot.id, workspace]
    subprocess.run(argv, check=True)

    after = contents(workspace)
    assert {path: after[path] for path in before} == before
    assert after.keys() == before.keys()
