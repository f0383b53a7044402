"""`openry snapshot`: what a person types, and what is refused."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from openry import cli
from openry.config import load_config
from openry.errors import SnapshotError
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.models import RunContext
from openry.session import contents
from openry.session.keeper import Keeper
from openry.session.snapshot import SnapshotStore


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path / "home"))
    for name in ("OPENRY_DB", "OPENRY_RUN_ID", "OPENRY_SOCKET", "OPENRY_RUN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def workspace(tmp_path, home):
    folder = tmp_path / "ws"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture
def said(capfd):
    """Runs a form; its exit status, what it wrote, what it complained of."""

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(["snapshot", *map(str, words)])
        out, err = capfd.readouterr()
        return status, out, err

    return run


def kept(said, workspace) -> str:
    return json.loads(said("create", "--dir", workspace, "--json")[1])["snapshot"]


def test_create_prints_four_keys(said, workspace):
    """`create --json` says snapshot, files, bytes and seconds, and nothing else."""
    status, out, err = said("create", "--dir", workspace, "--json")

    found = json.loads(out)
    assert status == 0
    assert err == ""
    assert list(found) == ["snapshot", "files", "bytes", "seconds"]
    assert (found["files"], found["bytes"]) == (1, 4)


def test_what_was_kept_is_listed_told_apart_and_brought_back(said, workspace):
    """create, list, diff and restore go together; ids may be short."""
    first = kept(said, workspace)
    (workspace / "b.txt").write_text("two\n")
    second = kept(said, workspace)

    assert [row["snapshot"] for row in json.loads(said("list", "--json")[1])] == [second, first]
    changes = json.loads(said("diff", first[:8], second[:8], "--json")[1])
    assert changes == [{"change": "added", "path": "b.txt"}]
    assert said("restore", first[:8])[0] == 0
    assert sorted(p.name for p in workspace.iterdir()) == ["a.txt", "sub"]
    assert said("restore", second)[0] == 0, "what is there now has a snapshot: nothing is lost"


def test_a_clock_that_goes_backwards_hides_nothing(said, workspace, monkeypatch):
    """What changes after the clock was set back is kept, and the newest is listed first."""
    true_ns, ids = time.time_ns, []
    for hours, text in ((2, "one\n"), (0, "two\n"), (-2, "six\n")):
        set_ns = hours * 3_600_000_000_000
        monkeypatch.setattr("time.time_ns", lambda by=set_ns: true_ns() + by)
        monkeypatch.setattr("time.time", lambda by=set_ns: (true_ns() + by) / 1e9)
        at = f"2026-03-01T{12 + hours:02}:00:00.000Z"
        monkeypatch.setattr("openry.session.keeper.ledger_now", lambda _, at=at: at)
        (workspace / "a.txt").write_text(text)
        ids.append(kept(said, workspace))

    assert json.loads(said("gc", "--json")[1])["snapshots"] == 0
    assert [row["snapshot"] for row in json.loads(said("list", "--json")[1])] == ids[::-1]
    for number, text in enumerate(("one\n", "two\n", "six\n")):
        assert said("restore", ids[number])[0] == 0
        assert (workspace / "a.txt").read_text() == text


def test_changes_that_nobody_kept_are_not_overwritten(said, workspace):
    """Refused with what would be lost; `--force` keeps them first, and says where."""
    first = kept(said, workspace)
    (workspace / "a.txt").write_text("edited\n")

    status, _, err = said("restore", first)
    assert status == 2
    assert "changed `a.txt`; keep them with `openry snapshot create`, or restore with" in err
    assert (workspace / "a.txt").read_text() == "edited\n"

    status, out, _ = said("restore", first, "--force", "--json")
    assert (status, (workspace / "a.txt").read_text()) == (0, "one\n")
    assert said("restore", json.loads(out)["saved"])[0] == 0
    assert (workspace / "a.txt").read_text() == "edited\n"


def test_a_folder_at_work_is_not_taken_away(said, workspace, home):
    """While a command of this ledger runs in it, a restore is refused and names the command."""
    first = kept(said, workspace)
    with FastLedger(home / "openry.db") as ledger:
        ledger.begin(RunContext(), "sleep 60", cwd=str(workspace / "sub"))

    status, _, err = said("restore", first)

    assert status == 2
    assert "command 1 (`sleep 60`) is at work in" in err
    assert said("restore", first, "--to", workspace.parent / "copy")[0] == 0


def test_a_command_whose_process_is_gone_holds_nothing(said, workspace, home):
    """A row that a killed hand left behind does not keep a folder for ever."""
    first = kept(said, workspace)
    code = (
        "import os, sys; from openry.ledger.fast import FastLedger; from openry.models import"
        " RunContext; FastLedger(sys.argv[1]).begin(RunContext(), 'x', cwd=sys.argv[2]);"
        " os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, home / "openry.db", workspace], check=True)

    assert said("restore", first)[0] == 0


def test_gc_takes_what_nothing_leads_to(said, workspace, home):
    """Rows keep their snapshots; one without a row goes, with the contents only it had."""
    first = kept(said, workspace)
    (workspace / "b.txt").write_text("of nobody")
    orphan = SnapshotStore(home / "snapshots").create(workspace).id

    assert json.loads(said("gc", "--json")[1])["snapshots"] == 0, "it is too young"
    found = json.loads(said("gc", "--all", "--dry-run", "--json")[1])
    assert (found["snapshots"], found["objects"]) == (1, 1)
    assert said("gc", "--all")[0] == 0
    assert SnapshotStore(home / "snapshots").ids() == (first,)
    assert orphan != first
    assert kept(said, workspace) == orphan, "what was forgotten is kept anew"
    assert said("restore", orphan)[0] == 0


def test_the_oldest_go_beyond_the_limit(said, workspace, home):
    """`retention.snapshots` keeps the newest that fit."""
    ids = []
    for _ in range(3):
        (workspace / "a.txt").write_bytes(os.urandom(8000))
        ids.append(kept(said, workspace))
    (home / "config.yaml").write_text("retention: {snapshots: 20 KiB}\n")

    said("gc", "--all")

    assert [row["snapshot"] for row in json.loads(said("list", "--json")[1])] == [ids[2], ids[1]]
    assert set(SnapshotStore(home / "snapshots").ids()) == set(ids[1:])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("restore", "ffffffff"),
            "there is no snapshot `ffffffff`: it never was, or it was removed;",
        ),
        (("restore", "../../etc"), "there is no snapshot `../../etc`"),
        (("diff", "a", "b"), "there is no snapshot `a`"),
        (("create", "--dir", "/nowhere"), "`/nowhere` does not exist, so there is nothing to"),
        (("create", "--dri", "x"), "unknown option `--dri`"),
        (("frob",), "there is no `openry snapshot frob`"),
        ((), "missing "),
    ],
)
def test_mistakes_are_one_sentence(said, home, words, sentence):
    """What cannot be done is said in one line, with exit status 2."""
    status, out, err = said(*words)

    assert (status, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_what_is_no_file_is_left_out_and_named(said, workspace):
    """A pipe is no content; the snapshot is made and standard error says what is missing."""
    os.mkfifo(workspace / "pipe")

    status, out, err = said("create", "--dir", workspace, "--json")

    assert status == 0
    assert json.loads(out)["files"] == 1
    assert err == "openry: left out (no file): `pipe`\n"


def test_caches_are_no_part_of_it(said, workspace):
    """Caches are left where they are, and named temporary folders are emptied first."""
    (workspace / "__pycache__").mkdir()
    (workspace / "__pycache__" / "m.pyc").write_text("x")
    first = kept(said, workspace)
    (workspace / "a.txt").unlink()

    said("restore", first, "--force")

    assert (workspace / "__pycache__" / "m.pyc").read_text() == "x"
    assert (workspace / "a.txt").exists()


def test_temporary_folders_are_emptied_first(said, workspace, home):
    """`snapshot.clean` names folders whose contents are nobody's; links are not followed."""
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    (workspace / "tmp").mkdir()
    (workspace / "tmp" / "scratch").touch()
    (workspace / "link").symlink_to(outside)
    home.mkdir()
    (home / "config.yaml").write_text("snapshot: {clean: [tmp, link, ../outside/../outside]}\n")

    status, _, err = said("create", "--dir", workspace)

    assert status == 2, "a folder outside is refused"
    assert "is no folder inside the workspace" in err
    assert (outside / "precious").exists()
    assert not any((workspace / "tmp").iterdir())


# --- the store at its limits ----------------------------------------------------------------


@pytest.mark.parametrize("alone", [0, 32])
def test_a_full_disk_leaves_no_half_snapshot(workspace, tmp_path, monkeypatch, alone):
    """One sentence, the space given back, and what was kept before is as it was."""
    monkeypatch.setattr(contents, "_ALONE", alone)
    store = SnapshotStore(tmp_path / "store")
    store.create(workspace)
    before = sorted(store.root.rglob("*"))
    for number in range(9):
        (workspace / f"{number}").write_bytes(os.urandom(3000))
    real, written = os.write, 0

    def full(descriptor: int, data: bytes) -> int:
        nonlocal written
        written += len(data)
        if written > 10_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SnapshotError, match="No space left on device; check space"):
        store.create(workspace)

    assert sorted(store.root.rglob("*")) == before


def before_batch(store: SnapshotStore, monkeypatch, act: Callable[[], object]) -> None:
    """Do something just before the store is held by who records next."""
    real = store._contents.batch

    def batch():
        monkeypatch.setattr(store._contents, "batch", real)
        act()
        return real()

    monkeypatch.setattr(store._contents, "batch", batch)


def test_what_was_remembered_before_a_tidying_is_not_believed(workspace, tmp_path, monkeypatch):
    """Whoever waits for a collection to end records contents that are there."""
    store, target = SnapshotStore(tmp_path / "store"), tmp_path / "target"
    for path in (workspace / "a.txt", workspace / "sub", workspace):
        os.utime(path, (1e9, 1e9))
    monkeypatch.setattr("openry.session.memory._TICK_NS", -(10**9))
    store.create(workspace)
    (workspace / "b.txt").write_text("two\n")
    before_batch(store, monkeypatch, lambda: store.collect((), young_s=-1))

    store.restore(store.create(workspace).id, target)

    assert (target / "a.txt").read_text() == "one\n"


def test_a_snapshot_that_is_made_again_is_young_again(workspace, tmp_path, monkeypatch):
    """Its row is about to be written, as that of a new one."""
    monkeypatch.setattr("openry.session.memory._TICK_NS", -(10**9))
    store = SnapshotStore(tmp_path / "store")
    made = store.create(workspace).id
    os.utime(store.root / "trees" / made, (1e9, 1e9))

    assert store.create(workspace).id == made
    store.collect((), young_s=60)

    assert store.ids() == (made,)


def test_a_batch_that_was_swept_away_before_it_was_held_is_made_again(
    workspace, tmp_path, monkeypatch
):
    """Two who begin at once do not clear each other's folder away."""
    store = SnapshotStore(tmp_path / "store")
    store.create(workspace)
    (workspace / "a.txt").write_text("two\n")
    real, swept = contents.flock, []

    def flock(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not swept:
            swept.extend((store.root / "new").iterdir())
            swept[0].rmdir()
        real(descriptor, how)

    monkeypatch.setattr(contents, "flock", flock)

    assert store.read(store.create(workspace).id, "a.txt") == b"two\n"
    assert len(swept) == 1


def test_a_file_that_changes_while_it_is_read_is_read_again(workspace, tmp_path, monkeypatch):
    """What was torn is not kept: the content and its size belong together."""
    store = SnapshotStore(tmp_path / "store")
    path, real, reads = workspace / "a.txt", os.read, []

    def read(descriptor: int, most: int) -> bytes:
        data = real(descriptor, most)
        if data == b"one\n" and not reads:
            reads.append(data)
            path.write_text("longer than before\n")
        return data

    monkeypatch.setattr(os, "read", read)
    made = store.create(workspace)

    assert store.read(made.id, "a.txt") == b"longer than before\n"
    assert made.unsteady == ()


def test_a_file_that_never_stands_still_is_named(workspace, tmp_path, monkeypatch):
    """A log somebody writes to is kept as last read, and said to be that."""
    store = SnapshotStore(tmp_path / "store")
    real = os.read

    def read(descriptor: int, most: int) -> bytes:
        data = real(descriptor, most)
        with (workspace / "a.txt").open("a") as log:
            log.write("more\n" * 60_000)
        return data

    monkeypatch.setattr(os, "read", read)
    made = store.create(workspace)

    assert made.unsteady == ("a.txt",)
    assert made.files == 1


@pytest.mark.parametrize(
    "size", [60_000_000, pytest.param(3_000_000_000, marks=pytest.mark.long, id="huge")]
)
def test_a_huge_file_of_holes_takes_no_room(workspace, tmp_path, size):
    """3 GB with a few bytes in them come back as they were, holes and all."""
    with (workspace / "huge").open("wb") as file:
        file.write(b"begin")
        file.seek(size // 2)
        file.write(b"middle")
        file.truncate(size)
    store = SnapshotStore(tmp_path / "store")
    made = store.create(workspace)
    store.restore(made.id, tmp_path / "copy")

    copy = tmp_path / "copy" / "huge"
    assert (copy.stat().st_size, copy.stat().st_mtime_ns) == (
        size,
        (workspace / "huge").stat().st_mtime_ns,
    )
    assert copy.stat().st_blocks * 512 < 1_000_000
    assert sum(store.sizes().values()) < 1_000_000
    with copy.open("rb") as file:
        file.seek(size // 2)
        assert file.read(7) == b"middle\0"


def test_a_change_that_leaves_size_and_time_is_seen(workspace, tmp_path):
    """Whoever sets a file's time back is found out by the system's own time of change."""
    store = SnapshotStore(tmp_path / "store")
    path = workspace / "a.txt"
    os.utime(path, ns=(5, 5))
    ids = []
    for text in ("one\n", "two\n", "six\n"):
        path.write_text(text)
        os.utime(path, ns=(5, 5))
        ids.append(store.create(workspace).id)

    assert [store.read(one, "a.txt") for one in ids] == [b"one\n", b"two\n", b"six\n"]


@pytest.mark.parametrize("text", ["", "{", '{"version": 1}', '{"version": 1, "rows": [[1]]}'])
def test_a_broken_memory_is_no_memory(workspace, tmp_path, text):
    """What a folder looked like is only remembered to save time: broken, all is read again."""
    store = SnapshotStore(tmp_path / "store")
    first = store.create(workspace)
    for path in (store.root / "index").iterdir():
        path.write_text(text)

    assert store.create(workspace).id == first.id


def test_two_restore_one_folder_one_after_the_other(workspace, tmp_path):
    """Whoever comes second waits; the folder is one of both trees, and nothing is left over."""
    store, ids = SnapshotStore(tmp_path / "store"), []
    for text in ("one", "other"):
        for number in range(40):
            (workspace / f"{number}").write_text(text)
        ids.append(store.create(workspace).id)
    errors: list[BaseException] = []

    def work(snapshot_id: str) -> None:
        try:
            for _ in range(3):
                store.restore(snapshot_id, workspace)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert store.create(workspace).id in ids
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store", "ws"]


def test_two_sessions_restore_one_workspace_one_after_the_other(said, workspace, tmp_path):
    """Two programs at once: each is told that it is done, and the folder is one tree, whole."""
    ids = []
    for text in ("one", "other"):
        for number in range(40):
            (workspace / f"{number}").write_text(text)
        ids.append(kept(said, workspace))
    code = (
        "import sys; from openry import cli\nfor _ in range(3):"
        " assert cli.main(['snapshot', 'restore', sys.argv[1], '--force']) == 0"
    )
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen([sys.executable, "-c", code, one], stdout=quiet) for one in ids]

    assert [each.wait() for each in running] == [0, 0]

    assert len({(workspace / f"{number}").read_text() for number in range(40)}) == 1
    assert kept(said, workspace) in ids
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "ws"]


def test_a_row_that_cannot_be_written_is_no_snapshot(workspace, home, monkeypatch):
    """Workspace and row go together: without the row nothing is listed."""
    home.mkdir()
    config = load_config()
    with Ledger(config.ledger) as ledger:
        keeper = Keeper(config, ledger)
        monkeypatch.setattr("openry.session.keeper.add_snapshot", _fail)
        with pytest.raises(OSError, match="no"):
            keeper.keep(workspace)

        assert keeper.rows() == ()


def _fail(*_: object) -> None:
    raise OSError("no")


def crash_after(steps: int, act: Callable[[], object]) -> bool:
    """Let a process die before its `steps`-th call that touches files; False when it lived."""
    child = os.fork()
    if child == 0:
        left = [steps]

        def hook(event: str, _: object) -> None:
            if event == "open" or event.startswith(("os.", "shutil.", "fcntl.")):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)

        sys.addaudithook(hook)
        act()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("alone", [0, 32])
@pytest.mark.parametrize("act", ["create", "restore", "restore with files lent", "collect"])
def test_a_crash_at_any_step_leaves_the_old_or_the_new(tmp_path, monkeypatch, act, alone):
    """Killed before each call in turn: the folder is one tree or the other, the store is sound."""
    monkeypatch.setattr(contents, "_ALONE", alone)
    if act == "restore with files lent":
        monkeypatch.setattr("openry.session.memory._TICK_NS", -(10**9))
    folder = tmp_path / "ws"
    (folder / "deep").mkdir(parents=True)
    (folder / ".openry").mkdir()
    (folder / "deep" / "a").write_text("old")
    (folder / "same").write_text("in both")
    store = SnapshotStore(tmp_path / "store")
    old = store.create(folder).id
    (folder / "deep" / "a").write_text("newer")
    (folder / "b").write_bytes(bytes(9000))
    new = store.create(folder).id
    steps = 0
    while steps < 500:
        if act == "create":
            (folder / "c").write_text(f"{steps}")
            if not crash_after(steps, lambda: store.create(folder)):
                break
            assert all(store.read(one, "deep/a") for one in store.ids())
            store.create(folder)
            assert not any((store.root / "new").iterdir())
        elif act == "collect":
            (folder / "c").write_text(f"{steps}")
            gone = store.create(folder).id
            if not crash_after(steps, lambda: store.collect([old, new], young_s=-1)):
                assert gone not in store.ids()
                break
            assert store.read(old, "deep/a") == b"old"
            assert store.read(new, "b") == bytes(9000)
            assert all(store.read(one, "c") for one in store.ids() if one not in (old, new))
        else:
            if not crash_after(steps, lambda: store.restore(old, folder)):
                break
            found = store.create(folder).id
            assert any(not store.diff(found, one) for one in (old, new)), steps
            store.restore(new, folder)
            assert (folder / ".openry").is_dir()
            assert all((folder / name).stat().st_nlink == 1 for name in ("same", "deep/a", "b"))
        steps += 1
    assert 10 < steps < 500
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store", "ws"]


@pytest.mark.parametrize("words", [("restore", ""), ("diff", "", ""), ("diff", "ID", "")])
def test_an_empty_id_means_no_snapshot(said, workspace, words):
    """Every id begins with nothing, so it says nothing: usage, exit 2, and nothing is changed."""
    kept_id = kept(said, workspace)
    (workspace / "a.txt").write_text("two\n")

    status, out, err = said(*(kept_id if word == "ID" else word for word in words))

    assert (status, out.count("id of the snapshot is empty") + err.count("is empty")) == (2, 1)
    assert (workspace / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    "words",
    [
        ("session", "show", ""), ("session", "end", ""), ("session", "suspend", ""),
        ("session", "list", "--state", ""), ("snapshot", "list", "--instance", ""),
        ("trust", ""), ("capability", "show", ""), ("secret", "remove", ""),
    ],
)  # fmt: skip
def test_an_empty_name_is_nobodys(home, workspace, said, capfd, words):
    """A script's empty variable never means all of them, the first one, or where we stand."""
    kept(said, workspace)

    assert cli.main([*words]) == 2
    assert "``" in (told := "".join(capfd.readouterr())) or "is empty" in told


def test_the_states_of_a_session_are_named(home, capfd):
    """A state that none is ever in is refused with those that there are."""
    assert cli.main(["session", "list", "--state", "nope"]) == 2

    said = "".join(capfd.readouterr())
    assert (
        "--state cannot be `nope` (there are initialised, running, suspended, ended, completed,"
        " failed, aborted)"
    ) in said
