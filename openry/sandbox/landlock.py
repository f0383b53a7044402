"""Backend `landlock`, for where bubblewrap is not: the kernel's own lists for one process tree.

What it cannot give is refused, not passed over: within a folder that may be written nothing can
be protected. It cannot tell one socket file from another, so there are none, and without network
no internet sockets either. There is no namespace of processes, so a tree is ended from outside, as
without a sandbox.

Run as a program (`python -m openry.sandbox.landlock FD -- ARGV`) it closes itself and becomes ARGV.
"""

from __future__ import annotations

import json
import os
import sys

from openry.errors import SandboxError
from openry.sandbox import seccomp
from openry.sandbox.become import become
from openry.sandbox.guard import Guard
from openry.sandbox.launcher import Launch, group_of, limited, readable_fd
from openry.sandbox.prefixes import ours
from openry.sandbox.protect import closed
from openry.sandbox.real import is_within, open_real, shown_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, NoReturn

    from openry.models.command import SandboxSpec

#: The first version that also closes signals and abstract sockets of others.
NEEDED_ABI = 6
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")
_SECRET_ETC = ("shadow", "gshadow", "sudoers", "ssh", "ssl/private")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_MAKE_DEVICES = 1 << 6 | 1 << 11
_EVERYTHING = (1 << 16) - 1
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _EVERYTHING & ~_MAKE_DEVICES
_TCP = 1 | 2  #: bind, connect
_SCOPES = 1 | 2  #: abstract sockets, signals

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_PR_CAPBSET_DROP, _CAPABILITIES, _CAPABILITY_VERSION = 24, 64, 0x20080522
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_FILTER = 38, 22, 2


class Landlock:
    """One list of what may be read and written, used for as many commands as wanted."""

    backend = "landlock"
    confines_processes = False
    gives: Sequence[str] = ("fs_read", "fs_write", "net")

    def __init__(self, spec: SandboxSpec, workspace: str, *, hide: Sequence[str] = ()) -> None:
        found = abi()
        if found < NEEDED_ABI:
            raise SandboxError(f"the kernel's landlock has version {found}, not {NEEDED_ABI}")
        if spec.hosts and not spec.network:
            raise SandboxError(
                "landlock cannot allow single hosts; run: apt-get install bubblewrap"
            )
        if spec.door:
            raise SandboxError(
                "landlock cannot show an agent its socket alone; run: apt-get install bubblewrap"
            )
        self.identity = f"landlock-{found}"
        self._spec, self._workspace, self._hide = spec, workspace, tuple(hide)
        self._shown_folders()
        self.env: Mapping[str, str] = {"HOME": "/nonexistent"}

    def launch(self, argv: Sequence[str], cwd: str, tmp: str) -> Launch:
        read, write = self._shown_folders()
        found = closed(write, self._spec.protect, self._workspace)
        shut = [*found.shut, *ours(write)]
        if shut:
            raise SandboxError(
                f"landlock cannot protect `{shut[0]}`; run: apt-get install bubblewrap"
            )
        guard = Guard(found.watched, found.below) if write else None
        more = (os.path.realpath(tmp),) if tmp else ()
        lists = {"read": read, "write": (*write, *more), "network": self._spec.network}
        given = readable_fd(json.dumps(lists).encode())
        helper = (sys.executable, "-I", "-m", "openry.sandbox.landlock", str(given), "--")
        group = group_of(self._spec)
        argv = limited((*helper, *argv), self._spec, group.doors if group else ())
        return Launch(argv, cwd, (given,), guard=guard, group=group)

    def _shown_folders(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What may only be read and what may be written, looked at anew for each command."""
        read, write = shown_folders(self._spec, self._workspace)
        _refuse_what_it_cannot_hide([*read, *write], self._hide)
        return read, write


def _refuse_what_it_cannot_hide(seen: Iterable[str], hide: Sequence[str]) -> None:
    for secret in map(os.path.realpath, hide):
        for folder in seen:
            if is_within(secret, folder):
                raise SandboxError(
                    f"landlock cannot hide `{secret}` in `{folder}`; set OPENRY_HOME elsewhere"
                )


def abi() -> int:
    """The version of landlock in this kernel; 0 for none."""
    import ctypes

    found: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, 1)
    return max(found, 0)


# --- the helper: closes itself, then becomes the command --------------------------------------


def main(words: Sequence[str]) -> NoReturn:
    fd = int(words[0])
    with open(fd, encoding="utf-8") as file:
        lists = json.load(file)
    try:
        _close(lists)
    except OSError as error:
        sys.stderr.write(f"openry: sandbox unavailable: {error.strerror}: {error.filename}\n")
        os._exit(125)
    become(list(words[2:]))


def _close(lists: Mapping[str, Any]) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def call(what: str, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), what)
        return answer

    handled = (ctypes.c_uint64 * 3)(_EVERYTHING, 0 if lists["network"] else _TCP, _SCOPES)
    rules = call("landlock", libc.syscall(_CREATE_RULESET, handled, ctypes.sizeof(handled), 0))
    named = {*lists["read"], *lists["write"]}
    for place, access in _places(lists):
        try:
            # Of a workspace another command may make a link meanwhile; the system's are links.
            opened = (
                open_real(place) if place in named else os.open(place, os.O_PATH | os.O_CLOEXEC)
            )
        except FileNotFoundError:
            continue
        allowed = access if os.path.isdir(place) else access & _FOR_FILES
        rule = allowed.to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
        call(place, libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
        os.close(opened)
    call("no new privileges", libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _drop_capabilities(libc)
    call("landlock", libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)
    internet = (seccomp.INET, seccomp.INET6, seccomp.NETLINK) if lists["network"] else ()
    code = seccomp.program(families=internet, namespaces=False)
    if code:
        buffer = ctypes.create_string_buffer(code, len(code))

        class Program(ctypes.Structure):
            _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

        filter_ = Program(len(code) // 8, ctypes.addressof(buffer))
        answer = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(filter_), 0, 0)
        call("seccomp", answer)


def _drop_capabilities(libc: Any) -> None:
    """What root may beside files: the network's settings, the clock, everybody's processes."""
    import ctypes

    for number in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # those this kernel does not know are none
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "capabilities")


def _places(lists: Mapping[str, Any]) -> list[tuple[str, int]]:
    from openry.sandbox.prefixes import interpreter_places

    etc = [f"/etc/{name}" for name in os.listdir("/etc") if name not in _SECRET_ETC]
    read = [*(place for place in _SYSTEM if place != "/etc"), *etc, *interpreter_places()]
    return [
        *((place, _READ) for place in (*read, *lists["read"])),
        (_package_parent(), _READ_DIR),  # an import looks for the package in this folder's list
        *((place, _READ_FILE | _WRITE_FILE) for place in _DEVICES),
        *((place, _WRITE) for place in lists["write"]),
    ]


def _package_parent() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


if __name__ == "__main__":
    main(sys.argv[1:])
