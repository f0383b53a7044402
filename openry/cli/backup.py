"""`openry backup`: the ledger, as it is at one moment, and what a person wrote, in one archive."""

from __future__ import annotations

import errno
import os
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from openry.cli.output import write
from openry.cli.parser import Parser
from openry.clock import utc_now
from openry.config import Config, load_config
from openry.errors import BadFileError, StorageError, UsageError
from openry.files import make_private_folder, must_be_file
from openry.ledger.copying import check_ledger_file, copy_ledger
from openry.ledger.place import sqlite_path
from openry.secretstore import FILE as SECRETS
from openry.session.blackboard import boards_of

LEDGER = "openry.db"
#: What a person wrote or decided.
_WRITTEN = (
    "config.yaml", "trusted.json", "compositions", "workflows", "overflow_workflows", "policies",
    "capabilities", "agents", "overflow", "loops",
)  # fmt: skip
#: What runs left behind: large, and only of use with the ledger that names it.
_LEFT = ("runs", "snapshots", "instances")
_ROOT = "openry"
_ENDINGS = {".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz", ".bz2": "w:bz2"}
_FOREIGN = (".zip", ".7z", ".rar", ".zst")
_NO_PLACE = (errno.EACCES, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EROFS)
_PIECE_BYTES = 1024 * 1024
_AFTERWARDS = "bring it back: openry backup --restore"


def main(words: Sequence[str]) -> int:
    parser = Parser("openry backup", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a .tar, .tar.gz or .tar.xz")
    parser.add_argument(
        "--with-secrets", action="store_true", help="put secrets and the operator's token in, too"
    )
    parser.add_argument(
        "--whole", action="store_true", help="put outputs, snapshots and workspaces in, too"
    )
    parser.add_argument(
        "--restore",
        action="store_true",
        help="bring FILE back into OPENRY_HOME; what is there is set aside, not deleted",
    )
    given = parser.parse_args(words)
    config = load_config()
    if given.restore:
        write(restore(Path(given.file), config))
        return 0
    wanted = [*_WRITTEN, *(_LEFT if given.whole else ())]
    wanted += _secret_files(config) if given.with_secrets else []
    write(f"{back_up(Path(given.file), config, wanted)}; {_AFTERWARDS} {given.file}\n")
    return 0


def _secret_files(config: Config) -> list[str]:
    tokens = (path.name for path in config.home.glob("*token*") if path.is_file())
    return [SECRETS, *sorted(tokens)]


# --- making one -----------------------------------------------------------------------------


def back_up(file: Path, config: Config, wanted: Sequence[str]) -> str:
    """Write the archive; says what is in it.

    Raises:
        UsageError: There is a file of that name, or can be none.
        StorageError: The ledger cannot be copied, or the archive not written.
    """
    home = config.home
    if file.suffix in _FOREIGN:
        raise UsageError(f"`{file}`: this makes no {file.suffix}; end the name in .tar.gz")
    if not home.is_dir():
        raise UsageError(f"there is no `{home}` to back up; set OPENRY_HOME")
    places = [*(home / name for name in wanted), boards_of(config)]
    there = [place for place in places if place.exists()]
    if not there and not Path(sqlite_path(config.ledger) or home).exists():
        raise UsageError(f"`{home}` holds nothing to back up yet")
    try:
        with _draft(file) as draft, tempfile.TemporaryDirectory(dir=file.parent) as aside:
            ledger = _ledger_copy(config, Path(aside))
            with tarfile.open(draft, _mode(file)) as archive:
                if ledger is not None:
                    archive.add(ledger, f"{_ROOT}/{LEDGER}", filter=_private)
                for path in there:
                    archive.add(path, f"{_ROOT}/{path.name}", filter=_private)
            os.link(draft, file)
    except OSError as error:
        raise _cannot(file, error) from error
    names = ", ".join([*([LEDGER] if ledger else []), *(path.name for path in there)])
    return f"{file}: {names} ({file.stat().st_size:,} bytes)"


def _ledger_copy(config: Config, folder: Path) -> Path | None:
    """A copy of the ledger; None where there is none, or a database server keeps it."""
    path = sqlite_path(config.ledger)
    if path is None:
        sys.stderr.write(
            "openry: the ledger is on a database server; back it up by its own means\n"
        )
        return None
    if not Path(path).exists():
        return None
    copy_ledger(config.ledger, folder / LEDGER)
    return folder / LEDGER


class _draft:  # noqa: N801  # read as a function
    """A new file beside `file`, closed to others, gone at the end; `file` must not exist yet."""

    def __init__(self, file: Path) -> None:
        if file.exists():
            raise UsageError(f"`{file}` exists; choose another name, or remove it first")
        self.path = file.with_name(f".{file.name}.{os.urandom(4).hex()}")

    def __enter__(self) -> Path:
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return self.path

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)


def _mode(file: Path) -> Any:  # one of the many literals that `tarfile` takes
    return _ENDINGS.get(file.suffix, "w")


def _private(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files and folders only, nobody's name in them; what we are just writing is left out."""
    if not (member.isfile() or member.isdir()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode &= 0o700
    return member


def _cannot(file: Path, error: OSError) -> UsageError | StorageError:
    """A name that leads nowhere is the caller's; a full disk is not."""
    why = f"`{file}` cannot be written: {(error.strerror or str(error)).lower()}"
    if error.errno in _NO_PLACE:
        return UsageError(f"{why}; name a file in a folder that you may write")
    return StorageError(why)


# --- bringing one back ----------------------------------------------------------------------


def restore(file: Path, config: Config) -> str:
    """Bring an archive back into OPENRY_HOME; says what, and where that is which was there.

    Raises:
        BadFileError: It is no archive of ours, or its ledger is damaged; nothing was changed.
        UsageError: The ledger is not OPENRY_HOME's own.
        StorageError: Something cannot be written.
    """
    home = config.home
    if config.origins.get("ledger") != "default":
        raise UsageError("unset OPENRY_DB first: the ledger comes back into OPENRY_HOME")
    try:
        make_private_folder(home)
        with tempfile.TemporaryDirectory(dir=home, prefix=".restoring-") as aside:
            came = _unpacked(file, Path(aside))
            set_aside = _exchanged(came, home)
    except OSError as error:
        raise _cannot(home, error) from error
    lines = [f"restored into {home}: {', '.join(path.name for path in came)}"]
    if set_aside is not None:
        lines.append(f"what was there is in {set_aside}")
    return "\n".join(lines) + "\n"


def _unpacked(file: Path, folder: Path) -> list[Path]:
    """The archive's things, looked at before anything of ours is touched."""
    try:
        must_be_file(file)
        file.open("rb").close()
    except OSError as error:
        why = (
            "does not exist"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read: {str(error.strerror).lower()}"
        )
        raise BadFileError(f"`{file}` {why}") from None
    try:
        with tarfile.open(file) as archive:
            archive.extractall(folder, members=_ours(archive, file), filter="data")
            _read_to_its_end(archive)
    except _damages() as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # ours: nothing can be written, say
        why = str(error).partition("\n")[0].rstrip(":")
        raise BadFileError(f"{file}: is no archive that `openry backup` wrote: {why}") from error
    came = sorted((folder / _ROOT).iterdir()) if (folder / _ROOT).is_dir() else []
    if not came:
        raise BadFileError(f"{file}: is no archive that `openry backup` wrote: it is empty")
    if (folder / _ROOT / LEDGER).exists():
        check_ledger_file(folder / _ROOT / LEDGER)
    return came


def _read_to_its_end(archive: tarfile.TarFile) -> None:
    """What is packed ends in a sum of what it held: who stops before takes damage for content."""
    packed = archive.fileobj
    while packed is not None and packed.read(_PIECE_BYTES):
        pass


def _damages() -> tuple[type[Exception], ...]:
    """What reading a damaged archive raises. A Python need not have `lzma`."""
    found = (tarfile.TarError, EOFError, OSError, zlib.error)
    try:
        from lzma import LZMAError
    except ImportError:
        return found
    return (*found, LZMAError)


def _ours(archive: tarfile.TarFile, file: Path) -> Iterator[tarfile.TarInfo]:
    for member in archive:
        if not (member.isfile() or member.isdir()) or not f"{member.name}/".startswith(f"{_ROOT}/"):
            raise BadFileError(f"{file}: `{member.name}` is nothing that `openry backup` writes")
        yield member


def _exchanged(came: Sequence[Path], home: Path) -> Path | None:
    """Put everything in its place; where that is which was there, None when nothing was."""
    at = utc_now().replace(":", "").replace("-", "").partition(".")[0]
    aside = home / f"before-restore-{at}Z-{os.urandom(2).hex()}"
    for path in came:
        old = (
            [path.name, f"{path.name}-wal", f"{path.name}-shm"]
            if path.name == LEDGER
            else [path.name]
        )
        for name in old:
            if (home / name).exists():
                make_private_folder(aside)
                (home / name).rename(aside / name)
        path.rename(home / path.name)
    return aside if aside.exists() else None
