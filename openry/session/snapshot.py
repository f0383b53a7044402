"""Snapshots of a workspace: what was in it, kept by content, and put back whole."""

# A workspace has thousands of entries, and a Path for each of them would double the time.
# ruff: noqa: PTH101, PTH102, PTH104, PTH115, PTH211

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_SH, flock
from hashlib import blake2b
from pathlib import Path

from openry.clock import Monotonic, monotonic
from openry.errors import NotFoundError, SnapshotError
from openry.session.contents import READ, Batch, Contents, Digests
from openry.session.memory import Memory
from openry.session.packs import write_all
from openry.session.swap import put_in_place, stage_for, sweep
from openry.session.tree import (
    CACHES,
    IGNORED,
    Change,
    Entry,
    Found,
    Tree,
    compare,
    is_ignored,
    show,
    unreadable,
    walk,
)

_ID = re.compile(r"[0-9a-f]{32}")
#: How often a file is read again that was written to meanwhile.
_READINGS = 3
_ZEROS = bytes(1 << 16)
_KINDS = {"d": stat.S_IFDIR, "f": stat.S_IFREG, "l": stat.S_IFLNK}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree that was recorded. Equal trees have equal ids.

    Attributes:
        files: Number of regular files.
        bytes: Their sizes, added up.
        skipped: Sockets, pipes and devices: a snapshot has none of them.
        unsteady: Files that were written to each time they were read: kept as last read.
    """

    id: str
    files: int
    bytes: int
    seconds: float
    skipped: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Freed:
    """What went when a store was tidied up, or would go."""

    snapshots: int
    objects: int
    bytes: int


class SnapshotStore:
    """Snapshots under `root`: each content once, in `objects/` or a pack; trees as lists.

    Kept: contents, empty folders, symbolic links, modes, times of change, names in any encoding.
    Not kept: owners, hard links (they become copies), what is `ignored` at any depth. A file of
    holes comes back with holes.

    A file that looks as when it was last read (size, times, inode) is not read again.
    """

    def __init__(
        self,
        root: Path,
        *,
        ignored: Collection[str] = CACHES,
        clock: Monotonic = monotonic,
    ) -> None:
        self.root = Path(root)
        self._trees = self.root / "trees"
        self._contents = Contents(os.fspath(self.root))
        self._ignored = frozenset((IGNORED, *ignored))
        self._clock = clock

    def create(self, folder: Path) -> Snapshot:
        """Record what is in `folder`: all of it, or nothing is kept.

        Raises:
            SnapshotError: `folder` is none, something in it cannot be read, or `root` not written.
        """
        begun = self._clock()
        with _own_trouble(self.root):
            self._make_folders()
            place = os.path.realpath(_existing(folder))
            with self._contents.batch() as batch:
                # Read while nobody tidies up: what is remembered is there then.
                memory = Memory(f"{self.root}/index", place, self._ignored)
                look = _Look(batch, memory)
                tree = look.at(walk(Path(place), avoid=self.root, ignored=self._ignored))
                snapshot_id = self._known(look, tree) or self._keep_tree(batch, tree)
                if look.is_news:
                    memory.keep(batch, snapshot_id, tree)
        sizes = [entry.size for entry in tree.values() if entry.kind == "f"]
        seconds = self._clock() - begun
        told = (tuple(sorted(look.skipped)), tuple(sorted(look.unsteady)))
        return Snapshot(snapshot_id, len(sizes), sum(sizes), seconds, *told)

    def look(self, folder: Path) -> Tree:
        """What is in a folder now; nothing is kept.

        Raises:
            SnapshotError: Something in it cannot be read.
        """
        with _own_trouble(self.root):
            place = os.path.realpath(_existing(folder))
            memory = Memory(f"{self.root}/index", place, self._ignored)
            walked = walk(Path(place), avoid=self.root, ignored=self._ignored)
            return _Look(Digests(), memory).at(walked)

    def restore(
        self, snapshot_id: str, to: Path, *, ready: Callable[[], object] = lambda: None
    ) -> None:
        """Make `to` what it was; it need not exist. What is ignored in it stays as it is.

        The new tree is built aside and then takes the old one's place in one step. (Where `to` is
        a mount point, or its parent may not be written, its entries are exchanged one by one.)
        Files that nobody touched since they were recorded are taken over, all others written anew.
        Who restores the same folder meanwhile waits.

        Args:
            ready: Called before anything is changed; what it raises ends this.

        Raises:
            NotFoundError: There is no such snapshot.
            SnapshotError: It is damaged, or `to` cannot be written; `to` is as it was.
        """
        tree = self.tree(snapshot_id)
        target = Path(os.path.realpath(to))
        if target.exists() and not target.is_dir():
            raise SnapshotError(
                f"`{show(os.fspath(to))}` is not a folder; restore into another one"
            )
        with _own_trouble(target), self._alone_at(target):
            ready()
            with self._contents.held(LOCK_SH):
                target.parent.mkdir(parents=True, exist_ok=True)
                sweep(target, self._ignored)
                memory = Memory(f"{self.root}/index", str(target), self._ignored)
                with stage_for(target) as stage:
                    self._build(tree, stage / "tree", _There(target, memory))
                    put_in_place(stage / "tree", target, self._ignored)
            if memory.snapshot_id:  # it is a folder that is recorded now and then
                with suppress(OSError):  # not remembered, all is read again: that costs time alone
                    self._remember(memory, snapshot_id, tree, target)

    def diff(self, before: str, after: str) -> tuple[Change, ...]:
        """What happened between two snapshots, sorted by path. Times alone are no change."""
        return compare(self.tree(before), self.tree(after))

    def tree(self, snapshot_id: str) -> Tree:
        """What a snapshot holds, by path.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        path = self._trees / snapshot_id
        if not _ID.fullmatch(snapshot_id) or not path.is_file():
            raise NotFoundError(f"no snapshot `{show(snapshot_id)}` in `{self.root}`")
        lines = json.loads(path.read_text("ascii"))
        return {name: Entry(*values) for name, *values in lines}

    def read(self, snapshot_id: str, path: str) -> bytes:
        """The content of a file as it was.

        Raises:
            NotFoundError: The snapshot has no such file.
        """
        entry = self.tree(snapshot_id).get(path)
        if entry is None or entry.kind != "f":
            raise NotFoundError(f"snapshot `{snapshot_id}` has no file `{show(path)}`")
        return b"".join(self._contents.chunks(entry.content))

    # --- keeping and forgetting -------------------------------------------------------------

    def ids(self) -> tuple[str, ...]:
        """Every snapshot that is kept here."""
        return tuple(sorted(p.name for p in self._trees.glob("*") if _ID.fullmatch(p.name)))

    def collect(self, keep: Collection[str], *, young_s: float, dry_run: bool = False) -> Freed:
        """Take away every snapshot not in `keep`, and every content that no snapshot has then.

        Args:
            young_s: One made since is kept: who made it may be about to write down that it is his.
        """
        with _own_trouble(self.root):
            if not self._trees.is_dir():
                return Freed(0, 0, 0)
            with self._contents.held(LOCK_EX):
                return self._collected(keep, young_s, dry_run)

    def _collected(self, keep: Collection[str], young_s: float, dry_run: bool) -> Freed:
        oldest_s = time.time() - young_s
        stay: list[str] = []
        go: list[str] = []
        for name in self.ids():
            made_s = (self._trees / name).stat().st_mtime
            (stay if name in keep or made_s > oldest_s else go).append(name)
        wanted = frozenset[str]().union(*map(self.contents_of, stay))
        if not dry_run:
            # First what leads to contents, then these: killed in between, nothing leads nowhere.
            for path in (self.root / "index").glob("*"):
                path.unlink()
            for name in go:
                (self._trees / name).unlink()
        return Freed(len(go), *self._contents.remove_all_but(wanted, dry_run=dry_run))

    # --- from one store to another ------------------------------------------------------------

    def listing(self, snapshot_id: str) -> bytes:
        """What a snapshot holds, as `Delivery.tree` takes it.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        self.tree(snapshot_id)
        return (self._trees / snapshot_id).read_bytes()

    def chunks(self, digest: str) -> Iterator[bytes]:
        """A content, in parts.

        Raises:
            SnapshotError: It is missing or damaged.
        """
        return self._contents.chunks(digest)

    @contextmanager
    def delivery(self) -> Iterator[Delivery]:
        """Snapshots of another store: all that come in are kept by `publish`, else none."""
        with _own_trouble(self.root):
            self._make_folders()
            with self._contents.batch() as batch:
                yield Delivery(batch, self._trees)

    def sizes(self) -> dict[str, int]:
        """What each content takes on the disk, in bytes."""
        return self._contents.sizes()

    def contents_of(self, snapshot_id: str) -> frozenset[str]:
        """The contents of a snapshot's files.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        entries = self.tree(snapshot_id).values()
        return frozenset(entry.content for entry in entries if entry.kind == "f")

    # --- recording --------------------------------------------------------------------------

    def _make_folders(self) -> None:
        for folder in (*reversed(self.root.parents), self.root, self._trees, self.root / "index"):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
        self._contents.make_folders()

    @contextmanager
    def _alone_at(self, target: Path) -> Iterator[None]:
        folder = self.root / "locks"
        folder.mkdir(mode=0o700, exist_ok=True)
        name = blake2b(os.fsencode(target), digest_size=16).hexdigest()
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(descriptor, LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _known(self, look: _Look, tree: Tree) -> str:
        """The snapshot that this folder was last time, if it still is that."""
        before = look.memory.snapshot_id
        if look.is_news or len(tree) != len(look.memory.entries):
            look.is_news = True
            return ""
        try:
            os.utime(self._trees / before)  # as young as a new one, for `collect`
        except FileNotFoundError:
            return ""
        return before

    def _keep_tree(self, batch: Batch, tree: Tree) -> str:
        lines = [[path, *tree[path]] for path in sorted(tree)]
        text = json.dumps(lines, separators=(",", ":")).encode("ascii")
        snapshot_id = blake2b(text, digest_size=16).hexdigest()
        place = f"{self._trees}/{snapshot_id}"
        written = batch.write(text)
        batch.publish()
        os.rename(written, place)
        return snapshot_id

    def _remember(self, memory: Memory, snapshot_id: str, tree: Tree, target: Path) -> None:
        """What a folder looks like that was just made."""
        for path, entry in tree.items():
            status = os.lstat(f"{target}/{path}" if path else target)
            if status.st_mode == _KINDS[entry.kind] | entry.mode:
                memory.note_made(path, entry, status)
        with self._contents.batch() as batch:
            memory.keep(batch, snapshot_id, tree)

    # --- putting back -----------------------------------------------------------------------

    def _build(self, tree: Tree, folder: Path, there: _There) -> None:
        """Make `tree` in the new `folder`. Folders get their modes and times last, inmost first."""
        root = os.fspath(folder)
        for path, entry in tree.items():
            place = f"{root}/{path}" if path else root
            if entry.kind == "d":
                os.mkdir(place, 0o700)
            elif entry.kind == "l":
                os.symlink(entry.content, place)
                os.utime(place, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)
            elif not there.lend(path, entry, place):
                self._build_file(place, entry)
        for path, entry in reversed(list(tree.items())):
            if entry.kind == "d":
                place = f"{root}/{path}" if path else root
                os.chmod(place, entry.mode)
                os.utime(place, ns=(entry.mtime_ns, entry.mtime_ns))

    def _build_file(self, place: str, entry: Entry) -> None:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for chunk in self._contents.chunks(entry.content):
                _write_or_skip(descriptor, chunk)
            if entry.size > len(_ZEROS):
                os.ftruncate(descriptor, entry.size)  # what ends with a hole is as long as it was
            os.fchmod(descriptor, entry.mode)
            os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(descriptor)


class Delivery:
    """Snapshots that come in from elsewhere; nothing of them is believed."""

    def __init__(self, batch: Batch, trees: Path) -> None:
        self._batch = batch
        self._folder = trees
        self._trees: dict[str, bytes] = {}
        self._wanted: dict[str, frozenset[str]] = {}

    def tree(self, snapshot_id: str, listing: bytes) -> None:
        """Take in what a snapshot holds.

        Raises:
            SnapshotError: It is not what its id says, or has a path that leads out of its folder.
        """
        if blake2b(listing, digest_size=16).hexdigest() != snapshot_id:
            raise SnapshotError(f"snapshot {snapshot_id[:16]} is not what its id says")
        entries = {name: Entry(*values) for name, *values in json.loads(listing)}
        for path, entry in entries.items():
            _check_entry(path, entry, entries)
        files = (entry.content for entry in entries.values() if entry.kind == "f")
        self._trees[snapshot_id], self._wanted[snapshot_id] = listing, frozenset(files)

    def content(self, digest: str, chunks: Iterator[bytes], size: int) -> None:
        """Take in a content.

        Raises:
            SnapshotError: It is not what its digest says.
        """
        found, came = self._batch.keep_stream(chunks, size)
        if (found, came) != (digest, size):
            raise SnapshotError(
                f"content {digest[:12]} is not what its name says, or was cut short"
            )

    def check(self, snapshot_id: str) -> None:
        """Whether all of a snapshot is here.

        Raises:
            SnapshotError: Something is missing.
        """
        if snapshot_id not in self._wanted:
            raise SnapshotError(f"snapshot {snapshot_id[:16]} is missing")
        missing = [one for one in self._wanted[snapshot_id] if not self._batch.has(one)]
        if missing:
            raise SnapshotError(f"{len(missing)} contents of {snapshot_id[:16]} are missing")

    def publish(self) -> None:
        written = {name: self._batch.write(listing) for name, listing in self._trees.items()}
        self._batch.publish()
        for name, place in written.items():
            os.rename(place, self._folder / name)


def _check_entry(path: str, entry: Entry, entries: Tree) -> None:
    """Whether an entry may be built: in its folder, under folders alone, of a known kind."""
    parts = path.split("/") if path else []
    is_odd = any(part in ("", ".", "..") or "\0" in part for part in parts)
    parent = entries.get(path.rpartition("/")[0])
    under = path == "" or (parent is not None and parent.kind == "d")
    if (
        is_odd
        or not under
        or entry.kind not in ("d", "f", "l")
        or (path == "" and entry.kind != "d")
    ):
        raise SnapshotError(f"`{show(path)}` in a snapshot leads out of its folder, or is none")
    if is_ignored(parts[-1] if parts else "", (IGNORED,)):
        raise SnapshotError(f"`{show(path)}` is OpenRY's own and no part of a snapshot")
    if entry.kind == "f" and not re.fullmatch(r"[0-9a-f]{64}", entry.content):
        raise SnapshotError(f"`{show(path)}` in a snapshot has no content")


class _Look:
    """One look at a folder: what is in it, as entries, contents handed to `batch`.

    Attributes:
        is_news: Something is not as it was remembered.
    """

    def __init__(self, batch: Batch | Digests, memory: Memory) -> None:
        self.memory = memory
        self.skipped: list[str] = []
        self.unsteady: list[str] = []
        self.is_news = not memory.snapshot_id
        self._batch = batch

    def at(self, walked: Iterator[Found]) -> Tree:
        tree: dict[str, Entry] = {}
        entries = self.memory.entries
        for found in walked:
            status = found.status
            known = entries.get(found.path)
            if known is not None and known.is_of(status):
                tree[found.path] = known.entry
                continue
            entry = self._entry(found)
            if known is None or entry != known.entry or entry.kind == "f":
                self.is_news = True
            if entry is not None:
                tree[found.path] = entry
                if entry.kind != "f":
                    self.memory.note(found.path, status)
            elif not stat.S_ISREG(status.st_mode):
                self.skipped.append(found.path)
        return tree

    def _entry(self, found: Found) -> Entry | None:
        """What was found, its content kept; None for what is no file, folder or link (any more)."""
        mode, mtime_ns = stat.S_IMODE(found.status.st_mode), found.status.st_mtime_ns
        if stat.S_ISDIR(found.status.st_mode):
            return Entry("d", mode, mtime_ns, 0, "")
        if stat.S_ISLNK(found.status.st_mode):
            with suppress(OSError):  # it was a link, and is not one any more
                return Entry("l", mode, mtime_ns, 0, os.readlink(found.place))
        if stat.S_ISREG(found.status.st_mode):
            with suppress(FileNotFoundError):
                return self._file(found)
        return None

    def _file(self, found: Found) -> Entry | None:
        try:
            descriptor = os.open(found.place, READ)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise unreadable(found.place, error) from error
        try:
            before = os.fstat(descriptor)
            for _ in range(_READINGS):
                if not stat.S_ISREG(before.st_mode):
                    return None
                digest, size = self._batch.keep_file(descriptor, before.st_size)
                status = os.fstat(descriptor)
                if _stamp(status) == _stamp(before) and size == status.st_size:
                    self.memory.note(found.path, status)
                    break
                before = status
                os.lseek(descriptor, 0, os.SEEK_SET)
            else:
                self.unsteady.append(found.path)
                self.is_news = True
        finally:
            os.close(descriptor)
        return Entry("f", stat.S_IMODE(status.st_mode), status.st_mtime_ns, size, digest)


class _There:
    """The files that a folder has already, by what is remembered of it."""

    def __init__(self, folder: Path, memory: Memory) -> None:
        self._folder = os.fspath(folder)
        self._entries = memory.entries
        self._user = os.geteuid()

    def lend(self, path: str, entry: Entry, place: str) -> bool:
        """Give a file a second name at `place`, if it is `entry` still and has no other name."""
        known = self._entries.get(path)
        if known is None or known.entry != entry:
            return False
        there = f"{self._folder}/{path}"
        try:
            status = os.lstat(there)
            is_ours = (status.st_uid, status.st_nlink) == (self._user, 1)
            is_same = status.st_mode == stat.S_IFREG | entry.mode and known.is_of(status)
            if is_ours and is_same:
                os.link(there, place, follow_symlinks=False)
                return True
        except OSError:
            pass  # another file system, or one without links: then it is written anew
        return False


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _write_or_skip(descriptor: int, chunk: bytes) -> None:
    """Write a chunk; a long run of zeros is left as a hole."""
    if len(chunk) < len(_ZEROS):
        write_all(descriptor, chunk)
        return
    for start in range(0, len(chunk), len(_ZEROS)):
        part = chunk[start : start + len(_ZEROS)]
        if part == _ZEROS:
            os.lseek(descriptor, len(part), os.SEEK_CUR)
        else:
            write_all(descriptor, part)


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise SnapshotError(f"`{show(os.fspath(folder))}` {what}, so there is nothing to snapshot")
    return folder


@contextmanager
def _own_trouble(place: Path) -> Iterator[None]:
    """Give trouble with the store or the target our name."""
    try:
        yield
    except OSError as error:
        where = error.filename or os.fspath(place)
        shown = show(os.fsdecode(where) if isinstance(where, str | bytes) else str(place))
        raise SnapshotError(
            f"`{shown}`: {error.strerror}; check space and permissions there, then try again"
        ) from error
