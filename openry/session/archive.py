"""A session in one file: state and rows as JSON, its snapshots with their contents; tar and zstd.

Nothing live is in it: sandboxes and processes are made anew where it goes on. What is read from an
archive is checked before it is used: names of members are ours, contents are what their digests
say, and no path leads out of its folder.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from openry import __version__
from openry.config import Config
from openry.errors import BadFileError, OpenRYError, SnapshotError, UsageError
from openry.files import must_be_file
from openry.ledger.db import Ledger
from openry.ledger.instances import Instance, get_instance
from openry.ledger.journal import Transaction, ledger_now
from openry.ledger.records import SnapshotRow, snapshots_of
from openry.ledger.runs import runs_of
from openry.ledger.session_rows import Row, family, known, newest_event, put_down, rows_of
from openry.session.keeper import Keeper
from openry.session.lifecycle import STATES, alive_in, mark_exported, mark_imported, root_of
from openry.session.snapshot import Delivery, SnapshotStore

FORMAT = 1
_ABOUT, _ROWS = "session.json", "rows.jsonl"
_TREE, _CONTENT = "trees/", "contents/"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_HEX = re.compile(r"[0-9a-f]{32,64}")
#: What is read into memory at once is no larger than this.
_MOST_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Moved:
    """What went into an archive, or came out of it."""

    session_id: str
    state: str
    instances: int
    rows: int
    snapshots: int
    bytes: int
    workspace: str = ""


# --- out ------------------------------------------------------------------------------------


def export_session(config: Config, ledger: Ledger, prefix: str, target: Path) -> Moved:
    """Write a session into the new file `target`. A live one is suspended here from then on.

    Raises:
        UsageError: `target` is there already, or something of the session is under way, or was
            while it was written.
        SnapshotError: Its workspace cannot be read, or the file not written.
    """
    if target.exists():
        raise UsageError(f"`{target}` exists; choose another name, or remove it first")
    with ledger.read() as connection:
        root = root_of(connection, prefix)
        ids = family(connection, root.instance_id)
        _refuse_busy(connection, root.instance_id, ids)
        seen = newest_event(connection, ids)
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        rows, trees = _pack(Keeper(config, ledger), root, ids, draft)
        with ledger.write() as connection:
            _refuse_busy(connection, root.instance_id, ids)
            if newest_event(connection, ids) != seen:
                raise UsageError(
                    f"session {root.instance_id} went on meanwhile; openry session suspend"
                    f" {root.instance_id}, then export"
                )
            mark_exported(connection, ledger_now(connection), ids, target.name)
            os.link(draft, target)
    except OSError as error:
        raise SnapshotError(f"`{target}` cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    size = target.stat().st_size
    state = STATES[root.state][0]
    return Moved(root.instance_id, state, len(ids), rows, trees, size, root.workspace)


def _pack(keeper: Keeper, root: Instance, ids: tuple[str, ...], draft: Path) -> tuple[int, int]:
    """Write everything into a new file, which delays no writer; how many rows and snapshots."""
    workspaces = _keep_workspaces(keeper, ids)
    with keeper.ledger.read() as connection:
        at = ledger_now(connection)
        rows = list(rows_of(connection, ids))
        trees = _trees(connection, ids, keeper.store, workspaces)
    about = {
        "format": FORMAT,
        "openry": __version__,
        "at": at,
        "session": root.instance_id,
        "instances": list(ids),
        "workspaces": workspaces,
        "snapshots": list(trees),
        "rows": len(rows),
    }
    _write(draft, about, rows, keeper.store, trees)
    return len(rows), len(trees)


def _refuse_busy(connection: Transaction, session_id: str, ids: tuple[str, ...]) -> None:
    if busy := alive_in(connection, ids):
        raise UsageError(
            f"{busy[0].what} is under way; openry session suspend {session_id}, wait"
            " for it, then export"
        )


def _keep_workspaces(keeper: Keeper, ids: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """For each instance: its folder, and a snapshot of it as it is now (empty: none is there)."""
    kept: dict[str, str] = {}
    found = {}
    with keeper.ledger.read() as connection:
        instances = {one: get_instance(connection, one) for one in ids}
    folders = {one: each.workspace if each else "" for one, each in instances.items()}
    for instance_id, folder in folders.items():
        if folder and folder not in kept:
            there = Path(folder).is_dir()
            kept[folder] = keeper.keep(Path(folder), reason="export").id if there else ""
        found[instance_id] = {"folder": folder, "snapshot": kept.get(folder, "")}
    return found


def _trees(
    connection: Transaction,
    ids: tuple[str, ...],
    store: SnapshotStore,
    workspaces: Mapping[str, Mapping[str, str]],
) -> tuple[str, ...]:
    """Every snapshot that the session may still want, as far as it is there."""
    rows: list[SnapshotRow] = [row for one in ids for row in snapshots_of(connection, one)]
    wanted = [one["snapshot"] for one in workspaces.values()]
    wanted += [row.snapshot_id for row in rows]
    wanted += [run.snapshot_id for one in ids for run in runs_of(connection, one)]
    there = set(store.ids())
    return tuple(dict.fromkeys(one for one in wanted if one in there))


def _write(
    draft: Path,
    about: Mapping[str, Any],
    rows: list[tuple[str, Row]],
    store: SnapshotStore,
    trees: tuple[str, ...],
) -> None:
    from zstandard import ZstdCompressor

    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with (
        open(descriptor, "wb") as file,
        ZstdCompressor(level=3).stream_writer(file) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        _add(archive, _ABOUT, json.dumps(about, indent=1).encode())
        lines = (json.dumps([name, row], default=str) + "\n" for name, row in rows)
        _add(archive, _ROWS, "".join(lines).encode())
        contents: dict[str, None] = {}
        for tree in trees:
            _add(archive, _TREE + tree, store.listing(tree))
            contents |= dict.fromkeys(store.contents_of(tree))
        for digest in contents:
            _add_content(archive, store, digest)
    _sync(draft)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    archive.addfile(member, io.BytesIO(data))


def _add_content(archive: tarfile.TarFile, store: SnapshotStore, digest: str) -> None:
    with tempfile.SpooledTemporaryFile(max_size=1 << 24) as whole:
        for chunk in store.chunks(digest):
            whole.write(chunk)
        member = tarfile.TarInfo(_CONTENT + digest)
        member.size, member.mode = whole.tell(), 0o600
        whole.seek(0)
        archive.addfile(member, whole)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- in -------------------------------------------------------------------------------------


def import_session(config: Config, ledger: Ledger, source: Path, to: Path | None = None) -> Moved:
    """Bring a session in: suspended, if it has not ended. Its folder is new, or `to`.

    Raises:
        BadFileError: It is no archive of ours, damaged, or of a newer OpenRY. The ledger is as it
            was.
        UsageError: The session is here already, or `to` is not empty.
        SnapshotError: A folder cannot be written.
    """
    keeper = Keeper(config, ledger)
    with _opened(source) as archive, keeper.store.delivery() as delivery:
        members = iter(archive)
        about = _about(source, archive, members)
        with ledger.read() as connection:
            if there := known(connection, about["instances"]):
                raise UsageError(f"session {about['session']} is here already ({there[0]})")
        rows = _rows(archive, _next(members, _ROWS, source))
        if len(rows) != about["rows"]:
            raise EOFError("rows are missing")
        folders = _folders(config, about, to)
        for member in members:
            _take(archive, member, delivery)
        for tree in about["snapshots"]:
            delivery.check(tree)
        delivery.publish()
    try:
        _refuse_circles(rows, about)
        moved = tuple(_moved(rows, about, folders))
    except (ValueError, TypeError, KeyError) as error:
        raise _odd_rows(source, error) from error
    for instance_id, folder in folders.items():
        _lay_out(keeper.store, about["workspaces"][instance_id]["snapshot"], folder)
    with ledger.write() as connection:
        at = ledger_now(connection)
        try:
            count = put_down(connection, at, moved)
        except (ValueError, TypeError, KeyError) as error:
            raise _odd_rows(source, error) from error
        mark_imported(connection, at, tuple(about["instances"]))
        root = root_of(connection, about["session"])
    size, kept = source.stat().st_size, len(about["snapshots"])
    where = str(folders[root.instance_id])
    state = STATES[root.state][0]
    return Moved(root.instance_id, state, len(folders), count, kept, size, where)


@contextmanager
def _opened(source: Path) -> Iterator[tarfile.TarFile]:
    from zstandard import ZstdDecompressor, ZstdError

    try:
        must_be_file(source)
        with (
            source.open("rb") as file,
            ZstdDecompressor().stream_reader(file) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|") as archive,
        ):
            yield archive
    except (ZstdError, tarfile.TarError, EOFError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, OpenRYError):
            raise
        raise BadFileError(
            f"`{source}` is no session of OpenRY, or was cut short ({error}); export it again"
        ) from error
    except OSError as error:
        raise BadFileError(f"`{source}` cannot be read: {error.strerror or error}") from error


def _next(members: Iterator[tarfile.TarInfo], name: str, source: Path) -> tarfile.TarInfo:
    member = next(members, None)
    if member is None or member.name != name or not member.isfile():
        raise BadFileError(f"`{source}` is no session of OpenRY: `{name}` is not where it must be")
    return member


def _about(
    source: Path, archive: tarfile.TarFile, members: Iterator[tarfile.TarInfo]
) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(_read(archive, _next(members, _ABOUT, source)))
    if about["format"] > FORMAT:
        raise BadFileError(
            f"`{source}` was written by openry {about['openry']} (format {about['format']}), and"
            f" this is {__version__} (format {FORMAT}); upgrade openry"
        )
    ids = about["instances"]
    names = [about["session"], *ids, *about["workspaces"]]
    if not all(isinstance(one, str) and _ID.fullmatch(one) for one in names):
        raise BadFileError(f"`{source}` names instances that are none")
    if about["session"] not in ids or set(ids) != set(about["workspaces"]):
        raise BadFileError(f"`{source}` does not hold the session it names")
    if not all(_HEX.fullmatch(one) for one in about["snapshots"]):
        raise BadFileError(f"`{source}` names snapshots that are none")
    for place in about["workspaces"].values():
        if place["snapshot"] not in ("", *about["snapshots"]):
            raise BadFileError(f"`{source}` names files of a workspace that it does not hold")
    return about


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > _MOST_BYTES:
        raise BadFileError(f"`{member.name}` in the archive is larger than 512 MiB")
    data = _file(archive, member).read()
    if len(data) != member.size:
        raise EOFError("a part of it is missing")
    return data


def _file(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    if file is None or not member.isfile():
        raise BadFileError(f"`{member.name}` in the archive is no file")
    return file


def _rows(archive: tarfile.TarFile, member: tarfile.TarInfo) -> list[tuple[str, dict[str, Any]]]:
    lines = _read(archive, member).decode().splitlines()
    return [(str(name), dict(row)) for name, row in map(json.loads, lines)]


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, delivery: Delivery) -> None:
    """Take a tree or a content in; a name that is neither is refused."""
    kind, _, name = member.name.partition("/")
    if not _HEX.fullmatch(name) or f"{kind}/" not in (_TREE, _CONTENT):
        raise BadFileError(f"the archive has `{member.name}`, which no session has")
    if f"{kind}/" == _TREE:
        delivery.tree(name, _read(archive, member))
    else:
        file = _file(archive, member)
        delivery.content(name, iter(partial(file.read, 1 << 20), b""), member.size)


def _folders(config: Config, about: Mapping[str, Any], to: Path | None) -> dict[str, Path]:
    """Where each instance will work: those that shared a folder share one again."""
    made: dict[str, Path] = {}
    found = {}
    for instance_id in about["instances"]:
        old = about["workspaces"][instance_id]["folder"]
        if old not in made:
            own = config.home / "instances" / instance_id / "workspace"
            made[old] = to.resolve() if to is not None and not made else own
        folder = found[instance_id] = made[old]
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"`{folder}` is not empty; choose another folder with --to")
    return found


def _odd_rows(source: Path, error: Exception) -> BadFileError:
    return BadFileError(f"`{source}` has rows that no ledger has: {error}")


def _refuse_circles(rows: list[tuple[str, dict[str, Any]]], about: Mapping[str, Any]) -> None:
    """Whether every instance leads up to the session's first one, and every run to a first try.

    Raises:
        ValueError: One leads elsewhere, or round in a circle.
    """
    parents, earlier = {}, {}
    for name, row in rows:
        if name == "workflow_instances":
            parents[row["instance_id"]] = row["parent_instance_id"]
        elif name == "task_state":
            earlier[row["run_id"]] = row["previous_run_id"]
    root = about["session"]
    if parents.keys() != set(about["instances"]) or parents[root] in parents:
        raise ValueError("its instances are not those that it names")
    for ways in (parents, earlier):
        for first in ways:
            seen, one = {first}, ways[first]
            while one in ways and one not in seen:
                seen.add(one)
                one = ways[one]
            if one in seen or (ways is parents and root not in seen):
                raise ValueError(f"`{first}` does not lead to where its session began")


def _lay_out(store: SnapshotStore, snapshot_id: str, folder: Path) -> None:
    """Fill a folder that is not there or empty; one that another instance shares is filled."""
    try:
        if snapshot_id and not (folder.is_dir() and any(folder.iterdir())):
            store.restore(snapshot_id, folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SnapshotError(f"`{folder}` cannot be written: {error.strerror}") from error


def _moved(
    rows: list[tuple[str, dict[str, Any]]], about: Mapping[str, Any], folders: Mapping[str, Path]
) -> Iterator[tuple[str, Row]]:
    """The rows as they are here: in their new folder, and waiting for somebody to say go."""
    ids = set(about["instances"])
    for name, row in rows:
        whose = row.get("workflow_instance_id", row.get("instance_id"))
        if name != "validation_results" and whose not in ids:
            raise ValueError(f"`{name}` of another instance")
        if name == "workflow_instances":
            row["workspace"] = str(folders[row["instance_id"]])
            row |= {"owner": "", "lease_until": None}
            if row["instance_id"] == about["session"]:
                row["parent_instance_id"] = None  # whose it was is not here
        elif name == "task_state":
            row |= dict.fromkeys(("pid_started_at", "host", "token_hash"), "")
            row |= {"lease_until": None, "pid": None}
        elif name == "snapshots" and row["instance_id"] in folders:
            row["workspace"] = str(folders[row["instance_id"]])
        yield name, row
