"""Backend `bubblewrap`: own namespaces, and a view in which only what is named exists."""

from __future__ import annotations

import os
import sys

from openry.ledger.above import SANDBOX_MARK
from openry.models.command import LAYERS
from openry.sandbox import seccomp
from openry.sandbox.guard import Guard
from openry.sandbox.launcher import Launch, Opened, group_of, limited, readable_fd
from openry.sandbox.prefixes import interpreter_places, ours, visible_path
from openry.sandbox.protect import closed
from openry.sandbox.real import is_below, is_within, shown_folders
from openry.sandbox.seal import Seal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openry.models.command import SandboxSpec
    from openry.sandbox.proxy import Proxy

_MIB = 1024 * 1024
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Copied rather than mounted: a mount costs a third of a millisecond, a small copy nothing.
_COPIED = ("group", "hosts", "ld.so.cache", "mime.types", "nsswitch.conf", "passwd", "timezone")
_COPIED_NETWORK = ("gai.conf", "host.conf", "protocols", "resolv.conf", "services")
_MOUNTED = ("alternatives",)
_MOUNTED_NETWORK = ("ca-certificates", "pki", "ssl")
#: The first process in there is bubblewrap itself, started before there was a sandbox: by way of
#: its /proc/1/exe root could change the program of the host. All that is seen of it is the mark.
_HIDE_FIRST, _SHUT_FIRST = ("--tmpfs", "/proc/1"), ("--remount-ro", "/proc/1")
_FIRST = f"bwrap\0--dir\0{SANDBOX_MARK}\0".encode()
#: The last file that is made inside, when all mounts are.
_LAST = "/etc/.openry-sealed"
_ISOLATION = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL",
    "--die-with-parent", "--new-session",
)  # fmt: skip


class Bubblewrap:
    """One view of the file system, used for as many commands as wanted.

    Options travel by descriptor. Inside, /proc/1/cmdline shows the folder by which everybody in
    there can know where they are, and nothing else.
    """

    backend = "bubblewrap"
    confines_processes = True
    gives: Sequence[str] = LAYERS

    def __init__(
        self,
        program: str,
        spec: SandboxSpec,
        workspace: str,
        *,
        hide: Sequence[str] = (),
        bare: bool = False,
    ) -> None:
        self._program = program
        made = os.stat(program)
        self.identity = f"bubblewrap-{made.st_size}-{made.st_mtime_ns}"
        self._spec, self._workspace = spec, workspace
        self._hide = tuple(sorted({os.path.realpath(place) for place in hide}))
        # A proxy's inside is a Python program of ours.
        self._prefixes = () if bare and not spec.hosts else interpreter_places(workspace)
        self._options = _options(spec, self._prefixes)
        copied = (*_COPIED, *(_COPIED_NETWORK if spec.network else ()))
        self._copied = tuple(path for name in copied if os.path.isfile(path := f"/etc/{name}"))
        self.env: Mapping[str, str] = {
            "HOME": "/tmp/home",  # noqa: S108  # private to the sandbox
            "TMPDIR": "/tmp",  # noqa: S108
            "PATH": visible_path(self._prefixes),
        }
        if spec.hosts:
            from openry.sandbox.inlet import proxy_environment

            self.env = {**self.env, **proxy_environment()}

    def launch(self, argv: Sequence[str], cwd: str, tmp: str) -> Launch:
        """Everything in folders that others may write is looked at anew for each command."""
        opened = Opened()
        try:
            return self._launch(argv, cwd, opened)
        except BaseException:
            opened.close()
            raise

    def _launch(self, argv: Sequence[str], cwd: str, opened: Opened) -> Launch:
        read, write = shown_folders(self._spec, self._workspace)
        found = closed(write, self._spec.protect, self._workspace)
        guard = Guard(found.watched, found.below) if write else None
        if guard:
            opened.then(guard.close)
        sources = [opened.fd(os.open(path, os.O_RDONLY)) for path in self._copied]
        copies = zip(sources, self._copied, strict=True)
        files = [part for fd, path in copies for part in ("--file", str(fd), path)]
        sources.append(opened.fd(readable_fd(_FIRST)))
        files += [*_HIDE_FIRST, "--file", str(sources[-1]), "/proc/1/cmdline", *_SHUT_FIRST]
        if seccomp.program():
            sources.append(opened.fd(readable_fd(seccomp.program())))
            files += ["--seccomp", str(sources[-1])]
        folders = [
            *_mounts("--ro-bind", read),
            *_mounts("--bind", (*write, *found.kept)),
            *_mounts("--ro-bind", (*found.shut, *ours(write))),
            *_hidden(self._hide, (*read, *write)),
        ]
        mounted = (*read, *write, *found.kept, *found.shut)
        seal = _sealed(mounted, (*write, os.path.realpath(self._workspace or "/nowhere")))
        if seal:
            opened.then(seal.close)
            sources.append(opened.fd(seal.fd))
            files += ["--file", str(seal.fd), _LAST]
        if self._spec.only_named and self._workspace:
            folders = ["--dir", os.path.realpath(self._workspace), *folders]
        if self._spec.door:
            folders += ["--ro-bind", self._spec.door, SANDBOX_MARK]
        words = (*self._options, *folders, *files, "--chdir", os.path.realpath(cwd))
        options = opened.fd(readable_fd(b"".join(os.fsencode(word) + b"\0" for word in words)))
        status, status_write = map(opened.fd, os.pipe())
        helper = None
        if self._spec.hosts and not self._spec.network:
            inlet, helper = self._way_out()
            sources.append(opened.fd(inlet))
            opened.then(helper.close)
            argv = (sys.executable, "-I", "-m", "openry.sandbox.inlet", str(inlet), "--", *argv)
        fds = ("--dir", SANDBOX_MARK, "--args", str(options), "--json-status-fd", str(status_write))
        group = group_of(self._spec)
        doors = group.doors if group else ()
        argv = limited((self._program, *fds, "--", *argv), self._spec, doors)
        fds_in = (options, status_write, *sources)
        return Launch(argv, "/", fds_in, status, helper, guard, group, seal)

    def _way_out(self) -> tuple[int, Proxy]:
        """A proxy, and the descriptor by which the inside hands it a listener."""
        import socket

        from openry.sandbox.proxy import Proxy

        outside, inside = socket.socketpair()
        made = Proxy(outside, self._spec.hosts, per_minute=self._spec.connections_per_minute)
        return inside.detach(), made


def _sealed(mounted: Sequence[str], changing: Sequence[str]) -> Seal | None:
    """For mounts that another command could lead elsewhere while they are made.

    Args:
        changing: Folders in which commands may change what there is.
    """
    places = [place for place in mounted if any(is_below(place, one) for one in changing)]
    return Seal(places) if places else None


def _options(spec: SandboxSpec, prefixes: Sequence[str]) -> tuple[str, ...]:
    network = ("--share-net",) if spec.network else ()
    # Read-only: to root, /proc/sys is the kernel's own, whatever the namespaces.
    options = [*_ISOLATION, *network, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    tmp_mb = min(filter(None, (spec.tmp_mb, spec.disk_mb)), default=0)
    options += ["--size", str(tmp_mb * _MIB)] if tmp_mb else []
    options += ["--tmpfs", "/tmp", "--dir", "/tmp/home"]  # noqa: S108
    for place in _SYSTEM:
        options += _system_folder(place)
    reaches_out = spec.network or spec.hosts  # through a proxy certificates are looked at as well
    for name in _MOUNTED + (_MOUNTED_NETWORK if reaches_out else ()):
        options += _shown(f"/etc/{name}")
    if os.path.islink("/etc/localtime"):
        options += ["--symlink", os.readlink("/etc/localtime"), "/etc/localtime"]
    for place in prefixes:
        options += _shown(place)
    return tuple(options)


def _mounts(how: str, places: Sequence[str]) -> list[str]:
    return [part for place in sorted(places) for part in (how, place, place)]


def _hidden(hide: Sequence[str], seen: Sequence[str]) -> list[str]:
    """Nothing is seen where these are, whatever the lists say."""
    options: list[str] = []
    for place in hide:
        shown = any(is_within(place, one) for one in seen)
        if not shown or any(is_below(place, other) for other in hide):
            continue
        if os.path.isdir(place):
            options += ["--tmpfs", place]
        elif os.path.exists(place):
            options += ["--ro-bind", "/dev/null", place]
    return options


def _system_folder(place: str) -> tuple[str, ...]:
    if os.path.islink(place):
        return "--symlink", os.readlink(place), place
    return ("--ro-bind", place, place) if os.path.isdir(place) else ()


def _shown(place: str) -> tuple[str, ...]:
    return ("--ro-bind", place, place) if os.path.exists(place) else ()
