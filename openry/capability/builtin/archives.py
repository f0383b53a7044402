"""The `archive` pack: zip and tar files made, listed and unpacked.

An archive is somebody else's: no name in it leads out of the folder, nothing is written through a
link, and what it may grow to is bounded while it is read, whatever its headers say.
"""

# Importing pathlib costs more than most calls take.
# ruff: noqa: PTH101, PTH102, PTH103, PTH105, PTH108, PTH112, PTH114, PTH118, PTH119, PTH120, PTH211

from __future__ import annotations

import fnmatch
import lzma
import os
import shutil
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from openry.capability.builtin.failure import ToolFailure, note

_MIB = 1024 * 1024
_CHUNK = 256 * 1024
_MOST_ENTRIES = 100_000
#: What this tool's process may take: a header may ask for gigabytes.
MEMORY_BYTES = 2 * 1024 * _MIB
#: Most that a compressed archive is read through for a list of its names.
_LISTING_LIMIT = 16 * 1024 * _MIB
_TAR_MODES = {
    ".tar": "",
    ".tar.gz": "gz",
    ".tgz": "gz",
    ".tar.bz2": "bz2",
    ".tbz2": "bz2",
    ".tar.xz": "xz",
    ".txz": "xz",
}
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Member:
    """One entry. `link` is where a symbolic link leads; `open` gives a file's content."""

    name: str
    kind: str
    size: int
    modified: float
    mode: int
    link: str = ""
    open: Callable[[], IO[bytes]] | None = None


# --- making -------------------------------------------------------------------------------


def create_archive(paths: list[str], output: str, exclude: list[str], overwrite: bool) -> bytes:
    ending = _ending(output)
    if os.path.lexists(output) and not overwrite:
        raise ToolFailure("conflict", f"`{output}` exists; give another name or `overwrite`")
    if os.path.isdir(output):
        raise ToolFailure("bad_arguments", f"`{output}` is a folder; name a file")
    folder = os.path.dirname(output)
    names = sorted(_chosen(paths, exclude, output))
    if folder:
        os.makedirs(folder, exist_ok=True)
    part = os.path.join(folder, f".{_start(output)}.{os.getpid()}.part")
    try:
        made = _make_zip(part, names) if ending == ".zip" else _make_tar(part, names, ending)
        os.replace(part, os.path.realpath(output) if os.path.islink(output) else output)
    finally:
        if os.path.lexists(part):
            os.unlink(part)
    return os.fsencode(f"{made} files to {output}\n")


def _start(path: str) -> str:
    """What a draft's name begins with: no longer than a file system takes."""
    return os.fsdecode(os.fsencode(os.path.basename(path))[:100])


def _ending(name: str) -> str:
    lower = name.lower()
    for ending in (".zip", *sorted(_TAR_MODES, key=len, reverse=True)):
        if lower.endswith(ending):
            return ending
    known = ", ".join((".zip", *_TAR_MODES))
    raise ToolFailure("bad_arguments", f"`{name}` must end with one of {known}")


def _chosen(paths: Iterable[str], exclude: list[str], output: str) -> set[str]:
    """Names of files, folders and links, relative to the workspace, the archive itself left out."""
    found: set[str] = set()
    for path in paths:
        if not os.path.lexists(path):
            raise ToolFailure("not_found", f"`{path}`: no such file")
        name = os.path.relpath(path)
        if not os.path.isdir(path) or os.path.islink(path):
            found.add(name)
            continue
        for folder, folders, files in os.walk(path):
            here = os.path.relpath(folder)
            folders[:] = [each for each in folders if not _left_out(here, each, exclude)]
            links = [each for each in folders if os.path.islink(os.path.join(folder, each))]
            kept = [each for each in files if not _left_out(here, each, exclude)]
            found.update(os.path.normpath(os.path.join(here, each)) for each in (*kept, *links))
            if here != "." and not folders and not kept:
                found.add(here)
    return found - {os.path.relpath(output), "."}


def _left_out(folder: str, name: str, exclude: list[str]) -> bool:
    place = os.path.normpath(os.path.join(folder, name))
    return any(
        fnmatch.fnmatchcase(name, each) or fnmatch.fnmatchcase(place, each) for each in exclude
    )


def _make_zip(part: str, names: list[str]) -> int:
    made = 0
    with zipfile.ZipFile(part, "x", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for name in names:
            mode = os.lstat(name).st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                archive.write(name, _storable(name))
                made += stat.S_ISREG(mode)
            else:
                note(f"`{name}` is a link and was left out; a tar file keeps links")
    return made


def _storable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ToolFailure(
            "bad_arguments", f"`{name!a}` is no name that a zip file can hold"
        ) from None
    return name


def _make_tar(part: str, names: list[str], ending: str) -> int:
    made = 0
    mode: Any = f"x:{_TAR_MODES[ending]}"
    with tarfile.open(part, mode, format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            about = archive.gettarinfo(name)
            if about is None or not (about.isreg() or about.isdir() or about.issym()):
                if about is None or not about.islnk():
                    note(f"`{name}` is no file and was left out")
                    continue
                about.type, about.size = tarfile.REGTYPE, os.lstat(name).st_size
            about.uid = about.gid = 0
            about.uname = about.gname = ""
            if about.isreg():
                with open(name, "rb") as file:
                    archive.addfile(about, file)
                made += 1
            else:
                archive.addfile(about)
    return made


# --- looking ------------------------------------------------------------------------------


def list_archive(path: str, details: bool) -> Iterator[bytes]:
    with _opened(path, _LISTING_LIMIT) as members:
        if details:
            yield b"name,size,modified\n"
        for member in _bounded(members):
            name = _visible(member.name) + ("/" if member.kind == "folder" else "")
            yield _row(name, member) if details else os.fsencode(name) + b"\n"


def _row(name: str, member: _Member) -> bytes:
    import csv
    import io

    out = io.StringIO()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(0, min(member.modified, 2**35))))
    csv.writer(out, lineterminator="\n").writerow((name, member.size, stamp))
    return out.getvalue().encode("utf-8", "surrogateescape")


def _visible(name: str) -> str:
    return "".join(sign if sign.isprintable() or "\udc80" <= sign <= "\udcff" else
                   f"\\x{ord(sign):02x}" for sign in name)  # fmt: skip


# --- unpacking ----------------------------------------------------------------------------


def extract_archive(
    path: str, output: str, max_mb: int, overwrite: bool, members: str | None = None
) -> bytes:
    """Unpack into a folder: first into a draft beside it, so half an archive leaves nothing."""
    target = os.path.normpath(output)
    if os.path.lexists(target) and not os.path.isdir(target):
        raise ToolFailure("conflict", f"`{output}` is a file; name a folder")
    above = os.path.dirname(target)
    if above:
        os.makedirs(above, exist_ok=True)
    draft = os.path.join(above, f".{_start(target)}.{os.getpid()}.part")
    os.mkdir(draft, 0o700)
    try:
        with _opened(path, max(4 * max_mb * _MIB, 64 * _MIB)) as found:
            written = _unpack(_bounded(found), draft, max_mb * _MIB, members)
        if not written:
            what = f"no name in it fits `{members}`" if members else "it is empty"
            raise ToolFailure("not_found", f"`{path}`: {what}")
        _move_in(draft, target, written, overwrite=overwrite)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return os.fsencode(f"{len(written)} files to {output}\n")


def _unpack(found: Iterable[_Member], draft: str, most: int, pattern: str | None) -> list[str]:
    """Write files and folders, then links: nothing can be written through one."""
    names: dict[str, None] = {}
    links: dict[str, str] = {}
    left = most
    for member in found:
        name = _safe_name(member.name)
        if not name or (pattern and not _fits(name, pattern)):
            continue
        place = os.path.join(draft, name)
        links.pop(name, None)
        if member.kind == "folder":
            _make_folder(draft, name)
        elif member.kind == "file" and member.open is not None:
            _make_folder(draft, os.path.dirname(name))
            left -= _write(member, place, left, most)
            names[name] = None
        elif member.kind == "link" and _stays_inside(name, member.link):
            links[name] = member.link
        else:
            note(f"`{_visible(member.name)}` is {_what(member)} and was left out")
    for name, link in links.items():
        place = os.path.join(draft, name)
        _make_folder(draft, os.path.dirname(name))
        if os.path.lexists(place):
            raise ToolFailure("bad_arguments", f"the archive holds `{_visible(name)}` twice")
        os.symlink(link, place)
        names[name] = None
    return list(names)


def _what(member: _Member) -> str:
    return "a link that leads out of it" if member.kind == "link" else "no plain file"


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(
        os.path.basename(name), pattern
    )


def _safe_name(name: str) -> str:
    """The name as it may be written; empty for the folder itself.

    Raises:
        ToolFailure: It leads out of the folder.
    """
    said = f"`{_visible(name)[:200]}` in the archive leads out of the folder; nothing was unpacked"
    parts = name.replace("\\", "/").split("/") if os.sep == "/" else name.split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or name[1:3] in (":\\", ":/"):
        raise ToolFailure("refused", said)
    kept = [part for part in parts if part not in ("", ".")]
    if any(len(os.fsencode(part)) > 255 for part in kept) or len(kept) > 100:
        raise ToolFailure("bad_arguments", f"`{_visible(name)[:60]}…` in the archive is too long")
    return "/".join(kept)


def _stays_inside(name: str, link: str) -> bool:
    if not link or link.startswith("/") or "\0" in link:
        return False
    there = os.path.normpath(os.path.join(os.path.dirname(name), link))
    return there != ".." and not there.startswith("../")


def _make_folder(draft: str, name: str) -> None:
    try:
        os.makedirs(os.path.join(draft, name), exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ToolFailure(
            "bad_arguments", f"the archive holds `{_visible(name)}` both as a file and a folder"
        ) from None


def _write(member: _Member, place: str, left: int, most: int) -> int:
    """The bytes written. The size is counted, not believed."""
    if os.path.isdir(place):
        raise ToolFailure("bad_arguments", f"the archive holds `{member.name}` twice")
    if os.path.lexists(place):
        os.unlink(place)
    size = 0
    assert member.open is not None
    with member.open() as source, open(place, "xb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > left:
                raise ToolFailure(
                    "resource",
                    f"unpacked it is larger than {most // _MIB} MB; nothing was kept;"
                    " raise `max_mb`, or name `members`",
                )
            file.write(chunk)
    os.chmod(place, 0o755 if member.mode & 0o100 else 0o644)
    stamp = max(0.0, min(member.modified, 2.0**33))
    os.utime(place, (stamp, stamp))
    return size


def _move_in(draft: str, target: str, written: list[str], *, overwrite: bool) -> None:
    """Put the unpacked files in place; folders that are there are gone into, links are not."""
    for name in written:
        place = os.path.join(target, name)
        if os.path.lexists(place) and not overwrite:
            raise ToolFailure("conflict", f"`{place}` exists; unpack elsewhere or give `overwrite`")
        _refuse_links(target, name)
        if os.path.isdir(place) and not os.path.islink(place):
            raise ToolFailure("conflict", f"`{place}` is a folder, in the archive it is a file")
    for folder, _, _ in os.walk(draft):
        here = os.path.relpath(folder, draft)
        os.makedirs(os.path.join(target, here) if here != "." else target, exist_ok=True)
    for name in written:
        os.replace(os.path.join(draft, name), os.path.join(target, name))


def _refuse_links(target: str, name: str) -> None:
    place = target
    for part in os.path.dirname(name).split("/"):
        place = os.path.join(place, part) if part else place
        if part and os.path.islink(place):
            raise ToolFailure("refused", f"`{place}` is a link; nothing is unpacked through one")
        if os.path.lexists(place) and not os.path.isdir(place):
            raise ToolFailure("conflict", f"`{place}` is a file, in the archive it is a folder")


# --- reading ------------------------------------------------------------------------------


class _Counted:
    """A stream that says stop after so many bytes, however little it was compressed to."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        self._source, self._left, self._most = source, most, most

    def read(self, size: int = -1) -> bytes:
        wanted = size if 0 <= size <= _CHUNK * 256 else _CHUNK * 256
        data = self._source.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise ToolFailure(
                "resource", f"it unpacks to more than {self._most // _MIB} MB; nothing was kept"
            )
        return data


class _opened:  # noqa: N801  # a context manager
    """The members of an archive, whatever its name says it is."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most = path, most
        self._close: list[Callable[[], object]] = []

    def __enter__(self) -> Iterator[_Member]:
        if os.path.isdir(self._path):
            raise ToolFailure("bad_arguments", f"`{self._path}` is a folder; name an archive")
        with open(self._path, "rb") as file:
            head = file.read(512)
        try:
            if head[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08") or zipfile.is_zipfile(
                self._path
            ):
                return self._zip()
            return self._tar(head)
        except _BROKEN as error:
            raise self._broken(error) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        for close in reversed(self._close):
            close()
        if isinstance(error, _BROKEN) or (isinstance(error, OSError) and error.errno is None):
            raise self._broken(error) from None
        if isinstance(error, NotImplementedError):
            raise ToolFailure("bad_arguments", f"`{self._path}`: {error}") from None
        if isinstance(error, RuntimeError) and "password" in str(error):
            raise ToolFailure("auth", f"`{self._path}` is encrypted; unpack it elsewhere") from None

    def _broken(self, error: BaseException) -> ToolFailure:
        return ToolFailure("bad_arguments", f"`{self._path}` is no whole archive: {error}")

    def _zip(self) -> Iterator[_Member]:
        archive = zipfile.ZipFile(self._path)
        self._close.append(archive.close)
        return (_zipped(archive, about) for about in archive.infolist())

    def _tar(self, head: bytes) -> Iterator[_Member]:
        import bz2
        import gzip

        opened: Any
        if head[:2] == b"\x1f\x8b":
            opened = gzip.open(self._path, "rb")  # noqa: SIM115  # closed in `__exit__`
        elif head[:3] == b"BZh":
            opened = bz2.open(self._path, "rb")  # noqa: SIM115
        elif head[:6] == b"\xfd7zXZ\x00":
            opened = lzma.open(self._path, "rb")  # noqa: SIM115
        else:
            opened = open(self._path, "rb")  # noqa: SIM115
        self._close.append(opened.close)
        counted: Any = _Counted(opened, self._most)
        archive = tarfile.open(fileobj=counted, mode="r|")  # noqa: SIM115
        self._close.append(archive.close)
        return (_tarred(archive, about) for about in archive)


def _zipped(archive: zipfile.ZipFile, about: zipfile.ZipInfo) -> _Member:
    mode = about.external_attr >> 16
    try:
        stamp = time.mktime((*about.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        stamp = time.mktime((*_EARLIEST, 0, 0, -1))
    if about.is_dir():
        return _Member(about.filename, "folder", 0, stamp, mode)
    if stat.S_ISLNK(mode):
        link = (
            archive.read(about).decode("utf-8", "surrogateescape") if about.file_size < 4096 else ""
        )
        return _Member(about.filename, "link", 0, stamp, mode, link)
    kind = "other" if stat.S_IFMT(mode) not in (0, stat.S_IFREG) else "file"
    return _Member(
        about.filename, kind, about.file_size, stamp, mode, open=lambda: archive.open(about)
    )


def _tarred(archive: tarfile.TarFile, about: tarfile.TarInfo) -> _Member:
    if about.isdir():
        return _Member(about.name, "folder", 0, about.mtime, about.mode)
    if about.issym():
        return _Member(about.name, "link", 0, about.mtime, about.mode, about.linkname)

    def content() -> IO[bytes]:
        file = archive.extractfile(about)
        assert file is not None
        return file

    if about.isreg():
        return _Member(about.name, "file", about.size, about.mtime, about.mode, open=content)
    return _Member(about.name, "other", 0, about.mtime, about.mode)


def _bounded(members: Iterable[_Member]) -> Iterator[_Member]:
    for number, member in enumerate(members, 1):
        if number > _MOST_ENTRIES:
            raise ToolFailure("resource", f"the archive holds more than {_MOST_ENTRIES} entries")
        yield member
